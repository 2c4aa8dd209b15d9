/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>
#include "bench.h"
#include "flows.h"
#include "host.h"

#define BURST_PACKETS 32u
#define CQE	      4096
/* Local ACK timeout code: 4.096 us << 21 = 8.6 s. A pause of the machine is no loss. */
#define TIMEOUT_CODE 21
/* Rounds without any completion after which something hangs. */
#define PATIENCE 100000000ul

struct end {
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_cq *cq;
	struct roci_mr *mr;
	struct roci_gid_entry gid;
};

struct connection {
	struct roci_qp *qp[2];
};

struct flows {
	struct flows_config cfg;
	struct end end[2];
	unsigned next; /* connection that posts next */
	uint32_t random;
	unsigned long posted, done;
	bool sequential;
	uint64_t offset;
	/* the lists that are posted, in which only addresses change from time to time */
	struct roci_send_wr send[FLOWS_LIST_MAX];
	struct roci_sge send_sge[FLOWS_LIST_MAX];
	struct roci_recv_wr receive[FLOWS_LIST_MAX];
	struct roci_sge receive_sge[FLOWS_LIST_MAX];
	struct connection connection[];
};

static void need(int ok, const char *what)
{
	if (!ok)
		bench_die("%s: %s", what, roci_last_error());
}

/* --- set-up ------------------------------------------------------------------------------ */

static unsigned port_of(const struct flows *f, unsigned i)
{
	return f->cfg.one_port ? 1 : i + 1;
}

static void open_end(struct flows *f, unsigned i)
{
	struct end *e = &f->end[i];
	int access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ;

	e->gid.size = sizeof(e->gid);
	need((e->ctx = roci_open(host_socket())) != NULL, "session");
	need(!roci_find_gid(e->ctx, port_of(f, i), NULL, &e->gid), "GID");
	need((e->pd = roci_alloc_pd(e->ctx)) != NULL, "protection domain");
	need((e->cq = roci_create_cq(e->ctx, CQE, NULL, NULL, 0)) != NULL, "completion queue");
	need((e->mr = roci_alloc_mr(e->pd, f->cfg.memory, access)) != NULL, "memory");
	memset(e->mr->addr, (int)i + 1, f->cfg.memory);
}

static struct roci_qp *make_qp(struct flows *f, unsigned i)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};
	struct roci_qp *qp;

	init.send_cq = f->end[i].cq;
	init.recv_cq = f->end[i].cq;
	init.cap = (struct roci_qp_cap){f->cfg.depth, f->cfg.depth, 1, 1, 0};
	qp = roci_create_qp(f->end[i].pd, &init);
	need(qp != NULL, "queue pair");
	return qp;
}

static void connect_end(struct flows *f, struct connection *c, unsigned i)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_INIT};

	attr.port_num = (uint8_t)port_of(f, i);
	attr.qp_access_flags = ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ;
	need(!roci_modify_qp(c->qp[i], &attr,
		     ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
		"INIT");
	attr.qp_state = ROCI_QPS_RTR;
	attr.path_mtu = ROCI_MTU_4096;
	attr.dest_qp_num = c->qp[!i]->qp_num;
	attr.rq_psn = c->qp[!i]->qp_num;
	attr.sq_psn = c->qp[i]->qp_num;
	attr.max_rd_atomic = (uint8_t)f->cfg.reads;
	attr.max_dest_rd_atomic = (uint8_t)f->cfg.reads;
	attr.min_rnr_timer = 1;
	attr.timeout = TIMEOUT_CODE;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = attr.port_num;
	attr.ah_attr.grh.dgid = f->end[!i].gid.gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)f->end[i].gid.gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	need(!roci_modify_qp(c->qp[i], &attr,
		     ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN |
			     ROCI_QP_RQ_PSN | ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER),
		"RTR");
	attr.qp_state = ROCI_QPS_RTS;
	need(!roci_modify_qp(c->qp[i], &attr,
		     ROCI_QP_STATE | ROCI_QP_SQ_PSN | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT |
			     ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC),
		"RTS");
}

