/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "openmetrics.h"

static char *text;
static size_t size;

static void print(const char *families)
{
	json_t *list = json_loads(families, 0, NULL);
	FILE *f;

	free(text);
	f = open_memstream(&text, &size);
	assert_non_null(list);
	openmetrics_print(list, f);
	fclose(f);
	json_decref(list);
}

static void openmetrics_print__counters_and_gauges(void **state)
{
	print("[{\"name\": \"a_bytes\", \"type\": \"counter\", \"help\": \"some\", \"samples\": ["
	      "{\"labels\": {\"worker\": \"0\", \"reason\": \"x\"}, \"value\": 9007199254740993}]},"
	      "{\"name\": \"b\", \"type\": \"gauge\", \"help\": \"other\", \"samples\": ["
	      "{\"labels\": {}, \"value\": 7}]}]");
	assert_string_equal(text, "# TYPE a_bytes counter\n"
				  "# UNIT a_bytes bytes\n"
				  "# HELP a_bytes some\n"
				  "a_bytes_total{worker=\"0\",reason=\"x\"} 9007199254740993\n"
				  "# TYPE b gauge\n"
				  "# HELP b other\n"
				  "b 7\n"
				  "# EOF\n");
}

static void openmetrics_print__histograms_of_gauges(void **state)
{
	print("[{\"name\": \"a\", \"type\": \"gaugehistogram\", \"help\": \"some\", \"samples\": ["
	      "{\"labels\": {\"le\": \"1e+06\"}, \"value\": 1},"
	      "{\"labels\": {\"le\": \"+Inf\"}, \"value\": 3}]}]");
	assert_string_equal(text, "# TYPE a gaugehistogram\n"
				  "# HELP a some\n"
				  "a_bucket{le=\"1e+06\"} 1\n"
				  "a_bucket{le=\"+Inf\"} 3\n"
				  "# EOF\n");
}

static void openmetrics_print__escapes(void **state)
{
	print("[{\"name\": \"a\", \"type\": \"gauge\", \"help\": \"x\\ny\", \"samples\": ["
	      "{\"labels\": {\"netdev\": \"q\\\"b\\\\n\\n\"}, \"value\": 1}]}]");
	assert_string_equal(text, "# TYPE a gauge\n"
				  "# HELP a x\\ny\n"
				  "a{netdev=\"q\\\"b\\\\n\\n\"} 1\n"
				  "# EOF\n");
}

static void openmetrics_print__nothing_still_ends(void **state)
{
	print("[]");
	assert_string_equal(text, "# EOF\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openmetrics_print__counters_and_gauges),
		cmocka_unit_test(openmetrics_print__histograms_of_gauges),
		cmocka_unit_test(openmetrics_print__escapes),
		cmocka_unit_test(openmetrics_print__nothing_still_ends),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(text);
	return failed;
}
