/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of the communication manager one by one, between two of them and by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "bits.h"
#include "ends.h"
#include "headers.h"
#include "pair.h"
#include "wheel.h"

/* proves CM-10, CM-11, CM-19 */
static void whole_life(void **state)
{
	struct pair *p = *state;
	uint64_t tid;

	to_established(p);
	assert_int_equal(mad_tid(p->rep), mad_tid(p->req));
	assert_int_equal(mad_tid(p->a->last), mad_tid(p->req));
	assert_int_equal(cm_get(p->a->last, CM_F_RTU_REMOTE_ID), cm_get(p->rep, CM_F_REP_LOCAL_ID));
	assert_true(p->id && p->passive);
	cm_disconnect(p->a->cm, p->id, NULL, 0, p->net->now);
	tid = mad_tid(p->a->last);
	assert_true(tid != mad_tid(p->req));
	assert_int_equal(cm_get(p->a->last, CM_F_DREQ_QPN), 0x11);
	soon(p);
	end_take(p->b, CM_EV_DISCONNECTED);
	is(p->b, p->passive, CM_DREQ_RCVD);
	cm_disconnect(p->b->cm, p->passive, NULL, 0, p->net->now);
	assert_int_equal(mad_tid(p->b->last), tid);
	soon(p);
	end_take(p->a, CM_EV_DISCONNECTED);
	is(p->a, p->id, CM_TIMEWAIT);
	is(p->b, p->passive, CM_TIMEWAIT);
	ends_run(p->net, p->net->now + 10 * 1000 * MS);
	end_take(p->a, CM_EV_TIMEWAIT_EXIT);
	end_take(p->b, CM_EV_TIMEWAIT_EXIT);
	assert_int_equal(cm_destroy(p->a->cm, p->id, p->net->now), 0);
	assert_int_equal(cm_destroy(p->b->cm, p->passive, p->net->now), 0);
	assert_int_equal(cm_destroy(p->b->cm, p->passive, p->net->now), -ENOENT);
	drained(p);
}

/* proves CM-22, CM-23, CM-25 */
static void attributes(void **state)
{
	struct pair *p = *state;
	struct cm_qp_attr a, b;

	to_established(p);
	assert_int_equal(cm_qp_attr(p->a->cm, p->id, &a), 0);
	assert_int_equal(cm_qp_attr(p->b->cm, p->passive, &b), 0);
	assert_int_equal(a.dest_qpn, 0x11);
	assert_int_equal(b.dest_qpn, 0x21);
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(b.rq_psn, a.sq_psn);
	/* a message's PSN is where the peer begins, as captures of Linux show */
	assert_int_equal(a.sq_psn, cm_get(p->rep, CM_F_REP_PSN));
	assert_int_equal(b.sq_psn, cm_get(p->req, CM_F_REQ_PSN));
	assert_int_equal(a.path_mtu, 3);
	assert_int_equal(b.path_mtu, 3);
	/* each offers 4 to respond to and begins 8: 4 is what both can */
	assert_int_equal(a.max_rd_atomic, 4);
	assert_int_equal(b.max_rd_atomic, 4);
	assert_int_equal(a.max_dest_rd_atomic, 4);
	assert_int_equal(b.max_dest_rd_atomic, 4);
	assert_int_equal(b.retry_cnt, 6);
	assert_int_equal(a.rnr_retry, 5);
	assert_int_equal(a.timeout, 17);
	assert_int_equal(b.timeout, 17);
	assert_int_equal(cm_get(p->rep, CM_F_REP_RESP_RES), 4);
}

/* proves CM-22: whatever the peer says */
static void rep_asks_for_more(void **state)
{
	struct pair *p = *state;
	struct cm_param param = end_param(p->b, 0x11, NULL);
	struct cm_qp_attr a;

	to_req(p);
	cm_accept(p->b->cm, p->passive, &param, 8, p->net->now);
	memcpy(p->rep, p->b->last, MAD_LEN);
	cm_put(p->rep, CM_F_REP_RESP_RES, 200);
	cm_put(p->rep, CM_F_REP_INIT_DEPTH, 200);
	end_give(p->a, p->rep);
	assert_int_equal(cm_qp_attr(p->a->cm, p->id, &a), 0);
	assert_int_equal(a.max_rd_atomic, 8);
	assert_int_equal(a.max_dest_rd_atomic, 4);
}

/* proves ENT-06 */
static void label_formulas(void **state)
{
	(void)state;
	assert_int_equal(cm_flow_label(4420, 40000, false), 0x34242);
	assert_int_equal(cm_flow_label(40000, 4420, false), 0x34242);
	assert_int_equal(cm_flow_label(65535, 65535, false), 0x10100);
	assert_int_equal(cm_flow_label(4420, 40000, true), 0x2FD04);
	assert_int_equal(cm_flow_label(65535, 65535, true), 0xFFFE0);
}

