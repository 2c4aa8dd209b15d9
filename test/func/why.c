/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * why SOCKET_A PORT_A GID_A SOCKET_B PORT_B GID_B MISTAKE: connects a QP of A with one of B, makes
 * the mistake, waits until A's QP has failed, and prints what the library says about it:
 *
 *     requester QPN: remote access error: SENTENCE
 *     responder QPN: SENTENCE
 *
 * then waits for the end of its input. MISTAKE is a row of the table below. GID: an index, - for
 * the first one that is not link-local.
 */
#include <err.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pair.h"

#define MEMORY	65536u
#define WAIT_S	120
#define QUICK	9  /* 2 ms: for what is never answered */
#define PATIENT 21 /* 8.6 s: for what is */
#define LOSSY	16 /* 268 ms: for what is lost now and then, by a daemon that is both ends */
#define SECOND	18 /* 1.1 s */
#define SOON	14 /* 67 ms: for what is no longer answered */

static struct side {
	struct end e;
	struct place at;
	struct end_address address; /* that it tells the other */
	/* how it is connected */
	struct roci_qp_attr attr;
	enum roci_qp_state last; /* state to stop in */
	/* of requests: where to, and how much */
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t length;
	uint32_t lkey;
	int flags;
} side[2];
static struct side third;
static struct side *const a = &side[0], *const b = &side[1];
static struct roci_pd *other_pd;
static struct roci_mr *other_mr;

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

/* --- requests ------------------------------------------------------------------------------ */

static int try_post(struct side *s, enum roci_wr_opcode opcode)
{
	struct roci_sge sge = {(uintptr_t)s->e.mr->addr, s->length, s->lkey};
	struct roci_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = opcode};

	wr.send_flags = ROCI_SEND_SIGNALED | s->flags;
	wr.wr.rdma.remote_addr = s->remote_addr;
	wr.wr.rdma.rkey = s->rkey;
	return roci_post_send(s->e.qp, &wr, NULL);
}

static void post(struct side *s, enum roci_wr_opcode opcode)
{
	must(!try_post(s, opcode), "post_send");
}

static void post_receive(struct side *s, uint32_t length, uint32_t lkey)
{
	struct roci_sge sge = {(uintptr_t)s->e.mr->addr, length, lkey};
	struct roci_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};

	must(!roci_post_recv(s->e.qp, &wr, NULL), "post_recv");
}

static void take(struct side *s)
{
	time_t until = time(NULL) + WAIT_S;
	struct roci_wc wc;
	int n;

	while ((n = roci_poll_cq(s->e.cq, 1, &wc)) == 0 && time(NULL) < until)
		sched_yield();
	if (n != 1 || wc.status != ROCI_WC_SUCCESS)
		errx(1, "what should succeed: %s (%s)", roci_wc_status_str(wc.status),
			roci_qp_error(s->e.qp));
}

/* Later requests are not answered: no need to wait for them as long. */
static void give_up_soon(struct side *s)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_SQD};

	attr.timeout = SOON;
	must(!roci_modify_qp(s->e.qp, &attr, ROCI_QP_STATE), "SQD");
	must(!roci_modify_qp(s->e.qp, &attr, ROCI_QP_TIMEOUT), "timeout");
	attr.qp_state = ROCI_QPS_RTS;
	must(!roci_modify_qp(s->e.qp, &attr, ROCI_QP_STATE), "RTS");
}

static const char *wait_for_error(struct side *s)
{
	time_t until = time(NULL) + WAIT_S;
	const char *why;

	while (!*(why = roci_qp_error(s->e.qp)) && time(NULL) < until)
		usleep(1000);
	if (!*why)
		errx(1, "nothing failed");
	return why;
}

static void write_once(void)
{
	post(a, ROCI_WR_RDMA_WRITE);
}

static void read_once(void)
{
	post(a, ROCI_WR_RDMA_READ);
}

static void send_once(void)
{
	post(a, ROCI_WR_SEND);
}

/* --- mistakes with memory ------------------------------------------------------------------- */

static void key_of_nothing(void)
{
	a->rkey = 0x00FFFE00;
}

static void key_swapped(void)
{
	a->rkey = __builtin_bswap32(a->rkey);
}

static void key_of_another_pd(void)
{
	other_pd = roci_alloc_pd(b->e.ctx);
	must(other_pd != NULL, "PD");
	other_mr = roci_alloc_mr(other_pd, 4096,
		ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ);
	must(other_mr != NULL, "MR");
	a->rkey = other_mr->rkey;
	a->remote_addr = (uintptr_t)other_mr->addr;
}

