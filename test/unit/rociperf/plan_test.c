/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "plan.h"

static char why[256];

static struct plan usual(const char *op, enum test test)
{
	struct plan p;

	plan_usual(&p);
	p.value[PARAM_OP] = (uint64_t)(op_find(op) - op_table);
	p.value[PARAM_TEST] = test;
	return p;
}

static void given(struct plan *p, enum param i, const char *text)
{
	assert_true(plan_set(p, i, text, why, sizeof(why)));
}

static void refuses(const struct plan *p, const char *about)
{
	assert_false(plan_check(p, why, sizeof(why)));
	if (!strstr(why, about))
		fail_msg("'%s' does not speak of %s", why, about);
}

static void accepts(const struct plan *p)
{
	if (!plan_check(p, why, sizeof(why)))
		fail_msg("%s", why);
}

static void plan_set__ranges(void **state)
{
	struct plan p = usual("write", TEST_BW);

	given(&p, PARAM_SIZE, "64K");
	assert_int_equal(p.value[PARAM_SIZE], 65536);
	assert_true(p.given[PARAM_SIZE]);
	given(&p, PARAM_DURATION, "0.5");
	assert_int_equal(p.value[PARAM_DURATION], 500000);
	assert_false(plan_set(&p, PARAM_SIZE, "0", why, sizeof(why)));
	assert_false(plan_set(&p, PARAM_SIZE, "2G", why, sizeof(why)));
	assert_non_null(strstr(why, "1 to 1073741824"));
	assert_false(plan_set(&p, PARAM_QPS, "0", why, sizeof(why)));
	assert_false(plan_set(&p, PARAM_QPS, "many", why, sizeof(why)));
	assert_non_null(strstr(why, "--qp many"));
	assert_false(plan_set(&p, PARAM_TIMEOUT, "32", why, sizeof(why)));
	assert_int_equal(p.value[PARAM_SIZE], 65536);
}

static void plan_check__contradictions(void **state)
{
	struct plan p = usual("write", TEST_BW);

	accepts(&p);
	given(&p, PARAM_ITERATIONS, "5");
	given(&p, PARAM_DURATION, "5");
	refuses(&p, "--duration");
	p = usual("write", TEST_BW);
	given(&p, PARAM_SIZE, "5");
	given(&p, PARAM_ALL, "");
	refuses(&p, "--all");
	p = usual("write", TEST_BW);
	given(&p, PARAM_MTU, "1500");
	refuses(&p, "--mtu");
	p = usual("write", TEST_BW);
	given(&p, PARAM_OUTS, "5");
	refuses(&p, "READ");
	p = usual("read", TEST_BW);
	given(&p, PARAM_OUTS, "5");
	accepts(&p);
	given(&p, PARAM_INLINE, "5");
	refuses(&p, "inline");
}

/* All that is under way must never be unsignaled while a list has no room. */
static void plan_check__queue_that_would_stop(void **state)
{
	struct plan p = usual("write", TEST_BW);

	given(&p, PARAM_TX_DEPTH, "128");
	given(&p, PARAM_CQ_MOD, "100");
	accepts(&p);
	given(&p, PARAM_POST_LIST, "29");
	accepts(&p);
	given(&p, PARAM_POST_LIST, "30");
	refuses(&p, "--tx-depth");
	p = usual("write", TEST_BW);
	given(&p, PARAM_POST_LIST, "65");
	refuses(&p, "--tx-depth");
}

static void plan_check__latency(void **state)
{
	struct plan p = usual("write", TEST_LAT);

	accepts(&p);
	given(&p, PARAM_EVENTS, "");
	refuses(&p, "--events");
	p = usual("send", TEST_LAT);
	given(&p, PARAM_EVENTS, "");
	accepts(&p);
	given(&p, PARAM_QPS, "2");
	refuses(&p, "--qp");
	p = usual("send", TEST_LAT);
	given(&p, PARAM_BIDIRECTIONAL, "");
	refuses(&p, "--bidirectional");
}

