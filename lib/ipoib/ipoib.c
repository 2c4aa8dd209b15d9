/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "arp.h"
#include "bits.h"
#include "inet.h"
#include "ipoib.h"
#include "nd.h"
#include "stations.h"

#define QPN_MULTICAST 0xFFFFFFu
#define QPN_FIRST     2u /* 0 and 1 are management's */

/** A packet that waits for an address handle. */
struct packet {
	struct list node; /* neigh.packets, or ipoib.spare */
	struct list age;  /* ipoib.waiting */
	struct neigh *to;
	uint32_t len;
	uint8_t data[IPOIB_PACKET_MAX];
};

struct ipoib {
	struct ipoib_config cfg;
	bool has_ip6;
	uint8_t ip6[16];	  /* the kernel's, as its last messages say */
	uint8_t wire_mac[6];	  /* by which peers know us */
	uint8_t made_up[16];	  /* link-local address that nobody has */
	uint64_t look_next;	  /* for the IP address of a packet to nobody, at the earliest */
	uint64_t search_next;	  /* likewise, for one of this side */
	struct station_ip wanted; /* that; len 0: none */
	struct list asks;	  /* neighs that need a handle */
	struct list ready;	  /* that got one, with packets */
	struct list probing;
	uint64_t count[IPOIB_COUNTS];
	struct list waiting; /* packets, the oldest first */
	struct list spare;
	struct packet packet[IPOIB_WAIT_ALL];
	struct neigh_table table;
	struct station_table stations;
	uint8_t copy[IPOIB_PACKET_MAX + IPOIB_TAIL]; /* of an ND message */
};

size_t ipoib_size(void)
{
	return sizeof(struct ipoib);
}

/* As RFC 4291, appendix A, makes one of a MAC. */
static void make_up_address(uint8_t ip[16], const uint8_t mac[6])
{
	put_be64(ip, 0xFE80ull << 48);
	memcpy(ip + 8, mac, 3);
	put_be16(ip + 11, 0xFFFE);
	memcpy(ip + 13, mac + 3, 3);
	ip[8] ^= 2;
}

struct ipoib *ipoib_init(void *room, const struct ipoib_config *cfg)
{
	struct ipoib *s = room;

	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	list_init(&s->asks);
	list_init(&s->ready);
	list_init(&s->probing);
	list_init(&s->waiting);
	list_init(&s->spare);
	for (unsigned i = 0; i < IPOIB_WAIT_ALL; i++) {
		list_init(&s->packet[i].age);
		list_push(&s->spare, &s->packet[i].node);
	}
	neigh_init(&s->table, &cfg->seed);
	neigh_mac(s->wire_mac, &cfg->own);
	make_up_address(s->made_up, s->wire_mac);
	station_init(&s->stations, &cfg->seed, cfg->mac);
	return s;
}

void ipoib_set_mac(struct ipoib *s, const uint8_t mac[6])
{
	memcpy(s->cfg.mac, mac, 6);
	station_set_own(&s->stations, mac);
}

static bool drop(struct ipoib *s, enum ipoib_count why)
{
	s->count[why]++;
	return false;
}

/* --- destinations -------------------------------------------------------------------------------
 */

/* The packet waits no longer. */
static void release(struct ipoib *s, struct packet *p)
{
	list_del(&p->age);
	list_del(&p->node);
	list_push(&s->spare, &p->node);
	p->to->waiting--;
}

static void forget_packets(struct ipoib *s, struct neigh *n)
{
	while (!list_empty(&n->packets))
		release(s, container_of(n->packets.next, struct packet, node));
}

static bool is_own(const struct ipoib *s, const uint8_t mac[6])
{
	return !memcmp(mac, s->cfg.mac, 6);
}

static bool is_taken(struct ipoib *s, const uint8_t mac[6])
{
	return is_own(s, mac) || !memcmp(mac, s->wire_mac, 6) ||
	       station_has_mac(&s->stations, mac) || neigh_of_mac(&s->table, mac);
}

/* A MAC that another has: the next. The one that came first keeps its own: a peer may choose its
 * GID for the MAC of a host here. */
static void choose_mac(struct ipoib *s, uint8_t mac[6], const struct ipoib_addr *a)
{
	neigh_mac(mac, a);
	while (is_taken(s, mac))
		put_be32(mac + 2,
			(get_be32(mac + 2) & 0xFF000000) | (get_be24(mac + 3) + 1) % (1u << 24));
}

static struct neigh *add(struct ipoib *s, const struct ipoib_addr *a, bool group)
{
	struct neigh *old = group ? NULL : neigh_surplus(&s->table, a->gid);
	uint8_t mac[6];

