/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shared receive queue under the load of several QPs, which live on several workers: each message
 * finds a receive of its own, in the order of its QP; the limit event comes once each time it is
 * armed; the queue grows and shrinks meanwhile; a QP that fails takes nothing of the others.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "pair.h"

#define QPS	 6
#define MESSAGES 1000u /* of each QP */
#define DEPTH	 32
#define SLOTS	 64 /* receive buffers, of which so many are posted as fit */
#define SLOT	 4096u
#define LONGEST	 3000u /* several packets */
#define LIMIT	 8
#define TIMEOUT	 18  /* 1.1 s, seven times: workers share a busy machine, the link loses packets */
#define WAIT_S	 120 /* without any message */

struct message {
	uint32_t qp;
	uint32_t number;
	uint32_t length;
	uint8_t data[];
};

struct receiver {
	struct end at; /* qp: the one that was connected last */
	struct roci_srq *srq;
	struct roci_qp *qp[QPS];
	uint32_t got[QPS]; /* messages */
	bool posted[SLOTS];
	unsigned limits; /* events */
	bool armed;
};

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static void must_fail(int err, int want, const char *what)
{
	if (err != want)
		errx(1, "%s: %d instead of %d", what, err, want);
}

/* --- set-up --------------------------------------------------------------------------- */

static struct roci_qp *make_qp(struct end *e, struct roci_srq *srq)
{
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.qp_type = ROCI_QPT_RC,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {DEPTH, 0, 1, 0, 0},
		.srq = srq};

	must((e->qp = roci_create_qp(e->pd, &init)) != NULL, "QP");
	return e->qp;
}

static void open_end(struct end *e, const char *socket)
{
	*e = (struct end){0};
	must((e->ctx = roci_open(socket)) != NULL, "rocid");
	must((e->pd = roci_alloc_pd(e->ctx)) != NULL, "PD");
	must((e->mr = roci_alloc_mr(e->pd, SLOTS * SLOT, ROCI_ACCESS_LOCAL_WRITE)) != NULL, "MR");
	must((e->cq = roci_create_cq(e->ctx, 2048, NULL, NULL, 0)) != NULL, "CQ");
}

static struct roci_srq *make_srq(struct end *e, uint32_t depth)
{
	struct roci_srq_init_attr attr = {.size = sizeof(attr), .max_wr = depth, .max_sge = 2};
	struct roci_srq *srq = roci_create_srq(e->pd, &attr);

	must(srq != NULL, "SRQ");
	if (attr.max_wr < depth || attr.max_sge < 2)
		errx(1, "the SRQ is smaller than asked for");
	return srq;
}

static void connect_qps(struct end *a, struct end *b)
{
	const struct end_tuning tuning = {.mtu = ROCI_MTU_1024, .timeout = TIMEOUT, .retry_cnt = 7};
	struct end_address address[2] = {end_address(a, 1), end_address(b, 2)};

	end_to_init(a, 1);
	end_to_init(b, 2);
	end_to_rts(a, 1, &address[1], &tuning);
	end_to_rts(b, 2, &address[0], &tuning);
}

/* --- receiving ------------------------------------------------------------------------ */

/* Returns false when the SRQ is full. */
static bool post_one(struct receiver *r, unsigned slot)
{
	/* Two SGEs: the message continues in the second. */
	uint64_t addr = (uintptr_t)r->at.mr->addr + slot * SLOT;
	struct roci_sge sge[2] = {
		{addr, 1000, r->at.mr->lkey}, {addr + 1000, SLOT - 1000, r->at.mr->lkey}};
	struct roci_recv_wr wr = {.wr_id = slot, .sg_list = sge, .num_sge = 2};
	int error = roci_post_srq_recv(r->srq, &wr, NULL);

	if (error && error != ENOMEM)
		errx(1, "post: %s", roci_last_error());
	r->posted[slot] = !error;
	return !error;
}

static void fill(struct receiver *r)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (!r->posted[i] && !post_one(r, i))
			return;
}

static unsigned qp_of(const struct receiver *r, uint32_t qpn)
{
	for (unsigned i = 0; i < QPS; i++)
		if (r->qp[i]->qp_num == qpn)
			return i;
	errx(1, "a completion of QP %u, which is not ours", qpn);
}

static uint8_t pattern(const struct message *m, uint32_t i)
{
	return (uint8_t)(m->qp * 31 + m->number * 7 + i);
}

static void receive(struct receiver *r, const struct roci_wc *wc)
{
	const struct message *m;
	unsigned qp = qp_of(r, wc->qp_num);

	if (wc->status != ROCI_WC_SUCCESS || wc->opcode != ROCI_WC_RECV)
		errx(1, "a receive failed: %s", roci_wc_status_str(wc->status));
	if (wc->wr_id >= SLOTS || !r->posted[wc->wr_id])
		errx(1, "receive %lu completed twice", (unsigned long)wc->wr_id);
	r->posted[wc->wr_id] = false;
	m = (const void *)((const uint8_t *)r->at.mr->addr + wc->wr_id * SLOT);
	if (m->qp != qp || m->number != r->got[qp])
		errx(1, "QP %u got message %u of %u where %u was due", qp, m->number, m->qp,
			r->got[qp]);
	if (wc->byte_len != m->length)
		errx(1, "%u bytes instead of %u", wc->byte_len, m->length);
	for (uint32_t i = sizeof(*m); i < m->length; i++)
		if (((const uint8_t *)m)[i] != pattern(m, i))
			errx(1, "byte %u of message %u of QP %u is wrong", i, m->number, qp);
	r->got[qp]++;
}

