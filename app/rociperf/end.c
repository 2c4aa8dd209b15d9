/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include "end.h"
#include "message.h"
#include "rc.h"
#include "recvs.h"
#include "ticks.h"
#include "ud.h"
#include "verify.h"

#define OUTS_USUAL 16u
#define PSN_MASK   0xFFFFFFu
#define GROUP_QPN  0xFFFFFFu /* of everything that is sent to a group (MC-07) */

/* The first words of MESSAGE_ADDRESS. Then follow QPN << 32 | PSN of each QP, and with XRC the QPN
 * of each target. The rkey follows in MESSAGE_READY, because a window is bound by a QP that is
 * connected.
 */
enum {
	ADDRESS_GID_HIGH,
	ADDRESS_GID_LOW,
	ADDRESS_MTU,
	ADDRESS_RD_ATOMIC,
	ADDRESS_SRQN,
	ADDRESS_TX,
	ADDRESS_RX,
	ADDRESS_QPS,
};

void end_must(bool ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

/* The remedy for the user, if a status has one usual cause. */
static const char *advice(enum roci_wc_status status)
{
	switch (status) {
	case ROCI_WC_RETRY_EXC_ERR:
		return "; the other end's rocid did not answer: check that it runs, that this port "
		       "and GID reach it, and that the path carries frames of this MTU (--mtu)";
	case ROCI_WC_WR_FLUSH_ERR:
		return "; the QP went to ERR before: see `rocictl show qps` for its state";
	case ROCI_WC_REM_ACCESS_ERR:
	case ROCI_WC_REM_INV_REQ_ERR:
	case ROCI_WC_REM_OP_ERR:
		return "; the other end's rocid refused it";
	default:
		return "";
	}
}

static bool is_daemon_gone(const struct end *e)
{
	struct roci_port_attr port = {.size = sizeof(port)};

	return roci_query_port(e->ctx, e->place.port, &port) == EIO;
}

/* rocid's explanation, "" for none. */
static const char *explanation(const struct end *e, uint32_t qpn)
{
	for (uint32_t i = 0; i < e->flows; i++)
		if (e->flow[i].qp->qp_num == qpn)
			return roci_qp_error(e->flow[i].qp);
		else if (e->flow[i].target && e->flow[i].target->qp_num == qpn)
			return roci_qp_error(e->flow[i].target);
	return "";
}

void end_failed(const struct end *e, const struct roci_wc *wc)
{
	const char *why = explanation(e, wc->qp_num);

	if (is_daemon_gone(e))
		errx(1, "rocid has ended: read its messages");
	if (message_over(e->fd))
		errx(1, "the peer has disconnected: see its own message for the reason");
	errx(1, "%s of %u bytes on QP %u failed: %s%s%s",
		wc->opcode & ROCI_WC_RECV ? "a receive" : e->op->title, e->shape.size, wc->qp_num,
		roci_wc_status_str(wc->status), *why ? ": " : "", *why ? why : advice(wc->status));
}

/* --- objects ---------------------------------------------------------------------------- */

static bool receives(const struct end *e)
{
	return e->op->receives && e->targets;
}

/* Members of the group do not send to it: in a latency test the answers are sent to the client's
 * QP. */
static bool is_member(const struct end *e)
{
	return plan_mcast(e->plan) && !e->initiates;
}

/* The maximum of each resource that any size needs. */
static struct shape largest_shape(const struct plan *p)
{
	struct shape most = shape_of(p, plan_first_size(p));

	for (uint32_t size = plan_first_size(p); size; size = plan_next_size(p, size)) {
		struct shape s = shape_of(p, size);

		most.depth = MAX(most.depth, s.depth);
		most.rx_depth = MAX(most.rx_depth, s.rx_depth);
		most.cq_mod = MIN(most.cq_mod, s.cq_mod);
		most.send_flags |= s.send_flags;
	}
	return most;
}

static void make_cq(struct end *e, const struct shape *most, const struct roci_device_attr *dev)
{
	/* Completions per QP: of its requests, of the last one, and of its receives. */
	uint64_t each = most->depth / most->cq_mod + 2 + (receives(e) ? most->rx_depth : 0);
	uint64_t cqe = e->flows * each;

	if (cqe > dev->max_cqe)
		errx(1,
			"%u QPs need a completion queue of %llu entries, but rocid allows at most "
			"%u: lower --rx-depth or --qp, or raise --cq-mod",
			e->flows, (unsigned long long)cqe, dev->max_cqe);
	if (e->plan->value[PARAM_EVENTS])
		end_must((e->channel = roci_create_channel(e->ctx)) != NULL, "completion channel");
	e->cq = roci_create_cq(e->ctx, (int)cqe, NULL, e->channel, 0);
	end_must(e->cq != NULL, "completion queue");
}

static void make_srq(struct end *e, const struct shape *most, const struct roci_device_attr *dev)
{
	uint64_t wr = (uint64_t)e->flows * most->rx_depth;
	struct roci_srq_init_attr attr = {.size = sizeof(attr), .max_sge = 1};

	if (!plan_shares_receives(e->plan) || !receives(e))
		return;
	if (wr > dev->max_srq_wr)
		errx(1,
			"%u QPs need a shared receive queue of %llu receives, but rocid allows at "
			"most %u: lower --rx-depth or --qp",
			e->flows, (unsigned long long)wr, dev->max_srq_wr);
	attr.max_wr = (uint32_t)wr;
	if (e->xrcd) {
		attr.xrcd = e->xrcd;
		attr.cq = e->cq;
	}
	e->srq = roci_create_srq(e->pd, &attr);
	end_must(e->srq != NULL, "shared receive queue");
}

static void make_domain(struct end *e)
{
	const struct roci_xrcd_init_attr attr = {.size = sizeof(attr), .fd = -1, .oflags = O_CREAT};

	if (!plan_xrc(e->plan))
		return;
	e->xrcd = roci_open_xrcd(e->ctx, &attr);
	end_must(e->xrcd != NULL, "XRC domain");
}

/* The maximum number of requests per QP for any size; the window is bound before any. */
static uint32_t send_queue(const struct end *e, const struct shape *most)
{
	return (most->depth + 1) * (e->op->flushes ? END_REQUESTS_MAX : 1);
}

/* The peer's access rights of a QP. */
static int qp_access(const struct end *e)
{
	return ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC |
	       (e->op->flushes ? ROCI_ACCESS_FLUSH_GLOBAL : 0);
}

static void init_qp(struct end *e, struct roci_qp *qp)
{
	uint8_t port = (uint8_t)e->place.port;

	end_must(qp != NULL, "queue pair");
	end_must(!(plan_datagrams(e->plan) ? ud_init(qp, port, END_QKEY)
					   : rc_init(qp, port, qp_access(e))),
		"RESET to INIT");
}

static void make_target(struct end *e, struct flow *f)
{
	struct roci_qp_init_attr attr = {
		.size = sizeof(attr), .qp_type = ROCI_QPT_XRC_RECV, .xrcd = e->xrcd};

	f->target = roci_create_qp(e->pd, &attr);
	init_qp(e, f->target);
}

static void make_qps(struct end *e, const struct shape *most)
{
	bool own_receives = receives(e) && !e->srq;
	struct roci_qp_init_attr attr = {
		.size = sizeof(attr),
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = plan_service(e->plan)->type,
		.srq = e->xrcd ? NULL : e->srq,
		.cap = {.max_send_wr = send_queue(e, most),
			.max_recv_wr = e->xrcd	      ? 0
				       : own_receives ? most->rx_depth
						      : 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = most->send_flags & ROCI_SEND_INLINE
						   ? (uint32_t)e->plan->value[PARAM_INLINE]
						   : 0},
	};

	e->flow = calloc(e->flows, sizeof(e->flow[0]));
	if (!e->flow)
		errx(1, "no memory for %u QPs", e->flows);
	for (uint32_t i = 0; i < e->flows; i++) {
		struct roci_qp_init_attr own = attr;
		struct flow *f = &e->flow[i];

		f->area = e->memory / e->flows * i;
		f->qp = roci_create_qp(e->pd, &own);
		init_qp(e, f->qp);
		if (e->xrcd)
			make_target(e, f);
		f->psn = (uint32_t)(ticks_slow() / 1000 + i) & PSN_MASK; /* any number will do */
	}
}

static void make_memory(struct end *e)
{
	e->memory = shape_memory(e->plan);
	e->mr = roci_alloc_mr(e->pd, 2 * e->memory,
		ROCI_ACCESS_LOCAL_WRITE | (e->plan->value[PARAM_WINDOW] ? ROCI_ACCESS_MW_BIND : 0) |
			qp_access(e));
	end_must(e->mr != NULL, "memory");
	e->rkey = e->mr->rkey;
	e->tx = e->mr->addr;
	e->rx = e->tx + e->memory;
	memset(e->tx, 0x5a, e->memory); /* pages are present from now on */
	memset(e->rx, 0, e->memory);
}

static void query(struct end *e, struct roci_device_attr *dev)
{
	struct roci_port_attr port = {.size = sizeof(port)};
	uint32_t outs = (uint32_t)e->plan->value[PARAM_OUTS];
	uint32_t mtu = (uint32_t)e->plan->value[PARAM_MTU];

	end_must(!roci_query_device(e->ctx, dev), "device");
	end_must(!roci_query_port(e->ctx, e->place.port, &port), "port");
	e->mtu = mtu ? (enum roci_mtu)roci_mtu_of_bytes(mtu) : port.active_mtu;
	if (e->mtu > port.active_mtu)
		errx(1,
			"port %u has a path MTU of at most %u: lower --mtu, or raise the Ethernet "
			"MTU",
			e->place.port, roci_mtu_bytes(port.active_mtu));
	e->rd_atomic = (uint8_t)MIN(dev->max_qp_rd_atom, outs ? outs : OUTS_USUAL);
	if (outs > e->rd_atomic)
		errx(1, "rocid allows at most %u outstanding READs per QP: lower --outs",
			e->rd_atomic);
}

void end_probe(const struct place *place)
{
	struct roci_port_attr port = {.size = sizeof(port)};
	struct roci_context *ctx = roci_open(place->socket);

	end_must(ctx != NULL, "rocid");
	end_must(!roci_query_port(ctx, place->port ? place->port : 1, &port), "port");
	end_must(!roci_close(ctx), "end the session");
}

unsigned end_other_port(const struct end *e)
{
	struct roci_gid_entry gid = {.size = sizeof(gid)};

	if (e->place.port == 1 && roci_find_gid(e->ctx, 2, NULL, &gid) == 0)
		return 2;
	return e->place.port;
}

/* QPs of the client or the server: a group has one sender. */
static uint32_t flows_of(const struct plan *plan, bool client)
{
	return client ? (uint32_t)plan_senders(plan) : (uint32_t)plan->value[PARAM_QPS];
}

void end_open(
	struct end *e, const struct plan *plan, const struct place *place, int fd, bool client)
{
	bool to_and_fro = plan_test(plan) == TEST_LAT && !op_told(plan_op(plan));
	bool duplex = plan->value[PARAM_BIDIRECTIONAL];
	struct roci_device_attr dev = {.size = sizeof(dev)};
	struct shape most = largest_shape(plan);

	*e = (struct end){
		.plan = plan,
		.op = plan_op(plan),
		.place = *place,
		.initiates = client || duplex,
		.targets = !client || duplex || to_and_fro,
		.fd = fd,
		.flows = flows_of(plan, client),
		.peer_flows = flows_of(plan, !client),
		.group = plan_group(plan),
	};
	if (!e->place.port)
		e->place.port = 1;
	end_must((e->ctx = roci_open(place->socket)) != NULL, "rocid");
	query(e, &dev);
	end_must((e->pd = roci_alloc_pd(e->ctx)) != NULL, "protection domain");
	make_cq(e, &most, &dev);
	make_memory(e);
	make_domain(e);
	make_srq(e, &most, &dev);
	make_qps(e, &most);
}

void end_close(struct end *e)
{
	for (uint32_t i = 0; i < e->flows; i++) {
		if (is_member(e))
			end_must(!roci_detach_mcast(e->flow[i].qp, &e->group), "leave the group");
		end_must(!roci_destroy_qp(e->flow[i].qp), "destroy a queue pair");
		if (e->flow[i].target)
			end_must(!roci_destroy_qp(e->flow[i].target), "destroy a queue pair");
	}
	free(e->flow);
	if (e->ah)
		end_must(!roci_destroy_ah(e->ah), "destroy the address handle");
	if (e->srq)
		end_must(!roci_destroy_srq(e->srq), "destroy the shared receive queue");
	if (e->xrcd)
		end_must(!roci_close_xrcd(e->xrcd), "close the XRC domain");
	if (e->mw)
		end_must(!roci_dealloc_mw(e->mw), "free the memory window");
	end_must(!roci_destroy_cq(e->cq), "destroy the completion queue");
	if (e->channel)
		end_must(!roci_destroy_channel(e->channel), "destroy the completion channel");
	end_must(!roci_dereg_mr(e->mr), "deregister memory");
	end_must(!roci_dealloc_pd(e->pd), "free the protection domain");
	end_must(!roci_close(e->ctx), "end the session");
}

/* --- connecting -------------------------------------------------------------------------- */

void end_choose_gid(struct end *e, const union roci_gid *peer)
{
	if (!peer && plan_mcast(e->plan))
		peer = &e->group;
	e->gid = (struct roci_gid_entry){.size = sizeof(e->gid)};
	if (e->place.gid_index >= 0)
		end_must(!roci_query_gid(
				 e->ctx, e->place.port, (uint32_t)e->place.gid_index, &e->gid),
			"GID");
	else
		end_must(!roci_find_gid(e->ctx, e->place.port, peer, &e->gid),
			peer == &e->group ? "GID for the group" : "GID");
}

static uint32_t address_count(const struct end *e, uint32_t flows)
{
	return ADDRESS_QPS + flows * (e->xrcd ? 2 : 1);
}

static uint64_t *address_words(const struct end *e, uint32_t flows)
{
	uint64_t *word = calloc(address_count(e, flows), sizeof(word[0]));

	if (!word)
		errx(1, "no memory for the addresses of %u QPs", flows);
	return word;
}

void end_tell(const struct end *e)
{
	uint64_t *word = address_words(e, e->flows);

	word[ADDRESS_GID_HIGH] = be64toh(e->gid.gid.global.subnet_prefix);
	word[ADDRESS_GID_LOW] = be64toh(e->gid.gid.global.interface_id);
	word[ADDRESS_MTU] = e->mtu;
	word[ADDRESS_RD_ATOMIC] = e->rd_atomic;
	word[ADDRESS_SRQN] = e->srq ? e->srq->srq_num : 0;
	word[ADDRESS_TX] = (uintptr_t)e->tx;
	word[ADDRESS_RX] = (uintptr_t)e->rx;
	for (uint32_t i = 0; i < e->flows; i++) {
		const struct flow *f = &e->flow[i];

		word[ADDRESS_QPS + i] = (uint64_t)f->qp->qp_num << 32 | f->psn;
		if (e->xrcd)
			word[ADDRESS_QPS + e->flows + i] = f->target->qp_num;
	}
	message_send(e->fd, MESSAGE_ADDRESS, word, address_count(e, e->flows));
	free(word);
}

void end_hear(struct end *e)
{
	uint64_t *word = address_words(e, e->peer_flows);

	message_receive(e->fd, MESSAGE_ADDRESS, word, address_count(e, e->peer_flows));
	e->peer_gid.global.subnet_prefix = htobe64(word[ADDRESS_GID_HIGH]);
	e->peer_gid.global.interface_id = htobe64(word[ADDRESS_GID_LOW]);
	e->mtu = MIN(e->mtu, (enum roci_mtu)word[ADDRESS_MTU]);
	e->rd_atomic = (uint8_t)MIN(e->rd_atomic, word[ADDRESS_RD_ATOMIC]);
	e->peer_srqn = (uint32_t)word[ADDRESS_SRQN];
	e->peer_tx = word[ADDRESS_TX];
	e->peer_rx = word[ADDRESS_RX];
	for (uint32_t i = 0; i < MIN(e->flows, e->peer_flows); i++) {
		struct flow *f = &e->flow[i];

		f->peer_source = f->peer_qpn = (uint32_t)(word[ADDRESS_QPS + i] >> 32);
		f->peer_psn = (uint32_t)word[ADDRESS_QPS + i] & PSN_MASK;
		if (e->xrcd)
			f->peer_qpn = (uint32_t)word[ADDRESS_QPS + e->peer_flows + i];
	}
	free(word);
}

static struct rc_path path_of(const struct end *e, const struct flow *f)
{
	return (struct rc_path){
		.port = (uint8_t)e->place.port,
		.gid_index = (uint8_t)e->gid.gid_index,
		.mtu = e->mtu,
		.psn = f->psn,
		.rd_atomic = e->rd_atomic,
		.timeout = (uint8_t)e->plan->value[PARAM_TIMEOUT],
		.sl = (uint8_t)e->plan->value[PARAM_SL],
		.traffic_class = (uint8_t)e->plan->value[PARAM_TCLASS],
		.flow_label = (uint32_t)e->plan->value[PARAM_FLOW_LABEL],
		.peer_qpn = f->peer_qpn,
		.peer_psn = f->peer_psn,
		.peer_gid = e->peer_gid,
	};
}

/* The address vector for all datagrams of this end. */
static struct roci_ah_attr datagram_address(const struct end *e)
{
	const struct rc_path path = path_of(e, &e->flow[0]);
	struct roci_ah_attr attr = rc_address(&path);

	if (plan_mcast(e->plan) && !is_member(e))
		attr.grh.dgid = e->group;
	return attr;
}

static void start_group(struct end *e)
{
	if (!is_member(e))
		e->flow[0].peer_qpn = GROUP_QPN;
	else
		for (uint32_t i = 0; i < e->flows; i++)
			end_must(!roci_attach_mcast(e->flow[i].qp, &e->group), "join the group");
}

/* Datagrams have an address handle instead of a connection. */
static void start_datagrams(struct end *e)
{
	const struct roci_ah_attr attr = datagram_address(e);

	if (plan_largest(e->plan) > roci_mtu_bytes(e->mtu))
		errx(1,
			"datagrams of %u bytes exceed the path MTU of %u that both ends support: "
			"lower --size or --mtu",
			plan_largest(e->plan), roci_mtu_bytes(e->mtu));
	e->ah = roci_create_ah(e->pd, &attr);
	end_must(e->ah != NULL, "address handle");
	for (uint32_t i = 0; i < e->flows; i++)
		end_must(!ud_start(e->flow[i].qp, e->flow[i].psn), "INIT to RTS");
	if (plan_mcast(e->plan))
		start_group(e);
}

void end_connect(struct end *e)
{
	if (plan_datagrams(e->plan)) {
		start_datagrams(e);
		return;
	}
	for (uint32_t i = 0; i < e->flows; i++) {
		const struct flow *f = &e->flow[i];
		struct rc_path path = path_of(e, f);

		end_must(!rc_connect(f->qp, &path), "connect");
		if (!f->target)
			continue;
		path.peer_qpn = f->peer_source;
		end_must(!rc_connect(f->target, &path), "connect");
	}
}

/* --- between sizes ------------------------------------------------------------------------ */

/* A type 1 window is for all QPs of the PD; any of them binds it. */
static void bind_window(struct end *e)
{
	const struct roci_mw_bind bind = {
		.send_flags = ROCI_SEND_SIGNALED,
		.bind_info = {.mr = e->mr,
			.addr = (uintptr_t)e->mr->addr,
			.length = 2 * e->memory,
			.mw_access_flags = (unsigned)qp_access(e)},
	};
	struct roci_wc wc;
	int n;

	e->mw = roci_alloc_mw(e->pd, ROCI_MW_TYPE_1);
	end_must(e->mw != NULL, "memory window");
	end_must(!roci_bind_mw(e->flow[0].qp, e->mw, &bind), "bind the memory window");
	while ((n = roci_poll_cq(e->cq, 1, &wc)) == 0)
		sched_yield();
	end_must(n == 1, "completions");
	if (wc.status != ROCI_WC_SUCCESS)
		errx(1, "cannot bind the memory window: %s: %s", roci_wc_status_str(wc.status),
			explanation(e, wc.qp_num));
	e->rkey = e->mw->rkey;
}

void end_tell_ready(const struct end *e)
{
	const uint64_t rkey = e->rkey;

	message_send(e->fd, MESSAGE_READY, &rkey, 1);
}

void end_hear_ready(struct end *e)
{
	uint64_t rkey;

	message_receive(e->fd, MESSAGE_READY, &rkey, 1);
	e->peer_rkey = (uint32_t)rkey;
}

void end_shape(struct end *e, uint32_t size)
{
	e->shape = shape_of(e->plan, size);
	/* No message of the last size may be mistaken for one of this size. */
	if (plan_test(e->plan) == TEST_LAT || e->plan->value[PARAM_VERIFY])
		memset(e->rx, 0, e->memory);
	for (uint32_t i = 0; i < e->flows; i++) {
		struct flow *f = &e->flow[i];

		f->sent = f->done = (struct cursor){0};
		f->unsignaled = 0;
		f->taken.seq = f->posted.seq = 0;
		if (!e->op->scatters) /* otherwise receives wait for slots */
			f->taken.slot = f->taken.round = 0;
		if (receives(e))
			recvs_fill(e, f);
	}
	if (e->plan->value[PARAM_VERIFY] && e->op->fetches)
		verify_offer(e);
	if (e->plan->value[PARAM_WINDOW] && e->targets && !e->mw)
		bind_window(e);
}