	if (!old)
		old = neigh_oldest(&s->table);
	if (old) {
		s->count[IPOIB_EVICTED]++;
		forget_packets(s, old);
		neigh_remove(&s->table, old);
	}
	if (group)
		return neigh_add(&s->table, a, NULL);
	choose_mac(s, mac, a);
	return neigh_add(&s->table, a, mac);
}

static struct neigh *group_of(struct ipoib *s, const uint8_t mgid[16])
{
	struct ipoib_addr a = {.qpn = QPN_MULTICAST};
	struct neigh *n;

	memcpy(a.gid, mgid, 16);
	n = neigh_of_addr(&s->table, &a);
	return n ? n : add(s, &a, true);
}

static void set_state(struct neigh *n, enum neigh_state state)
{
	list_del(&n->job);
	n->state = (uint8_t)state;
	n->probes = 0;
}

static void heard(struct neigh *n, uint64_t now)
{
	n->heard = now;
	if (n->state == NEIGH_STALE || n->state == NEIGH_PROBE)
		set_state(n, NEIGH_REACHABLE);
}

/* A packet is sent to @p n, which has a handle: if it was silent for long it is asked whether it is
 * still there. An answer of the upper layers is as good, so they get DELAY for one. While other
 * packets wait for it, its job is to send them. */
static void sending(struct ipoib *s, struct neigh *n, uint64_t now)
{
	n->sent = true;
	neigh_touch(&s->table, n);
	if (n->group || n->waiting || n->state == NEIGH_PROBE ||
		now - n->heard < IPOIB_REACHABLE_NS)
		return;
	set_state(n, NEIGH_PROBE);
	n->due = now + IPOIB_DELAY_NS;
	list_push(&s->probing, &n->job);
}

/* --- packets that wait
 * ---------------------------------------------------------------------------- */

/* Those that wait for peers that nobody finds leave no room to others: the oldest goes. */
static void make_room(struct ipoib *s)
{
	struct packet *oldest = container_of(s->waiting.next, struct packet, age);
	struct neigh *n = oldest->to;

	drop(s, IPOIB_QUEUE_FULL);
	release(s, oldest);
	if (!n->waiting && n->state != NEIGH_INCOMPLETE)
		list_del(&n->job); /* of ipoib.ready */
}

static bool enqueue(struct ipoib *s, struct neigh *n, const struct ipoib_tx *tx, uint64_t now)
{
	struct packet *p;

	if (n->due > now)
		return drop(s, IPOIB_UNRESOLVED);
	if (!n->asked && list_empty(&n->job))
		list_push(&s->asks, &n->job);
	if (n->waiting == IPOIB_WAIT_EACH)
		return drop(s, IPOIB_QUEUE_FULL);
	if (list_empty(&s->spare))
		make_room(s);
	p = container_of(list_pop(&s->spare), struct packet, node);
	memcpy(p->data, tx->at, tx->len);
	p->len = tx->len;
	p->to = n;
	list_push(&s->waiting, &p->age);
	list_push(&n->packets, &p->node);
	n->waiting++;
	return false;
}

static bool send_to(struct ipoib *s, struct neigh *n, uint64_t now, struct ipoib_tx *tx)
{
	tx->dest = (uint32_t)(n - s->table.entry);
	tx->qpn = n->addr.qpn;
	if (tx->len > s->cfg.mtu + IPOIB_HLEN)
		return drop(s, IPOIB_LONG);
	if (n->state == NEIGH_INCOMPLETE) { /* whoever claims to be there may have no handle ever */
		neigh_touch(&s->table, n);
		return enqueue(s, n, tx, now);
	}
	sending(s, n, now);
	s->count[n->group ? IPOIB_TX_GROUP : IPOIB_TX]++;
	return true;
}

bool ipoib_ask(struct ipoib *s, struct ipoib_ask *ask)
{
	struct list *l = list_pop(&s->asks);
	struct neigh *n;

	if (!l)
		return false;
	n = container_of(l, struct neigh, job);
	n->asked = true;
	ask->dest = (uint32_t)(n - s->table.entry);
	ask->serial = n->serial;
	memcpy(ask->gid, n->addr.gid, 16);
	ask->group = n->group;
	return true;
}

bool ipoib_resolved(struct ipoib *s, uint32_t dest, uint32_t serial, bool ok, uint64_t now)
{
	struct neigh *n = &s->table.entry[dest];

	if (!n->used || n->serial != serial)
		return false;
	n->asked = false;
	if (!ok) {
		s->count[IPOIB_UNRESOLVED] += n->waiting;
		forget_packets(s, n);
		n->due = now + IPOIB_RETRY_NS;
		return true;
	}
	set_state(n, NEIGH_REACHABLE);
	n->due = 0;
	if (n->waiting)
		list_push(&s->ready, &n->job);
	return true;
}

