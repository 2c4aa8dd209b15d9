/* SPDX-License-Identifier: BSD-3-Clause */
/* One object, with all that is known of it. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "bits.h"
#include "config/config.h"
#include "config/parts.h"
#include "core.h"
#include "cq.h"
#include "path.h"
#include "qp.h"
#include "session/handles.h"
#include "session/session.h"
#include "show/show.h"
#include "text/sentence.h"
#include "verbs/cq_obj.h"
#include "verbs/mr_obj.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"

/* json_pack()'s I. */
#define N(n) ((json_int_t)(n))

/* A set of flags as words. */
struct flag {
	uint32_t bit;
	const char *name;
};

static json_t *flags(uint32_t value, const struct flag *flag, unsigned n)
{
	json_t *list = json_string("");
	char text[128];
	size_t len = 0;

	for (unsigned i = 0; i < n && len < sizeof(text); i++)
		if (value & flag[i].bit)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
				len ? ", " : "", flag[i].name);
	if (len)
		json_string_set(list, text);
	return list;
}

static json_t *access_flags(uint32_t access)
{
	static const struct flag flag[] = {
		{ABI_ACCESS_LOCAL_WRITE, "local write"},
		{ABI_ACCESS_REMOTE_WRITE, "remote write"},
		{ABI_ACCESS_REMOTE_READ, "remote read"},
		{ABI_ACCESS_REMOTE_ATOMIC, "remote atomic"},
		{ABI_ACCESS_MW_BIND, "window bind"},
		{ABI_ACCESS_ZERO_BASED, "zero based"},
	};

	return flags(access, flag, ARRAY_SIZE(flag));
}

static const char *mac_text(const uint8_t m[6], char text[18])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
	return text;
}

/* --- a queue pair ----------------------------------------------------------------------- */

static json_t *qp(struct ctl *ctl, const struct argument arg[])
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);

	if (!o)
		return json_null();
	return json_pack("{s:I, s:I, s:s, s:I, s:I, s:s, s:s, s:I, s:I, s:b, s:I, s:I, s:I, s:o, "
			 "s:b, s:I}",
		"qpn", N(o->qpn), "session", N(o->session->number), "program", o->session->program,
		"pid", N(o->session->peer.pid), "handle", N(o->handle), "type",
		qp_type_name(o->qp->type), "state", qp_state_name(LOOK(o->qp->state)), "worker",
		N(o->worker), "home_worker", N(QPN_WORKER(o->qpn)), "resolving", o->resolving, "pd",
		N(o->pd->number), "send_cq", N(cq_handle(o->send_cq)), "recv_cq",
		N(cq_handle(o->recv_cq)), "access", access_flags(LOOK(o->qp->attr.access_flags)),
		"all_signaled", o->qp->sq_sig_all, "bytes", N(o->bytes + o->rings.size));
}

/* 802.1p; null: its packets have no tag. */
static json_t *priority(const struct path *p)
{
	int tci = path_tci(p);

	return tci < 0 ? json_null() : json_integer(tci >> 13);
}

/* Where it leads to: as the application set it, RTR and later. */
static json_t *qp_path(struct ctl *ctl, const struct argument arg[])
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct gid_entry *sgid;
	const struct abi_qp_attr *a;
	const struct path *path;
	char local[GID_TEXT], remote[GID_TEXT], mac[18], pkey[8];

	if (!o || !o->hold.gids)
		return json_null();
	a = &o->qp->attr;
	sgid = &o->hold.gids->table.entry[o->hold.index];
	path = &o->qp->path;
	snprintf(pkey, sizeof(pkey), "0x%04x", LOOK(o->qp->pkey));
	return json_pack("{s:I, s:I, s:s, s:s, s:I, s:s, s:s, s:I, s:b, s:I, s:I, s:I, s:I, s:I, "
			 "s:I, s:o, s:s, s:I}",
		"port", N(LOOK(a->ah.port)), "gid_index", N(o->hold.index), "gid",
		gid_text(sgid->gid, local), "type", gid_type_name(sgid->net), "vid", N(sgid->vid),
		"peer_gid", gid_text(a->ah.dgid, remote), "peer_mac", mac_text(a->ah.dmac, mac),
		"peer_qpn", N(LOOK(a->dest_qpn)), "same_rocid", path->local, "path_mtu",
		N(LOOK(a->path_mtu)), "traffic_class", N(LOOK(a->ah.traffic_class)), "hop_limit",
		N(LOOK(a->ah.hop_limit)), "sl", N(LOOK(a->ah.sl)), "flow_label",
		N(path_flow_label(path)), "sport", N(path_sport(path)), "priority", priority(path),
		"pkey", pkey, "pkey_index", N(LOOK(a->pkey_index)));
}

/* 4.096 us * 2^code */
static json_t *ack_timeout(uint8_t code)
{
	return code ? json_real(4.096e-3 * (double)(1ull << (code & 31))) : json_null();
}

