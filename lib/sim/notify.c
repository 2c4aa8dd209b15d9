/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "buffer.h"
#include "fast_cnp.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "notify.h"

const uint8_t notify_prefix[16] = {0xFD, 0, 0, 0, 0, 0, 0, 1};

void notify_init(
	struct sim_notify *n, uint64_t interval, const struct icrc_ops *icrc, uint16_t number)
{
	memset(n, 0, sizeof(*n));
	n->interval = interval;
	n->icrc = icrc;
	memcpy(n->address, notify_prefix, sizeof(n->address));
	put_be16(n->address + 14, number);
}

/* A hash of the addresses and the destination QPN. */
static uint64_t key_of(const struct pkt *p)
{
	uint64_t h = p->dest_qp;

	for (unsigned i = IP6_SRC; i < IP6_HLEN; i += 8)
		h = (h ^ get_be64(p->l3 + i)) * 0x9E3779B97F4A7C15ull;
	h ^= h >> 32;
	return h ? h : 1;
}

/* @return whether the flow had no Fast CNP in this interval. */
static bool is_due(struct sim_notify *n, const struct pkt *p, uint64_t now)
{
	uint64_t key = key_of(p);
	struct notify_flow *f = &n->flow[key & (NOTIFY_FLOWS - 1)];

	if (f->key == key && now - f->at < n->interval)
		return false;
	*f = (struct notify_flow){key, now};
	return true;
}

bool notify_marked(struct sim_notify *n, struct buffer_pool *pool, const struct sim_buffer *b,
	uint64_t now, struct sim_buffer **answer)
{
	uint8_t frame[FAST_CNP_FRAME_MAX];
	struct fast_cnp_spec spec;
	struct pkt pkt;
	size_t len;

	*answer = NULL;
	if (!n->interval || frame_parse(&pkt, b->bytes, b->len) || pkt.net != NET_IPV6)
		return false;
	if (!is_due(n, &pkt, now))
		return true;
	fast_cnp_answer(&spec, &pkt, n->address, NOTIFY_OPTION);
	len = fast_cnp_write(frame, &spec, n->icrc);
	*answer = pool_get(pool, len);
	if (*answer) {
		memcpy((*answer)->bytes, frame, len);
		n->sent++;
	}
	return true;
}