/* proves ENT-07, ENT-08: that of the REQ; of both ports if it has none, but by RoCEv1 (V1-01) */
static void label_of_a_request(void **state)
{
	const uint32_t ports = cm_flow_label(SERVICE & 0xFFFF, 40000, false);
	const struct {
		uint8_t net;
		uint32_t in, want;
	} rows[] = {{NET_IPV4, 0, ports}, {NET_IPV6, 0, ports}, {NET_IPV6, 0x777, 0x777},
		{NET_ROCEV1, 0, 0}, {NET_ROCEV1, 0x777, 0x777}};
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	to_req(p);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cm_param param = end_param(p->b, 0x31 + i, NULL);

		memcpy(mad, p->req, MAD_LEN);
		cm_put(mad, CM_F_REQ_LOCAL_ID, 0x777 + i);
		cm_put(mad, CM_F_REQ_QPN, 0x99 + i);
		cm_put(mad, CM_F_REQ_FLOW_LABEL, rows[i].in);
		p->b->to.net = rows[i].net;
		end_give(p->b, mad);
		assert_int_equal(
			cm_accept(p->b->cm, end_take(p->b, CM_EV_REQ)->id, &param, 8, p->net->now),
			0);
		assert_int_equal(mad_attr(p->b->last), CM_REP);
		assert_int_equal(p->b->last_label, rows[i].want);
	}
}

/* proves CM-07, CM-12, CM-28, CM-30 */
static void refusals(void **state)
{
	static const struct {
		enum cm_field f;
		uint64_t v;
		enum cm_rej want; /* 0: none */
	} rows[] = {{CM_F_REQ_SERVICE_ID, SERVICE + 1, CM_REJ_INVALID_SERVICE_ID},
		{CM_F_REQ_TRANSPORT, CM_TRANSPORT_RD, CM_REJ_INVALID_TRANSPORT},
		{CM_F_REQ_MTU, 0, CM_REJ_INVALID_MTU}, {CM_F_REQ_MTU, 6, CM_REJ_INVALID_MTU},
		{CM_F_REQ_LOCAL_ID, 0, CM_REJ_INVALID_COMM_ID}, {CM_F_REQ_LOCAL_LID, 0xDEAD, 0},
		{CM_F_REQ_REMOTE_LID, 0xBEEF, 0}};
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	to_req(p);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned before = p->b->sent;

		memcpy(mad, p->req, MAD_LEN);
		cm_put(mad, CM_F_REQ_LOCAL_ID, 0x777 + i);
		cm_put(mad, CM_F_REQ_QPN, 0x99 + i);
		cm_put(mad, rows[i].f, rows[i].v);
		end_give(p->b, mad);
		if (!rows[i].want) {
			end_take(p->b, CM_EV_REQ);
			continue;
		}
		assert_int_equal(p->b->sent, before + 1);
		assert_int_equal(mad_attr(p->b->last), CM_REJ);
		assert_int_equal(cm_get(p->b->last, CM_F_REJ_REASON), rows[i].want);
		assert_null(end_peek(p->b));
	}
	memcpy(mad, p->req, MAD_LEN);
	cm_put(mad, CM_F_REQ_LOCAL_ID, 0x888);
	mad[MAD_DATA + 140] = 0x10; /* major version 1 */
	end_give(p->b, mad);
	assert_int_equal(cm_get(p->b->last, CM_F_REJ_REASON), CM_REJ_CONSUMER);
	mad[MAD_DATA + 140] = 0;
	mad[MAD_DATA + 140 + 35]++; /* for another address */
	end_give(p->b, mad);
	assert_int_equal(cm_get(p->b->last, CM_F_REJ_REASON), CM_REJ_CONSUMER);
	assert_int_equal(cm_used(p->b->cm), 3);
}

/* proves CM-12: the listener's backlog */
static void backlog(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	to_req(p);
	memcpy(mad, p->req, MAD_LEN);
	for (unsigned i = 1; i < 9; i++) {
		cm_put(mad, CM_F_REQ_LOCAL_ID, i);
		cm_put(mad, CM_F_REQ_QPN, 0x100 + i);
		end_give(p->b, mad);
	}
	assert_int_equal(cm_half_open(p->b->cm), 8);
	assert_int_equal(cm_get(p->b->last, CM_F_REJ_REASON), CM_REJ_NO_RESOURCES);
	cm_reject(p->b->cm, p->passive, CM_REJ_CONSUMER, NULL, 0, p->net->now);
	assert_int_equal(cm_half_open(p->b->cm), 7);
	end_give(p->b, mad);
	assert_int_equal(cm_half_open(p->b->cm), 8);
	assert_int_equal(cm_unlisten(p->b->cm, p->listener, p->net->now), 0);
	assert_int_equal(cm_half_open(p->b->cm), 0);
	assert_int_equal(cm_unlisten(p->b->cm, p->listener, p->net->now), -ENOENT);
}

/* proves CM-13: the last answer, whatever it was, and one connection */
static void duplicate_req(void **state)
{
	struct pair *p = *state;
	struct cm_param param = end_param(p->b, 0x11, NULL);

	to_req(p);
	assert_int_equal(p->b->sent, 0);
	for (unsigned i = 1; i <= 2; i++) { /* the program needs longer, as Linux says it */
		end_give(p->b, p->req);
		assert_int_equal(p->b->sent, i);
		assert_int_equal(mad_attr(p->b->last), CM_MRA);
		assert_int_equal(cm_get(p->b->last, CM_F_MRA_NAMED), CM_NAMED_REQ);
		assert_int_equal(cm_get(p->b->last, CM_F_MRA_TIMEOUT), 24);
	}
	cm_accept(p->b->cm, p->passive, &param, 8, p->net->now);
	end_give(p->b, p->req);
	assert_int_equal(p->b->sent, 4);
	assert_int_equal(mad_attr(p->b->last), CM_REP);
	assert_int_equal(cm_used(p->b->cm), 1);
	assert_null(end_peek(p->b));
}

/* proves CM-18: programs that take a minute to answer cost one repetition each, not one every four
 * seconds: ten thousand that wait for a busy program would make it busier */
