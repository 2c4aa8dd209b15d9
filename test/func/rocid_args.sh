#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rocid's manners: a wrong argument gets one sentence that names it and exit 2; what the machine
# lacks gets a sentence that says what to do and exit 1; signals end it cleanly.
# usage: rocid_args.sh ROCID
set -u
rocid=$1
dir=$(mktemp -d)
eal="--no-huge --no-pci -m 64 --no-telemetry"
failed=0
pids=

cleanup() {
	for p in $pids; do
		kill -KILL "$p" 2>/dev/null
	done
	rm -rf "$dir"
}
trap cleanup EXIT

fail() {
	echo "FAIL: $*" >&2
	failed=1
}

# complains STATUS WORD ARGUMENT...: one line on stderr with WORD in it, and nothing on stdout.
complains() {
	want=$1 word=$2
	shift 2
	timeout -k 5 60 "$rocid" "$@" >"$dir/out" 2>"$dir/err"
	got=$?
	[ $got = "$want" ] || fail "rocid $*: exit $got instead of $want: $(cat "$dir/err")"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "rocid $*: not one line: $(cat "$dir/err")"
	[ -s "$dir/out" ] && fail "rocid $*: says on stdout: $(head -3 "$dir/out")"
	grep -qF -- "$word" "$dir/err" || fail "rocid $*: no '$word' in: $(cat "$dir/err")"
}

# start NAME ARGUMENT...: runs rocid until it says that it is ready; $pid.
start() {
	name=$1
	shift
	: >"$dir/$name.out" # before the child does: the last run's line is no answer
	"$rocid" "$@" >"$dir/$name.out" 2>"$dir/$name.err" &
	pid=$!
	pids="$pids $pid"
	for _ in $(seq 600); do
		grep -q '^rocid: ready$' "$dir/$name.out" && return 0
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	fail "$name: not ready: $(cat "$dir/$name.err")"
	return 1
}

# ends SIGNAL: $pid exits with 0, within two minutes.
ends() {
	kill "-$1" $pid
	for _ in $(seq 1200); do
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	if kill -0 $pid 2>/dev/null; then
		fail "SIG$1 does not end rocid"
		kill -KILL $pid
		return
	fi
	wait $pid
	got=$?
	[ $got = 0 ] || fail "SIG$1: exit $got instead of 0"
}

sock=$dir/rocid.sock

# Own arguments are looked at before anything is started.
complains 2 "--bogus" -- --bogus
complains 2 "stray" -- stray
complains 2 "--gid" -- --gid
complains 2 "10.0.0" $eal -- --gid 0,10.0.0
complains 2 "--neigh" -- --neigh 0,10.0.0.1,nomac
complains 2 "'::'" -- --gid 0,::
complains 2 "224.0.0.1" -- --gid 0,224.0.0.1
complains 2 "'mut=1' is not name=" -- --ipoib 0,mut=1
complains 2 "full member" -- --ipoib 0,pkey=1
complains 2 "252 to 4092" -- --ipoib 0,mtu=4093
complains 2 "another name=" -- --ipoib 0,name=rib9 --ipoib 1,name=rib9
complains 2 "another pkey=" -- --ipoib 0 --ipoib 1 --ipoib 0
complains 2 "00:00:00:00:00:00" -- --neigh 0,10.0.0.1,00:00:00:00:00:00
complains 2 "--mtu" -- --mtu 0,1
complains 2 "'loss'" -- --ring-pair=loss=7
complains 2 "--impair" -- --impair 0,speed=1
complains 2 "--window" -- --window many
complains 2 "--workers" -- --workers 0
complains 2 "--icrc" -- --icrc abacus
complains 2 "--idle" -- --idle always
complains 2 "--stats-on-exit" -- --stats-on-exit=yaml
complains 2 "$dir/none.conf" -- --config "$dir/none.conf"
complains 2 "--config $dir: " -- --config "$dir"
printf '[workers]\nwidow = 1\n' >"$dir/bad.conf"
complains 2 "line 2, [workers]: widow: there is no such option; did you mean window?" -- --config "$dir/bad.conf"
complains 2 "did you mean --share?" -- --shore eth0

# EAL's own.
complains 2 "--bogus" --bogus
complains 2 "--bogus" $eal --bogus -- --ring-pair
complains 2 "--share" -l 0 --share eth0 # ours, in EAL's place
complains 2 "arguments of --vdev" $eal --vdev net_nosuch0 -- --socket "$sock" --ring-pair
complains 2 "-m x" --no-huge --no-pci -m x -- --ring-pair
complains 2 "-m 64M" --no-huge --no-pci -m64M -- --ring-pair
complains 2 "-m 0" --no-huge --no-pci -m 0 -- --ring-pair
complains 2 "-m -1" --no-huge --no-pci -m -1 -- --ring-pair
complains 2 "nproc" $eal -l 9999 -- --ring-pair

