/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Explains why the peer does not respond. The sender alone cannot know the reason, but it can find
 * or exclude many: first certain ones (packets that arrived and were dropped here, a link that is
 * down, a peer in the same daemon), then likely ones (packets too large for the path), then a list
 * of the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "abi_names.h"
#include "abi_wqe.h"
#include "address.h"
#include "bits.h"
#include "cause.h"
#include "config/ctl_parts.h"
#include "diagnose/diagnosis.h"
#include "drop_log.h"
#include "headers.h"
#include "net/gids.h"
#include "net/neigh.h"
#include "net/net.h"
#include "net/netport.h"
#include "opcode.h"
#include "path.h"
#include "qp.h"
#include "session/session.h"
#include "text/sentence.h"
#include "verbs/dest.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

/* IP, UDP, BTH, RETH, immediate data and ICRC around the payload of the longest RC packet. */
#define OVER_IP4  (IP4_HLEN + UDP_HLEN + BTH_HLEN + RETH_LEN + IMMDT_LEN + ICRC_LEN)
#define OVER_IP6  (IP6_HLEN + UDP_HLEN + BTH_HLEN + RETH_LEN + IMMDT_LEN + ICRC_LEN)
#define ICMP_HLEN 8
/* The largest path MTU that fits the usual Ethernet MTU of 1500. */
#define COMMON_MTU 1024u
/* A QP may fail before rocid notices that its frames were refused; recently refused frames of
 * other QPs give the reason. */
#define JUST_BEFORE_MS 10000u

static const struct abi_ah_attr *av(const struct diagnosis *c)
{
	return &c->qp->attr.ah;
}

static const struct netport *port_of(const struct diagnosis *c)
{
	return &c->ctl->net->port[c->qp->path.port];
}

static void say_request(struct diagnosis *c)
{
	char gid[GID_TEXT];

	sentence_add(&c->t, "no response from QP %u of %s; retry_cnt (%u) is used up. ",
		c->qp->attr.dest_qpn, gid_text(av(c)->dgid, gid), c->qp->attr.retry_cnt);
}

/* --- certain reasons -------------------------------------------------------------------- */

/* The longest time that all retries can take, in ns. */
static uint64_t retries_ns(const struct diagnosis *c)
{
	return (c->qp->attr.retry_cnt + 2ull) * 4 * c->qp->ack_timeout;
}

/* Excludes packets that were dropped long before the retries. */
static bool of_these_retries(const struct diagnosis *c, const struct drop_note *n)
{
	return n->time + retries_ns(c) >= c->n->time;
}

/* Any host may send to a QPN, so a request with a wrong address or PSN counts only if it comes from
 * the peer's address. A response answers what this QP sent, whatever its source. */
static bool of_the_peer(const struct diagnosis *c, const struct drop_note *n)
{
	return of_these_retries(c, n) &&
	       (opcode_row(n->opcode)->response || !memcmp(n->sgid, av(c)->dgid, 16));
}

/* The peer's packets arrived, and were dropped here. */
static bool dropped_here(struct diagnosis *c)
{
	char text[ABI_WHY_MAX];
	struct sentence t = {.text = text};
	struct drop_note n;
	enum drop why;

	if (!drop_of_qp(c->ctl, c->o, true, of_the_peer, c, &why, &n))
		return false;
	diagnose_drop(&t, c->ctl, c->o, why, &n);
	sentence_add(&c->t, "Packets for this QP arrived and were dropped here: %s", text);
	c->rule = drop_rule(why);
	return true;
}

/* A program must not learn which QPs other users have. */
static bool may_hear_of(const struct qp_obj *o, uid_t uid)
{
	uid_t own = o->session->peer.uid;

	return !own || own == uid;
}

bool diagnose_rival(struct sentence *t, const struct qp_obj *o)
{
	const struct qp_obj *rival = dest_rival(o);
	uint32_t dest_qpn = o->qp->attr.dest_qpn;

	if (!rival)
		return false;
	if (may_hear_of(o, rival->session->peer.uid))
		sentence_add(t, "QP %u", rival->qpn);
	else
		sentence_add(t, "A QP of another user");
	sentence_add(t,
		" of this rocid has the same dest_qp_num (%u), but the peer's QP is connected to "
		"only one of them and sends all responses to that one. Give each QP its own peer",
		dest_qpn);
	return true;
}

static bool rival(struct diagnosis *c)
{
	if (c->n->heard || !diagnose_rival(&c->t, c->o))
		return false;
	c->rule = "BTH-12";
	return true;
}

/* Packet loss cannot explain ACKs from before the first request: the peer considers our requests
 * duplicates of old ones. Which PSN it acknowledges depends on the implementation. */
