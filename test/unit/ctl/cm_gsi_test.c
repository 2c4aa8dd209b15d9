/* SPDX-License-Identifier: BSD-3-Clause */
/* MADs on their way to QP1: thousands at once are neither lost nor sent at a rate that the peer's
 * QP1 cannot take. The test is the worker that sends them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "abi_wqe.h"
#include "admin/arg.h"
#include "bits.h"
#include "cm/connections.h"
#include "cm/manager.h"
#include "config/ctl_parts.h"
#include "daemon.h"
#include "headers.h"
#include "net/pkeys.h"
#include "qp.h"
#include "session/message.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/qp_obj.h"

#define MS 1000000ull

static uint64_t now;
static uint32_t sender; /* of the MADs that follow */

uint64_t __wrap_loop_now_ns(void);
uint64_t __wrap_loop_now_ms(void);

uint64_t __wrap_loop_now_ns(void)
{
	return now;
}

uint64_t __wrap_loop_now_ms(void)
{
	return now / MS;
}

static int setup(void **state)
{
	struct test_daemon *d = *state;
	char why[ABI_SENTENCE_MAX];

	now = 1000 * MS;
	sender = 0;
	daemon_config(d);
	assert_int_equal(ctl_start(&d->ctl, &d->cfg, d->why), 0);
	assert_int_equal(connections_open(d->ctl->connections, why), 0);
	return 0;
}

static int teardown(void **state)
{
	struct test_daemon *d = *state;

	ctl_destroy(d->ctl);
	d->ctl = NULL;
	rmdir(d->dir);
	return 0;
}

static struct gsi *gsi_of(void **state)
{
	return &((struct test_daemon *)*state)->ctl->connections->gsi;
}

static void send_as(
	struct gsi *g, enum cm_attr attr, uint16_t pkey, const uint8_t to[16], uint32_t number)
{
	struct cm_path path = {.pkey = pkey, .net = NET_IPV4, .hop_limit = 64, .sender = sender};
	uint8_t mad[MAD_LEN];

	memcpy(path.local, gid_own4, 16);
	memcpy(path.remote, to, 16);
	mad_begin(mad, attr, number);
	gsi_send(g, &path, mad);
}

static void send_in(struct gsi *g, uint16_t pkey, const uint8_t to[16], uint32_t number)
{
	send_as(g, CM_DREQ, pkey, to, number);
}

static void send_one(struct gsi *g, const uint8_t to[16], uint32_t number)
{
	send_in(g, 0xFFFF, to, number);
}

/* Takes what is posted, in order, as a worker does.  @return how many */
static uint32_t work(struct gsi *g, uint32_t *next)
{
	const struct gsi_port *p = &g->port[0];
	const struct ring *sq = &p->qp->qp->sq;
	uint32_t at = atomic_load(&sq->shared->consumer), n = p->posted - at;

	assert_in_range(n, 0, sq->depth);
	for (; at != p->posted; at++) {
		const uint8_t *entry = sq->entries + (size_t)(at & (sq->depth - 1)) * sq->stride;

		assert_int_equal(mad_tid(entry + ABI_WQE_HDR), (*next)++);
		assert_int_equal(((const struct abi_wqe *)entry)->ud.remote_qpn, 1);
		assert_int_equal(((const struct abi_wqe *)entry)->ud.remote_qkey, MAD_QKEY);
	}
	atomic_store(&sq->shared->consumer, p->posted);
	return n;
}

/* More than the send queue holds: all go, in their order, at a rate. */
static void send__thousands(void **state)
{
	struct gsi *g = gsi_of(state);
	uint32_t next = 0, ms = 0;

	for (uint32_t i = 0; i < 3000; i++)
		send_one(g, gid_peer4, i);
	assert_int_equal(work(g, &next), GSI_BURST);
	while (next < 3000) {
		now += MS;
		ms++;
		gsi_flush(g);
		assert_in_range(work(g, &next), 1, GSI_PACE);
	}
	assert_in_range(ms, (3000 - GSI_BURST) / GSI_PACE, 60);
	assert_false(gsi_flush(g));
	assert_int_equal(g->full, 0);
	send_one(g, gid_peer4, next); /* at once again */
	now += 10 * MS;
	assert_int_equal(work(g, &next), 1);
}

/* @return in which place of those that are posted the MAD @p number is; -1: not yet */
static int place_of(const struct gsi *g, uint32_t number)
{
	const struct gsi_port *p = &g->port[0];
	const struct ring *sq = &p->qp->qp->sq;
	uint32_t at = atomic_load(&sq->shared->consumer);

	for (int i = 0; at + (uint32_t)i != p->posted; i++) {
		const uint8_t *entry =
			sq->entries + (size_t)((at + (uint32_t)i) & (sq->depth - 1)) * sq->stride;

		if (mad_tid(entry + ABI_WQE_HDR) == number)
			return i;
	}
	return -1;
}

