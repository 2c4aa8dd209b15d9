/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections without a user give way when the table is full: a host whose requests are all
 * rejected takes nothing from the connections of others, nor more than its part of the answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "cm_impl.h"
#include "random.h"

#define MS	1000000ull
#define SERVICE 0x01060007ull /* TCP port 7 */
#define CONNS	32u
#define FLOOD	(4 * CONNS)

struct scene {
	struct cm *cm;
	uint64_t now;
	unsigned sent[CM_ATTRS];
	uint32_t requested; /* the last new request, 0: none */
	uint8_t rep[MAD_LEN];
};

static void send_mad(void *arg, const struct cm_path *to, const uint8_t *mad)
{
	struct scene *s = arg;

	(void)to;
	s->sent[mad_attr(mad) - CM_REQ]++;
	if (mad_attr(mad) == CM_REP)
		memcpy(s->rep, mad, MAD_LEN);
}

static enum cm_rej note(void *arg, const struct cm_event *e)
{
	struct scene *s = arg;

	if (e->type == CM_EV_REQ)
		s->requested = e->id;
	return 0;
}

static int setup(void **state)
{
	static const struct cm_ops ops = {send_mad, note};
	struct scene *s = calloc(1, sizeof(*s));
	struct cm_conf conf = cm_defaults();
	struct random random = {.state = 3};
	uint32_t listener;

	conf.guid = 77;
	random_fill(&random, (uint8_t *)&conf.seed, sizeof(conf.seed));
	s->now = 1000 * MS;
	s->cm = cm_init(calloc(1, cm_size(CONNS, 1)), CONNS, 1, &conf, &ops, s, s->now);
	assert_int_equal(cm_listen(s->cm, SERVICE, NULL, CONNS, 0, &listener), 0);
	*state = s;
	return 0;
}

static void expire_all(struct cm *cm, uint64_t now)
{
	while (!cm_expire(cm, now, CONNS))
		;
}

/* Nothing stays, and the answers were counted correctly. */
static int teardown(void **state)
{
	struct scene *s = *state;

	for (unsigned i = 0; i < 1000; i++)
		expire_all(s->cm, s->now += 1000 * MS);
	assert_int_equal(cm_used(s->cm), 0);
	for (unsigned i = 0; i < CM_PEERS; i++)
		assert_int_equal(s->cm->nanswers[i], 0);
	free(s->cm);
	free(s);
	return 0;
}

static struct cm_path path_of(unsigned host)
{
	struct cm_path p = {.pkey = 0xFFFF, .hop_limit = 64};

	p.local[10] = p.local[11] = p.remote[10] = p.remote[11] = 0xFF;
	p.local[12] = p.remote[12] = 10;
	p.remote[15] = (uint8_t)host;
	return p;
}

/* Request number @p i of @p host, which repeats it after 2^(@p timeout - 8) ms. */
static void request(struct scene *s, unsigned host, unsigned i, unsigned timeout)
{
	const struct cm_path from = path_of(host);
	struct cma_hdr h = {.family = 4, .src_port = 40000};
	uint8_t mad[MAD_LEN];

	mad_begin(mad, CM_REQ, i);
	cm_put(mad, CM_F_REQ_LOCAL_ID, i + 1);
	cm_put(mad, CM_F_REQ_SERVICE_ID, SERVICE);
	cm_put(mad, CM_F_REQ_GUID, host);
	cm_put(mad, CM_F_REQ_QPN, 0x100 + i);
	cm_put(mad, CM_F_REQ_MTU, 3);
	cm_put(mad, CM_F_REQ_REMOTE_TIMEOUT, timeout);
	cm_put(mad, CM_F_REQ_LOCAL_TIMEOUT, 16);
	cm_put(mad, CM_F_REQ_ACK_TIMEOUT, 20);
	cm_put(mad, CM_F_REQ_MAX_RETRIES, 15);
	memcpy(h.src, from.remote, 16);
	memcpy(h.dst, from.local, 16);
	cma_write((uint8_t *)cm_bytes(mad, CM_F_REQ_PRIVATE, NULL), &h);
	s->requested = 0;
	cm_mad(s->cm, &from, mad, MAD_LEN, s->now);
}

static void rejected(struct scene *s, unsigned host, unsigned i)
{
	request(s, host, i, 20);
	assert_int_not_equal(s->requested, 0);
	assert_int_equal(cm_destroy(s->cm, s->requested, s->now), 0);
}

