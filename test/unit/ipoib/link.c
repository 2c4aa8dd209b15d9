/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "arp.h"
#include "bits.h"
#include "link.h"

#define ETH 14u

static void begin(struct host *h)
{
	h->s = ipoib_init(h->s, &h->cfg);
}

void link_init(struct link *l)
{
	memset(l, 0, sizeof(*l));
	l->now = 10 * IPOIB_RETRY_NS;
	for (unsigned i = 0; i < HOSTS; i++) {
		struct host *h = &l->host[i];

		h->cfg = (struct ipoib_config){
			.own = {.qpn = 100 + i, .gid = {0xFE, 0x80, [15] = (uint8_t)(1 + i)}},
			.mac = {2, 0, 0, 0, 0, (uint8_t)i},
			.pkey = 0x8001,
			.scope = IPOIB_SCOPE,
			.mtu = 2044};
		for (unsigned k = 0; k <= HASH_WORDS; k++)
			h->cfg.seed.factor[k] = 0x9E3779B97F4A7C15ull * (k + i + 1);
		memcpy(h->ip, (uint8_t[]){10, 0, 0, (uint8_t)(1 + i)}, 4);
		h->s = malloc(ipoib_size());
		assert_non_null(h->s);
		begin(h);
	}
}

void link_fini(struct link *l)
{
	for (unsigned i = 0; i < HOSTS; i++)
		free(l->host[i].s);
}

void host_restart(struct link *l, unsigned i, uint32_t qpn)
{
	l->host[i].cfg.own.qpn = qpn;
	l->host[i].silent = false;
	begin(&l->host[i]);
}

uint64_t host_count(const struct link *l, unsigned i, enum ipoib_count c)
{
	return ipoib_counts(l->host[i].s)[c];
}

/* --- a kernel --------------------------------------------------------------------------------- */

static void reply(struct link *l, unsigned i, const struct arp *a, const uint8_t to[6])
{
	struct host *h = &l->host[i];
	struct arp r = {.op = 2};
	uint8_t frame[ROOM];

	memcpy(r.sender_ip, h->ip, 4);
	memcpy(r.target_ip, a->sender_ip, 4);
	memcpy(frame, to, 6);
	memcpy(frame + 6, h->cfg.mac, 6);
	put_be16(frame + 12, IPOIB_ARP);
	arp_write_eth(frame + ETH, &r, h->cfg.mac, to);
	host_frame(l, i, frame, ETH + ARP_ETH_LEN);
}

static void kernel(struct link *l, unsigned i, const struct ipoib_frame *f)
{
	struct host *h = &l->host[i];
	uint8_t s[6], t[6];
	struct arp a;

	memcpy(h->last, f->at, f->len);
	h->last_len = f->len;
	if (get_be16(f->at + 12) != IPOIB_ARP) {
		h->got++;
		return;
	}
	assert_true(arp_read_eth(&a, f->at + ETH, f->len - ETH, s, t));
	for (unsigned k = 0; k < HOSTS; k++)
		if (k != i && !memcmp(l->host[k].ip, a.sender_ip, 4)) {
			memcpy(h->mac[k], s, 6);
			h->knows[k] = true;
		}
	if (a.op == ARP_REQUEST && !memcmp(a.target_ip, h->ip, 4))
		reply(l, i, &a, s);
}

/* --- the link --------------------------------------------------------------------------------- */

bool host_datagram(struct link *l, unsigned i, const struct ipoib_addr *from, bool group,
	const uint8_t *payload, uint32_t len)
{
	uint8_t area[ROOM] = {0};
	struct ipoib_frame f;
	struct ipoib_rx rx;

	memcpy(area + 8, from->gid, 16);
	memcpy(area + 24, l->host[i].cfg.own.gid, 16);
	if (group)
		area[24] = 0xFF;
	memcpy(area + IPOIB_GRH_AREA, payload, len);
	rx = (struct ipoib_rx){
		.area = area, .len = IPOIB_GRH_AREA + len, .src_qp = from->qpn, .vid = l->vid};
	if (!ipoib_from_wire(l->host[i].s, &rx, l->now, &f))
		return false;
	kernel(l, i, &f);
	return true;
}