static void all_sent(struct gsi *g)
{
	struct ring *sq = &g->port[0].qp->qp->sq;

	atomic_store(&sq->shared->consumer, g->port[0].posted);
}

/* A user whose programs end with thousands of connections delays no other's request by more than
 * one MAD of its own, nor takes all places. */
static void send__turns(void **state)
{
	struct gsi *g = gsi_of(state);

	sender = 1;
	for (uint32_t i = 0; i < GSI_WAITING; i++)
		send_one(g, gid_peer4, i);
	assert_int_equal(g->nwaiting, GSI_WAITING / 2);
	assert_int_equal(g->full, GSI_WAITING / 2 - GSI_BURST);
	for (sender = 2; sender < 5; sender++)
		send_one(g, gid_peer4, 1000000 + sender);
	all_sent(g);
	now += MS;
	assert_true(gsi_flush(g));
	for (uint32_t i = 2; i < 5; i++)
		assert_in_range(place_of(g, 1000000 + i), 0, 3);
	assert_int_equal(place_of(g, GSI_BURST + 10), 13); /* that user's own go on in order */
	while (g->nwaiting) {
		all_sent(g);
		now += MS;
		gsi_flush(g);
	}
	assert_in_range(g->touched, GSI_WAITING / 2, GSI_WAITING / 2 + 3);
}

/* More users than queues: nothing is lost, and each keeps its order. */
static void send__many_users(void **state)
{
	struct gsi *g = gsi_of(state);
	uint32_t n = 0;

	for (sender = 0; sender < 3 * GSI_TURNS; sender++)
		for (uint32_t i = 0; i < 4; i++)
			send_one(g, gid_peer4, 0);
	for (all_sent(g); g->nwaiting; all_sent(g)) {
		now += MS;
		gsi_flush(g);
		n += g->port[0].posted - atomic_load(&g->port[0].qp->qp->sq.shared->consumer);
	}
	assert_int_equal(n, 4 * 3 * GSI_TURNS - GSI_BURST);
	assert_int_equal(g->full, 0);
}

/* proves CM-01: the P_Key is that of the path, be we a full or a limited member of the partition.
 */
static uint32_t pkey_index_of(const struct gsi *g, uint32_t posted)
{
	const struct ring *sq = &g->port[0].qp->qp->sq;
	const uint8_t *at = sq->entries + (size_t)(posted & (sq->depth - 1)) * sq->stride;

	return ((const struct abi_wqe *)at)->ud.pkey_index;
}

static void send__pkeys(void **state)
{
	static const struct {
		uint16_t pkey;
		uint32_t index;
	} rows[] = {{0xFFFF, 1}, {0x8001, 0}, {0x0002, 2}, {0x8002, 2}, {0x8003, 4}, {0x0003, 4},
		{0x7777, 0}};
	static const uint16_t table[] = {0x8001, 0xFFFF, 0x8002, 0x0002, 0x0003};
	uint32_t next, posted;
	struct gsi *g = gsi_of(state);
	struct port *port = &g->ctl->dp->ports->port[0];

	for (uint32_t i = 0; i < ARRAY_SIZE(table); i++)
		assert_true(pkeys_set(port, i, table[i]));
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		posted = g->port[0].posted;
		next = i;
		send_in(g, rows[i].pkey, gid_peer4, i);
		assert_int_equal(work(g, &next), 1);
		assert_int_equal(pkey_index_of(g, posted), rows[i].index);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(table); i++) { /* cleared entries are not used */
		assert_true(pkeys_set(port, i, 0));
		posted = g->port[0].posted;
		next = ARRAY_SIZE(rows) + i;
		send_in(g, 0x7777, gid_peer4, ARRAY_SIZE(rows) + i);
		if (i + 1 == ARRAY_SIZE(table)) {
			assert_int_equal(g->port[0].posted, posted);
			break;
		}
		assert_int_equal(work(g, &next), 1);
		assert_int_equal(pkey_index_of(g, posted), i + 1);
	}
	assert_true(pkeys_set(port, 0, 0xFFFF));
}

/* A worker that does not send: nothing is written over, and no more is kept than there is room for.
 */
