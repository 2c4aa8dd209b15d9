/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of READs at both ends: what ends them, and that everything is as without them then. That
 * random work is the same: fast_paths_test.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "cc.h"
#include "headers.h"
#include "hole.h"
#include "lone.h"
#include "opcode.h"
#include "pacing.h"
#include "qp.h"
#include "qp_impl.h"
#include "same.h"
#include "wqe.h"

#define SHOTS 6u
#define LEN   8u

/* One case each way, and a look at what differs. */
static void both_ways(void (*play)(struct lone *l, unsigned i), unsigned i)
{
	static struct lone ways[WAYS];

	for (int way = 0; way < WAYS; way++) {
		lone_init(&ways[way]);
		ways[way].attr.max_rd_atomic = SHOTS + 1;
		ways[way].attr.max_dest_rd_atomic = SHOTS + 1;
		core_fast_paths(&ways[way].host->core, way == SHORT);
		play(&ways[way], i);
	}
	same_lone(&ways[LONG], &ways[SHORT]);
	for (int way = 0; way < WAYS; way++)
		lone_fini(&ways[way]);
}

/* Its QP becomes a limited member, as its peer is (VAL-08). */
static void become_limited(struct lone *l)
{
	struct core_cmd cmd = {.type = CORE_CMD_RELOAD_PKEYS, .n = 1, .qps = &l->qp->qp};

	l->host->ports.port[0].pkey[0] = 0x7FFF;
	assert_int_equal(core_cmd(&l->host->core, &cmd, l->now), 0);
}

/* --- requests ------------------------------------------------------------------------- */

static void of_zero_bytes(struct lone *l, struct shot *s)
{
	(void)l;
	s->dma_len = 0;
	s->rkey = 0; /* RSP-12: nobody looks it up */
}

static void of_several_packets(struct lone *l, struct shot *s)
{
	s->dma_len = 3 * l->attr.path_mtu;
}

/* RSP-10 */
static void too_long(struct lone *l, struct shot *s)
{
	l->mr->mr.length = 2ull * MSG_LEN_MAX; /* nobody reads it */
	s->dma_len = MSG_LEN_MAX + 1;
}

static void with_another_key(struct lone *l, struct shot *s)
{
	(void)l;
	s->rkey ^= 1;
}

static void of_more_than_there_is(struct lone *l, struct shot *s)
{
	s->va = app_va(l->mr, LONE_MEM - 4);
}

static void of_a_region_to_write(struct lone *l, struct shot *s)
{
	struct app_mr *mr = app_mr(&l->app, 64, ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE);

	s->va = app_va(mr, 0);
	s->rkey = mr->mr.key;
}

static void again(struct lone *l, struct shot *s)
{
	(void)l;
	s->psn--;
	s->va -= 64;
}

static void too_early(struct lone *l, struct shot *s)
{
	(void)l;
	s->psn++;
}

static void a_write_instead(struct lone *l, struct shot *s)
{
	(void)l;
	s->opcode = OP_WRITE_ONLY;
	s->len = LEN;
}

static struct shot request(const struct lone *l, unsigned i)
{
	return (struct shot){.opcode = OP_READ_REQUEST,
		.psn = RQ_PSN + i,
		.ackreq = true,
		.pkey = l->qp->qp->pkey,
		.va = app_va(l->mr, 64 * i),
		.rkey = l->mr->mr.key,
		.dma_len = LEN};
}

/* Gives a burst of READs, the third of which @p change has changed, to a QP that has received one
 * before. */
static void ask(struct lone *l, stranger change)
{
	struct shot s[SHOTS];
	struct shot first = request(l, 0);

	lone_rx(l, &first);
	for (unsigned i = 0; i < SHOTS; i++) {
		s[i] = request(l, i + 1);
		if (i == 2 && change)
			change(l, &s[i]);
	}
	lone_rx_burst(l, s, SHOTS);
}

