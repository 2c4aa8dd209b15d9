/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains why a packet was dropped: its contents, the expected contents, and the remedy. */
#include <stdio.h>
#include <string.h>
#include "abi_names.h"
#include "address.h"
#include "config/ctl_parts.h"
#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"
#include "drop_log.h"
#include "headers.h"
#include "net/net.h"
#include "opcode.h"
#include "path.h"
#include "qp.h"
#include "seq24.h"
#include "text/sentence.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* Further ahead than any send window: packet loss cannot explain such a PSN. */
#define PSN_FAR 0x10000u
/* A peer that starts this often with the same PSN was configured with it. */
#define AHEAD_TIMES 5u

static const char *opcode_text(uint8_t code)
{
	const char *name = opcode_row(code)->name;

	return name ? name : "unknown opcode";
}

/* --- sentences ---------------------------------------------------------------------------- */

struct drop_case {
	struct sentence *t;
	struct ctl *ctl;
	const struct qp_obj *o; /* or NULL */
	const struct drop_note *n;
	char from[GID_TEXT], to[GID_TEXT];
};

/* @return the port's GID with the packet's destination address but another VLAN, or else another
 * type; or NULL. */
static const struct gid_entry *same_gid(const struct drop_case *c)
{
	const struct gid_entry *other_type = NULL;
	const struct gid_table *t;

	if (c->n->port >= c->ctl->net->nports)
		return NULL;
	t = &c->ctl->net->port[c->n->port].gids.table;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct gid_entry *e = &t->entry[i];

		if (!e->valid || memcmp(e->gid, c->n->dgid, 16) != 0)
			continue;
		if (e->net == c->n->net)
			return e;
		other_type = e;
	}
	return other_type;
}

static void tell_dgid(struct drop_case *c)
{
	const struct gid_entry *e = same_gid(c);
	uint32_t port = c->n->port + 1u;

	if (e && e->net != c->n->net)
		sentence_add(c->t,
			"GID type mismatch: %s sends %s to %s, but port %u has this address only "
			"as a %s GID: select a GID of that type on the peer (sgid_index)%s",
			c->from, net_type_name(c->n->net), c->to, port, net_type_name(e->net),
			c->n->net == NET_ROCEV1 ? ", or run this rocid with --rocev1" : "");
	else if (e)
		sentence_add(c->t,
			"VLAN mismatch: %s sends to %s in VLAN %u, but port %u has that GID in "
			"VLAN %u (0: untagged): select GIDs of the same VLAN at both ends",
			c->from, c->to, c->n->vid, port, e->vid);
	else
		sentence_add(c->t,
			"%s sends to %s (%s), which is not a GID of port %u: the peer uses an "
			"address that was removed, or a wrong one; `rocictl show gids` lists the "
			"valid ones",
			c->from, c->to, net_type_name(c->n->net), port);
}

static void tell_no_gsi(struct drop_case *c)
{
	sentence_add(c->t,
		"%s sends a management datagram to QP 1 of port %u, which does not exist: programs "
		"that connect through rdma_cm (rping, ucmatose, perftest with -R) need a "
		"connection manager at both ends. Start this rocid without `--cm no`, or exchange "
		"the QPNs over a socket, as rociperf and perftest without -R do",
		c->from, c->n->port + 1u);
}

static void tell_unknown_qpn(struct drop_case *c)
{
	const struct gone_qp *gone = failures_gone_qp(c->ctl->failures, c->n->dest_qp);
	char at[16];

	if (gone)
		sentence_add(c->t,
			"%s sends %s to QP %u, which no longer exists: its program (%s) %s at %s, "
			"before the peer was done",
			c->from, opcode_text(c->n->opcode), c->n->dest_qp,
			gone->program[0] ? gone->program : "no name", gone->how,
			time_text(gone->time_ms, at));
	else
		sentence_add(c->t,
			"%s sends %s to QP %u, which does not exist: the peer's dest_qp_num is "
			"wrong, or from an earlier run of rocid; `rocictl show qps` lists the QPs",
			c->from, opcode_text(c->n->opcode), c->n->dest_qp);
}

static void tell_icrc(struct drop_case *c)
{
	sentence_add(c->t,
		"packets from %s arrive with a wrong ICRC: they are changed in transit (a bad "
		"cable or bad memory; a NAT, tunnel or offload that rewrites headers covered by "
		"the ICRC), or the sender computes the ICRC incorrectly (TTL, TOS, UDP checksum "
		"and the reserved BTH bits count as ones)",
		c->from);
}

static void tell_type(struct drop_case *c)
{
	sentence_add(c->t,
		"%s sends %s to QP %u, which has another type%s%s: create QPs of the same type at "
		"both ends",
		c->from, opcode_text(c->n->opcode), c->n->dest_qp, c->o ? ", " : "",
		c->o ? qp_type_name(c->o->qp->type) : "");
}

