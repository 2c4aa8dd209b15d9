/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events from a worker through the notifier and the session to the program, and the
 * states that a query then tells: one thing after another goes wrong.
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include "pair.h"

#define WAIT_S 120

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

/* The next event of @p e, acknowledged. */
static struct roci_async_event next_event(struct end *e)
{
	struct pollfd p = {.fd = e->ctx->async_fd, .events = POLLIN};
	struct roci_async_event ev = {.size = sizeof(ev)};

	if (poll(&p, 1, WAIT_S * 1000) != 1)
		errx(1, "no event within %d s", WAIT_S);
	must(!roci_get_async_event(e->ctx, &ev), "event");
	printf("%s\n", roci_event_type_str(ev.event_type));
	roci_ack_async_event(&ev);
	return ev;
}

static void expect_qp_event(struct end *e, enum roci_event_type type)
{
	struct roci_async_event ev = next_event(e);

	if (ev.event_type != type || ev.element.qp != e->qp)
		errx(1, "another event than %s", roci_event_type_str(type));
}

static void expect_no_event(struct end *e)
{
	struct pollfd p = {.fd = e->ctx->async_fd, .events = POLLIN};

	if (poll(&p, 1, 100))
		next_event(e), errx(1, "this event was not expected");
}

/* QPS-21 */
static void expect_state(struct end *e, enum roci_qp_state state)
{
	struct roci_qp_attr attr = {.size = sizeof(attr)};

	must(!roci_query_qp(e->qp, &attr, ROCI_QP_STATE, NULL), "query");
	if (attr.qp_state != state)
		errx(1, "the QP is in %s, not in %s", roci_qp_state_str(attr.qp_state),
			roci_qp_state_str(state));
}

/* EVT-02: and the queue works again afterwards. */
static void drain(struct end e[2])
{
	struct roci_qp_attr attr = {
		.size = sizeof(attr), .qp_state = ROCI_QPS_SQD, .en_sqd_async_notify = 1};

	pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, 0, 64);
	must(!roci_modify_qp(e[0].qp, &attr, ROCI_QP_STATE | ROCI_QP_EN_SQD_ASYNC_NOTIFY), "SQD");
	expect_qp_event(&e[0], ROCI_EVENT_SQ_DRAINED);
	expect_state(&e[0], ROCI_QPS_SQD);
	attr.qp_state = ROCI_QPS_RTS;
	must(!roci_modify_qp(e[0].qp, &attr, ROCI_QP_STATE), "RTS");
	pair_wait(&e[0]);
	pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, 0, 64);
	pair_wait(&e[0]);
	expect_no_event(&e[1]);
}

/* EVT-03: the responder gets an event, the requester a completion. */
static void wrong_key(struct end e[2])
{
	struct roci_mr wrong = *e[1].mr;
	struct end peer = {.mr = &wrong};
	struct roci_wc wc;
	int n;

	wrong.rkey ^= 1;
	pair_post(&e[0], &peer, ROCI_WR_RDMA_WRITE, 0, 64);
	expect_qp_event(&e[1], ROCI_EVENT_QP_ACCESS_ERR);
	expect_state(&e[1], ROCI_QPS_ERR);
	while ((n = roci_poll_cq(e[0].cq, 1, &wc)) == 0)
		;
	if (n != 1 || wc.status != ROCI_WC_REM_ACCESS_ERR)
		errx(1, "no REM_ACCESS_ERR");
	expect_state(&e[0], ROCI_QPS_ERR);
	expect_no_event(&e[0]);
}

/* CQ-01, EVT-03: two completions more than there is room for. */
static void overflow(struct end e[2])
{
	struct roci_async_event ev;

	must(!roci_resize_cq(e[0].cq, 4), "resize");
	for (int i = 0; i < e[0].cq->cqe + 2; i++)
		pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, 0, 64);
	ev = next_event(&e[0]);
	if (ev.event_type == ROCI_EVENT_QP_FATAL) { /* two objects: in any order */
		ev = next_event(&e[0]);
		if (ev.event_type != ROCI_EVENT_CQ_ERR || ev.element.cq != e[0].cq)
			errx(1, "no CQ_ERR");
	} else {
		if (ev.event_type != ROCI_EVENT_CQ_ERR || ev.element.cq != e[0].cq)
			errx(1, "no CQ_ERR");
		expect_qp_event(&e[0], ROCI_EVENT_QP_FATAL);
	}
	expect_state(&e[0], ROCI_QPS_ERR);
	for (int i = 0; i < e[0].cq->cqe; i++)
		pair_wait(&e[0]); /* what had room is there, and good */
}

int main(int argc, char **argv)
{
	struct end e[2];

	if (argc != 2)
		errx(2, "use: async_events SOCKET");
	pair_open(e, argv[1], 4096, ROCI_MTU_1024);
	drain(e);
	wrong_key(e);
	pair_close(e);
	pair_open(e, argv[1], 4096, ROCI_MTU_1024);
	overflow(e);
	pair_close(e);
	return 0;
}
