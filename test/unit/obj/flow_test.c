/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of flows, against a list; and readers while it changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <cmocka.h>
#include "bits.h"
#include "flow.h"
#include "tables.h"
#include "random.h"

#define FLOWS 64u

static struct flow_table *table;
static struct qp_flow flow[FLOWS];

static int setup(void **state)
{
	table = calloc(1, sizeof(*table));
	memset(flow, 0, sizeof(flow));
	return !table;
}

static int teardown(void **state)
{
	free(table);
	return 0;
}

static void be(struct qp_flow *f, uint8_t host, uint32_t qpn)
{
	memset(f, 0, sizeof(*f));
	f->key.dgid[0] = 0xFD;
	f->key.dgid[15] = host;
	f->key.dest_qpn = qpn;
}

static unsigned count(const struct flow_key *k)
{
	unsigned n = 0;

	for (const struct qp_flow *f = flow_find(table, k); f; f = flow_more(f))
		n++;
	return n;
}

/* proves FCN-08: by both parts of the key */
static void flow_find__by_address_and_number(void **state)
{
	be(&flow[0], 1, 0x11);
	be(&flow[1], 2, 0x11);
	be(&flow[2], 1, 0x12);
	for (unsigned i = 0; i < 3; i++)
		flow_add(table, &flow[i]);
	for (unsigned i = 0; i < 3; i++)
		assert_ptr_equal(flow_find(table, &flow[i].key), &flow[i]);
	be(&flow[3], 2, 0x12);
	assert_null(flow_find(table, &flow[3].key));
	flow_remove(table, &flow[3]); /* never added */
	flow_remove(table, &flow[1]);
	assert_null(flow_find(table, &flow[1].key));
	flow_remove(table, &flow[1]); /* again */
	assert_int_equal(count(&flow[0].key), 1);
	assert_int_equal(count(&flow[2].key), 1);
}

/* proves FCN-08: QPs that use another of our addresses, or another port, are not visited */
static void flow_find__by_our_own_address(void **state)
{
	for (unsigned i = 0; i < FLOWS; i++) {
		be(&flow[i], 1, 0x11);
		flow[i].key.sgid[15] = i > 1;
		flow[i].key.port = i == 1;
		flow_add(table, &flow[i]);
	}
	assert_int_equal(count(&flow[0].key), 1);
	assert_int_equal(count(&flow[1].key), 1);
	assert_int_equal(count(&flow[2].key), FLOWS - 2);
}

/* proves FCN-09: all with one key, in the order in which they came, whichever leaves */
static void flow_more__finds_all(void **state)
{
	for (unsigned gone = 0; gone < 3; gone++) {
		const struct qp_flow *f;

		memset(table, 0, sizeof(*table));
		for (unsigned i = 0; i < 3; i++) {
			be(&flow[i], 1, 0x11);
			flow_add(table, &flow[i]);
		}
		be(&flow[3], 9, 0x99); /* the same bucket, without a seed */
		flow_add(table, &flow[3]);
		flow_remove(table, &flow[gone]);
		f = flow_find(table, &flow[0].key);
		assert_ptr_equal(f, &flow[gone == 0]);
		f = flow_more(f);
		assert_ptr_equal(f, &flow[gone == 2 ? 1 : 2]);
		assert_null(flow_more(f));
		assert_ptr_equal(flow_find(table, &flow[3].key), &flow[3]);
	}
}

/* Adds and removes at random, with few keys. */
static void flow__as_a_list(void **state)
{
	struct random r = {20261123};

	for (unsigned round = 0; round < 20000; round++) {
		struct qp_flow *f = &flow[random_below(&r, FLOWS)];
		struct flow_key k = {.dgid = {0xFD}, .dest_qpn = (uint32_t)random_below(&r, 3)};
		unsigned want = 0;

		if (f->added) {
			flow_remove(table, f);
		} else {
			be(f, (uint8_t)random_below(&r, 4), (uint32_t)random_below(&r, 3));
			flow_add(table, f);
		}
		k.dgid[15] = (uint8_t)random_below(&r, 4);
		for (unsigned i = 0; i < FLOWS; i++)
			want += flow[i].added && !memcmp(&flow[i].key, &k, sizeof(k));
		assert_int_equal(count(&k), want);
	}
}

/* A worker walks meanwhile: it always finds those that stay. */
static atomic_bool stop;

static void *walk(void *arg)
{
	while (!atomic_load(&stop)) {
		const struct qp_flow *f = flow_find(table, &flow[0].key);
		unsigned stays = 0;

		for (; f; f = flow_more(f))
			stays += f == &flow[0] || f == &flow[FLOWS - 1];
		if (stays != 2)
			abort();
	}
	return NULL;
}

static void flow__changes_under_a_reader(void **state)
{
	pthread_t reader;

	for (unsigned i = 0; i < FLOWS; i++) {
		be(&flow[i], i % 4 == 1, 0x11);
		flow_add(table, &flow[i]);
	}
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&reader, NULL, walk, NULL), 0);
	/* Each leaves once: a place is not taken again before a grace period. */
	for (unsigned i = 1; i < FLOWS - 1; i++)
		flow_remove(table, &flow[i]);
	atomic_store(&stop, true);
	pthread_join(reader, NULL);
	assert_int_equal(count(&flow[0].key), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flow_find__by_address_and_number, setup, teardown),
		cmocka_unit_test_setup_teardown(flow_find__by_our_own_address, setup, teardown),
		cmocka_unit_test_setup_teardown(flow_more__finds_all, setup, teardown),
		cmocka_unit_test_setup_teardown(flow__as_a_list, setup, teardown),
		cmocka_unit_test_setup_teardown(flow__changes_under_a_reader, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