static void tell_state(struct drop_case *c)
{
	bool response = opcode_row(c->n->opcode)->response;

	sentence_add(c->t,
		"QP %u was in %s when %s arrived from %s: modify it to %s before the peer sends "
		"(give the peer the QPN only after that)",
		c->n->dest_qp, qp_state_name(c->n->state), opcode_text(c->n->opcode), c->from,
		response ? "RTS" : "RTR");
}

/* Compares the packet with the QP's path. */
static void tell_address(struct drop_case *c)
{
	const struct path *p = &c->o->qp->path;
	const struct drop_note *n = c->n;
	const struct abi_ah_attr *ah = &c->o->qp->attr.ah;
	char peer[GID_TEXT];

	sentence_add(c->t, "QP %u is connected to %s over %s", c->o->qpn, gid_text(ah->dgid, peer),
		net_type_name(p->net));
	if (n->net != p->net)
		sentence_add(c->t,
			", but %s sends %s: GID type mismatch. Select GIDs of the same type and "
			"address family at both ends (sgid_index)",
			c->from, net_type_name(n->net));
	else if (n->vid != p->vid)
		sentence_add(c->t,
			" in VLAN %u, but the packets arrive in VLAN %u (0: untagged): select GIDs "
			"of the same VLAN at both ends",
			p->vid, n->vid);
	else if (n->port != p->port)
		sentence_add(c->t,
			" through port %u, but the packets arrive at port %u: check the cabling",
			p->port + 1u, n->port + 1u);
	else if (memcmp(n->sgid, ah->dgid, 16) != 0)
		sentence_add(c->t,
			", but the packets come from %s: the peer uses a different GID "
			"(sgid_index) from the one that it gave to this program, or another host "
			"uses a wrong dest_qp_num",
			c->from);
	else
		sentence_add(c->t,
			", but the peer sends to %s, which is not the QP's GID: give the peer the "
			"GID that sgid_index selects here",
			c->to);
}

/* For QPs of this rocid at both ends. */
static void tell_peer(struct drop_case *c)
{
	sentence_add(c->t,
		"QP %u is connected to QP %u, but %s comes from QP %u of this rocid: set each "
		"end's dest_qp_num to the QPN of the other end",
		c->n->dest_qp, c->o->qp->attr.dest_qpn, opcode_text(c->n->opcode), c->n->source_qp);
}

static void tell_martian(struct drop_case *c)
{
	char mac[MAC_TEXT];

	sentence_add(c->t,
		"port %u receives packets from %s, which is its own address: find the station with "
		"source MAC %s, which uses the address by mistake or impersonates this host",
		c->n->port + 1u, c->from, mac_text(c->n->smac, mac));
}

static void tell_pkey(struct drop_case *c)
{
	sentence_add(c->t,
		"P_Key mismatch: %s sends P_Key 0x%04x to QP %u, whose P_Key is 0x%04x: both ends "
		"must be in the same partition, and at least one must be a full member (0x8000)",
		c->from, c->n->pkey, c->n->dest_qp, c->n->qp_pkey);
}

static void tell_ahead(struct drop_case *c)
{
	sentence_add(c->t,
		"the peer begins with PSN 0x%x, but QP %u expects 0x%x: rq_psn here and the peer's "
		"sq_psn must be the same",
		c->o && c->o->qp->why.ahead_times ? c->o->qp->why.ahead_psn : c->n->psn,
		c->n->dest_qp, c->n->epsn);
}

static void tell_behind(struct drop_case *c)
{
	sentence_add(c->t,
		"the peer begins with PSN 0x%x, which precedes the first PSN that QP %u expects, "
		"0x%x: rq_psn here and the peer's sq_psn must be the same. The peer considers its "
		"requests complete, but none of them was executed",
		c->n->psn, c->n->dest_qp, c->n->epsn);
}

/* A response that matches no request, to a QP that has received no valid response. */
static void tell_ghost(struct drop_case *c)
{
	uint32_t expected = c->n->psn;
	uint32_t began = c->o ? c->o->qp->why.sq_psn : c->n->una;

	/* An ACK has the last PSN received, a PSN sequence NAK the next one expected. */
	if ((c->n->syndrome & AETH_TYPE_MASK) == AETH_ACK)
		expected = seq24_add(expected, 1);
	if (c->o && diagnose_rival(c->t, c->o))
		return;
	if (expected == began)
		sentence_add(c->t,
			"the peer answers that it expects PSN 0x%x, which QP %u has not sent yet: "
			"another QP sends to the peer's QP, which is connected to this one. Give "
			"each QP its own peer (dest_qp_num)",
			expected, c->n->dest_qp);
	else
		sentence_add(c->t,
			"the peer answers that it expects PSN 0x%x, but QP %u began with 0x%x: "
			"sq_psn here and the peer's rq_psn must be the same",
			expected, c->n->dest_qp, began);
}