# Arguments that name what is not there.
complains 2 "port 5" $eal -- --socket "$sock" --ring-pair --gid 5,192.0.2.1
complains 2 "--workers 3" $eal -l 0 -- --socket "$sock" --ring-pair --workers 3

# Features that the machine lacks.
complains 1 "--share IFNAME" $eal -- --socket "$sock"
complains 1 "no netdev nodev0" $eal -- --socket "$sock" --share nodev0
complains 1 "no netdev nodev0" $eal -- --socket "$sock" --ring-pair --share 0=nodev0
complains 1 "bsize=4608" $eal --vdev "net_memif0,socket-abstract=no,socket=$dir/m.sock" \
	-- --socket "$sock" --mtu 0,4200
complains 1 "role=server" $eal --vdev "net_memif0,socket-abstract=no,socket=$dir/m.sock" \
	-- --socket "$sock"
complains 1 "framesz" $eal --vdev net_af_packet0,iface=lo,framesz=16384,blocksz=16384 \
	-- --socket "$sock"
complains 1 "-m" --no-huge --no-pci -m 8 --no-telemetry -- --socket "$sock" --ring-pair
complains 1 "no/such/dir" $eal -- --socket "$dir/no/such/dir/s" --ring-pair

# No right to make the socket says so, not that a file is missing.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	install -m 755 "$rocid" "$dir/rocid"
	chmod 755 "$dir"
	mkdir -m 700 "$dir/private"
	complains_as_nobody() {
		want=$1 word=$2
		shift 2
		XDG_RUNTIME_DIR=$dir setpriv --reuid 65534 --regid 65534 --clear-groups \
			"$dir/rocid" $eal -- "$@" >"$dir/out" 2>"$dir/err"
		got=$?
		[ $got = "$want" ] || fail "as nobody, $*: exit $got: $(cat "$dir/err")"
		grep -qF -- "$word" "$dir/err" || fail "as nobody: no '$word' in $(cat "$dir/err")"
		grep -qF 'Permission denied' "$dir/err" || fail "as nobody: $(cat "$dir/err")"
	}
	complains_as_nobody 1 "$dir/private" --ring-pair --socket "$dir/private/s"
	[ -e /run/rocid ] || complains_as_nobody 1 /run/rocid --ring-pair
fi

# Help and version.
"$rocid" --version | grep -q '^rocid [0-9]' || fail "--version"
"$rocid" --help | grep -q -- '--share' || fail "--help"
"$rocid" -- --help | grep -q -- '--share' || fail "-- --help"

# Serving, and ending.
runtime=/var/run/dpdk/rocid-$(python3 -c '
import functools, sys
print("%08x" % functools.reduce(lambda h, c: (h ^ c) * 16777619 & 0xFFFFFFFF,
	sys.argv[1].encode(), 2166136261))' "$sock")
for sig in TERM INT HUP; do
	start one $eal -- --socket "$sock" --ring-pair --gid 0,192.0.2.1 --idle yield &&
		{ [ -d "$runtime" ] || fail "no $runtime"; ends $sig; }
	ls "$sock"* 2>/dev/null && fail "SIG$sig leaves the socket behind, or what is beside it"
	[ -e "$runtime" ] && fail "SIG$sig leaves $runtime behind"
	# Ending takes as long as the machine takes; of that it tells after some seconds.
	grep -v 'not stopped yet' "$dir/one.err" && fail "chatter: $(cat "$dir/one.err")"
done
grep -q 'GID 0: ::ffff:192.0.2.1' "$dir/one.out" || fail "banner: $(cat "$dir/one.out")"

# The same socket twice; two sockets side by side.
if start one $eal -- --socket "$sock" --ring-pair --idle yield; then
	first=$pid
	complains 1 "--socket" $eal -- --socket "$sock" --ring-pair
	complains 1 "$sock" $eal --file-prefix="other$$" -- --socket "$sock" --ring-pair
	start two $eal -- --socket "$dir/two.sock" --ring-pair --idle yield && ends TERM
	pid=$first
	ends TERM
fi

# Counters at the end, the ready descriptor, and a configuration file.
printf '[ports]\nring-pair = yes\n[start]\nstats-on-exit = json\n[workers]\nidle = yield\n' >"$dir/good.conf"
start three $eal -- --socket "$sock" --config "$dir/good.conf" --ready-fd 9 9>"$dir/ready" &&
	ends TERM
grep -q ready "$dir/ready" || fail "--ready-fd: nothing written"
sed -n '/^{/,$p' "$dir/three.out" | python3 -c '
import json, sys
s = json.load(sys.stdin)
assert s["transport"]["rx_packets"] == 0 and len(s["ports"]) == 2
' || fail "--stats-on-exit=json: $(cat "$dir/three.out")"

rm -rf /var/run/dpdk/other$$
[ $failed = 0 ] && echo "rocid_args: passed"
exit $failed
