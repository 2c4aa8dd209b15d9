/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bits.h"
#include "suggest.h"

static const char *const known[] = {"socket", "socket-mode", "window", "workers", "share", "gid"};

static const char *nearest(const char *wrong)
{
	struct suggestion s;

	suggest_begin(&s, wrong);
	for (unsigned i = 0; i < ARRAY_SIZE(known); i++)
		suggest_try(&s, known[i]);
	return s.best;
}

static void suggest_try__finds_slips(void **state)
{
	assert_string_equal(nearest("widow"), "window");
	assert_string_equal(nearest("shaer"), "share"); /* exchanged: one slip */
	assert_string_equal(nearest("scoket_mode"), "socket-mode");
	assert_string_equal(nearest("worker"), "workers");
	assert_string_equal(nearest("gdi"), "gid");
}

static void suggest_try__another_word_is_no_slip(void **state)
{
	char longer[200];

	assert_null(nearest("congestion"));
	assert_null(nearest("xyz"));
	assert_null(nearest(""));
	for (unsigned i = 0; i < sizeof(longer) - 1; i++)
		longer[i] = 'a';
	longer[sizeof(longer) - 1] = '\0';
	assert_null(nearest(longer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(suggest_try__finds_slips),
		cmocka_unit_test(suggest_try__another_word_is_no_slip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