/* --- the limit ------------------------------------------------------------------------ */

static void arm(struct receiver *r)
{
	struct roci_srq_attr attr = {.size = sizeof(attr), .srq_limit = LIMIT};

	must(!roci_modify_srq(r->srq, &attr, ROCI_SRQ_LIMIT), "limit");
	r->armed = true;
}

/* proves SRQ-04, EVT-04: an event for each time that it was armed, and then it is not. */
static void look_for_limit(struct receiver *r)
{
	struct pollfd p = {.fd = r->at.ctx->async_fd, .events = POLLIN};
	struct roci_async_event ev = {.size = sizeof(ev)};
	struct roci_srq_attr attr = {.size = sizeof(attr)};

	while (poll(&p, 1, 0) == 1) {
		must(!roci_get_async_event(r->at.ctx, &ev), "event");
		if (ev.event_type != ROCI_EVENT_SRQ_LIMIT_REACHED) {
			roci_ack_async_event(&ev);
			continue; /* COMM_EST of QPs that were in RTR */
		}
		if (ev.element.srq != r->srq)
			errx(1, "an event of another SRQ");
		roci_ack_async_event(&ev);
		if (!r->armed)
			errx(1, "a limit event, but none was armed");
		r->armed = false;
		r->limits++;
		must(!roci_query_srq(r->srq, &attr), "query");
		if (attr.srq_limit)
			errx(1, "the limit is still armed after its event");
	}
}

/* --- sending -------------------------------------------------------------------------- */

struct sender {
	const char *socket;
	struct end at;
	struct roci_qp *qp[QPS];
};

static void send_one(struct sender *s, unsigned qp, uint32_t number)
{
	uint8_t *at = (uint8_t *)s->at.mr->addr + (qp * 8 + number % 8) * SLOT;
	struct message *m = (struct message *)at;
	struct roci_sge sge = {(uintptr_t)at, 0, s->at.mr->lkey};
	struct roci_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = ROCI_WR_SEND};

	*m = (struct message){.qp = qp, .number = number};
	m->length = sizeof(*m) + (number * 37 + qp) % (LONGEST - sizeof(*m));
	for (uint32_t i = sizeof(*m); i < m->length; i++)
		at[i] = pattern(m, i);
	sge.length = m->length;
	wr.send_flags = ROCI_SEND_SIGNALED;
	must(!roci_post_send(s->qp[qp], &wr, NULL), "send");
}

static void *run_sender(void *arg)
{
	struct sender *s = arg;
	uint32_t sent[QPS] = {0}, done[QPS] = {0};
	uint64_t total = 0;

	while (total < (uint64_t)QPS * MESSAGES) {
		struct roci_wc wc;
		int n;

		for (unsigned i = 0; i < QPS; i++)
			while (sent[i] < MESSAGES && sent[i] - done[i] < 8)
				send_one(s, i, sent[i]++);
		n = roci_poll_cq(s->at.cq, 1, &wc);
		must(n >= 0, "poll");
		if (!n) {
			sched_yield();
			continue;
		}
		if (wc.status != ROCI_WC_SUCCESS)
			errx(1, "a send failed: %s", roci_wc_status_str(wc.status));
		for (unsigned i = 0; i < QPS; i++)
			if (s->qp[i]->qp_num == wc.qp_num)
				done[i]++;
		total++;
	}
	return NULL;
}

/* --- the parts of the test ------------------------------------------------------------- */

/* Grows and shrinks it while messages come. */
static void resize(struct receiver *r, uint32_t total)
{
	const uint32_t sizes[] = {DEPTH, 2 * DEPTH, 4 * DEPTH, 2 * DEPTH};
	struct roci_srq_attr attr = {.size = sizeof(attr)};

	if (total % 500)
		return;
	attr.max_wr = sizes[total / 500 % 4];
	must_fail(roci_modify_srq(r->srq, &attr, ROCI_SRQ_MAX_WR) & ~EINVAL, 0, "resize");
	must(!roci_query_srq(r->srq, &attr), "query");
	if (attr.max_wr < DEPTH || attr.max_wr > 4 * DEPTH)
		errx(1, "the SRQ has %u work requests", attr.max_wr);
}

