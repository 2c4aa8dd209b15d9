/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "path.h"
#include "text/sentence.h"

static void gid_text__as_people_write_it(void **state)
{
	const uint8_t ip4[16] = {[10] = 0xFF, [11] = 0xFF, 192, 0, 2, 1};
	const uint8_t ip6[16] = {0x20, 1, 0xd, 0xb8, [15] = 5};
	char text[GID_TEXT];

	assert_string_equal(gid_text(ip4, text), "192.0.2.1");
	assert_string_equal(gid_text(ip6, text), "2001:db8::5");
	assert_true(gid_is_ip4(ip4));
	assert_false(gid_is_ip4(ip6));
}

static void gid_is_link_local__edges(void **state)
{
	uint8_t gid[16] = {0xFE, 0x80};

	assert_true(gid_is_link_local(gid));
	gid[1] = 0xBF;
	assert_true(gid_is_link_local(gid));
	gid[1] = 0xC0;
	assert_false(gid_is_link_local(gid));
	gid[0] = 0xFF;
	gid[1] = 0x80;
	assert_false(gid_is_link_local(gid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid_text__as_people_write_it),
		cmocka_unit_test(gid_is_link_local__edges),
	};

	return cmocka_run_group_tests_name("sentence", tests, NULL, NULL);
}
