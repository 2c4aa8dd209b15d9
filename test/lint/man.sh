#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Manual pages: groff and mandoc warn of nothing, each program that is installed has one, and so has each option
# that a program's --help lists.
# usage: man.sh [PROGRAM...]
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
bad=0
complain() {
	echo "man: $*" >&2
	bad=1
}

for page in "$root"/doc/man/*.[1-8]; do
	said=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
	[ -z "$said" ] || complain "$page: $said"
	# No date: pages change with the tree.
	said=$(mandoc -Tlint -W warning "$page" | grep -v 'missing date')
	[ -z "$said" ] || complain "$said"
	# Pages of ours that it refers to are there.
	for other in $(sed -n 's/^\.BR \(roci[a-z\\-]*\) (\([1-8]\)).*/\1.\2/p' "$page" | tr -d '\\'); do
		[ -e "$root/doc/man/$other" ] || complain "$page: refers to $other, which is not there"
	done
done

for program in "$@"; do
	name=$(basename "$program")
	page=$(echo "$root"/doc/man/"$name".[18])
	[ -e "$page" ] || { complain "$name has no manual page"; continue; }
	for option in $("$program" --help 2>/dev/null | grep -oE '^ +--[a-z-]+|, --[a-z-]+' | tr -d ' ,'); do
		sed 's/\\-/-/g' "$page" | grep -qF -- "$option" || complain "$page: nothing about $option"
	done
done

[ $bad = 0 ] && echo "man: passed"
exit $bad