static void plan_check__service(void **state)
{
	struct plan p = usual("send", TEST_BW);

	assert_int_equal(plan_service(&p)->type, ROCI_QPT_RC);
	given(&p, PARAM_CONNECTION, "uc");
	assert_int_equal(plan_service(&p)->type, ROCI_QPT_UC);
	given(&p, PARAM_VERIFY, "");
	accepts(&p);
	p.value[PARAM_OP] = (uint64_t)(op_find("write_imm") - op_table);
	refuses(&p, "--verify");
	p = usual("read", TEST_BW);
	given(&p, PARAM_CONNECTION, "UC");
	refuses(&p, "--connection RC");
	assert_false(plan_set(&p, PARAM_CONNECTION, "TCP", why, sizeof(why)));
	assert_non_null(strstr(why, "RC, UC, UD or XRC"));
}

static void plan_check__datagrams(void **state)
{
	struct plan p = usual("write", TEST_BW);

	given(&p, PARAM_CONNECTION, "UD");
	refuses(&p, "SEND only");
	p = usual("send", TEST_BW);
	given(&p, PARAM_CONNECTION, "UD");
	assert_int_equal(plan_first_size(&p), 1024);
	given(&p, PARAM_SIZE, "4096");
	accepts(&p);
	given(&p, PARAM_MTU, "2048");
	refuses(&p, "--size");
	p = usual("send", TEST_BW);
	given(&p, PARAM_CONNECTION, "UD");
	given(&p, PARAM_SIZE, "4097");
	refuses(&p, "--size");
	p = usual("send", TEST_BW);
	given(&p, PARAM_CONNECTION, "UD");
	given(&p, PARAM_ALL, "");
	given(&p, PARAM_MTU, "2048");
	assert_int_equal(plan_largest(&p), 2048);
	assert_int_equal(plan_next_size(&p, 1024), 2048);
	assert_int_equal(plan_next_size(&p, 2048), 0);
}

static void plan_check__xrc_shares_receives(void **state)
{
	struct plan p = usual("send", TEST_BW);

	given(&p, PARAM_CONNECTION, "XRC");
	given(&p, PARAM_VERIFY, "");
	accepts(&p);
	given(&p, PARAM_QPS, "2");
	refuses(&p, "--qp 1");
	p.value[PARAM_OP] = (uint64_t)(op_find("write") - op_table);
	accepts(&p);
}

static void plan_check__window(void **state)
{
	struct plan p = usual("send", TEST_BW);

	given(&p, PARAM_WINDOW, "");
	refuses(&p, "--mw");
	p.value[PARAM_OP] = (uint64_t)(op_find("write_imm") - op_table);
	accepts(&p);
}

static void plan_check__mcast(void **state)
{
	struct plan p = usual("send", TEST_BW);

	assert_false(plan_mcast(&p));
	given(&p, PARAM_GROUP, "239.1.2.3");
	assert_true(plan_mcast(&p));
	refuses(&p, "--connection UD");
	given(&p, PARAM_CONNECTION, "UD");
	accepts(&p);
	given(&p, PARAM_QPS, "3");
	accepts(&p);
	assert_int_equal(plan_senders(&p), 1);
	assert_int_equal(plan_members(&p), 3);
	given(&p, PARAM_BIDIRECTIONAL, "");
	refuses(&p, "--bidirectional");
	p = usual("send", TEST_LAT);
	given(&p, PARAM_CONNECTION, "UD");
	given(&p, PARAM_GROUP, "ff1e::");
	accepts(&p);
	given(&p, PARAM_GROUP, "192.0.2.1");
	refuses(&p, "224.0.0.0");
	given(&p, PARAM_GROUP, "2001:db8::1");
	refuses(&p, "begins with ff");
	given(&p, PARAM_GROUP, "::");
	refuses(&p, "begins with ff");
	assert_false(plan_set(&p, PARAM_GROUP, "lab7", why, sizeof(why)));
	assert_non_null(strstr(why, "--mcast lab7"));
}

/* A side that hears nothing of a message, or that it failed, need not count it. */
static void plan_counts_lost__services(void **state)
{
	struct plan p = usual("send", TEST_BW);

	assert_false(plan_counts_lost(&p));
	given(&p, PARAM_CONNECTION, "UD");
	assert_true(plan_counts_lost(&p));
	given(&p, PARAM_CONNECTION, "UC");
	assert_true(plan_counts_lost(&p));
	p.value[PARAM_OP] = (uint64_t)(op_find("write") - op_table);
	assert_false(plan_counts_lost(&p));
	p = usual("send", TEST_LAT);
	given(&p, PARAM_CONNECTION, "UD");
	assert_false(plan_counts_lost(&p));
}