/* Whom the handle of destination @p dest leads to, as rocid's would: by the GID. */
static void deliver(struct link *l, unsigned from, const struct ipoib_tx *tx)
{
	const struct neigh *to = ipoib_neigh(l->host[from].s, tx->dest);
	uint8_t copy[ROOM];
	uint32_t len = tx->len;

	memcpy(copy, tx->at, len);
	if (l->lose && ++l->sent % l->lose == 0)
		return;
	for (unsigned i = 0; i < HOSTS; i++) {
		const struct host *h = &l->host[i];
		bool mine = !memcmp(to->addr.gid, h->cfg.own.gid, 16) && tx->qpn == h->cfg.own.qpn;

		if (!h->silent && (to->group || mine))
			host_datagram(l, i, &l->host[from].cfg.own, to->group, copy, len);
	}
}

static void resolve(struct link *l, unsigned i)
{
	struct ipoib_ask ask;

	while (ipoib_ask(l->host[i].s, &ask)) {
		l->asked++;
		ipoib_resolved(l->host[i].s, ask.dest, ask.serial, !l->host[i].deaf, l->now);
	}
}

static void settle(struct link *l)
{
	bool any = true;

	while (any) {
		any = false;
		for (unsigned i = 0; i < HOSTS; i++) {
			uint8_t room[IPOIB_PACKET_MAX];
			struct ipoib_frame f;
			struct ipoib_tx tx;

			ipoib_search(l->host[i].s, room, l->now, &f); /* nobody else is there */
			resolve(l, i);
			while (ipoib_next(l->host[i].s, room, l->now, &tx)) {
				deliver(l, i, &tx);
				any = true;
			}
		}
	}
}

bool host_frame(struct link *l, unsigned i, const uint8_t *frame, uint32_t len)
{
	uint8_t copy[ROOM];
	struct ipoib_tx tx;

	memcpy(copy, frame, len);
	if (!ipoib_from_kernel(l->host[i].s, copy, len, l->now, &tx))
		return false;
	deliver(l, i, &tx);
	return true;
}

void host_arp(struct link *l, unsigned i, unsigned k)
{
	struct host *h = &l->host[i];
	struct arp a = {.op = ARP_REQUEST};
	uint8_t frame[ROOM], none[6] = {0};

	memcpy(a.sender_ip, h->ip, 4);
	memcpy(a.target_ip, l->host[k].ip, 4);
	memset(frame, 0xFF, 6);
	memcpy(frame + 6, h->cfg.mac, 6);
	put_be16(frame + 12, IPOIB_ARP);
	arp_write_eth(frame + ETH, &a, h->cfg.mac, none);
	host_frame(l, i, frame, ETH + ARP_ETH_LEN);
	settle(l);
}

bool host_ip(struct link *l, unsigned i, unsigned k)
{
	uint8_t frame[ETH + 60] = {0};
	bool sent;

	memcpy(frame, l->host[i].mac[k], 6);
	put_be16(frame + 12, IPOIB_IP4);
	frame[ETH] = 0x45;
	put_be16(frame + ETH + 2, 60);
	memcpy(frame + ETH + 12, l->host[i].ip, 4);
	memcpy(frame + ETH + 16, l->host[k].ip, 4);
	sent = host_frame(l, i, frame, sizeof(frame));
	settle(l);
	return sent;
}

void link_run(struct link *l, uint64_t ns)
{
	uint64_t end = l->now + ns;

	for (;;) {
		uint64_t first = UINT64_MAX;

		settle(l);
		for (unsigned i = 0; i < HOSTS; i++) {
			uint64_t due = ipoib_deadline(l->host[i].s);

			first = due < first ? due : first;
		}
		if (first > end)
			break;
		l->now = first > l->now ? first : l->now + 1;
	}
	l->now = end;
}
