/* SPDX-License-Identifier: BSD-3-Clause */
/* QP1 of each port: set-up and received datagrams. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "abi_ring.h"
#include "abi_wqe.h"
#include "cm/gsi.h"
#include "cm/gsi_impl.h"
#include "config/ctl_parts.h"
#include "headers.h"
#include "net/net.h"
#include "qp.h"
#include "refuse.h"
#include "session/handles.h"
#include "session/message.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/cq_obj.h"
#include "verbs/qp_obj.h"
#include "worker.h"

#define GRH_AREA 40u
#define IP4_AT	 20u /* offset of an IPv4 header in the area (CA17 17.4.5.1) */
/** A slot holds the largest datagram of any path MTU. */
#define SLOT (GRH_AREA + 4096u + 24u)

/* --- set-up ----------------------------------------------------------------------------------- */

/* Executes a command that must not be deferred. */
static int ask(struct gsi *g, uint32_t type, const void *body, size_t len, int fd, struct reply *r)
{
	struct request q = {.msg = {.type = type}, .body_len = len, .fd = fd};
	int err;

	memset(r, 0, sizeof(*r));
	if (len)
		memcpy(q.body, body, len);
	err = g->ctl->sessions->ops->run(g->session, &q, r);
	return err > 0 ? refuse(r->why, -EAGAIN, "rocid's own request was deferred: try again")
		       : err;
}

static void close_fds(struct reply *r)
{
	while (r->nfds)
		close(r->fd[--r->nfds]);
}

/* Receives the deferred reply to a CREATE_AH, which waited for the neighbour. */
static void replied(struct session *s, const struct abi_msg *msg, const struct reply *r)
{
	struct abi_handle_reply out = {0};

	if (!msg->status)
		memcpy(&out, r->body, sizeof(out));
	gsi_resolved(s->replied_arg, msg->seq, msg->status, out.handle);
}

static int hello(struct gsi *g, struct reply *r)
{
	const struct abi_hello body = {.magic = ABI_MAGIC,
		.version_min = ABI_VERSION_MIN,
		.version_max = ABI_VERSION,
		.name = "rocid-cm"};
	struct sessions *all = g->ctl->sessions;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return refuse(r->why, -errno, "rocid cannot create a socket: %s", strerror(errno));
	g->fd = pair[1];
	err = session_open(g->ctl, pair[0]);
	if (err)
		return refuse(r->why, err, "rocid has no room for QP1: %s", strerror(-err));
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (all->session[i] && all->session[i]->watch.fd == pair[0])
			g->session = all->session[i];
	g->session->own = true;
	g->session->replied = replied;
	g->session->replied_arg = g;
	err = ask(g, ABI_HELLO, &body, sizeof(body), -1, r);
	close_fds(r);
	return err;
}

static int make_buffer(struct gsi *g, struct reply *r)
{
	struct abi_reg_mr body = {.pd = g->pd, .access = ABI_ACCESS_LOCAL_WRITE};
	struct abi_reg_mr_reply out;
	int fd = memfd_create("roci-gsi", MFD_CLOEXEC), err;

	g->buffer_size = (size_t)g->ctl->net->nports * GSI_RECVS * SLOT;
	if (fd < 0 || ftruncate(fd, (off_t)g->buffer_size)) {
		err = refuse(r->why, -errno, "out of memory for QP1: %s", strerror(errno));
	} else {
		g->buffer = mmap(NULL, g->buffer_size, PROT_READ, MAP_SHARED, fd, 0);
		err = g->buffer == MAP_FAILED
			      ? refuse(r->why, -errno, "out of memory for QP1: %s", strerror(errno))
			      : 0;
		g->buffer = err ? NULL : g->buffer;
	}
	body.iova = (uintptr_t)g->buffer;
	body.length = g->buffer_size;
	if (!err)
		err = ask(g, ABI_REG_MR, &body, sizeof(body), fd, r);
	if (fd >= 0)
		close(fd);
	memcpy(&out, r->body, sizeof(out));
	g->lkey = out.lkey;
	return err;
}

static void arrived_ready(struct watch *w);

