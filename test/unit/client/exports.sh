#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What libroci.so needs and shows: libc, and the functions of roci*.h in their version; those of
# roci_private.h, for lib/verbs, in one that promises nothing.
set -eu
lib=$1
headers=$(dirname "$0")/../../../lib/client/include
bad=0

shown=$(nm -D --defined-only --with-symbol-versions "$lib" | awk '$2 != "A" {print $3}' |
	grep -v '^__asan\|^__ubsan\|^__odr_asan' | sort)
functions_of() { # VERSION HEADER...
	version=$1
	shift
	cat "$@" | tr '\n' ' ' | grep -oE 'ROCI_API [^;()]*[ *]roci_[a-z_]+\(' |
		grep -oE 'roci_[a-z_]+\($' | sed "s/($/@@$version/"
}
said=$( (functions_of ROCI_1.0 "$headers"/roci*.h
	functions_of ROCI_PRIVATE_1 "$headers"/../roci_private.h) | sort)
if [ "$shown" != "$said" ]; then
	echo "roci.h and libroci.map differ:"
	echo "shown: $shown"
	echo "said: $said"
	bad=1
fi
case $(readelf -d "$lib") in
*"soname: [libroci.so.0]"*) ;;
*) echo "the soname is not libroci.so.0"; bad=1 ;;
esac
needed=$(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -vE '^(libc|ld-linux.*|libasan|libubsan|libm|libgcc_s)\.so' || true)
if [ -n "$needed" ]; then
	echo "libroci needs more than libc: $needed"
	bad=1
fi
exit $bad
