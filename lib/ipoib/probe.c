/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions that rocid asks on its own: for peers that are silent (IPB-16), for the unknown
 * destinations of the kernel's packets, and on the netdev's side for hosts of a bridge. */
#include "arp.h"
#include "bits.h"
#include "inet.h"
#include "ipoib_impl.h"
#include "nd.h"

/* --- by ARP and by ND ------------------------------------------------------------------------- */

/* Carries no IP address of this host (RFC 5227 2.1.1): the peer answers whichever networks it and
 * the kernel are in, and no host learns an address that may now be another host's. The target
 * hardware address, which others ignore, is our own: it tells another rocid that this is not
 * duplicate address detection, during which that rocid would not ask. */
static struct neigh *arp_probe(struct ipoib *s, const uint8_t ip[4], struct ipoib_tx *tx)
{
	static const uint8_t everybody[4] = {0xFF, 0xFF, 0xFF, 0xFF};
	struct arp a = {.op = ARP_REQUEST};
	uint8_t mgid[16];

	memcpy(a.target_ip, ip, 4);
	ipoib_header_put(tx->at, IPOIB_ARP);
	arp_write_ipoib(tx->at + IPOIB_HLEN, &a, &s->cfg.own, &s->cfg.own);
	tx->len = IPOIB_HLEN + ARP_IPOIB_LEN;
	ipoib_mgid_of_ip4(mgid, s->cfg.pkey, s->cfg.scope, everybody);
	return dest_group(s, mgid);
}

/* The source address is one that no host has: the peer will record our link-layer address for it
 * (RFC 4861 7.2.3). A real address would be wrong if another host has it, and other hosts could
 * take it over; no address at all would make this duplicate address detection for the peer's own.
 */
static struct neigh *nd_probe(struct ipoib *s, const uint8_t ip[16], struct ipoib_tx *tx)
{
	uint8_t mgid[16], group[16];

	ipoib_header_put(tx->at, IPOIB_IP6);
	tx->len = IPOIB_HLEN + nd_solicit(tx->at + IPOIB_HLEN, s->made_up, ip, &s->cfg.own);
	nd_group_of(group, ip);
	ipoib_mgid_of_ip6(mgid, s->cfg.pkey, s->cfg.scope, group);
	return dest_group(s, mgid);
}

/* During duplicate address detection a host would take a probe for its address as the search of
 * another host, and give the address up (RFC 5227 2.1.1). */
static bool is_probed(const struct ipoib *s, const uint8_t ip[4], uint64_t now)
{
	for (unsigned i = 0; i < PROBED_MAX; i++)
		if (now < s->probed[i].until && !memcmp(s->probed[i].ip, ip, 4))
			return true;
	return false;
}

void probe_not(struct ipoib *s, const uint8_t ip[4], uint64_t now)
{
	struct probed *p = NULL;

	for (unsigned i = 0; i < PROBED_MAX; i++)
		if (!memcmp(s->probed[i].ip, ip, 4))
			p = &s->probed[i];
	if (!p)
		p = &s->probed[s->nprobed++ % PROBED_MAX];
	memcpy(p->ip, ip, 4);
	p->until = now + IPOIB_PROBED_NS;
}

/* --- unknown peers ---------------------------------------------------------------------------- */

/* @return whether @p tx is a probe to send. */
static bool look(struct ipoib *s, uint64_t now, struct ipoib_tx *tx)
{
	struct station_ip at;
	struct neigh *to;

	if (!seek_take(&s->looked_for, now, IPOIB_LOOK_NS, &at))
		return false;
	if (at.len == 4 && is_probed(s, at.ip, now))
		return false;
	s->count[IPOIB_PROBES_SENT]++;
	to = at.len == 16 ? nd_probe(s, at.ip, tx) : arp_probe(s, at.ip, tx);
	return dest_send(s, to, now, tx);
}

/* A packet to a MAC that no peer has is lost. A host on a bridge may have learned that MAC before
 * this session began, and not ask again for half a minute. So its IP address is looked for here,
 * in place of the packet, or later if others come first; but not an address that ARP or ND has
 * claimed on this side, for which the bridge knows no port. The source of the packet is not used,
 * because it may be anything and would become a claim. */
bool probe_look_for(
	struct ipoib *s, uint8_t *frame, uint16_t type, uint64_t now, struct ipoib_tx *tx)
{
	unsigned ip_len = type == IPOIB_IP6 ? 16 : 4;
	const uint8_t *ip = frame + ETHER_HLEN + (ip_len == 16 ? IP6_DST : IP4_DST);
	uint32_t src[2] = {0};

	if (!memcmp(frame, s->wire_mac, 6)) /* the answer to a search: it has been seen */
		return false;
	drop(s, IPOIB_NO_NEIGH);
	if (type != IPOIB_IP6 && type != IPOIB_IP4)
		return false;
	if (!inet_is_unicast(ip, ip_len) || station_is_claimed(&s->stations, ip, ip_len))
		return false;
	memcpy(src, frame + ETHER_SRC, 6);
	seek_add(&s->looked_for, &s->cfg.seed, hash_words(&s->cfg.seed, src, ARRAY_SIZE(src)), ip,
		ip_len);
	tx->at = frame;
	return look(s, now, tx);
}

/* --- peers that are silent -------------------------------------------------------------------- */

