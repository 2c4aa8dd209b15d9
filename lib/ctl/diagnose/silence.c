/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer does not answer. The sender alone cannot know why, but much can be ruled out or found:
 * from what is certain (packets that came and were dropped here, a link that is down, a peer in
 * this very daemon) to what is likely (the path does not take packets of that size) to what is
 * left.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "abi_wqe.h"
#include "bits.h"
#include "cause.h"
#include "config/parts.h"
#include "diagnose/diagnosis.h"
#include "headers.h"
#include "net/gids.h"
#include "net/neigh.h"
#include "net/net.h"
#include "net/netport.h"
#include "opcode.h"
#include "path.h"
#include "qp.h"
#include "text/sentence.h"
#include "verbs/dest.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

/* IP, UDP, BTH, RETH, immediate, ICRC around the payload of the longest RC packet. */
#define OVER_IP4  (IP4_HLEN + UDP_HLEN + BTH_HLEN + RETH_LEN + IMMDT_LEN + ICRC_LEN)
#define OVER_IP6  (IP6_HLEN + UDP_HLEN + BTH_HLEN + RETH_LEN + IMMDT_LEN + ICRC_LEN)
#define ICMP_HLEN 8
/* Payload that fits the usual Ethernet MTU of 1500. */
#define COMMON_MTU 1024u
/* A QP may fail before it is seen that its frames were refused: those of QPs just before tell why.
 */
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

	sentence_add(&c->t, "no answer from QP %u of %s, retry_cnt (%u) is used up. ",
		c->qp->attr.dest_qpn, gid_text(av(c)->dgid, gid), c->qp->attr.retry_cnt);
}

/* --- certain -----------------------------------------------------------------------------------
 */

/* The most that they take, in ns. */
static uint64_t retries_ns(const struct diagnosis *c)
{
	return (c->qp->attr.retry_cnt + 2ull) * 4 * c->qp->ack_timeout;
}

/* What was dropped long before has nothing to do with it. */
static bool of_these_retries(const struct diagnosis *c, const struct drop_note *n)
{
	return n->time + retries_ns(c) >= c->n->time;
}

/* Anybody may send to a QPN, and address and PSN of what he sends are wrong then. An answer is one
 * to what this QP has sent, wherever it comes from; who sends requests must be the peer. */
static bool of_the_peer(const struct diagnosis *c, const struct drop_note *n)
{
	return of_these_retries(c, n) &&
	       (opcode_row(n->opcode)->response || !memcmp(n->sgid, av(c)->dgid, 16));
}

/* Packets of the peer came, and were thrown away here. */
static bool dropped_here(struct diagnosis *c)
{
	char text[ABI_WHY_MAX];
	struct sentence t = {.text = text};
	struct drop_note n;
	enum drop why;

	if (!drop_of_qp(c->ctl, c->o, true, of_the_peer, c, &why, &n))
		return false;
	diagnose_drop(&t, c->ctl, c->o, why, &n);
	sentence_add(&c->t, "Packets for this QP came and were dropped here: %s", text);
	c->rule = drop_rule(why);
	return true;
}

/* Of another user's QP a program does not hear which it is. */
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
		" of this rocid has the same dest_qp_num (%u), and the peer's QP is connected with "
		"one of them: only that one is answered, also what the other asks. Give each QP a "
		"peer of its own",
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

/* No loss explains ACKs from before the first request: who sends them takes ours for what it
 * executed long ago. Of which PSN they are depends on the implementation. */
bool diagnose_old_acks(struct sentence *t, const struct qp *qp)
{
	uint32_t n = __atomic_load_n(&qp->why.old_acks, __ATOMIC_RELAXED);

	if (!n || __atomic_load_n(&qp->comp.acked, __ATOMIC_RELAXED))
		return false;
	sentence_add(t,
		"The peer answers with old ACKs (%u, the latest of PSN 0x%x), from before the "
		"first request, 0x%x: it takes the requests for ones that it has executed, so "
		"sq_psn here and the peer's rq_psn differ; both must be the same",
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
			"Port %u was set down by an administrator (set port %u down): nothing "
			"comes in or goes out until `rocictl set port %u up`",
			p->index + 1, p->index + 1, p->index + 1);
		return true;
	}
	sentence_add(&c->t, "Port %u%s%s is down: %s", p->index + 1,
		p->netdev[0] ? ", netdev " : "", p->netdev,
		c->ctl->net->closed[p->index] ? "rocid could not open it again, and says why"
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
		"The QP's own GID %s is gone: give the address back to netdev %s, or connect the "
		"QP "
		"anew with another GID",
		gid_text(e->gid, gid), port_of(c)->netdev);
	c->rule = "GID-03";
	return true;
}

