/* SPDX-License-Identifier: BSD-3-Clause */
/* Every row is derived once more, from the opcode's name alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "headers.h"
#include "opcode.h"

/* IBA 9.2.1 Table 35, IBTA 1.5: bits 4:0 (BTH-17). */
static const char *const ops[32] = {
	[0x00] = "SEND_FIRST",
	[0x01] = "SEND_MIDDLE",
	[0x02] = "SEND_LAST",
	[0x03] = "SEND_LAST_WITH_IMM",
	[0x04] = "SEND_ONLY",
	[0x05] = "SEND_ONLY_WITH_IMM",
	[0x06] = "WRITE_FIRST",
	[0x07] = "WRITE_MIDDLE",
	[0x08] = "WRITE_LAST",
	[0x09] = "WRITE_LAST_WITH_IMM",
	[0x0A] = "WRITE_ONLY",
	[0x0B] = "WRITE_ONLY_WITH_IMM",
	[0x0C] = "READ_REQUEST",
	[0x0D] = "READ_RESP_FIRST",
	[0x0E] = "READ_RESP_MIDDLE",
	[0x0F] = "READ_RESP_LAST",
	[0x10] = "READ_RESP_ONLY",
	[0x11] = "ACKNOWLEDGE",
	[0x12] = "ATOMIC_ACK",
	[0x13] = "CMP_SWAP",
	[0x14] = "FETCH_ADD",
	[0x16] = "SEND_LAST_WITH_INV",
	[0x17] = "SEND_ONLY_WITH_INV",
	[0x1C] = "FLUSH",
	[0x1D] = "ATOMIC_WRITE",
};

static const char *class_name(unsigned code)
{
	switch (code & OPC_CLASS_MASK) {
	case OPC_RC:
		return "RC";
	case OPC_UC:
		return (code & OPC_OP_MASK) <= OP_WRITE_ONLY_WITH_IMM ? "UC" : NULL;
	case OPC_UD:
		return code == 0x64 || code == 0x65 ? "UD" : NULL;
	case OPC_XRC:
		return "XRC";
	default:
		return NULL;
	}
}

static bool has(const struct opcode *op, const char *part)
{
	return strstr(op->name, part) != NULL;
}

static bool is_op(const struct opcode *op, const char *name)
{
	const char *under = strchr(op->name, '_');

	return under && !strcmp(under + 1, name);
}

/* proves BTH-17 */
static void opcode_row__name_and_code(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct opcode *op = opcode_row((uint8_t)code);
		const char *cls = class_name(code);
		const char *name = ops[code & OPC_OP_MASK];
		char expected[40];

		if (code == 0x81)
			strcpy(expected, "CNP");
		else if (cls && name)
			snprintf(expected, sizeof(expected), "%s_%s", cls, name);
		else
			expected[0] = '\0';
		assert_string_equal(op->name ? op->name : "", expected);
		if (op->hdr_len)
			assert_int_equal(op->code, code);
	}
}

/* proves BTH-17 */
static void opcode_row__reserved(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct opcode *op = opcode_row((uint8_t)code);
		unsigned cls = code & OPC_CLASS_MASK;
		bool usable = cls == OPC_RC || cls == OPC_UC || cls == OPC_UD || cls == OPC_XRC;

		if (op->name)
			continue;
		assert_int_equal(op->kind, KIND_NONE);
		assert_int_equal(op->hdr_len, usable ? BTH_HLEN : 0);
		assert_int_equal(op->payload, usable);
		assert_false(op->request || op->response || op->recv_wqe);
	}
}

static void opcode_row__place_and_direction(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct opcode *op = opcode_row((uint8_t)code);
		bool resp, part;

		if (!op->name)
			continue;
		resp = has(op, "READ_RESP") || has(op, "ACKNOWLEDGE") || has(op, "ATOMIC_ACK");
		part = has(op, "FIRST") || has(op, "MIDDLE") || has(op, "LAST");
		assert_int_equal(op->first, has(op, "FIRST") || !part);
		assert_int_equal(op->last, has(op, "LAST") || !part);
		assert_int_equal(op->response, resp);
		assert_int_equal(op->request, !resp && code != OPCODE_CNP);
		assert_int_equal(
			op->payload, has(op, "SEND") || has(op, "WRITE") || has(op, "READ_RESP"));
		assert_int_equal(op->recv_wqe, has(op, "SEND") || has(op, "WITH_IMM"));
	}
}

static unsigned kind_of(const struct opcode *op)
{
	static const struct {
		const char *part;
		enum opcode_kind kind;
	} kinds[] = {
		/* the longer name first */
		{"ATOMIC_WRITE", KIND_ATOMIC_WRITE},
		{"ATOMIC_ACK", KIND_ATOMIC_ACK},
		{"SEND", KIND_SEND},
		{"WRITE", KIND_WRITE},
		{"READ_RESP", KIND_READ_RESP},
		{"READ_REQUEST", KIND_READ},
		{"ACKNOWLEDGE", KIND_ACK},
		{"CMP_SWAP", KIND_ATOMIC},
		{"FETCH_ADD", KIND_ATOMIC},
		{"FLUSH", KIND_FLUSH},
		{"CNP", KIND_CNP},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (has(op, kinds[i].part))
			return kinds[i].kind;
	return KIND_NONE;
}

static void opcode_row__kind(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct opcode *op = opcode_row((uint8_t)code);

		if (op->name)
			assert_int_equal(op->kind, kind_of(op));
	}
}

/* proves BTH-18, BTH-22, BTH-23 */
static void opcode_row__extended_headers(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct opcode *op = opcode_row((uint8_t)code);

		if (!op->name)
			continue;
		assert_int_equal(op->xrceth, !strncmp(op->name, "XRC_", 4) && op->request);
		assert_int_equal(op->deth, !strncmp(op->name, "UD_", 3));
		assert_int_equal(op->feth, is_op(op, "FLUSH"));
		assert_int_equal(op->reth, has(op, "WRITE_FIRST") || has(op, "WRITE_ONLY") ||
						   is_op(op, "READ_REQUEST") ||
						   is_op(op, "FLUSH") || is_op(op, "ATOMIC_WRITE"));
		assert_int_equal(op->atomiceth, is_op(op, "CMP_SWAP") || is_op(op, "FETCH_ADD"));
		assert_int_equal(op->aeth, op->response && !has(op, "MIDDLE"));
		assert_int_equal(op->atomicack, is_op(op, "ATOMIC_ACK"));
		assert_int_equal(op->immdt, has(op, "WITH_IMM"));
		assert_int_equal(op->ieth, has(op, "WITH_INV"));
	}
}

/* proves BTH-18, BTH-23, BTH-25 */
static void opcode_row__header_length(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct opcode *op = opcode_row((uint8_t)code);

		if (!op->name)
			continue;
		assert_int_equal(op->hdr_len, 12 + 4 * op->xrceth + 8 * op->deth + 4 * op->feth +
						      16 * op->reth + 28 * op->atomiceth +
						      4 * op->aeth + 8 * op->atomicack +
						      4 * op->immdt + 4 * op->ieth);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcode_row__name_and_code),
		cmocka_unit_test(opcode_row__reserved),
		cmocka_unit_test(opcode_row__place_and_direction),
		cmocka_unit_test(opcode_row__kind),
		cmocka_unit_test(opcode_row__extended_headers),
		cmocka_unit_test(opcode_row__header_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
