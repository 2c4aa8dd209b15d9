#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Build a small guest with Linux soft-RoCE, from Debian packages alone:
#   $WORKDIR/guest/vmlinux, $WORKDIR/guest/initrd.cpio
# usage: build-guest.sh [PROGRAM...]      PROGRAMs of ours end up in the guest's /bin
#
# The base image is built again only when this script changes, the overlay with our programs only when
# they do. Needs root (chroot), the packages of packages.txt, and on the first run a mirror.
set -euo pipefail
: "${WORKDIR:?set WORKDIR to a folder of the build tree}"
OUT=$WORKDIR/guest
DEBS=$WORKDIR/debs
STAGE=$WORKDIR/stage
ROOT=$WORKDIR/root

BINS="dash rdma ip tc ethtool tcpdump ibv_devinfo ibv_devices ibv_rc_pingpong ibv_uc_pingpong
 ibv_ud_pingpong ibv_srq_pingpong rping ucmatose udaddy ib_send_bw ib_write_bw ib_read_bw
 ib_send_lat ib_write_lat ib_read_lat ib_atomic_bw ib_atomic_lat rdma_server rdma_client
 rdma_xserver rdma_xclient mckey rstream riostream rcopy cmtime socat"
MODS="rdma_rxe rdma_ucm ib_uverbs ib_umad virtio_pci virtio_net 8021q crc32_generic"
PKGS="busybox-static dash perftest rdma-core ibverbs-providers ibverbs-utils rdmacm-utils
 iproute2 ethtool tcpdump socat libc6 libibverbs1 librdmacm1 libibumad3 libnl-3-200
 libnl-route-3-200 libpci3 libmnl0 libbpf1 libelf1 libcap2 libxtables12 libpcap0.8
 libdbus-1-3 zlib1g libssl3 libwrap0 libtirpc3 libgssapi-krb5-2 libkrb5-3 libk5crypto3
 libkrb5support0 libcom-err2 libkeyutils1 libdb5.3 libselinux1 libpcre2-8-0 libsystemd0
 libcap-ng0 libgcrypt20 libgpg-error0 liblz4-1 liblzma5 libzstd1 libbsd0 libmd0 libudev1
 libgcc-s1 libnsl2 kmod libkmod2"
LD=lib64/ld-linux-x86-64.so.2

say() { echo "build-guest: $*" >&2; }
die() { say "$*"; exit 1; }

update_lists() { apt-get update -qq -o APT::Sandbox::User=root >&2 || true; }

kernel_package() {
	{ apt-cache depends linux-image-amd64 2>/dev/null || true; } | # no lists: no package, and status 100
		sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1
}

fetch() { (cd "$DEBS" && apt-get -q -o APT::Sandbox::User=root download "$@" >/dev/null); }

# Fetch what is not in the cache yet.
download() {
	local p need=""

	mkdir -p "$DEBS/partial"
	KPKG=$(kernel_package)
	if [ -z "$KPKG" ]; then # a machine image often comes without package lists
		update_lists
		KPKG=$(kernel_package)
	fi
	[ -n "$KPKG" ] || die "apt knows no linux-image-amd64: is this Debian 12, and does it reach a mirror?"
	PKGS="$KPKG $PKGS"
	for p in $PKGS; do
		compgen -G "$DEBS/${p}_*.deb" >/dev/null || need="$need $p"
	done
	[ -n "$need" ] || return 0
	say "downloading$need"
	# shellcheck disable=SC2086 # a list of words
	fetch $need && return 0
	update_lists # they may name what the mirror no longer has
	# shellcheck disable=SC2086
	fetch $need || die "cannot download the guest's packages: does this machine reach a mirror?"
}

unpack() {
	local d p

	rm -rf "$STAGE" "$ROOT"
	mkdir -p "$STAGE" "$ROOT"
	for d in bin sbin lib lib64; do mkdir -p "$STAGE/usr/$d"; ln -s "usr/$d" "$STAGE/$d"; done
	for p in $PKGS; do
		for d in "$DEBS/${p}"_*.deb; do
			dpkg-deb --fsys-tarfile "$d" | tar -C "$STAGE" --keep-directory-symlink \
				--exclude='./usr/share/doc*' --exclude='./usr/share/man*' \
				--exclude='./usr/share/locale*' -xf -
		done
	done
	KVER=$(ls "$STAGE/lib/modules")
	say "kernel $KVER"
}

