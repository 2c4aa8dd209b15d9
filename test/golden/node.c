/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ah.h"
#include "core_command.h"
#include "flow.h"
#include "frame.h"
#include "golden.h"
#include "mcast.h"
#include "qp.h"
#include "qp_table.h"
#include "srq.h"
#include "txd.h"

#define RECV_ROOM 64u
/* Keys of the runner's own regions: as far from those of files as the table allows. */
#define RECV_KEY ((MR_MAX - 1) << 8 | 0x42)
#define SEND_KEY ((MR_MAX - 2) << 8 | 0x43)

/* --- addresses ------------------------------------------------------------------------ */

static void gid_add(struct node *n, unsigned net, const uint8_t gid[16], const uint8_t mac[6])
{
	struct gid_table *t = &n->host->gids[0];
	struct gid_entry *e = &t->entry[t->count];

	if (t->count == GID_MAX) {
		item_fail(n->g, "the GID table is too long");
		return;
	}
	t->count++;
	*e = (struct gid_entry){.net = (uint8_t)net, .valid = true};
	memcpy(e->gid, gid, 16);
	memcpy(e->mac, mac, 6);
}

/* "IPv4 192.0.2.11 (RoCEv2)" */
static void gid_add_text(struct node *n, const char *s, const uint8_t mac[6])
{
	uint8_t gid[16] = {[10] = 0xFF, [11] = 0xFF};
	char address[64];

	if (sscanf(s, "IPv4 %63s (RoCEv2)", address) == 1 &&
		inet_pton(AF_INET, address, gid + 12) == 1)
		gid_add(n, NET_IPV4, gid, mac);
	else if (sscanf(s, "IPv6 %63s (RoCEv2)", address) == 1 &&
		 inet_pton(AF_INET6, address, gid) == 1)
		gid_add(n, NET_IPV6, gid, mac);
	else if (sscanf(s, "IB GID %63s (RoCEv1)", address) == 1 &&
		 inet_pton(AF_INET6, address, gid) == 1)
		gid_add(n, NET_ROCEV1, gid, mac);
	else
		item_fail(n->g, "B_gid_table: '%.60s' is not handled", s);
}

/* B's table is given; A has an entry of each kind. */
static void gids_init(struct node *n, const uint8_t mac[6])
{
	const json_t *table = json_object_get(n->g->context, "B_gid_table");
	json_t *v;
	size_t i;

	n->host->gids[0].count = 0;
	if (n->spec.is_a) {
		for (unsigned k = 0; k < 4; k++) {
			struct node_spec s = n->spec;
			unsigned net = k < 3 ? k : NET_ROCEV1;

			node_spec_net(n->g, &s, net, k == 3);
			gid_add(n, net, s.gid, mac);
		}
		return;
	}
	json_array_foreach((json_t *)table, i, v)
	{
		gid_add_text(n, json_is_string(v) ? json_string_value(v) : "?", mac);
	}
}

/* The QP's entry; it is the one in the VLAN. */
static struct gid_entry *own_gid(struct node *n)
{
	struct gid_table *t = &n->host->gids[0];
	int i = gid_find(t, n->spec.gid, n->spec.net, 0);

	if (i < 0) {
		item_fail(n->g, "the QP's GID is not in the GID table");
		return NULL;
	}
	t->entry[i].vid = n->spec.vid;
	return &t->entry[i];
}

static struct path_spec path_of(struct node *n, const struct gid_entry *sgid)
{
	const json_t *peer = json_object_get(n->g->context, n->spec.is_a ? "B" : "A");
	struct path_spec p = {.sgid = sgid, .hop_limit = 64};

	memcpy(p.dgid, n->spec.peer_gid, 16);
	mac_of(text(peer, "mac"), p.dmac);
	return p;
}

/* --- life ----------------------------------------------------------------------------- */

/* All regions begin with zeros: B's is compared with what READ brings, and READ with it. */
static void regions_init(struct node *n)
{
	const json_t *mr = json_object_get(n->g->context, "B_mr");
	const struct node_spec *s = &n->spec;
	size_t len = (size_t)number_of(n->g, mr, "length");

	if (s->is_a)
		n->mr = app_mr_as(
			&n->app, s->send_room, ABI_ACCESS_LOCAL_WRITE, SEND_KEY, 0x5500000000);
	else
		n->mr = app_mr_as(&n->app, len, s->mr_access, (uint32_t)number_of(n->g, mr, "rkey"),
			number_of(n->g, mr, "va"));
	memset(n->mr->mem, 0, n->mr->len);
	n->recv = app_mr_as(&n->app, (size_t)RECV_ROOM * s->recv_len + 1, ABI_ACCESS_LOCAL_WRITE,
		RECV_KEY, 0x100000);
}

