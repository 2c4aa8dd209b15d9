/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "row.h"

static void row__columns_in_order(void **state)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, 0xAB};
	struct row r;
	json_t *o;
	char *text;

	row_begin(&r);
	put_int(&r, "qpn", UINT32_MAX);
	put_int(&r, "cq", -1);
	put_text(&r, "state", "RTS");
	put_hex(&r, "pkey", 0xFF, 4);
	put_hex(&r, "key", 0x1234567, 1);
	put_hex(&r, "address", UINT64_MAX, 1);
	put_mac(&r, "mac", mac);
	put_bool(&r, "valid", true);
	put_json(&r, "priority", json_null());
	put_real(&r, "share", 0.5);
	put_real(&r, "mean", NAN); /* of nothing: JSON has no such number */
	o = row_end(&r);
	assert_non_null(o);
	text = json_dumps(o, JSON_COMPACT);
	assert_string_equal(text,
		"{\"qpn\":4294967295,\"cq\":-1,\"state\":\"RTS\",\"pkey\":\"0x00ff\","
		"\"key\":\"0x1234567\",\"address\":\"0xffffffffffffffff\","
		"\"mac\":\"02:00:00:00:00:ab\",\"valid\":true,\"priority\":null,"
		"\"share\":0.5,\"mean\":null}");
	free(text);
	json_decref(o);
}

/* A document whose row lacks a column would be one that nobody can trust. */
static void row_end__short_of_memory(void **state)
{
	struct row r;

	row_begin(&r);
	put_int(&r, "qpn", 1);
	put_json(&r, "access", NULL);
	put_int(&r, "pd", 2);
	assert_null(row_end(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(row__columns_in_order),
		cmocka_unit_test(row_end__short_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
