/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of the interop peers must be able to fail: these tests break bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan.h"
#include "xport.h"

#define MAX_LEN 5000

static const struct batch batch = {
	.kind = OP_WRITE,
	.count = 300,
	.seed = 42,
	.min_len = 0,
	.max_len = MAX_LEN,
	.mtu = 1024,
	.target_len = 4 * MAX_LEN,
};

/* peer_protocol.md promises these to programs that do not share plan.c. */
static void plan_random__is_splitmix64(void **state)
{
	assert_true(plan_random(0, 0) == 0xe220a8397b1dcdafull);
	assert_true(plan_random(0, 1) == 0x6e789e6aa1b965f4ull);
}

static void plan_op__within_bounds_and_at_edges(void **state)
{
	unsigned edges = 0, empty = 0;
	struct op op;

	for (uint32_t i = 0; i < batch.count; i++) {
		plan_op(&batch, i, &op);
		assert_in_range(op.len, batch.min_len, batch.max_len);
		assert_true((uint64_t)op.target_off + op.len <= batch.target_len);
		edges += (op.len + 1) % batch.mtu <= 2 && op.len > 1;
		empty += op.len == 0;
	}
	assert_true(edges > batch.count / 4);
	assert_true(empty > 0);
}

static void op_kind__what_each_takes(void **state)
{
	assert_int_equal(op_kind_find("send_inv"), OP_SEND_INV);
	for (unsigned k = 0; k < OP_KINDS; k++) {
		const char *name = op_kind_name(k);

		assert_int_equal(op_kind_find(name), k);
		assert_int_equal(op_kind_is_send(k), !strncmp(name, "send", 4));
		assert_int_equal(op_kind_has_imm(k), strstr(name, "_imm") != NULL);
		assert_int_equal(op_kind_takes_recv(k), op_kind_is_send(k) || op_kind_has_imm(k));
	}
	assert_int_equal(op_kind_find("sent"), OP_KINDS);
}

static void grh_is_from__either_family(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 192, 168, 77, 2};
	static const uint8_t v6[16] = {0xfd, 0x77, [15] = 2};
	uint8_t grh[GRH_LEN] = {0};

	memcpy(grh + 20 + 12, v4 + 12, 4); /* an IPv4 header's source */
	assert_true(grh_is_from(grh, v4));
	assert_false(grh_is_from(grh, v6));
	memset(grh, 0, sizeof(grh));
	memcpy(grh + 8, v6, 16); /* an IPv6 header's */
	assert_true(grh_is_from(grh, v6));
	assert_false(grh_is_from(grh, v4));
	grh[23] ^= 1;
	assert_false(grh_is_from(grh, v6));
}

static void content_check__finds_each_wrong_byte(void **state)
{
	uint8_t buf[600];

	content_fill(7, 13, buf, sizeof(buf));
	assert_int_equal(content_check(7, 13, buf, sizeof(buf)).at, -1);
	for (unsigned i = 0; i < sizeof(buf); i++) {
		buf[i] ^= 0x10;
		assert_int_equal(content_check(7, 13, buf, sizeof(buf)).at, i);
		buf[i] ^= 0x10;
	}
	assert_int_not_equal(content_check(7, 12, buf, sizeof(buf)).at, -1);
}

static void content_fill__same_bytes_from_any_offset(void **state)
{
	uint8_t whole[64], part[64];

	content_fill(9, 0, whole, sizeof(whole));
	for (unsigned off = 0; off < sizeof(whole); off++) {
		content_fill(9, off, part, sizeof(whole) - off);
		assert_memory_equal(part, whole + off, sizeof(whole) - off);
	}
}

static void plan_scatter__covers_the_message_within_the_slot(void **state)
{
	struct piece pieces[PLAN_MAX_SGE];

	for (uint32_t len = 0; len < 3000; len++) {
		unsigned max = 1 + len % PLAN_MAX_SGE;
		unsigned n = plan_scatter(len, len, max, pieces);
		uint32_t sum = 0, end = 0;

		assert_in_range(n, len != 0, max);
		for (unsigned i = 0; i < n; i++) {
			assert_true(pieces[i].len > 0);
			assert_true(i == 0 || pieces[i].off > end);
			end = pieces[i].off + pieces[i].len;
			sum += pieces[i].len;
		}
		assert_int_equal(sum, len);
		assert_true(end <= len + PLAN_SLOT_OVERHEAD);
	}
}

static void slot_check__finds_bytes_inside_and_outside(void **state)
{
	static uint8_t slot[1000 + PLAN_SLOT_OVERHEAD];
	struct piece pieces[PLAN_MAX_SGE];
	unsigned n = plan_scatter(3, 1000, 5, pieces);

	assert_true(n > 1);
	slot_clear(slot, sizeof(slot));
	slot_fill(slot, pieces, n, 3, 0);
	assert_int_equal(slot_check(slot, sizeof(slot), pieces, n, 3, 0, 1000).at, -1);
	for (unsigned i = 0; i < sizeof(slot); i++) {
		slot[i] ^= 0x40;
		assert_true(slot_check(slot, sizeof(slot), pieces, n, 3, 0, 1000).at >= 0);
		slot[i] ^= 0x40;
	}
	/* A message that is shorter than what arrived. */
	assert_true(slot_check(slot, sizeof(slot), pieces, n, 3, 0, 999).guard);
}

static void target_model__later_write_stays(void **state)
{
	uint8_t *model = malloc(batch.target_len);
	struct op op;

	assert_non_null(model);
	target_model(&batch, model);
	plan_op(&batch, batch.count - 1, &op);
	assert_int_equal(content_check(op.seed, 0, model + op.target_off, op.len).at, -1);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_random__is_splitmix64),
		cmocka_unit_test(plan_op__within_bounds_and_at_edges),
		cmocka_unit_test(op_kind__what_each_takes),
		cmocka_unit_test(grh_is_from__either_family),
		cmocka_unit_test(content_check__finds_each_wrong_byte),
		cmocka_unit_test(content_fill__same_bytes_from_any_offset),
		cmocka_unit_test(plan_scatter__covers_the_message_within_the_slot),
		cmocka_unit_test(slot_check__finds_bytes_inside_and_outside),
		cmocka_unit_test(target_model__later_write_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
