/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "drop.h"
#include "headers.h"
#include "opcode.h"
#include "trace.h"
#include "trace_text.h"

static void trace_json__is_one_object(void **state)
{
	const struct trace_event e = {.type = TRACE_RECEIVE,
		.time = 1005,
		.worker = 3,
		.code = OPC_RC | OP_ACKNOWLEDGE,
		.psn = 0xFFFFFF,
		.other = 9,
		.flags = TRACE_AETH,
		.id = NAK_PSN_SEQUENCE | (uint64_t)DROP_GHOST_ACK << TRACE_VERDICT_SHIFT};
	char line[TRACE_LINE + 1];

	line[trace_json(line, &e, 1000)] = '\0';
	assert_string_equal(line,
		"{\"ns\":5,\"worker\":3,\"event\":\"receive\",\"opcode\":\"RC_ACKNOWLEDGE\","
		"\"psn\":16777215,\"bytes\":0,\"syndrome\":\"NAK_PSN_SEQUENCE\",\"msn\":9,"
		"\"dropped\":\"ghost_ack\"}");
}

/* Goodput is that of the last 10 ms or more, however near to each other two events are. */
static void trace_csv__averages_goodput(void **state)
{
	static const struct {
		uint64_t us;
		uint32_t bytes;
		const char *line;
	} row[] = {
		{5, 1000, "0.000004000,17,5000,7000,0.000000,0,,0,2"},
		{6, 100000, "0.000005000,17,5000,7000,0.000000,0,,0,2"}, /* 800 Gb/s */
		{10001, 24000, "0.010000000,17,5000,7000,0.000000,0,,100000000,2"},
		{10002, 9000, "0.010001000,17,5000,7000,0.000000,0,,100000000,2"},
		{30001, 16000, "0.030000000,17,5000,7000,0.000000,0,,10000000,2"},
	};
	struct trace_goodput g = {.since = 1000};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct trace_event e = {.type = TRACE_RATE,
			.time = row[i].us * 1000,
			.id = 5ull << 32 | 7,
			.value = row[i].bytes,
			.other = 2};
		char line[TRACE_LINE + 1];

		line[trace_csv(line, &e, 17, 1000, &g)] = '\0';
		assert_string_equal(line, row[i].line);
	}
}

/* The longest of each kind fits its line, whatever is in it. */
static void trace_text__stays_in_its_line(void **state)
{
	for (unsigned type = 0; type < TRACE_TYPES; type++) {
		for (unsigned code = 0; code < 256; code++) {
			struct trace_event e;
			char line[TRACE_LINE];

			memset(&e, 0xFF, sizeof(e));
			e.type = (uint8_t)type;
			e.code = (uint8_t)code;
			e.id = UINT64_MAX >> 8 & ~(uint64_t)0xFFFF00; /* a reason that exists */
			assert_in_range(trace_text(line, &e, 0), 20, TRACE_LINE - 1);
			assert_in_range(trace_json(line, &e, 0), 20, TRACE_LINE - 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace_json__is_one_object),
		cmocka_unit_test(trace_csv__averages_goodput),
		cmocka_unit_test(trace_text__stays_in_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