bool diagnose_old_acks(struct sentence *t, const struct qp *qp)
{
	uint32_t n = __atomic_load_n(&qp->why.old_acks, __ATOMIC_RELAXED);

	if (!n || qp_heard(qp))
		return false;
	sentence_add(t,
		"The peer responds with old ACKs (%u, the latest of PSN 0x%x) that precede the "
		"first request, 0x%x: it considers the requests duplicates, because sq_psn here "
		"and the peer's rq_psn differ; set both to the same value",
		n, __atomic_load_n(&qp->why.old_ack_psn, __ATOMIC_RELAXED), qp->why.sq_psn);
	return true;
}

static bool old_acks(struct diagnosis *c)
{
	if (!diagnose_old_acks(&c->t, c->qp))
		return false;
	c->rule = "REQ-37";
	return true;
}

static bool port_down(struct diagnosis *c)
{
	const struct netport *p = port_of(c);

	if (p->up)
		return false;
	c->rule = "GID-08";
	if (c->ctl->net->disabled[p->index]) {
		sentence_add(&c->t,
			"Port %u was set down by an administrator (set port %u down): it neither "
			"receives nor sends until `rocictl set port %u up`",
			p->index + 1, p->index + 1, p->index + 1);
		return true;
	}
	sentence_add(&c->t, "Port %u%s%s is down: %s", p->index + 1,
		p->netdev[0] ? ", netdev " : "", p->netdev,
		c->ctl->net->closed[p->index] ? "rocid could not reopen it; its log has the reason"
					      : "bring its link up");
	return true;
}

static const struct gid_entry *own_gid(const struct diagnosis *c)
{
	const struct gid_hold *h = &c->o->hold;

	return h->gids ? &h->gids->table.entry[h->index] : NULL;
}

static bool gid_removed(struct diagnosis *c)
{
	const struct gid_entry *e = own_gid(c);
	char gid[GID_TEXT];

	if (!e || e->valid)
		return false;
	sentence_add(&c->t,
		"The QP's own GID %s was removed: add the address to netdev %s again, or reconnect "
		"the QP with another GID",
		gid_text(e->gid, gid), port_of(c)->netdev);
	c->rule = "GID-03";
	return true;
}

static bool above_port_mtu(struct diagnosis *c)
{
	const struct netport *p = port_of(c);
	uint32_t can = netport_mtu(p);

	if (c->qp->attr.path_mtu <= can)
		return false;
	sentence_add(&c->t,
		"The QP's path_mtu is %u, but port %u now has an MTU of %u, enough for %u: raise "
		"the MTU to at least %u, or reconnect the QP with a smaller path_mtu",
		c->qp->attr.path_mtu, p->index + 1, p->eth_mtu, can, c->qp->attr.path_mtu + 96);
	c->rule = "GID-09";
	return true;
}

/* In the meantime, our own netdev refused frames as long as those of the QP. READ responses leave
 * through the peer's netdev instead. */
static bool refused(struct diagnosis *c)
{
	const struct ctl_devices *d = c->ctl->devices;
	const struct netport *p = port_of(c);
	uint64_t within = diagnosis_age_ms(c) + retries_ns(c) / 1000000 + JUST_BEFORE_MS;
	uint32_t most = ETH_HLEN + VLAN_HLEN + OVER_IP6 + c->n->value;
	uint32_t len = d ? d->refused(d->arg, p->index, loop_now_ms(), within) : 0;

	if (!len || len > most || c->n->opcode == ABI_WR_RDMA_READ)
		return false;
	sentence_add(&c->t,
		"Netdev %s refuses frames of %u bytes, although its MTU is %u: the other end of "
		"this veth has a smaller MTU; raise it there (at least `ip link set DEV mtu %u`), "
		"or set a smaller path_mtu at both ends",
		p->netdev, len, p->eth_mtu, len - ETH_HLEN);
	c->rule = "GID-09";
	return true;
}

/* The destination may have become unreachable. */
static bool unreachable(struct diagnosis *c)
{
	struct dest_key key = {.port = c->qp->path.port, .sgid = av(c)->sgid_index};
	struct neigh_query q = {.port = port_of(c)};
	char why[ABI_SENTENCE_MAX];
	bool local;
	int err;

	memcpy(key.dgid, av(c)->dgid, 16);
	if (c->o->dest)
		memcpy(key.given, c->o->dest->key.given, 6);
	err = dest_find(c->ctl, &key, &q, &local, why);
	if (!err)
		return false;
	c->rule = "ETH-11";
	if (err == -EINPROGRESS) {
		char gid[GID_TEXT];

		neigh_cancel(&q);
		sentence_add(&c->t,
			"The neighbour %s on %s does not answer ARP or neighbour discovery: the "
			"peer is down, or not on this network (see `ip neigh show dev %s`)",
			gid_text(q.nexthop, gid), port_of(c)->netdev, port_of(c)->netdev);
		return true;
	}
	sentence_add(&c->t, "It is no longer reachable: %s", why);
	return true;
}

