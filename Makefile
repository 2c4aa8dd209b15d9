# SPDX-License-Identifier: BSD-3-Clause
# A thin front to Meson. Each target does everything that a fresh Debian 12 machine needs,
# packages included; `make PACKAGES=no ...` leaves the package manager alone.

BUILD ?= build
export PATH := /usr/bin:/usr/sbin:/bin:/sbin:$(PATH)

# Warnings are errors for developers and in CI only: a newer compiler's warning must not stop a packager.
DEVELOPER := -Dtests=enabled -Dwerror=true

# Ninja runs jobs in parallel; two package managers, or two ninjas in one folder, must not.
.NOTPARALLEL:
.PHONY: all demo bench test check functional sanitize arm64 fuzz-smoke fuzz interop lint mutants soak \
	soak-mutants soak-chaos soak-golden soak-functional soak-interop soak-arm64 soak-lab soak-buildtypes buildtypes compiled packages packages-bench \
	packages-test packages-arm64 packages-deb clean install uninstall doc conformance deb deb-test

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

# Two daemons on an emulated link, two programs: see app/demo. Standard output has only the demo's
# output, for `make demo JSON=1 | jq .runs`.
demo:
	@$(MAKE) --no-print-directory all >&2
	@app/demo/demo $(BUILD) $(if $(JSON),--json)

# Speed, compared with this machine's floor and with alternatives; a report with plots in
# $(BUILD)/bench. QUICK=1: a few minutes; BASE=report.json: compare with an older one;
# PARTS=path,link: only those. The binaries are those that `meson install` would install.
bench: packages-bench $(BUILD)/with-tests
	ninja -C $(BUILD) bench-programs
	@test/bench/run $(BUILD) $(if $(QUICK),--quick) $(if $(BASE),--base $(BASE)) \
		$(if $(PARTS),--only $(PARTS))

# Three tiers; doc/testing.md says what each costs. `check`, before each commit: lint, the gcc build, and the tests
# that need no daemon. `test`, what CI runs: everything that protects users. `soak`, before a release and after
# changes to what it searches: hours.
# Tests wait for others most of their time.
TWICE = --num-processes $$((2 * $$(nproc)))
# Compiled by clang for sanitizers: lines suffice for their reports, and lld links in a third of the time.
SANITIZED := -Doptimization=1 -Ddebug=false -Dc_args=-gline-tables-only -Db_sanitize=address,undefined

check: $(BUILD)/with-tests lint
	ninja -C $(BUILD)
	test/tests $(BUILD) $(TWICE) --suite lint --suite unit --suite sim --suite golden --timeout-multiplier 4

test:
	@MAKE='$(MAKE)' test/tier packages-test packages-arm64 check buildtypes +compiled functional =compiled \
		sanitize arm64 mutants interop

# What later parts compile, and the image of the guest: beside tests that wait. After `check`, which builds $(BUILD).
compiled: $(BUILD)-asan/build.ninja $(BUILD)-arm64/build.ninja
	ninja -C $(BUILD)-asan
	ninja -C $(BUILD)-arm64
	test/interop/run --build $(BUILD) --prepare

# Tests with real processes, attacks on rocid, tests of the interoperability tools.
functional: $(BUILD)/with-tests
	ninja -C $(BUILD)
	test/tests $(BUILD) $(TWICE) --suite func --suite hostile --suite interop-tools --timeout-multiplier 4

# clang's warnings, and the tests under ASan and UBSan, whose clang runtime finds more. Not those that measure
# CPU time (cpu), nor those of scripts, documents and installation (plain), which run no code of ours that
# other tests do not. The fuzzers' smoke run, too.
$(BUILD)-asan/build.ninja: | packages-test
	CC=clang CC_LD=lld meson setup $(BUILD)-asan $(DEVELOPER) $(SANITIZED) -Db_lundef=false

# Another build of rocilab writes the same bytes as that of $(BUILD), if there is one.
define same_bytes
	@test -f $(BUILD)/build.ninja || echo "no build in $(BUILD): rocilab's bytes are not compared with its"
	test ! -f $(BUILD)/build.ninja || { ninja -C $(BUILD) app/rocilab/rocilab && \
		test/sim/same_bytes.py $(BUILD)/app/rocilab/rocilab $(1); }
