# SPDX-License-Identifier: BSD-3-Clause
# A thin front to Meson. Each target does everything that a fresh Debian 12 machine needs,
# packages included; `make PACKAGES=no ...` leaves the package manager alone.

BUILD ?= build
export PATH := /usr/bin:/usr/sbin:/bin:/sbin:$(PATH)

.PHONY: all demo test check sanitize clang interop lint packages packages-test \
	with-tests clean

all: packages $(BUILD)/build.ninja
	ninja -C $(BUILD)

# Two daemons on an emulated link, two programs: see app/demo.
demo: all
	@app/demo/demo $(BUILD) $(if $(JSON),--json)

# Everything: lint, both compilers, sanitizers, unit, functional and interoperability tests.
test: packages-test lint check clang sanitize interop

check: with-tests
	meson test -C $(BUILD) --no-rebuild --print-errorlogs --no-suite interop

clang: packages-test
	@test -f $(BUILD)-clang/build.ninja || CC=clang meson setup $(BUILD)-clang
	ninja -C $(BUILD)-clang

# The pure layers and the client under ASan and UBSan; clang, whose runtime finds more.
sanitize: packages-test
	@test -f $(BUILD)-asan/build.ninja || CC=clang meson setup $(BUILD)-asan \
		-Db_sanitize=address,undefined -Db_lundef=false
	ninja -C $(BUILD)-asan
	meson test -C $(BUILD)-asan --no-rebuild --print-errorlogs --no-suite interop \
		--timeout-multiplier 4

# Linux soft-RoCE in an emulated guest, over a real (tap) port.
interop: with-tests
	meson test -C $(BUILD) --no-rebuild --print-errorlogs --suite interop

lint: packages-test
	test/lint/run

# Without the tests, whose packages a machine that only runs the demo lacks.
$(BUILD)/build.ninja: | packages
	meson setup $(BUILD) -Dtests=false

with-tests: packages-test $(BUILD)/build.ninja
	meson configure $(BUILD) -Dtests=true
	ninja -C $(BUILD)

packages:
	@config/install-packages $(PACKAGES) config/packages.txt

packages-test:
	@config/install-packages $(PACKAGES) config/packages.txt test/packages.txt test/interop/packages.txt

clean:
	rm -rf $(BUILD) $(BUILD)-clang $(BUILD)-asan