/* --- a peer in this daemon -------------------------------------------------------------- */

/* Other users' QPs are private: a program learns no more about them than about QPs that do not
 * exist. */
static bool may_know(const struct diagnosis *c, uid_t uid)
{
	return may_hear_of(c->o, uid);
}

static void say_no_such_qp(struct diagnosis *c)
{
	uid_t own = c->o->session->peer.uid;

	c->rule = "VAL-03";
	if (own)
		sentence_add(&c->t,
			"This rocid has that GID, but user %u has no such QP: dest_qp_num is "
			"wrong, the QP was destroyed, or it belongs to another user (an "
			"administrator can run `rocictl show qp %u`)",
			own, c->qp->attr.dest_qpn);
	else
		sentence_add(&c->t, "This rocid has that GID, but no such QP: dest_qp_num is "
				    "wrong, or the QP was destroyed");
}

/* A QP destroyed after the failure cannot be its cause. */
static bool local_gone(struct diagnosis *c, const struct gone_qp *gone)
{
	char at[16];

	if (gone->time_ms > c->time_ms)
		return false;
	c->rule = "VAL-03";
	sentence_add(&c->t, "That QP, also on this rocid, was removed at %s: its program %s",
		time_text(gone->time_ms, at), gone->how);
	return true;
}

/* Nor can a later failure: two QPs that cannot reach each other both fail. */
static bool local_state(struct diagnosis *c, const struct qp *peer)
{
	uint8_t state = __atomic_load_n(&peer->state, __ATOMIC_RELAXED);
	const struct cause_note *n = &peer->why.error;

	if (state >= ABI_QPS_RTR && state != ABI_QPS_ERR)
		return false;
	if (atomic_load_explicit(&n->known, memory_order_acquire) && n->time > c->n->time)
		return false;
	sentence_add(&c->t, "That QP, also on this rocid, is in %s: %s", qp_state_name(state),
		state == ABI_QPS_ERR ? "`rocictl show errors` says why it failed"
				     : "modify it to RTR before this one sends");
	c->rule = "VAL-06";
	return true;
}

/* Selects requests of this QP, whatever the reason of their drop. */
static bool of_this_qp(const struct diagnosis *c, const struct drop_note *n)
{
	const struct gid_entry *e = own_gid(c);

	return of_these_retries(c, n) && !opcode_row(n->opcode)->response &&
	       (!e || !memcmp(n->sgid, e->gid, 16));
}

/* The peer received packets, and dropped them. */
static bool local_drop(struct diagnosis *c, const struct qp_obj *peer)
{
	char text[ABI_WHY_MAX];
	struct sentence t = {.text = text};
	struct drop_note n;
	enum drop why;

	if (!drop_of_qp(c->ctl, peer, true, of_this_qp, c, &why, &n))
		return false;
	diagnose_drop(&t, c->ctl, peer, why, &n);
	sentence_add(&c->t, "That QP, also on this rocid, dropped the packets: %s", text);
	c->rule = drop_rule(why);
	return true;
}

/* Reports what a remote administrator would find: whether the peer's QP exists, its state, and the
 * packets that it dropped. */
static bool local_peer(struct diagnosis *c)
{
	const struct gone_qp *gone;
	const struct qp_obj *peer;

	if (!gid_is_ours(c->ctl, av(c)->dgid))
		return false;
	peer = find_qp(c->ctl, c->qp->attr.dest_qpn);
	if (peer && may_know(c, peer->session->peer.uid))
		return local_state(c, peer->qp) || local_drop(c, peer);
	gone = peer ? NULL : failures_gone_qp(c->ctl->failures, c->qp->attr.dest_qpn);
	if (gone && may_know(c, gone->uid))
		return local_gone(c, gone);
	say_no_such_qp(c);
	return true;
}

/* --- likely reasons --------------------------------------------------------------------- */

static void say_ping(struct diagnosis *c, uint32_t payload)
{
	const struct netport *p = port_of(c);
	bool ip4 = gid_is_ip4(av(c)->dgid);
	uint32_t over = ip4 ? OVER_IP4 : OVER_IP6;
	uint32_t ip = ip4 ? IP4_HLEN : IP6_HLEN;
	char gid[GID_TEXT];

	sentence_add(&c->t,
		"The link, the switches and the peer's port must accept IP packets of %u bytes",
		payload + over);
	if (p->netdev[0] && c->qp->path.net != NET_ROCEV1)
		sentence_add(&c->t, " (try `ping -M do -s %u %s`)", payload + over - ip - ICMP_HLEN,
			gid_text(av(c)->dgid, gid));
	sentence_add(&c->t, ": raise their MTU, or set a smaller path_mtu at both ends");
}

