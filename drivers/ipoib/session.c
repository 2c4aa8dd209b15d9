/* SPDX-License-Identifier: BSD-3-Clause */
/* The session with rocid: a UD queue pair in the P_Key of the link, in the broadcast group. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "gid.h"
#include "rib_impl.h"
#include "roci_private.h"

#define HOPS	 64
#define GIDS_MAX 256 /* a table has no more: gid_index has 8 bits */

/* --- set-up ----------------------------------------------------------------------------------- */

const struct roci_gid_entry *rib_choose_gid(const struct roci_gid_entry *e, int n)
{
	for (int i = 0; i < n; i++)
		if (e[i].gid_type == ROCI_GID_TYPE_ROCE_V2 && gid_is_link_local(&e[i].gid) &&
			e[i].vid == 0)
			return &e[i];
	return NULL;
}

static int find_gid(struct rib *r)
{
	struct roci_gid_entry all[GIDS_MAX];
	const struct roci_gid_entry *e;

	for (unsigned i = 0; i < GIDS_MAX; i++)
		all[i].size = sizeof(all[i]);
	e = rib_choose_gid(all, roci_query_gids(r->q.ctx, r->cfg.port, all, GIDS_MAX));
	if (!e) {
		rib_say(r,
			"port %u has no untagged link-local GID yet: give its netdev one, or the "
			"port --gid PORT,fe80::1",
			r->cfg.port);
		return -EAGAIN;
	}
	r->q.gid_index = (uint8_t)e->gid_index;
	r->q.vid = e->vid;
	memcpy(r->q.own.gid, e->gid.raw, 16);
	memcpy(r->q.mac, e->mac, 6);
	return 0;
}

static int find_pkey(struct rib *r)
{
	struct roci_port_attr port = {.size = sizeof(port)};
	uint16_t pkey;

	if (roci_query_port(r->q.ctx, r->cfg.port, &port))
		return -EAGAIN;
	r->q.capacity = (uint16_t)(roci_mtu_bytes(port.active_mtu) - IPOIB_HLEN);
	if (r->q.capacity < r->cfg.mtu) { /* IPB-13 */
		rib_say(r,
			"port %u carries IP packets of %u bytes, but its MTU is %u: give the port "
			"an "
			"Ethernet MTU of %u, or the netdev mtu=%u",
			r->cfg.port, r->q.capacity, r->cfg.mtu, r->cfg.mtu > 2044 ? 4192 : 2144,
			r->q.capacity);
		return -EAGAIN;
	}
	for (uint32_t i = 0; i < port.pkey_tbl_len; i++) {
		if (roci_query_pkey(r->q.ctx, r->cfg.port, i, &pkey) || pkey != r->cfg.pkey)
			continue;
		r->q.pkey_index = (uint16_t)i;
		return 0;
	}
	rib_say(r,
		"P_Key 0x%04x is not in the table of port %u: set it with `rocictl set port %u "
		"pkey INDEX 0x%04x`",
		r->cfg.pkey, r->cfg.port, r->cfg.port, r->cfg.pkey);
	return -EAGAIN;
}

static int fail(struct rib *r, const char *what)
{
	if (!atomic_load(&r->stop))
		rib_say(r, "cannot %s: %s", what, roci_last_error());
	return -EAGAIN;
}

/* Touches each page once, so that rocid, which maps only existing pages, does the same for its
 * workers (lib/ctl/memory/huge.h). Otherwise each of the first RIB_RECVS receives, which use slot
 * after slot, would cost both threads one or two page faults. */
static struct roci_mr *make_slots(struct rib *r)
{
	struct rib_qp *q = &r->q;
	const size_t len = (size_t)(RIB_RECVS + RIB_SENDS) * RIB_SLOT;

	q->slots = roci_alloc_mem(q->ctx, len);
	if (!q->slots)
		return NULL;
	r->costly = true;
	memset(q->slots, 0, len);
	return roci_reg_mr(q->pd, q->slots, len, ROCI_ACCESS_LOCAL_WRITE);
}