static struct flows *open_ends(const struct flows_config *cfg)
{
	struct flows *f = calloc(1, sizeof(*f) + cfg->connections * sizeof(f->connection[0]));

	if (!f)
		bench_die("no memory for %u connections", cfg->connections);
	f->cfg = *cfg;
	f->random = 1;
	open_end(f, 0);
	open_end(f, 1);
	return f;
}

void flows_open_each(struct flows *f[], unsigned n, const struct flows_config *cfg)
{
	for (unsigned i = 0; i < n; i++)
		f[i] = open_ends(cfg);
	for (unsigned k = 0; k < cfg->connections; k++) {
		/* A new QP goes to the worker that has the fewest, the first one of several. */
		for (unsigned end = 0; end < 2; end++)
			for (unsigned i = 0; i < n; i++)
				f[i]->connection[k].qp[end] = make_qp(f[i], end);
		for (unsigned i = 0; i < n; i++) {
			connect_end(f[i], &f[i]->connection[k], 0);
			connect_end(f[i], &f[i]->connection[k], 1);
		}
	}
}

struct flows *flows_open(const struct flows_config *cfg)
{
	struct flows *f;

	flows_open_each(&f, 1, cfg);
	return f;
}

void flows_close(struct flows *f)
{
	for (unsigned i = 0; i < 2; i++) {
		struct end *e = &f->end[i];

		for (unsigned k = 0; k < f->cfg.connections; k++)
			need(!roci_destroy_qp(f->connection[k].qp[i]), "destroy a queue pair");
		need(!roci_destroy_cq(e->cq), "destroy the completion queue");
		need(!roci_dereg_mr(e->mr), "deregister");
		need(!roci_dealloc_pd(e->pd), "free the protection domain");
		need(!roci_close(e->ctx), "close the session");
	}
	free(f);
}

struct roci_qp *flows_qp(struct flows *f, unsigned connection, unsigned end)
{
	return f->connection[connection].qp[end];
}

struct roci_cq *flows_cq(struct flows *f, unsigned end)
{
	return f->end[end].cq;
}

struct roci_mr *flows_mr(struct flows *f, unsigned end)
{
	return f->end[end].mr;
}

/* --- traffic ----------------------------------------------------------------------------- */

static uint64_t some_offset(struct flows *f, const struct traffic *t)
{
	if (f->sequential)
		return f->offset = (f->offset + t->size) % t->set;
	return (uint64_t)bench_below(&f->random, (uint32_t)(t->set / t->size)) * t->size;
}

/* As perftest does, and any program that is quick. wr_id is the number of messages that a
 * completion stands for. */
static void build_lists(struct flows *f, const struct traffic *t)
{
	const uint32_t len = (uint32_t)t->size;

	for (unsigned i = 0; i < t->list; i++) {
		bool last = i + 1 == t->list;

		f->send_sge[i] = (struct roci_sge){.length = len, .lkey = f->end[0].mr->lkey};
		f->send[i] = (struct roci_send_wr){.wr_id = t->signaled,
			.next = last ? NULL : &f->send[i + 1],
			.sg_list = &f->send_sge[i],
			.num_sge = 1,
			.opcode = t->opcode,
			.send_flags = (i + 1) % t->signaled ? 0 : ROCI_SEND_SIGNALED};
		f->send[i].wr.rdma.rkey = f->end[1].mr->rkey;
		f->receive_sge[i] = (struct roci_sge){.length = len, .lkey = f->end[1].mr->lkey};
		f->receive[i] = (struct roci_recv_wr){.next = last ? NULL : &f->receive[i + 1],
			.sg_list = &f->receive_sge[i],
			.num_sge = 1};
	}
}

static void post_receives(struct flows *f, const struct traffic *t, struct connection *c)
{
	for (unsigned i = 0; i < t->list; i++)
		f->receive_sge[i].addr = (uintptr_t)f->end[1].mr->addr + some_offset(f, t);
	need(!roci_post_recv(c->qp[1], f->receive, NULL), "post a receive");
}