# QEMU enters an uncompressed kernel through PVH: nothing to decompress under emulation.
extract_kernel() {
	python3 - "$STAGE/boot/vmlinuz-$KVER" "$OUT/vmlinux" <<'PY'
import re, subprocess, sys
d = open(sys.argv[1], 'rb').read()
for m in re.finditer(b'\xfd7zXZ\0', d):
    o = subprocess.run(['xz', '-dc', '--single-stream'], input=d[m.start():], capture_output=True).stdout
    if o[:4] == b'\x7fELF':
        open(sys.argv[2], 'wb').write(o)
        break
else:
    sys.exit('build-guest: no xz-compressed ELF kernel in ' + sys.argv[1])
PY
}

copy_libs() { # PATH inside the stage: the libraries that it loads
	local l

	chroot "$STAGE" "/$LD" --list "$1" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | while read -r l; do
		[ -e "$ROOT/$l" ] && continue
		mkdir -p "$(dirname "$ROOT/$l")"
		cp -L "$STAGE$l" "$ROOT/$l"
	done
}

copy_programs() {
	local a b d v=usr/lib/x86_64-linux-gnu/libibverbs g=lib/x86_64-linux-gnu/libgcc_s.so.1

	for d in bin lib lib64; do mkdir -p "$ROOT/usr/$d"; ln -s "usr/$d" "$ROOT/$d"; done
	ln -s bin "$ROOT/usr/sbin"
	ln -s usr/bin "$ROOT/sbin"
	mkdir -p "$ROOT/proc" "$ROOT/sys" "$ROOT/dev" "$ROOT/tmp" "$ROOT/run" "$ROOT/etc"
	cp "$STAGE/bin/busybox" "$ROOT/bin/"
	for a in $("$ROOT/bin/busybox" --list); do
		[ "$a" = busybox ] || ln -sf busybox "$ROOT/bin/$a"
	done
	cp -L "$STAGE/$LD" "$ROOT/$LD"
	for b in $BINS; do
		for d in usr/bin usr/sbin bin sbin; do
			[ -f "$STAGE/$d/$b" ] || continue
			rm -f "$ROOT/usr/bin/$b"
			cp -L "$STAGE/$d/$b" "$ROOT/usr/bin/"
			copy_libs "/$d/$b"
			break
		done
	done
	ln -sf dash "$ROOT/bin/sh" # busybox sh would prefer its own "ip" applet to iproute2
	mkdir -p "$ROOT/$v" "$ROOT/etc/libibverbs.d"
	cp -L "$STAGE/$v"/librxe-rdmav34.so "$ROOT/$v/"
	cp "$STAGE/etc/libibverbs.d/rxe.driver" "$ROOT/etc/libibverbs.d/"
	copy_libs "/$v/librxe-rdmav34.so"
	# glibc loads it at run time for pthread_exit: without it rping aborts
	mkdir -p "$ROOT/lib/x86_64-linux-gnu"
	cp -L "$STAGE/$g" "$ROOT/$g"
}

copy_modules() { # in load order
	local b ko m

	chroot "$STAGE" depmod "$KVER"
	mkdir -p "$ROOT/modules"
	: >"$ROOT/modules/order"
	for m in $MODS; do
		chroot "$STAGE" modprobe -S "$KVER" --show-depends "$m" 2>/dev/null |
			sed -n 's/^insmod \([^ ]*\).*/\1/p' | while read -r ko; do
			b=$(basename "$ko")
			grep -qx "$b" "$ROOT/modules/order" && continue
			cp "$STAGE$ko" "$ROOT/modules/"
			echo "$b" >>"$ROOT/modules/order"
		done
	done
}

