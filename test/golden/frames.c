/* SPDX-License-Identifier: BSD-3-Clause */
/* Each frame arrives alone: fields, payload, ICRC, verdict, counter. */
#include <string.h>
#include "golden.h"

static bool is_true(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* --- fields --------------------------------------------------------------------------- */

static void same(struct golden *g, const char *what, uint64_t got, const json_t *want)
{
	uint64_t n = json_u64(g, want);

	if (got != n)
		item_fail(g, "%s is 0x%llx, not 0x%llx", what, (unsigned long long)got,
			(unsigned long long)n);
}

/* The value of member @p key of header @p h in a parsed packet. */
static bool extended_value(const struct pkt *p, const char *h, const char *key, uint64_t *v)
{
	const struct {
		const char *header, *key;
		uint64_t value;
	} f[] = {
		{"xrceth", "srqn", p->srqn},
		{"deth", "qkey", p->qkey},
		{"deth", "src_qp", p->src_qp},
		{"feth", "plt", p->feth & 0xF},
		{"feth", "sel", p->feth >> 4 & 3},
		{"reth", "va", p->va},
		{"reth", "rkey", p->rkey},
		{"reth", "dmalen", p->dma_len},
		{"atomiceth", "va", p->va},
		{"atomiceth", "rkey", p->rkey},
		{"atomiceth", "swap_add", p->swap_add},
		{"atomiceth", "cmp", p->compare},
		{"aeth", "syndrome", p->syndrome},
		{"aeth", "msn", p->msn},
		{"atomicacketh", "orig", p->atomic_orig},
		{"immdt", "value", __builtin_bswap32(p->imm)},
		{"ieth", "rkey", p->rkey},
		{"cnp_reserved", "zero_bytes", 16},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(f); i++) {
		if (strcmp(f[i].header, h) || strcmp(f[i].key, key))
			continue;
		*v = f[i].value;
		return true;
	}
	return false;
}

static void check_extended(struct golden *g, const struct pkt *p, const char *h, const json_t *o)
{
	const char *key;
	json_t *want;

	json_object_foreach((json_t *)o, key, want)
	{
		uint64_t v;

		if (!strcmp(h, "cnp_reserved")) /* ignored by receivers (A17 Figure 6) */
			continue;
		if (extended_value(p, h, key, &v))
			same(g, key, v, want);
		else
			item_fail(g, "field %s.%s is not handled", h, key);
	}
}

static void check_field(struct golden *g, const struct pkt *p, const char *key, const json_t *want)
{
	const struct {
		const char *key;
		uint64_t value;
	} f[] = {
		{"opcode", p->bth[0]},
		{"se", p->se},
		{"m", p->migreq},
		{"pad", p->pad},
		{"tver", 0}, /* or it would not have parsed */
		{"pkey", p->pkey},
		{"dest_qp", p->dest_qp},
		{"ackreq", p->ackreq},
		{"psn", p->psn},
		{"payload_len", p->payload_len},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(f); i++) {
		if (strcmp(f[i].key, key))
			continue;
		same(g, key, f[i].value, want);
		return;
	}
	if (json_is_object(want))
		check_extended(g, p, key, want);
	else
		item_fail(g, "field %s is not handled", key);
}

static void check_parsed(
	struct golden *g, const json_t *v, const uint8_t *frame, size_t len, const struct pkt *p)
{
	static uint8_t payload[16384];
	const struct icrc_ops *ops;
	const char *key;
	json_t *want;
	size_t n = json_bytes(json_object_get(v, "payload"), payload, sizeof(payload));

	json_object_foreach(json_object_get(v, "bth_fields"), key, want)
		check_field(g, p, key, want);
	if (n != p->payload_len || memcmp(payload, p->payload, n))
		item_fail(g, "the payload differs");
	same(g, "icrc_offset", (uint64_t)(p->l3 - frame) + p->icrc_off,
		json_object_get(v, "icrc_offset"));
	for (unsigned i = 0; (ops = icrc_nth(i)); i++)
		if (icrc_check(ops, p) != is_true(v, "icrc_valid"))
			item_fail(g, "ICRC by %s", ops->name);
}

/* --- what must have come before ------------------------------------------------------- */

static void lengths_fix(uint8_t *f, const struct pkt *p, size_t l3, size_t len)
{
	uint16_t rest = (uint16_t)(len - l3);
	uint32_t sum = 0;

	if (p->net == NET_IPV4) {
		put_be16(f + l3 + 2, rest);
		put_be16(f + l3 + 10, 0);
		for (unsigned i = 0; i < 20; i += 2)
			sum += get_be16(f + l3 + i);
		sum = (sum & 0xFFFF) + (sum >> 16);
		put_be16(f + l3 + 10, (uint16_t) ~((sum & 0xFFFF) + (sum >> 16)));
		put_be16(f + l3 + 24, (uint16_t)(rest - 20));
	} else {
		put_be16(f + l3 + 4, (uint16_t)(rest - 40));
		if (p->net == NET_IPV6)
			put_be16(f + l3 + 44, (uint16_t)(rest - 40));
	}
}

/* A MIDDLE or LAST continues a message: its FIRST arrives one PSN earlier (note of the vector). */
static void prelude(struct node *n, const uint8_t *frame, const struct pkt *p)
{
	const json_t *mr = json_object_get(n->g->context, "B_mr");
	uint32_t mtu = n->attr.path_mtu;
	uint8_t f[FRAME_MAX];
	size_t l3 = (size_t)(p->l3 - frame);
	size_t at = (size_t)(p->bth - frame);
	uint32_t crc;

	memcpy(f, frame, at + 12);
	f[at] = p->op->kind == KIND_WRITE ? 0x06 : 0x00;
	f[at + 1] = 0x40;
	put_be32(f + at + 8, (p->psn - 1) & 0xFFFFFF);
	at += 12;
	if (p->op->kind == KIND_WRITE) {
		put_be64(f + at, json_u64_of(n->g, mr, "va"));
		put_be32(f + at + 8, (uint32_t)json_u64_of(n->g, mr, "rkey"));
		put_be32(f + at + 12, mtu + p->payload_len + (p->op->last ? 0 : 1));
		at += 16;
	}
	memset(f + at, 0x77, mtu);
	at += mtu;
	lengths_fix(f, p, l3, at + 4);
	crc = icrc_header(icrc_by_name("table"), f + l3, p->net, at - l3);
	icrc_store(f + at, crc);
	if (node_rx(n, f, at + 4))
		item_fail(n->g, "the FIRST before it is dropped");
	node_tx(n);
}

/* --- the verdict ---------------------------------------------------------------------- */

/* A QP of a kind that is not built, or an opcode. */
static bool to_be_skipped(struct golden *g, const json_t *v)
{
	const json_t *fields = json_object_get(v, "bth_fields");
	const json_t *expect = json_object_get(v, "expect");
	uint64_t qpn = json_u64_of(g, fields, "dest_qp");
	uint64_t op = json_u64_of(g, fields, "opcode");
	bool drop = !strcmp(text(expect, "result"), "drop_silent");
	const char *key;
	json_t *value;

	json_object_foreach(json_object_get(expect, "context"), key,
		value) if (skips(g, "context %s", key)) return true;
	if (qpn == 1)
		return skips(g, "qp GSI");
	if (qpn == 0xFFFFFF && !drop)
		return skips(g, "qp MULTICAST");
	for (int b = 0; b < 2; b++) {
		const json_t *side = json_object_get(g->context, b ? "B" : "A");

		json_object_foreach(json_object_get(side, "qpn"), key,
			value) if (json_u64(g, value) == qpn && skips(g, "qp %s", key)) return true;
	}
	return !drop && (op & 0xE0) != 0x40 && skips(g, "opcode 0x%llx", (unsigned long long)op);
}

static void apply_context(struct golden *g, struct node_spec *s, const json_t *c)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)c, key, v)
	{
		if (!strcmp(key, "B_expected_psn"))
			s->rq_psn = (uint32_t)json_u64(g, v);
		else if (!strcmp(key, "QP_state"))
			s->state = state_of(g, v);
		else if (!strcmp(key, "QP_gid_type"))
			s->net = strstr(json_string_value(v), "IB GID") ? NET_ROCEV1
				 : strstr(json_string_value(v), "IPv6") ? NET_IPV6
									: NET_IPV4;
		else if (!strcmp(key, "pkey_table"))
			s->pkey = (uint16_t)json_u64(g, json_array_get(v, 0));
		else if (!strcmp(key, "recv_wqes"))
			s->recv_wqes = (unsigned)json_u64(g, v);
		else if (!strcmp(key, "recv_len"))
			s->recv_len = (uint32_t)json_u64(g, v);
		else if (!strcmp(key, "B_rc_access"))
			s->access = access_flags(g, v);
		else if (!strcmp(key, "B_mr_access"))
			s->mr_access = access_flags(g, v);
		else if (!strcmp(key, "max_dest_rd_atomic"))
			s->max_dest_rd_atomic = (uint8_t)json_u64(g, v);
		else
			item_fail(g, "context %s is not handled", key);
	}
}

