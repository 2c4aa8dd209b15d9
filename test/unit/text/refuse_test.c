/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "refuse.h"

static void refuse__writes_a_sentence_and_returns_the_error(void **state)
{
	char why[SENTENCE_MAX];

	(void)state;
	assert_int_equal(refuse(why, -22, "port %u needs a name: %s", 3, "say name=lan"), -22);
	assert_string_equal(why, "port 3 needs a name: say name=lan");
}

static void refuse__truncates(void **state)
{
	struct {
		char why[SENTENCE_MAX];
		char after;
	} s = {.after = '!'};

	(void)state;
	assert_int_equal(refuse(s.why, -7, "%*s", SENTENCE_MAX + 10, "x"), -7);
	assert_int_equal(strlen(s.why), SENTENCE_MAX - 1);
	assert_int_equal(s.after, '!');
}

static void refuse_in__fits_its_room(void **state)
{
	char why[9] = "........";

	(void)state;
	assert_int_equal(refuse_in(why, 5, -1, "%s", "abcdefgh"), -1);
	assert_memory_equal(why, "abcd\0...", 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuse__writes_a_sentence_and_returns_the_error),
		cmocka_unit_test(refuse__truncates),
		cmocka_unit_test(refuse_in__fits_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
