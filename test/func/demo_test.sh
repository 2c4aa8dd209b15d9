#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo_test.sh BUILD_FOLDER: `make demo` as text and as JSON, and that it notices a wrong byte.
set -u
build=$1
demo=$(dirname "$0")/../../app/demo/demo
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "demo_test: $*" >&2
	cat "$dir"/* >&2
	exit 1
}

"$demo" "$build" --json="$dir/json" >"$dir/text" 2>"$dir/err" || fail "the demo failed with status $?"
grep -q 'All 30 digests are equal' "$dir/text" || fail "the text does not say that all is well"
[ -s "$dir/err" ] && fail "it complains although it succeeded"

python3 - "$dir/json" <<'END' || fail "the JSON is not what it should be"
import json, sys
with open(sys.argv[1]) as file:
    doc = json.load(file)
assert doc["ok"] is True and doc["failures"] == []
assert [run["loss"] for run in doc["runs"]] == [0.0, 0.01]
for run in doc["runs"]:
    assert len(run["checks"]) == 15 and all(check["ok"] for check in run["checks"])
    assert {check["check"] for check in run["checks"]} == {"WRITE", "READ", "SEND"}
    assert {m["measure"] for m in run["measurements"]} == {"write", "read", "send_latency"}
    assert all(run["wire"][side]["transport"]["tx_packets"] > 0 for side in "ab")
assert sum(doc["runs"][1]["wire"][side]["transport"]["retransmits"] for side in "ab") > 0
END

ROCI_DEMO_CORRUPT=1 "$demo" "$build" >"$dir/text" 2>"$dir/err"
status=$?
[ $status = 1 ] || fail "one wrong byte, and the demo ends with status $status instead of 1"
grep -q 'FAILED: perfect link: WRITE of 4 KiB: the digests differ' "$dir/text" ||
	fail "one wrong byte, and the demo does not say which check failed"
ROCI_DEMO_CORRUPT=1 "$demo" "$build" --json >"$dir/json" 2>"$dir/err" && fail "... with --json"
python3 - "$dir/json" <<'END' || fail "one wrong byte, and standard output has no JSON that says so"
import json, sys
with open(sys.argv[1]) as file:
    doc = json.load(file)
assert doc["ok"] is False and "perfect link: WRITE of 4 KiB: the digests differ" in doc["failures"][0], doc
END

for wrong in "" "$build --json=" "$build --json --json" "$build --xml"; do
	"$demo" $wrong >"$dir/text" 2>"$dir/err"
	[ $? = 2 ] || fail "'$wrong' is no usage error"
done
"$demo" "$dir" >"$dir/text" 2>"$dir/err"
[ $? = 1 ] && grep -q 'build it first' "$dir/err" || fail "a folder without programs is accepted"
echo "demo_test: passed"
