/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between the netdev and the queue pair. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/virtio_net.h>
#include <sys/uio.h>
#include "bits.h"
#include "cut.h"
#include "inet.h"
#include "merge.h"
#include "rib_impl.h"

/* Longest frame that the kernel leaves to the netdev to segment: an IP packet and its Ethernet
 * header. */
#define FRAME_MAX (65536u + 64u)

/* The packet thread's. */
struct rib_frames {
	struct cut cut;			   /* the frame in `frame` */
	struct merge merge;		   /* for the kernel */
	uint32_t held[MERGE_MAX];	   /* receive slots of its pieces */
	uint32_t spent[RIB_BURST], nspent; /* receive slots whose packets are with the kernel */
	uint8_t frame[FRAME_MAX];	   /* of the kernel */
};

struct rib_frames *rib_frames_create(void)
{
	return malloc(sizeof(struct rib_frames));
}

void rib_frames_begin(struct rib_frames *f)
{
	f->cut.done = true;
	f->merge.n = f->nspent = 0;
}

void rib_netdev_gone(struct rib *r)
{
	r->gone = true;
	rib_fail(r, "the netdev was deleted");
}

/* A netdev that is down, or has no room, loses the frame. */
static void put_frame(
	struct rib *r, struct virtio_net_hdr *h, const struct merge_piece *p, uint32_t n)
{
	struct iovec iov[1 + MERGE_MAX] = {{h, sizeof(*h)}};

	for (uint32_t i = 0; i < n; i++)
		iov[1 + i] = (struct iovec){p[i].at, p[i].len};
	if (writev(r->tap, iov, (int)(1 + n)) >= 0)
		return;
	if (errno == EBADFD)
		rib_netdev_gone(r);
	r->tap_full++;
}

/* Its receive is posted again, with those of other packets of the burst. */
static void spend(struct rib *r, uint32_t slot)
{
	r->frames->spent[r->frames->nspent++] = slot;
}

static void flush(struct rib *r)
{
	uint32_t n = r->frames->merge.n;
	struct virtio_net_hdr h;

	if (!n)
		return;
	if (n > 1)
		ipoib_count(r->ipoib, IPOIB_MERGED);
	merge_finish(&r->frames->merge, &h);
	put_frame(r, &h, r->frames->merge.piece, n);
	r->frames->merge.n = 0;
	for (uint32_t i = 0; i < n; i++)
		spend(r, r->frames->held[i]);
}

/* @return whether the frame waits in its slot for those that follow. */
static bool hold(struct rib *r, const struct ipoib_frame *f, uint32_t slot)
{
	if (!merge_take(&r->frames->merge, f->at, f->len))
		return false;
	r->frames->held[r->frames->merge.n - 1] = slot;
	return true;
}

static void received(
	struct rib *r, const struct roci_wc *wc, const struct roci_wc_net *net, uint64_t now)
{
	struct virtio_net_hdr plain = {0};
	uint32_t slot = (uint32_t)wc->wr_id;
	struct ipoib_rx rx = {.area = rib_recv_slot(r, slot),
		.len = wc->byte_len,
		.src_qp = wc->src_qp,
		.vid = net->vlan_id,
		.ip4 = net->is_ipv4};
	struct ipoib_frame f;

	if (ipoib_from_wire(r->ipoib, &rx, now, &f)) {
		if (hold(r, &f, slot))
			return;
		flush(r);
		if (hold(r, &f, slot))
			return;
		put_frame(r, &plain, &(struct merge_piece){f.at, f.len}, 1);
	}
	spend(r, slot);
}

/* UD-05: a datagram longer than its receive affects nothing else. A host with a large enough MTU
 * can send one to everybody. */
static void too_long(struct rib *r, const struct roci_wc *wc)
{
	ipoib_count(r->ipoib, IPOIB_LONG);
	spend(r, (uint32_t)wc->wr_id);
}

static void completed(
	struct rib *r, const struct roci_wc *wc, const struct roci_wc_net *net, uint64_t now)
{
	bool recv = wc->wr_id & RIB_RECV;