static void send__no_worker(void **state)
{
	struct gsi *g = gsi_of(state);
	uint32_t next = 0, total = GSI_SENDS + GSI_WAITING / 2;

	for (uint32_t i = 0; i < total + 10; i++) {
		now += MS;
		gsi_flush(g);
		send_one(g, gid_peer4, i);
	}
	assert_int_equal(g->port[0].posted, GSI_SENDS);
	assert_int_equal(g->full, 10);
	while (next < total) {
		work(g, &next);
		now += 10 * MS;
		gsi_flush(g);
	}
	assert_int_equal(work(g, &next), 0);
}

/* Hosts that nobody answers for, as forged sources are, keep the others' MADs from nothing: these
 * go at once, and are not queued after those. */
static void send__nobody_answers(void **state)
{
	struct gsi *g = gsi_of(state);
	uint8_t forged[16];
	uint32_t next = 5000;

	memcpy(forged, gid_peer4, 16);
	for (uint32_t i = 0; i < GSI_AHS; i++) { /* no place is left */
		g->ah[i] = (struct gsi_ah){.used = true, .asked = true};
		g->nasked++;
	}
	for (uint32_t i = 0; i < 2 * GSI_AHS; i++) {
		forged[14] = (uint8_t)(i >> 8);
		forged[15] = (uint8_t)(i | 0x80);
		now += MS;
		send_one(g, forged, i);
	}
	assert_int_equal(g->nwaiting, 0);
	assert_int_equal(g->unresolved, 2 * GSI_AHS);
	g->ah[0] = (struct gsi_ah){.used = true, .handle = 1};
	g->ah[0].path = (struct cm_path){.pkey = 0xFFFF, .net = NET_IPV4, .hop_limit = 64};
	memcpy(g->ah[0].path.local, gid_own4, 16);
	memcpy(g->ah[0].path.remote, gid_peer4, 16);
	send_one(g, gid_peer4, next);
	assert_int_equal(work(g, &next), 1);
	memset(g->ah, 0, sizeof(g->ah));
}

/* Nor do they keep programs from connecting: answers alone are lost. */
static void send__own_first(void **state)
{
	struct gsi *g = gsi_of(state);
	uint32_t next = 7;

	for (uint32_t i = 0; i < GSI_ASKED; i++) {
		g->ah[i] = (struct gsi_ah){.used = true, .asked = true};
		g->nasked++;
	}
	send_as(g, CM_REJ, 0xFFFF, gid_peer4, 6);
	assert_int_equal(g->unresolved, 1);
	send_as(g, CM_REQ, 0xFFFF, gid_peer4, 7);
	assert_int_equal(g->unresolved, 1);
	assert_int_equal(work(g, &next), 1);
	memset(g->ah, 0, GSI_ASKED * sizeof(*g->ah));
}

/* A flood of MADs from forged addresses has rocid look for many neighbours that do not exist. When
 * all of them are given up at once, QP1 continues: replies that nobody had read would end its
 * session, and no program could connect any more. */