# The guest's init and its command server, which guest-exec.sh talks to.
write_init() {
	cat >"$ROOT/bin/run1" <<'EOS'
#!/bin/sh
# one request per connection: a line of base64 -> output, then "\n__RC <status>\n"
read -r line
echo "$line" | base64 -d > /tmp/cmd.$$
sh /tmp/cmd.$$ </dev/null 2>&1
rc=$?
rm -f /tmp/cmd.$$
printf '\n__RC %d\n' "$rc"
EOS
	cat >"$ROOT/init" <<'EOS'
#!/bin/sh
export PATH=/bin HOME=/ TERM=dumb
mount -t proc proc /proc; mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null; mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm; mount -t tmpfs run /run
arg() { sed -n "s/.*[ ]*peer\.$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
while read -r m; do insmod "/modules/$m" 2>/dev/null; done < /modules/order
ulimit -l unlimited
ip link set lo up
for d in /sys/class/net/*; do
	n=${d##*/}
	case $(cat "$d/address") in
	52:54:00:ff:*) mgmt=$n ;;
	52:54:00:*) data=$n ;;
	esac
done
ip link set "$mgmt" name mgmt0; ip link set mgmt0 up; ip addr add 10.0.2.15/24 dev mgmt0
[ "$data" = eth0 ] || ip link set "$data" name eth0
echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
ip link set eth0 mtu "$(arg mtu)" up
ip addr add "$(arg ip4)" dev eth0; ip addr add "$(arg ip6)" dev eth0 nodad
rdma link add rxe0 type rxe netdev eth0
mkdir -p /dev/infiniband
mdev -s
for c in uverbs0 rdma_cm umad0; do # mdev puts nodes in /dev; libibverbs looks in /dev/infiniband
	[ -e /dev/$c ] && ln -sf ../$c /dev/infiniband/$c
done
hostname peer
socat TCP-LISTEN:5555,fork,reuseaddr,bind=10.0.2.15 EXEC:/bin/run1 &
until grep -q ":15B3 " /proc/net/tcp; do sleep 0.05; done
echo "PEER READY $(cut -d' ' -f1 /proc/uptime)"
while :; do sleep 3600; done
EOS
	chmod 755 "$ROOT/init" "$ROOT/bin/run1"
}

pack() { # FOLDER FILE
	(cd "$1" && find . | cpio --quiet -o -H newc -R 0:0) >"$2.new"
	mv "$2.new" "$2"
}

build_base() {
	download
	unpack
	extract_kernel
	copy_programs
	copy_modules
	write_init
	pack "$ROOT" "$OUT/base.cpio"
	rm -rf "$STAGE"
}

# Our programs, with the libraries that the base lacks (a sanitizer's, say). The kernel unpacks
# archives one after the other.
build_overlay() {
	local l o=$WORKDIR/overlay p

	rm -rf "$o"
	mkdir -p "$o/usr/bin"
	for p in "$@"; do
		cp "$p" "$o/usr/bin/"
		ldd "$p" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | while read -r l; do
			[ -e "$ROOT/$l" ] || [ -e "$ROOT/usr/$l" ] && continue
			mkdir -p "$o/usr/$(dirname "${l#/usr}")"
			cp -L "$l" "$o/usr/${l#/usr}"
		done
	done
	pack "$o" "$OUT/overlay.cpio"
	cat "$OUT/base.cpio" "$OUT/overlay.cpio" >"$OUT/initrd.new"
	mv "$OUT/initrd.new" "$OUT/initrd.cpio"
	rm -rf "$o"
}

main() {
	local base overlay

	mkdir -p "$OUT"
	exec 9>"$WORKDIR/build.lock"
	flock 9
	base=$(sha256sum <"${BASH_SOURCE[0]}")
	if [ ! -f "$OUT/base.cpio" ] || [ "$base" != "$(cat "$OUT/base.key" 2>/dev/null)" ]; then
		rm -f "$OUT"/*.key
		build_base
		echo "$base" >"$OUT/base.key"
	fi
	overlay=$(cat "$OUT/base.key" "$@" | sha256sum)
	if [ ! -f "$OUT/initrd.cpio" ] || [ "$overlay" != "$(cat "$OUT/overlay.key" 2>/dev/null)" ]; then
		build_overlay "$@"
		echo "$overlay" >"$OUT/overlay.key"
		say "$(du -sh "$OUT/initrd.cpio" "$OUT/vmlinux" | tr '\n\t' '  ')"
	fi
}

main "$@"