static const stranger requests[] = {of_zero_bytes, of_several_packets, too_long, with_another_key,
	of_more_than_there_is, of_a_region_to_write, again, too_early, a_write_instead};

static void ask_a_stranger(struct lone *l, unsigned i)
{
	lone_start(l);
	ask(l, i < WITHOUT_PAYLOAD ? strangers[i] : requests[i - WITHOUT_PAYLOAD]);
}

static void requests__end_a_run(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WITHOUT_PAYLOAD + ARRAY_SIZE(requests); i++)
		both_ways(ask_a_stranger, i);
}

/* RSP-30: the peer asks for more than was agreed; and RSP-37: exactly as many. */
static void ask_for_many(struct lone *l, unsigned i)
{
	l->attr.max_dest_rd_atomic = (uint8_t)(1 + i);
	lone_start(l);
	ask(l, NULL);
}

/* So many wait for their responses already. */
static void ask_for_more(struct lone *l, unsigned waiting)
{
	struct shot s[SHOTS];

	l->attr.max_dest_rd_atomic = RD_ATOMIC_MAX - 2;
	lone_start(l);
	for (unsigned k = 0; k < waiting; k++) {
		struct shot one = request(l, k);

		lone_rx(l, &one);
	}
	for (unsigned k = 0; k < SHOTS; k++)
		s[k] = request(l, waiting + k);
	lone_rx_burst(l, s, SHOTS);
}

static void reads__no_more_than_agreed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RD_ATOMIC_MAX; i++)
		both_ways(ask_for_many, i);
	for (unsigned waiting = 1; waiting <= RD_ATOMIC_MAX - 2; waiting++)
		both_ways(ask_for_more, waiting);
}

/* The replay ring is full of READs that are over; duplicates of them wait again. */
static void ask_once_more(struct lone *l, unsigned i)
{
	l->attr.max_dest_rd_atomic = RD_ATOMIC_MAX;
	lone_start(l);
	for (unsigned k = 0; k < RD_ATOMIC_MAX; k++) {
		struct shot s = request(l, k);

		lone_rx(l, &s);
		lone_tx(l);
	}
	for (unsigned k = 0; k < i; k++) {
		struct shot s = request(l, RD_ATOMIC_MAX - i + k);

		lone_rx(l, &s);
	}
	lone_rx_burst(
		l, (struct shot[]){request(l, RD_ATOMIC_MAX), request(l, RD_ATOMIC_MAX + 1)}, 2);
}

static void reads__after_duplicates(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= RD_ATOMIC_MAX; i++)
		both_ways(ask_once_more, i);
}

/* A QP without the right to READs: RSP-08; one that owes an ACK: spec-errors 62; that has sent a
 * NAK: RSP-03. */
enum before {
	NO_RIGHT,
	OWES_ACK,
	SENT_NAK,
	INSIDE_MESSAGE,
	IN_LIMITED_MEMBER,
	MORE_THAN_ALLOWED, /* RSP-30 */
	OF_XRC,		   /* VAL-04 */
	BEFORES
};

