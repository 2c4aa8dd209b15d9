/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates of queue pairs from two looks at their PSNs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "top.h"

static struct top t;

static int setup(void **state)
{
	t = (struct top){0};
	return 0;
}

static int teardown(void **state)
{
	top_free(&t);
	return 0;
}

static json_t *row(int qpn, int session, int sent, int expected, int cnps)
{
	return json_pack("{s:i,s:i,s:i,s:i,s:i,s:s,s:s,s:s,s:i}", "qpn", qpn, "session", session,
		"sent_psn", sent, "expected_psn", expected, "cnps_handled", cnps, "program", "p",
		"peer", "192.0.2.2", "state", "RTS", "limit_mbps", 40);
}

/* Takes ownership of the rows. */
static void look(double now, json_t *a, json_t *b)
{
	json_t *rows = json_array(), *document = json_object();

	json_array_append_new(rows, a);
	if (b)
		json_array_append_new(rows, b);
	json_object_set_new(document, "traffic", rows);
	assert_true(top_look(&t, document, now));
	json_decref(document);
}

static void top__shows_the_fastest_first(void **state)
{
	look(10, row(1, 1, 100, 0, 0), row(2, 1, 100, 50, 7));
	assert_int_equal(t.n, 2);
	assert_true(t.qp[0].tx == 0 && t.qp[1].tx == 0);
	look(12, row(1, 1, 110, 0, 0), row(2, 1, 300, 90, 11));
	assert_int_equal(t.qp[0].qpn, 2);
	assert_true(t.qp[0].tx == 100 && t.qp[0].rx == 20 && t.qp[0].cnps_s == 2);
	assert_true(t.qp[1].tx == 5 && t.qp[1].rx == 0 && t.qp[1].cnps_s == 0);
	assert_string_equal(t.qp[0].peer, "192.0.2.2");
	assert_true(t.qp[0].limit_mbps == 40);
}

/* PSNs have 24 bits; a QP that starts anew has others, and one of another session is another. */
static void top__knows_psns(void **state)
{
	look(1, row(1, 1, 0xFFFFFF, 0, 5), NULL);
	look(2, row(1, 1, 9, 0, 5), NULL);
	assert_true(t.qp[0].tx == 10);
	look(3, row(1, 1, 5, 0, 2), NULL);
	assert_true(t.qp[0].tx == 0 && t.qp[0].cnps_s == 0);
	look(4, row(1, 2, 500, 0, 2), NULL);
	assert_true(t.qp[0].tx == 0);
	look(5, row(3, 2, 500, 0, 2), NULL);
	assert_int_equal(t.n, 1);
}

static void top__draws_sparklines(void **state)
{
	char line[TOP_HISTORY * 3 + 1];

	look(0, row(1, 1, 0, 0, 0), NULL);
	top_sparkline(&t.qp[0], TOP_HISTORY, false, line);
	assert_string_equal(line, "                ");
	look(1, row(1, 1, 10, 0, 0), NULL);
	look(2, row(1, 1, 90, 0, 0), NULL);
	look(3, row(1, 1, 130, 0, 0), NULL);
	top_sparkline(&t.qp[0], TOP_HISTORY, false, line);
	assert_string_equal(line, "             184");
	top_sparkline(&t.qp[0], TOP_HISTORY, true, line);
	assert_string_equal(line, "             \xE2\x96\x81\xE2\x96\x88\xE2\x96\x84");
}

/* A document that does not answer `show traffic` has no rows. */
static void top__survives_other_documents(void **state)
{
	json_t *document = json_pack("{s:s}", "traffic", "none");

	assert_true(top_look(&t, document, 1));
	assert_int_equal(t.n, 0);
	json_decref(document);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(top__shows_the_fastest_first),
		T(top__knows_psns),
		T(top__draws_sparklines),
		T(top__survives_other_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
