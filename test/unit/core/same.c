/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "same.h"
#include "wqe.h"

/* The last WQEs, most of them complete, which stay in the private ring; without frames none needs
 * to be there. */
static void same_wqes(const struct qp *a, const struct qp *b)
{
	uint32_t n = a->req.fetched < 8 ? a->req.fetched : 8;

	for (uint32_t i = a->req.fetched - n; !a->path.local && i != a->req.fetched; i++) {
		assert_int_equal(qp_wqe(a, i)->ssn, qp_wqe(b, i)->ssn);
		assert_int_equal(qp_wqe(a, i)->first_psn, qp_wqe(b, i)->first_psn);
	}
}

void same_qp(const struct qp *a, const struct qp *b)
{
	struct qp_req ra = a->req, rb = b->req;

	/* the former cursor of a message that is over: nobody looks there */
	ra.sge = rb.sge = ra.sge_off = rb.sge_off = ra.sge_psn = rb.sge_psn = 0;
	ra.sge_wqe = rb.sge_wqe = 0;
	assert_memory_equal(&ra, &rb, sizeof(ra));
	assert_memory_equal(&a->comp, &b->comp, sizeof(a->comp));
	assert_memory_equal(&a->win, &b->win, sizeof(a->win));
	assert_memory_equal(&a->resp, &b->resp, offsetof(struct qp_resp, res));
	same_wqes(a, b);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->comm_est, b->comm_est);
	assert_int_equal(a->sq.next, b->sq.next);
	assert_int_equal(a->rq.next, b->rq.next);
	assert_int_equal(a->sq.shared->consumer, b->sq.shared->consumer);
	assert_int_equal(a->sq.shared->need_doorbell, b->sq.shared->need_doorbell);
}

void same_lone(struct lone *a, struct lone *b)
{
	char sent[sizeof(a->log)];

	assert_int_equal(list_empty(&a->qp->qp->recv_lane->touched),
		list_empty(&b->qp->qp->recv_lane->touched));
	assert_int_equal(list_empty(&a->qp->qp->send_lane->touched),
		list_empty(&b->qp->qp->send_lane->touched));
	strcpy(sent, lone_tx(a));
	assert_string_equal(sent, lone_tx(b));
	strcpy(sent, lone_cqes(a));
	assert_string_equal(sent, lone_cqes(b));
	assert_memory_equal(&a->last, &b->last, sizeof(a->last));
	assert_memory_equal(a->mr->mem, b->mr->mem, LONE_MEM);
	assert_memory_equal(
		&a->host->core.count, &b->host->core.count, sizeof(a->host->core.count));
	assert_int_equal(a->qp->qp->queue, b->qp->qp->queue);
	assert_int_equal(a->qp->qp->queue_run, b->qp->qp->queue_run);
	same_qp(a->qp->qp, b->qp->qp);
}

/* --- packets that belong to no run ---------------------------------------------------- */

static void to_another_mac(struct lone *l, struct shot *s)
{
	static const uint8_t mac[6] = {2, 0, 0, 9, 9, 9};

	(void)l;
	s->dmac = mac;
}

static void from_another_host(struct lone *l, struct shot *s)
{
	(void)l;
	s->src_ip = 77;
}

static void of_another_partition(struct lone *l, struct shot *s)
{
	(void)l;
	s->pkey = 0x8123;
}

static void of_a_limited_member(struct lone *l, struct shot *s)
{
	(void)l;
	s->pkey = 0x7FFF; /* which a full member takes */
}

static void to_another_qp(struct lone *l, struct shot *s)
{
	s->dest_qp = l->qp->qp->qpn + 1;
}

static void to_a_neighbour(struct lone *l, struct shot *s)
{
	struct app_qp *first = l->qp;

	l->qp = app_qp(&l->app, &l->spec);
	lone_climb(l, ABI_QPS_RTS);
	s->dest_qp = l->qp->qp->qpn;
	l->qp = first;
}

static void longer_than_the_mtu(struct lone *l, struct shot *s)
{
	static const uint8_t bytes[4096 + 4];

	s->payload = bytes;
	s->len = l->attr.path_mtu + 4;
	s->dma_len = s->len;
}

static void broken(struct lone *l, struct shot *s)
{
	(void)l;
	s->bad_icrc = true;
}

static void by_a_queue(struct lone *l, struct shot *s)
{
	(void)l;
	s->queue = 1;
}

static void congested(struct lone *l, struct shot *s)
{
	atomic_store(&l->host->ports.port[0].rcm, rcm_word(48 << 2, 6, true));
	l->cnp_tos = 48 << 2;
	s->tos = 3;
}

const stranger strangers[STRANGERS] = {to_another_mac, from_another_host, of_another_partition,
	of_a_limited_member, to_another_qp, to_a_neighbour, broken, by_a_queue, congested,
	longer_than_the_mtu};
