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

static void mac_of_text__six_bytes(void **state)
{
	static const uint8_t want[6] = {0x02, 0, 0x5E, 0xAB, 0xCD, 0x0B};
	static const char *const bad[] = {"", "02:00:5e:ab:cd",
		"02:00:5e:ab:cd:", "02:00:5e:ab:cd:0b:", "02:00:5e:ab:cd:0b ", "-1:+2: 3:0x:0:b",
		"02:00:5e:ab:cd:0x0b", "02:00:5e:ab:cd:100", "02:00:5e:ab:cd:00b",
		"02-00-5e-ab-cd-0b", "02:00:5e:ab:cd:zz"};
	uint8_t mac[6];

	(void)state;
	assert_true(mac_of_text(mac, "02:00:5e:ab:cd:0b"));
	assert_memory_equal(mac, want, 6);
	assert_true(mac_of_text(mac, "2:0:5E:AB:CD:b"));
	assert_memory_equal(mac, want, 6);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (mac_of_text(mac, bad[i]))
			fail_msg("'%s' was accepted", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gid_of_text__ipv4_is_mapped),
		cmocka_unit_test(mac_of_text__six_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
