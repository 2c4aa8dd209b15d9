/* SPDX-License-Identifier: BSD-3-Clause */
/* Each frame arrives alone: what it is (fields, payload, ICRC), then what becomes of it. */
#include <stdlib.h>
#include <string.h>
#include "frame.h"
#include "golden.h"
#include "icrc.h"
#include "opcode.h"

/* --- what the file says about itself ------------------------------------------------------ */

static void check_members(struct golden *g, const json_t *v)
{
	static const char *const frame[] = {"name", "kind", "frame", "len", "bth_fields", "payload",
		"icrc_offset", "icrc_wire", "icrc_u32_le", "icrc_valid", "expect", "note",
		"checked"};
	static const char *const expect[] = {"result", "rule", "reason", "syndrome", "nak_psn",
		"status", "context", "action", "cm", "alt", "strict", "note"};
	const json_t *e = json_object_get(v, "expect");

	if (!KNOWN(g, "frame", v, frame) || !KNOWN(g, "expect", e, expect))
		return;
	if (json_object_get(e, "context") && !json_is_object(json_object_get(e, "context")))
		item_fail(g, "expect.context is no object");
	if (!json_is_boolean(json_object_get(v, "icrc_valid")))
		item_fail(g, "icrc_valid is not given");
	if (!json_is_object(json_object_get(v, "bth_fields")))
		item_fail(g, "bth_fields are not given");
}

/* The ICRC is written three times: in the frame, as bytes and as a number. A frame that is cut
 * off may have none. */
static void check_icrc_members(struct golden *g, const json_t *v, const struct trial *t)
{
	uint64_t at = number_of(g, v, "icrc_offset");
	const uint8_t *frame = t->frame;
	uint8_t *wire;
	size_t n;

	same_number(g, "len", t->len, json_object_get(v, "len"));
	if (t->len < 4 || at > t->len - 4) {
		if (!t->parse || strcmp(t->result, "drop_silent"))
			item_fail(g, "icrc_offset is beyond the frame");
		return;
	}
	wire = hex_bytes(g, "icrc_wire", json_object_get(v, "icrc_wire"), &n);
	if (wire && (n != 4 || memcmp(wire, frame + at, 4)))
		item_fail(g, "icrc_wire is not what the frame has there");
	free(wire);
	same_number(g, "icrc_u32_le",
		(uint32_t)frame[at] | (uint32_t)frame[at + 1] << 8 | (uint32_t)frame[at + 2] << 16 |
			(uint32_t)frame[at + 3] << 24,
		json_object_get(v, "icrc_u32_le"));
}

/* --- what the parser makes of it ----------------------------------------------------------- */

static void check_icrc(struct golden *g, const struct trial *t)
{
	bool valid = json_is_true(json_object_get(t->vector, "icrc_valid"));
	const struct icrc_ops *ops;

	for (unsigned i = 0; (ops = icrc_nth(i)); i++)
		if ((t->fast ? fast_cnp_icrc_check : icrc_check)(ops, &t->p) != valid)
			item_fail(g, "the ICRC is %s by %s", valid ? "wrong" : "right", ops->name);
}

static void check_kind(struct golden *g, const struct trial *t)
{
	static const char *const kinds[] = {
		[NET_IPV4] = "v4", [NET_IPV6] = "v6", [NET_ROCEV1] = "v1"};

	if (!text_is(t->vector, "kind", kinds[t->p.net]))
		item_fail(g, "the frame is of kind %s", kinds[t->p.net]);
}

static void check_payload(struct golden *g, const struct trial *t)
{
	size_t n;
	uint8_t *want = hex_bytes(g, "payload", json_object_get(t->vector, "payload"), &n);

	if (want && (n != t->p.payload_len || memcmp(want, t->p.payload, n)))
		item_fail(g, "the payload differs");
	free(want);
}

static uint64_t icrc_at(const struct trial *t)
{
	return (uint64_t)(t->p.l3 - t->frame) + t->p.icrc_off;
}

static void check_parsed(struct golden *g, const struct trial *t)
{
	const json_t *at = json_object_get(t->vector, "icrc_offset");

	if (strcmp(t->result, "drop_silent")) {
		check_kind(g, t);
		check_fields(g, &t->p, json_object_get(t->vector, "bth_fields"));
		check_payload(g, t);
		same_number(g, "icrc_offset", icrc_at(t), at);
		check_icrc(g, t);
	} else if (number(g, "icrc_offset", at) == icrc_at(t)) {
		check_icrc(g, t); /* a wrong frame may well be read otherwise */
	}
}

