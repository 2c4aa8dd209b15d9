/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include "endpoint.h"
#include "rc.h"

/* Without a completion for this long the demo hangs, even on a slow machine. */
#define PATIENCE_S 120
double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *need(void *object, const char *what)
{
	if (!object)
		errx(1, "no %s: %s", what, roci_last_error());
	return object;
}

static void check(int err, const char *what)
{
	if (err)
		errx(1, "%s: %s", what, roci_last_error());
}

static struct roci_qp *create_qp(struct endpoint *e)
{
	struct roci_qp_init_attr attr = {
		.size = sizeof(attr),
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = QUEUE_DEPTH,
			.max_recv_wr = QUEUE_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = ROCI_QPT_RC,
	};

	return roci_create_qp(e->pd, &attr);
}

void endpoint_open(struct endpoint *e, const char *socket_path)
{
	struct roci_port_attr port = {.size = sizeof(port)};
	struct roci_gid_entry gid = {.size = sizeof(gid)};
	int access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ;

	e->ctx = need(roci_open(socket_path), "session with rocid");
	check(roci_query_port(e->ctx, 1, &port), "port 1");
	check(roci_find_gid(e->ctx, 1, NULL, &gid), "an address of port 1");
	e->gid_index = (uint8_t)gid.gid_index;
	e->pd = need(roci_alloc_pd(e->ctx), "protection domain");
	e->cq = need(roci_create_cq(e->ctx, 2 * QUEUE_DEPTH, NULL, NULL, 0), "completion queue");
	e->mr = need(roci_alloc_mr(e->pd, MEMORY_SIZE, access), "memory region");
	e->memory = e->mr->addr;
	e->qp = need(create_qp(e), "queue pair");
	e->own = (struct hello){
		.qpn = e->qp->qp_num,
		.psn = (uint32_t)((uint64_t)(seconds() * 1e6) & 0xFFFFFF), /* any number will do */
		.gid = gid.gid,
		.mtu = port.active_mtu,
		.rkey = e->mr->rkey,
		.addr = (uintptr_t)e->memory,
	};
}

void endpoint_connect(struct endpoint *e, uint8_t timeout)
{
	const struct rc_path path = {
		.port = 1,
		.gid_index = e->gid_index,
		.mtu = e->own.mtu < e->peer.mtu ? e->own.mtu : e->peer.mtu,
		.psn = e->own.psn,
		.rd_atomic = 16,
		.timeout = timeout,
		.peer_qpn = e->peer.qpn,
		.peer_psn = e->peer.psn,
		.peer_gid = e->peer.gid,
	};

	check(rc_init(e->qp, path.port, ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ),
		"RESET to INIT");
	check(rc_connect(e->qp, &path), "INIT to RTS");
}

void endpoint_close(struct endpoint *e)
{
	check(roci_destroy_qp(e->qp), "destroy the queue pair");
	check(roci_dereg_mr(e->mr), "deregister memory");
	check(roci_destroy_cq(e->cq), "destroy the completion queue");
	check(roci_dealloc_pd(e->pd), "free the protection domain");
	check(roci_close(e->ctx), "close the session");
}

void endpoint_post(struct endpoint *e, enum roci_wr_opcode opcode, uint64_t off, uint32_t len)
{
	struct roci_sge sge = {(uintptr_t)e->memory + off, len, e->mr->lkey};
	struct roci_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = ROCI_SEND_SIGNALED,
		.wr.rdma = {e->peer.addr + off, e->peer.rkey},
	};

	check(roci_post_send(e->qp, &wr, NULL), "post a send request");
}

void endpoint_receive(struct endpoint *e, uint64_t off, uint32_t len)
{
	struct roci_sge sge = {(uintptr_t)e->memory + off, len, e->mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	check(roci_post_recv(e->qp, &wr, NULL), "post a receive request");
}

int endpoint_wait(struct endpoint *e, struct roci_wc wc[], int max)
{
	double until = 0;
	int n;

	while ((n = roci_poll_cq(e->cq, max, wc)) == 0) {
		sched_yield(); /* rocid may share this CPU */
		if (!until)
			until = seconds() + PATIENCE_S;
		else if (seconds() > until)
			errx(1, "nothing completed for %d s: read rocid's messages", PATIENCE_S);
	}
	if (n < 0)
		errx(1, "rocid has ended: read its messages");
	for (int i = 0; i < n; i++)
		if (wc[i].status != ROCI_WC_SUCCESS)
			errx(1, "a request failed: %s: %s", roci_wc_status_str(wc[i].status),
				roci_qp_error(e->qp));
	return n;
}