static bool above_port_mtu(struct diagnosis *c)
{
	const struct netport *p = port_of(c);
	uint32_t can = mtu_of_ethernet(p->eth_mtu);

	if (c->qp->attr.path_mtu <= can)
		return false;
	sentence_add(&c->t,
		"The QP's path_mtu is %u, but port %u has an MTU of %u now, enough for %u: raise "
		"it to "
		"%u at least, or connect the QP anew with a smaller one",
		c->qp->attr.path_mtu, p->index + 1, p->eth_mtu, can, c->qp->attr.path_mtu + 96);
	c->rule = "GID-09";
	return true;
}

/* Our own netdev threw away frames as long as those that were not answered, meanwhile. READ
 * responses leave by the peer's. */
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
		"this "
		"veth has a smaller MTU; raise that (`ip link set DEV mtu %u` there at least), or "
		"set a "
		"smaller path_mtu at both ends",
		p->netdev, len, p->eth_mtu, len - ETH_HLEN);
	c->rule = "GID-09";
	return true;
}

/* Is there still a way to the destination? */
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
			"peer "
			"is down, or not on this network (`ip neigh show dev %s`)",
			gid_text(q.nexthop, gid), port_of(c)->netdev, port_of(c)->netdev);
		return true;
	}
	sentence_add(&c->t, "The way to it is gone: %s", why);
	return true;
}

/* --- a peer in this daemon -----------------------------------------------------------------------
 */

/* Which QPs others have, and how they are, is not for every program to ask for: of another user's
 * QP it hears no more than of one that does not exist. */
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
			"wrong, the QP was destroyed, or it is another user's, which `rocictl show "
			"qp %u` tells an administrator",
			own, c->qp->attr.dest_qpn);
	else
		sentence_add(&c->t,
			"This rocid has that GID, but no such QP: dest_qp_num is wrong, or "
			"the QP was destroyed");
}

/* What went after the failure did not bring it about. */
static bool local_gone(struct diagnosis *c, const struct gone_qp *gone)
{
	char at[16];

	if (gone->time_ms > c->time_ms)
		return false;
	c->rule = "VAL-03";
	sentence_add(&c->t, "That QP was of this rocid and is gone since %s: its program %s",
		time_text(gone->time_ms, at), gone->how);
	return true;
}

/* Nor did a failure that came later: two QPs that do not hear each other both fail. */
static bool local_state(struct diagnosis *c, const struct qp *peer)
{
	uint8_t state = __atomic_load_n(&peer->state, __ATOMIC_RELAXED);
	const struct cause_note *n = &peer->why.error;

	if (state >= ABI_QPS_RTR && state != ABI_QPS_ERR)
		return false;
	if (atomic_load_explicit(&n->known, memory_order_acquire) && n->time > c->n->time)
		return false;
	sentence_add(&c->t, "That QP, of this rocid too, is in %s: %s", qp_state_name(state),
		state == ABI_QPS_ERR ? "`rocictl show errors` says why it failed"
				     : "modify it to RTR before this one sends");
	c->rule = "VAL-06";
	return true;
}

/* What this QP asked for, whatever became of it there. */
static bool of_this_qp(const struct diagnosis *c, const struct drop_note *n)
{
	const struct gid_entry *e = own_gid(c);

	return of_these_retries(c, n) && !opcode_row(n->opcode)->response &&
	       (!e || !memcmp(n->sgid, e->gid, 16));
}

/* It received, and threw away what came. */
static bool local_drop(struct diagnosis *c, const struct qp_obj *peer)
{
	char text[ABI_WHY_MAX];
	struct sentence t = {.text = text};
	struct drop_note n;
	enum drop why;

	if (!drop_of_qp(c->ctl, peer, true, of_this_qp, c, &why, &n))
		return false;
	diagnose_drop(&t, c->ctl, peer, why, &n);
	sentence_add(&c->t, "That QP, of this rocid too, dropped what came: %s", text);
	c->rule = drop_rule(why);
	return true;
}

