#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Start a soft-RoCE guest and wait until it is ready, or stop it.   run-guest.sh start|stop|status
#   WORKDIR              as for build-guest.sh
#   STATE=$WORKDIR/run   folder of pid, port and console.log, in $STATE/$NAME
#   NAME=peer  ID=2      guest is 192.168.77.$ID/24, fd77::$ID/64, MAC 52:54:00:77:00:$ID
#   NET=tap:roce0        an existing tap device; or vhost:/path/x.sock (QEMU connects as client: the
#                        DPDK side, net_vhost0,iface=/path/x.sock, first), or any raw -netdev string
#   MTU=1500  MEM=256 (MiB)  SMP=2  TIMEOUT=600 (s)
#   ACCEL, CPU           of QEMU; the default is software emulation: KVM is not needed
set -euo pipefail
: "${WORKDIR:?set WORKDIR as for build-guest.sh}"
STATE=${STATE:-$WORKDIR/run}
NAME=${NAME:-peer} ID=${ID:-2} NET=${NET:-tap:roce0} MTU=${MTU:-1500} MEM=${MEM:-256}
SMP=${SMP:-2} TIMEOUT=${TIMEOUT:-600}
ACCEL=${ACCEL:-tcg,thread=multi,tb-size=256} CPU=${CPU:-max,-erms,-la57}
GUEST=$WORKDIR/guest
RUN=$STATE/$NAME

die() { echo "run-guest: $*" >&2; exit 1; }
alive() { [ -f "$RUN/pid" ] && kill -0 "$(cat "$RUN/pid")" 2>/dev/null; }

stop() {
	if alive; then
		kill "$(cat "$RUN/pid")"
		while alive; do sleep 0.1; done
	fi
	rm -f "$RUN/pid" "$RUN/port"
}

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start() {
	local append mac mem=() netdev netopt="" port n=0

	alive && die "$NAME runs already (pid $(cat "$RUN/pid"))"
	[ -f "$GUEST/initrd.cpio" ] || die "no guest image in $GUEST: run build-guest.sh"
	mkdir -p "$RUN"
	: >"$RUN/console.log"
	mac=$(printf '52:54:00:77:00:%02x' "$ID")
	case $NET in
	tap:*)
		netdev="tap,ifname=${NET#tap:},script=no,downscript=no" ;;
	vhost:*)
		mem=(-object "memory-backend-memfd,id=m,size=${MEM}M,share=on" -numa "node,memdev=m"
			-chardev "socket,id=vu,path=${NET#vhost:}")
		netopt=,vectors=0 # QEMU 7.2 with TCG, vhost-user and MSI-X crashes
		netdev="vhost-user,chardev=vu" ;;
	*) netdev=$NET ;;
	esac
	append="console=ttyS0 quiet panic=-1 mitigations=off audit=0 tsc=reliable no_timer_check"
	append="$append random.trust_cpu=on transparent_hugepage=never"
	append="$append peer.ip4=192.168.77.$ID/24 peer.ip6=fd77::$ID/64 peer.mtu=$MTU"
	port=$(free_port)
	qemu-system-x86_64 -accel "$ACCEL" -cpu "$CPU" -smp "$SMP" -m "$MEM" -machine pc "${mem[@]}" \
		-nodefaults -display none -no-reboot -serial "file:$RUN/console.log" \
		-kernel "$GUEST/vmlinux" -initrd "$GUEST/initrd.cpio" \
		-append "$append" \
		-netdev "$netdev,id=n0" -device "virtio-net-pci,netdev=n0,mac=$mac,romfile=$netopt" \
		-netdev "user,id=n1,ipv6=off,restrict=on,hostfwd=tcp:127.0.0.1:$port-:5555" \
		-device "virtio-net-pci,netdev=n1,mac=52:54:00:ff:00:01,romfile=" \
		>"$RUN/qemu.log" 2>&1 </dev/null &
	echo $! >"$RUN/pid"
	echo "$port" >"$RUN/port"
	until grep -q 'PEER READY' "$RUN/console.log"; do
		alive || die "qemu ended: $(tail -3 "$RUN/qemu.log")"
		n=$((n + 1))
		[ $n -le $((TIMEOUT * 10)) ] ||
			die "not ready in $TIMEOUT s: $(tail -3 "$RUN/console.log")"
		sleep 0.1
	done
}

case ${1:-} in
start) start ;;
stop) stop ;;
status) alive && echo "$NAME runs (pid $(cat "$RUN/pid"), port $(cat "$RUN/port"))" ;;
*) echo "usage: $0 start|stop|status" >&2; exit 2 ;;
esac