static void qp_make(struct node *n)
{
	const struct node_spec *s = &n->spec;
	struct app_qp_spec spec = {.qpn = s->qpn,
		.type = s->type,
		.sq_depth = 64,
		.rq_depth = RECV_ROOM,
		.max_sge = 4,
		.max_inline = 512,
		.send_cq = n->send_cq,
		.recv_cq = n->recv_cq,
		.xrcd = 1};

	if (s->type == ABI_QPT_XRC_RECV) {
		n->srq = app_xrc_srq(&n->app, RECV_ROOM, 4, spec.xrcd, n->recv_cq);
		app_srq_withdraw(&n->app, n->srq);
		n->srq->srq.srqn = s->srqn ? s->srqn : 1; /* 0 is none's */
		atomic_store(&n->host->srqs.slot[SRQN_SLOT(n->srq->srq.srqn)], &n->srq->srq);
	} else if (s->shared) {
		n->srq = app_srq(&n->app, RECV_ROOM, 4);
		spec.srq = n->srq;
	}
	n->qp = app_qp(&n->app, &spec);
	n->qp->free_ids = true; /* they are the file's; check_cqe() compares them */
	n->attr = app_attr(s->peer_qpn, s->sq_psn, s->rq_psn);
	n->attr.path_mtu = s->mtu;
	n->attr.access_flags = s->access;
	n->attr.qkey = s->qkey;
	n->attr.min_rnr_timer = s->min_rnr_timer;
	n->attr.timeout = s->timeout;
	n->attr.retry_cnt = s->retry_cnt;
	n->attr.rnr_retry = s->rnr_retry;
	n->attr.max_rd_atomic = s->max_rd_atomic;
	n->attr.max_dest_rd_atomic = s->max_dest_rd_atomic;
}

/* MC-04: the QP is the group's only member. */
static void attach(struct node *n)
{
	n->group = calloc(1, sizeof(*n->group) + sizeof(n->group->member[0]));
	if (!n->group)
		abort();
	memcpy(n->group->mgid, n->spec.mgid, sizeof(n->group->mgid));
	n->group->n = 1;
	n->group->member[0].qp = n->qp->qp;
	mcast_replace(&n->host->mcasts, NULL, n->group);
}

/* QP1 is in no slot. */
static void be_qp1(struct node *n)
{
	struct qp *qp = n->qp->qp;

	atomic_store(&n->host->qps.slot[QPN_SLOT(qp->qpn)], NULL);
	atomic_store(&n->host->qps.gsi[0], qp);
	qp->gsi_port = 1;
	qp->attr.port = 1;
}

/* The address handle of datagrams that it sends. */
static void lead(struct node *n, const struct path_spec *path)
{
	n->ah = (struct ah){.id = NODE_AH, .pd = n->qp->qp->pd, .hashed = true};
	path_init(&n->ah.path, path);
	atomic_store(&n->host->ahs.slot[AH_SLOT(NODE_AH)], &n->ah);
}

static void qp_bring_up(struct node *n, const struct path_spec *path)
{
	const struct node_spec *s = &n->spec;
	int rc = 0;

	if (s->state >= ABI_QPS_INIT)
		rc |= app_to_init(n->qp, &n->attr, n->now);
	if (s->state >= ABI_QPS_RTR)
		rc |= app_to_rtr(n->qp, &n->attr, path, n->now);
	if (s->state >= ABI_QPS_RTS)
		rc |= app_to_rts(n->qp, &n->attr, n->now);
	n->qp->qp->resp.msn = s->msn;
	node_post_recv(n, s->recv_wqes);
	if (s->state == ABI_QPS_SQE)
		n->qp->qp->state = ABI_QPS_SQE; /* as if a send had failed */
	else if (s->state > ABI_QPS_RTS)
		rc |= app_to_state(n->qp, s->state, n->now);
	if (rc)
		item_fail(n->g, "the QP's attributes are refused");
}

/* The file's table, also one whose entry of the QP is empty: no QP is set up with that, but an
 * administrator may empty it under one. */
