/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <grp.h>
#include <cmocka.h>
#include "loop/listen.h"

static void listen_group__is_a_name_or_a_number(void **state)
{
	const struct group *root = getgrgid(0);
	gid_t gid = 77;

	(void)state;
	assert_int_equal(listen_group("4711", &gid), 0);
	assert_int_equal(gid, 4711);
	assert_non_null(root);
	assert_int_equal(listen_group(root->gr_name, &gid), 0);
	assert_int_equal(gid, 0);
}

/* chown() takes -1 for "leave it": the socket would stay root's. */
static void listen_group__minus_one_is_none(void **state)
{
	static const char *const none[] = {
		"-1", "4294967295", "4294967296", "", " 1", "1x", "no such group"};
	gid_t gid;

	(void)state;
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_true(listen_group(none[i], &gid) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listen_group__is_a_name_or_a_number),
		cmocka_unit_test(listen_group__minus_one_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
