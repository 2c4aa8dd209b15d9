/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "linkemu.h"

static void linkemu_parse__every_key(void **state)
{
	struct linkemu_config c;
	char why[128];

	assert_int_equal(linkemu_parse(&c,
				 "loss=0.01,dup=.5,reorder=1,corrupt=0,truncate=1e-3,nth=7,"
				 "mask=f0,delay=50us,seed=9,spread=hash",
				 why, sizeof(why)),
		0);
	assert_float_equal(c.impair.rate[IMPAIR_LOSE], 0.01, 1e-12);
	assert_float_equal(c.impair.rate[IMPAIR_DUPLICATE], 0.5, 1e-12);
	assert_float_equal(c.impair.rate[IMPAIR_REORDER], 1, 1e-12);
	assert_float_equal(c.impair.rate[IMPAIR_TRUNCATE], 0.001, 1e-12);
	assert_int_equal(c.impair.nth, 7);
	assert_int_equal(c.impair.mask, 0xF0);
	assert_int_equal(c.delay_ns, 50000);
	assert_int_equal(c.impair.seed, 9);
	assert_int_equal(c.spread, LINKEMU_HASH);
	assert_int_equal(linkemu_parse(&c, "spread=random", why, sizeof(why)), 0);
	assert_int_equal(c.spread, LINKEMU_RANDOM);
	assert_int_equal(
		linkemu_parse(&c, "rate=1.5G,queue=400K,red=5K:1M:0.01,mark=ingress", why, 128), 0);
	assert_int_equal(c.rate, 1500000000);
	assert_int_equal(c.aqm.limit, 400000);
	assert_int_equal(c.aqm.kmin, 5000);
	assert_int_equal(c.aqm.kmax, 1000000);
	assert_float_equal(c.aqm.pmax, 0.01, 1e-12);
	assert_true(c.aqm.ingress);
	assert_int_equal(linkemu_parse(&c, "rate=1000,mark=egress", why, sizeof(why)), 0);
	assert_false(c.aqm.ingress);
}

static void linkemu_fits__one_queue(void **state)
{
	struct linkemu_config c;
	char why[160];

	assert_int_equal(linkemu_parse(&c, "rate=1G", why, sizeof(why)), 0);
	assert_true(linkemu_fits(&c, 1, why, sizeof(why)));
	assert_false(linkemu_fits(&c, 2, why, sizeof(why)));
	assert_non_null(strstr(why, "the port has 2 receive queues"));
	assert_int_equal(linkemu_parse(&c, "delay=1us", why, sizeof(why)), 0);
	assert_true(linkemu_fits(&c, 2, why, sizeof(why)));
}

static void linkemu_parse__empty_is_a_perfect_link(void **state)
{
	const struct linkemu_config none = {0};
	struct linkemu_config c;
	char why[128];

	assert_int_equal(linkemu_parse(&c, "", why, sizeof(why)), 0);
	assert_memory_equal(&c, &none, sizeof(c));
}

static void linkemu_parse__names_what_is_wrong(void **state)
{
	static const struct {
		const char *text;
		const char *word;
	} bad[] = {
		{"los=0.1", "'los'"},
		{"loss", "'loss' needs a probability"},
		{"loss=", "'loss' needs a probability"},
		{"loss=1.1", "'loss' needs a probability"},
		{"loss=-0.1", "'loss' needs a probability"},
		{"loss=nan", "'loss' needs a probability"},
		{"dup=0.1x", "'dup'"},
		{"loss=0.1,delay=50", "'delay' needs a time"},
		{"delay=-1us", "'delay'"},
		{"delay=1h", "'delay'"},
		{"seed=x", "'seed'"},
		{"spread=all", "'spread' needs hash or random"},
		{"nth=-1", "'nth'"},
		{"nth=4294967296", "'nth'"},
		{"mask=10000000000000000", "'mask'"},
		{"=1", "''"},
		{"rate=0", "'rate' needs a rate"},
		{"rate=1Gb", "'rate' needs a rate"},
		{"rate=-1", "'rate'"},
		{"rate=1G,queue=x", "'queue' needs a number of bytes"},
		{"rate=1G,red=5K:200K", "'red' needs KMIN:KMAX:PMAX"},
		{"rate=1G,red=5K:5K:0.1", "KMIN below KMAX"},
		{"rate=1G,red=5K:200K:2", "'red'"},
		{"rate=1G,mark=both", "'mark' needs egress or ingress"},
		{"queue=400K", "need a rate"},
		{"red=5K:200K:0.1", "need a rate"},
		{"mark=ingress", "need a rate"},
	};
	struct linkemu_config c;
	char why[128];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(linkemu_parse(&c, bad[i].text, why, sizeof(why)), -EINVAL);
		if (!strstr(why, bad[i].word))
			fail_msg("%s: %s", bad[i].text, why);
	}
}

/* The text of a value is parsed as the same value. */
static void linkemu_text__is_parsed_back(void **state)
{
	static const char *const text[] = {"none", "loss=0.01", "delay=50000ns", "spread=hash",
		"rate=1000000000,queue=400000,red=5000:200000:0.01,mark=ingress",
		"loss=0.01,dup=0.5,corrupt=0.25,truncate=0.1,nth=7,mask=f0,seed=9,spread=random"};
	struct linkemu_config c;
	char why[128], out[256], few[8];

	for (unsigned i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		assert_int_equal(linkemu_parse(&c, i ? text[i] : "", why, sizeof(why)), 0);
		assert_string_equal(linkemu_text(&c, out, sizeof(out)), text[i]);
	}
	assert_string_equal(linkemu_text(&c, few, sizeof(few)), "loss=0.");
}

static void linkemu_holds__what_nobody_else_announces(void **state)
{
	static const struct {
		const char *text;
		bool holds;
	} row[] = {
		{"", false},
		{"loss=0.5,dup=0.5,corrupt=0.5,truncate=0.5,nth=3,mask=5,seed=7", false},
		{"delay=1us", true},
		{"reorder=0.1", true},
		{"spread=hash", true},
		{"spread=random", true},
		{"rate=1G", true},
	};
	struct linkemu_config cfg;
	char why[256];

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		assert_int_equal(linkemu_parse(&cfg, row[i].text, why, sizeof(why)), 0);
		if (linkemu_holds(&cfg) != row[i].holds)
			fail_msg("'%s'", row[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linkemu_parse__every_key),
		cmocka_unit_test(linkemu_parse__empty_is_a_perfect_link),
		cmocka_unit_test(linkemu_fits__one_queue),
		cmocka_unit_test(linkemu_holds__what_nobody_else_announces),
		cmocka_unit_test(linkemu_parse__names_what_is_wrong),
		cmocka_unit_test(linkemu_text__is_parsed_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
