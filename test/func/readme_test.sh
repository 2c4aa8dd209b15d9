#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# readme_test.sh BUILD_FOLDER: the first program of README.md compiles, and runs as it says there.
set -u
build=$1
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

sed -n '/^```c$/,/^```$/{/^```/d;p}' "$root/README.md" >"$dir/hello.c"
grep -q 'int main' "$dir/hello.c" || fail "README.md has no program"
# A program without the sanitizers' runtime cannot load a library with it.
nm -D --undefined-only "$build/lib/client/libroci.so" | grep -q __asan && exit 77
"${CC:-cc}" -Wall -Wextra -Werror -O1 "$dir/hello.c" -o "$dir/hello" -I"$root/lib/client/include" \
	-L"$build/lib/client" -lroci -Wl,-rpath,"$build/lib/client" >"$dir/cc.log" 2>&1 ||
	fail "the program of README.md does not compile"

mkfifo "$dir/ready"
"$build/app/rocid/rocid" --no-huge -m 128 --no-pci -- --ring-pair --gid 0,192.0.2.1 \
	--socket "$dir/rocid.sock" --idle yield --ready-fd 3 3>"$dir/ready" >"$dir/rocid.log" 2>&1 &
pid=$!
read -r -t 120 line <"$dir/ready" || fail "rocid does not start"
ROCI_SOCKET=$dir/rocid.sock timeout 120 "$dir/hello" >"$dir/hello.log" 2>&1 ||
	fail "the program of README.md fails"
[ "$(cat "$dir/hello.log")" = "success: Hello over RoCE" ] || fail "it prints something else"
kill "$pid"
wait "$pid" || fail "rocid does not end cleanly"
pid=
echo "readme_test: passed"