endef

sanitize: $(BUILD)-asan/build.ninja
	ninja -C $(BUILD)-asan
	test/tests $(BUILD)-asan $(TWICE) --no-suite lint --no-suite cpu --no-suite plain --no-suite twin --no-suite soak --no-suite interop \
		--timeout-multiplier 10
	$(call same_bytes,$(BUILD)-asan/app/rocilab/rocilab)

# Everything that needs no DPDK, cross-built for arm64, and its tests in an emulator of that CPU. Hardly optimized, without
# optimization at link time: what depends on the CPU is in the source. The libraries of that architecture are installed
# into a folder, not into the system.
$(BUILD)-arm64/build.ninja: | packages-arm64
	config/arm64/sysroot $(BUILD)-arm64-root
	meson setup $(BUILD)-arm64 $(DEVELOPER) -Ddpdk=disabled -Doptimization=1 -Ddebug=false \
		--cross-file $(BUILD)-arm64-root/sysroot.ini --cross-file config/arm64/cross.ini

EMULATOR = qemu-aarch64 -L /usr/aarch64-linux-gnu \
	-E LD_LIBRARY_PATH=$(abspath $(BUILD)-arm64-root)/root/usr/lib/aarch64-linux-gnu
arm64: $(BUILD)-arm64/build.ninja
	ninja -C $(BUILD)-arm64
	test/tests $(BUILD)-arm64 --suite unit --suite golden --timeout-multiplier 10
	$(call same_bytes,"$(EMULATOR) $(BUILD)-arm64/app/rocilab/rocilab")

# Fuzzers under ASan and UBSan. The smoke run uses the same inputs each time; `make fuzz` searches, guided by the
# branches of our code, and keeps its findings in $(BUILD)-fuzz/found. It has a build of its own, because finding
# them slows everything down.
FUZZ_SECONDS ?= 600

$(BUILD)-fuzz/build.ninja: | packages-test
	CC=clang CC_LD=lld meson setup $(BUILD)-fuzz $(DEVELOPER) $(SANITIZED) -Dfuzz=true

fuzz-smoke: $(BUILD)-asan/build.ninja
	ninja -C $(BUILD)-asan fuzzers
	test/tests $(BUILD)-asan --suite fuzz --timeout-multiplier 10

fuzz: $(BUILD)-fuzz/build.ninja
	ninja -C $(BUILD)-fuzz fuzzers
	for f in frame qp_lone qp_pair mad ipoib ioam gso ctl admin; do \
		nice -n 10 test/fuzz/run search $(BUILD)-fuzz/test/fuzz/fuzz_$$f \
			test/fuzz/corpus/$$f $(FUZZ_SECONDS) $(BUILD)-fuzz/found/$$f || exit 1; \
	done

# Linux soft-RoCE in a virtual machine, over a real (tap) port.
interop: $(BUILD)/with-tests
	ninja -C $(BUILD)
	test/tests $(BUILD) --suite interop --timeout-multiplier 4

# Seeded bugs, each of which the tests must catch: those in what has changed since SINCE, at most CHANGED of them,
# and SAMPLE of the others, always the same. MUTANTS=faults: all that golden vectors, scenarios or chaos must catch;
# MUTANTS=rules: all that a unit test must; MUTANTS=NAME: one.
SINCE ?= HEAD~10
CHANGED ?= 15
SAMPLE ?= 10
mutants: $(BUILD)/with-tests
	ninja -C $(BUILD)
	test/mutants/run --built $(BUILD) $(if $(MUTANTS),$(if $(filter faults rules,$(MUTANTS)),--suite )$(MUTANTS),\
		--since $(SINCE) --changed $(CHANGED) --sample $(SAMPLE))

# Sources that changed since SINCE also compile without warnings at -O0, -O3 and -Os.
buildtypes: $(BUILD)/with-tests
	ninja -C $(BUILD)
	test/lint/buildtypes.py $(BUILD) --since $(SINCE) --most $(CHANGED)