static void tell_dmac(struct drop_case *c)
{
	char mac[MAC_TEXT];

	sentence_add(c->t,
		"%s sends to %s with the destination MAC %s, which is not the MAC of port %u: "
		"flush "
		"the peer's neighbour entry, which is outdated or wrong",
		c->from, c->to, mac_text(c->n->dmac, mac), c->n->port + 1u);
}

static void tell_any(struct drop_case *c, enum drop why)
{
	sentence_add(c->t, "%s from %s to QP %u: %s", opcode_text(c->n->opcode), c->from,
		c->n->dest_qp, drop_means(why));
}

void diagnose_drop(struct sentence *t, struct ctl *ctl, const struct qp_obj *o, enum drop why,
	const struct drop_note *n)
{
	static void (*const tell[DROP_MAX])(struct drop_case * c) = {
		[DROP_DMAC] = tell_dmac,
		[DROP_MARTIAN] = tell_martian,
		[DROP_DGID] = tell_dgid,
		[DROP_NO_GSI] = tell_no_gsi,
		[DROP_QPN_UNKNOWN] = tell_unknown_qpn,
		[DROP_ICRC] = tell_icrc,
		[DROP_QP_TYPE] = tell_type,
		[DROP_QP_STATE] = tell_state,
		[DROP_QP_ADDRESS] = tell_address,
		[DROP_QP_PEER] = tell_peer,
		[DROP_PKEY] = tell_pkey,
		[DROP_PSN_AHEAD] = tell_ahead,
		[DROP_PSN_BEHIND] = tell_behind,
		[DROP_GHOST_ACK] = tell_ghost,
	};
	struct drop_case c = {.t = t, .ctl = ctl, .o = o, .n = n};

	gid_text(n->sgid, c.from);
	gid_text(n->dgid, c.to);
	t->len = 0;
	t->text[0] = '\0';
	if (tell[why] && (o || (why != DROP_QP_ADDRESS && why != DROP_QP_PEER)))
		tell[why](&c);
	else
		tell_any(&c, why);
}

/* --- notable drops ----------------------------------------------------------------- */

bool gid_is_ours(const struct ctl *ctl, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < ctl->net->nports; i++) {
		const struct gid_table *t = &ctl->net->port[i].gids.table;

		for (uint32_t k = 0; k < t->count; k++)
			if (t->entry[k].valid && !memcmp(t->entry[k].gid, gid, 16))
				return true;
	}
	return false;
}

/* Excludes packet loss as the reason: after this many attempts, the peer's first request would have
 * arrived at least once. */
static bool psn_is_wrong(const struct qp_obj *o, const struct drop_note *n, bool last)
{
	const struct qp *qp = o->qp;
	uint32_t began = __atomic_load_n(&qp->why.ahead_times, __ATOMIC_RELAXED);

	if (n->begun || __atomic_load_n(&qp->comm_est, __ATOMIC_RELAXED))
		return false;
	return last || began >= AHEAD_TIMES || (uint32_t)seq24_diff(n->psn, n->epsn) >= PSN_FAR;
}

bool drop_matters(struct ctl *ctl, const struct qp_obj *o, enum drop why, const struct drop_note *n,
	bool last)
{
	bool response = opcode_row(n->opcode)->response;

	switch (why) {
	case DROP_PSN_AHEAD:
		return o && psn_is_wrong(o, n, last);
	case DROP_GHOST_ACK: /* while nothing was ever acknowledged */
		return o && !n->heard && !qp_heard(o->qp);
	case DROP_QPN_UNKNOWN: /* late responses to a destroyed QP are harmless */
		return !response;
	case DROP_QP_STATE: /* a QP in ERR has its own explanation */
		return n->state != ABI_QPS_ERR && !(response && n->state == ABI_QPS_RESET);
	case DROP_DMAC: /* a bridge floods frames for other stations */
		return gid_is_ours(ctl, n->dgid);
	case DROP_DUP_NO_RESOURCE:
	case DROP_RNR_PENDING:
	case DROP_READ_RESP_UNEXPECTED:
	case DROP_CNP_IGNORED:
	case DROP_CNP_IDLE:
	case DROP_CNP_STRANGER:
	case DROP_CNP_UNMANAGED:
	case DROP_FAST_CNP_NO_QP:
	case DROP_INJECTED:
		return false;
	default:
		return true;
	}
}

bool drop_of_qp(struct ctl *ctl, const struct qp_obj *o, bool last, drop_fits fits,
	const struct diagnosis *c, enum drop *why, struct drop_note *n)
{
	for (unsigned i = DROP_NONE + 1; i < DROP_MAX; i++)
		for (uint32_t w = 0; w < ctl->dp->nworkers; w++)
			if (worker_drop_note(ctl->dp, w, (enum drop)i, o->qpn % DROP_NOTES, n) &&
				n->dest_qp == o->qpn && (!fits || fits(c, n)) &&
				drop_matters(ctl, o, (enum drop)i, n, last)) {
				*why = (enum drop)i;
				return true;
			}
	return false;
}