static int make_cq(struct gsi *g, struct reply *r)
{
	struct abi_create_cq body = {.depth = 2 * g->ctl->net->nports * (GSI_RECVS + GSI_SENDS)};
	struct abi_create_cq_reply out;
	struct abi_handle_reply channel;
	struct cq_obj *cq;
	int err = ask(g, ABI_CREATE_CHANNEL, NULL, 0, -1, r);

	if (err)
		return err;
	memcpy(&channel, r->body, sizeof(channel));
	g->arrived = (struct watch){.fd = r->fd[0], .ready = arrived_ready};
	r->nfds = 0;
	body.channel = g->channel = channel.handle;
	err = loop_watch(g->ctl->loop, &g->arrived);
	if (!err)
		err = ask(g, ABI_CREATE_CQ, &body, sizeof(body), -1, r);
	close_fds(r);
	if (err)
		return err;
	memcpy(&out, r->body, sizeof(out));
	cq = handle_get(&g->session->cqs, out.handle);
	g->cq = out.handle;
	g->ring = cq->ring.base;
	g->cq_depth = out.depth;
	g->lanes = out.lanes;
	g->lane_off = out.lane_off;
	g->lane_stride = out.lane_stride;
	return 0;
}

static int climb(struct gsi *g, uint32_t handle, struct reply *r)
{
	static const struct {
		uint8_t state;
		uint32_t mask;
	} steps[] = {{ABI_QPS_INIT, ABI_QP_PKEY_INDEX | ABI_QP_QKEY}, {ABI_QPS_RTR, 0},
		{ABI_QPS_RTS, ABI_QP_SQ_PSN}};
	int err = 0;

	for (unsigned i = 0; !err && i < ARRAY_SIZE(steps); i++) {
		struct abi_modify_qp m = {.handle = handle,
			.mask = ABI_QP_STATE | steps[i].mask,
			.attr = {.qp_state = steps[i].state, .qkey = MAD_QKEY}};

		err = ask(g, ABI_MODIFY_QP, &m, sizeof(m), -1, r);
	}
	return err;
}

static void post_recv(struct gsi *g, uint32_t port, uint32_t slot)
{
	struct gsi_port *p = &g->port[port];
	const struct ring *rq = &p->qp->qp->rq;
	struct abi_recv_wqe *w =
		(struct abi_recv_wqe *)(rq->entries +
					(size_t)(p->received & (rq->depth - 1)) * rq->stride);
	size_t at = ((size_t)port * GSI_RECVS + slot) * SLOT;

	w->wr_id = (uint64_t)port << 32 | slot;
	w->sge[0] = (struct abi_sge){
		.addr = (uintptr_t)g->buffer + at, .length = SLOT, .lkey = g->lkey};
	atomic_store_explicit((_Atomic uint32_t *)&w->ctl,
		ABI_WQE_CTL(0, 1, abi_phase(p->received, rq->depth)), memory_order_release);
	p->received++;
	atomic_store_explicit(&rq->shared->producer, p->received, memory_order_release);
}

static int make_qp(struct gsi *g, uint32_t port, struct reply *r)
{
	const struct abi_create_qp body = {.pd = g->pd,
		.type = ABI_QPT_GSI,
		.send_cq = g->cq,
		.recv_cq = g->cq,
		.srq = ABI_NO_HANDLE,
		.max_send_wr = GSI_SENDS,
		.max_recv_wr = GSI_RECVS,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = MAD_LEN,
		.port = port + 1};
	struct abi_create_qp_reply out;
	int err = ask(g, ABI_CREATE_QP, &body, sizeof(body), -1, r);

	close_fds(r);
	if (err)
		return err;
	memcpy(&out, r->body, sizeof(out));
	err = climb(g, out.handle, r);
	if (err)
		return err;
	g->port[port] = (struct gsi_port){
		.qp = handle_get(&g->session->qps, out.handle), .handle = out.handle};
	for (uint32_t i = 0; i < GSI_RECVS; i++)
		post_recv(g, port, i);
	return 0;
}

/* Workers may sleep without checking these doorbells, because worker_wake() follows each ring. */
static int promise_to_wake(struct gsi *g, struct reply *r)
{
	int err = 0;

	for (uint32_t w = 0; !err && w < g->ctl->dp->nworkers; w++) {
		const struct abi_get_wake body = {.worker = w};

		err = ask(g, ABI_GET_WAKE, &body, sizeof(body), -1, r);
		close_fds(r);
	}
	return err == -EOPNOTSUPP ? 0 : err; /* these workers never sleep */
}

static int make_parts(struct gsi *g, struct reply *r)
{
	struct abi_handle_reply pd;
	int err = ask(g, ABI_ALLOC_PD, NULL, 0, -1, r);

	memcpy(&pd, r->body, sizeof(pd));
	g->pd = pd.handle;
	if (!err)
		err = promise_to_wake(g, r);
	if (!err)
		err = make_buffer(g, r);
	if (!err)
		err = make_cq(g, r);
	for (uint32_t i = 0; !err && i < g->ctl->net->nports; i++)
		err = make_qp(g, i, r);
	return err;
}

