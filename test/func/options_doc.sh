#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What `rocid --help` lists is in doc/man/rocid.8 and config/rocid.conf, nothing else is, and rocid
# takes each line of the sample.
# usage: options_doc.sh ROCID
set -u
rocid=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail() {
	echo "FAIL: $*" >&2
	failed=1
}

"$rocid" --help | sed -n 's/^  --\([a-z0-9-]*\).*/\1/p' | sort >"$dir/help"
[ -s "$dir/help" ] || fail "rocid --help lists no options"

# An option is what a paragraph of the page begins with. Those two are elsewhere in it.
grep -vxE 'help|version' "$dir/help" >"$dir/want"
sed -n '/^\.TP/{n;s/\\-/-/g;s/^\.BI\{0,1\} --\([a-z0-9-]*\).*/\1/p}' "$root/doc/man/rocid.8" | sort -u |
	diff "$dir/want" - >"$dir/diff" ||
	fail "--help (<) and doc/man/rocid.8 (>) differ:" "$(cat "$dir/diff")"

# SECTION<tab>LINE of each entry of the sample, commented out or not.
sed 's/^#\([a-z0-9-]* = \)/\1/' "$root/config/rocid.conf" |
	awk '/^\[/ {section = $0} /^[a-z0-9-]+ = / {print section "\t" $0}' >"$dir/lines"
{ echo config; echo check-config; grep -v '^\[eal\]' "$dir/lines" | sed 's/.*\t//;s/ .*//'; } | sort -u |
	diff "$dir/want" - >"$dir/diff" ||
	fail "--help (<) and config/rocid.conf (>) differ:" "$(cat "$dir/diff")"

# Each line alone, with --help so that nothing is started; the descriptor must be open.
while IFS=$(printf '\t') read -r section line; do
	case $line in
	icrc*) continue ;; # what the CPU lacks is refused
	esac
	printf '%s\n%s\n' "$section" "$line" >"$dir/one.conf"
	"$rocid" --config "$dir/one.conf" --help 3>/dev/null >"$dir/out" 2>"$dir/err" </dev/null ||
		fail "rocid refuses '$line': $(cat "$dir/err")"
done <"$dir/lines"
"$rocid" --config "$root/config/rocid.conf" --help >/dev/null 2>"$dir/err" ||
	fail "rocid refuses config/rocid.conf: $(cat "$dir/err")"

[ $failed = 0 ] && echo "options_doc: passed"
exit $failed
