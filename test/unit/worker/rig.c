/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "abi_wqe.h"
#include "core_command.h"
#include "cq.h"
#include "headers.h"
#include "mr.h"
#include "patience.h"
#include "qp_table.h"
#include "rig.h"
#include "ringpair.h"
#include "rxwake.h"

#define RIG_PD 7

static void *zeroes(size_t size)
{
	size_t whole = (size + ABI_LINE - 1) / ABI_LINE * ABI_LINE;
	void *p = aligned_alloc(ABI_LINE, whole);

	assert_non_null(p);
	return memset(p, 0, whole);
}

static void fill_port(struct rig *r, unsigned i)
{
	struct port *port = &r->dp->ports->port[i];
	struct gid_entry *e = &r->gids[i].entry[0];
	static const uint8_t prefix[15] = {
		[10] = 0xFF, [11] = 0xFF, [12] = 192, [13] = 0, [14] = 2};

	memcpy(e->gid, prefix, sizeof(prefix));
	e->gid[15] = (uint8_t)(10 + i);
	e->net = NET_IPV4;
	e->valid = true;
	memcpy(e->mac, r->info[i].mac, 6);
	r->gids[i].count = 1;
	atomic_store(&port->gids, &r->gids[i]);
	port->pkey[0] = 0xFFFF;
	port->pkeys = 1;
	port->active_mtu = PATH_MTU_MAX;
	port_set_mac(port, r->info[i].mac);
}

void rig_up(struct rig *r, uint32_t nworkers)
{
	rig_up_idle(r, nworkers, IDLE_YIELD); /* tests share their cores */
}

void rig_up_idle(struct rig *r, uint32_t nworkers, enum idle idle)
{
	char why[ABI_SENTENCE_MAX] = "";

	memset(r, 0, sizeof(*r));
	r->dp = dataplane_create(nworkers, SOCKET_ID_ANY);
	assert_non_null(r->dp);
	r->dp->idle = idle;
	for (uint32_t i = 0; i < nworkers; i++)
		assert_non_null(worker_create(r->dp, i, SOCKET_ID_ANY));
	assert_int_equal(ringpair_create(0, (uint16_t)nworkers, SOCKET_ID_ANY, r->ethdev), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(port_probe(r->ethdev[i], &r->info[i], why), 0);
		assert_int_equal(port_open(r->dp, i, 4300, &r->info[i], why), 0);
		fill_port(r, i);
		assert_int_equal(rxwake_install(r->dp, i, &r->info[i], false),
			idle == IDLE_ADAPTIVE ? PORT_WAKE_SELF : PORT_WAKE_NOT);
	}
	r->dp->ports->count = 2;
}

void rig_down(struct rig *r)
{
	rig_stop(r);
	for (unsigned i = 0; i < 2; i++)
		port_close(r->dp, i);
	ringpair_destroy(0, (uint16_t)r->dp->nworkers);
	for (uint32_t i = 0; i < r->dp->nworkers; i++)
		worker_destroy(r->dp->worker[i]);
	dataplane_destroy(r->dp);
}

static void *run(void *arg)
{
	struct rig_thread *t = arg;

	t->tid = gettid();
	worker_run(t->w);
	return NULL;
}

void rig_start(struct rig *r)
{
	for (uint32_t i = 0; i < r->dp->nworkers; i++) {
		struct rig_thread *t = &r->thread[i];

		t->w = r->dp->worker[i];
		assert_int_equal(pthread_create(&t->thread, NULL, run, t), 0);
		while (!worker_running(t->w))
			sched_yield();
	}
	r->runs = true;
}

void rig_stop(struct rig *r)
{
	for (uint32_t i = 0; r->runs && i < r->dp->nworkers; i++) {
		worker_stop(r->dp->worker[i]);
		pthread_join(r->thread[i].thread, NULL);
		assert_false(worker_running(r->dp->worker[i]));
	}
	r->runs = false;
}

static void make_cq(struct rig_qp *q, uint32_t worker, uint32_t slot)
{
	q->lane = zeroes(sizeof(*q->lane) + 2 * RIG_DEPTH * sizeof(struct abi_cqe));
	q->cqe = (struct abi_cqe *)(q->lane + 1);
	q->cq = zeroes(sizeof(*q->cq));
	q->cq->arm = zeroes(sizeof(struct abi_cq));
	q->cq->handle = slot;
	q->cq->channel = 1;
	q->cq->lanes = worker + 1;
	cq_lane_init(q->cq, worker, q->lane, 2 * RIG_DEPTH);
}

static struct abi_queue *make_queue(struct ring *ring)
{
	struct abi_queue *queue = zeroes(sizeof(*queue) + RIG_DEPTH * ABI_ENTRY);

	*ring = (struct ring){
		.entries = (uint8_t *)(queue + 1),
		.shared = queue,
		.depth = RIG_DEPTH,
		.stride = ABI_ENTRY,
		.max_sge = 2,
	};
	atomic_store(&queue->need_doorbell, 1);
	return queue;
}

