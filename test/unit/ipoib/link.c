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
#include "inet.h"
#include "ipoib_impl.h"
#include "link.h"
#include "nd.h"

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
		memcpy(h->ip6, (uint8_t[16]){0xFD, 8, [15] = (uint8_t)(1 + i)}, 16);
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

/* Octets of neighbour discovery with one link-layer address option of Ethernet. */
#define ND_LEN (IP6_HLEN + 24u + 8u)

/* A solicitation or an advertisement of @p target, for @p dst at the MAC @p to. */
static void discover(struct link *l, unsigned i, enum nd_type type, const uint8_t *to,
	const uint8_t *dst, const uint8_t *target)
{
	struct host *h = &l->host[i];
	uint8_t frame[ROOM] = {[ETH] = 0x60}, *ip6 = frame + ETH, *icmp = ip6 + IP6_HLEN;

	memcpy(frame, to, 6);
	memcpy(frame + 6, h->cfg.mac, 6);
	put_be16(frame + 12, IPOIB_IP6);
	put_be16(ip6 + IP6_PLEN, ND_LEN - IP6_HLEN);
	ip6[IP6_NEXT] = 58;
	ip6[IP6_HOPS] = 255;
	memcpy(ip6 + IP6_SRC, h->ip6, 16);
	memcpy(ip6 + IP6_DST, dst, 16);
	icmp[0] = (uint8_t)type;
	memcpy(icmp + 8, target, 16);
	icmp[24] = type == ND_NEIGHBOUR_ADVERT ? 2 : 1;
	icmp[25] = ND_ETH_UNITS;
	memcpy(icmp + 26, h->cfg.mac, 6);
	inet_put(icmp + 2, (uint16_t)~inet_fold(inet_add(inet_pseudo(ip6, ND_LEN - IP6_HLEN, 58),
				   icmp, ND_LEN - IP6_HLEN)));
	host_frame(l, i, frame, ETH + ND_LEN);
}

static void learn6(struct link *l, unsigned i, const uint8_t *ip, const uint8_t *mac)
{
	struct host *h = &l->host[i];

	for (unsigned k = 0; mac && k < HOSTS; k++)
		if (k != i && !memcmp(l->host[k].ip6, ip, 16)) {
			memcpy(h->mac6[k], mac, 6);
			h->knows6[k] = true;
		}
}

static void discovered(struct link *l, unsigned i, const struct ipoib_frame *f)
{
	const uint8_t *src = f->at + ETH + IP6_SRC;
	struct nd nd;
	uint8_t ip[16], mac[6];

	assert_true(nd_read(&nd, f->at + ETH, f->len - ETH, ND_ETH_UNITS));
	if (nd.type == ND_NEIGHBOUR_ADVERT) {
		learn6(l, i, nd.target, nd.dest);
		return;
	}
	learn6(l, i, src, nd.source);
	if (nd.type != ND_NEIGHBOUR_SOLICIT || memcmp(nd.target, l->host[i].ip6, 16) != 0)
		return;
	memcpy(ip, src, sizeof(ip));
	memcpy(mac, nd.source, sizeof(mac));
	discover(l, i, ND_NEIGHBOUR_ADVERT, mac, ip, nd.target);
}

/* An IP packet: was it for this host, and whose is its source? */
static void packet(struct link *l, unsigned i, const struct ipoib_frame *f)
{
	bool v4 = get_be16(f->at + 12) == IPOIB_IP4;
	const uint8_t *src = f->at + ETH + (v4 ? IP4_SRC : IP6_SRC);
	const uint8_t *dst = f->at + ETH + (v4 ? IP4_DST : IP6_DST);
	struct host *h = &l->host[i];

	h->got++;
	l->misled += memcmp(dst, v4 ? h->ip : h->ip6, v4 ? 4 : 16) != 0;
	for (unsigned k = 0; k < HOSTS; k++)
		if (!memcmp(src, v4 ? l->host[k].ip : l->host[k].ip6, v4 ? 4 : 16))
			(v4 ? h->heard4 : h->heard6)[k] = l->now;
}