/* --- whose it is ---------------------------------------------------------------------------- */

/* By its MAC, or else by its number: a frame goes from A to B unless it is a response. */
static bool for_a(struct golden *g, const struct trial *t)
{
	uint8_t a[6], b[6];

	mac_of(text(json_object_get(g->context, "A"), "mac"), a);
	mac_of(text(json_object_get(g->context, "B"), "mac"), b);
	if (t->len < 6 || !memcmp(t->frame, b, 6))
		return false;
	if (!memcmp(t->frame, a, 6))
		return true;
	return t->qpn != QPN_MULTICAST && qp_kind(g, true, t->qpn) && !qp_kind(g, false, t->qpn);
}

/* The missing feature that it needs; NULL: none. Of an RC QP's opcodes only the list knows. */
static void find_feature(struct golden *g, struct trial *t)
{
	t->feature = t->feature_text;
	if (t->kind && !strcmp(t->kind, "GSI"))
		snprintf(t->feature_text, sizeof(t->feature_text), "qp GSI"); /* messages to QP1 */
	else if (!t->parse && skips(g, "opcode 0x%02x", t->p.op->code))
		snprintf(t->feature_text, sizeof(t->feature_text), "opcode 0x%02x", t->p.op->code);
	else
		t->feature = NULL;
}

/* A frame that does not parse may be too short to have one. */
static uint32_t qpn_of(struct golden *g, const struct trial *t)
{
	const json_t *qpn = json_object_get(json_object_get(t->vector, "bth_fields"), "dest_qp");

	if (!t->parse)
		return t->p.dest_qp;
	if (!qpn && !strcmp(t->result, "drop_silent"))
		return node_spec_of(g, false).qpn;
	return (uint32_t)number_upto(g, "dest_qp", qpn, 0xFFFFFF);
}

static uint8_t option_type(struct golden *g, const json_t *context, const char *key, uint8_t def)
{
	const json_t *v = json_object_get(context, key);

	return v ? (uint8_t)number_upto(g, key, v, UINT8_MAX) : def;
}

static void parse(struct golden *g, struct trial *t)
{
	const json_t *context = json_object_get(t->expect, "context");
	struct fast_cnp f;

	t->parse = (uint16_t)frame_parse(&t->p, t->frame, t->len);
	t->types[FAST_CNP_PLAIN] = option_type(g, context, "opt1_type", FAST_CNP_TYPE_PLAIN);
	t->types[FAST_CNP_TRACE] = option_type(g, context, "opt2_type", FAST_CNP_TYPE_TRACE);
	t->fast = t->parse == DROP_IP_NEXT_HEADER && text_is(context, "fast_cnp", "enabled") &&
		  frame_is_fast_cnp(t->frame, t->len);
	if (t->fast)
		t->parse = (uint16_t)fast_cnp_parse(&t->p, &f, t->frame, t->len, t->types);
}

static void run_frame(struct golden *g, const json_t *v)
{
	struct trial t = {.vector = v, .expect = json_object_get(v, "expect")};
	uint8_t *frame = hex_bytes(g, "frame", json_object_get(v, "frame"), &t.len);

	check_members(g, v);
	if (g->bad || !t.len) {
		item_fail(g, "the item is malformed");
		free(frame);
		return;
	}
	t.frame = frame;
	t.result = text(t.expect, "result");
	parse(g, &t);
	check_icrc_members(g, v, &t);
	t.qpn = qpn_of(g, &t);
	t.to_a = for_a(g, &t);
	t.kind = qp_kind(g, t.to_a, t.qpn);
	find_feature(g, &t);
	t.ipoib = !t.parse && !strcmp(t.result, "drop_silent") &&
		  strstr(text(t.expect, "rule"), "4391");
	if (!t.parse)
		check_parsed(g, &t);
	if (!g->bad)
		check_verdict(g, &t);
	free(frame);
}

void run_frames(struct golden *g, const json_t *frames)
{
	json_t *v;
	size_t i;

	if (!json_is_array(frames)) {
		item_begin(g, "frames");
		item_fail(g, "this group is no array");
		item_end(g);
	}
	json_array_foreach((json_t *)frames, i, v)
	{
		item_begin(g, text(v, "name"));
		run_frame(g, v);
		item_end(g);
	}
}