static void programs_take_long(void **state)
{
	struct pair *p = *state;
	struct cm_param param = end_param(p->b, 0x11, NULL);

	to_req(p);
	ends_run(p->net, p->net->now + 60000 * MS);
	assert_int_equal(cm_counters(p->a->cm)->repeated[CM_REQ - CM_REQ], 1);
	cm_accept(p->b->cm, p->passive, &param, 8, p->net->now);
	soon(p);
	end_take(p->a, CM_EV_REP);
	ends_run(p->net, p->net->now + 60000 * MS);
	assert_int_equal(cm_counters(p->b->cm)->repeated[CM_REP - CM_REQ], 1);
	assert_int_equal(cm_get(p->a->last, CM_F_MRA_NAMED), CM_NAMED_REP);
	assert_int_equal(cm_rtu(p->a->cm, p->id, NULL, 0, p->net->now), 0);
	soon(p);
	end_take(p->b, CM_EV_ESTABLISHED);
	assert_null(end_peek(p->a));
}

/* proves CM-13, CM-26: a REJ is repeated, with its private data */
static void duplicate_req_rejected(void **state)
{
	struct pair *p = *state;
	const struct end_event *e;

	to_req(p);
	assert_int_equal(cm_reject(p->b->cm, p->passive, CM_REJ_CONSUMER, "no", 2, p->net->now), 0);
	end_give(p->b, p->req);
	assert_int_equal(p->b->sent, 2);
	soon(p);
	e = end_take(p->a, CM_EV_REJECTED);
	assert_int_equal(e->reason, CM_REJ_CONSUMER);
	assert_int_equal(e->private_len, 148);
	assert_memory_equal(e->private_data, "no", 3);
	assert_null(end_peek(p->a));
	cm_destroy(p->a->cm, p->id, p->net->now);
	cm_destroy(p->b->cm, p->passive, p->net->now);
	drained(p);
}

/* Fields of a message once more, by another connection of the peer's. */
static void other_req(const struct pair *p, uint8_t mad[MAD_LEN], uint32_t id, uint32_t qpn)
{
	memcpy(mad, p->req, MAD_LEN);
	cm_put(mad, CM_F_REQ_LOCAL_ID, id);
	cm_put(mad, CM_F_REQ_QPN, qpn);
}

static bool lose_dreq(struct ends *net, unsigned to, uint8_t *mad)
{
	(void)net;
	(void)to;
	return mad_attr(mad) == CM_DREQ;
}

/* proves CM-14: the new connection is refused, and the peer hears that the old one ends (IBA
 * 12.9.8.3.1), again and again if it must */
static void stale_connection(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	to_established(p);
	other_req(p, mad, 0x4242, 0x21);
	p->net->filter = lose_dreq;
	end_give(p->b, mad);
	assert_int_equal(cm_counters(p->b->cm)->refused[CM_REJ_STALE_CONN], 1);
	is(p->b, p->passive, CM_DREQ_SENT);
	assert_int_equal(cm_get(p->b->last, CM_F_DREQ_REMOTE_ID), p->id);
	assert_int_equal(cm_get(p->b->last, CM_F_DREQ_QPN), 0x21);
	p->net->filter = NULL;
	ends_run(p->net, p->net->now + 5000 * MS);
	end_take(p->a, CM_EV_DISCONNECTED);
	cm_disconnect(p->a->cm, p->id, NULL, 0, p->net->now);
	soon(p);
	end_take(p->b, CM_EV_DISCONNECTED);
	is(p->b, p->passive, CM_TIMEWAIT);
	assert_null(end_peek(p->b));
}

/* proves CM-14: a REP with a QPN that is connected is refused as such a REQ is */
static void stale_connection_in_a_rep(void **state)
{
	struct pair *p = *state;
	struct cm_param param;
	uint8_t hdr[CMA_HDR_LEN];
	uint32_t old, second;

	to_established(p);
	old = p->id;
	param = end_param(p->a, 0x22, hdr);
	cm_connect(p->a->cm, &p->a->to, SERVICE, &param, 9, &second, p->net->now);
	p->net->n = 0;
	cm_put(p->rep, CM_F_REP_LOCAL_ID, 0x4242);
	cm_put(p->rep, CM_F_REP_REMOTE_ID, second);
	end_give(p->a, p->rep);
	assert_int_equal(cm_counters(p->a->cm)->refused[CM_REJ_STALE_CONN], 1);
	is(p->a, second, CM_REQ_SENT);
	is(p->a, old, CM_DREQ_SENT);
	assert_int_equal(cm_get(p->a->last, CM_F_DREQ_QPN), 0x11);
	assert_null(end_peek(p->a));
	soon(p);
	end_take(p->b, CM_EV_DISCONNECTED);
	cm_disconnect(p->b->cm, p->passive, NULL, 0, p->net->now);
	soon(p);
	end_take(p->a, CM_EV_DISCONNECTED);
	/* Nothing is in the way any more. */
	end_give(p->a, p->rep);
	assert_int_equal(end_take(p->a, CM_EV_REP)->id, second);
}