static bool next_waiting(struct ipoib *s, uint8_t *room, uint64_t now, struct ipoib_tx *tx)
{
	struct neigh *n;
	struct packet *p;

	if (list_empty(&s->ready))
		return false;
	n = container_of(s->ready.next, struct neigh, job);
	p = container_of(n->packets.next, struct packet, node);
	tx->at = room;
	tx->len = p->len;
	memcpy(room, p->data, p->len);
	release(s, p);
	if (!n->waiting)
		list_del(&n->job);
	return send_to(s, n, now, tx);
}

/* --- asking a peer again (IPB-16)
 * ----------------------------------------------------------------- */

/* Without an IP address of this host (RFC 5227 2.1.1): the peer answers whatever networks it and
 * the kernel have here, and nobody learns an address that may be another host's by now. */
static struct neigh *arp_probe(struct ipoib *s, const uint8_t ip[4], struct ipoib_tx *tx)
{
	static const uint8_t everybody[4] = {0xFF, 0xFF, 0xFF, 0xFF};
	static const struct ipoib_addr unknown;
	struct arp a = {.op = ARP_REQUEST};
	uint8_t mgid[16];

	memcpy(a.target_ip, ip, 4);
	ipoib_header_put(tx->at, IPOIB_ARP);
	arp_write_ipoib(tx->at + IPOIB_HLEN, &a, &s->cfg.own, &unknown);
	tx->len = IPOIB_HLEN + ARP_IPOIB_LEN;
	ipoib_mgid_of_ip4(mgid, s->cfg.pkey, s->cfg.scope, everybody);
	return group_of(s, mgid);
}

/* From an address that ND has claimed here: the peer takes it to be at our link-layer address (RFC
 * 4861 7.2.3). Without one from an address that nobody has: from none it would be a claim of the
 * peer's (DAD). */
static struct neigh *nd_probe(struct ipoib *s, const uint8_t ip[16], struct ipoib_tx *tx)
{
	const uint8_t *source = s->has_ip6 ? s->ip6 : s->made_up;
	uint8_t mgid[16], group[16];

	ipoib_header_put(tx->at, IPOIB_IP6);
	tx->len = IPOIB_HLEN + nd_solicit(tx->at + IPOIB_HLEN, source, ip, &s->cfg.own);
	nd_group_of(group, ip);
	ipoib_mgid_of_ip6(mgid, s->cfg.pkey, s->cfg.scope, group);
	return group_of(s, mgid);
}

/* By broadcast, or to the group of its address: a unicast would go to a QP that is gone. In turns
 * by both families and for each address: a peer may have lost some, or be a bridge, whose hosts
 * come and go. */
static struct neigh *write_probe(struct ipoib *s, struct neigh *n, struct ipoib_tx *tx)
{
	bool nd = n->nip6 && s->has_ip6;

	if (n->nip4 && (n->probes & 1 || !nd))
		return arp_probe(s, n->ip4[n->asked4++ % n->nip4], tx);
	return nd ? nd_probe(s, n->ip6[n->asked6++ % n->nip6], tx) : NULL;
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
	to = write_probe(s, n, tx);
	if (!to)
		return false;
	s->count[IPOIB_PROBES_SENT]++;
	return send_to(s, to, now, tx);
}

bool ipoib_next(struct ipoib *s, uint8_t *room, uint64_t now, struct ipoib_tx *tx)
{
	while (!list_empty(&s->ready))
		if (next_waiting(s, room, now, tx))
			return true;
	for (struct list *l = s->probing.next; l != &s->probing; l = l->next) {
		struct neigh *n = container_of(l, struct neigh, job);

		if (n->due > now)
			continue;
		tx->at = room;
		if (probe(s, n, now, tx))
			return true;
		l = &s->probing; /* the list may be another: its group took a place */
	}
	return false;
}

uint64_t ipoib_deadline(const struct ipoib *s)
{
	uint64_t first = list_empty(&s->ready) ? UINT64_MAX : 0;

	for (const struct list *l = s->probing.next; l != &s->probing; l = l->next) {
		const struct neigh *n = container_of(l, struct neigh, job);

		first = n->due < first ? n->due : first;
	}
	return first;
}

/* --- from the kernel
 * ------------------------------------------------------------------------------ */

static bool is_group(const uint8_t mac[6])
{
	return mac[0] & 1;
}

/* An IP version that the type says, and a whole header. */
static bool is_ip(const uint8_t *ip, uint32_t len, uint16_t type)
{
	if (type == IPOIB_IP4)
		return len >= IP4_HLEN && ip[0] >> 4 == 4;
	return len >= IP6_HLEN && ip[0] >> 4 == 6;
}

/* The group of a frame, by its IP destination; that of ARP and of IPv4's broadcasts is everybody's.
 */