static void post_sends(struct flows *f, const struct traffic *t, struct connection *c)
{
	const uintptr_t from = (uintptr_t)f->end[0].mr->addr;
	const uintptr_t to = (uintptr_t)f->end[1].mr->addr;

	for (unsigned i = 0; i < t->list; i++) {
		uint64_t offset = some_offset(f, t);

		f->send_sge[i].addr = from + offset;
		f->send[i].wr.rdma.remote_addr = to + offset;
	}
	need(!roci_post_send(c->qp[0], f->send, NULL), "post a message");
}

static void post_batch(struct flows *f, const struct traffic *t, unsigned batch)
{
	for (unsigned i = 0; i < batch; i += t->list) {
		struct connection *c = &f->connection[f->next];

		if (t->opcode == ROCI_WR_SEND)
			post_receives(f, t, c);
		post_sends(f, t, c);
		f->posted += t->list;
		if (++f->next == f->cfg.connections)
			f->next = 0;
	}
}

static unsigned long poll_end(struct flows *f, unsigned end)
{
	struct roci_wc wc[BURST_PACKETS];
	int n = roci_poll_cq(f->end[end].cq, BURST_PACKETS, wc);
	unsigned long messages = 0;

	need(n >= 0, "poll");
	for (int i = 0; i < n; i++) {
		if (wc[i].status != ROCI_WC_SUCCESS)
			bench_die("a message failed: %s", roci_wc_status_str(wc[i].status));
		messages += wc[i].wr_id;
	}
	return messages;
}

static bool poll_both(struct flows *f, const struct traffic *t)
{
	unsigned long n;

	if (t->opcode == ROCI_WR_SEND)
		poll_end(f, 1);
	n = poll_end(f, 0);
	f->done += n;
	return n;
}

static unsigned batch_of(const struct traffic *t)
{
	unsigned batch = t->packets < BURST_PACKETS ? BURST_PACKETS / t->packets : 1;

	return batch < t->list ? t->list : batch;
}

struct flows_cost flows_run(struct flows *f, const struct traffic *t, unsigned long messages,
	void (*round)(void *arg), void *arg, int split)
{
	unsigned batch = batch_of(t);
	unsigned long until = f->posted + messages;
	unsigned long first = f->done;
	unsigned long idle = 0;
	uint64_t post = 0, poll = 0, all = __rdtsc();
	double start = bench_ns();
	double each;

	build_lists(f, t);
	while (f->posted < until || f->done < f->posted) {
		uint64_t t0 = split ? __rdtsc() : 0;
		uint64_t t1;

		if (f->posted < until && f->posted - f->done <= (FLOWS_BATCHES - 1) * batch)
			post_batch(f, t, batch);
		t1 = split ? __rdtsc() : 0;
		post += t1 - t0;
		round(arg);
		t1 = split ? __rdtsc() : 0;
		idle = poll_both(f, t) ? 0 : idle + 1;
		poll += split ? __rdtsc() - t1 : 0;
		if (idle > PATIENCE)
			bench_die("nothing completes any more");
	}
	all = __rdtsc() - all;
	each = (bench_ns() - start) / (double)(f->done - first);
	return (struct flows_cost){
		.all_ns = each,
		.post_ns = each * (double)post / (double)all,
		.poll_ns = each * (double)poll / (double)all,
	};
}

void flows_touch(struct flows *f, void (*round)(void *arg), void *arg)
{
	struct traffic t = {.opcode = ROCI_WR_RDMA_WRITE,
		.size = FLOWS_TOUCH,
		.set = f->cfg.memory,
		.list = 1,
		.signaled = 1,
		.packets = FLOWS_TOUCH / 4096};

	f->sequential = true;
	flows_run(f, &t, f->cfg.memory / FLOWS_TOUCH + 1, round, arg, 0);
	f->sequential = false;
}
