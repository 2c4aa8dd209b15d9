/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/ipoib against a hostile link and a hostile kernel: datagrams and frames of any bytes, from a
 * few peers, while time passes and address handles are made or not. An input is a series of
 * records, each with the bytes of its packet. Zeroes are what a good peer sends. The last octet of
 * an input says what the netdev is: VARIANT_*.
 *
 *   act     ACT_*
 *   b[0]    who: GID and QPN of the sender, or the low octet of a MAC
 *   b[1]    of the type: which, or any
 *   b[2..3] length of the packet
 *   b[4]    low half other than 0: not of a group; high half: MAC that a frame of the kernel is
 *           from, the netdev's or another's on its bridge
 *   b[5]    other than 0: the checksum of ND is not made right
 *   b[6..7] milliseconds that pass
 *
 * ACT_MAC gives the netdev another MAC, which ends with b[0].
 * ACT_OFFLOAD is a frame that the kernel leaves to be cut (cut.h): b[0] its type, b[1] flags, b[4]
 * and b[5] where its checksum is, b[6..7] the size of its segments. Its segments are put
 * together again as far as that goes (merge.h).
 */
#include <stdlib.h>
#include <string.h>
#include <linux/virtio_net.h>
#include "arp.h"
#include "bits.h"
#include "cut.h"
#include "ipoib.h"
#include "merge.h"
#include "nd.h"
#include "oracle.h"
#include "records.h"
#include "stations.h"
#include "target.h"

#define STEPS	   64u
#define ETH	   14u
#define FROM_PEER  14u
#define FROM_GROUP 15u

enum {
	ACT_WIRE,
	ACT_KERNEL,
	ACT_ANSWER,
	ACT_REFUSE,
	ACT_OFFLOAD,
	ACT_MAC,
	ACTS
};

enum {
	VARIANT_VLAN = 1,
	VARIANT_IP4 = 2, /* its GID is an IPv4 address */
};

static struct ipoib_config own;
static bool own_ip4;

static void gid_of(uint8_t gid[16], uint8_t last)
{
	static const uint8_t ip4[16] = {[10] = 0xFF, 0xFF, 10}, ip6[16] = {0xFE, 0x80};

	memcpy(gid, own_ip4 ? ip4 : ip6, 16);
	gid[15] = last;
}

static void be(uint8_t variant)
{
	own = (struct ipoib_config){
		.own.qpn = 7,
		.mac = {2, 0, 0, 0, 0, 7},
		.pkey = 0x8001,
		.scope = IPOIB_SCOPE,
		.mtu = 2044,
		.vid = variant & VARIANT_VLAN ? 5 : 0,
	};
	own_ip4 = variant & VARIANT_IP4;
	gid_of(own.own.gid, 7);
	for (unsigned i = 0; i <= HASH_WORDS; i++)
		own.seed.factor[i] = 0x9E3779B97F4A7C15ull * (i + 1);
}

static uint16_t type_of(const struct record *r)
{
	static const uint16_t type[] = {IPOIB_ARP, IPOIB_IP6, IPOIB_IP4, IPOIB_RARP};

	return r->b[1] < ARRAY_SIZE(type) ? type[r->b[1]] : (uint16_t)(r->b[1] << 8 | r->b[0]);
}

static struct ipoib_addr sender(const struct record *r)
{
	struct ipoib_addr a = {.qpn = 2 + r->b[0] / 8u};

	gid_of(a.gid, r->b[0] % 8);
	return a;
}

/* As a good peer would: the head of the message, where the bytes are not its own. */
static void shape(
	const struct record *r, uint8_t *p, uint32_t len, unsigned units, const uint8_t *ll)
{
	static const struct ipoib_addr none;
	struct ipoib_addr from = sender(r);
	struct arp a = {.op = 1, .sender_ip = {10, 0, 0, r->b[0]}};

	if (type_of(r) == IPOIB_IP6 && len >= 64) {
		uint64_t sum = (uint64_t)len - 40 + 58;

		p[0] = 0x60;
		put_be16(p + 4, (uint16_t)(len - 40));
		p[6] = 58;
		p[7] = 255;
		p[40] = (uint8_t)(133 + p[40] % 5);
		if (len >= 64 + units * 8 && p[65] == units)
			memcpy(p + 66 + (units == 3 ? 2 : 0), ll, units == 3 ? 20 : 6);
		put_be16(p + 42, 0);
		for (uint32_t i = 8; i < len; i++)
			sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
		while (sum >> 16)
			sum = (sum & 0xFFFF) + (sum >> 16);
		put_be16(p + 42, (uint16_t)~sum);
	} else if (type_of(r) == IPOIB_ARP && units == 3 && len >= ARP_IPOIB_LEN) {
		arp_write_ipoib(p, &a, &from, &none);
	} else if (type_of(r) == IPOIB_ARP && units == 1 && len >= ARP_ETH_LEN) {
		arp_write_eth(p, &a, own.mac, ll);
	}
}