static void group_of_frame(
	const struct ipoib *s, uint16_t type, const uint8_t *packet, uint8_t mgid[16])
{
	static const uint8_t everybody[4] = {0xFF, 0xFF, 0xFF, 0xFF};

	if (type == IPOIB_IP6 && packet[24] == 0xFF)
		ipoib_mgid_of_ip6(mgid, s->cfg.pkey, s->cfg.scope, packet + 24);
	else if (type == IPOIB_IP4 && packet[16] >> 4 == 0xE)
		ipoib_mgid_of_ip4(mgid, s->cfg.pkey, s->cfg.scope, packet + 16);
	else
		ipoib_mgid_of_ip4(mgid, s->cfg.pkey, s->cfg.scope, everybody);
}

static struct neigh *destination(
	struct ipoib *s, const uint8_t *mac, uint16_t type, const uint8_t *packet)
{
	uint8_t mgid[16];

	if (!is_group(mac))
		return neigh_of_mac(&s->table, mac);
	group_of_frame(s, type, packet, mgid);
	return group_of(s, mgid);
}

static bool is_zero(const uint8_t *p, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* A bridge gives back what came from the wire, over another link: this ends the loop. Peers may
 * know us by the QPN of an earlier session. */
static bool is_of_the_wire(struct ipoib *s, const uint8_t mac[6])
{
	return !memcmp(mac, s->wire_mac, NEIGH_MAC_GID) || neigh_of_mac(&s->table, mac);
}

/* By the MAC that the frame came from, which the bridge knows the way to, not that in the message.
 */
static void claim_here(struct ipoib *s, const uint8_t mac[6], const uint8_t *ip, unsigned ip_len)
{
	s->count[IPOIB_DISPLACED] += station_claim(&s->stations, mac, ip, ip_len);
	/* Probes come from an address of the netdev's own host, if it has one. */
	if (ip_len == 16 && (is_own(s, mac) || !s->has_ip6)) {
		memcpy(s->ip6, ip, 16);
		s->has_ip6 = true;
	}
}

static void seen_here(struct ipoib *s, const uint8_t mac[6], const uint8_t *ip, unsigned ip_len)
{
	s->count[IPOIB_DISPLACED] += station_seen(&s->stations, mac, ip, ip_len);
}

/* An ARP message; a probe tells the address that its sender looks for duplicates of (RFC 5227
 * 2.1.1). */
static void arp_seen(struct ipoib *s, const uint8_t mac[6], const uint8_t *arp)
{
	bool is_probe = is_zero(arp + ARP_ETH_SENDER_IP, 4);

	seen_here(s, mac, arp + (is_probe ? ARP_ETH_TARGET_IP : ARP_ETH_SENDER_IP), 4);
}

/* A frame that may be of another host on the bridge that the netdev is a port of. */
static bool from_bridge(struct ipoib *s, const uint8_t *frame, uint32_t len, uint16_t type)
{
	const uint8_t *src = frame + ETHER_SRC, *ip = frame + ETHER_HLEN;

	if (!is_own(s, src) && is_of_the_wire(s, src))
		return drop(s, IPOIB_LOOPED);
	if (type == IPOIB_IP4)
		seen_here(s, src, ip + IP4_SRC, 4);
	else if (type == IPOIB_IP6)
		seen_here(s, src, ip + IP6_SRC, 16);
	else if (type == IPOIB_ARP && len >= ETHER_HLEN + ARP_ETH_LEN)
		arp_seen(s, src, ip);
	return true;
}

static bool is_unicast(const uint8_t *ip, unsigned ip_len)
{
	return !is_zero(ip, ip_len) && (ip_len == 4 ? ip[0] < 0xE0 : ip[0] != 0xFF);
}

/* Translates into the frame's own place: it grows by 18 octets less than it had of Ethernet. */
static bool arp_out(struct ipoib *s, uint8_t *frame, uint32_t len, struct ipoib_tx *tx)
{
	struct ipoib_addr target = {0};
	uint8_t sender[6], mac[6];
	const struct neigh *n;
	struct arp a;

	if (!arp_read_eth(&a, frame + ETHER_HLEN, len - ETHER_HLEN, sender, mac))
		return drop(s, IPOIB_BAD_ARP);
	n = neigh_of_mac(&s->table, mac);
	if (n)
		target = n->addr;
	else if (!memcmp(mac, sender, 6)) /* it announces itself */
		target = s->cfg.own;
	claim_here(s, frame + ETHER_SRC, a.sender_ip, 4);
	arp_write_ipoib(tx->at + IPOIB_HLEN, &a, &s->cfg.own, &target);
	tx->len = IPOIB_HLEN + ARP_IPOIB_LEN;
	return true;
}

static bool nd_out(struct ipoib *s, uint8_t *ip6, uint32_t len, struct ipoib_tx *tx)
{
	const uint8_t *src = ip6 - ETHER_HLEN + ETHER_SRC;
	uint8_t addr[IPOIB_LLADDR_LEN];
	uint32_t n;
	struct nd nd;

	if (len > IPOIB_MTU_MAX)
		return drop(s, IPOIB_LONG);
	if (!nd_read(&nd, ip6, len, ND_ETH_UNITS))
		return drop(s, IPOIB_BAD_ND);
	if (nd.type == ND_NEIGHBOUR_ADVERT)
		claim_here(s, src, nd.target, 16);
	else if (nd.type == ND_NEIGHBOUR_SOLICIT && is_zero(ip6 + IP6_SRC, 16))
		seen_here(s, src, nd.target, 16); /* it looks for duplicates */
	else if (nd.type == ND_NEIGHBOUR_SOLICIT && nd.source)
		claim_here(s, src, ip6 + IP6_SRC, 16);
	ipoib_addr_put(addr, &s->cfg.own);
	n = nd_write(s->copy, sizeof(s->copy), ip6, IPOIB_ND_UNITS, addr);
	memcpy(ip6, s->copy, n);
	tx->len = IPOIB_HLEN + n;
	return true;
}

/* A packet to a MAC that no peer has is lost. A host on a bridge may have learned that MAC before
 * this session began, and not ask again for half a minute: its IP address is asked for here, in
 * place of the packet; but not one of this side, which the bridge does not know the way to. The
 * packet's source is not used: it may be any, and would become a claim. */
static bool look_for(
	struct ipoib *s, uint8_t *frame, uint16_t type, uint64_t now, struct ipoib_tx *tx)
{
	unsigned ip_len = type == IPOIB_IP6 ? 16 : 4;
	uint8_t ip[16];

	if (!memcmp(frame, s->wire_mac, 6)) /* the answer to a search: it has been seen */
		return false;
	drop(s, IPOIB_NO_NEIGH);
	if ((type != IPOIB_IP6 && type != IPOIB_IP4) || now < s->look_next)
		return false;
	memcpy(ip, frame + ETHER_HLEN + (ip_len == 16 ? IP6_DST : IP4_DST), ip_len);
	if (!is_unicast(ip, ip_len) || station_mac(&s->stations, ip, ip_len))
		return false;
	s->look_next = now + IPOIB_LOOK_NS;
	s->count[IPOIB_PROBES_SENT]++;
	tx->at = frame;
	return send_to(s, ip_len == 16 ? nd_probe(s, ip, tx) : arp_probe(s, ip, tx), now, tx);
}

bool ipoib_from_kernel(
	struct ipoib *s, uint8_t *frame, uint32_t len, uint64_t now, struct ipoib_tx *tx)
{
	uint8_t *packet = frame + ETHER_HLEN;
	struct neigh *n;
	uint8_t dst[6];
	uint16_t type;
	bool arp;

	if (len < ETHER_HLEN)
		return drop(s, IPOIB_SHORT);
	type = get_be16(frame + ETHER_TYPE);
	arp = type == IPOIB_ARP || type == IPOIB_RARP;
	if (!ipoib_type_known(type))
		return drop(s, IPOIB_TYPE);
	if (!arp && !is_ip(packet, len - ETHER_HLEN, type))
		return drop(s, IPOIB_BAD_IP);
	if ((!is_own(s, frame + ETHER_SRC) || s->stations.others) &&
		!from_bridge(s, frame, len, type))
		return false;
	memcpy(dst, frame, 6);
	n = destination(s, dst, type, packet);
	if (!n)
		return look_for(s, frame, type, now, tx);
	*tx = (struct ipoib_tx){.at = packet - IPOIB_HLEN, .len = len - ETHER_HLEN + IPOIB_HLEN};
	if (arp && !arp_out(s, frame, len, tx))
		return false;
	if (type == IPOIB_IP6 && nd_is(packet, len - ETHER_HLEN) &&
		!nd_out(s, packet, len - ETHER_HLEN, tx))
		return false;
	ipoib_header_put(tx->at, type);
	return send_to(s, n, now, tx);
}

/* --- from the wire
 * -------------------------------------------------------------------------------- */

/** A datagram that is being taken. */
struct arrival {
	struct ipoib_addr from;
	uint8_t to[16]; /* GID of this netdev's QP, or of a group */
	bool group;	/* that */
	uint64_t now;
	uint8_t *packet;
	uint32_t len;	/* of the packet */
	uint8_t mac[6]; /* of the sender, for the kernel */
};

/* The addresses of the IP header or GRH (IPB-15, A17.4.5.2). Stored by halves: narrower stores
 * would hold up the loads of the comparisons that follow. */
static void read_area(struct arrival *a, const struct ipoib_rx *rx)
{
	a->from.qpn = rx->src_qp;
	if (rx->ip4) {
		put_be64(a->from.gid, 0);
		put_be64(a->from.gid + 8, 0xFFFFull << 32 | get_be32(rx->area + 32));
		put_be64(a->to, 0);
		put_be64(a->to + 8, 0xFFFFull << 32 | get_be32(rx->area + 36));
		a->group = rx->area[36] >> 4 == 0xE;
	} else {
		memcpy(a->from.gid, rx->area + 8, 16);
		memcpy(a->to, rx->area + 24, 16);
		a->group = a->to[0] == 0xFF;
	}
}

static bool is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80;
}