/* Smaller packets were answered. */
static bool too_large(struct diagnosis *c)
{
	const struct cause_note *n = c->n;
	bool read = n->opcode == ABI_WR_RDMA_READ;

	if (c->qp->path.local) /* no link, so no MTU */
		return false;
	if (!n->heard || n->limit >= n->value || n->value <= PATH_MTU_MIN)
		return false;
	if (n->limit)
		sentence_add(&c->t,
			"%s of up to %u bytes arrived before, but none of %u bytes: the path MTU "
			"seems to be too large. ",
			read ? "READ responses" : "Packets", n->limit, n->value);
	else
		sentence_add(&c->t,
			"Other requests were answered, but no %s of %u bytes: the path MTU may be "
			"too large. ",
			read ? "READ response" : "packet", n->value);
	say_ping(c, n->value);
	c->rule = "GID-09";
	return true;
}

/* The neighbour's MAC changed, and this QP's retries all went to the former one. */
static bool neighbour_moved(struct diagnosis *c)
{
	const struct dest *d = c->o->dest;
	uint64_t within = diagnosis_age_ms(c) + retries_ns(c) / 1000000;
	char gid[GID_TEXT], was[18], is[18];

	if (!d || !d->moved_ms || loop_now_ms() > d->moved_ms + within)
		return false;
	sentence_add(&c->t,
		"The neighbour %s had MAC %s and now has %s, which rocid learned too late for this "
		"QP: reconnect it. A longer timeout or a larger retry_cnt outlasts such a change",
		gid_text(d->query.nexthop, gid), mac_text(d->former, was), mac_text(d->dmac, is));
	c->rule = "ETH-11";
	return true;
}

/* A pending probe may still refute the diagnosis. */
static void say_probed(struct diagnosis *c)
{
	const struct dest *d = c->o->dest;
	char gid[GID_TEXT], mac[18];

	if (d && d->probed_ms)
		sentence_add(&c->t,
			"; the neighbour %s (MAC %s) was probed a moment ago and has not answered "
			"yet: check `ip neigh show dev %s`",
			gid_text(d->query.nexthop, gid), mac_text(d->dmac, mac),
			port_of(c)->netdev);
}

static bool fell_silent(struct diagnosis *c)
{
	if (!c->n->heard)
		return false;
	sentence_add(&c->t, "It responded before, so the connection was set up correctly: its "
			    "program ended or its QP failed (run `rocictl show errors` there), its "
			    "machine or the link went down, or packet loss is too high");
	say_probed(c);
	return true;
}

static bool link_local_mix(const struct diagnosis *c)
{
	const struct gid_entry *e = own_gid(c);

	return e && gid_is_link_local(e->gid) != gid_is_link_local(av(c)->dgid);
}

/* No packet was ever received, and nothing else is known. */
static void never_heard(struct diagnosis *c)
{
	bool v1 = c->qp->path.net == NET_ROCEV1;

	sentence_add(&c->t,
		"Nothing was ever received from it. Run `rocictl show errors` there: the peer may "
		"not be running, may have no QP %u or not have it in RTR, may use another GID type "
		"(here %s), a GID other than the one that it gave to this side, or another P_Key, "
		"or %s may be filtered on the path",
		c->qp->attr.dest_qpn, net_type_name(c->qp->path.net),
		v1 ? "EtherType 0x8915" : "UDP port 4791");
	if (link_local_mix(c))
		sentence_add(&c->t, "; one of the two GIDs is link-local and the other is not: use "
				    "two of the same kind");
	if (!c->qp->path.local && (c->n->value > COMMON_MTU || c->n->opcode == ABI_WR_RDMA_READ)) {
		sentence_add(&c->t, "; or the path MTU is too large. ");
		say_ping(c, c->n->value);
	}
}

void diagnose_silence(struct diagnosis *c)
{
	static bool (*const look[])(struct diagnosis * c) = {rival, dropped_here, old_acks,
		port_down, gid_removed, above_port_mtu, refused, unreachable, neighbour_moved,
		local_peer, too_large, fell_silent};

	say_request(c);
	for (unsigned i = 0; i < ARRAY_SIZE(look); i++)
		if (look[i](c))
			return;
	never_heard(c);
	say_probed(c);
}
