#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# readme_test.sh BUILD_FOLDER [install]: the first program compiles as README.md says, and runs;
# with install: against what `meson install` puts into an empty folder, by pkg-config.
set -u
build=$1
how=${2:-build}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
pid=
cleanup() {
	[ -n "$pid" ] && kill "$pid" 2>/dev/null && wait "$pid"
	rm -rf "$dir"
}
trap cleanup EXIT

fail() {
	echo "readme_test: $*" >&2
	cat "$dir"/*.log >&2
	exit 1
}

# A program without the sanitizers' runtime cannot load a library with it.
nm -D --undefined-only "$build/lib/client/libroci.so" | grep -q __asan && exit 77


case $how in
build)
	rocid=$build/app/rocid/rocid
	cflags="-I$root/lib/client/include"
	libs="-L$build/lib/client -lroci -Wl,-rpath,$build/lib/client"
	static=$build/lib/client/libroci.a
	;;
install)
	. "$root/test/func/installed.sh"
	;;
esac

compile() { # NAME FLAG...
	local name=$1
	shift
	"${CC:-cc}" -Wall -Wextra -Werror -O1 "$root/app/examples/hello.c" -o "$dir/$name" "$@" >"$dir/cc.log" 2>&1 ||
		fail "app/examples/hello.c does not compile"
}
compile hello $cflags $libs
compile hello-static $cflags "$static"
"${CXX:-c++}" -x c++ -std=c++11 -Wall -Wextra -Werror -pedantic -fsyntax-only $cflags - \
	<<<'#include <roci.h>' >"$dir/cxx.log" 2>&1 || fail "roci.h does not compile as C++11"

mkfifo "$dir/ready"
"$rocid" --no-huge -m 128 --no-pci -- --ring-pair --gid 0,192.0.2.1 \
	--socket "$dir/rocid.sock" --idle yield --ready-fd 3 3>"$dir/ready" >"$dir/rocid.log" 2>&1 &
pid=$!
read -r -t 120 line <"$dir/ready" || fail "rocid does not start"
for program in hello hello-static; do
	ROCI_SOCKET=$dir/rocid.sock timeout 120 "$dir/$program" >"$dir/hello.log" 2>&1 ||
		fail "app/examples/hello.c fails"
	[ "$(cat "$dir/hello.log")" = "success: Hello over RoCE" ] || fail "it prints something else"
done
kill "$pid"
wait "$pid" || fail "rocid does not end cleanly"
pid=
echo "readme_test: passed"