/* The link is that of the netdev's GID: its VLAN, and as it is link-local, nobody beyond a router.
 * The QP itself takes datagrams to any GID of its port. */
static bool is_on_link(const struct ipoib *s, const struct arrival *a, const struct ipoib_rx *rx)
{
	const uint8_t *own = s->cfg.own.gid;

	return rx->vid == s->cfg.vid && (a->group || !memcmp(a->to, own, 16)) &&
	       (!is_link_local(own) || is_link_local(a->from.gid));
}

static struct neigh *known(struct ipoib *s, const struct ipoib_addr *said)
{
	struct neigh *n = neigh_of_addr(&s->table, said);

	return n ? n : add(s, said, false);
}

/* The kernel's answer goes to the MAC of @p n. */
static void heard_of(struct ipoib *s, struct arrival *a, struct neigh *n)
{
	neigh_touch(&s->table, n);
	heard(n, a->now);
	memcpy(a->mac, n->mac, 6);
}

/* The sender claims @p ip in an ARP or ND message. If it had another QPN when it did so before, it
 * has restarted: the kernel keeps the MAC that it knows (IPB-16), and also the one under which the
 * new QPN claimed other addresses meanwhile. */
static void claim(struct ipoib *s, struct arrival *a, const struct ipoib_addr *said,
	const uint8_t *ip, unsigned ip_len)
{
	struct neigh *n = neigh_of_ip(&s->table, said->gid, ip, ip_len);

	/* It may have moved there: not announced, nor a duplicate again, before it is used here. */
	s->count[IPOIB_DUPLICATE] += station_doubt(&s->stations, ip, ip_len);
	if (ip_len == 16 && !memcmp(ip, s->ip6, 16))
		s->has_ip6 = false;
	if (n && n->addr.qpn != said->qpn) {
		s->count[IPOIB_RESTARTED]++;
		neigh_rebind(n, said->qpn);
	} else if (!n) {
		n = known(s, said);
	}
	neigh_claim(n, ip, ip_len);
	heard_of(s, a, n);
}