static void flood(struct scene *s, unsigned host)
{
	for (unsigned i = 0; i < FLOOD; i++)
		rejected(s, host, i);
}

/* @return the local id of a connection of @p host whose program has ended: its DREQ is
 * unanswered. */
static uint32_t left(struct scene *s, unsigned host)
{
	const struct cm_param p = {.qpn = 5, .psn = 1};
	uint32_t id;

	request(s, host, 0, 20);
	id = s->requested;
	assert_int_equal(cm_accept(s->cm, id, &p, 0, s->now), 0);
	assert_int_equal(cm_established(s->cm, id, s->now), 0);
	assert_int_equal(cm_destroy(s->cm, id, s->now), 0);
	assert_int_equal(cm_find(s->cm, id)->state, CM_DREQ_SENT);
	return id;
}

/* The same, whose DREQ the peer has answered. */
static uint32_t left_in_timewait(struct scene *s, unsigned host)
{
	const struct cm_path from = path_of(host);
	uint32_t id = left(s, host);
	uint8_t mad[MAD_LEN];

	mad_begin(mad, CM_DREP, 1);
	cm_put(mad, CM_F_DREP_LOCAL_ID, 1);
	cm_put(mad, CM_F_DREP_REMOTE_ID, id);
	cm_mad(s->cm, &from, mad, MAD_LEN, s->now);
	assert_int_equal(cm_find(s->cm, id)->state, CM_TIMEWAIT);
	return id;
}

/* SEC-03: a host whose requests are rejected ends neither the DREQs nor the TIMEWAIT of others. */
static void flood_of_rejected(void **state)
{
	struct scene *s = *state;
	uint32_t dreq = left(s, 1), timewait = left_in_timewait(s, 2);

	flood(s, 3);
	assert_int_equal(cm_used(s->cm), CONNS);
	assert_int_equal(cm_find(s->cm, dreq)->state, CM_DREQ_SENT);
	assert_int_equal(cm_find(s->cm, timewait)->state, CM_TIMEWAIT);
	for (unsigned i = 0; i < 100; i++)
		expire_all(s->cm, s->now += 1000 * MS);
	assert_int_equal(s->sent[CM_DREQ - CM_REQ], 2 + 15);
}

/* Without answers, connections in TIMEWAIT give way, and then those with an unanswered DREQ. */
static void order(void **state)
{
	struct scene *s = *state;
	struct cm_param p = {.qpn = 5, .psn = 1, .mtu = 3};
	const struct cm_path to = path_of(99);
	uint32_t dreq[2] = {left(s, 1), 0}, timewait = left_in_timewait(s, 2), id[CONNS];

	dreq[1] = left(s, 3);
	for (unsigned i = 0; i < CONNS; i++) {
		assert_int_equal(cm_connect(s->cm, &to, SERVICE, &p, 0, &id[i], s->now), 0);
		assert_int_equal(!cm_find(s->cm, timewait), i >= CONNS - 3);
		assert_int_equal(!cm_find(s->cm, dreq[0]), i >= CONNS - 2);
		assert_int_equal(!cm_find(s->cm, dreq[1]), i >= CONNS - 1);
	}
	for (unsigned i = 0; i < CONNS; i++)
		assert_int_equal(cm_destroy(s->cm, id[i], s->now), 0);
}

/* SEC-03: the answer to a host that has few outlives those to one that has many. */
static void answers_to_others(void **state)
{
	struct scene *s = *state;

	rejected(s, 1, 0);
	flood(s, 2);
	request(s, 1, 0, 20);
	assert_int_equal(s->requested, 0); /* a duplicate */
	request(s, 2, FLOOD - 1, 20);
	assert_int_equal(s->requested, 0); /* of its answers the oldest give way */
}

/* SEC-03: no peer has its answers kept for minutes. */
static void late_duplicates(void **state)
{
	struct scene *s = *state;

	request(s, 1, 0, 31);
	assert_int_equal(cm_destroy(s->cm, s->requested, s->now), 0);
	expire_all(s->cm, s->now += 45 * 1000 * MS);
	assert_int_equal(cm_used(s->cm), 1);
	expire_all(s->cm, s->now += 15 * 1000 * MS);
	assert_int_equal(cm_used(s->cm), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(flood_of_rejected), T(order), T(answers_to_others), T(late_duplicates)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
