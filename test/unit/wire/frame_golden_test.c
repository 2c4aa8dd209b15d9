/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of others: the golden vectors and the captures. Without them the test is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "frame.h"
#include "frames.h"
#include "headers.h"
#include "icrc.h"
#include "opcode.h"
#include "shared.h"

#define EXIT_SKIPPED 77 /* what Meson calls skipped */

/* --- golden vectors -------------------------------------------------------------------------- */

static uint64_t number(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	if (json_is_string(v))
		return strtoull(json_string_value(v), NULL, 0);
	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* Vectors whose verdict falls here; all others parse, and their ICRC decides or the QP does. */
static enum drop vector_verdict(const char *name)
{
	static const struct {
		const char *prefix;
		enum drop drop;
	} verdicts[] = {
		{"bad_ip4_df0", DROP_IP4_NOT_DF},
		{"bad_ip4_reserved", DROP_IP4_NOT_DF},
		{"bad_ip4_mf", DROP_IP4_FRAGMENT},
		{"bad_ip4_frag", DROP_IP4_FRAGMENT},
		{"bad_ip4_version", DROP_IP_VERSION},
		{"bad_ip4_ihl", DROP_IP4_IHL},
		{"bad_ip4_checksum", DROP_IP4_CHECKSUM},
		{"bad_ip4_totlen_long", DROP_IP_LENGTH},
		{"bad_ip4_totlen_short", DROP_UDP_LENGTH},
		{"bad_udp_dport", DROP_UDP_PORT},
		{"bad_udp_len", DROP_UDP_LENGTH},
		{"bad_ip6_version", DROP_IP_VERSION},
		{"bad_ip6_plen_short", DROP_UDP_LENGTH},
		{"bad_ip6_plen_long", DROP_IP_LENGTH},
		{"bad_ip6_hopbyhop", DROP_IP_NEXT_HEADER},
		{"fastcnp", DROP_IP_NEXT_HEADER},
		{"bad_fastcnp", DROP_IP_NEXT_HEADER},
		{"bad_v1_grh_nxthdr", DROP_GRH_NEXT_HEADER},
		{"bad_v1_grh_paylen_long", DROP_IP_LENGTH},
		{"bad_bth_tver", DROP_BTH_TVER},
		{"bad_bth_opcode_80", DROP_OPCODE_CLASS},
		{"bad_bth_opcode_ff", DROP_OPCODE_CLASS},
		{"bad_not_multiple_of_4", DROP_BTH_ALIGN},
		{"bad_truncated", DROP_HEADER_SHORT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		if (!strncmp(name, verdicts[i].prefix, strlen(verdicts[i].prefix)))
			return verdicts[i].drop;
	return DROP_NONE;
}

static void compare_extended(const struct pkt *p, const json_t *fields)
{
	const json_t *h;

	if ((h = json_object_get(fields, "xrceth")))
		assert_int_equal(p->srqn, number(h, "srqn"));
	if ((h = json_object_get(fields, "deth"))) {
		assert_int_equal(p->qkey, number(h, "qkey"));
		assert_int_equal(p->src_qp, number(h, "src_qp"));
	}
	if ((h = json_object_get(fields, "feth")))
		assert_int_equal(p->feth, number(h, "plt") | number(h, "sel") << 4);
	if ((h = json_object_get(fields, "reth"))) {
		assert_int_equal(p->va, number(h, "va"));
		assert_int_equal(p->rkey, number(h, "rkey"));
		assert_int_equal(p->dma_len, number(h, "dmalen"));
	}
	if ((h = json_object_get(fields, "atomiceth"))) {
		assert_int_equal(p->va, number(h, "va"));
		assert_int_equal(p->rkey, number(h, "rkey"));
		assert_int_equal(p->swap_add, number(h, "swap_add"));
		assert_int_equal(p->compare, number(h, "cmp"));
	}
	if ((h = json_object_get(fields, "aeth"))) {
		assert_int_equal(p->syndrome, number(h, "syndrome"));
		assert_int_equal(p->msn, number(h, "msn"));
	}
	if ((h = json_object_get(fields, "atomicacketh")))
		assert_int_equal(p->atomic_orig, number(h, "orig"));
	if ((h = json_object_get(fields, "immdt")))
		assert_int_equal(get_be32(&p->imm), number(h, "value"));
	if ((h = json_object_get(fields, "ieth")))
		assert_int_equal(p->rkey, number(h, "rkey"));
}

static void compare_bth(const struct pkt *p, const json_t *fields)
{
	assert_int_equal(p->op->code, number(fields, "opcode"));
	assert_int_equal(p->se, number(fields, "se"));
	assert_int_equal(p->migreq, number(fields, "m"));
	assert_int_equal(p->pad, number(fields, "pad"));
	assert_int_equal(p->pkey, number(fields, "pkey"));
	assert_int_equal(p->dest_qp, number(fields, "dest_qp"));
	assert_int_equal(p->ackreq, number(fields, "ackreq"));
	assert_int_equal(p->psn, number(fields, "psn"));
}

static void check_vector(const json_t *v, const uint8_t *frame, size_t len)
{
	const char *name = json_string_value(json_object_get(v, "name"));
	const json_t *fields = json_object_get(v, "bth_fields");
	enum drop want = vector_verdict(name);
	bool right = json_is_true(json_object_get(v, "icrc_valid"));
	const struct icrc_ops *ops;
	uint8_t payload[SHARED_FRAME_MAX];
	struct pkt p;
	enum drop got = frame_parse(&p, frame, len);

	if (got != want)
		fail_msg("%s: %s instead of %s", name, drop_name(got), drop_name(want));
	if (got)
		return;
	compare_bth(&p, fields);
	if (!strcmp(name, "bad_v1_grh_paylen_short")) {
		/* the ICRC is sought where PayLen says, and is not there */
		assert_false(icrc_check(icrc_best(), &p));
		return;
	}
	compare_extended(&p, fields);
	assert_int_equal(p.payload_len, number(fields, "payload_len"));
	assert_int_equal(hex_decode(json_string_value(json_object_get(v, "payload")), payload,
				 sizeof(payload)),
		p.payload_len);
	assert_memory_equal(p.payload, payload, p.payload_len);
	assert_int_equal(p.l3 - frame + p.icrc_off, number(v, "icrc_offset"));
	for (unsigned i = 0; (ops = icrc_nth(i)); i++)
		if (icrc_check(ops, &p) != right)
			fail_msg("%s: ICRC by %s", name, ops->name);
}

/* Calls `each` for every frame of vectors.json, of which there are some. */
static void for_each_vector(void (*each)(const json_t *v, const uint8_t *frame, size_t len))
{
	json_t *root = vectors_load();
	json_t *v;
	size_t i;

	assert_non_null(root);
	json_array_foreach(json_object_get(root, "frames"), i, v)
	{
		uint8_t frame[SHARED_FRAME_MAX];
		size_t len = hex_decode(
			json_string_value(json_object_get(v, "frame")), frame, sizeof(frame));

		assert_int_equal(len, number(v, "len"));
		each(v, frame, len);
	}
	assert_true(i > 0);
	json_decref(root);
}

static void frame_parse__vectors(void **state)
{
	for_each_vector(check_vector);
}

/* Where the packet of a good frame ends: Ethernet padding may follow. */
static size_t packet_end(const uint8_t *frame, size_t len)
{
	struct pkt p;

	if (frame_parse(&p, frame, len))
		return 0;
	return (size_t)(p.l3 - frame) + p.icrc_off + ICRC_LEN;
}

static void truncate_each(const json_t *v, const uint8_t *frame, size_t len)
{
	size_t end = packet_end(frame, len);

	for (size_t cut = 0; cut < len; cut++)
		if (frame_parse_at_edge(frame, cut) == DROP_NONE && cut < end)
			fail_msg("%s cut to %zu bytes is accepted",
				json_string_value(json_object_get(v, "name")), cut);
}

static void frame_parse__vectors_truncated(void **state)
{
	for_each_vector(truncate_each);
}

/* --- captures -------------------------------------------------------------------------------- */

static void frame_parse__captures(void **state)
{
	static const char *const files[] = {"rc_pingpong.pcap", "rc_read.pcap", "rc_write.pcap",
		"rping.pcap", "ud_pingpong.pcap"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		uint8_t frame[SHARED_FRAME_MAX];
		unsigned roce = 0;
		struct pcap c;
		size_t len;

		assert_true(pcap_open(&c, files[i]));
		while ((len = pcap_next(&c, frame, sizeof(frame)))) {
			const struct icrc_ops *ops;
			struct pkt p;
			enum drop d;

			if (!frame_is_roce(frame, len))
				continue;
			roce++;
			d = frame_parse(&p, frame, len);
			if (d)
				fail_msg("%s, RoCE frame %u: %s", files[i], roce, drop_name(d));
			for (unsigned n = 0; (ops = icrc_nth(n)); n++)
				assert_true(icrc_check(ops, &p));
		}
		assert_true(roce > 0);
		pcap_close(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_parse__vectors),
		cmocka_unit_test(frame_parse__captures),
		cmocka_unit_test(frame_parse__vectors_truncated),
	};

	if (!shared_here()) {
		print_message("no vectors and captures in SHARED_DIR: skipped\n");
		return EXIT_SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