/* A message about another port than its datagram's is forged. The QPN is the one that
 * replies go to (IPB-06); datagrams may leave another. */
static bool may_claim(struct ipoib *s, const struct arrival *a, const struct ipoib_addr *said)
{
	if (memcmp(said->gid, a->from.gid, 16) != 0 || said->qpn < QPN_FIRST ||
		said->qpn == QPN_MULTICAST)
		return drop(s, IPOIB_FORGED);
	return true;
}

/* Answers to a probe from there are for nobody. */
static bool is_made_up(const struct ipoib *s, const uint8_t *ip, unsigned ip_len)
{
	return ip_len == 16 && !memcmp(ip, s->made_up, 16);
}

/* The MAC of an IP address of this side; that of the netdev if none is known. */
static const uint8_t *local_mac(struct ipoib *s, const uint8_t *ip, unsigned ip_len)
{
	const uint8_t *mac;

	if (!s->stations.others)
		return s->cfg.mac;
	mac = station_mac(&s->stations, ip, ip_len);
	if (mac)
		return mac;
	if (!s->wanted.len && is_unicast(ip, ip_len) && !is_made_up(s, ip, ip_len)) {
		s->wanted.len = ip_len;
		memcpy(s->wanted.ip, ip, ip_len);
	}
	return s->cfg.mac;
}

static uint32_t search_by_arp(const struct ipoib *s, uint8_t *frame)
{
	static const uint8_t unknown[6];
	struct arp a = {.op = ARP_REQUEST};

	memset(frame, 0xFF, 6);
	put_be16(frame + ETHER_TYPE, IPOIB_ARP);
	memcpy(a.target_ip, s->wanted.ip, 4);
	arp_write_eth(frame + ETHER_HLEN, &a, s->wire_mac, unknown);
	return ETHER_HLEN + ARP_ETH_LEN;
}