/* No MAC has more addresses than it may have, and those of groups have none. */
static void check_stations(const struct ipoib *s)
{
	const struct station_table *t = ipoib_stations(s);
	uint32_t others = 0;

	for (unsigned i = 0; i < STATION_MAX; i++) {
		const struct station *at = &t->entry[i];
		uint32_t n = 0;

		if (!at->used)
			continue;
		others += memcmp(at->mac, own.mac, 6) != 0;
		for (unsigned k = 0; k < STATION_MAX; k++)
			n += t->entry[k].used && !memcmp(t->entry[k].mac, at->mac, 6);
		MUST(n <= STATION_PER_MAC && !(at->mac[0] & 1));
		MUST(at->at.len == 4 || at->at.len == 16);
	}
	MUST(others == ipoib_bridged(s));
}

/* To the netdev, to a group, or to a host that has sent something. */
static void check_dst(const struct ipoib *s, const uint8_t mac[6])
{
	const struct station_table *t = ipoib_stations(s);
	bool known = mac[0] & 1 || !memcmp(mac, own.mac, 6);

	for (unsigned i = 0; i < STATION_MAX && !known; i++)
		known = t->entry[i].used && !memcmp(t->entry[i].mac, mac, 6);
	MUST(known);
}

/* The GRH or IP header: to a group, to the netdev, or to another address of its port. */
static void write_area(uint8_t *area, const struct ipoib_addr *from, uint8_t to)
{
	if (own_ip4) {
		memcpy(area + 32, from->gid + 12, 4);
		memcpy(area + 36, own.own.gid + 12, 4);
		area[36] = to ? area[36] : 0xEF;
		area[37] = to == 6 ? 1 : area[37];
		return;
	}
	memcpy(area + 8, from->gid, 16);
	memcpy(area + 24, own.own.gid, 16);
	area[24] = to ? 0xFE : 0xFF;
	area[25] = to == 6 ? 0 : area[25];
}

/* Blocks of their own: one octet too far is a report of AddressSanitizer. */
static void from_wire(
	struct ipoib *s, const struct record *r, const uint8_t *bytes, uint32_t len, uint64_t now)
{
	uint32_t all = IPOIB_GRH_AREA + IPOIB_HLEN + len;
	uint8_t ll[IPOIB_LLADDR_LEN], *area = calloc(1, all);
	struct ipoib_addr from = sender(r);
	struct ipoib_frame f;
	struct ipoib_rx rx;

	MUST(area);
	ipoib_addr_put(ll, &from);
	write_area(area, &from, r->b[4]);
	ipoib_header_put(area + IPOIB_GRH_AREA, type_of(r));
	memcpy(area + IPOIB_GRH_AREA + IPOIB_HLEN, bytes, len);
	if (!r->b[5])
		shape(r, area + IPOIB_GRH_AREA + IPOIB_HLEN, len, 3, ll);
	rx = (struct ipoib_rx){.area = area,
		.len = all - r->b[5] % 8,
		.src_qp = from.qpn,
		.vid = (uint16_t)(own.vid + (r->b[4] == 5)),
		.ip4 = own_ip4 != (r->b[4] == 4)};
	if (ipoib_from_wire(s, &rx, now, &f)) {
		check_dst(s, f.at);
		MUST(f.at >= area && f.at + f.len <= area + all && f.len >= ETH);
		MUST((f.at[6] & 3) == 2);
		MUST(rx.vid == own.vid && rx.ip4 == own_ip4 && r->b[4] != 6);
	}
	free(area);
}

static void check_tx(const struct ipoib_tx *tx, const uint8_t *at, uint32_t room)
{
	MUST(tx->at >= at && tx->at + tx->len <= at + room && tx->len <= own.mtu + IPOIB_HLEN);
	MUST(tx->dest < NEIGH_MAX && ipoib_type_known(get_be16(tx->at)) && !get_be16(tx->at + 2));
}

static void from_kernel(
	struct ipoib *s, const struct record *r, const uint8_t *bytes, uint32_t len, uint64_t now)
{
	uint8_t *frame = calloc(1, ETH + len + IPOIB_TAIL), mac[6];
	struct ipoib_addr to = sender(r);
	struct ipoib_tx tx;