static struct node_spec spec_of(struct golden *g, const json_t *v, const struct pkt *p, bool parsed)
{
	const json_t *expect = json_object_get(v, "expect");
	const char *kind = text(v, "kind");
	uint64_t qpn = json_u64_of(g, json_object_get(v, "bth_fields"), "dest_qp");
	const json_t *qpns = json_object_get(json_object_get(g->context, "A"), "qpn");
	uint64_t a = json_u64_of(g, qpns, "RC");
	struct node_spec s = node_spec_of(g, qpn == a);

	/* The QP's GID entry is of the frame's kind, but where the vector is about just that. */
	s.net = !strcmp(kind, "v6") ? NET_IPV6 : !strcmp(kind, "v1") ? NET_ROCEV1 : NET_IPV4;
	if (strstr(text(expect, "rule"), "/41") || strstr(text(expect, "rule"), "CA17-41"))
		s.net = NET_IPV4;
	if (parsed && !strcmp(text(expect, "result"), "accept"))
		s.vid = p->vid;
	apply_context(g, &s, json_object_get(expect, "context"));
	return s;
}

static unsigned cqes_of(struct node *n, unsigned *errors)
{
	struct abi_cqe cqe;
	unsigned all = 0;

	*errors = 0;
	n->qp->free_ids = true;
	while (app_poll(&n->app, n->send_cq, &cqe) || app_poll(&n->app, n->recv_cq, &cqe)) {
		all++;
		*errors += cqe.status != ABI_WC_SUCCESS;
	}
	return all;
}

