#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# lockfree.sh WORKER_ARCHIVE PURE_ARCHIVE...: the data path names no lock, allocates nothing and makes
# no system call. The pure layers call nothing at all (purity.sh); of the worker, the files of the
# poll loop may call the functions listed here, in sleep.c too those that put an idle worker to rest.
# Locks that are inline functions leave no symbol, so the sources are searched as well.
set -u
root=$(dirname "$0")/../..
worker=$1
shift
poll='loop rx tx handoff doorbell events mailbox capture_tap'
# Each with its reason.
allowed='
__rte_pktmbuf_linearize		# moves bytes
rte_pktmbuf_free_bulk		# to lock-free pools
rte_pktmbuf_copy		# from them: what several workers get
rte_mempool_ops_table
rte_eth_fp_ops			# the drivers
rte_eth_call_rx_callbacks
rte_eth_call_tx_callbacks
rte_rcu_qsbr_thread_register	# when a worker starts and ends
rte_rcu_qsbr_thread_unregister
__rte_panic			# our own bugs
per_lcore__lcore_id
__tls_get_addr
_GLOBAL_OFFSET_TABLE_
memcpy memmove memset memcmp
'
words=$(echo "$allowed" | sed 's/#.*//')
bad=0
complain() {
	echo "lockfree: $*" >&2
	bad=1
}

defined=$(mktemp)
trap 'rm -f "$defined"' EXIT
nm --defined-only "$worker" "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$defined"
[ -s "$defined" ] || { echo "lockfree: no symbols in $worker: build first" >&2; exit 1; }
for file in $poll; do
	# nm names each member of a (thin) archive, then its symbols.
	symbols=$(nm --undefined-only "$worker" 2>/dev/null |
		awk -v m="$file.c.o:" '/:$/ { on = index($0, m) > 0 } on && $1 == "U" { print $2 }')
	[ -n "$symbols" ] || complain "$file.c is not in $worker: is it still a file of the poll loop?"
	for symbol in $symbols; do
		grep -qx "$symbol" "$defined" && continue
		echo "$words" | grep -qw -- "$symbol" ||
			complain "lib/worker/$file.c calls $symbol: the poll loop takes no lock, allocates" \
				"nothing and makes no system call; if it is none of that, list it here"
	done
done

locks='(rte_)?(spin|rw|ticket|mcs|seq|pflock)_?lock[a-z_]*|pthread_[a-z_]+|mtx_[a-z]+|cnd_[a-z]+|sem_(wait|post|init)|futex|(rte_)?[mcz]*alloc[a-z_]*|free'
sources=$(git -C "$root" ls-files 'lib/base/*.[ch]' 'lib/wire/*.[ch]' 'lib/obj/*.[ch]' 'lib/cc/*.[ch]' \
	'lib/core/*.[ch]' lib/abi/abi_ring.h lib/worker/worker_impl.h lib/worker/clock.h)
for file in $poll sleep; do
	sources="$sources lib/worker/$file.c"
done
# Calls only: comments may speak of locks.
found=$(cd "$root" && grep -nEw "($locks)[[:space:]]*\(" $sources)
[ -z "$found" ] || complain "a lock or an allocation in the data path: $found"

[ $bad = 0 ] && echo "lockfree: $(echo "$sources" | wc -w) sources, $(echo "$poll" | wc -w) files of the poll loop: no lock"
exit $bad