static int make_queues(struct rib *r)
{
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.cap = {.max_send_wr = RIB_SENDS,
			.max_recv_wr = RIB_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = ROCI_QPT_UD};
	struct rib_qp *q = &r->q;

	q->pd = roci_alloc_pd(q->ctx);
	if (!q->pd)
		return fail(r, "have a protection domain");
	q->mr = make_slots(r);
	q->channel = q->mr ? roci_create_channel(q->ctx) : NULL;
	if (!q->channel || fcntl(q->channel->fd, F_SETFL, O_NONBLOCK))
		return fail(r, "have memory for packets");
	q->cq = roci_create_cq(q->ctx, 2 * (RIB_RECVS + RIB_SENDS), NULL, q->channel, 0);
	init.send_cq = init.recv_cq = q->cq;
	q->qp = q->cq ? roci_create_qp(q->pd, &init) : NULL;
	if (!q->qp)
		return fail(r, "have a queue pair");
	q->own.qpn = q->qp->qp_num;
	return 0;
}

static void post_all_recvs(struct rib *r)
{
	uint32_t slots[RIB_BURST], n = 0;

	for (uint32_t i = 0; i < RIB_RECVS; i++) {
		slots[n++] = i;
		if (n < RIB_BURST)
			continue;
		rib_post_recvs(r, slots, n);
		n = 0;
	}
	rib_post_recvs(r, slots, n);
}

static int climb(struct rib *r)
{
	struct roci_qp_attr attr = {.size = sizeof(attr),
		.qp_state = ROCI_QPS_INIT,
		.port_num = (uint8_t)r->cfg.port,
		.pkey_index = r->q.pkey_index,
		.qkey = IPOIB_QKEY};

	if (roci_modify_qp(r->q.qp, &attr,
		    ROCI_QP_STATE | ROCI_QP_PORT | ROCI_QP_PKEY_INDEX | ROCI_QP_QKEY))
		return fail(r, "set up the queue pair");
	post_all_recvs(r);
	attr.qp_state = ROCI_QPS_RTR;
	if (roci_modify_qp(r->q.qp, &attr, ROCI_QP_STATE))
		return fail(r, "set up the queue pair");
	attr.qp_state = ROCI_QPS_RTS;
	if (roci_modify_qp(r->q.qp, &attr, ROCI_QP_STATE | ROCI_QP_SQ_PSN))
		return fail(r, "set up the queue pair");
	return 0;
}

/* IPB-11: before the netdev exists. MTU, Q_Key and SL are not read from the group, because no
 * subnet manager keeps groups on RoCE: decision 0097. */
static int join_everybody(struct rib *r)
{
	static const uint8_t everybody[4] = {0xFF, 0xFF, 0xFF, 0xFF};
	union roci_gid mgid;

	ipoib_mgid_of_ip4(mgid.raw, r->cfg.pkey, IPOIB_SCOPE, everybody);
	return roci_attach_mcast(r->q.qp, &mgid) ? fail(r, "join the broadcast group") : 0;
}

int rib_open(struct rib *r)
{
	static int (*const step[])(struct rib *) = {
		find_gid, find_pkey, make_queues, climb, join_everybody};
	int err = 0;

	memset(&r->q, 0, sizeof(r->q));
	r->q.ctx = roci_open(r->cfg.socket);
	if (!r->q.ctx)
		return fail(r, "have a session with rocid");
	for (unsigned i = 0; i < sizeof(step) / sizeof(step[0]) && !err; i++)
		err = step[i](r);
	if (err)
		rib_close(r);
	return err;
}

bool rib_port_changed(struct rib *r)
{
	struct roci_gid_entry gid = {.size = sizeof(gid)};
	struct roci_port_attr port = {.size = sizeof(port)};
	uint16_t pkey;

	if (roci_query_pkey(r->q.ctx, r->cfg.port, r->q.pkey_index, &pkey) ||
		roci_query_gid(r->q.ctx, r->cfg.port, r->q.gid_index, &gid) ||
		roci_query_port(r->q.ctx, r->cfg.port, &port))
		return true;
	rib_tap_carrier(r, port.state == ROCI_PORT_ACTIVE);
	return pkey != r->cfg.pkey || memcmp(gid.gid.raw, r->q.own.gid, 16) != 0 ||
	       gid.vid != r->q.vid || memcmp(gid.mac, r->q.mac, 6) != 0 ||
	       roci_mtu_bytes(port.active_mtu) != r->q.capacity + IPOIB_HLEN;
}

