/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that sends whatever it likes gets few answers, ends no connection of others, and learns
 * nothing by which it could guess their ids. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "cm_impl.h"
#include "ends.h"
#include "headers.h"

#define CONNS  64u
#define FLOOD  10000u
#define FEW    128u
#define CYCLES 20000u
#define HOSTS  10000u
#define CHAIN  16u /* 8 is usual for so many in their table */

struct scene {
	struct ends *net;
	struct end *a, *b; /* active, passive */
	uint32_t id, passive;
	uint8_t req[MAD_LEN], rep[MAD_LEN], dreq[MAD_LEN];
};

static int setup(void **state)
{
	static struct scene s;
	uint32_t listener;

	s = (struct scene){.net = ends_new(CONNS, 4, 5, NULL)};
	s.a = &s.net->end[0];
	s.b = &s.net->end[1];
	assert_int_equal(cm_listen(s.b->cm, SERVICE, NULL, 8, LISTENER, &listener), 0);
	assert_int_equal(cm_listen(s.b->cm, SIDR, NULL, 8, LISTENER, &listener), 0);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	ends_free(((struct scene *)*state)->net);
	return 0;
}

static void soon(struct scene *s)
{
	ends_run(s->net, s->net->now + 10 * MS);
}

static void request(struct scene *s)
{
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param p = end_param(s->a, 0x21, hdr);

	assert_int_equal(cm_connect(s->a->cm, &s->a->to, SERVICE, &p, 7, &s->id, s->net->now), 0);
	memcpy(s->req, s->a->last, MAD_LEN);
	soon(s);
	s->passive = end_take(s->b, CM_EV_REQ)->id;
}

static void establish(struct scene *s)
{
	struct cm_param p = end_param(s->b, 0x11, NULL);

	request(s);
	assert_int_equal(cm_accept(s->b->cm, s->passive, &p, 8, s->net->now), 0);
	memcpy(s->rep, s->b->last, MAD_LEN);
	soon(s);
	end_take(s->a, CM_EV_REP);
	assert_int_equal(cm_rtu(s->a->cm, s->id, NULL, 0, s->net->now), 0);
	soon(s);
	end_take(s->b, CM_EV_ESTABLISHED);
}

/* @return how many answers @p mad gets if it comes FLOOD times. */
static unsigned flood(struct scene *s, struct end *e, const uint8_t *mad)
{
	unsigned before = e->sent;

	for (unsigned i = 0; i < FLOOD; i++) {
		end_give(e, mad);
		s->net->n = 0;
	}
	return e->sent - before;
}

/* Peers repeat a message 15 times. */
static void few(unsigned answers)
{
	assert_in_range(answers, 16, FEW);
}

/* SEC-03: a connection answers no flood of duplicates, which would fill the way out of all
 * programs. */
static void duplicates(void **state)
{
	struct scene *s = *state;

	request(s);
	few(flood(s, s->b, s->req));
	assert_int_equal(cm_reject(s->b->cm, s->passive, CM_REJ_CONSUMER, NULL, 0, s->net->now), 0);
	assert_int_equal(flood(s, s->b, s->req), 0);
	assert_int_equal(cm_destroy(s->b->cm, s->passive, s->net->now), 0);
}

static void duplicates_of_answers(void **state)
{
	struct scene *s = *state;

	establish(s);
	few(flood(s, s->a, s->rep));
	cm_disconnect(s->a->cm, s->id, NULL, 0, s->net->now);
	memcpy(s->dreq, s->a->last, MAD_LEN);
	soon(s);
	end_take(s->b, CM_EV_DISCONNECTED);
	cm_disconnect(s->b->cm, s->passive, NULL, 0, s->net->now);
	few(flood(s, s->b, s->dreq));
}

static void duplicates_of_lookups(void **state)
{
	struct scene *s = *state;
	uint8_t hdr[CMA_HDR_LEN];
	uint32_t id;

	cm_sidr(s->a->cm, &s->a->to, SIDR, hdr, end_cma(s->a, hdr), 5, &id, s->net->now);
	memcpy(s->req, s->a->last, MAD_LEN);
	soon(s);
	id = end_take(s->b, CM_EV_SIDR_REQ)->id;
	cm_sidr_answer(s->b->cm, id, CM_SIDR_SUCCESS, 0x13, 1, NULL, 0, s->net->now);
	few(flood(s, s->b, s->req));
}

