/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "table.h"

static void prints(const char *json, const char *want)
{
	json_t *document = json_loads(json, 0, NULL);
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(document);
	table_print(document, f);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
	json_decref(document);
}

static void table_print__list(void **state)
{
	prints("{\"qps\":[{\"qpn\":7,\"state\":\"RTS\",\"peer\":\"\"},"
	       "{\"qpn\":123456,\"state\":\"R\",\"peer\":\"x\"}]}",
		"   QPN  STATE  PEER\n"
		"     7  RTS    -\n"
		"123456  R      x\n");
	prints("{\"qps\":[]}", "no qps\n");
}

/* Sentences stand below their rows. */
static void table_print__prose(void **state)
{
	prints("{\"l\":[{\"n\":1,\"why\":\"one two three four five six seven eight nine ten eleven "
	       "twelve "
	       "thirteen fourteen fifteen sixteen\",\"z\":\"x\"},{\"n\":22,\"why\":\"short\","
	       "\"z\":\"yy\"}]}",
		" N  Z\n"
		" 1  x\n"
		"    one two three four five six seven eight nine ten eleven twelve thirteen "
		"fourteen fifteen\n"
		"    sixteen\n"
		"22  yy\n"
		"    short\n");
	prints("{\"l\":[{\"n\":1,\"why\":\"\"},{\"n\":2,\"why\":\"one two three four five six "
	       "seven eight nine ten eleven twelve thirteen\"}]}",
		"N\n"
		"1\n"
		"2\n"
		"    one two three four five six seven eight nine ten eleven twelve thirteen\n");
}

/* A list without blanks breaks between its members. */
static void table_print__list_of_settings(void **state)
{
	prints("{\"l\":[{\"n\":1,\"cc\":\"dcqcn,np_min_time_between_cnps=200,rp_time_reset=1000,"
	       "rp_dce_tcp_rtt=250,rp_threshold=5,rp_ai_rate=1\"}]}",
		"N\n"
		"1\n"
		"    dcqcn,np_min_time_between_cnps=200,rp_time_reset=1000,rp_dce_tcp_rtt=250,"
		"rp_threshold=5,\n"
		"    rp_ai_rate=1\n");
}

/* Of another version, or wrong: still a table. */
static void table_print__odd_rows(void **state)
{
	prints("{\"l\":[{\"a\":1,\"b\":true},{\"b\":false,\"c\":3},7,{\"a\":[1],\"b\":null}]}",
		"A  B\n"
		"1  yes\n"
		"-  no\n"
		"-  -\n"
		"-  -\n");
	prints("{\"l\":[7]}", "\n\n");
	prints("{\"done\":\"reset counters\"}", "done: reset counters\n");
	prints("{}", "");
}

static void table_print__object(void **state)
{
	prints("{\"o\":{\"short\":1,\"longest\":12345}}", "short        1\n"
							  "longest  12345\n");
	prints("{\"o\":{\"name\":\"x\",\"n\":12,\"r\":1.5}}", "name  x\n"
							      "n     12\n"
							      "r     1.5\n");
}

static void table_print__bytes_in_units(void **state)
{
	prints("{\"o\":{\"bytes\":1023,\"mr_bytes\":1536,\"length\":1048576,\"rx_bytes\":-1}}",
		"bytes        1023\n"
		"mr_bytes  1.5 KiB\n"
		"length      1 MiB\n"
		"rx_bytes       -1\n");
	prints("{\"l\":[{\"bytes\":1024},{\"bytes\":9223372036854775807}]}", "        BYTES\n"
									     "        1 KiB\n"
									     "8388608.0 TiB\n");
}

static void table_print_rates__behind_what_grew(void **state)
{
	json_t *document = json_loads("{\"c\":{\"a\":1,\"bb\":20},\"l\":[]}", 0, NULL);
	json_t *rates = json_loads("{\"c\":{\"bb\":2.5}}", 0, NULL);
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	table_print_rates(document, rates, f);
	fclose(f);
	assert_string_equal(text, "c:\na    1\nbb  20  +2.5/s\n\nl:\nno l\n");
	free(text);
	json_decref(document);
	json_decref(rates);
}

static void table_print__sections(void **state)
{
	prints("{\"o\":{\"n\":1},\"l\":[],\"m\":[{\"c\":-2}]}",
		"o:\nn  1\n\nl:\nno l\n\nm:\n C\n-2\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_print__list),
		cmocka_unit_test(table_print__prose),
		cmocka_unit_test(table_print__list_of_settings),
		cmocka_unit_test(table_print__odd_rows),
		cmocka_unit_test(table_print__object),
		cmocka_unit_test(table_print__bytes_in_units),
		cmocka_unit_test(table_print_rates__behind_what_grew),
		cmocka_unit_test(table_print__sections),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