static int start(struct gsi *g, char why[ABI_SENTENCE_MAX])
{
	struct reply r = {0};
	int err = hello(g, &r);

	if (!err)
		err = make_parts(g, &r);
	if (err)
		return refuse(why, err, "rocid cannot use QP1: %s", r.why);
	gsi_poll(g); /* arms */
	return 0;
}

int gsi_open(struct gsi *g, struct ctl *ctl, char why[ABI_SENTENCE_MAX])
{
	g->ctl = ctl;
	g->arrived.fd = -1;
	g->fd = -1;
	g->waiting = calloc(GSI_WAITING, sizeof(*g->waiting));
	return g->waiting ? start(g, why) : refuse_memory(why);
}

/* Forgets the session and all that belongs to it. @return the session */
static struct session *leave(struct gsi *g)
{
	struct session *s = g->session;

	g->session = NULL;
	loop_unwatch(g->ctl->loop, &g->arrived);
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
	if (g->buffer)
		munmap(g->buffer, g->buffer_size);
	g->buffer = NULL;
	memset(g->port, 0, sizeof(g->port));
	memset(g->ah, 0, sizeof(g->ah));
	memset(g->taken, 0, sizeof(g->taken));
	g->nasked = 0;
	g->more = false;
	return s;
}

static void stop(struct gsi *g)
{
	struct session *s = leave(g);

	if (s)
		session_close(s);
}

void gsi_lost(struct gsi *g)
{
	fprintf(stderr, "rocid: the memory of QP1 was lost: no program can connect by RDMA CM "
			"until QP1 is open again\n");
	leave(g);
	g->again_ms = loop_now_ms() + GSI_AGAIN_MS;
}

/* The memory may still be short, and QP1 belongs to the old session until that has ended. */
int gsi_reopen(struct gsi *g)
{
	uint64_t now = loop_now_ms();
	char why[ABI_SENTENCE_MAX];

	if (!g->again_ms)
		return -1;
	if (now < g->again_ms)
		return (int)(g->again_ms - now);
	g->again_ms = now + GSI_AGAIN_MS;
	if (start(g, why)) {
		stop(g);
		return GSI_AGAIN_MS;
	}
	g->again_ms = 0;
	fprintf(stderr, "rocid: QP1 is open again\n");
	return -1;
}

void gsi_close(struct gsi *g)
{
	if (!g->ctl)
		return;
	stop(g);
	free(g->waiting);
	g->waiting = NULL;
}

/* --- receiving -------------------------------------------------------------------------------- */

static void ipv4_gid(uint8_t gid[16], const uint8_t *ip)
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xFF;
	memcpy(gid + 12, ip, 4);
}

/* The return path: addresses and traffic class from the packet's IP header or GRH (CM-09). */
static void read_path(const struct gsi *g, const struct abi_cqe *cqe, uint32_t port,
	const uint8_t *area, struct cm_path *p)
{
	const struct port *shared = &g->ctl->dp->ports->port[port];
	const uint8_t *ip4 = area + IP4_AT;

	*p = (struct cm_path){.vid = cqe->vid, .port = (uint8_t)port};
	p->pkey = atomic_load_explicit(
		&shared->pkey[cqe->pkey_index < PKEY_MAX ? cqe->pkey_index : 0],
		memory_order_relaxed);
	p->net = cqe->net == ABI_NET_ROCEV1 ? NET_ROCEV1
		 : cqe->net == ABI_NET_IPV4 ? NET_IPV4
					    : NET_IPV6;
	if (cqe->net == ABI_NET_IPV4) {
		p->tclass = ip4[1];
		ipv4_gid(p->remote, ip4 + 12);
		ipv4_gid(p->local, ip4 + 16);
	} else {
		p->tclass = (uint8_t)(area[0] << 4 | area[1] >> 4);
		p->flow_label = (uint32_t)(area[1] & 0xF) << 16 | (uint32_t)area[2] << 8 | area[3];
		memcpy(p->remote, area + 8, 16);
		memcpy(p->local, area + 24, 16);
	}
	p->tclass &= CM_DSCP;
}