	MUST(frame);
	neigh_mac(mac, &to);
	memcpy(frame, mac, 6);
	if (!(r->b[4] & 0xF))
		memset(frame, 0xFF, 6);
	memcpy(frame + 6, own.mac, 6);
	frame[7] = r->b[4] >> 4;
	if (r->b[4] >> 4 == FROM_PEER) /* it comes back */
		memcpy(frame + 6, mac, 6);
	else if (r->b[4] >> 4 == FROM_GROUP)
		frame[6] |= 1;
	put_be16(frame + 12, type_of(r));
	memcpy(frame + ETH, bytes, len);
	if (!r->b[5])
		shape(r, frame + ETH, len, 1, mac);
	if (ipoib_from_kernel(s, frame, ETH + len, now, &tx))
		check_tx(&tx, frame, ETH + len + IPOIB_TAIL);
	free(frame);
}

/* @return the frame of one piece. */
static uint8_t *cut_one(struct cut *c, uint32_t *len)
{
	uint8_t *f = malloc(own.mtu + ETH);

	MUST(f);
	*len = cut_next(c, f, own.mtu + ETH);
	return f;
}

static void offload(const struct record *r, const uint8_t *bytes, uint32_t len)
{
	struct virtio_net_hdr h = {.gso_type = r->b[0],
		.flags = r->b[1],
		.csum_start = r->b[4],
		.csum_offset = r->b[5],
		.gso_size = record_u16(r, 6)};
	uint8_t *frame = malloc(len ? len : 1), *f[MERGE_MAX];
	struct merge m = {0};
	uint32_t n = 0, n_len;
	struct cut c;

	MUST(frame);
	memcpy(frame, bytes, len);
	if (cut_begin(&c, &h, frame, len, own.mtu))
		while (n < MERGE_MAX) {
			f[n] = cut_one(&c, &n_len);
			MUST(n_len <= own.mtu + ETH);
			if (!merge_take(&m, f[n++], n_len) || !n_len)
				break;
		}
	if (m.n) {
		uint32_t all = 0;

		merge_finish(&m, &h);
		for (uint32_t i = 0; i < m.n; i++)
			all += m.piece[i].len;
		MUST(all == m.len && all <= len);
	}
	while (n)
		free(f[--n]);
	free(frame);
}

static void answer(struct ipoib *s, bool ok, uint64_t now)
{
	struct ipoib_ask ask;

	while (ipoib_ask(s, &ask)) {
		MUST(ask.dest < NEIGH_MAX);
		ipoib_resolved(s, ask.dest, ask.serial, ok, now);
	}
}

/* All that is due ends, and its deadline with it. */
static void let_out(struct ipoib *s, uint64_t now)
{
	static uint8_t room[IPOIB_PACKET_MAX], searched[IPOIB_SEARCH_MAX];
	struct ipoib_frame f;
	struct ipoib_tx tx;
	unsigned n = 0;

	while (ipoib_next(s, room, now, &tx)) {
		check_tx(&tx, room, sizeof(room));
		MUST(++n <= IPOIB_WAIT_ALL + NEIGH_MAX);
	}
	if (ipoib_search(s, searched, now, &f))
		MUST(f.at == searched && f.len >= ETH && f.len <= sizeof(searched));
	MUST(ipoib_deadline(s) > now && ipoib_neighs(s) <= NEIGH_MAX);
}

static void another_mac(struct ipoib *s, const struct record *r)
{
	own.mac[5] = r->b[0];
	ipoib_set_mac(s, own.mac);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct records in = {data, size, 0};
	uint64_t now = 10 * IPOIB_RETRY_NS;
	struct record r;
	struct ipoib *s;

	be(size ? data[size - 1] : 0);
	s = ipoib_init(malloc(ipoib_size()), &own);

	for (unsigned i = 0; i < STEPS && records_take(&in, &r); i++) {
		uint32_t len = record_u16(&r, 2) % 4096;

		len = len < in.left ? len : (uint32_t)in.left;
		now += record_u16(&r, 6) * IPOIB_MS;
		if (r.act % ACTS == ACT_WIRE)
			from_wire(s, &r, in.at, len, now);
		else if (r.act % ACTS == ACT_KERNEL)
			from_kernel(s, &r, in.at, len, now);
		else if (r.act % ACTS == ACT_OFFLOAD)
			offload(&r, in.at, len);
		else if (r.act % ACTS == ACT_MAC)
			another_mac(s, &r);
		else
			answer(s, r.act % ACTS == ACT_ANSWER, now);
		if (r.act % ACTS < ACT_ANSWER || r.act % ACTS == ACT_OFFLOAD) {
			in.at += len;
			in.left -= len;
		}
		let_out(s, now);
	}
	check_stations(s);
	free(s);
	return 0;
}