static void ask_after(struct lone *l, unsigned before)
{
	struct shot s[SHOTS];
	unsigned first = 1 + (before == OWES_ACK || before == INSIDE_MESSAGE);

	if (before == OF_XRC)
		l->spec.type = ABI_QPT_XRC_RECV;
	if (before == NO_RIGHT)
		l->attr.access_flags &= ~(uint32_t)ABI_ACCESS_REMOTE_READ;
	lone_start(l);
	lone_request(l, OP_WRITE_ONLY, RQ_PSN, 0, LEN, LEN);
	lone_tx(l);
	if (before == OF_XRC) { /* which does not take that */
		l->qp->qp->comm_est = true;
		first = 0;
	}
	if (before == IN_LIMITED_MEMBER)
		become_limited(l);
	if (before == OWES_ACK)
		lone_request(l, OP_WRITE_ONLY, RQ_PSN + 1, 0, LEN, LEN);
	if (before == INSIDE_MESSAGE)
		lone_request(
			l, OP_WRITE_FIRST, RQ_PSN + 1, 0, l->attr.path_mtu + LEN, l->attr.path_mtu);
	if (before == SENT_NAK) {
		lone_request(l, OP_WRITE_ONLY, RQ_PSN + 3, 0, LEN, LEN);
		lone_tx(l);
	}
	for (; before == MORE_THAN_ALLOWED && first < 4; first++) {
		struct shot one = request(l, first);

		lone_rx(l, &one);
	}
	if (before == MORE_THAN_ALLOWED)
		l->qp->qp->attr.max_dest_rd_atomic = 2; /* as MODIFY_QP may */
	for (unsigned i = 0; i < SHOTS; i++)
		s[i] = request(l, first + i);
	lone_rx_burst(l, s, SHOTS);
}

static void reads__of_a_qp_that_has_more_to_do(void **state)
{
	(void)state;
	for (unsigned before = 0; before < BEFORES; before++)
		both_ways(ask_after, before);
}

/* --- responses ------------------------------------------------------------------------ */

static void shorter(struct lone *l, struct shot *s)
{
	(void)l;
	s->len = LEN - 1;
}

static void longer(struct lone *l, struct shot *s)
{
	(void)l;
	s->payload = NULL;
	s->len = LEN + 1;
}

static void without_payload(struct lone *l, struct shot *s)
{
	(void)l;
	s->len = 0;
}

static void longer_than_the_mtu(struct lone *l, struct shot *s)
{
	static const uint8_t bytes[4096 + LEN];

	s->payload = bytes;
	s->len = l->attr.path_mtu + LEN;
}

/* REQ-43 */
static void with_a_nak(struct lone *l, struct shot *s)
{
	(void)l;
	s->syndrome = AETH_NAK;
}

/* CRD-01 */
static void with_credits(struct lone *l, struct shot *s)
{
	(void)l;
	s->syndrome = AETH_ACK | 3;
}

static void the_first_of_several(struct lone *l, struct shot *s)
{
	s->opcode = OP_READ_RESP_FIRST;
	s->payload = NULL;
	s->len = l->attr.path_mtu;
}

static void an_acknowledgement(struct lone *l, struct shot *s)
{
	(void)l;
	s->opcode = OP_ACKNOWLEDGE;
	s->len = 0;
}

static const stranger responses[] = {shorter, longer, without_payload, with_a_nak, with_credits,
	the_first_of_several, an_acknowledgement, again, too_early};

static struct shot response(const struct lone *l, unsigned i)
{
	static const uint8_t bytes[SHOTS + 1][LEN] = {"first", "second", "third", "fourth"};

	return (struct shot){.opcode = OP_READ_RESP_ONLY,
		.psn = SQ_PSN + i,
		.syndrome = AETH_ACK | AETH_CREDIT_NONE,
		.msn = i + 1,
		.pkey = l->qp->qp->pkey,
		.payload = bytes[i],
		.len = LEN};
}

static struct app_send read_of(const struct lone *l, unsigned i)
{
	return (struct app_send){.opcode = ABI_WR_RDMA_READ,
		.flags = i % 3 ? ABI_WQE_SIGNALED : 0,
		.wr_id = i,
		.remote_addr = PEER_VA,
		.rkey = PEER_KEY,
		.num_sge = 1,
		.sge = {app_sge(l->mr, 64 * i, LEN)}};
}

/* Posts READs, the fourth of which is @p odd if it is not NULL, and sends them. */
static void post(struct lone *l, const struct app_send *odd)
{
	for (unsigned i = 0; i <= SHOTS; i++) {
		struct app_send s = read_of(l, i);

		app_post_send(l->qp, i == 3 && odd ? odd : &s);
	}
	lone_tx(l);
}

