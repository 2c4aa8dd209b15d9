/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include "share.h"
#include "sockets.h"
#include "unstick.h"

/* How often to check: rarely while no frame is refused; otherwise often enough that the QPs whose
 * frames wait time out at most once. */
#define CALM_MS	   500
#define REFUSED_MS 10
/* A frame that was at the head this often is not delayed by a temporarily full queue. */
#define SEEN_MAX 3u
/* Within this time after a refusal, the next frame of its length needs no proof. */
#define FRESH_MS 5000u

void unstick_watch(struct unstick *u, const char *netdev)
{
	unsigned n = sockets_find(AF_PACKET, if_nametoindex(netdev), u->fd);

	snprintf(u->netdev, sizeof(u->netdev), "%s", netdev);
	u->queues = n <= WORKER_MAX ? n : 0;
	for (unsigned q = 0; q < u->queues; q++)
		u->head[q].seen = 0;
}

void unstick_forget(struct unstick *u)
{
	u->queues = 0;
}

static struct tpacket2_hdr *frame(const struct share_rings *r, unsigned slot)
{
	return (struct tpacket2_hdr *)(r->tx + (size_t)slot * MBUF_ROOM);
}

static bool waits(const struct share_rings *r, unsigned slot)
{
	return __atomic_load_n(&frame(r, slot)->tp_status, __ATOMIC_ACQUIRE) ==
	       TP_STATUS_SEND_REQUEST;
}

static uint32_t length(const struct share_rings *r, unsigned slot)
{
	return __atomic_load_n(&frame(r, slot)->tp_len, __ATOMIC_RELAXED);
}

/* The frame that the kernel sends next: the first that waits. In a full ring it cannot be
 * identified, but it is refused for its length. @return its slot, r->frames if none waits. */
static unsigned find_head(const struct share_rings *r)
{
	unsigned longest = r->frames;
	bool before = waits(r, r->frames - 1);

	for (unsigned i = 0; i < r->frames; i++) {
		bool now = waits(r, i);

		if (now && !before)
			return i;
		before = now;
		if (now && (longest == r->frames || length(r, i) > length(r, longest)))
			longest = i;
	}
	return longest;
}

/* The kernel finds no Ethernet header in them then, and skips them (PACKET_LOSS). */
static unsigned make_empty(const struct share_rings *r, uint32_t at_least)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->frames; i++) {
		if (!waits(r, i) || length(r, i) < at_least)
			continue;
		__atomic_store_n(&frame(r, i)->tp_len, 0, __ATOMIC_RELAXED);
		n++;
	}
	return n;
}

static bool proven(
	const struct unstick *u, const struct unstick_head *h, uint32_t len, uint64_t now_ms)
{
	return h->seen >= SEEN_MAX ||
	       (u->shortest && len >= u->shortest && now_ms - u->last_ms < FRESH_MS);
}

static void remember(struct unstick *u, uint32_t len, uint64_t now_ms)
{
	if (!unstick_refused(u, now_ms, UNSTICK_TOLD_MS) || len < u->shortest)
		u->shortest = len;
	u->last_ms = now_ms;
}

/* Discards the refused frame at the head of @p r, and all that are no shorter, once it is
 * certain. */
static void judge(struct unstick *u, unsigned q, const struct share_rings *r, uint64_t now_ms)
{
	struct unstick_head *h = &u->head[q];
	unsigned slot = find_head(r);
	uint32_t len;

	if (slot == r->frames) {
		h->seen = 0;
		return;
	}
	h->seen = h->seen && h->slot == slot ? h->seen + 1 : 1;
	h->slot = slot;
	len = length(r, slot);
	if (!len || !proven(u, h, len, now_ms))
		return;
	u->count += make_empty(r, len);
	h->seen = 0;
	remember(u, len, now_ms);
}

/* @return whether the kernel sends the waiting frames, as far as it can. */
static bool sends(int fd)
{
	return sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0 || errno != ENOBUFS;
}

/* Read from the device, which knows at once; the flags of rtnetlink are a second late. */
static bool has_carrier(const struct unstick *u, int fd)
{
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
	struct ifreq req = {.ifr_data = (void *)&link};

	memcpy(req.ifr_name, u->netdev, sizeof(u->netdev));
	return ioctl(fd, SIOCETHTOOL, &req) || link.data;
}

static void look(struct unstick *u, unsigned q, uint64_t now_ms)
{
	struct share_rings r;

	if (sends(u->fd[q]) || !has_carrier(u, u->fd[q])) {
		u->head[q].seen = 0;
		return;
	}
	if (!share_map(&r, u->fd[q]))
		return;
	judge(u, q, &r, now_ms);
	share_unmap(&r);
	sends(u->fd[q]); /* the frames after it */
}

int unstick_poll(struct unstick *u, uint64_t now_ms)
{
	bool refused = u->shortest && now_ms - u->last_ms < FRESH_MS;

	for (unsigned q = 0; q < u->queues; q++) {
		look(u, q, now_ms);
		refused |= u->head[q].seen > 0;
	}
	return refused ? REFUSED_MS : CALM_MS;
}

/* A full queue refuses too, but not twice in a row while no frame of that length passes. */
int unstick_tell(
	struct unstick *u, uint64_t count, uint32_t shortest, uint32_t passed, uint64_t now_ms)
{
	struct unstick_head *h = &u->head[0];

	if (passed >= h->len)
		h->seen = 0;
	if (!count)
		return CALM_MS;
	u->count += count;
	h->seen = shortest > passed ? h->seen + 1 : 0;
	h->len = shortest;
	if (h->seen > 1)
		remember(u, shortest, now_ms);
	return CALM_MS;
}

uint32_t unstick_refused(const struct unstick *u, uint64_t now_ms, uint64_t within_ms)
{
	return u->shortest && now_ms - u->last_ms < within_ms ? u->shortest : 0;
}