static void key_of_another_program(void)
{
	a->rkey = a->e.mr->rkey;
}

static void region_read_only(void)
{
	other_mr = roci_alloc_mr(b->e.pd, 4096, ROCI_ACCESS_REMOTE_READ);
	must(other_mr != NULL, "MR");
	a->rkey = other_mr->rkey;
	a->remote_addr = (uintptr_t)other_mr->addr;
}

static void region_gone(void)
{
	region_read_only();
	must(!roci_dereg_mr(other_mr), "dereg");
}

static void out_of_bounds(void)
{
	a->remote_addr += MEMORY - 50;
}

static void offset_for_address(void)
{
	a->remote_addr = 128;
}

static void lkey_of_nothing(void)
{
	a->lkey = 0x00FFFE00;
}

static void local_range(void)
{
	a->length = MEMORY + 1;
}

static void receive_too_small(void)
{
	post_receive(b, 50, b->e.mr->lkey);
}

static void receive_bad_lkey(void)
{
	post_receive(b, 4096, 0x00FFFE00);
}

/* Nobody has asked yet why it was refused, and the region goes. */
static void write_and_deregister(void)
{
	write_once();
	wait_for_error(a);
	must(!roci_dereg_mr(other_mr ? other_mr : b->e.mr), "dereg");
	if (other_pd)
		must(!roci_dealloc_pd(other_pd), "dealloc_pd");
}

/* --- mistakes with attributes ---------------------------------------------------------------- */

static void no_remote_write(void)
{
	b->attr.qp_access_flags = ROCI_ACCESS_REMOTE_READ;
}

static void no_remote_read(void)
{
	b->attr.qp_access_flags = ROCI_ACCESS_REMOTE_WRITE;
}

static void too_many_reads(void)
{
	b->attr.max_dest_rd_atomic = 1;
	a->length = 32768;
}

/* Many: each of two may be answered before the next one is posted. */
static void read_often(void)
{
	for (unsigned i = 0; i < 8; i++)
		read_once();
}

static void no_reads(void)
{
	a->attr.max_rd_atomic = 0;
}

static void other_path_mtu(void)
{
	b->attr.path_mtu = ROCI_MTU_256;
	a->length = 1000;
}

static void few_rnr_retries(void)
{
	a->attr.rnr_retry = 1;
}

static void quick(void)
{
	a->attr.timeout = QUICK;
	a->attr.retry_cnt = 2;
}

static void psn_ahead(void)
{
	quick();
	b->attr.rq_psn = (a->attr.sq_psn - 0x200000) & 0xFFFFFF;
}

static void psn_behind(void)
{
	quick();
	b->attr.rq_psn = (a->attr.sq_psn + 1000) & 0xFFFFFF;
}

static void psn_ahead_a_little(void)
{
	a->attr.timeout = QUICK;
	b->attr.rq_psn = (a->attr.sq_psn - 3) & 0xFFFFFF;
}

static void no_such_qpn(void)
{
	quick();
	a->attr.dest_qp_num ^= 1u << 20;
}

static void not_rtr(void)
{
	quick();
	b->last = ROCI_QPS_INIT;
}

static void other_gid_told(void)
{
	quick();
	b->attr.ah_attr.grh.dgid.raw[15] ^= 0x40;
}

/* --- what happens later --------------------------------------------------------------- */

static void close_the_peer(void)
{
	end_close(&b->e);
	write_once();
}

/* Smaller than the send queue. */
static void small_cq(void)
{
	must(!roci_resize_cq(a->e.cq, 16), "resize_cq");
}

static void overflow(void)
{
	while (!*roci_qp_error(a->e.qp))
		if (try_post(a, ROCI_WR_RDMA_WRITE)) /* its queue is full for the moment */
			usleep(1000);
}

static void move_to_err(void)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_ERR};

	must(!roci_modify_qp(a->e.qp, &attr, ROCI_QP_STATE), "ERR");
}

/* A small one comes through, then one of the path MTU. */
static void small_then_large(void)
{
	a->length = 64;
	write_once();
	take(a);
	give_up_soon(a);
	a->length = 4096;
	write_once();
}