/* From an address that nobody has: from none it would be a claim (DAD). */
static uint32_t search_by_nd(struct ipoib *s, uint8_t *frame)
{
	uint8_t group[16];

	nd_group_of(group, s->wanted.ip);
	frame[0] = frame[1] = 0x33;
	memcpy(frame + 2, group + 12, 4);
	put_be16(frame + ETHER_TYPE, IPOIB_IP6);
	nd_solicit(s->copy, s->made_up, s->wanted.ip, &s->cfg.own);
	return ETHER_HLEN + nd_write(frame + ETHER_HLEN, IPOIB_SEARCH_MAX - ETHER_HLEN, s->copy,
				    ND_ETH_UNITS, s->wire_mac);
}

/* The answer goes to the MAC by which peers know us, so that the bridge gives it to the netdev. */
bool ipoib_search(
	struct ipoib *s, uint8_t room[IPOIB_SEARCH_MAX], uint64_t now, struct ipoib_frame *frame)
{
	if (!s->wanted.len || now < s->search_next)
		return false;
	s->search_next = now + IPOIB_LOOK_NS;
	memcpy(room + ETHER_SRC, s->wire_mac, 6);
	frame->at = room;
	frame->len = s->wanted.len == 4 ? search_by_arp(s, room) : search_by_nd(s, room);
	s->wanted.len = 0;
	return true;
}

static bool arp_in(struct ipoib *s, struct arrival *a, uint32_t *len)
{
	struct ipoib_addr sender, target;
	uint8_t mac[6] = {0};
	struct arp arp;

	if (!arp_read_ipoib(&arp, a->packet, a->len, &sender, &target))
		return drop(s, IPOIB_BAD_ARP);
	if (!may_claim(s, a, &sender))
		return false;
	/* A probe (RFC 5227) claims nothing but is answered. */
	if (is_zero(arp.sender_ip, 4))
		heard_of(s, a, known(s, &sender));
	else
		claim(s, a, &sender, arp.sender_ip, 4);
	if (ipoib_addr_same(&target, &s->cfg.own))
		memcpy(mac, local_mac(s, arp.target_ip, 4), 6);
	arp_write_eth(a->packet, &arp, a->mac, mac);
	*len = ARP_ETH_LEN;
	return true;
}

static bool nd_in(struct ipoib *s, struct arrival *a, uint32_t *len)
{
	static const uint8_t unspecified[16];
	struct ipoib_addr said;
	const uint8_t *lladdr;
	uint8_t *ip6 = a->packet;
	struct nd nd;

	if (!nd_read(&nd, ip6, a->len, IPOIB_ND_UNITS))
		return drop(s, IPOIB_BAD_ND);
	lladdr = nd.type == ND_NEIGHBOUR_ADVERT ? nd.dest : nd.source;
	if (lladdr) {
		ipoib_addr_get(&said, lladdr);
		if (!may_claim(s, a, &said))
			return false;
		if (nd.type == ND_NEIGHBOUR_ADVERT)
			claim(s, a, &said, nd.target, 16);
		else if (memcmp(ip6 + 8, unspecified, 16) != 0)
			claim(s, a, &said, ip6 + 8, 16);
	}
	*len = nd_write(s->copy, sizeof(s->copy), ip6, ND_ETH_UNITS, a->mac);
	if (!*len)
		return drop(s, IPOIB_LONG);
	memcpy(ip6, s->copy, *len);
	return true;
}

/* The MAC that a datagram to our QP is for. The answer to a probe for duplicates (RFC 5227) does
 * not name whom it is for: anybody here may have asked, if there is more than the netdev's host. */
