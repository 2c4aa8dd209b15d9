#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# purity.sh ARCHIVE...: the pure layers call nothing but each other and memory moves: no DPDK, no
# clock, no system call, no allocation; and they have no writable data. getauxval(): reads what the
# kernel said of the CPU when the program began, which compilers for x86-64 have a built-in function for.
# __aarch64_*: atomic operations of the compiler, which choose their instructions by the CPU.
set -u
allowed='^(mem(cpy|set|move|cmp)|bcmp|crc32_gzip_refl|getauxval|__cpu_(model|indicator_init|features2)|__aarch64_(cas|swp|ld[a-z]+)[0-9]+_[a-z_]+|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail)$'
bad=0
defined=$(mktemp)
trap 'rm -f "$defined"' EXIT
nm --defined-only "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$defined"
[ -s "$defined" ] || { echo "purity: no symbols in $*: build first" >&2; exit 1; }

for sym in $(nm --undefined-only "$@" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u |
	comm -23 - "$defined" | grep -vE "$allowed" | grep -vE '^__(asan|ubsan|sanitizer|odr_asan)'); do
	echo "purity: a pure layer needs $sym: pass it in as an argument instead" >&2
	bad=1
done
# Tables of pointers lie in .data.rel.ro, which is read-only once relocated.
for sym in $(objdump -t "$@" 2>/dev/null |
	awk 'NF > 4 && $(NF - 2) ~ /^\.(data|bss)/ && $(NF - 2) !~ /rel\.ro/ && $0 ~ / O / { print $NF }' |
	grep -vE '^(__odr_asan|\.L)'); do
	echo "purity: $sym is writable global data in a pure layer: make it const or an argument" >&2
	bad=1
done
[ $bad = 0 ] && echo "purity: $(wc -l <"$defined") symbols, all pure"
exit $bad