/* proves CM-13: the ID of a REQ whose answer is kept may be that of another one by now */
static void id_used_again(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];
	uint32_t second;

	to_established(p);
	cm_disconnect(p->a->cm, p->id, NULL, 0, p->net->now);
	soon(p);
	end_take(p->b, CM_EV_DISCONNECTED);
	cm_disconnect(p->b->cm, p->passive, NULL, 0, p->net->now);
	soon(p);
	is(p->b, p->passive, CM_TIMEWAIT);
	end_give(p->b, p->req);
	assert_int_equal(cm_counters(p->b->cm)->refused[CM_REJ_STALE_CONN], 1);
	other_req(p, mad, p->id, 0x22);
	end_give(p->b, mad);
	second = end_take(p->b, CM_EV_REQ)->id;
	assert_int_equal(cm_reject(p->b->cm, second, CM_REJ_CONSUMER, NULL, 0, p->net->now), 0);
	end_give(p->b, mad);
	assert_int_equal(cm_counters(p->b->cm)->refused[CM_REJ_CONSUMER], 2);
	cm_put(mad, CM_F_REQ_PSN, 77);
	end_give(p->b, mad);
	end_take(p->b, CM_EV_REQ);
	assert_null(end_peek(p->b));
}

/* proves CM-31: the IDs of SIDR_REQs and of REQs are no one's duplicates but their own, whatever
 * GUID the peer says it has */
static void ids_of_both_kinds(void **state)
{
	struct pair *p = *state;
	uint8_t hdr[CMA_HDR_LEN], mad[MAD_LEN];
	uint32_t id, listener;

	cm_listen(p->b->cm, SIDR, NULL, 8, 1, &listener);
	cm_sidr(p->a->cm, &p->a->to, SIDR, hdr, end_cma(p->a, hdr), 5, &id, p->net->now);
	soon(p);
	end_take(p->b, CM_EV_SIDR_REQ);
	to_req(p);
	other_req(p, mad, id, 0x22);
	cm_put(mad, CM_F_REQ_GUID, 0);
	end_give(p->b, mad);
	end_take(p->b, CM_EV_REQ);
	assert_int_equal(cm_counters(p->b->cm)->duplicates[CM_REQ - CM_REQ], 0);
}

/* A REP of XRC has the QPN of its target where that of an EE context was, as Linux has it; what is
 * the responder's affair alone is 0 in both messages. */
static void extended(void **state)
{
	struct pair *p = *state;
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param param = end_param(p->a, 0x21, hdr), accept = end_param(p->b, 0x11, NULL);
	struct cm_qp_attr a;

	param.transport = CM_TRANSPORT_EXTENDED;
	cm_connect(p->a->cm, &p->a->to, SERVICE, &param, 7, &p->id, p->net->now);
	assert_int_equal(cm_get(p->a->last, CM_F_REQ_EXTENDED), 1);
	assert_int_equal(cm_get(p->a->last, CM_F_REQ_QPN), 0x21);
	assert_int_equal(cm_get(p->a->last, CM_F_REQ_INIT_DEPTH), 8);
	assert_int_equal(cm_get(p->a->last, CM_F_REQ_RESP_RES), 0);
	assert_int_equal(cm_get(p->a->last, CM_F_REQ_RETRY), 0);
	assert_int_equal(cm_get(p->a->last, CM_F_REQ_RNR_RETRY), 0);
	soon(p);
	p->passive = end_take(p->b, CM_EV_REQ)->id;
	assert_int_equal(cm_accept(p->b->cm, p->passive, &accept, 8, p->net->now), 0);
	assert_int_equal(cm_get(p->b->last, CM_F_REP_EECN), 0x11);
	assert_int_equal(cm_get(p->b->last, CM_F_REP_QPN), 0);
	assert_int_equal(cm_get(p->b->last, CM_F_REP_SRQ), 1);
	assert_int_equal(cm_get(p->b->last, CM_F_REP_INIT_DEPTH), 0);
	soon(p);
	end_take(p->a, CM_EV_REP);
	assert_int_equal(cm_qp_attr(p->a->cm, p->id, &a), 0);
	assert_int_equal(a.dest_qpn, 0x11);
	assert_int_equal(a.max_rd_atomic, 4);
}

static bool lose_rep_and_rtu(struct ends *net, unsigned to, uint8_t *mad)
{
	(void)net;
	(void)to;
	return mad_attr(mad) == CM_REP || mad_attr(mad) == CM_RTU;
}

static bool lose_all(struct ends *net, unsigned to, uint8_t *mad)
{
	(void)net;
	(void)to;
	(void)mad;
	return true;
}

/* proves CM-15: REP 1 + 15 times, then REJ 4 and an event */
static void rep_repeated(void **state)
{
	struct pair *p = *state;
	struct cm_param param = end_param(p->b, 0x11, NULL);

	to_req(p);
	p->net->filter = lose_all;
	cm_accept(p->b->cm, p->passive, &param, 8, p->net->now);
	ends_run(p->net, p->net->now + 15 * 4096 * MS + 100 * MS);
	assert_int_equal(p->b->sent, 16);
	assert_int_equal(mad_attr(p->b->last), CM_REP);
	ends_run(p->net, p->net->now + 4096 * MS);
	assert_int_equal(mad_attr(p->b->last), CM_REJ);
	assert_int_equal(cm_get(p->b->last, CM_F_REJ_REASON), CM_REJ_TIMEOUT);
	assert_int_equal(end_take(p->b, CM_EV_UNREACHABLE)->reason, CM_REP);
	assert_int_equal(cm_counters(p->b->cm)->repeated[CM_REP - CM_REQ], 15);
}