static void plan_adopt__groups(void **state)
{
	struct plan server = usual("send", TEST_BW), client = usual("send", TEST_BW);

	given(&client, PARAM_CONNECTION, "UD");
	given(&client, PARAM_GROUP, "ff1e::1");
	given(&server, PARAM_GROUP, "ff1e::1");
	assert_true(plan_adopt(&server, client.value, why, sizeof(why)));
	assert_memory_equal(server.value, client.value, sizeof(client.value));
	given(&server, PARAM_GROUP, "239.1.2.3");
	assert_false(plan_adopt(&server, client.value, why, sizeof(why)));
	assert_non_null(strstr(why, "with --mcast 239.1.2.3"));
	assert_non_null(strstr(why, "with --mcast ff1e::1"));
	client.value[PARAM_GROUP_HIGH] = client.value[PARAM_GROUP] = 0;
	assert_false(plan_adopt(&server, client.value, why, sizeof(why)));
	assert_non_null(strstr(why, "without --mcast"));
}

static void plan_adopt__takes_over(void **state)
{
	struct plan server = usual("write", TEST_BW), client = usual("write", TEST_LAT);

	server.given[PARAM_OP] = true;
	given(&client, PARAM_SIZE, "77");
	assert_true(plan_adopt(&server, client.value, why, sizeof(why)));
	assert_memory_equal(server.value, client.value, sizeof(client.value));
}

static void plan_adopt__what_both_were_told(void **state)
{
	struct plan server = usual("write", TEST_BW), client = usual("write", TEST_BW);

	given(&server, PARAM_SIZE, "4096");
	given(&client, PARAM_SIZE, "4K");
	assert_true(plan_adopt(&server, client.value, why, sizeof(why)));
	given(&client, PARAM_SIZE, "64");
	assert_false(plan_adopt(&server, client.value, why, sizeof(why)));
	assert_non_null(strstr(why, "with --size 4096"));
	assert_non_null(strstr(why, "with --size 64"));
	assert_int_equal(server.value[PARAM_SIZE], 4096);
	server = usual("send", TEST_BW);
	server.given[PARAM_OP] = true;
	assert_false(plan_adopt(&server, client.value, why, sizeof(why)));
	assert_non_null(strstr(why, "send, the client write"));
}

/* Bytes from TCP may be anybody's. */
static void plan_adopt__hostile(void **state)
{
	for (unsigned i = 0; i < PARAM_COUNT; i++) {
		struct plan server = usual("write", TEST_BW), client = usual("write", TEST_BW);

		client.value[i] = UINT64_MAX;
		assert_false(plan_adopt(&server, client.value, why, sizeof(why)));
	}
	for (unsigned i = 0; i < PARAM_COUNT; i++) {
		struct plan server = usual("write", TEST_BW), client = usual("write", TEST_BW);

		if (param_info[i].usual == 0)
			continue; /* 0 leaves it open */
		client.value[i] = 0;
		assert_false(plan_adopt(&server, client.value, why, sizeof(why)));
	}
}

static void plan_next_size__all(void **state)
{
	struct plan p = usual("write", TEST_BW);
	unsigned sizes = 0;
	uint32_t last = 0;

	assert_int_equal(plan_first_size(&p), 65536);
	assert_int_equal(plan_next_size(&p, 65536), 0);
	given(&p, PARAM_ALL, "");
	for (uint32_t size = plan_first_size(&p); size; size = plan_next_size(&p, size)) {
		sizes++;
		last = size;
	}
	assert_int_equal(sizes, 23);
	assert_int_equal(last, 8 << 20);
	assert_int_equal(plan_largest(&p), last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_set__ranges),
		cmocka_unit_test(plan_check__contradictions),
		cmocka_unit_test(plan_check__queue_that_would_stop),
		cmocka_unit_test(plan_check__latency),
		cmocka_unit_test(plan_check__service),
		cmocka_unit_test(plan_check__datagrams),
		cmocka_unit_test(plan_check__xrc_shares_receives),
		cmocka_unit_test(plan_check__window),
		cmocka_unit_test(plan_check__mcast),
		cmocka_unit_test(plan_counts_lost__services),
		cmocka_unit_test(plan_adopt__groups),
		cmocka_unit_test(plan_adopt__takes_over),
		cmocka_unit_test(plan_adopt__what_both_were_told),
		cmocka_unit_test(plan_adopt__hostile),
		cmocka_unit_test(plan_next_size__all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