static void lookups__end_at_once(void **state)
{
	const struct abi_msg msg = {.type = ABI_CREATE_AH};
	struct gsi *g = gsi_of(state);
	struct reply r = {0};
	uint8_t byte;

	for (unsigned i = 0; i < 4096; i++) {
		g->ah[0].asked = g->ah[0].used = true;
		g->nasked = 1;
		session_reply(g->session, &msg, -EHOSTUNREACH, &r);
		assert_int_equal(g->nasked, 0);
	}
	assert_int_equal(recv(g->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

/* As a worker completes, in the lane of worker 0. */
static void complete(struct gsi *g, struct abi_cqe cqe)
{
	struct abi_cq_lane *lane = (struct abi_cq_lane *)(g->ring + g->lane_off);

	cqe.mark = abi_cqe_mark(abi_phase(g->taken[0], g->cq_depth), 0);
	((struct abi_cqe *)(lane + 1))[g->taken[0] & (g->cq_depth - 1)] = cqe;
}

/* proves QPS-11: one MAD that cannot be sent, as in a partition that was left meanwhile, is not the
 * end of QP1. */
static void send__one_fails(void **state)
{
	struct gsi *g = gsi_of(state);
	struct qp *qp = g->port[0].qp->qp;
	const struct abi_wqe *w = (const struct abi_wqe *)qp->sq.entries;

	send_one(g, gid_peer4, 0);
	complete(g,
		(struct abi_cqe){
			.wr_id = w->wr_id, .status = ABI_WC_LOC_QP_OP_ERR, .opcode = ABI_WC_SEND});
	qp->state = ABI_QPS_SQE;
	gsi_poll(g);
	assert_int_equal(qp->state, ABI_QPS_RTS);
	gsi_poll(g); /* what was flushed after it says nothing new */
	assert_int_equal(qp->state, ABI_QPS_RTS);
}

/* Datagrams longer than any path MTU, of an Ethernet of larger frames, do not use up the receives.
 */
static void receive__too_long(void **state)
{
	struct gsi *g = gsi_of(state);
	uint32_t posted = g->port[0].received;

	for (uint32_t i = 0; i < 2 * GSI_RECVS; i++) {
		complete(g, (struct abi_cqe){.wr_id = i % GSI_RECVS,
				    .status = ABI_WC_LOC_LEN_ERR,
				    .opcode = ABI_WC_RECV});
		gsi_poll(g);
	}
	assert_int_equal(g->port[0].received, posted + 2 * GSI_RECVS);
	assert_int_equal(g->strange, 2 * GSI_RECVS);
}

/* SEC-03: a station that varies its flow label has one address handle, not all of them. */
static void send__labels(void **state)
{
	struct gsi *g = gsi_of(state);
	struct cm_path path = {.pkey = 0xFFFF, .net = NET_IPV4, .hop_limit = 64};
	uint8_t mad[MAD_LEN];
	unsigned used = 0;

	memcpy(path.local, gid_own4, 16);
	memcpy(path.remote, gid_peer4, 16);
	mad_begin(mad, CM_DREP, 1);
	for (unsigned i = 0; i < GSI_BURST; i++) {
		path.flow_label = i;
		gsi_send(g, &path, mad);
	}
	for (unsigned i = 0; i < GSI_AHS; i++)
		used += g->ah[i].used;
	assert_int_equal(used, 1);
}

/* When the memory of QP1 is lost, nothing spins or uses it, and QP1 is open again soon: what it
 * sends and receives then is of the new one. */
static void session__lost(void **state)
{
	struct gsi *g = gsi_of(state);
	struct ctl *ctl = g->ctl;
	uint32_t next = 0, number = g->session->number;

	send_one(g, gid_peer4, 0);
	complete(g,
		(struct abi_cqe){.wr_id = 0, .status = ABI_WC_LOC_LEN_ERR, .opcode = ABI_WC_RECV});
	gsi_poll(g);
	session_close(g->session);
	assert_null(g->session);
	assert_int_equal(g->arrived.fd, -1);
	send_one(g, gid_peer4, 0); /* is lost */
	assert_in_range(connections_poll(ctl), 1, GSI_AGAIN_MS);
	assert_null(g->session);
	now += GSI_AGAIN_MS * MS;
	connections_poll(ctl);
	assert_non_null(g->session);
	assert_int_not_equal(g->session->number, number);
	assert_true(g->arrived.fd >= 0);
	assert_int_equal(g->taken[0], 0); /* of the new ring */
	send_one(g, gid_peer4, 0);
	assert_int_equal(work(g, &next), 1);
	complete(g,
		(struct abi_cqe){.wr_id = 0, .status = ABI_WC_LOC_LEN_ERR, .opcode = ABI_WC_RECV});
	gsi_poll(g);
	assert_int_equal(g->strange, 2);
	assert_in_range(connections_poll(ctl), -1, -1);
}

/* QP1 belongs to the old session until that has ended, which takes steps. */
static void session__lost_slowly(void **state)
{
	struct gsi *g = gsi_of(state);
	struct ctl *ctl = g->ctl;

	session_begin_close(g->session);
	now += GSI_AGAIN_MS * MS;
	connections_poll(ctl);
	assert_null(g->session);
	while (sessions_close_some(ctl))
		;
	now += GSI_AGAIN_MS * MS;
	connections_poll(ctl);
	assert_non_null(g->session);
}

/* Administrators end sessions of programs, and do not see this one. */
static void session__not_for_administrators(void **state)
{
	struct gsi *g = gsi_of(state);
	char number[16], why[ABI_SENTENCE_MAX];
	struct argument arg = {.word = number};
	const struct admin_arg_kind *kind = admin_arg_kind("SESSION", 7);

	snprintf(number, sizeof(number), "%u", g->session->number);
	assert_int_equal(admin_arg_parse(g->ctl, kind, &arg, 0, why), -ENOENT);
	g->session->own = false;
	assert_int_equal(admin_arg_parse(g->ctl, kind, &arg, 0, why), 0);
	g->session->own = true;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {T(send__thousands), T(send__turns), T(send__many_users),
		T(send__pkeys), T(send__no_worker), T(send__nobody_answers), T(send__own_first),
		T(send__one_fails), T(send__nobody_answers), T(lookups__end_at_once),
		T(send__one_fails), T(receive__too_long), T(send__labels), T(session__lost),
		T(session__lost_slowly), T(session__not_for_administrators)};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