/* proves CM-16, CM-15: data, or a REP again, instead of the RTU */
static void rtu_lost(void **state)
{
	struct pair *p = *state;

	to_rep(p);
	p->net->filter = lose_rep_and_rtu;
	cm_rtu(p->a->cm, p->id, NULL, 0, p->net->now);
	soon(p);
	is(p->b, p->passive, CM_REP_SENT);
	p->net->filter = NULL;
	end_give(p->a, p->rep);
	assert_int_equal(mad_attr(p->a->last), CM_RTU);
	assert_int_equal(cm_established(p->b->cm, p->passive, p->net->now), 0);
	assert_int_equal(cm_established(p->b->cm, p->passive, p->net->now), -EISCONN);
	end_take(p->b, CM_EV_ESTABLISHED);
	soon(p);
	assert_null(end_peek(p->b));
	is(p->b, p->passive, CM_ESTABLISHED);
}

/* proves CM-17: 2 * 256 ms + 4096 ms each, 16 times, then REJ 4, which has no remote id */
static void req_unanswered(void **state)
{
	struct pair *p = *state;
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param param = end_param(p->a, 0x21, hdr);

	p->net->filter = lose_all;
	cm_connect(p->a->cm, &p->a->to, SERVICE, &param, 7, &p->id, p->net->now);
	ends_run(p->net, p->net->now + 16 * 4608 * MS - 50 * MS);
	assert_int_equal(p->a->sent, 16);
	assert_null(end_peek(p->a));
	ends_run(p->net, p->net->now + 100 * MS);
	assert_int_equal(end_take(p->a, CM_EV_UNREACHABLE)->reason, CM_REQ);
	assert_int_equal(cm_get(p->a->last, CM_F_REJ_REASON), CM_REJ_TIMEOUT);
	assert_int_equal(cm_get(p->a->last, CM_F_REJ_REMOTE_ID), 0);
	is(p->a, p->id, CM_IDLE);
}

/* proves CM-17, CM-26: the passive side finds the connection by the GUID */
static void req_given_up(void **state)
{
	struct pair *p = *state;

	to_req(p);
	cm_destroy(p->a->cm, p->id, p->net->now);
	soon(p);
	assert_int_equal(end_take(p->b, CM_EV_REJECTED)->reason, CM_REJ_TIMEOUT);
	cm_destroy(p->b->cm, p->passive, p->net->now);
	drained(p);
}

/* proves CM-18: no REQ is repeated until the time of the MRA has passed */
static void mra(void **state)
{
	struct pair *p = *state;

	to_req(p);
	end_give(p->b, p->req);
	assert_int_equal(cm_get(p->b->last, CM_F_MRA_NAMED), CM_NAMED_REQ);
	assert_int_equal(cm_get(p->b->last, CM_F_MRA_TIMEOUT), 24);
	soon(p);
	is(p->a, p->id, CM_MRA_REQ_RCVD);
	ends_run(p->net, p->net->now + 65536 * MS);
	assert_int_equal(p->a->sent, 1);
	ends_run(p->net, p->net->now + 4700 * MS);
	assert_int_equal(p->a->sent, 2);
	is(p->a, p->id, CM_MRA_REQ_RCVD); /* the MRA again */
}

/* proves CM-19, CM-20: DREP always; a DREQ for another QPN moves nothing */
static void dreq_of_strangers(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	to_established(p);
	mad_begin(mad, CM_DREQ, 0xABCD);
	cm_put(mad, CM_F_DREQ_LOCAL_ID, 0x1111);
	cm_put(mad, CM_F_DREQ_REMOTE_ID, 0x2222);
	cm_put(mad, CM_F_DREQ_QPN, 0x11);
	end_give(p->b, mad);
	assert_int_equal(mad_attr(p->b->last), CM_DREP);
	assert_int_equal(mad_tid(p->b->last), 0xABCD);
	assert_int_equal(cm_get(p->b->last, CM_F_DREP_LOCAL_ID), 0x2222);
	assert_int_equal(cm_get(p->b->last, CM_F_DREP_REMOTE_ID), 0x1111);
	cm_put(mad, CM_F_DREQ_LOCAL_ID, p->id);
	cm_put(mad, CM_F_DREQ_REMOTE_ID, p->passive);
	cm_put(mad, CM_F_DREQ_QPN, 0x12);
	end_give(p->b, mad);
	is(p->b, p->passive, CM_ESTABLISHED);
	assert_null(end_peek(p->b));
}

/* proves CM-19: the DREQ is repeated, and ends without an answer too */
static void dreq_unanswered(void **state)
{
	struct pair *p = *state;

	to_established(p);
	p->net->filter = lose_all;
	cm_destroy(p->a->cm, p->id, p->net->now);
	assert_int_equal(cm_state_of(p->a->cm, p->id), -ENOENT);
	ends_run(p->net, p->net->now + 200000 * MS);
	assert_int_equal(cm_counters(p->a->cm)->tx[CM_DREQ - CM_REQ], 16);
	assert_int_equal(cm_used(p->a->cm), 0);
	assert_null(end_peek(p->a));
}

/* proves CM-32 */
static void lap(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	to_established(p);
	mad_begin(mad, CM_LAP, 0x77);
	cm_put(mad, CM_F_LAP_LOCAL_ID, p->id);
	cm_put(mad, CM_F_LAP_REMOTE_ID, p->passive);
	cm_put(mad, CM_F_LAP_QPN, 0x11);
	end_give(p->b, mad);
	assert_int_equal(mad_attr(p->b->last), CM_APR);
	assert_int_equal(cm_get(p->b->last, CM_F_APR_STATUS), 2);
	assert_int_equal(mad_tid(p->b->last), 0x77);
	is(p->b, p->passive, CM_ESTABLISHED);
}