static void pkeys_load(struct node *n)
{
	struct port *port = &n->host->ports.port[0];
	struct core_cmd reload = {.type = CORE_CMD_RELOAD_PKEYS, .n = 1, .qps = &n->qp->qp};

	for (unsigned i = 0; i < GOLDEN_PKEYS; i++)
		port->pkey[i] = n->spec.pkey[i];
	port->pkeys = (uint16_t)n->spec.pkeys;
	core_cmd(&n->host->core, &reload, n->now);
}

bool node_init(struct node *n, struct golden *g, const struct node_spec *s)
{
	static uint8_t sent[NODE_SENT_MAX][FRAME_MAX]; /* there is one node at a time */
	const json_t *me = json_object_get(g->context, s->is_a ? "A" : "B");
	const struct gid_entry *sgid;
	uint8_t mac[6];

	memset(n, 0, sizeof(*n));
	n->g = g;
	n->now = 1000000;
	n->spec = *s;
	n->sent = sent;
	n->host = aligned_alloc(CACHE_LINE, sizeof(*n->host));
	if (!n->host)
		abort();
	host_init(n->host, 1, g->icrc, n->now);
	n->host->core.cfg.worker = QPN_WORKER(s->qpn);
	app_init(&n->app, n->host);
	mac_of(text(me, "mac"), mac);
	port_set_mac(&n->host->ports.port[0], mac);
	gids_init(n, mac);
	sgid = own_gid(n);
	if (sgid) {
		struct path_spec path = path_of(n, sgid);

		n->send_cq = app_cq(&n->app, 256);
		n->recv_cq = app_cq(&n->app, 256);
		regions_init(n);
		qp_make(n);
		if (s->member)
			attach(n);
		if (s->type == ABI_QPT_GSI)
			be_qp1(n);
		if (is_datagram(s->type))
			lead(n, &path);
		qp_bring_up(n, &path);
		pkeys_load(n);
		node_tx(n);
		return true;
	}
	node_fini(n);
	return false;
}

void node_fini(struct node *n)
{
	if (!app_guards_ok(&n->app))
		item_fail(n->g, "something was written outside a region");
	app_fini(&n->app);
	free(n->group);
	free(n->host);
}

void node_bind_window(struct node *n, uint32_t key)
{
	struct mw_bind b = {.mw = key,
		.lkey = n->mr->mr.key,
		.new_key = key,
		.access = ABI_ACCESS_REMOTE_READ,
		.addr = n->mr->mr.iova,
		.length = n->mr->len};

	if (!(key >> 8) || key >> 8 >= MR_MAX - 2 || key >> 8 == n->mr->slot) {
		item_fail(n->g, "key 0x%x can be no window's", key);
		return;
	}
	n->mr->mr.access |= ABI_ACCESS_MW_BIND;
	n->mw = app_mw_as(&n->app, MW_TYPE_2, key);
	if (mw_bind(&n->host->mrs, &b, n->qp->qp->pd, n->qp->qp->qpn) != MW_DONE)
		item_fail(n->g, "no window could be bound");
}

void node_fast_cnp(struct node *n, const json_t *acl, const uint8_t types[FAST_CNP_OPTIONS])
{
	struct switch_list *l = &n->switches;
	json_t *v;
	size_t i;

	if (!json_is_array(acl) || json_array_size(acl) > FAST_CNP_SWITCHES)
		item_fail(n->g, "acl is no array of up to %u addresses", FAST_CNP_SWITCHES);
	memcpy(l->type, types, sizeof(l->type));
	bucket_init(&l->all, 1000, 1000);
	json_array_foreach((json_t *)acl, i, v)
	{
		struct switch_entry *e = &l->entry[l->n++ % FAST_CNP_SWITCHES];

		e->prefix = 128;
		bucket_init(&e->bucket, 1000, 1000);
		if (inet_pton(AF_INET6, json_is_string(v) ? json_string_value(v) : "", e->addr) !=
			1)
			item_fail(n->g, "acl has an entry that is no IPv6 address");
	}
	atomic_store(&n->host->ports.port[0].switches, l);
	if (core_flow(&n->flow, n->qp->qp))
		flow_add(&n->host->flows, &n->flow);
}

/* --- what it does --------------------------------------------------------------------- */

void node_post_recv(struct node *n, unsigned count)
{
	uint32_t len = n->spec.recv_len;

	if (n->spec.type == ABI_QPT_XRC_SEND)
		return; /* it has nowhere to */
	while (count--) {
		struct abi_sge sge =
			app_sge(n->recv, (uint64_t)(n->received % RECV_ROOM) * len, len);

		if (n->srq ? !app_srq_room(n->srq) : !app_rq_room(n->qp)) {
			item_fail(n->g, "more than %u receives are posted", RECV_ROOM);
			return;
		}
		if (n->srq)
			app_post_srq(n->srq, n->received++, &sge, 1);
		else
			app_post_recv(n->qp, n->received++, &sge, 1);
	}
}

