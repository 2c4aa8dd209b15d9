/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "admin/form.h"

/* "arg|arg@first word of pairs", "-": it does not fit. */
static void fits(const char *form, const char *line, const char *want)
{
	struct admin_word arg[ADMIN_WORDS] = {{0}};
	char copy[256], got[256] = "";
	struct admin_words w;
	unsigned pairs;
	size_t len = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	admin_words(&w, copy);
	if (!admin_form_fits(form, &w, arg, &pairs)) {
		assert_string_equal("-", want);
		return;
	}
	for (unsigned i = 0; i < ADMIN_WORDS && arg[i].at; i++)
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%.*s", i ? "|" : "",
			(int)arg[i].len, arg[i].at);
	snprintf(got + len, sizeof(got) - len, "@%u", pairs);
	assert_string_equal(got, want);
	assert_string_equal(copy, line); /* it stays as it is */
}

static void admin_form_fits__words_and_arguments(void **state)
{
	fits("show qps", "show qps", "@2");
	fits("show qps", "\tshow  qps \r", "@2");
	fits("show qps", "show qp", "-");
	fits("show qps", "show qpsx", "-");
	fits("show qps", "show", "-");
	fits("show qps", "show qps all", "-");
	fits("show qps", "", "-");
	fits("migrate qp QPN to WORKER", "migrate qp 17 to 1", "17|1@5");
	fits("migrate qp QPN to WORKER", "migrate qp 17 to", "-");
	fits("migrate qp QPN to WORKER", "migrate qp 17 at 1", "-");
}

static void admin_form_fits__the_rest_of_the_line(void **state)
{
	fits("help LINE", "help", "@1");
	fits("help LINE", "help  show  qp ", "show  qp @3");
	fits("complete LINE", "complete 1 2 3 4 5 6 7 8 9 10 11 12 13 14",
		"1 2 3 4 5 6 7 8 9 10 11 12 13 14@12");
	fits("help LINE", "hel", "-");
}

static void admin_form_fits__pairs(void **state)
{
	fits("show qps ...", "show qps", "@2");
	fits("show qps ...", "show qps state err", "@2");
	fits("show x N ...", "show x 3 state", "3@3");
	fits("show qps ...", "show qps 1 2 3 4 5 6 7 8 9 10 11", "-"); /* too many words */
}

static void admin_words__where_the_line_ends(void **state)
{
	struct admin_words w;
	char line[] = "show q", blank[] = "show ", none[] = " \t";

	admin_words(&w, line);
	assert_true(w.n == 2 && w.open && !w.more);
	admin_words(&w, blank);
	assert_true(w.n == 1 && !w.open);
	admin_words(&w, none);
	assert_true(w.n == 0 && !w.open);
}

static void admin_form_begins__for_help(void **state)
{
	assert_true(admin_form_begins("show qp QPN", ""));
	assert_true(admin_form_begins("show qp QPN", "sh"));
	assert_true(admin_form_begins("show qps ...", "show qp"));
	assert_true(admin_form_begins("show qp QPN", "show qp 17"));
	assert_false(admin_form_begins("show qps ...", "show qp 17"));
	assert_false(admin_form_begins("show qp QPN", "show mr"));
	assert_false(admin_form_begins("version", "version 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(admin_form_fits__words_and_arguments),
		cmocka_unit_test(admin_form_fits__the_rest_of_the_line),
		cmocka_unit_test(admin_form_fits__pairs),
		cmocka_unit_test(admin_words__where_the_line_ends),
		cmocka_unit_test(admin_form_begins__for_help),
	};

	return cmocka_run_group_tests_name("admin_form", tests, NULL, NULL);
}