static void expect_drop(
	struct golden *g, struct node *n, uint16_t verdict, unsigned state, uint64_t drops)
{
	unsigned errors;

	if (!verdict || verdict >= DROP_MAX)
		item_fail(g, "it is not dropped");
	else if (n->host->core.count.drop[verdict] != drops + 1)
		item_fail(g, "counter %s did not move by one", drop_name(verdict));
	node_tx(n);
	if (n->sents)
		item_fail(g, "it is answered");
	if (n->qp->qp->state != state)
		item_fail(g, "the QP went to %s", state_name(n->qp->qp->state));
	/* An ERR QP has flushed its receive in the meantime. */
	if (state != ABI_QPS_ERR && cqes_of(n, &errors))
		item_fail(g, "it makes a completion");
}

static void expect_accept(struct golden *g, struct node *n, uint16_t verdict, bool request)
{
	struct pkt p;

	node_tx(n);
	if (!request)
		return; /* nothing is outstanding: fields and ICRC are all that it shows */
	if (verdict)
		item_fail(g, "it is dropped: %s", drop_name(verdict));
	if (n->qp->qp->state != ABI_QPS_RTS)
		item_fail(g, "the QP went to %s", state_name(n->qp->qp->state));
	for (unsigned i = 0; i < n->sents; i++)
		if (!frame_parse(&p, n->sent[i], n->sent_len[i]) && p.op->kind == KIND_ACK &&
			(p.syndrome & 0x60))
			item_fail(g, "it is answered with syndrome 0x%x", p.syndrome);
}

static void expect_nak(struct golden *g, struct node *n, const json_t *expect)
{
	const json_t *psn = json_object_get(expect, "nak_psn");
	struct pkt p;

	node_tx(n);
	if (n->sents != 1 || frame_parse(&p, n->sent[0], n->sent_len[0]) || p.op->code != 0x11) {
		item_fail(g, "%u packets are the answer, not one NAK", n->sents);
		return;
	}
	same(g, "syndrome", p.syndrome, json_object_get(expect, "syndrome"));
	if (psn)
		same(g, "nak_psn", p.psn, psn);
	else if (p.psn != n->attr.rq_psn)
		item_fail(g, "the NAK's PSN is 0x%x", p.psn);
}

static void check_verdict(struct golden *g, const json_t *v, const uint8_t *frame, size_t len,
	const struct pkt *p, bool parsed)
{
	static struct node n;
	const json_t *expect = json_object_get(v, "expect");
	const char *result = text(expect, "result");
	struct node_spec s = spec_of(g, v, p, parsed);
	bool accept = !strcmp(result, "accept");
	bool continues = accept && parsed && p->op->request && !p->op->first && !s.is_a;
	uint64_t drops[DROP_MAX];
	uint16_t verdict;

	if (continues)
		s.rq_psn = (s.rq_psn - 1) & 0xFFFFFF;
	node_init(&n, g, &s);
	if (continues)
		prelude(&n, frame, p);
	n.sents = 0;
	memcpy(drops, n.host->core.count.drop, sizeof(drops));
	verdict = node_rx(&n, frame, len);
	if (accept)
		expect_accept(g, &n, verdict, !s.is_a);
	else if (!strcmp(result, "drop_silent"))
		expect_drop(g, &n, verdict, s.state, verdict < DROP_MAX ? drops[verdict] : 0);
	else if (!strcmp(result, "nak") || !strcmp(result, "rnr_nak"))
		expect_nak(g, &n, expect);
	else
		item_fail(g, "result %s is not handled", result);
	node_fini(&n);
}

void run_frames(struct golden *g, const json_t *frames)
{
	static uint8_t frame[16384];
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)frames, i, v)
	{
		struct pkt p;
		size_t len;
		bool parsed;

		item_begin(g, text(v, "name"));
		len = json_bytes(json_object_get(v, "frame"), frame, sizeof(frame));
		if (!len)
			item_fail(g, "no frame");
		same(g, "len", len, json_object_get(v, "len"));
		parsed = !frame_parse(&p, frame, len);
		/* What an accepted frame holds; a wrong one may well be read otherwise. */
		if (strcmp(text(json_object_get(v, "expect"), "result"), "drop_silent")) {
			if (parsed)
				check_parsed(g, v, frame, len, &p);
			else if (!to_be_skipped(g, v))
				item_fail(g, "it does not parse");
		}
		g->skip = to_be_skipped(g, v);
		if (!g->skip && !g->bad)
			check_verdict(g, v, frame, len, &p, parsed);
		item_end(g);
	}
}