/* Responds to the first alone, and in a burst to the others, or to all again if that was dropped;
 * the response to the fourth is changed. */
static void answer(struct lone *l, stranger change)
{
	struct shot first = response(l, 0);
	struct shot s[SHOTS + 1];
	unsigned from;

	lone_rx(l, &first);
	from = l->qp->qp->comp.una - SQ_PSN;
	for (unsigned i = 0; i <= SHOTS; i++) {
		s[i] = response(l, i);
		if (i == 3 && change)
			change(l, &s[i]);
	}
	lone_rx_burst(l, &s[from], SHOTS + 1 - from);
}

static void answer_as_a_stranger(struct lone *l, unsigned i)
{
	lone_start(l);
	post(l, NULL);
	answer(l, i < STRANGERS ? strangers[i] : responses[i - STRANGERS]);
}

static void responses__end_a_run(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STRANGERS + ARRAY_SIZE(responses); i++)
		both_ways(answer_as_a_stranger, i);
}

/* Requests that a response with one payload does not complete just like that. */
enum odd {
	OF_TWO_PARTS,
	OF_TWO_PACKETS,
	OF_TWO_PACKETS_IN_ONE, /* REQ-40 */
	A_WRITE,
	AN_ATOMIC,
	ODDS
};

static void answer_an_odd_one(struct lone *l, unsigned kind)
{
	struct app_send odd;

	lone_start(l);
	odd = read_of(l, 3);
	if (kind == OF_TWO_PARTS) {
		odd.num_sge = 2;
		odd.sge[0].length = 5;
		odd.sge[1] = app_sge(l->mr, 4096, 3);
	}
	if (kind == OF_TWO_PACKETS || kind == OF_TWO_PACKETS_IN_ONE)
		odd.sge[0].length = l->attr.path_mtu + LEN;
	if (kind == A_WRITE)
		odd.opcode = ABI_WR_RDMA_WRITE;
	if (kind == AN_ATOMIC)
		odd.opcode = ABI_WR_ATOMIC_FETCH_AND_ADD;
	post(l, &odd);
	answer(l, kind == OF_TWO_PACKETS_IN_ONE ? longer_than_the_mtu : NULL);
}

static void requests__that_are_no_plain_read(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < ODDS; kind++)
		both_ways(answer_an_odd_one, kind);
}

/* Events between a READ and its response. */
enum since {
	KEY_GONE, /* REQ-45 */
	CQ_SMALL, /* CQ-01 */
	CQ_LOST_ONE,
	ALL_SIGNALED,
	NOT_ALL_SENT, /* REQ-36 */
	SENT_AGAIN,
	CREDITS_WERE_FEW, /* CRD-04 */
	LIMITED_MEMBER,	  /* VAL-08 */
	XRC,		  /* VAL-04 */
	DRAINS,		  /* QPS-19 */
	FAILED,
	SINCES
};

static void drain(struct lone *l)
{
	struct abi_qp_attr attr = {.qp_state = ABI_QPS_SQD, .en_sqd_async_notify = 1};

	assert_int_equal(
		app_modify(l->qp, ABI_QP_STATE | ABI_QP_EN_SQD_ASYNC_NOTIFY, &attr, NULL, l->now),
		0);
}