void rig_qp_up(struct rig *r, struct rig_qp *q, uint32_t slot, uint32_t worker)
{
	struct qp_config cfg = {
		.qpn = QPN_MAKE(1, worker, slot),
		.pd = RIG_PD,
		.handle = slot,
		.type = ABI_QPT_RC,
		.session = 1,
	};

	memset(q, 0, sizeof(*q));
	q->w = r->dp->worker[worker];
	make_cq(q, worker, slot);
	cfg.send_lane = cfg.recv_lane = &q->cq->lane[worker];
	q->sq = make_queue(&cfg.sq);
	q->rq = make_queue(&cfg.rq);
	q->qp = qp_init(zeroes(qp_size(&cfg)), &cfg);
	q->memory = zeroes(RIG_MEMORY);
	q->mr = (struct mr){
		.key = slot << 8 | 1,
		.pd = RIG_PD,
		.access = ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
		.iova = RIG_IOVA,
		.length = RIG_MEMORY,
		.base = q->memory,
	};
	atomic_store(&r->dp->mrs->slot[slot], &q->mr);
	atomic_store(&r->dp->qps->slot[slot], q->qp);
	q->bell = zeroes(sizeof(*q->bell));
	q->db = (struct worker_doorbell){
		.shared = q->bell, .qp = zeroes(ABI_DB_MAX * sizeof(q->db.qp[0]))};
	atomic_store(&q->db.qp[slot], q->qp);
	assert_int_equal(worker_add_doorbell(q->w, &q->db), 0);
	q->wake = -1;
	if (r->dp->idle == IDLE_ADAPTIVE) {
		q->wake = worker_doorbell_eventfd(q->w, &q->db);
		assert_true(q->wake >= 0);
	}
}

void rig_qp_down(struct rig *r, struct rig_qp *q, uint32_t slot)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QP, .qp = q->qp};

	worker_del_doorbell(q->w, &q->db);
	atomic_store(&r->dp->qps->slot[slot], NULL);
	atomic_store(&r->dp->mrs->slot[slot], NULL);
	assert_int_equal(worker_call(q->w, &cmd), 0);
	cmd = (struct core_cmd){.type = CORE_CMD_DETACH_CQ, .cq = q->cq};
	assert_int_equal(worker_call(q->w, &cmd), 0);
	worker_grace(r->dp);
	if (q->wake >= 0)
		close(q->wake);
	free(q->qp);
	free(q->cq->arm);
	free(q->cq);
	free(q->lane);
	free(q->sq);
	free(q->rq);
	free(q->bell);
	free(q->db.qp);
	free(q->memory);
}

static void modify(struct rig_qp *q, struct core_cmd *cmd, uint8_t state, uint32_t mask)
{
	cmd->type = CORE_CMD_MODIFY_QP;
	cmd->qp = q->qp;
	cmd->mask = mask | ABI_QP_STATE;
	cmd->attr.qp_state = state;
	assert_int_equal(worker_call(q->w, cmd), 0);
}

void rig_connect(struct rig *r, struct rig_qp *a, struct rig_qp *b, uint8_t port, bool local)
{
	const struct gid_entry *to = &r->gids[local ? port : !port].entry[0];
	struct core_cmd cmd = {
		.attr = {
			.port = (uint8_t)(port + 1),
			.access_flags = ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ,
			.path_mtu = 1024,
			.dest_qpn = b->qp->qpn,
			.rq_psn = 0xFFFFF0,
			.sq_psn = 0xFFFFF0,
			.timeout = r->ack_timeout,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.min_rnr_timer = 1,
			.max_rd_atomic = 4,
			.max_dest_rd_atomic = 4,
		}};

	modify(a, &cmd, ABI_QPS_INIT, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS);
	cmd.sgid = r->gids[port].entry[0];
	cmd.path = (struct path_spec){.hop_limit = 64, .port = port, .local = local};
	memcpy(cmd.path.dgid, to->gid, 16);
	memcpy(cmd.path.dmac, to->mac, 6);
	modify(a, &cmd, ABI_QPS_RTR,
		ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
			ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER);
	modify(a, &cmd, ABI_QPS_RTS,
		ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_SQ_PSN |
			ABI_QP_MAX_QP_RD_ATOMIC);
}

void rig_ring(struct rig_qp *q)
{
	const uint64_t one = 1;

	abi_doorbell_ring(q->bell, QPN_SLOT(q->qp->qpn));
	atomic_thread_fence(memory_order_seq_cst);
	if (q->wake >= 0 && atomic_load(&q->bell->asleep))
		assert_int_equal(write(q->wake, &one, sizeof(one)), sizeof(one));
}

void rig_write(struct rig_qp *a, struct rig_qp *b, uint32_t len)
{
	uint32_t i = a->posted++;
	struct abi_wqe *wqe = (struct abi_wqe *)(a->sq + 1) + (i & (RIG_DEPTH - 1));
	uint32_t flags = ABI_WQE_SIGNALED | (abi_phase(i, RIG_DEPTH) ? ABI_WQE_PHASE : 0);

	wqe->wr_id = i;
	wqe->remote_addr = RIG_IOVA;
	wqe->rkey = b->mr.key;
	wqe->sge[0] = (struct abi_sge){RIG_IOVA, len, a->mr.key};
	__atomic_store_n(&wqe->ctl, ABI_WQE_CTL(ABI_WR_RDMA_WRITE, 1, flags), __ATOMIC_RELEASE);
	atomic_store(&a->sq->producer, a->posted);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&a->sq->need_doorbell))
		rig_ring(a);
}

int rig_poll(struct rig_qp *q)
{
	struct abi_cqe *e = &q->cqe[q->polled & (2 * RIG_DEPTH - 1)];
	uint32_t phase = abi_phase(q->polled, 2 * RIG_DEPTH);
	time_t end = patience_begin();

	while ((__atomic_load_n(&e->mark, __ATOMIC_ACQUIRE) & 1) != phase) {
		if (patience_over(end))
			return -1;
		sched_yield();
	}
	atomic_store(&q->lane->consumer, ++q->polled);
	return e->status;
}

unsigned rig_free_buffers(const struct worker *w)
{
	return rte_mempool_avail_count(w->pool);
}
