/* SPDX-License-Identifier: BSD-3-Clause */
/* Broken frames: cut short, with impossible lengths, with random damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bits.h"
#include "frame.h"
#include "frames.h"
#include "headers.h"
#include "opcode.h"
#include "random.h"

/* --- hostile frames -------------------------------------------------------------------------- */

/* proves SEC-01, VAL-18: a frame that was cut off anywhere is none. */
static void frame_parse__truncated(void **state)
{
	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++)
		for (unsigned code = 0; code < 256; code++) {
			struct frame f = frame_of(net, (uint8_t)code, 64);

			for (size_t cut = 0; cut < f.len; cut++)
				assert_int_not_equal(frame_parse_at_edge(f.b, cut), DROP_NONE);
		}
}

/* proves SEC-01, SEC-02: each length field at each extreme, alone and together, on frames of all
 * lengths. */
static void frame_parse__length_fields_at_extremes(void **state)
{
	static const uint16_t extremes[] = {0, 1, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23, 24, 27,
		28, 39, 40, 43, 44, 47, 48, 0x7FFF, 0x8000, 0xFFEB, 0xFFFC, 0xFFFF};

	for (unsigned net = NET_IPV4; net <= NET_ROCEV1; net++)
		for (size_t a = 0; a < ARRAY_SIZE(extremes); a++)
			for (size_t b = 0; b < ARRAY_SIZE(extremes); b++)
				for (size_t tail = 0; tail <= 64; tail += 16) {
					struct frame f = frame_of(net, OP_CMP_SWAP, tail);

					frame_set_l4_len(&f, extremes[a]);
					if (f.udp)
						put_be16(f.b + f.udp + UDP_LEN, extremes[b]);
					f.b[f.bth + BTH_FLAGS] =
						(uint8_t)(b << BTH_PAD_SHIFT & BTH_PAD_MASK);
					frame_parse_at_edge(f.b, f.len);
				}
}

static void mutate(struct random *r, struct frame *f)
{
	unsigned changes = 1 + (unsigned)random_below(r, 4);

	while (changes--) {
		size_t at = random_below(r, f->len);

		switch (random_below(r, 4)) {
		case 0:
			f->b[at] ^= (uint8_t)(1u << random_below(r, 8));
			break;
		case 1:
			f->b[at] = (uint8_t)random_next(r);
			break;
		case 2: /* headers more often than the rest */
			f->b[random_below(r, f->bth + 2)] = (uint8_t)random_next(r);
			break;
		default:
			f->len = 1 + random_below(r, sizeof(f->b));
			break;
		}
	}
}

/* proves SEC-01 */
static void frame_parse__mutated(void **state)
{
	struct random r = {0x5EED};
	unsigned accepted = 0;

	for (unsigned i = 0; i < 100000; i++) {
		struct frame f = frame_of((unsigned)random_below(&r, 3), (uint8_t)random_next(&r),
			4 * random_below(&r, 20));

		if (i % 5 == 0)
			frame_tag(
				&f, random_below(&r, 2) ? ETHERTYPE_VLAN : ETHERTYPE_QINQ, 0x2064);
		mutate(&r, &f);
		if (f.net == NET_IPV4 && i % 2)
			frame_ip4_sum(&f);
		accepted += frame_parse_at_edge(f.b, f.len) == DROP_NONE;
	}
	/* Otherwise the mutations do not reach the inner layers. */
	assert_true(accepted > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_parse__truncated),
		cmocka_unit_test(frame_parse__length_fields_at_extremes),
		cmocka_unit_test(frame_parse__mutated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
