/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs at both ends that connect, accept, reject, disconnect and vanish at any moment, while
 * the network loses, doubles and reorders. In the end each command has had one outcome, and nothing
 * is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "ends.h"
#include "wheel.h"

#define CONNS 400u
#define STEPS 3000u

/* One connection as its program knows it. */
struct known {
	uint32_t id; /* 0: free */
	bool active;
	unsigned outcomes; /* of its connect */
	unsigned ended;	   /* DISCONNECTED */
};

struct storm {
	struct ends *net;
	struct known known[ENDS][CONNS];
	uint32_t qpn;
	unsigned connects, established, reqs;
};

static struct known *known_of(struct storm *s, unsigned end, uint32_t id)
{
	for (unsigned i = 0; i < CONNS; i++)
		if (s->known[end][i].id == id)
			return &s->known[end][i];
	return NULL;
}

static struct known *remember(struct storm *s, unsigned end, uint32_t id, bool active)
{
	struct known *k = known_of(s, end, 0);

	assert_non_null(k);
	assert_null(known_of(s, end, id));
	*k = (struct known){.id = id, .active = active};
	return k;
}

static void forget(struct storm *s, unsigned end, struct known *k)
{
	assert_int_equal(cm_destroy(s->net->end[end].cm, k->id, s->net->now), 0);
	k->id = 0;
}

/* Each command has one outcome, in whatever order MADs come */
static void handle(struct storm *s, unsigned end, const struct end_event *e)
{
	struct known *k = known_of(s, end, e->id);

	if (e->type == CM_EV_REQ) {
		remember(s, end, e->id, false);
		s->reqs++;
		return;
	}
	assert_non_null(k); /* a destroyed connection has no events */
	switch (e->type) {
	case CM_EV_REP:
	case CM_EV_ESTABLISHED:
		assert_int_equal(k->active, e->type == CM_EV_REP);
		s->established += e->type == CM_EV_ESTABLISHED;
		assert_int_equal(++k->outcomes, 1);
		break;
	case CM_EV_REJECTED:
	case CM_EV_UNREACHABLE:
		if (k->outcomes) { /* a REJ after the REP */
			assert_int_equal(e->type, CM_EV_REJECTED);
			assert_int_equal(++k->ended, 1);
			break;
		}
		assert_int_equal(++k->outcomes, 1);
		assert_int_equal(cm_state_of(s->net->end[end].cm, e->id),
			e->reason == CM_REJ_STALE_CONN ? CM_TIMEWAIT : CM_IDLE);
		break;
	case CM_EV_DISCONNECTED:
		assert_int_equal(++k->ended, 1);
		break;
	case CM_EV_TIMEWAIT_EXIT:
		assert_true(k->ended <= 1);
		break;
	default:
		fail_msg("event %d", e->type);
	}
}

static void connect_one(struct storm *s, unsigned end)
{
	struct end *e = &s->net->end[end];
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param p = end_param(e, 0x1000 + s->qpn++, hdr);
	uint32_t id;

	if (!known_of(s, end, 0) || cm_used(e->cm) > CONNS / 2)
		return;
	if (cm_connect(e->cm, &e->to, SERVICE, &p, 0, &id, s->net->now))
		return;
	remember(s, end, id, true);
	s->connects++;
}

/* A random command; most are refused in the state that the connection is in. */
static void act(struct storm *s, unsigned end, struct known *k)
{
	struct end *e = &s->net->end[end];
	struct cm_param p = end_param(e, 0x1000 + s->qpn++, NULL);
	uint64_t now = s->net->now;

	switch (random_below(&s->net->random, 11)) {
	case 0:
		cm_reject(e->cm, k->id, CM_REJ_CONSUMER, NULL, 0, now);
		break;
	case 1:
		forget(s, end, k);
		break;
	case 2:
	case 3:
		cm_disconnect(e->cm, k->id, NULL, 0, now);
		break;
	case 4:
		if (!k->active)
			cm_established(e->cm, k->id, now);
		break;
	case 5:
	case 6:
		cm_rtu(e->cm, k->id, NULL, 0, now);
		break;
	default:
		cm_accept(e->cm, k->id, &p, 0, now);
	}
}