	if (recv && wc->status == ROCI_WC_LOC_LEN_ERR)
		too_long(r, wc);
	else if (wc->status != ROCI_WC_SUCCESS)
		rib_fail(r, roci_wc_status_str(wc->status));
	else if (recv)
		received(r, wc, net, now);
	else
		r->q.done = (uint32_t)wc->wr_id + 1;
}

/* For a host on a bridge that packets come for, and that has not been heard. */
static void search(struct rib *r, uint64_t now)
{
	struct virtio_net_hdr plain = {0};
	uint8_t room[IPOIB_SEARCH_MAX];
	struct ipoib_frame f;

	if (ipoib_search(r->ipoib, room, now, &f))
		put_frame(r, &plain, &(struct merge_piece){f.at, f.len}, 1);
}

int rib_from_wire(struct rib *r, uint64_t now)
{
	struct roci_wc wc[RIB_BURST];
	struct roci_wc_net net[RIB_BURST];
	int n = roci_poll_cq_net(r->q.cq, RIB_BURST, wc, net);

	if (n < 0)
		rib_fail(r, "its completion queue failed");
	for (int i = 0; i < n; i++)
		completed(r, &wc[i], &net[i], now);
	flush(r);
	search(r, now);
	rib_post_recvs(r, r->frames->spent, r->frames->nspent);
	r->frames->nspent = 0;
	return n > 0 ? n : 0;
}

/* Uses the MTU that an administrator gave the netdev even if the port carries more, because other
 * hosts of the link may not receive more (IPB-13). A bridge passes on longer frames that are to be
 * segmented. Packets of a larger MTU are dropped until the helper has noticed the change. */
static uint32_t frame_max(struct rib *r)
{
	return ETHER_HLEN + (uint32_t)atomic_load_explicit(&r->mtu, memory_order_relaxed);
}

/* Why cut_begin() refused it: VLAN netdevs leave their segments to the netdev, too. */
static enum ipoib_count refusal(const uint8_t *frame, uint32_t len)
{
	return len < ETHER_HLEN || ipoib_type_known(get_be16(frame + ETHER_TYPE))
		       ? IPOIB_BAD_OFFLOAD
		       : IPOIB_TYPE;
}

/* @return whether there is another frame of the kernel. */
static bool read_frame(struct rib *r)
{
	struct virtio_net_hdr h;
	uint8_t *frame = r->frames->frame;
	struct iovec iov[] = {{&h, sizeof(h)}, {frame, FRAME_MAX}};
	ssize_t len = readv(r->tap, iov, ARRAY_SIZE(iov));

	if (len < 0 && errno == EBADFD)
		rib_netdev_gone(r);
	if (len < (ssize_t)sizeof(h))
		return false;
	len -= (ssize_t)sizeof(h);
	if (!cut_begin(&r->frames->cut, &h, frame, (uint32_t)len, frame_max(r) - ETHER_HLEN)) {
		ipoib_count(r->ipoib, refusal(frame, (uint32_t)len));
		r->frames->cut.done = true;
	} else if (h.gso_type) {
		ipoib_count(r->ipoib, IPOIB_CUT);
	}
	return true;
}

static uint32_t next_frame(struct rib *r, uint8_t *slot)
{
	uint32_t len = cut_next(&r->frames->cut, slot, frame_max(r));

	if (!len && !r->frames->cut.done) {
		ipoib_count(r->ipoib, IPOIB_LONG);
		r->frames->cut.done = true;
	}
	return len;
}

/* Requests wait in the netdev's queue while the send queue is full. */
int rib_from_kernel(struct rib *r, uint64_t now)
{
	struct ipoib_tx tx;
	uint8_t *slot;
	int n;

	for (n = 0; n < (int)RIB_BURST && (slot = rib_send_slot(r)); n++) {
		uint32_t len;

		if (r->frames->cut.done && !read_frame(r))
			break;
		len = next_frame(r, slot);
		if (len && ipoib_from_kernel(r->ipoib, slot, len, now, &tx))
			rib_post_send(r, &tx);
	}
	rib_flush_sends(r);
	return n;
}

void rib_send_waiting(struct rib *r, uint64_t now)
{
	struct ipoib_tx tx;
	uint8_t *slot;

	while ((slot = rib_send_slot(r)) && ipoib_next(r->ipoib, slot, now, &tx))
		rib_post_send(r, &tx);
	rib_flush_sends(r);
}
