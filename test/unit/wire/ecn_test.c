/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "ecn.h"
#include "frames.h"
#include "headers.h"

static void set_class(struct frame *f, uint8_t tclass)
{
	if (f->net == NET_IPV4) {
		f->b[f->l3 + IP4_TOS] = tclass;
		frame_ip4_sum(f);
	} else {
		f->b[f->l3] = (uint8_t)(0x60 | tclass >> 4);
		f->b[f->l3 + 1] = (uint8_t)(tclass << 4);
	}
}

/* Nothing but the field and the checksum, which is right again. */
static void ecn_mark__marks_what_is_capable(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++)
		for (unsigned tag = 0; tag < 2; tag++)
			for (unsigned c = 0; c < 256; c++) {
				struct frame f = frame_of(net, 0x04, 64), want;

				if (tag)
					frame_tag(&f, ETHERTYPE_VLAN, 5);
				set_class(&f, (uint8_t)c);
				want = f;
				if (c & 3)
					set_class(&want, (uint8_t)(c | 3));
				assert_int_equal(ecn_mark(f.b, f.len), (c & 3) != 0);
				assert_memory_equal(f.b, want.b, f.len);
			}
}

static void ecn_mark__leaves_others_alone(void **state)
{
	struct frame f = frame_of(NET_ROCEV1, 0x04, 64), same = f;

	assert_false(ecn_mark(f.b, f.len));
	assert_memory_equal(f.b, same.b, f.len);
	for (unsigned net = NET_IPV4; net <= NET_IPV6; net++) {
		f = frame_of(net, 0x04, 64);
		set_class(&f, 2);
		same = f;
		for (size_t len = 0; len < f.l3 + (net == NET_IPV4 ? IP4_HLEN : IP6_HLEN); len++)
			assert_false(ecn_mark(f.b, len));
		assert_memory_equal(f.b, same.b, f.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ecn_mark__marks_what_is_capable),
		cmocka_unit_test(ecn_mark__leaves_others_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
