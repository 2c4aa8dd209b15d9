/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bits.h"
#include "net/priority.h"

/* The text of a parsed value is parsed as the same value. */
static void priority_parse__there_and_back(void **state)
{
	static const char *const text[] = {"default", "sl3=5", "sl0-7=0", "dscp46=6,tag=yes",
		"sl1-3=7,sl7=0,dscp0-7=1,dscp46=6,dscp48-63=7,tag=yes", "tag=yes"};
	char back[PRIORITY_TEXT], why[256];
	struct priority_map m;

	for (unsigned i = 0; i < ARRAY_SIZE(text); i++) {
		assert_int_equal(priority_parse(&m, text[i], why, sizeof(why)), 0);
		if (i != 2) /* of which sl0=0 is usual */
			assert_string_equal(priority_text(&m, back), text[i]);
	}
	assert_int_equal(priority_parse(&m, "dscp8-15=1,dscp10=2,sl4=0", why, sizeof(why)), 0);
	assert_int_equal(priority_of(&m, 5, 9 << 2), 1);
	assert_int_equal(priority_of(&m, 5, 10 << 2), 2);
	assert_int_equal(priority_of(&m, 4, 16 << 2), 0);
	assert_int_equal(priority_of(&m, 5, 16 << 2), 5);
	assert_false(m.tag);
}

static void priority_parse__refuses(void **state)
{
	static const char *const text[] = {"", "sl8=1", "sl=1", "sl1", "sl1=8", "sl3-2=1", "sl-1=1",
		"dscp64=1", "dscp0-64=1", "dscp1=", "tag=maybe", "tag", "sl1=1,", ",sl1=1",
		"sl1=1;", "sl1=12", "pcp1=1", "defaults", "sl1=1,default",
		"sl99999999999999999999=1"};
	struct priority_map m;
	char why[256];

	for (unsigned i = 0; i < ARRAY_SIZE(text); i++) {
		why[0] = '\0';
		if (priority_parse(&m, text[i], why, sizeof(why)) != -EINVAL || !why[0])
			fail_msg("'%s' is taken", text[i]);
	}
}

/* Nothing that can be said is longer than the room for it. */
static void priority_text__longest(void **state)
{
	char text[PRIORITY_TEXT];
	struct priority_map m, back;
	char why[256];

	priority_init(&m);
	m.tag = true;
	for (unsigned i = 0; i < SL_COUNT; i++)
		m.of_sl[i] = (uint8_t)((i + 1) % 8);
	for (unsigned i = 0; i < DSCP_COUNT; i++)
		m.of_dscp[i] = i % 2 ? 3 : 4;
	assert_true(strlen(priority_text(&m, text)) < PRIORITY_TEXT - 1);
	assert_int_equal(priority_parse(&back, text, why, sizeof(why)), 0);
	assert_memory_equal(&back, &m, sizeof(m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(priority_parse__there_and_back),
		cmocka_unit_test(priority_parse__refuses),
		cmocka_unit_test(priority_text__longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