/* proves CM-31 */
static void sidr(void **state)
{
	struct pair *p = *state;
	uint8_t hdr[CMA_HDR_LEN];
	uint32_t id, listener;
	const struct end_event *e;

	cm_sidr(p->a->cm, &p->a->to, SIDR, hdr, end_cma(p->a, hdr), 5, &id, p->net->now);
	soon(p);
	assert_int_equal(end_take(p->a, CM_EV_SIDR_REP)->reason, CM_SIDR_UNSUPPORTED);
	cm_destroy(p->a->cm, id, p->net->now);
	cm_listen(p->b->cm, SIDR, NULL, 8, 1, &listener);
	cm_sidr(p->a->cm, &p->a->to, SIDR, hdr, end_cma(p->a, hdr), 5, &id, p->net->now);
	memcpy(p->req, p->a->last, MAD_LEN);
	soon(p);
	e = end_take(p->b, CM_EV_SIDR_REQ);
	end_give(p->b, p->req);
	assert_null(end_peek(p->b));
	cm_sidr_answer(p->b->cm, e->id, CM_SIDR_SUCCESS, 0x13, 0x01234567, NULL, 0, p->net->now);
	assert_int_equal(cm_get(p->b->last, CM_F_SIDR_REP_QPN), 0x13);
	assert_int_equal(cm_get(p->b->last, CM_F_SIDR_REP_QKEY), 0x01234567);
	assert_int_equal(cm_get(p->b->last, CM_F_SIDR_REP_SERVICE_ID), SIDR);
	end_give(p->b, p->req);
	assert_int_equal(cm_counters(p->b->cm)->tx[CM_SIDR_REP - CM_REQ], 3);
	soon(p);
	assert_int_equal(end_take(p->a, CM_EV_SIDR_REP)->reason, CM_SIDR_SUCCESS);
	assert_null(end_peek(p->a));
	cm_destroy(p->a->cm, id, p->net->now);
	cm_destroy(p->b->cm, e->id, p->net->now);
	drained(p);
}

/* proves CM-11: a REP that names no REQ */
static void rep_of_strangers(void **state)
{
	struct pair *p = *state;

	to_rep(p);
	cm_put(p->rep, CM_F_REP_REMOTE_ID, 0x5555);
	end_give(p->a, p->rep);
	assert_int_equal(cm_get(p->a->last, CM_F_REJ_REASON), CM_REJ_INVALID_COMM_ID);
	is(p->a, p->id, CM_REP_RCVD);
}

/* A REP to the side that sent one is no duplicate, and brings none back. */
static void rep_to_the_passive_side(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];
	unsigned sent;

	to_established(p);
	memcpy(mad, p->rep, MAD_LEN);
	cm_put(mad, CM_F_REP_LOCAL_ID, p->id);
	cm_put(mad, CM_F_REP_REMOTE_ID, p->passive);
	sent = p->b->sent;
	end_give(p->b, mad);
	assert_int_equal(p->b->sent, sent);
	assert_int_equal(cm_counters(p->b->cm)->ignored[CM_REP - CM_REQ], 1);
	is(p->b, p->passive, CM_ESTABLISHED);
}

/* proves CM-33: both connect, nobody listens for the other: REJ 8 both ways */
static void peer_to_peer(void **state)
{
	struct pair *p = *state;
	struct end *ends[] = {p->a, p->b};
	uint32_t id;

	for (unsigned i = 0; i < 2; i++) {
		uint8_t hdr[CMA_HDR_LEN];
		struct cm_param param = end_param(ends[i], 0x30, hdr);

		cm_connect(ends[i]->cm, &ends[i]->to, SERVICE + 9, &param, 0, &id, p->net->now);
	}
	soon(p);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			end_take(ends[i], CM_EV_REJECTED)->reason, CM_REJ_INVALID_SERVICE_ID);
}

/* Listeners of one service ID: the one address before all; each only once. */
static void listeners(void **state)
{
	struct pair *p = *state;
	const uint8_t any4[16] = {[10] = 0xFF, 0xFF}, any6[16] = {0};
	uint8_t other[16] = {1};
	uint32_t any, here, there;

	assert_int_equal(cm_listen(p->b->cm, SERVICE, NULL, 1, 0, &any), -EADDRINUSE);
	assert_int_equal(cm_listen(p->b->cm, SERVICE, other, 8, 2, &there), 0);
	assert_int_equal(cm_listen(p->b->cm, SERVICE, p->b->to.local, 8, 3, &here), 0);
	assert_int_equal(cm_listen(p->b->cm, SERVICE, p->b->to.local, 8, 3, &any), -EADDRINUSE);
	to_req(p);
	assert_int_equal(p->b->event[0].cookie, 3);
	cm_unlisten(p->b->cm, here, p->net->now);
	to_req(p);
	assert_int_equal(p->b->event[1].cookie, LISTENER);
	/* those of one family before that of both */
	assert_int_equal(cm_listen(p->b->cm, SERVICE, any6, 8, 6, &here), 0);
	cm_reject(p->b->cm, p->passive, CM_REJ_CONSUMER, NULL, 0, p->net->now);
	to_req(p);
	assert_int_equal(p->b->event[2].cookie, LISTENER);
	cm_reject(p->b->cm, p->passive, CM_REJ_CONSUMER, NULL, 0, p->net->now);
	assert_int_equal(cm_listen(p->b->cm, SERVICE, any4, 8, 4, &there), 0);
	to_req(p);
	assert_int_equal(p->b->event[3].cookie, 4);
	assert_int_equal(cm_listen(p->b->cm, 7, NULL, 8, 2, &there), -ENOMEM);
}

