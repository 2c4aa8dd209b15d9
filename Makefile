# SPDX-License-Identifier: BSD-3-Clause
# A thin front to Meson. Each target does everything that a fresh Debian 12 machine needs,
# packages included; `make PACKAGES=no ...` leaves the package manager alone.

BUILD ?= build
export PATH := /usr/bin:/usr/sbin:/bin:/sbin:$(PATH)

# Warnings are errors for developers and in CI only: that of a newer compiler must not stop a packager.
DEVELOPER := -Dtests=enabled -Dwerror=true

# Ninja runs things side by side; two package managers, or two ninjas in one folder, cannot.
.NOTPARALLEL:
.PHONY: all demo bench test check sanitize clang fuzz-smoke fuzz interop lint mutants packages \
	packages-bench packages-test packages-deb clean install uninstall doc conformance deb deb-test

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

# Two daemons on an emulated link, two programs: see app/demo. Standard output is the demo's
# alone, for `make demo JSON=1 | jq .runs`.
demo:
	@$(MAKE) --no-print-directory all >&2
	@app/demo/demo $(BUILD) $(if $(JSON),--json)

# Speed, beside the floor of this machine and what a user would take instead; a report with plots in
# $(BUILD)/bench. QUICK=1: under two minutes; BASE=report.json: against an older one;
# PARTS=path,link: only those. The binaries are those that `meson install` would install.
bench: packages-bench $(BUILD)/with-tests
	ninja -C $(BUILD) bench-programs
	@test/bench/run $(BUILD) $(if $(QUICK),--quick) $(if $(BASE),--base $(BASE)) \
		$(if $(PARTS),--only $(PARTS))

# Everything: lint, both compilers, sanitizers, unit, functional and interoperability tests.
test: packages-test lint check clang sanitize fuzz-smoke mutants interop

check: $(BUILD)/with-tests
	ninja -C $(BUILD)
	meson test -C $(BUILD) --no-rebuild --print-errorlogs --no-suite interop \
		--timeout-multiplier 4

clang: packages-test
	@test -f $(BUILD)-clang/build.ninja || CC=clang meson setup $(BUILD)-clang $(DEVELOPER)
	ninja -C $(BUILD)-clang

# Everything but interop, and what measures CPU time, under ASan and UBSan; clang, whose runtime
# finds more.
sanitize: packages-test
	@test -f $(BUILD)-asan/build.ninja || CC=clang meson setup $(BUILD)-asan \
		$(DEVELOPER) \
		-Db_sanitize=address,undefined -Db_lundef=false
	ninja -C $(BUILD)-asan
	meson test -C $(BUILD)-asan --no-rebuild --print-errorlogs --no-suite interop --no-suite cpu \
		--timeout-multiplier 10

# Fuzzers under ASan and UBSan. Their own build: the instrumentation slows everything down, and
# they need no more than the pure layers, which is a matter of seconds. The smoke run is the same
# inputs each time; `make fuzz` searches, and keeps what it finds in $(BUILD)-fuzz/found.
FUZZ_SECONDS ?= 600

$(BUILD)-fuzz/build.ninja: | packages-test
	CC=clang meson setup $(BUILD)-fuzz $(DEVELOPER) -Dfuzz=true \
		-Db_sanitize=address,undefined

fuzz-smoke: $(BUILD)-fuzz/build.ninja
	ninja -C $(BUILD)-fuzz fuzzers
	meson test -C $(BUILD)-fuzz --no-rebuild --print-errorlogs --suite fuzz \
		--timeout-multiplier 4

fuzz: $(BUILD)-fuzz/build.ninja
	ninja -C $(BUILD)-fuzz fuzzers
	for f in frame qp_lone qp_pair mad ctl admin; do \
		nice -n 10 test/fuzz/run search $(BUILD)-fuzz/test/fuzz/fuzz_$$f \
			test/fuzz/corpus/$$f $(FUZZ_SECONDS) $(BUILD)-fuzz/found/$$f || exit 1; \
	done

# Linux soft-RoCE in an emulated guest, over a real (tap) port.
interop: $(BUILD)/with-tests
	ninja -C $(BUILD)
	meson test -C $(BUILD) --no-rebuild --print-errorlogs --suite interop \
		--timeout-multiplier 4

# Seeded bugs: golden vectors, scenarios and chaos must catch each. MUTANTS=rules: those that
# unit tests must catch; MUTANTS=NAME: one.
MUTANTS ?= faults
mutants: packages-test
	test/mutants/run $(if $(filter faults rules,$(MUTANTS)),--suite )$(MUTANTS)

lint: packages-test
	test/lint/run

# Each rule of doc/rules.tsv, the code that obeys it and the tests that prove it.
conformance:
	@mkdir -p $(BUILD)
	test/lint/conformance.py --write $(BUILD)/conformance.md
	@echo "see $(BUILD)/conformance.md"

# Into PREFIX= (/usr/local unless given, now or earlier) under DESTDIR=. On the machine itself the user, the library and the unit are
# made known too. A rocid.conf that is there stays as it is.
install: all
	$(if $(PREFIX),meson configure $(BUILD) --prefix $(PREFIX))
	ninja -C $(BUILD)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild
ifeq (,$(DESTDIR))
	@! command -v systemd-sysusers >/dev/null || systemd-sysusers $(CURDIR)/config/system/rocid.sysusers
	ldconfig
	@[ ! -d /run/systemd/system ] || systemctl daemon-reload
endif

uninstall:
	ninja -C $(BUILD) uninstall

# roci.h as HTML.
doc: packages-deb
	@mkdir -p $(BUILD)/doc
	OUT=$(BUILD)/doc doxygen doc/Doxyfile
	@echo "see $(BUILD)/doc/html/index.html"

# Debian packages, in $(BUILD)/deb, from a copy of the tree: dpkg-buildpackage writes into it and beside it.
deb: packages packages-deb
	rm -rf $(BUILD)/deb/rocinante $(BUILD)/deb/*_*
	mkdir -p $(BUILD)/deb/rocinante
	git ls-files -z -co --exclude-standard | tar --null -T - -c | tar -x -C $(BUILD)/deb/rocinante
	cd $(BUILD)/deb/rocinante && DEB_BUILD_OPTIONS="$${DEB_BUILD_OPTIONS-noautodbgsym}" dpkg-buildpackage -b -us -uc
	rm -rf $(BUILD)/deb/rocinante
	@ls $(BUILD)/deb/*.deb

# They are installed on a fresh Debian 12 in a container, started, used and removed.
deb-test: deb
	test/deb/run $(BUILD)/deb

$(BUILD)/build.ninja: | packages
	meson setup $(BUILD)

# `make demo` configures without the tests where their libraries are missing: look again.
$(BUILD)/with-tests: | packages-test $(BUILD)/build.ninja
	meson setup --reconfigure $(BUILD) $(DEVELOPER)
	@touch $@

packages:
	@config/install-packages $(PACKAGES) config/packages.txt

packages-bench:
	@config/install-packages $(PACKAGES) config/packages.txt test/bench/packages.txt

packages-test:
	@config/install-packages $(PACKAGES) config/packages.txt test/packages.txt test/interop/packages.txt

packages-deb:
	@config/install-packages $(PACKAGES) config/packages-deb.txt

clean:
	rm -rf $(BUILD) $(BUILD)-clang $(BUILD)-asan $(BUILD)-fuzz
