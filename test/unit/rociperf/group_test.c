/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "group.h"

static union roci_gid parsed(const char *text)
{
	uint64_t high = 1, low = 1;

	if (!group_parse(text, &high, &low))
		fail_msg("'%s' is an address", text);
	return group_gid(high, low);
}

static void group_parse__both_families(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3},
			     v6[16] = {0xff, 0x1e, [12] = 0x01, 0x02, 0x03, 0x04};
	static const char *const bad[] = {
		"", "239.1.2", "239.1.2.3.4", "239.1.2.300", "ff1e", "lab7"};
	union roci_gid gid = parsed("239.1.2.3");
	uint64_t high, low;

	assert_memory_equal(gid.raw, v4, sizeof(v4));
	gid = parsed("::ffff:239.1.2.3");
	assert_memory_equal(gid.raw, v4, sizeof(v4));
	gid = parsed("ff1e::102:304");
	assert_memory_equal(gid.raw, v6, sizeof(v6));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(group_parse(bad[i], &high, &low));
}

static void group_is_multicast__ranges(void **state)
{
	static const char *const good[] = {"224.0.0.0", "239.255.255.255", "ff02::1", "ff1e::1"},
				 *const bad[] = {"223.255.255.255", "240.0.0.0", "::ff1e:1",
					 "fe80::1", "::"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const union roci_gid gid = parsed(good[i]);

		assert_true(group_is_multicast(&gid));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const union roci_gid gid = parsed(bad[i]);

		assert_false(group_is_multicast(&gid));
	}
}

static void group_text__as_parsed(void **state)
{
	static const char *const group[] = {"239.1.2.3", "ff1e::102:304"};
	char text[GROUP_TEXT];

	for (size_t i = 0; i < sizeof(group) / sizeof(group[0]); i++) {
		const union roci_gid gid = parsed(group[i]);

		assert_string_equal(group_text(&gid, text), group[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(group_parse__both_families),
		cmocka_unit_test(group_is_multicast__ranges),
		cmocka_unit_test(group_text__as_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
