/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "address.h"

/* proves GID-04 */
static void gid_of_text__ipv4_is_mapped(void **state)
{
	static const uint8_t ip4[16] = {[10] = 0xFF, 0xFF, 192, 0, 2, 10};
	static const uint8_t ip6[16] = {0x20, 0x01, 0x0D, 0xB8, [15] = 0x0A};
	uint8_t gid[16];

	(void)state;
	assert_true(gid_of_text(gid, "192.0.2.10"));
	assert_memory_equal(gid, ip4, 16);
	assert_true(gid_of_text(gid, "::ffff:192.0.2.10"));
	assert_memory_equal(gid, ip4, 16);
	assert_true(gid_of_text(gid, "2001:db8::a"));
	assert_memory_equal(gid, ip6, 16);
	assert_false(gid_of_text(gid, "192.0.2"));
	assert_false(gid_of_text(gid, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid_of_text__ipv4_is_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