/* @return the next of its addresses that ARP may ask for, or NULL. */
static const uint8_t *next_ip4(const struct ipoib *s, struct neigh *n, uint64_t now)
{
	for (unsigned i = 0; i < n->nip4; i++) {
		const uint8_t *ip = n->ip4[n->asked4++ % n->nip4];

		if (!is_probed(s, ip, now))
			return ip;
	}
	return NULL;
}

/* By broadcast, or to the group of its address: a unicast would go to a QP that no longer exists.
 * Alternates between the families, starting with ND, which nobody mistakes for duplicate address
 * detection, and goes through all addresses: a peer may have lost some, or be a bridge, whose hosts
 * come and go. */
static struct neigh *write_probe(
	struct ipoib *s, struct neigh *n, uint64_t now, struct ipoib_tx *tx)
{
	bool by_nd = n->nip6 && n->probes & 1;
	const uint8_t *ip4 = by_nd ? NULL : next_ip4(s, n, now);

	if (ip4)
		return arp_probe(s, ip4, tx);
	return n->nip6 ? nd_probe(s, n->ip6[n->asked6++ % n->nip6], tx) : NULL;
}

/* @return whether there is a probe to send. */
static bool probe(struct ipoib *s, struct neigh *n, uint64_t now, struct ipoib_tx *tx)
{
	struct neigh *to;

	if (n->probes == IPOIB_PROBES) { /* until something is sent to it again */
		set_state(n, NEIGH_STALE);
		return false;
	}
	n->probes++;
	n->due = now + IPOIB_PROBE_NS;
	to = write_probe(s, n, now, tx);
	if (!to)
		return false;
	s->count[IPOIB_PROBES_SENT]++;
	return dest_send(s, to, now, tx);
}

bool ipoib_next(struct ipoib *s, uint8_t *room, uint64_t now, struct ipoib_tx *tx)
{
	dest_forget_groups(s, now);
	while (!list_empty(&s->ready))
		if (dest_next_waiting(s, room, now, tx))
			return true;
	for (struct list *l = s->probing.next; l != &s->probing; l = l->next) {
		struct neigh *n = container_of(l, struct neigh, job);

		if (n->due > now)
			continue;
		tx->at = room;
		if (probe(s, n, now, tx))
			return true;
		l = &s->probing; /* a probe that was not sent may have left the list */
	}
	tx->at = room;
	return look(s, now, tx);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t ipoib_deadline(const struct ipoib *s)
{
	uint64_t first = list_empty(&s->ready) ? dest_group_deadline(s) : 0;

	first = sooner(first, seek_deadline(&s->looked_for));
	first = sooner(first, seek_deadline(&s->searched));

	for (const struct list *l = s->probing.next; l != &s->probing; l = l->next) {
		const struct neigh *n = container_of(l, struct neigh, job);

		first = sooner(first, n->due);
	}
	return first;
}

/* --- hosts of a bridge ------------------------------------------------------------------------ */

/* @return whether @p ip is the made-up source of our probes: no host waits for answers to it. */
static bool is_made_up(const struct ipoib *s, const uint8_t *ip, unsigned ip_len)
{
	return ip_len == 16 && !memcmp(ip, s->made_up, 16);
}

void probe_search(struct ipoib *s, const uint8_t gid[16], const uint8_t *ip, unsigned ip_len)
{
	if (inet_is_unicast(ip, ip_len) && !is_made_up(s, ip, ip_len))
		seek_add(&s->searched, &s->cfg.seed, hash_words(&s->cfg.seed, gid, 4), ip, ip_len);
}

static uint32_t search_by_arp(const struct ipoib *s, const uint8_t ip[4], uint8_t *frame)
{
	static const uint8_t unknown[6];
	struct arp a = {.op = ARP_REQUEST};

	memset(frame, 0xFF, 6);
	put_be16(frame + ETHER_TYPE, IPOIB_ARP);
	memcpy(a.target_ip, ip, 4);
	arp_write_eth(frame + ETHER_HLEN, &a, s->wire_mac, unknown);
	return ETHER_HLEN + ARP_ETH_LEN;
}

/* From an address that nobody has: from none it would be a claim (DAD). */
static uint32_t search_by_nd(struct ipoib *s, const uint8_t ip[16], uint8_t *frame)
{
	uint8_t group[16];

	nd_group_of(group, ip);
	frame[0] = frame[1] = 0x33;
	memcpy(frame + 2, group + 12, 4);
	put_be16(frame + ETHER_TYPE, IPOIB_IP6);
	nd_solicit(s->copy, s->made_up, ip, &s->cfg.own);
	return ETHER_HLEN + nd_write(frame + ETHER_HLEN, IPOIB_SEARCH_MAX - ETHER_HLEN, s->copy,
				    ND_ETH_UNITS, s->wire_mac);
}

/* The answer goes to the MAC by which peers know us, so that the bridge gives it to the netdev. */
bool ipoib_search(
	struct ipoib *s, uint8_t room[IPOIB_SEARCH_MAX], uint64_t now, struct ipoib_frame *frame)
{
	struct station_ip at;

	if (!seek_take(&s->searched, now, IPOIB_LOOK_NS, &at))
		return false;
	memcpy(room + ETHER_SRC, s->wire_mac, 6);
	frame->at = room;
	frame->len = at.len == 4 ? search_by_arp(s, at.ip, room) : search_by_nd(s, at.ip, room);
	return true;
}