static void load(struct receiver *r, struct sender *s)
{
	time_t until = time(NULL) + WAIT_S;
	pthread_t thread;
	uint32_t total = 0;

	fill(r);
	arm(r);
	pthread_create(&thread, NULL, run_sender, s);
	while (total < QPS * MESSAGES) {
		struct roci_wc wc[16];
		int n = roci_poll_cq(r->at.cq, 16, wc);

		must(n >= 0, "poll");
		for (int i = 0; i < n; i++) {
			receive(r, &wc[i]);
			resize(r, ++total);
		}
		if (n)
			until = time(NULL) + WAIT_S;
		look_for_limit(r);
		if (!n && time(NULL) > until)
			errx(1, "no message within %d s, after %u", WAIT_S, total);
		if (r->armed) { /* lets it run low */
			sched_yield();
			continue;
		}
		fill(r);
		arm(r);
	}
	pthread_join(thread, NULL);
	printf("%u messages, %u limit events\n", total, r->limits);
	if (r->limits < 10)
		errx(1, "only %u limit events", r->limits);
}

/* proves SRQ-01, SRQ-05, SRQ-09 */
static void refusals(struct receiver *r)
{
	struct roci_srq_attr attr = {.size = sizeof(attr)};
	struct roci_srq_init_attr init = {.size = sizeof(init)};
	struct roci_sge sge[3] = {{0}};
	struct roci_recv_wr wr = {.sg_list = sge, .num_sge = 1};

	must_fail(roci_post_recv(r->qp[0], &wr, NULL), EINVAL, "a receive to the QP itself");
	must_fail(roci_destroy_srq(r->srq), EBUSY, "destroy with QPs");
	fill(r);
	attr.max_wr = 1;
	must_fail(roci_modify_srq(r->srq, &attr, ROCI_SRQ_MAX_WR), EINVAL, "smaller than it holds");
	attr.srq_limit = 1u << 20;
	must_fail(roci_modify_srq(r->srq, &attr, ROCI_SRQ_LIMIT), EINVAL, "a limit above max_wr");
	must_fail(roci_modify_srq(r->srq, &attr, 4), EINVAL, "an unknown attribute");
	wr.num_sge = 3;
	must_fail(roci_post_srq_recv(r->srq, &wr, NULL), EINVAL, "too many SGEs");
	if (roci_create_srq(r->at.pd, &init) || errno != EINVAL)
		errx(1, "an SRQ without work requests was made");
	must(!roci_query_srq(r->srq, &attr), "query");
	while (r->posted[SLOTS - 1]) { /* all slots are in it: make it full */
		wr.num_sge = 1;
		wr.wr_id = SLOTS;
		if (roci_post_srq_recv(r->srq, &wr, NULL) == ENOMEM)
			break;
	}
}

/* proves SRQ-07, EVT-04: the event, no flush of what is posted, and the others go on. */
static void last_wqe(struct receiver *r)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_ERR};
	struct pollfd p = {.fd = r->at.ctx->async_fd, .events = POLLIN};
	struct roci_async_event ev = {.size = sizeof(ev)};
	struct roci_wc wc;

	must(!roci_modify_qp(r->qp[0], &attr, ROCI_QP_STATE), "QP to ERR");
	do {
		if (poll(&p, 1, WAIT_S * 1000) != 1)
			errx(1, "no LAST_WQE_REACHED within %d s", WAIT_S);
		must(!roci_get_async_event(r->at.ctx, &ev), "event");
		roci_ack_async_event(&ev);
	} while (ev.event_type != ROCI_EVENT_QP_LAST_WQE_REACHED);
	if (ev.element.qp != r->qp[0])
		errx(1, "LAST_WQE_REACHED of another QP");
	if (roci_poll_cq(r->at.cq, 1, &wc))
		errx(1, "a receive of the SRQ was flushed");
	must(!roci_destroy_qp(r->qp[0]), "destroy the QP");
}

static void close_end(struct end *e, struct roci_qp *const qp[], unsigned first)
{
	for (unsigned i = first; i < QPS; i++)
		must(!roci_destroy_qp(qp[i]), "destroy a QP");
	must(!roci_destroy_cq(e->cq), "destroy the CQ");
	must(!roci_dereg_mr(e->mr), "deregister");
}

int main(int argc, char **argv)
{
	static struct receiver r;
	struct sender s = {.socket = argv[1]};

	if (argc != 2)
		errx(2, "use: srq SOCKET");
	open_end(&s.at, argv[1]);
	open_end(&r.at, argv[1]);
	r.srq = make_srq(&r.at, DEPTH);
	for (unsigned i = 0; i < QPS; i++) {
		s.qp[i] = make_qp(&s.at, NULL);
		r.qp[i] = make_qp(&r.at, r.srq);
		connect_qps(&s.at, &r.at);
	}
	load(&r, &s);
	refusals(&r);
	last_wqe(&r);
	close_end(&s.at, s.qp, 0);
	close_end(&r.at, r.qp, 1);
	must_fail(roci_dealloc_pd(r.at.pd), EBUSY, "free the SRQ's PD");
	must(!roci_destroy_srq(r.srq), "destroy the SRQ");
	must(!roci_dealloc_pd(r.at.pd) && !roci_dealloc_pd(s.at.pd), "free the PDs");
	must(!roci_close(r.at.ctx) && !roci_close(s.at.ctx), "close");
	return 0;
}
