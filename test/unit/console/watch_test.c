/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "watch.h"

static void parses(const char *line, double seconds, unsigned count, const char *command)
{
	struct watch w = {0};
	char why[ASK_WHY];

	assert_int_equal(watch_parse(&w, line, why), 0);
	assert_true(w.seconds == seconds);
	assert_int_equal(w.count, count);
	assert_string_equal(w.command, command);
}

static void watch_parse__reads(void **state)
{
	parses(" show counters", 2, 0, "show counters");
	parses(" 1 show counters", 1, 0, "show counters");
	parses(" 0.5 --count 3  show qps state err", 0.5, 3, "show qps state err");
	parses("--count 3 7 show drops", 7, 3, "show drops");
}

static void refused(const char *line)
{
	struct watch w = {0};
	char why[ASK_WHY] = "";

	assert_int_equal(watch_parse(&w, line, why), -1);
	assert_true(*why);
}

static void watch_parse__refuses(void **state)
{
	refused("");
	refused(" 2");
	refused(" 0 show qps");
	refused(" 0.01 show qps");
	refused(" 1e9 show qps");
	refused(" 2x show qps");
	refused(" --count");
	refused(" --count 0 show qps");
	refused(" --count -1 show qps");
	refused(" --count x show qps");
}

static void rates_are(const char *before, const char *now, const char *want)
{
	json_t *b = json_loads(before, 0, NULL), *n = json_loads(now, 0, NULL);
	json_t *w = json_loads(want, 0, NULL);
	json_t *rates = watch_rates(b, n, 2);

	assert_true(json_equal(rates, w));
	json_decref(b);
	json_decref(n);
	json_decref(w);
	json_decref(rates);
}

static void watch_rates__of_what_grew(void **state)
{
	rates_are("{\"c\":{\"a\":1,\"b\":5,\"s\":\"x\",\"n\":null}}",
		"{\"c\":{\"a\":4,\"b\":5,\"s\":\"y\",\"n\":7},\"l\":[{\"a\":1}]}",
		"{\"c\":{\"a\":1.5}}");
	rates_are("{\"c\":{\"a\":9}}", "{\"c\":{\"a\":3}}", "{\"c\":{}}"); /* was reset */
	rates_are("{}", "{\"c\":{\"a\":3}}", "{\"c\":{}}");
}

static void watch_rates__first_time(void **state)
{
	json_t *now = json_loads("{\"c\":{\"a\":3}}", 0, NULL);
	json_t *rates = watch_rates(NULL, now, 1e9);

	assert_int_equal(json_object_size(json_object_get(rates, "c")), 0);
	json_decref(now);
	json_decref(rates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch_parse__reads),
		cmocka_unit_test(watch_parse__refuses),
		cmocka_unit_test(watch_rates__of_what_grew),
		cmocka_unit_test(watch_rates__first_time),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