static void answer_since(struct lone *l, unsigned since)
{
	if (since == CQ_SMALL)
		l->cq_depth = 2;
	if (since == NOT_ALL_SENT)
		l->attr.max_rd_atomic = 4;
	if (since == XRC)
		l->spec.type = ABI_QPT_XRC_SEND;
	l->spec.sig_all = since == ALL_SIGNALED;
	lone_start(l);
	post(l, NULL);
	if (since == LIMITED_MEMBER)
		become_limited(l);
	if (since == KEY_GONE)
		app_mr_dereg(&l->app, l->mr);
	if (since == CQ_LOST_ONE)
		l->qp->qp->send_lane->overflow = true;
	if (since == SENT_AGAIN) {
		lone_wait(l, 10 * l->qp->qp->ack_timeout);
		lone_tx_max(l, 3);
	}
	if (since == CREDITS_WERE_FEW) {
		l->qp->qp->comp.limited = true;
		l->qp->qp->comp.limit = SHOTS;
	}
	if (since == DRAINS)
		drain(l);
	if (since == FAILED)
		qp_error(&l->host->core, l->qp->qp, l->now);
	answer(l, NULL);
	app_events(&l->app);
	assert_int_equal(app_event_count(&l->app, ABI_EVENT_SQ_DRAINED), since == DRAINS);
}

static void responses__to_reads_of_another_time(void **state)
{
	(void)state;
	for (unsigned since = 0; since < SINCES; since++)
		both_ways(answer_since, since);
}

static unsigned acks;

static void count_acks(struct cc *c, const struct cc_ack *ack, uint64_t now)
{
	cc_swift.on_ack(c, ack, now);
	acks++;
}

/* An algorithm may look at each response, for example at the queues on its path. */
static void responses__are_acks_of_their_own(void **state)
{
	struct cc_ops curious = cc_swift;
	struct cc_config cfg;
	static struct lone l;

	(void)state;
	curious.on_ack = count_acks;
	cc_config_init(&cfg, &curious, 0, 40e9);
	lone_init(&l);
	l.attr.max_rd_atomic = SHOTS + 1;
	atomic_store(&l.host->ports.port[0].cc, &cfg);
	lone_start(&l);
	assert_true(l.qp->qp->limited);
	post(&l, NULL);
	acks = 0;
	answer(&l, NULL);
	assert_int_equal(acks, SHOTS + 1);
	lone_fini(&l);
}

/* --- memory that is not there --------------------------------------------------------- */

/* The READ with number @p hole is of memory that is not there. */
static void answer_to_a_hole(struct lone *l, bool on, unsigned hole)
{
	struct mr *mr;

	lone_init(l);
	l->attr.max_rd_atomic = SHOTS + 1;
	lone_start(l);
	core_fast_paths(&l->host->core, on);
	mr = hole_open(l->host, APP_PD);
	for (unsigned i = 0; i <= SHOTS; i++) {
		struct app_send s = read_of(l, i);

		if (i == hole)
			s.sge[0] = (struct abi_sge){
				.addr = mr->iova + HOLE_PAGE, .length = LEN, .lkey = mr->key};
		app_post_send(l->qp, &s);
	}
	lone_tx(l);
	answer(l, NULL);
}

static void fault__ends_a_run(void **state)
{
	static struct lone ways[WAYS];

	(void)state;
	for (unsigned hole = 1; hole <= SHOTS; hole++) {
		for (int way = 0; way < WAYS; way++) {
			struct lone *l = &ways[way];

			answer_to_a_hole(l, way == SHORT, hole);
			assert_int_equal(l->host->core.count.access_faults, 1);
			assert_int_equal(l->qp->qp->state, ABI_QPS_ERR);
			assert_int_equal(l->qp->qp->why.error.cause, CAUSE_READ_FAULT);
			hole_close(l->host);
		}
		same_lone(&ways[LONG], &ways[SHORT]);
		for (int way = 0; way < WAYS; way++)
			lone_fini(&ways[way]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests__end_a_run),
		cmocka_unit_test(reads__no_more_than_agreed),
		cmocka_unit_test(reads__after_duplicates),
		cmocka_unit_test(reads__of_a_qp_that_has_more_to_do),
		cmocka_unit_test(responses__end_a_run),
		cmocka_unit_test(requests__that_are_no_plain_read),
		cmocka_unit_test(responses__to_reads_of_another_time),
		cmocka_unit_test(responses__are_acks_of_their_own),
		cmocka_unit_test(fault__ends_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