static void arp_heard(struct link *l, unsigned i, const struct ipoib_frame *f)
{
	struct host *h = &l->host[i];
	uint8_t s[6], t[6];
	struct arp a;

	assert_true(arp_read_eth(&a, f->at + ETH, f->len - ETH, s, t));
	for (unsigned k = 0; k < HOSTS; k++)
		if (k != i && !memcmp(l->host[k].ip, a.sender_ip, 4)) {
			memcpy(h->mac[k], s, 6);
			h->knows[k] = true;
		}
	if (a.op == ARP_REQUEST && !memcmp(a.target_ip, h->ip, 4))
		reply(l, i, &a, s);
}

static void kernel(struct link *l, unsigned i, const struct ipoib_frame *f)
{
	struct host *h = &l->host[i];
	uint16_t type = get_be16(f->at + 12);

	memcpy(h->last, f->at, f->len);
	h->last_len = f->len;
	if (type == IPOIB_ARP || type == IPOIB_RARP)
		arp_heard(l, i, f);
	else if (type == IPOIB_IP6 && nd_is(f->at + ETH, f->len - ETH))
		discovered(l, i, f);
	else
		packet(l, i, f);
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

static bool is_lost(struct link *l)
{
	l->random = l->random * 1664525 + 1013904223;
	return (l->random >> 16) % 100 < l->loss;
}

struct neigh *host_neigh(const struct link *l, unsigned i, uint32_t place)
{
	return &l->host[i].s->table.entry[place];
}

/* Whom the handle of destination @p dest leads to, as rocid's would: by the GID. */
static void deliver(struct link *l, unsigned from, const struct ipoib_tx *tx)
{
	const struct neigh *to = host_neigh(l, from, tx->dest);
	uint8_t copy[ROOM];
	uint32_t len = tx->len;

	memcpy(copy, tx->at, len);
	if (l->lose && ++l->sent % l->lose == 0)
		return;
	for (unsigned i = 0; i < HOSTS; i++) {
		const struct host *h = &l->host[i];
		bool mine = !memcmp(to->addr.gid, h->cfg.own.gid, 16) && tx->qpn == h->cfg.own.qpn;

		if (!h->silent && (to->group || mine) && !is_lost(l))
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
	memcpy(frame + 6, l->host[i].cfg.mac, 6);
	put_be16(frame + 12, IPOIB_IP4);
	frame[ETH] = 0x45;
	put_be16(frame + ETH + 2, 60);
	memcpy(frame + ETH + 12, l->host[i].ip, 4);
	memcpy(frame + ETH + 16, l->host[k].ip, 4);
	sent = host_frame(l, i, frame, sizeof(frame));
	settle(l);
	return sent;
}

void host_solicit(struct link *l, unsigned i, unsigned k)
{
	const uint8_t *target = l->host[k].ip6;
	uint8_t group[16], mac[6] = {0x33, 0x33};

	nd_group_of(group, target);
	memcpy(mac + 2, group + 12, 4);
	discover(l, i, ND_NEIGHBOUR_SOLICIT, mac, group, target);
	settle(l);
}

void host_ip6(struct link *l, unsigned i, unsigned k)
{
	uint8_t frame[ETH + 60] = {[ETH] = 0x60};

	memcpy(frame, l->host[i].mac6[k], 6);
	memcpy(frame + 6, l->host[i].cfg.mac, 6);
	put_be16(frame + 12, IPOIB_IP6);
	put_be16(frame + ETH + IP6_PLEN, 20);
	frame[ETH + IP6_NEXT] = 59;
	memcpy(frame + ETH + IP6_SRC, l->host[i].ip6, 16);
	memcpy(frame + ETH + IP6_DST, l->host[k].ip6, 16);
	host_frame(l, i, frame, sizeof(frame));
	settle(l);
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