/* SEC-03: a REJ without our id, which is for peers that never learned it, ends no connection that
 * is established: its peer has learned it. */
static void rejected_by_guid(void **state)
{
	struct scene *s = *state;
	uint8_t mad[MAD_LEN];

	establish(s);
	mad_begin(mad, CM_REJ, 1);
	cm_put(mad, CM_F_REJ_LOCAL_ID, s->id);
	cm_put(mad, CM_F_REJ_REASON, CM_REJ_TIMEOUT);
	cm_put(mad, CM_F_REJ_ARI_LEN, 8);
	put_be64((uint8_t *)cm_bytes(mad, CM_F_REJ_ARI, NULL), cm_get(s->req, CM_F_REQ_GUID));
	end_give(s->b, mad);
	assert_null(end_peek(s->b));
	assert_int_equal(cm_state_of(s->b->cm, s->passive), CM_ESTABLISHED);
	assert_int_equal(cm_counters(s->b->cm)->ignored[CM_REJ - CM_REQ], 1);
}

/* proves CM-11: the ids of connections in a row tell nothing of each other */
static void ids_tell_nothing(void **state)
{
	struct scene *s = *state;
	uint8_t hdr[CMA_HDR_LEN];
	struct cm_param p = end_param(s->a, 0x21, hdr);
	uint32_t id[CONNS];
	unsigned alike = 0;

	for (unsigned i = 0; i < CONNS; i++) {
		cm_connect(s->a->cm, &s->a->to, SERVICE, &p, 7, &id[i], s->net->now);
		for (unsigned j = 0; j < i; j++)
			alike += ((id[i] ^ id[j]) & 0xFFFF) < CONNS;
	}
	assert_true(alike < CONNS / 4); /* 2 by chance, of 2016 pairs */
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* proves CM-11: a peer that has seen as many ids as it likes does not know the next one, even if
 * all were of one place in the table. */
static void ids_do_not_repeat(void **state)
{
	static uint32_t seen[CYCLES];
	struct scene *s = *state;

	for (unsigned i = 0; i < CYCLES; i++) {
		uint8_t rej[MAD_LEN];

		request(s);
		mad_begin(rej, CM_REJ, 1); /* the peer takes it back */
		cm_put(rej, CM_F_REJ_LOCAL_ID, s->id);
		cm_put(rej, CM_F_REJ_REMOTE_ID, s->passive);
		cm_put(rej, CM_F_REJ_REASON, CM_REJ_CONSUMER);
		end_give(s->b, rej);
		assert_int_equal(end_take(s->b, CM_EV_REJECTED)->id, s->passive);
		assert_int_equal(cm_destroy(s->b->cm, s->passive, s->net->now), 0);
		assert_int_equal(cm_destroy(s->a->cm, s->id, s->net->now), 0);
		seen[i] = s->passive;
		s->net->n = s->b->events = s->b->taken = 0;
	}
	qsort(seen, CYCLES, sizeof(*seen), by_value);
	for (unsigned i = 1; i < CYCLES; i++)
		assert_int_not_equal(seen[i], seen[i - 1]);
}

/* proves CM-12, SEC-03: of requests that those who listen refuse nothing is kept, and the answers
 * are limited. */
static void refused_requests(void **state)
{
	struct scene *s = *state;
	uint8_t hdr[CMA_HDR_LEN];
	uint32_t id;

	s->b->refuses = CM_REJ_INVALID_GID;
	request(s);
	assert_int_equal(end_take(s->a, CM_EV_REJECTED)->reason, CM_REJ_INVALID_GID);
	assert_int_equal(cm_get(s->b->last, CM_F_REJ_ARI_LEN), 16);
	assert_memory_equal(cm_bytes(s->b->last, CM_F_REJ_ARI, NULL), s->b->to.local, 16);
	cm_sidr(s->a->cm, &s->a->to, SIDR, hdr, end_cma(s->a, hdr), 5, &id, s->net->now);
	memcpy(s->rep, s->a->last, MAD_LEN);
	soon(s);
	assert_int_equal(end_take(s->a, CM_EV_SIDR_REP)->reason, CM_SIDR_REJECT);
	assert_int_equal(cm_used(s->b->cm), 0);
	assert_int_equal(cm_half_open(s->b->cm), 0);
	ends_run(s->net, s->net->now + 2000 * MS);
	assert_int_equal(flood(s, s->b, s->req), cm_defaults().strangers / 2);
	assert_int_equal(flood(s, s->b, s->rep), 0);
	assert_int_equal(cm_used(s->b->cm), 0);
}

/* proves CM-11: nobody has seen the id of a refused request, so that floods of them do not use up
 * ids. */
static void refused_ids(void **state)
{
	struct scene *s = *state;
	uint8_t hdr[CMA_HDR_LEN];
	uint32_t refused, id;

	s->b->refuses = CM_REJ_NO_RESOURCES;
	request(s);
	refused = s->passive;
	cm_sidr(s->a->cm, &s->a->to, SIDR, hdr, end_cma(s->a, hdr), 5, &id, s->net->now);
	soon(s);
	assert_int_equal(end_take(s->b, CM_EV_SIDR_REQ)->id, refused);
	assert_int_equal(cm_listener_refused(s->b->cm, 0), 1);
	assert_int_equal(cm_listener_refused(s->b->cm, 1), 1);
	s->b->refuses = 0;
	request(s);
	assert_int_equal(s->passive, refused);
	assert_int_equal(cm_reject(s->b->cm, s->passive, CM_REJ_CONSUMER, NULL, 0, s->net->now), 0);
	assert_int_equal(cm_destroy(s->b->cm, s->passive, s->net->now), 0);
	ends_run(s->net, s->net->now + 20000 * MS);
	request(s);
	assert_int_not_equal(s->passive, refused); /* the peer has seen it */
}

/* A peer that has its share of half-open connections has two more for users who have few: the event
 * says so. */
static void over_share(void **state)
{
	struct scene *s = *state;
	struct cm_conf conf = cm_defaults();
	uint8_t mad[MAD_LEN];
	uint32_t listener;

	request(s);
	memcpy(mad, s->req, MAD_LEN);
	ends_free(s->net);
	conf.half_open = 8;
	s->net = ends_new(CONNS, 4, 5, &conf);
	s->b = &s->net->end[1];
	assert_int_equal(cm_listen(s->b->cm, SERVICE, NULL, 64, LISTENER, &listener), 0);
	for (unsigned i = 0; i < 8; i++) {
		cm_put(mad, CM_F_REQ_LOCAL_ID, 1 + i);
		cm_put(mad, CM_F_REQ_QPN, 0x100 + i);
		end_give(s->b, mad);
		if (i < 6)
			assert_int_equal(end_take(s->b, CM_EV_REQ)->over_share, i >= 4);
	}
	assert_int_equal(cm_half_open(s->b->cm), 6);
	assert_int_equal(cm_listener_refused(s->b->cm, listener), 2);
}

/* A listener that is closed hears nothing, but answers those who wait when it ends. */
static void closed(void **state)
{
	struct scene *s = *state;
	uint32_t other;

	request(s);
	assert_int_equal(cm_close(s->b->cm, 0), 0);
	assert_int_equal(cm_close(s->b->cm, 0), 0);
	assert_int_equal(cm_close(s->b->cm, 3), -ENOENT);
	cm_put(s->req, CM_F_REQ_LOCAL_ID, 0x888);
	cm_put(s->req, CM_F_REQ_QPN, 0x99);
	end_give(s->b, s->req);
	assert_int_equal(cm_get(s->b->last, CM_F_REJ_REASON), CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(cm_half_open(s->b->cm), 1);
	assert_int_equal(cm_listen(s->b->cm, SERVICE, NULL, 8, LISTENER, &other), 0);
	assert_int_not_equal(other, 0);
	assert_int_equal(cm_unlisten(s->b->cm, 0, s->net->now), 0);
	assert_int_equal(cm_get(s->b->last, CM_F_REJ_REASON), CM_REJ_CONSUMER);
	assert_int_equal(cm_half_open(s->b->cm), 0);
	end_give(s->b, s->req);
	end_take(s->b, CM_EV_REQ);
}

/* A host for each @p i. */
static struct cm_path host(const struct scene *s, unsigned i)
{
	struct cm_path from = s->b->to;

	from.remote[13] = 1;
	from.remote[14] = (uint8_t)(i >> 8);
	from.remote[15] = (uint8_t)i;
	return from;
}

/* The header of the RDMA IP CM service of host @p from, in @p mad. */
static void claim(uint8_t *mad, const struct cm_path *from)
{
	struct cma_hdr h = {.family = 4, .src_port = 40000};
	bool lookup = mad_attr(mad) == CM_SIDR_REQ;

	memcpy(h.src, from->remote, 16);
	memcpy(h.dst, from->local, 16);
	cma_write((uint8_t *)cm_bytes(mad, lookup ? CM_F_SIDR_REQ_PRIVATE : CM_F_REQ_PRIVATE, NULL),
		&h);
}

/* @return the most connections that a look-up may have to compare. */
static unsigned longest_chain(const struct cm *cm, enum cm_index by)
{
	unsigned longest = 0;

	for (uint32_t i = 0; i <= cm->mask; i++) {
		unsigned n = 0;

		for (uint32_t c = cm->bucket[by][i]; c != CM_NONE; c = cm->conn[c].next[by])
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

/* HOSTS hosts, or one that forges their addresses, send @p mad for @p service to a table with room
 * for them. */
static const struct cm *same_of_many(struct scene *s, uint64_t service, uint8_t *mad)
{
	uint32_t listener;
	struct cm *cm;

	ends_free(s->net);
	s->net = ends_new(2 * HOSTS, 4, 5, NULL);
	s->b = &s->net->end[1];
	cm = s->b->cm;
	assert_int_equal(cm_listen(cm, service, NULL, HOSTS, LISTENER, &listener), 0);
	for (unsigned i = 0; i < HOSTS; i++) {
		const struct cm_path from = host(s, i);

		claim(mad, &from);
		cm_mad(cm, &from, mad, MAD_LEN, s->net->now);
	}
	assert_int_equal(cm_half_open(cm), HOSTS);
	return cm;
}

/* SEC-03: hosts that all claim the same ID, GUID and QPN make no look-up longer. */
static void same_requests_of_many(void **state)
{
	struct scene *s = *state;
	const struct cm *cm;

	request(s);
	cm = same_of_many(s, SERVICE, s->req);
	assert_in_range(longest_chain(cm, CM_BY_REMOTE_ID), 1, CHAIN);
	assert_in_range(longest_chain(cm, CM_BY_REMOTE_QPN), 1, CHAIN);
}

static void same_lookups_of_many(void **state)
{
	struct scene *s = *state;
	uint8_t mad[MAD_LEN], hdr[CMA_HDR_LEN];
	uint32_t id;

	cm_sidr(s->a->cm, &s->a->to, SIDR, hdr, end_cma(s->a, hdr), 5, &id, s->net->now);
	memcpy(mad, s->a->last, MAD_LEN);
	assert_in_range(longest_chain(same_of_many(s, SIDR, mad), CM_BY_REQUEST), 1, CHAIN);
}

static void ipv6(uint8_t gid[16], uint8_t host)
{
	memset(gid, 0, 16);
	gid[0] = 0xFE;
	gid[1] = 0x80;
	gid[15] = host;
}

/* proves CM-30: programs learn the address that the packet came from, so a request that claims
 * another one is refused, and leaves no state. */
static void another_address(void **state)
{
	struct scene *s = *state;
	struct cm_path claimed[2] = {s->b->to, s->b->to};
	uint8_t hdr[CMA_HDR_LEN], lookup[MAD_LEN];
	uint32_t id;

	request(s);
	assert_int_equal(cm_reject(s->b->cm, s->passive, CM_REJ_CONSUMER, NULL, 0, s->net->now), 0);
	assert_int_equal(cm_destroy(s->b->cm, s->passive, s->net->now), 0);
	cm_sidr(s->a->cm, &s->a->to, SIDR, hdr, end_cma(s->a, hdr), 5, &id, s->net->now);
	memcpy(lookup, s->a->last, MAD_LEN);
	cm_put(s->req, CM_F_REQ_LOCAL_ID, 0x99);
	claimed[0].remote[15] ^= 1;
	claimed[1].local[15] ^= 1;
	for (unsigned i = 0; i < ARRAY_SIZE(claimed); i++) {
		claim(s->req, &claimed[i]);
		end_give(s->b, s->req);
		assert_int_equal(mad_attr(s->b->last), CM_REJ);
		assert_int_equal(cm_get(s->b->last, CM_F_REJ_REMOTE_ID), 0x99);
		assert_int_equal(cm_get(s->b->last, CM_F_REJ_REASON), CM_REJ_CONSUMER);
		claim(lookup, &claimed[i]);
		end_give(s->b, lookup);
		assert_int_equal(mad_attr(s->b->last), CM_SIDR_REP);
		assert_int_equal(cm_get(s->b->last, CM_F_SIDR_REP_STATUS), CM_SIDR_UNSUPPORTED);
		assert_null(end_peek(s->b));
		assert_int_equal(cm_used(s->b->cm), 1); /* the answer to the first */
	}
}

/* proves CM-30: a GID is an IP address by each protocol, link-local ones and RoCEv1 included. */
static void own_address(void **state)
{
	static const uint8_t rows[][2] = {
		{NET_IPV4, 4}, {NET_ROCEV1, 4}, {NET_IPV6, 6}, {NET_ROCEV1, 6}};
	struct scene *s = *state;

	request(s);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cma_hdr h = {.family = rows[i][1], .src_port = 40000};
		struct cm_path from = s->b->to;

		from.net = rows[i][0];
		if (h.family == 6) {
			ipv6(from.local, 1);
			ipv6(from.remote, 2);
		}
		memcpy(h.src, from.remote, 16);
		memcpy(h.dst, from.local, 16);
		cma_write((uint8_t *)cm_bytes(s->req, CM_F_REQ_PRIVATE, NULL), &h);
		cm_put(s->req, CM_F_REQ_LOCAL_ID, 0x100 + i);
		cm_put(s->req, CM_F_REQ_QPN, 0x100 + i);
		cm_mad(s->b->cm, &from, s->req, MAD_LEN, s->net->now);
		end_take(s->b, CM_EV_REQ);
	}
}

/* By the last byte of the address. */
static void count_answer(void *arg, const struct cm_path *to, const uint8_t *mad)
{
	unsigned *answers = arg;

	(void)mad;
	answers[to->remote[15]]++;
}

static enum cm_rej no_event(void *arg, const struct cm_event *e)
{
	(void)arg;
	(void)e;
	fail();
	return 0;
}

static struct cm *counting_cm(struct scene *s, unsigned answers[256])
{
	static const struct cm_ops ops = {count_answer, no_event};
	struct cm_conf conf = cm_defaults();

	random_fill(&s->net->random, (uint8_t *)&conf.seed, sizeof(conf.seed));
	return cm_init(calloc(1, cm_size(CONNS, 4)), CONNS, 4, &conf, &ops, answers, s->net->now);
}

/* SEC-03: a host that sends more than gets answers does not silence those to others: each REQ to a
 * port where nobody listens is refused at once. */
static void answers_to_others(void **state)
{
	struct scene *s = *state;
	unsigned answers[256] = {0}, asked = 0;
	struct cm *cm = counting_cm(s, answers);
	const struct cm_path busy = host(s, 99), modest = host(s, 10);
	uint8_t dreq[MAD_LEN];

	request(s);
	cm_put(s->req, CM_F_REQ_SERVICE_ID, SERVICE + 1);
	mad_begin(dreq, CM_DREQ, 9);
	for (unsigned ms = 0; ms < 10000; ms++) {
		const uint64_t now = s->net->now + ms * MS;

		for (unsigned i = 0; i < 2; i++)
			cm_mad(cm, &busy, dreq, MAD_LEN, now);
		if (ms % 16) /* 62 per second */
			continue;
		cm_mad(cm, &modest, s->req, MAD_LEN, now);
		assert_int_equal(answers[10], ++asked);
	}
	assert_in_range(answers[99], 9000, 10500); /* of 20,000: all that is left */
	free(cm);
}

/* Many hosts together get no more than one. */
static void answers_to_all(void **state)
{
	struct scene *s = *state;
	unsigned answers[256] = {0}, all = 0;
	struct cm *cm = counting_cm(s, answers);
	uint8_t dreq[MAD_LEN];

	mad_begin(dreq, CM_DREQ, 9);
	for (unsigned i = 0; i < 256 * 100; i++) {
		const struct cm_path from = host(s, i % 256);

		cm_mad(cm, &from, dreq, MAD_LEN, s->net->now);
	}
	for (unsigned i = 0; i < 256; i++)
		all += answers[i];
	assert_int_equal(all, cm_defaults().strangers);
	free(cm);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {T(duplicates), T(duplicates_of_answers),
		T(duplicates_of_lookups), T(rejected_by_guid), T(refused_requests),
		T(ids_tell_nothing), T(ids_do_not_repeat), T(refused_ids), T(over_share), T(closed),
		T(same_requests_of_many), T(same_lookups_of_many), T(another_address),
		T(own_address), T(answers_to_others), T(answers_to_all)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
