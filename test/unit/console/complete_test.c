/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "complete.h"

static void inserts(const char *json, size_t typed, const char *want)
{
	json_t *offers = json_loads(json, 0, NULL);
	char text[16] = "";
	size_t len = complete_text(offers, typed, text, sizeof(text));

	assert_int_equal(len, strlen(want));
	if (len)
		assert_string_equal(text, want);
	json_decref(offers);
}

static void complete_text__what_all_begin_with(void **state)
{
	inserts("[{\"word\":\"show\"}]", 0, "show ");
	inserts("[{\"word\":\"show\"}]", 2, "ow ");
	inserts("[{\"word\":\"show\"}]", 4, " ");
	inserts("[{\"word\":\"qps\"},{\"word\":\"qpx\"}]", 1, "p");
	inserts("[{\"word\":\"qps\"},{\"word\":\"qpx\"}]", 2, "");
	inserts("[{\"word\":\"qp\"},{\"word\":\"qps\"}]", 1, "p");
	inserts("[{\"word\":\"qp\"},{\"word\":\"qps\"}]", 2, "");
}

/* An empty word says only what is wanted; a daemon of another version may say anything. */
static void complete_text__nothing_to_insert(void **state)
{
	inserts("[]", 0, "");
	inserts("[{\"word\":\"\",\"help\":\"PACKETS: a number\"}]", 0, "");
	inserts("[{\"word\":7}]", 0, "");
	inserts("[7]", 0, "");
	inserts("[{\"word\":\"a\"}]", 3, "");
	inserts("[{\"word\":\"0123456789abcdef\"}]", 0, ""); /* no room */
	inserts("[{\"word\":\"0123456789abcd\"}]", 0, "0123456789abcd ");
}

static void complete_word__where(void **state)
{
	assert_int_equal(complete_word(""), 0);
	assert_int_equal(complete_word("sho"), 0);
	assert_int_equal(complete_word("show "), 5);
	assert_int_equal(complete_word("show q"), 5);
	assert_int_equal(complete_word(" \tx"), 2);
}

static void prints(const char *json, const char *want)
{
	json_t *offers = json_loads(json, 0, NULL);
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	complete_print(offers, f);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
	json_decref(offers);
}

static void complete_print__columns_or_help(void **state)
{
	prints("[]", "");
	prints("[{\"word\":\"1\",\"help\":\"a QP\"},{\"word\":\"22\",\"help\":\"a QP\"}]",
		"1   22\n");
	prints("[{\"word\":\"qp\",\"help\":\"one\"},{\"word\":\"qps\",\"help\":\"all\"}]",
		"qp   one\nqps  all\n");
	prints("[{\"word\":\"\",\"help\":\"PACKETS: a number\"}]", "PACKETS: a number\n");
}

static void complete_print__many(void **state)
{
	json_t *offers = json_array();
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (unsigned i = 0; i < COMPLETE_SHOWN + 7; i++)
		json_array_append_new(offers, json_pack("{s:s}", "word", "1234567"));
	complete_print(offers, f);
	fclose(f);
	assert_non_null(strstr(text, "... and 7 more\n"));
	free(text);
	json_decref(offers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_text__what_all_begin_with),
		cmocka_unit_test(complete_text__nothing_to_insert),
		cmocka_unit_test(complete_word__where),
		cmocka_unit_test(complete_print__columns_or_help),
		cmocka_unit_test(complete_print__many),
	};

	return cmocka_run_group_tests_name("complete", tests, NULL, NULL);
}