/* SEC-03: the answers to strangers per second are limited; half of what may come at once is for
 * others */
static void strangers_limited(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	mad_begin(mad, CM_DREQ, 1);
	for (unsigned i = 0; i < 5000; i++)
		end_give(p->b, mad);
	assert_int_equal(p->b->sent, 500);
	p->net->now += 500 * MS;
	for (unsigned i = 0; i < 5000; i++)
		end_give(p->b, mad);
	assert_in_range(p->b->sent, 1000, 1001);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* --- what was sent, once more -------------------------------------------------------------- */

#define SENT_MAX 8u

struct sent {
	struct pair *p;
	unsigned n;
	struct end *to[SENT_MAX];
	uint8_t mad[SENT_MAX][MAD_LEN];
};

static void note_sent(struct sent *s, struct end *from)
{
	s->to[s->n] = from == s->p->a ? s->p->b : s->p->a;
	memcpy(s->mad[s->n++], from->last, MAD_LEN);
}

/* Every message so far arrives twice more: nothing moves, and nobody hears of it. */
static void all_twice(struct sent *s, int a_state, int b_state)
{
	struct pair *p = s->p;
	unsigned a_events = p->a->events, b_events = p->b->events;
	uint32_t used = cm_used(p->a->cm) + cm_used(p->b->cm);

	for (unsigned i = 0; i < 2 * s->n; i++) {
		struct end *to = s->to[i % s->n];

		cm_mad(to->cm, &to->to, s->mad[i % s->n], MAD_LEN, p->net->now);
		soon(p);
		is(p->a, p->id, a_state);
		is(p->b, p->passive, b_state);
	}
	assert_int_equal(p->a->events, a_events);
	assert_int_equal(p->b->events, b_events);
	assert_int_equal(cm_used(p->a->cm) + cm_used(p->b->cm), used);
}

/* proves CM-34, CM-13 */
static void each_twice_in_each_state(void **state)
{
	struct pair *p = *state;
	struct cm_param param = end_param(p->b, 0x11, NULL);
	struct sent s = {.p = p};

	to_req(p);
	note_sent(&s, p->a);
	end_give(p->b, p->req);
	soon(p);
	all_twice(&s, CM_MRA_REQ_RCVD, CM_MRA_REQ_SENT);
	assert_int_equal(cm_accept(p->b->cm, p->passive, &param, 8, p->net->now), 0);
	note_sent(&s, p->b);
	soon(p);
	end_take(p->a, CM_EV_REP);
	end_give(p->a, s.mad[1]);
	soon(p);
	all_twice(&s, CM_MRA_REP_SENT, CM_MRA_REP_RCVD);
	assert_int_equal(cm_rtu(p->a->cm, p->id, NULL, 0, p->net->now), 0);
	note_sent(&s, p->a);
	soon(p);
	end_take(p->b, CM_EV_ESTABLISHED);
	all_twice(&s, CM_ESTABLISHED, CM_ESTABLISHED);
	cm_disconnect(p->a->cm, p->id, NULL, 0, p->net->now);
	note_sent(&s, p->a);
	soon(p);
	end_take(p->b, CM_EV_DISCONNECTED);
	all_twice(&s, CM_DREQ_SENT, CM_DREQ_RCVD);
	cm_disconnect(p->b->cm, p->passive, NULL, 0, p->net->now);
	note_sent(&s, p->b);
	soon(p);
	end_take(p->a, CM_EV_DISCONNECTED);
	all_twice(&s, CM_TIMEWAIT, CM_TIMEWAIT);
	cm_destroy(p->a->cm, p->id, p->net->now);
	cm_destroy(p->b->cm, p->passive, p->net->now);
	drained(p);
}

/* proves CM-21: twice the packet life and the peer's delay, and not twice that */
static void timewait(void **state)
{
	struct pair *p = *state;
	uint64_t end;

	to_established(p);
	cm_disconnect(p->a->cm, p->id, NULL, 0, p->net->now);
	soon(p);
	end_take(p->b, CM_EV_DISCONNECTED);
	cm_disconnect(p->b->cm, p->passive, NULL, 0, p->net->now);
	end = p->net->now + (2ull << (16 - 8)) * MS;
	soon(p);
	end_take(p->a, CM_EV_DISCONNECTED);
	ends_run(p->net, end - MS);
	is(p->a, p->id, CM_TIMEWAIT);
	is(p->b, p->passive, CM_TIMEWAIT);
	ends_run(p->net, end + 400 * MS);
	end_take(p->a, CM_EV_TIMEWAIT_EXIT);
	end_take(p->b, CM_EV_TIMEWAIT_EXIT);
	cm_destroy(p->a->cm, p->id, p->net->now);
	cm_destroy(p->b->cm, p->passive, p->net->now);
	drained(p);
}

/* A message of any kind with random contents, but with ids that fit now and then. */
static void random_message(struct pair *p, uint8_t mad[MAD_LEN])
{
	mad_begin(mad, (enum cm_attr)(CM_REQ + random_below(&p->net->random, CM_ATTRS)), 1);
	for (unsigned i = MAD_DATA; i < MAD_LEN; i++)
		mad[i] = (uint8_t)random_below(&p->net->random, 256);
	if (random_below(&p->net->random, 2))
		memcpy(mad + MAD_DATA, p->req + MAD_DATA, 4);
	if (random_below(&p->net->random, 2))
		memcpy(mad + MAD_DATA + 4, p->rep + MAD_DATA, 4);
}

/* proves CM-08: whatever a peer says */
static void never_sent(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];
	unsigned answers = 0;

	to_established(p);
	for (unsigned i = 0; i < 100000; i++) {
		unsigned sent = p->b->sent;

		random_message(p, mad);
		p->net->now += 2 * MS; /* strangers' answers are limited */
		cm_mad(p->b->cm, &p->b->to, mad, MAD_LEN, p->net->now);
		p->net->n = 0;
		if (p->b->sent == sent)
			continue;
		answers++;
		if (mad_attr(p->b->last) == CM_REJ) {
			assert_int_not_equal(cm_get(p->b->last, CM_F_REJ_REASON), 13);
			assert_int_not_equal(cm_get(p->b->last, CM_F_REJ_REASON), 19);
		} else if (mad_attr(p->b->last) == CM_APR) {
			assert_int_not_equal(cm_get(p->b->last, CM_F_APR_STATUS), 7);
		}
	}
	assert_true(answers > 1000);
}