/* Works on a copy, because the next receive may overwrite the memory. */
static void take(struct gsi *g, const struct abi_cqe *cqe)
{
	uint32_t port = (uint32_t)(cqe->wr_id >> 32), slot = (uint32_t)cqe->wr_id;
	const uint8_t *area = g->buffer + ((size_t)port * GSI_RECVS + slot) * SLOT;
	uint8_t head[GRH_AREA], mad[MAD_LEN];
	struct cm_path from;
	size_t len = cqe->byte_len > GRH_AREA ? cqe->byte_len - GRH_AREA : 0;

	memcpy(head, area, sizeof(head));
	memcpy(mad, area + GRH_AREA, sizeof(mad));
	post_recv(g, port, slot);
	read_path(g, cqe, port, head, &from);
	if (cqe->src_qp != 1 || gsi_sgid_index(g->ctl, &from) < 0) {
		g->strange++;
		return;
	}
	g->mad(g->arg, &from, mad, len);
}

/* A datagram longer than any path MTU, possible on an Ethernet with larger frames: reposts the
 * receive. */
static void too_long(struct gsi *g, const struct abi_cqe *cqe)
{
	post_recv(g, (uint32_t)(cqe->wr_id >> 32), (uint32_t)cqe->wr_id);
	g->strange++;
}

/* Successful sends do not complete. A failed one, for example because its P_Key was removed, has
 * left the send queue in SQE and flushed later sends (QPS-11). */
static void send_failed(struct gsi *g, const struct abi_cqe *cqe)
{
	if (cqe->status != ABI_WC_WR_FLUSH_ERR)
		g->port[cqe->wr_id >> 32].stopped = true;
}

static void resume(struct gsi *g)
{
	for (uint32_t i = 0; i < g->ctl->net->nports; i++) {
		struct abi_modify_qp m = {.mask = ABI_QP_STATE, .attr = {.qp_state = ABI_QPS_RTS}};
		struct reply r;

		if (!g->port[i].stopped)
			continue;
		g->port[i].stopped = false;
		m.handle = g->port[i].handle;
		ask(g, ABI_MODIFY_QP, &m, sizeof(m), -1, &r);
	}
}

static const struct abi_cqe *peek(const struct gsi *g, uint32_t lane)
{
	uint8_t *at = g->ring + g->lane_off + (size_t)lane * g->lane_stride;
	struct abi_cqe *cqe = (struct abi_cqe *)(at + sizeof(struct abi_cq_lane)) +
			      (g->taken[lane] & (g->cq_depth - 1));
	uint32_t mark = atomic_load_explicit((_Atomic uint32_t *)&cqe->mark, memory_order_acquire);

	return (mark & 1) == abi_phase(g->taken[lane], g->cq_depth) ? cqe : NULL;
}

static void consume(struct gsi *g, uint32_t lane)
{
	struct abi_cq_lane *l =
		(struct abi_cq_lane *)(g->ring + g->lane_off + (size_t)lane * g->lane_stride);

	g->taken[lane]++;
	atomic_store_explicit(&l->consumer, g->taken[lane], memory_order_release);
}

static void arm(struct gsi *g)
{
	struct abi_cq *cq = (struct abi_cq *)g->ring;
	uint32_t old = atomic_load_explicit(&cq->arm, memory_order_relaxed), next;

	do
		next = ((old & ~ABI_CQ_ARM_MASK) + ABI_CQ_ARM_STEP) | ABI_CQ_ARM_ANY;
	while (!atomic_compare_exchange_weak(&cq->arm, &old, next));
	atomic_thread_fence(memory_order_seq_cst);
}

static uint32_t take_round(struct gsi *g, uint32_t budget)
{
	const struct abi_cqe *at;
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->lanes; i++)
		while (n < budget && (at = peek(g, i))) {
			struct abi_cqe cqe = *at;

			consume(g, i);
			n++;
			if (cqe.opcode != ABI_WC_RECV)
				send_failed(g, &cqe);
			else if (cqe.status == ABI_WC_SUCCESS)
				take(g, &cqe);
			else if (cqe.status == ABI_WC_LOC_LEN_ERR)
				too_long(g, &cqe);
		}
	return n;
}

bool gsi_poll(struct gsi *g)
{
	uint32_t n;

	if (!g->session)
		return false;
	n = take_round(g, GSI_ROUND);
	if (n < GSI_ROUND) { /* MADs that arrived before the arming are taken here */
		arm(g);
		n += take_round(g, GSI_ROUND - n);
	}
	resume(g);
	g->more = n >= GSI_ROUND;
	return g->more;
}

static void arrived_ready(struct watch *w)
{
	struct gsi *g = container_of(w, struct gsi, arrived);
	struct abi_event event;
	ssize_t n = recv(w->fd, &event, sizeof(event), MSG_DONTWAIT);

	(void)n;
	gsi_poll(g);
}