static json_t *qp_requester(struct ctl *ctl, const struct argument arg[])
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct qp *q;

	if (!o)
		return json_null();
	q = o->qp;
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, "
			 "s:b, s:b}",
		"depth", N(q->sq.depth), "max_sge", N(q->sq.max_sge), "max_inline",
		N(q->max_inline), "posted", N(LOOK(q->req.fetched)), "outstanding",
		N(LOOK(q->req.fetched) - LOOK(q->comp.head)), "next_psn", N(LOOK(q->req.psn)),
		"unacked_psn", N(LOOK(q->comp.una)), "in_flight",
		N(LOOK(q->req.sent) - LOOK(q->comp.acked)), "window", N(LOOK(q->win.size)),
		"window_max", N(LOOK(q->win.max)), "max_rd_atomic", N(LOOK(q->attr.max_rd_atomic)),
		"timeout_ms", ack_timeout(LOOK(q->attr.timeout)), "retries_left",
		N(LOOK(q->comp.retry_left)), "rnr_retries_left", N(LOOK(q->comp.rnr_left)),
		"retrying", LOOK(q->comp.retrying), "rnr_wait", LOOK(q->comp.rnr_wait));
}

static json_t *qp_responder(struct ctl *ctl, const struct argument arg[])
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	const struct qp *q;

	if (!o)
		return json_null();
	q = o->qp;
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "depth", N(q->rq.depth),
		"max_sge", N(q->rq.max_sge), "taken", N(LOOK(q->rq.next)), "expected_psn",
		N(LOOK(q->resp.epsn)), "msn", N(LOOK(q->resp.msn)), "max_dest_rd_atomic",
		N(LOOK(q->attr.max_dest_rd_atomic)), "min_rnr_timer",
		N(LOOK(q->attr.min_rnr_timer)), "nak_sent", LOOK(q->resp.nak_sent));
}

const struct document_section show_qp = {.name = "qp", .object = qp};
const struct document_section show_qp_path = {.name = "path", .object = qp_path};
const struct document_section show_qp_requester = {.name = "requester", .object = qp_requester};
const struct document_section show_qp_responder = {.name = "responder", .object = qp_responder};

/* --- a region, a CQ --------------------------------------------------------------------- */

static json_t *mr(struct ctl *ctl, const struct argument arg[])
{
	struct session *s;
	struct mr_obj *o = find_mr(ctl, arg[0].number, &s);
	char key[12], first[20], last[20];

	if (!o)
		return json_null();
	snprintf(key, sizeof(key), "0x%x", o->mr.key);
	snprintf(first, sizeof(first), "0x%" PRIx64, o->mr.iova);
	snprintf(last, sizeof(last), "0x%" PRIx64, o->mr.iova + o->mr.length - 1);
	return json_pack("{s:s, s:I, s:s, s:I, s:I, s:I, s:s, s:s, s:I, s:o, s:I}", "key", key,
		"session", N(s->number), "program", s->program, "pid", N(s->peer.pid), "handle",
		N(o->handle), "pd", N(o->mr.pd), "first", first, "last", o->mr.length ? last : "",
		"length", N(o->mr.length), "access", access_flags(o->mr.access), "mapped",
		N(o->map.size));
}

static json_t *cq(struct ctl *ctl, const struct argument arg[])
{
	struct session *s = find_session(ctl, arg[0].number);
	struct cq_obj *o = s ? handle_get(&s->cqs, (uint32_t)arg[1].number) : NULL;
	uint32_t armed;

	if (!o)
		return json_null();
	armed = atomic_load_explicit(o->cq.arm, memory_order_relaxed) & ABI_CQ_ARM_MASK;
	return json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "session", N(s->number),
		"program", s->program, "pid", N(s->peer.pid), "handle", N(o->cq.handle), "depth",
		N(LOOK(o->cq.lane[0].depth)), "lanes", N(o->cq.lanes), "users", N(o->users),
		"channel", o->channel != NULL, "armed",
		armed == ABI_CQ_ARM_ANY		? "any"
		: armed == ABI_CQ_ARM_SOLICITED ? "solicited"
						: "no");
}

/* at->index: the lane. */
static bool next_lane(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	struct session *s = find_session(ctl, arg[0].number);
	struct cq_obj *o = s ? handle_get(&s->cqs, (uint32_t)arg[1].number) : NULL;
	const struct cq_lane *lane;
	uint32_t head, taken;

	if (!o || at->index == o->cq.lanes)
		return false;
	lane = &o->cq.lane[at->index];
	head = LOOK(lane->head);
	taken = LOOK(lane->seen);
	*element = json_pack("{s:I, s:I, s:I, s:b}", "worker", N(at->index), "completions", N(head),
		"untaken_at_most", N(head - taken), "overflow", LOOK(lane->overflow));
	at->index++;
	return true;
}

const struct document_section show_mr = {.name = "mr", .object = mr};
const struct document_section show_cq = {.name = "cq", .object = cq};
const struct document_section show_cq_lanes = {.name = "lanes", .next = next_lane};

/* --- a port ----------------------------------------------------------------------------- */

static json_t *device(struct ctl *ctl, const struct argument arg[])
{
	const struct ctl_devices *d = ctl->devices;

	return d ? d->port(d->arg, (uint32_t)arg[0].number - 1) : json_null();
}

static json_t *emulated_link(struct ctl *ctl, const struct argument arg[])
{
	const struct ctl_devices *d = ctl->devices;

	return d ? d->link(d->arg, (uint32_t)arg[0].number - 1) : json_null();
}

const struct document_section show_device = {.name = "device", .object = device};
const struct document_section show_link = {.name = "link", .object = emulated_link};
