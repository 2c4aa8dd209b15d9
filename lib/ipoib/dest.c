/* SPDX-License-Identifier: BSD-3-Clause */
/* Destinations: entries of the table of neighbours, their states, and the packets that wait for an
 * address handle. */
#include "bits.h"
#include "ipoib_impl.h"

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

static void forget(struct ipoib *s, struct neigh *n)
{
	forget_packets(s, n);
	neigh_remove(&s->table, n);
}

static bool is_taken(struct ipoib *s, const uint8_t mac[6])
{
	return is_own(s, mac) || !memcmp(mac, s->wire_mac, 6) ||
	       station_has_mac(&s->stations, mac) || neigh_of_mac(&s->table, mac);
}

/* If another entry has that MAC, takes the next one. The entry that came first keeps its own,
 * because a peer can choose its GID so as to get the MAC of a host here. */
void dest_choose_mac(struct ipoib *s, uint8_t mac[6], const struct ipoib_addr *a)
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
		old = neigh_oldest(&s->table, group);
	if (old) {
		s->count[IPOIB_EVICTED]++;
		forget(s, old);
	}
	if (group)
		return neigh_add(&s->table, a, NULL);
	dest_choose_mac(s, mac, a);
	return neigh_add(&s->table, a, mac);
}

struct neigh *dest_peer(struct ipoib *s, const struct ipoib_addr *a)
{
	struct neigh *n = neigh_of_addr(&s->table, a);

	return n ? n : add(s, a, false);
}

struct neigh *dest_group(struct ipoib *s, const uint8_t mgid[16])
{
	struct ipoib_addr a = {.qpn = QPN_MULTICAST};
	struct neigh *n;

	memcpy(a.gid, mgid, 16);
	n = neigh_of_addr(&s->table, &a);
	return n ? n : add(s, &a, true);
}

uint64_t dest_group_deadline(const struct ipoib *s)
{
	const struct neigh *n = neigh_idlest_group(&s->table);

	return n ? n->touched + IPOIB_GROUP_NS : UINT64_MAX;
}

void dest_forget_groups(struct ipoib *s, uint64_t now)
{
	while (dest_group_deadline(s) <= now)
		forget(s, neigh_idlest_group(&s->table));
}

/* A packet is sent to @p n, which has a handle. A peer that has been silent for long is probed,
 * but only after DELAY, because an answer of the upper layers also proves that the peer is alive.
 * While other packets wait for @p n, its `job` is in the list of those to send. */
static void sending(struct ipoib *s, struct neigh *n, uint64_t now)
{
	n->sent = true;
	neigh_touch(&s->table, n, now);
	if (n->group || n->waiting || n->state == NEIGH_PROBE ||
		now - n->heard < IPOIB_REACHABLE_NS)
		return;
	set_state(n, NEIGH_PROBE);
	n->due = now + IPOIB_DELAY_NS;
	list_push(&s->probing, &n->job);
}

/* --- packets that wait ------------------------------------------------------------------------ */

/* Drops the oldest waiting packet, so that packets to peers that are never found leave room. */
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

bool dest_send(struct ipoib *s, struct neigh *n, uint64_t now, struct ipoib_tx *tx)
{
	tx->dest = (uint32_t)(n - s->table.entry);
	tx->qpn = n->addr.qpn;
	if (tx->len > s->cfg.mtu + IPOIB_HLEN)
		return drop(s, IPOIB_LONG);
	if (n->state == NEIGH_INCOMPLETE) { /* a station that claims it may never get a handle */
		neigh_touch(&s->table, n, now);
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

bool dest_next_waiting(struct ipoib *s, uint8_t *room, uint64_t now, struct ipoib_tx *tx)
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
	return dest_send(s, n, now, tx);
}