# Tests that search for new bugs. Each part can be run alone, for example `make soak-mutants`.
SOAK_PARTS := mutants chaos golden functional interop arm64 lab buildtypes
soak: $(SOAK_PARTS:%=soak-%) fuzz

soak-mutants: packages-test
	test/mutants/run

soak-chaos: $(BUILD)/with-tests
	ninja -C $(BUILD) test/sim/chaos
	$(BUILD)/test/sim/chaos --seed 1001 --runs 100000

soak-golden: $(BUILD)/with-tests
	ninja -C $(BUILD) test/golden/vectors
	for seed in $$(seq 100 200); do \
		test/golden/generate/selftest.py $(BUILD)/test/golden/vectors $$seed || exit 1; \
	done

soak-functional: $(BUILD)/with-tests
	ninja -C $(BUILD)
	test/tests $(BUILD) --timeout-multiplier 4 --suite soak
	$(BUILD)/test/unit/client/client_arm_test 5000000
	KILLS=10000 HOSTILE_EFFORT=50 LIFETIMES_CYCLES=100000 CLIENTS=3000 MPI_EFFORT=3 COPIED=100000000 CONNECTIONS=10000 QPERF=12 MARKS=2 \
	STORM_ROUNDS=3000 RACE_ROUNDS=300 SETUPS=6000 RESTARTS=50 SIZES=all BENCH=all test/tests $(BUILD) --timeout-multiplier 100 \
		kill_loop hostile lifetimes bottleneck bench verbs_programs verbs_cm_storm verbs_rdmacm verbs_mpi verbs_lives verbs_deaths \
		'memory_race rocid' 'memory_race user' 'memory_race container' 'memory_storm rocid' 'memory_storm user' 'memory_storm nobody container' \
		'memory_storm nobody container alone'

soak-interop: $(BUILD)/with-tests
	ninja -C $(BUILD)
	test/interop/run --build $(BUILD) --full
	test/interop/run --build $(BUILD) --verbs --full
	test/interop/run --build $(BUILD) --lossy --full
	test/interop/run --build $(BUILD) --self-test
	test/interop/run --build $(BUILD) --self-test --lossy

# The whole library of the laboratory, and the same bytes without optimization.
soak-lab: $(BUILD)/with-tests
	ninja -C $(BUILD) app/rocilab/rocilab
	$(BUILD)/app/rocilab/rocilab verify --jobs $$(nproc) --library config/lab
	test/model/star_test.py $(BUILD)/app/rocilab/rocilab all
	@test -f $(BUILD)-O0/build.ninja || CC=clang meson setup $(BUILD)-O0 -Ddpdk=disabled -Doptimization=0
	ninja -C $(BUILD)-O0 app/rocilab/rocilab
	test/sim/same_bytes.py $(BUILD)/app/rocilab/rocilab $(BUILD)-O0/app/rocilab/rocilab

# Every build type of Meson, with the tests.
soak-buildtypes: packages-test
	for type in plain debug release minsize; do \
		test -f $(BUILD)-$$type/build.ninja || \
			meson setup $(BUILD)-$$type $(DEVELOPER) -Dbuildtype=$$type || exit 1; \
		ninja -C $(BUILD)-$$type || exit 1; \
	done

soak-arm64: arm64
	test/tests $(BUILD)-arm64 --suite sim --timeout-multiplier 10
	$(EMULATOR) $(BUILD)-arm64/test/sim/chaos --seed 1001 --runs 5000
	for seed in 1 2; do \
		MESON_EXE_WRAPPER="$(EMULATOR)" test/golden/generate/selftest.py \
			$(BUILD)-arm64/test/golden/vectors $$seed || exit 1; \
	done

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

# Debian packages, in $(BUILD)/deb, from a copy of the tree, because dpkg-buildpackage writes into the tree and
# next to it.
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

packages-arm64:
	@config/install-packages $(PACKAGES) config/packages.txt config/arm64/packages.txt

packages-deb:
	@config/install-packages $(PACKAGES) config/packages-deb.txt

clean:
	rm -rf $(BUILD) $(BUILD)-plain $(BUILD)-debug $(BUILD)-release $(BUILD)-minsize $(BUILD)-asan $(BUILD)-fuzz $(BUILD)-arm64 $(BUILD)-arm64-root
