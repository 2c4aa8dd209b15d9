/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "wheel.h"

int setup(void **state)
{
	static struct pair p;

	p = (struct pair){.net = ends_new(16, 4, 99, NULL)};
	p.a = &p.net->end[0];
	p.b = &p.net->end[1];
	assert_int_equal(cm_listen(p.b->cm, SERVICE, NULL, 8, LISTENER, &p.listener), 0);
	*state = &p;
	return 0;
}

int teardown(void **state)
{
	ends_free(((struct pair *)*state)->net);
	return 0;
}

void soon(struct pair *p)
{
	ends_run(p->net, p->net->now + 10 * MS);
}

void to_req(struct pair *p)
{
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param param = end_param(p->a, 0x21, hdr);

	assert_int_equal(
		cm_connect(p->a->cm, &p->a->to, SERVICE, &param, 7, &p->id, p->net->now), 0);
	memcpy(p->req, p->a->last, MAD_LEN);
	soon(p);
	p->passive = end_take(p->b, CM_EV_REQ)->id;
}

void to_rep(struct pair *p)
{
	struct cm_param param = end_param(p->b, 0x11, NULL);

	to_req(p);
	assert_int_equal(cm_accept(p->b->cm, p->passive, &param, 8, p->net->now), 0);
	memcpy(p->rep, p->b->last, MAD_LEN);
	soon(p);
	end_take(p->a, CM_EV_REP);
}

void to_established(struct pair *p)
{
	to_rep(p);
	assert_int_equal(cm_rtu(p->a->cm, p->id, "hi", 2, p->net->now), 0);
	soon(p);
	assert_memory_equal(end_take(p->b, CM_EV_ESTABLISHED)->private_data, "hi", 2);
}

void is(struct end *e, uint32_t id, int want)
{
	assert_int_equal(cm_state_of(e->cm, id), want);
}

void drained(struct pair *p)
{
	ends_run(p->net, WHEEL_NEVER);
	assert_int_equal(cm_used(p->a->cm) + cm_used(p->b->cm), 0);
	assert_int_equal(cm_half_open(p->b->cm), 0);
	assert_true(cm_deadline(p->a->cm) == WHEEL_NEVER && cm_deadline(p->b->cm) == WHEEL_NEVER);
}