/* Something comes through; then whoever started this does something to the link, and says so. */
static void wait_and_write(void)
{
	char word;

	write_once();
	take(a);
	give_up_soon(a);
	printf("ready\n");
	fflush(stdout);
	if (read(0, &word, 1) != 1)
		errx(1, "nobody says go on");
	write_once();
}

/* One WRITE for each word that is said; all goes well. */
static void wait_and_take(void)
{
	char word;

	do {
		write_once();
		take(a);
		printf("taken\n");
		fflush(stdout);
	} while (read(0, &word, 1) == 1);
}

/* Retries last 8.6 s in all: enough for a neighbour to be found, and less than the kernel takes to
 * doubt one that it reached just now. */
static void outlast(void)
{
	a->attr.timeout = SECOND;
}

static void lossy(void)
{
	a->attr.timeout = LOSSY;
}

static void large_mtu(void)
{
	a->attr.path_mtu = b->attr.path_mtu = ROCI_MTU_4096;
}

static void large_mtu_silent(void)
{
	large_mtu();
	a->attr.timeout = SOON;
	a->length = 4096;
}

static void nothing(void)
{
}

/* No mistake at all; the link may lose packets. */
static void all_is_well(void)
{
	a->length = 3000;
	for (unsigned i = 0; i < 1000; i++) {
		post(a, i % 2 ? ROCI_WR_RDMA_WRITE : ROCI_WR_RDMA_READ);
		take(a);
	}
	if (*roci_qp_error(a->e.qp) || *roci_qp_error(b->e.qp))
		errx(1, "nothing failed, but: %s%s", roci_qp_error(a->e.qp),
			roci_qp_error(b->e.qp));
}

static void one_peer_for_two(void);

static const struct mistake {
	const char *name;
	void (*make)(void); /* once both QPs are in INIT */
	void (*act)(void);  /* once they are connected */
} mistakes[] = {
	{"rkey_unknown", key_of_nothing, write_once},
	{"rkey_swapped", key_swapped, write_once},
	{"rkey_other_pd", key_of_another_pd, write_once},
	{"rkey_other_program", key_of_another_program, write_once},
	{"rkey_no_write", region_read_only, write_once},
	{"rkey_gone", region_gone, write_once},
	{"rkey_range", out_of_bounds, write_once},
	{"rkey_range_gone", out_of_bounds, write_and_deregister},
	{"rkey_other_pd_gone", key_of_another_pd, write_and_deregister},
	{"rkey_offset", offset_for_address, write_once},
	{"read_range", out_of_bounds, read_once},
	{"lkey_unknown", lkey_of_nothing, write_once},
	{"lkey_range", local_range, write_once},
	{"recv_short", receive_too_small, send_once},
	{"recv_lkey", receive_bad_lkey, send_once},
	{"no_remote_write", no_remote_write, write_once},
	{"no_remote_read", no_remote_read, read_once},
	{"too_many_reads", too_many_reads, read_often},
	{"no_reads", no_reads, read_once},
	{"path_mtu_differs", other_path_mtu, write_once},
	{"no_receive", few_rnr_retries, send_once},
	{"psn_ahead", psn_ahead, write_once},
	{"psn_ahead_a_little", psn_ahead_a_little, write_once},
	{"psn_behind", psn_behind, write_once},
	{"no_such_qpn", no_such_qpn, write_once},
	{"one_peer_for_two", one_peer_for_two, write_once},
	{"not_rtr", not_rtr, write_once},
	{"other_gid", other_gid_told, write_once},
	{"peer_closed", quick, close_the_peer},
	{"cq_overflow", small_cq, overflow},
	{"command", nothing, move_to_err},
	{"silent", quick, write_once},
	{"large_mtu", large_mtu, small_then_large},
	{"large_mtu_silent", large_mtu_silent, write_once},
	{"link", nothing, wait_and_write},
	{"heals", outlast, wait_and_take},
	{"none", nothing, all_is_well},
	{"none_lossy", lossy, all_is_well},
};

/* --- connecting ----------------------------------------------------------------------- */

static struct roci_gid_entry gid_of(const struct side *s)
{
	struct roci_gid_entry gid = {.size = sizeof(gid)};

	must(!(s->at.gid == UINT32_MAX ? roci_find_gid(s->e.ctx, s->at.port, NULL, &gid)
				       : roci_query_gid(s->e.ctx, s->at.port, s->at.gid, &gid)),
		"GID");
	return gid;
}

