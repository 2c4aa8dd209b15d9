/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults as words: what is read is written the same, and what makes no sense is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "inject.h"
#include "text/fault.h"

static unsigned kind_of(const char *name, size_t len)
{
	for (unsigned i = 1; i < ABI_FAULT_KINDS; i++)
		if (strlen(inject_names[i]) == len && !strncmp(inject_names[i], name, len))
			return i;
	return 0;
}

/* "KIND WORDS", as after `inject qp QPN`. */
static int parse(struct abi_fault *f, const char *line, char why[ABI_SENTENCE_MAX])
{
	size_t len = strcspn(line, " ");

	return fault_parse(f, kind_of(line, len), line + len, why);
}

/* The fault that @p line describes, in words: its effect, and on which packets. */
static const char *told(const char *line)
{
	static char text[2 * FAULT_TEXT_MAX];
	char what[FAULT_TEXT_MAX], where[FAULT_TEXT_MAX], why[ABI_SENTENCE_MAX] = "";
	struct abi_fault f;

	if (parse(&f, line, why))
		fail_msg("%s: %s", line, why);
	snprintf(text, sizeof(text), "%s | %s", fault_what(&f, what), fault_where(&f, where));
	return text;
}

static void fault_parse__usual(void **state)
{
	assert_string_equal(told("drop"), "drop | tx count=1");
	assert_string_equal(told("duplicate"), "duplicate | tx count=1");
	assert_string_equal(told("reorder"), "reorder packets=1 time=10ms | tx count=1");
	assert_string_equal(told("rnr"), "rnr | rx count=1");
	assert_string_equal(told("icrc"), "icrc mask=0x1 | tx count=1");
	assert_string_equal(told("corrupt"), "corrupt at=payload+0 mask=0x1 | tx count=1");
}

static void fault_parse__values(void **state)
{
	assert_string_equal(told("delay time=50us"), "delay time=50us | tx count=1");
	assert_string_equal(told("delay time=1500ns"), "delay time=1500ns | tx count=1");
	assert_string_equal(told("delay time=10s"), "delay time=10s | tx count=1");
	assert_string_equal(told("rnr timer=0"), "rnr timer=0 | rx count=1");
	assert_string_equal(told("corrupt at=8 mask=0xff"), "corrupt at=8 mask=0xff | tx count=1");
	assert_string_equal(
		told("corrupt at=payload+9"), "corrupt at=payload+9 mask=0x1 | tx count=1");
	assert_string_equal(told("ecn to=ce"), "ecn to=ce | tx count=1");
	assert_string_equal(told("ecn to=1"), "ecn to=ect1 | tx count=1");
	assert_string_equal(told("syndrome to=remote_access"), "syndrome to=0x62 | tx count=1");
	assert_string_equal(told("msn add=-1"), "msn add=-1 | tx count=1");
	assert_string_equal(told("psn add=8388607"), "psn add=8388607 | tx count=1");
	assert_string_equal(told("psn to=0xffffff"), "psn to=16777215 | tx count=1");
	assert_string_equal(told("opcode to=rc_send_only"), "opcode to=RC_SEND_ONLY | tx count=1");
	assert_string_equal(told("opcode to=0x1f"), "opcode to=0x1f | tx count=1");
	assert_string_equal(told("pkey to=0x8001"), "pkey to=0x8001 | tx count=1");
}

static void fault_parse__which_packets(void **state)
{
	assert_string_equal(told("drop rx write read first psn=7 nth=2 every=3 count=all"),
		"drop | rx write read first psn=7 nth=2 every=3 count=all");
	assert_string_equal(told("drop psn=16777215-3"), "drop | tx psn=16777215-3 count=1");
	assert_string_equal(told("drop send write read atomic flush atomic_write"),
		"drop | tx request count=1");
	assert_string_equal(
		told("drop probability=0.25 seed=9"), "drop | tx count=1 probability=0.25 seed=9");
}

static void fault_parse__reads_what_it_writes(void **state)
{
	static const char *const lines[] = {"delay time=77us rx read_response last count=3",
		"msn add=-2 tx ack nth=4", "corrupt at=payload+1 mask=0x80 tx middle count=all",
		"syndrome to=0x7f rx nak rnr_nak every=2", "psn to=5 tx response psn=1-9"};

	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		char first[2 * FAULT_TEXT_MAX], again[2 * FAULT_TEXT_MAX];

		snprintf(first, sizeof(first), "%s", told(lines[i]));
		snprintf(again, sizeof(again), "%s", first);
		memmove(strchr(again, '|'), strchr(again, '|') + 2,
			strlen(strchr(again, '|') + 2) + 1);
		assert_string_equal(told(again), first);
	}
}

static void fault_parse__refuses(void **state)
{
	static const char *const lines[] = {"delay", "delay time=0ms", "delay time=5",
		"delay time=11s", "delay time=ms", "rnr tx", "rnr timer=32", "qpn rx to=5", "ecn",
		"ecn to=4", "ecn to=blue", "syndrome to=256", "msn to=0x1000000", "msn add=x",
		"opcode to=256", "pkey to=0x10000", "icrc mask=0", "corrupt mask=256",
		"corrupt at=4288", "corrupt at=payload-1", "reorder packets=0",
		"reorder packets=128", "drop psn=0x1000000", "drop psn=", "drop psn=1-",
		"drop nth=0", "drop every=0", "drop count=0", "drop probability=0",
		"drop probability=1.1", "drop probability=nan", "drop seed=-1", "drop time=1ms",
		"drop sideways", "drop to=5"};

	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		char why[ABI_SENTENCE_MAX] = "";
		struct abi_fault f;

		if (parse(&f, lines[i], why) != -EINVAL || !why[0])
			fail_msg("%s is taken", lines[i]);
	}
}

/* All fields from a program are checked: none indexes a table unseen. */
static void fault_check__each_field(void **state)
{
	const struct abi_fault good = {
		.kind = ABI_FAULT_DROP, .nth = 1, .every = 1, .chance = ABI_FAULT_ALWAYS};
	char why[ABI_SENTENCE_MAX];
	struct abi_fault f = good;

	assert_int_equal(fault_check(&good, why), 0);
#define BAD(member, value)  \
	f = good;           \
	f.member = (value); \
	assert_int_equal(fault_check(&f, why), -EINVAL)
	BAD(kind, 0);
	BAD(kind, ABI_FAULT_KINDS);
	BAD(kind, 255);
	BAD(direction, 2);
	BAD(flags, ABI_FAULT_FLAGS + 1);
	BAD(packets, 1u << 11);
	BAD(packets, 1u << 31);
	BAD(psn_first, 1u << 24);
	BAD(psn_last, UINT32_MAX);
	BAD(nth, 0);
	BAD(every, 0);
	BAD(chance, 0);
	BAD(chance, ABI_FAULT_ALWAYS + 1);
	BAD(value, 1);
#undef BAD
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault_parse__usual),
		cmocka_unit_test(fault_parse__values),
		cmocka_unit_test(fault_parse__which_packets),
		cmocka_unit_test(fault_parse__reads_what_it_writes),
		cmocka_unit_test(fault_parse__refuses),
		cmocka_unit_test(fault_check__each_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