static void events(struct storm *s)
{
	for (unsigned end = 0; end < ENDS; end++) {
		struct end *e = &s->net->end[end];

		while (e->taken < e->events)
			handle(s, end, &e->event[e->taken++]);
		e->taken = e->events = 0;
	}
}

static void step(struct storm *s)
{
	unsigned end = (unsigned)random_below(&s->net->random, ENDS);
	struct known *k = &s->known[end][random_below(&s->net->random, CONNS)];

	if (!random_below(&s->net->random, 4))
		connect_one(s, end);
	for (unsigned i = 0; i < CONNS && !k->id; i++)
		k = &s->known[end][(size_t)(k + 1 - s->known[end]) % CONNS];
	if (k->id && cm_state_of(s->net->end[end].cm, k->id) == CM_IDLE)
		forget(s, end, k);
	else if (k->id)
		act(s, end, k);
	events(s);
	ends_run(s->net, s->net->now + random_below(&s->net->random, 200 * MS));
	events(s);
	for (unsigned i = 0; i < ENDS; i++)
		assert_true(cm_half_open(s->net->end[i].cm) <= cm_used(s->net->end[i].cm));
}

/* Every program gives up everything; time passes. */
static void end_all(struct storm *s)
{
	for (unsigned end = 0; end < ENDS; end++)
		assert_int_equal(cm_unlisten(s->net->end[end].cm, 0, s->net->now), 0);
	for (unsigned end = 0; end < ENDS; end++)
		for (unsigned i = 0; i < CONNS; i++)
			if (s->known[end][i].id)
				forget(s, end, &s->known[end][i]);
	ends_run(s->net, WHEEL_NEVER);
	events(s);
	for (unsigned end = 0; end < ENDS; end++) {
		assert_int_equal(cm_used(s->net->end[end].cm), 0);
		assert_int_equal(cm_half_open(s->net->end[end].cm), 0);
	}
}

static void storm(uint64_t seed, unsigned loss, unsigned twice, uint64_t jitter)
{
	struct storm *s = calloc(1, sizeof(*s));
	uint32_t listener;

	assert_non_null(s);
	s->net = ends_new(CONNS, 2, seed, NULL);
	s->net->loss = loss;
	s->net->twice = twice;
	s->net->jitter = jitter;
	for (unsigned end = 0; end < ENDS; end++)
		assert_int_equal(
			cm_listen(s->net->end[end].cm, SERVICE, NULL, 32, 0, &listener), 0);
	for (unsigned i = 0; i < STEPS; i++)
		step(s);
	assert_true(s->connects > 100);
	if (jitter < 1000 * MS) { /* what comes later than answers are kept is a new REQ */
		assert_true(s->established > 20);
		assert_true(s->reqs <= s->connects); /* CM-13: never two connections of one REQ */
	}
	end_all(s);
	ends_free(s->net);
	free(s);
}

static void storm__calm(void **state)
{
	(void)state;
	storm(1, 0, 0, 0);
}

/* proves CM-13 */
static void storm__each_message_twice(void **state)
{
	(void)state;
	storm(2, 0, 100, 100 * MS);
}

static void storm__loss(void **state)
{
	(void)state;
	for (uint64_t seed = 3; seed < 9; seed++)
		storm(seed, 20, 20, 500 * MS);
}

static void storm__minutes_late(void **state)
{
	(void)state;
	storm(11, 5, 50, 60000 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storm__calm),
		cmocka_unit_test(storm__each_message_twice),
		cmocka_unit_test(storm__loss),
		cmocka_unit_test(storm__minutes_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
