/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that come after the end of what they are about, and connections that Linux would begin
 * or end in another way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "ends.h"
#include "pair.h"

/* proves CM-19: a peer that did not hear that a REP was taken back, and ends the connection, gets
 * its DREP */
static void rep_taken_back(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	to_rep(p);
	assert_int_equal(cm_reject(p->b->cm, p->passive, CM_REJ_CONSUMER, "no", 2, p->net->now), 0);
	assert_int_equal(cm_get(p->b->last, CM_F_REJ_NAMED), CM_NAMED_OTHER);
	p->net->n = 0;
	mad_begin(mad, CM_DREQ, 0x77);
	cm_put(mad, CM_F_DREQ_LOCAL_ID, p->id);
	cm_put(mad, CM_F_DREQ_REMOTE_ID, p->passive);
	cm_put(mad, CM_F_DREQ_QPN, 0x11);
	end_give(p->b, mad);
	assert_int_equal(mad_attr(p->b->last), CM_DREP);
	assert_int_equal(mad_tid(p->b->last), 0x77);
}

/* proves CM-14, CM-21: the QP of a connection that is refused as stale is in TIMEWAIT, as IBA
 * 12.9.8.3.1 has it */
static void refused_as_stale(void **state)
{
	struct pair *p = *state;

	to_req(p);
	assert_int_equal(
		cm_reject(p->b->cm, p->passive, CM_REJ_STALE_CONN, NULL, 0, p->net->now), 0);
	soon(p);
	assert_int_equal(end_take(p->a, CM_EV_REJECTED)->reason, CM_REJ_STALE_CONN);
	is(p->a, p->id, CM_TIMEWAIT);
	ends_run(p->net, p->net->now + 10000 * MS);
	end_take(p->a, CM_EV_TIMEWAIT_EXIT);
	is(p->a, p->id, CM_IDLE);
}

/* proves CM-11: the peer of a REP hears at once that nobody waits for it any more */
static void rep_too_late(void **state)
{
	struct pair *p = *state;
	struct cm_param param = end_param(p->b, 0x11, NULL);

	to_req(p);
	cm_accept(p->b->cm, p->passive, &param, 8, p->net->now);
	p->net->n = 0;
	ends_run(p->net, p->net->now + 1);
	mad_begin(p->rep, CM_REJ, 1);
	cm_put(p->rep, CM_F_REJ_REMOTE_ID, p->id);
	cm_put(p->rep, CM_F_REJ_REASON, CM_REJ_CONSUMER);
	end_give(p->a, p->rep);
	end_take(p->a, CM_EV_REJECTED);
	is(p->a, p->id, CM_IDLE);
	end_give(p->a, p->b->last);
	assert_int_equal(cm_get(p->a->last, CM_F_REJ_REASON), CM_REJ_INVALID_COMM_ID);
	soon(p);
	assert_int_equal(end_take(p->b, CM_EV_REJECTED)->reason, CM_REJ_INVALID_COMM_ID);
}

/* proves CM-31: the ID of a request that was answered may be that of another one by now */
static void lookup_of_another_service(void **state)
{
	struct pair *p = *state;
	uint8_t hdr[CMA_HDR_LEN];
	uint32_t id, listener;

	cm_listen(p->b->cm, SIDR, NULL, 8, 1, &listener);
	cm_sidr(p->a->cm, &p->a->to, SIDR, hdr, end_cma(p->a, hdr), 5, &id, p->net->now);
	memcpy(p->req, p->a->last, MAD_LEN);
	soon(p);
	cm_sidr_answer(p->b->cm, end_take(p->b, CM_EV_SIDR_REQ)->id, CM_SIDR_SUCCESS, 0x13, 0x77,
		NULL, 0, p->net->now);
	cm_put(p->req, CM_F_SIDR_REQ_SERVICE_ID, SIDR + 1);
	end_give(p->b, p->req);
	assert_int_equal(cm_get(p->b->last, CM_F_SIDR_REP_STATUS), CM_SIDR_UNSUPPORTED);
	assert_int_equal(cm_get(p->b->last, CM_F_SIDR_REP_SERVICE_ID), SIDR + 1);
	cm_put(p->req, CM_F_SIDR_REQ_SERVICE_ID, SIDR);
	end_give(p->b, p->req);
	end_take(p->b, CM_EV_SIDR_REQ);
}

/* proves CM-17, CM-25: a path that takes longer has the peer wait longer, and us */
static void long_path(void **state)
{
	struct pair *p = *state;
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param param = end_param(p->a, 0x21, hdr);
	struct cm_qp_attr a;

	param.packet_life = 19;
	cm_connect(p->a->cm, &p->a->to, SERVICE, &param, 7, &p->id, p->net->now);
	assert_int_equal(cm_get(p->a->last, CM_F_REQ_ACK_TIMEOUT), 20);
	soon(p);
	p->passive = end_take(p->b, CM_EV_REQ)->id;
	assert_int_equal(cm_qp_attr(p->b->cm, p->passive, &a), 0);
	assert_int_equal(a.timeout, 20);
	p->net->n = 0;
	/* 2 * 2.05 s and 4.1 s, after which the REQ is repeated: an MRA answers */
	ends_run(p->net, p->net->now + 8100 * MS);
	assert_int_equal(p->a->sent, 1);
	ends_run(p->net, p->net->now + 200 * MS);
	assert_int_equal(p->a->sent, 2);
}