static const uint8_t *destination_here(struct ipoib *s, const uint8_t *packet, uint16_t type)
{
	static const uint8_t everybody[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

	if (type == IPOIB_IP6)
		return local_mac(s, packet + IP6_DST, 16);
	if (type == IPOIB_IP4)
		return local_mac(s, packet + IP4_DST, 4);
	packet += ARP_ETH_TARGET_IP;
	if (is_zero(packet, 4) && s->stations.others)
		return everybody;
	return local_mac(s, packet, 4);
}

/* Groups' MACs are those of Ethernet: RFC 1112 6.4, RFC 2464 7. */
static void ethernet(struct ipoib *s, const struct arrival *a, uint16_t type)
{
	uint8_t *eth = a->packet - ETHER_HLEN;

	if (!a->group) {
		memcpy(eth, destination_here(s, a->packet, type), 6);
	} else if (type == IPOIB_IP6 && a->packet[24] == 0xFF) {
		eth[0] = eth[1] = 0x33;
		memcpy(eth + 2, a->packet + 36, 4);
	} else if (type == IPOIB_IP4 && a->packet[16] >> 4 == 0xE) {
		put_be32(eth, 0x01005E00);
		memcpy(eth + 3, a->packet + 17, 3);
		eth[3] &= 0x7F;
	} else {
		memset(eth, 0xFF, 6);
	}
	memcpy(eth + 6, a->mac, 6);
	put_be16(eth + ETHER_TYPE, type);
}

/* The MAC of the sender: that of its entry, which may be one of a QPN before, or its own. */
static void name_sender(struct ipoib *s, struct arrival *a)
{
	struct neigh *n = neigh_of_addr(&s->table, &a->from);

	if (!n) {
		choose_mac(s, a->mac, &a->from);
		return;
	}
	memcpy(a->mac, n->mac, 6);
	for (; n; n = neigh_another(&s->table, n))
		heard(n, a->now);
}

static bool translate(struct ipoib *s, struct arrival *a, uint16_t type, uint32_t *len)
{
	*len = a->len;
	if (type == IPOIB_ARP || type == IPOIB_RARP)
		return arp_in(s, a, len);
	if (!is_ip(a->packet, a->len, type))
		return drop(s, IPOIB_BAD_IP);
	if (type == IPOIB_IP6 && nd_is(a->packet, a->len))
		return nd_in(s, a, len);
	if (type == IPOIB_IP6 && nd_after_headers(a->packet, a->len))
		return drop(s, IPOIB_BAD_ND);
	return true;
}

bool ipoib_from_wire(
	struct ipoib *s, const struct ipoib_rx *rx, uint64_t now, struct ipoib_frame *frame)
{
	struct arrival a = {.now = now, .packet = rx->area + IPOIB_GRH_AREA + IPOIB_HLEN};
	uint16_t type;
	uint32_t len;

	if (rx->len < IPOIB_GRH_AREA + IPOIB_HLEN)
		return drop(s, IPOIB_SHORT);
	a.len = rx->len - IPOIB_GRH_AREA - IPOIB_HLEN;
	read_area(&a, rx);
	if (!is_on_link(s, &a, rx))
		return drop(s, IPOIB_OFF_LINK);
	type = get_be16(rx->area + IPOIB_GRH_AREA); /* reserved bits are ignored: IPB-01 */
	if (!ipoib_type_known(type))
		return drop(s, IPOIB_TYPE);
	if (a.len > s->cfg.mtu)
		return drop(s, IPOIB_LONG);
	if (ipoib_addr_same(&a.from, &s->cfg.own))
		return drop(s, IPOIB_OWN);
	name_sender(s, &a);
	if (!translate(s, &a, type, &len))
		return false;
	ethernet(s, &a, type);
	*frame = (struct ipoib_frame){.at = a.packet - ETHER_HLEN, .len = ETHER_HLEN + len};
	s->count[IPOIB_RX]++;
	return true;
}

/* --- for administrators
 * --------------------------------------------------------------------------- */

void ipoib_count(struct ipoib *s, enum ipoib_count c)
{
	s->count[c]++;
}

const uint64_t *ipoib_counts(const struct ipoib *s)
{
	return s->count;
}

const char *ipoib_count_name(enum ipoib_count c)
{
	static const char *const name[] = {
		[IPOIB_TX] = "tx",
		[IPOIB_TX_GROUP] = "tx_group",
		[IPOIB_RX] = "rx",
		[IPOIB_SHORT] = "short",
		[IPOIB_TYPE] = "type",
		[IPOIB_LONG] = "too_long",
		[IPOIB_BAD_IP] = "bad_ip",
		[IPOIB_BAD_ARP] = "bad_arp",
		[IPOIB_BAD_ND] = "bad_nd",
		[IPOIB_FORGED] = "forged",
		[IPOIB_OFF_LINK] = "off_link",
		[IPOIB_OWN] = "own",
		[IPOIB_NO_NEIGH] = "no_neighbour",
		[IPOIB_UNRESOLVED] = "unresolved",
		[IPOIB_QUEUE_FULL] = "queue_full",
		[IPOIB_PROBES_SENT] = "probes",
		[IPOIB_RESTARTED] = "restarted",
		[IPOIB_DUPLICATE] = "duplicate",
		[IPOIB_EVICTED] = "evicted",
		[IPOIB_DISPLACED] = "displaced",
		[IPOIB_LOOPED] = "looped",
		[IPOIB_CUT] = "cut",
		[IPOIB_MERGED] = "merged",
		[IPOIB_BAD_OFFLOAD] = "bad_offload",
	};

	return name[c];
}

uint32_t ipoib_neighs(const struct ipoib *s)
{
	return s->table.n;
}

const struct neigh *ipoib_neigh(const struct ipoib *s, uint32_t i)
{
	return &s->table.entry[i];
}

uint32_t ipoib_bridged(const struct ipoib *s)
{
	return s->stations.others;
}

const struct station_table *ipoib_stations(const struct ipoib *s)
{
	return &s->stations;
}