/* What a remote administrator would find: whether the QP is there, in which state, and what it
 * dropped. */
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

/* --- likely
 * ---------------------------------------------------------------------------------------- */

static void say_ping(struct diagnosis *c, uint32_t payload)
{
	const struct netport *p = port_of(c);
	bool ip4 = gid_is_ip4(av(c)->dgid);
	uint32_t over = ip4 ? OVER_IP4 : OVER_IP6;
	uint32_t ip = ip4 ? IP4_HLEN : IP6_HLEN;
	char gid[GID_TEXT];

	sentence_add(&c->t,
		"The link, the switches and the peer's port must take IP packets of %u bytes",
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

	if (!n->heard || n->limit >= n->value || n->value <= PATH_MTU_MIN)
		return false;
	if (n->limit)
		sentence_add(&c->t,
			"%s of up to %u bytes came through before, but none of %u bytes: the path "
			"MTU "
			"seems to be too large. ",
			read ? "READ responses" : "Packets", n->limit, n->value);
	else
		sentence_add(&c->t,
			"Other requests were answered, but no %s of %u bytes: the path MTU may be "
			"too "
			"large. ",
			read ? "READ response" : "packet", n->value);
	say_ping(c, n->value);
	c->rule = "GID-09";
	return true;
}

/* Its MAC changed, too late for this QP: what was sent meanwhile went to the former one. */
static bool neighbour_moved(struct diagnosis *c)
{
	const struct dest *d = c->o->dest;
	uint64_t within = diagnosis_age_ms(c) + retries_ns(c) / 1000000;
	char gid[GID_TEXT], was[18], is[18];

	if (!d || !d->moved_ms || loop_now_ms() > d->moved_ms + within)
		return false;
	sentence_add(&c->t,
		"The neighbour %s had MAC %s and has %s now, which was found out too late for this "
		"QP: connect it anew. A longer timeout or a larger retry_cnt outlasts such a "
		"change",
		gid_text(d->query.nexthop, gid), mac_text(d->former, was), mac_text(d->dmac, is));
	c->rule = "ETH-11";
	return true;
}

/* What is said may be wrong because it is too early. */
static void say_probed(struct diagnosis *c)
{
	const struct dest *d = c->o->dest;
	char gid[GID_TEXT], mac[18];

	if (d && d->probed_ms)
		sentence_add(&c->t,
			"; the neighbour %s (MAC %s) was probed a moment ago and has not answered "
			"yet: see `ip neigh show dev %s`",
			gid_text(d->query.nexthop, gid), mac_text(d->dmac, mac),
			port_of(c)->netdev);
}

static bool fell_silent(struct diagnosis *c)
{
	if (!c->n->heard)
		return false;
	sentence_add(&c->t,
		"It answered before, so it was set up well: its program ended or its QP failed "
		"(`rocictl show errors` there), its machine or the link went down, or more than "
		"its "
		"share of the packets is lost");
	say_probed(c);
	return true;
}

static bool link_local_mix(const struct diagnosis *c)
{
	const struct gid_entry *e = own_gid(c);

	return e && gid_is_link_local(e->gid) != gid_is_link_local(av(c)->dgid);
}

/* Nothing is known but that nothing ever came. */
static void never_heard(struct diagnosis *c)
{
	bool v1 = c->qp->path.net == NET_ROCEV1;

	sentence_add(&c->t,
		"Nothing ever came back. See there with `rocictl show errors`: the peer may not "
		"run, "
		"have no QP %u or not have it in RTR, use another GID type (here %s) or GID than "
		"this "
		"side was told, or another P_Key, or %s is filtered on the way",
		c->qp->attr.dest_qpn, net_text(c->qp->path.net),
		v1 ? "EtherType 0x8915" : "UDP port 4791");
	if (link_local_mix(c))
		sentence_add(&c->t,
			"; one of the two GIDs is link-local and the other is not: use two of one "
			"kind");
	if (c->n->value > COMMON_MTU || c->n->opcode == ABI_WR_RDMA_READ) {
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