const uint8_t *node_recv_buffer(const struct node *n, unsigned i)
{
	return n->recv->mem + (size_t)(i % RECV_ROOM) * n->spec.recv_len;
}

uint16_t node_rx(struct node *n, const uint8_t *frame, size_t len)
{
	struct pkt p = {.port = 0, .queue = PKT_NO_QUEUE};
	uint16_t verdict = host_parse(&n->host->core, &p, frame, len);
	uint32_t others;

	if (verdict == DROP_IP_NEXT_HEADER) {
		verdict = core_fast_cnp(&n->host->core, &p, frame, len, n->now, &others);
		if (verdict != DROP_IP_NEXT_HEADER)
			return verdict;
	}
	if (verdict) {
		core_count_drop(&n->host->core, verdict);
		return verdict;
	}
	core_rx(&n->host->core, &p, 1, n->now, &verdict);
	return verdict;
}

void node_tx(struct node *n)
{
	struct txd t;

	app_ring(&n->app, n->now);
	for (;;) {
		uint16_t len;

		if (n->sents == NODE_SENT_MAX) {
			item_fail(n->g, "the core sends without end");
			return;
		}
		t.frame = n->sent[n->sents];
		if (!core_tx(&n->host->core, &t, 1, n->now))
			return;
		len = core_seal(&n->host->core, &t);
		if (len)
			n->sent_len[n->sents++] = len;
	}
}

bool node_poll(struct node *n, struct abi_cqe *cqe)
{
	return app_poll(&n->app, n->send_cq, cqe) || app_poll(&n->app, n->recv_cq, cqe);
}

/* --- what it was ---------------------------------------------------------------------- */

static void *copy_of(const void *p, size_t len)
{
	void *copy = aligned_alloc(CACHE_LINE, (len + CACHE_LINE) & ~(size_t)(CACHE_LINE - 1));

	if (!copy)
		abort();
	return memcpy(copy, p, len);
}

void memento_take(struct memento *m, const struct node *n)
{
	m->qp = copy_of(n->qp->qp, sizeof(*m->qp));
	memcpy(m->res, n->qp->qp->resp.res, sizeof(m->res));
	m->count = n->host->core.count;
	m->memory = copy_of(n->mr->mem, n->mr->len);
	m->recv = copy_of(n->recv->mem, n->recv->len);
}

void memento_drop(struct memento *m)
{
	free(m->qp);
	free(m->memory);
	free(m->recv);
}

/* Possible traces of a dropped frame: the SRQN that it named (xrc.c), and on UC a
 * receive that is the next message's (UC-06). */
static void forgive(struct qp *was, const struct qp *is)
{
	was->xrc.named = is->xrc.named;
	was->notice = is->notice; /* of congestion: what a CNP is for */
	if (is->type != ABI_QPT_UC || was->resp.have_wqe || !is->resp.have_wqe || is->srq)
		return;
	was->resp.have_wqe = true;
	was->resp.wqe = is->resp.wqe;
	was->rq.next = is->rq.next;
}

void memento_same_qp(struct golden *g, const struct memento *m, const struct node *n)
{
	struct qp *was = m->qp;
	const struct qp *is = n->qp->qp;

	forgive(was, is);

	if (was->state != is->state)
		item_fail(g, "the QP went to %s", state_name(is->state));
	else if (was->resp.epsn != is->resp.epsn)
		item_fail(g, "the expected PSN went to 0x%x", is->resp.epsn);
	else if (was->resp.msn != is->resp.msn)
		item_fail(g, "the MSN went to 0x%x", is->resp.msn);
	else if (memcmp(was, is, sizeof(*was)) || memcmp(m->res, is->resp.res, sizeof(m->res)))
		item_fail(g, "the QP's state changed");
	if (memcmp(m->recv, n->recv->mem, n->recv->len))
		item_fail(g, "a receive buffer was written");
}

void memento_same_memory(struct golden *g, const struct memento *m, const struct node *n,
	size_t skip_at, size_t skip_len)
{
	for (size_t i = 0; i < n->mr->len; i++) {
		if (m->memory[i] == n->mr->mem[i] || i - skip_at < skip_len)
			continue;
		item_fail(g, "byte %zu of the region was written", i);
		return;
	}
}
