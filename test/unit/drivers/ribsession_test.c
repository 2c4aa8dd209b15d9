/* SPDX-License-Identifier: BSD-3-Clause */
/* Which GID of a port a netdev of IP over InfiniBand has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>
#include "rib_impl.h"

/* The kernel lists a VLAN netdev of the port first, with the same address. */
static void rib_choose_gid__untagged(void **state)
{
	const struct roci_gid_entry e[] = {
		{.gid.raw = {0xFE, 0x80, [15] = 1}, .gid_type = ROCI_GID_TYPE_ROCE_V2, .vid = 5},
		{.gid.raw = {0xFE, 0x80, [15] = 1}, .gid_type = ROCI_GID_TYPE_ROCE_V2, .vid = 0},
	};

	assert_ptr_equal(rib_choose_gid(e, 2), &e[1]);
	assert_null(rib_choose_gid(e, 1));
}

static void rib_choose_gid__link_local_of_rocev2(void **state)
{
	const struct roci_gid_entry e[] = {
		{.gid.raw = {0xFE, 0x80, [15] = 1}, .gid_type = ROCI_GID_TYPE_ROCE_V1},
		{.gid.raw = {0xFD, 8, [15] = 1}, .gid_type = ROCI_GID_TYPE_ROCE_V2},
		{.gid.raw = {0xFE, 0x80, [15] = 1}, .gid_type = ROCI_GID_TYPE_ROCE_V2},
	};

	assert_ptr_equal(rib_choose_gid(e, 3), &e[2]);
	assert_null(rib_choose_gid(e, 2));
	assert_null(rib_choose_gid(e, 0));
	assert_null(rib_choose_gid(e, -EINVAL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rib_choose_gid__untagged),
		cmocka_unit_test(rib_choose_gid__link_local_of_rocev2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