/* proves CM-26: each reason is counted as itself */
static void reasons_count(void **state)
{
	struct pair *p = *state;

	to_req(p);
	cm_reject(p->b->cm, p->passive, CM_REJ_VENDOR_OPTION, NULL, 0, p->net->now);
	assert_int_equal(cm_counters(p->b->cm)->refused[CM_REJ_VENDOR_OPTION], 1);
	assert_int_equal(cm_counters(p->b->cm)->refused[CM_REJ_NO_RESOURCES], 0);
}

/* Loses the first four answers, and changes nothing else. */
static bool lose_four_answers(struct ends *net, unsigned to, uint8_t *mad)
{
	(void)to;
	if (mad_attr(mad) != CM_REJ && mad_attr(mad) != CM_SIDR_REP)
		return false;
	return net->end[1].sent <= 4;
}

/* proves CM-13: a request that is repeated because its answers were lost is not another one */
static void rejs_lost(void **state)
{
	struct pair *p = *state;

	p->net->filter = lose_four_answers;
	to_req(p);
	assert_int_equal(cm_reject(p->b->cm, p->passive, CM_REJ_CONSUMER, "no", 2, p->net->now), 0);
	assert_int_equal(cm_destroy(p->b->cm, p->passive, p->net->now), 0);
	ends_run(p->net, p->net->now + 60000 * MS);
	assert_int_equal(end_take(p->a, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
	assert_null(end_peek(p->a));
	assert_null(end_peek(p->b));
	assert_int_equal(cm_counters(p->b->cm)->tx[CM_REJ - CM_REQ], 5);
	cm_destroy(p->a->cm, p->id, p->net->now);
	drained(p);
}

/* proves CM-13, CM-18: nor is one that is repeated late, because an MRA asked for that */
static void rejs_lost_after_an_mra(void **state)
{
	struct pair *p = *state;

	to_req(p);
	ends_run(p->net, p->net->now + 10000 * MS);
	is(p->b, p->passive, CM_MRA_REQ_SENT);
	p->net->filter = lose_four_answers;
	assert_int_equal(cm_reject(p->b->cm, p->passive, CM_REJ_CONSUMER, "no", 2, p->net->now), 0);
	ends_run(p->net, p->net->now + 100000 * MS);
	assert_int_equal(end_take(p->a, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
	assert_null(end_peek(p->b));
	cm_destroy(p->b->cm, p->passive, p->net->now);
	cm_destroy(p->a->cm, p->id, p->net->now);
	drained(p);
}

/* A REQ that is repeated after 17 s only; all that follows it is lost. */
static bool slow_request(struct ends *net, unsigned to, uint8_t *mad)
{
	if (mad_attr(mad) == CM_REQ && net->end[0].sent == 1)
		cm_put(mad, CM_F_REQ_REMOTE_TIMEOUT, 22);
	return mad_attr(mad) != CM_REQ || net->end[0].sent > 1;
}

/* proves CM-13: an answer is kept for as long as the peer says that it waits for one */
static void rej_of_a_slow_request(void **state)
{
	struct pair *p = *state;

	p->net->filter = slow_request;
	to_req(p);
	assert_int_equal(cm_reject(p->b->cm, p->passive, CM_REJ_CONSUMER, "no", 2, p->net->now), 0);
	ends_run(p->net, p->net->now + 45000 * MS);
	is(p->b, p->passive, CM_REJECTED);
	ends_run(p->net, p->net->now + 15000 * MS);
	is(p->b, p->passive, CM_IDLE);
}

/* proves CM-31: nor is such a look-up */
static void sidr_reps_lost(void **state)
{
	struct pair *p = *state;
	uint8_t hdr[CMA_HDR_LEN];
	uint32_t id, asked, listener;

	p->net->filter = lose_four_answers;
	cm_listen(p->b->cm, SIDR, NULL, 8, 1, &listener);
	cm_sidr(p->a->cm, &p->a->to, SIDR, hdr, end_cma(p->a, hdr), 5, &id, p->net->now);
	soon(p);
	asked = end_take(p->b, CM_EV_SIDR_REQ)->id;
	cm_sidr_answer(p->b->cm, asked, CM_SIDR_SUCCESS, 0x13, 0x77, NULL, 0, p->net->now);
	cm_destroy(p->b->cm, asked, p->net->now);
	ends_run(p->net, p->net->now + 60000 * MS);
	assert_int_equal(end_take(p->a, CM_EV_SIDR_REP)->reason, CM_SIDR_SUCCESS);
	assert_null(end_peek(p->a));
	assert_null(end_peek(p->b));
	assert_int_equal(cm_counters(p->b->cm)->tx[CM_SIDR_REP - CM_REQ], 5);
	cm_destroy(p->a->cm, id, p->net->now);
	drained(p);
}

/* proves CM-31: a look-up is repeated as Linux repeats it, after 4,096 ms */
static void lookup_unanswered(void **state)
{
	struct pair *p = *state;
	uint8_t hdr[CMA_HDR_LEN];
	uint32_t id;

	cm_sidr(p->a->cm, &p->a->to, SIDR, hdr, end_cma(p->a, hdr), 5, &id, p->net->now);
	p->net->n = 0;
	ends_run(p->net, p->net->now + 4090 * MS);
	assert_int_equal(p->a->sent, 1);
	ends_run(p->net, p->net->now + 20 * MS);
	assert_int_equal(p->a->sent, 2);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {T(rep_taken_back), T(refused_as_stale), T(rep_too_late),
		T(lookup_of_another_service), T(long_path), T(reasons_count), T(rejs_lost),
		T(rejs_lost_after_an_mra), T(rej_of_a_slow_request), T(sidr_reps_lost),
		T(lookup_unanswered)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
