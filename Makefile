# SPDX-License-Identifier: BSD-3-Clause
# A thin front to Meson. Each target does everything that a fresh Debian 12 machine needs,
# packages included; `make PACKAGES=no ...` leaves the package manager alone.

BUILD ?= build
export PATH := /usr/bin:/usr/sbin:/bin:/sbin:$(PATH)

# Warnings are errors for developers and in CI only: a newer compiler's warning must not stop a packager.
DEVELOPER := -Dtests=enabled -Dwerror=true

# Ninja runs jobs in parallel; two package managers, or two ninjas in one folder, must not.
.NOTPARALLEL:
.PHONY: all demo bench test check sanitize clang fuzz-smoke fuzz interop lint mutants packages \
	packages-bench packages-test packages-deb clean install uninstall doc conformance deb deb-test

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

# Two daemons on an emulated link, two programs: see app/demo. Standard output has only the demo's output, for `make demo JSON=1 | jq .runs`.
demo:
	@$(MAKE) --no-print-directory all >&2
	@app/demo/demo $(BUILD) $(if $(JSON),--json)

# Speed, compared with this machine's floor and with alternatives; a report with plots in
# $(BUILD)/bench. QUICK=1: under two minutes; BASE=report.json: compare with an older one;
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

# Everything except interop and tests that measure CPU time, under ASan and UBSan; with clang, whose
# runtime finds more.
sanitize: packages-test
	@test -f $(BUILD)-asan/build.ninja || CC=clang meson setup $(BUILD)-asan \
		$(DEVELOPER) \
		-Db_sanitize=address,undefined -Db_lundef=false
	ninja -C $(BUILD)-asan
	meson test -C $(BUILD)-asan --no-rebuild --print-errorlogs --no-suite interop --no-suite cpu \
		--timeout-multiplier 10

# Fuzzers under ASan and UBSan. A separate build: the instrumentation slows everything down, and they need only the pure
# layers, which takes seconds. The smoke run uses the same inputs each time; `make fuzz` searches, and keeps
# its findings in $(BUILD)-fuzz/found.
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

# Into PREFIX= (default /usr/local, or the one given earlier) under DESTDIR=. Without DESTDIR the user, the
# library and the unit are registered too. An existing rocid.conf is kept.
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

# Debian packages, in $(BUILD)/deb, from a copy of the tree, because dpkg-buildpackage writes into the tree and next to it.
deb: packages packages-deb
	rm -rf $(BUILD)/deb/rocinante $(BUILD)/deb/*_*
	mkdir -p $(BUILD)/deb/rocinante
	git ls-files -z -co --exclude-standard | tar --null -T - -c | tar -x -C $(BUILD)/deb/rocinante
	cd $(BUILD)/deb/rocinante && DEB_BUILD_OPTIONS="$${DEB_BUILD_OPTIONS-noautodbgsym}" dpkg-buildpackage -b -us -uc
	rm -rf $(BUILD)/deb/rocinante
	@ls $(BUILD)/deb/*.deb

# Installs the packages on a fresh Debian 12 in a container, starts, uses and removes them.
deb-test: deb
	test/deb/run $(BUILD)/deb

$(BUILD)/build.ninja: | packages
	meson setup $(BUILD)

# `make demo` configures without the tests if their libraries are missing: configure again.
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