/* rocid destroys what is left; only objects that the library requires to be freed are freed here.
 */
void rib_close(struct rib *r)
{
	struct rib_qp *q = &r->q;

	/* rocid destroys all, the queue pair with its groups first. */
	if (q->ctx)
		roci_abandon(q->ctx);
	for (uint32_t i = 0; i < NEIGH_MAX; i++)
		if (q->ah[i])
			roci_destroy_ah(q->ah[i]);
	if (q->qp)
		roci_destroy_qp(q->qp);
	if (q->cq)
		roci_destroy_cq(q->cq);
	if (q->channel)
		roci_destroy_channel(q->channel);
	if (q->mr)
		roci_dereg_mr(q->mr);
	if (q->pd)
		roci_dealloc_pd(q->pd);
	if (q->ctx)
		roci_close(q->ctx);
	memset(q, 0, sizeof(*q));
}

struct roci_ah *rib_handle(struct rib *r, const uint8_t gid[16])
{
	struct roci_ah_attr attr = {.grh = {.sgid_index = r->q.gid_index, .hop_limit = HOPS},
		.is_global = 1,
		.port_num = (uint8_t)r->cfg.port};

	memcpy(attr.grh.dgid.raw, gid, 16);
	return roci_create_ah_at_once(r->q.pd, &attr);
}

/* --- requests --------------------------------------------------------------------------------- */

void rib_post_recvs(struct rib *r, const uint32_t *slots, uint32_t n)
{
	struct roci_recv_wr wr[RIB_BURST];
	struct roci_sge sge[RIB_BURST];
	const struct roci_recv_wr *bad;

	for (uint32_t i = 0; i < n; i++) {
		sge[i] = (struct roci_sge){.addr = (uintptr_t)rib_recv_slot(r, slots[i]),
			.length = ROCI_GRH_LEN + IPOIB_HLEN + IPOIB_MTU_MAX,
			.lkey = r->q.mr->lkey};
		wr[i] = (struct roci_recv_wr){.wr_id = slots[i] | RIB_RECV,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1};
	}
	if (n && roci_post_recv(r->q.qp, wr, &bad))
		rib_fail(r, "its receive queue failed");
}

uint8_t *rib_send_slot(struct rib *r)
{
	if (r->q.posted - r->q.done == RIB_SENDS)
		return NULL;
	return rib_recv_slot(r, RIB_RECVS + r->q.posted % RIB_SENDS);
}

void rib_post_send(struct rib *r, const struct ipoib_tx *tx)
{
	struct rib_qp *q = &r->q;
	struct roci_send_wr *wr = &q->chain[q->chained];
	struct roci_sge *sge = &q->sge[q->chained];

	*sge = (struct roci_sge){.addr = (uintptr_t)tx->at, .length = tx->len, .lkey = q->mr->lkey};
	*wr = (struct roci_send_wr){.wr_id = q->posted,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = ROCI_WR_SEND,
		.wr.ud = {.ah = q->ah[tx->dest], .remote_qpn = tx->qpn, .remote_qkey = IPOIB_QKEY}};
	if (q->posted % RIB_SIGNAL == RIB_SIGNAL - 1)
		wr->send_flags = ROCI_SEND_SIGNALED;
	if (q->chained)
		q->chain[q->chained - 1].next = wr;
	q->posted++;
	if (++q->chained == RIB_CHAIN)
		rib_flush_sends(r);
}

void rib_flush_sends(struct rib *r)
{
	const struct roci_send_wr *bad;

	if (r->q.chained && roci_post_send(r->q.qp, r->q.chain, &bad))
		rib_fail(r, "its send queue failed");
	r->q.chained = 0;
}