static void open_side(struct side *s, char **arg)
{
	s->at = (struct place){arg[0], (uint8_t)atoi(arg[1]),
		*arg[2] == '-' ? UINT32_MAX : (uint32_t)atoi(arg[2])};
	end_open(&s->e, s->at.socket, MEMORY);
	s->address = end_address(&s->e, s->at.port);
	s->address.gid = gid_of(s).gid;
	s->last = ROCI_QPS_RTS;
}

static void plan(struct side *s, const struct side *peer)
{
	s->attr = (struct roci_qp_attr){
		.size = sizeof(s->attr),
		.port_num = s->at.port,
		.qp_access_flags = ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ,
		.path_mtu = ROCI_MTU_1024,
		.dest_qp_num = peer->address.qpn,
		.rq_psn = peer->address.qpn & 0xFFFFFF,
		.sq_psn = s->address.qpn & 0xFFFFFF,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = PATIENT,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	s->attr.ah_attr.is_global = 1;
	s->attr.ah_attr.port_num = s->at.port;
	s->attr.ah_attr.grh.dgid = peer->address.gid;
	s->attr.ah_attr.grh.sgid_index = (uint8_t)gid_of(s).gid_index;
	s->attr.ah_attr.grh.hop_limit = 64;
	s->remote_addr = peer->address.addr;
	s->rkey = peer->address.rkey;
	s->lkey = s->e.mr->lkey;
	s->length = 100;
}

static void step(struct side *s, enum roci_qp_state to, int mask)
{
	if (to > s->last)
		return;
	s->attr.qp_state = to;
	must(!roci_modify_qp(s->e.qp, &s->attr, mask | ROCI_QP_STATE), "modify_qp");
}

static void connect_side(struct side *s)
{
	step(s, ROCI_QPS_INIT, ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS);
	step(s, ROCI_QPS_RTR,
		ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN |
			ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER);
	step(s, ROCI_QPS_RTS,
		ROCI_QP_SQ_PSN | ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY |
			ROCI_QP_MAX_QP_RD_ATOMIC);
}

/* Two QPs have one dest_qp_num; b is connected with the other. */
static void one_peer_for_two(void)
{
	quick();
	third.at = a->at;
	end_open(&third.e, third.at.socket, MEMORY);
	third.address = end_address(&third.e, third.at.port);
	third.address.gid = gid_of(&third).gid;
	third.last = ROCI_QPS_RTS;
	plan(&third, b);
	connect_side(&third);
	b->attr.dest_qp_num = third.address.qpn;
	b->attr.rq_psn = third.attr.sq_psn;
}

/* --- telling -------------------------------------------------------------------------- */

/* The first completion that failed: rocid may know of the failure before it comes. Where none has
 * to come it is not waited for. */
static const char *status(struct side *s, bool must_come)
{
	time_t until = time(NULL) + WAIT_S;
	struct roci_wc wc;

	do {
		while (roci_poll_cq(s->e.cq, 1, &wc) == 1)
			if (wc.status != ROCI_WC_SUCCESS)
				return roci_wc_status_str(wc.status);
	} while (must_come && time(NULL) < until);
	return "no completion";
}

static void tell(bool completes, bool both)
{
	const char *why = wait_for_error(a);

	printf("requester %u: %s: %s\n", a->e.qp->qp_num, status(a, completes), why);
	if (both)
		printf("responder %u: %s\n", b->e.qp->qp_num, roci_qp_error(b->e.qp));
}

int main(int argc, char **argv)
{
	const struct mistake *m = NULL;
	char word;

	for (size_t i = 0; argc == 8 && i < sizeof(mistakes) / sizeof(*mistakes); i++)
		if (!strcmp(mistakes[i].name, argv[7]))
			m = &mistakes[i];
	if (!m)
		errx(2, "use: why SOCKET_A PORT_A GID_A SOCKET_B PORT_B GID_B MISTAKE");
	open_side(a, argv + 1);
	open_side(b, argv + 4);
	plan(a, b);
	plan(b, a);
	/* receives may be posted in INIT */
	step(b, ROCI_QPS_INIT, ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS);
	m->make();
	connect_side(b);
	connect_side(a);
	m->act();
	if (m->act != all_is_well && m->act != wait_and_take)
		tell(m->act != move_to_err && m->act != overflow, m->act != close_the_peer);
	printf("done\n");
	fflush(stdout);
	while (read(0, &word, 1) == 1)
		;
	if (m->act == all_is_well) {
		end_close(&a->e);
		end_close(&b->e);
	}
	return 0;
}