/* --- room ----------------------------------------------------------------------------- */

/* A connection that its user gave up, and whose peer is silent. */
static void given_up(struct pair *p, uint32_t qpn)
{
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param param = end_param(p->a, qpn, hdr), accept = end_param(p->b, qpn, NULL);
	uint32_t id, passive;

	assert_int_equal(cm_connect(p->a->cm, &p->a->to, SERVICE, &param, 7, &id, p->net->now), 0);
	soon(p);
	passive = end_take(p->b, CM_EV_REQ)->id;
	assert_int_equal(cm_accept(p->b->cm, passive, &accept, 8, p->net->now), 0);
	soon(p);
	end_take(p->a, CM_EV_REP);
	assert_int_equal(cm_rtu(p->a->cm, id, NULL, 0, p->net->now), 0);
	soon(p);
	end_take(p->b, CM_EV_ESTABLISHED);
	assert_int_equal(cm_destroy(p->a->cm, id, p->net->now), 0);
	p->net->n = 0; /* the DREQ is lost */
}

/* Connections that programs left take no room of others, and those in use give way to nobody. */
static void those_without_a_user_give_way(void **state)
{
	struct pair *p = *state;
	uint32_t id[16 + 1];
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param param = end_param(p->a, 0x99, hdr);

	for (unsigned i = 0; i < 16; i++)
		given_up(p, 0x100 + i);
	assert_int_equal(cm_used(p->a->cm), 16);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(
			cm_connect(p->a->cm, &p->a->to, SERVICE, &param, 7, &id[i], p->net->now),
			0);
	assert_int_equal(
		cm_connect(p->a->cm, &p->a->to, SERVICE, &param, 7, &id[16], p->net->now), -ENOMEM);
	for (unsigned i = 0; i < 16; i++)
		is(p->a, id[i], CM_REQ_SENT);
}

#define MANY 8192u

static void drop_mad(void *arg, const struct cm_path *to, const uint8_t *mad)
{
	(void)arg;
	(void)to;
	(void)mad;
}

static enum cm_rej drop_event(void *arg, const struct cm_event *e)
{
	(void)arg;
	(void)e;
	return 0;
}

/* Connections that do not exist cost no memory, and those that follow each other that of one. */
static void memory_is_used_as_needed(void **state)
{
	const struct cm_ops ops = {drop_mad, drop_event};
	const size_t size = cm_size(MANY, 4), page = (size_t)sysconf(_SC_PAGESIZE);
	struct cm_conf conf = cm_defaults();
	uint8_t hdr[CMA_HDR_LEN], *in = calloc(1, size / page + 1);
	struct pair *p = *state;
	struct cm_param param = end_param(p->a, 0x21, hdr);
	size_t resident = 0;
	struct cm *cm;
	uint32_t id;
	void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(room != MAP_FAILED && in);
	conf.id_key.byte[0] = 77;
	cm = cm_init(room, MANY, 4, &conf, &ops, NULL, 0);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(cm_connect(cm, &p->a->to, SERVICE, &param, 7, &id, 0), 0);
		assert_int_equal(cm_destroy(cm, id, 0), 0);
	}
	assert_int_equal(mincore(room, size, in), 0);
	for (size_t i = 0; i < (size + page - 1) / page; i++)
		resident += in[i] & 1;
	assert_true(resident * page < size / 16);
	munmap(room, size);
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {T(whole_life), T(attributes), T(rep_asks_for_more),
		T(label_formulas), T(label_of_a_request), T(refusals), T(backlog), T(duplicate_req),
		T(programs_take_long), T(duplicate_req_rejected), T(stale_connection),
		T(stale_connection_in_a_rep), T(id_used_again), T(ids_of_both_kinds), T(extended),
		T(rep_repeated), T(rtu_lost), T(req_unanswered), T(req_given_up), T(mra),
		T(dreq_of_strangers), T(dreq_unanswered), T(lap), T(sidr), T(rep_of_strangers),
		T(rep_to_the_passive_side), T(peer_to_peer), T(listeners), T(strangers_limited),
		T(each_twice_in_each_state), T(timewait), T(never_sent),
		T(those_without_a_user_give_way), T(memory_is_used_as_needed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
