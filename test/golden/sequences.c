/* SPDX-License-Identifier: BSD-3-Clause */
/* Step by step: what arrives, what is sent, what completes. */
#include <stdio.h>
#include <string.h>
#include "golden.h"

#define USEC 1000ull

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* --- packets -------------------------------------------------------------------------- */

/* @return false with a reason in @p why when a named field differs. */
static bool packet_matches(struct golden *g, const uint8_t *frame, size_t len, const json_t *want,
	char *why, size_t room)
{
	const char *key;
	struct pkt p;
	json_t *v;

	if (frame_parse(&p, frame, len) || !icrc_check(icrc_by_name("table"), &p)) {
		snprintf(why, room, "a malformed packet is sent");
		return false;
	}
	json_object_foreach((json_t *)want, key, v)
	{
		const struct {
			const char *key;
			uint64_t value;
		} f[] = {{"opcode", p.op->code}, {"psn", p.psn}, {"dest_qp", p.dest_qp},
			{"payload_len", p.payload_len}, {"ackreq", p.ackreq}, {"se", p.se},
			{"pad", p.pad}, {"pkey", p.pkey}, {"syndrome", p.syndrome}, {"msn", p.msn},
			{"va", p.va}, {"rkey", p.rkey}, {"dmalen", p.dma_len},
			{"imm", __builtin_bswap32(p.imm)}, {"orig", p.atomic_orig}};
		unsigned i = 0;

		while (i < ARRAY_SIZE(f) && strcmp(f[i].key, key))
			i++;
		if (i == ARRAY_SIZE(f)) {
			item_fail(g, "field tx.%s is not handled", key);
			continue;
		}
		if (json_is_string(v) && !strcmp(json_string_value(v), "ack")) {
			if (p.op->aeth && p.syndrome <= 0x1F)
				continue;
		} else if (json_u64(g, v) == f[i].value) {
			continue;
		}
		snprintf(why, room, "%s of %s is 0x%llx", key, p.op->name,
			(unsigned long long)f[i].value);
		return false;
	}
	return true;
}

/* Packets that @p allow names may lie between those that @p want lists. */
static bool list_matches(struct golden *g, struct node *n, const json_t *want, const json_t *allow,
	char *why, size_t room)
{
	size_t at = 0;

	for (unsigned i = 0; i < n->sents; i++) {
		const json_t *w = json_array_get(want, at);
		const json_t *extra;
		size_t k;
		bool ok = false;

		if (w && packet_matches(g, n->sent[i], n->sent_len[i], w, why, room)) {
			at++;
			continue;
		}
		json_array_foreach((json_t *)allow, k, extra) ok |=
			packet_matches(g, n->sent[i], n->sent_len[i], extra, why, room);
		if (ok)
			continue;
		if (!w)
			snprintf(why, room, "packet %u of the step is too many (opcode 0x%x)",
				i + 1, n->sent[i][n->qp->qp->path.hdr_len]);
		return false;
	}
	if (at != json_array_size(want)) {
		snprintf(why, room, "%zu packets are missing", json_array_size(want) - at);
		return false;
	}
	return true;
}

static void check_tx(struct golden *g, struct node *n, const json_t *step)
{
	const json_t *want = json_object_get(step, "tx");
	const json_t *allow = json_object_get(step, "tx_allow_extra");
	json_t *other;
	char why[256] = "", ignore[256];
	size_t i;

	if (!want)
		return;
	if (!list_matches(g, n, want, allow, why, sizeof(why))) {
		bool ok = false;

		json_array_foreach(json_object_get(step, "tx_alternatives"), i, other) ok |=
			list_matches(g, n, other, allow, ignore, sizeof(ignore));
		if (!ok)
			item_fail(g, "%s", why);
	}
	n->sents = 0;
}

/* --- completions ---------------------------------------------------------------------- */

static const char *wc_opcode_name(unsigned op)
{
	switch (op) {
	case ABI_WC_SEND:
		return "SEND";
	case ABI_WC_RDMA_WRITE:
		return "RDMA_WRITE";
	case ABI_WC_RDMA_READ:
		return "RDMA_READ";
	case ABI_WC_RECV:
		return "RECV";
	case ABI_WC_RECV_RDMA_WITH_IMM:
		return "RECV_RDMA_WITH_IMM";
	default:
		return "?";
	}
}

static const char *wc_status_name(unsigned status)
{
	static const char *const n[] = {[0] = "SUCCESS",
		[1] = "LOC_LEN_ERR",
		[2] = "LOC_QP_OP_ERR",
		[4] = "LOC_PROT_ERR",
		[5] = "WR_FLUSH_ERR",
		[7] = "BAD_RESP_ERR",
		[9] = "REM_INV_REQ_ERR",
		[10] = "REM_ACCESS_ERR",
		[11] = "REM_OP_ERR",
		[12] = "RETRY_EXC_ERR",
		[13] = "RNR_RETRY_EXC_ERR"};

	return status < ARRAY_SIZE(n) && n[status] ? n[status] : "?";
}

static void check_cqe(struct golden *g, const struct abi_cqe *c, const json_t *want)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)want, key, v)
	{
		bool ok;

		if (!strcmp(key, "opcode"))
			ok = !strcmp(json_string_value(v), wc_opcode_name(c->opcode));
		else if (!strcmp(key, "status"))
			ok = !strcmp(json_string_value(v), wc_status_name(c->status));
		else if (!strcmp(key, "byte_len"))
			ok = json_u64(g, v) == c->byte_len;
		else if (!strcmp(key, "wr_id") || !strcmp(key, "recv_index"))
			ok = json_u64(g, v) == c->wr_id;
		else if (!strcmp(key, "imm"))
			ok = (c->flags & ABI_WC_WITH_IMM) &&
			     json_u64(g, v) == __builtin_bswap32(c->imm);
		else if (!strcmp(key, "solicited"))
			ok = json_u64(g, v) == !!(c->flags & ABI_WC_SOLICITED);
		else {
			item_fail(g, "field cqe.%s is not handled", key);
			continue;
		}
		if (!ok)
			item_fail(g, "completion of wr_id %llu (%s %s %u): %s differs",
				(unsigned long long)c->wr_id, wc_opcode_name(c->opcode),
				wc_status_name(c->status), c->byte_len, key);
	}
}

static void check_cqes(struct golden *g, struct node *n, const json_t *step)
{
	const json_t *want = json_object_get(step, "cqes");
	bool any_error = json_is_true(json_object_get(step, "cqes_any_error"));
	struct abi_cqe c;
	size_t got = 0;

	while (app_poll(&n->app, n->send_cq, &c) || app_poll(&n->app, n->recv_cq, &c)) {
		if (!want && !any_error)
			continue; /* the step does not say */
		if (any_error) {
			if (c.status == ABI_WC_SUCCESS)
				item_fail(g, "a completion is no error");
		} else if (got < json_array_size(want)) {
			check_cqe(g, &c, json_array_get(want, got));
		} else {
			item_fail(g, "completion %s %s is too many", wc_opcode_name(c.opcode),
				wc_status_name(c.status));
		}
		got++;
	}
	if (got < json_array_size(want) || (any_error && !got))
		item_fail(g, "completions are missing");
}

/* --- set-up --------------------------------------------------------------------------- */

static void apply_setup(struct golden *g, struct node_spec *s, const json_t *setup)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)setup, key, v)
	{
		uint64_t n;

		if (!strcmp(key, "qp_type") || !strcmp(key, "B_memory_u64"))
			continue;
		if (!strcmp(key, "B_rc_access")) {
			s->access = access_flags(g, v);
			continue;
		}
		if (!strcmp(key, "B_mr_access")) {
			s->mr_access = access_flags(g, v);
			continue;
		}
		n = json_u64(g, v);
		if (!strcmp(key, "A_sq_psn") || !strcmp(key, "B_sq_psn"))
			s->sq_psn = (uint32_t)n;
		else if (!strcmp(key, "B_expected_psn") || !strcmp(key, "A_expected_psn"))
			s->rq_psn = (uint32_t)n;
		else if (!strcmp(key, "B_msn"))
			s->msn = (uint32_t)n;
		else if (!strcmp(key, "recv_wqes"))
			s->recv_wqes = (unsigned)n;
		else if (!strcmp(key, "recv_len"))
			s->recv_len = (uint32_t)n;
		else if (!strcmp(key, "path_mtu"))
			s->mtu = (uint32_t)n;
		else if (!strcmp(key, "B_min_rnr_timer"))
			s->min_rnr_timer = (uint8_t)n;
		else if (!strcmp(key, "retry_cnt"))
			s->retry_cnt = (uint8_t)n;
		else if (!strcmp(key, "rnr_retry"))
			s->rnr_retry = (uint8_t)n;
		else if (!strcmp(key, "timeout"))
			s->timeout = (uint8_t)n;
		else if (!strcmp(key, "max_rd_atomic"))
			s->max_rd_atomic = (uint8_t)n;
		else if (!strcmp(key, "max_dest_rd_atomic"))
			s->max_dest_rd_atomic = (uint8_t)n;
		else
			item_fail(g, "setup %s is not handled", key);
	}
}

static uint32_t flags_of(struct golden *g, const json_t *flags)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} bits[] = {{"SIGNALED", ABI_WQE_SIGNALED}, {"SOLICITED", ABI_WQE_SOLICITED},
		{"FENCE", ABI_WQE_FENCE}, {"INLINE", ABI_WQE_INLINE}};
	uint32_t r = 0;
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)flags, i, v)
	{
		unsigned b = 0;

		while (b < ARRAY_SIZE(bits) && strcmp(bits[b].name, json_string_value(v)))
			b++;
		if (b == ARRAY_SIZE(bits))
			item_fail(g, "flag %s is not handled", json_string_value(v));
		else
			r |= bits[b].bit;
	}
	return r;
}

static const struct {
	const char *name;
	uint8_t opcode;
} post_ops[] = {{"RDMA_WRITE", ABI_WR_RDMA_WRITE},
	{"RDMA_WRITE_WITH_IMM", ABI_WR_RDMA_WRITE_WITH_IMM}, {"SEND", ABI_WR_SEND},
	{"SEND_WITH_IMM", ABI_WR_SEND_WITH_IMM}, {"RDMA_READ", ABI_WR_RDMA_READ}};

/* Everything that a post may say but the opcode, which decides about skipping. */
static void apply_post(struct golden *g, struct node *n, struct app_send *s, const json_t *post)
{
	static uint8_t data[65536];
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)post, key, v)
	{
		if (!strcmp(key, "opcode"))
			continue;
		if (!strcmp(key, "wr_id"))
			s->wr_id = json_u64(g, v);
		else if (!strcmp(key, "length"))
			s->sge[0].length = (uint32_t)json_u64(g, v);
		else if (!strcmp(key, "flags"))
			s->flags = flags_of(g, v);
		else if (!strcmp(key, "imm"))
			s->imm = __builtin_bswap32((uint32_t)json_u64(g, v));
		else if (!strcmp(key, "remote_addr") || !strcmp(key, "va"))
			s->remote_addr = json_u64(g, v);
		else if (!strcmp(key, "rkey"))
			s->rkey = (uint32_t)json_u64(g, v);
		else if (!strcmp(key, "payload"))
			memcpy(n->mr->mem, data, json_bytes(v, data, sizeof(data)));
		else
			item_fail(g, "post %s is not handled", key);
	}
}

static void post_all(struct golden *g, struct node *n, const json_t *posts)
{
	const json_t *mr = json_object_get(g->context, "B_mr");
	json_t *post;
	size_t i;

	json_array_foreach((json_t *)posts, i, post)
	{
		struct app_send s = {.remote_addr = json_u64_of(g, mr, "va"),
			.rkey = (uint32_t)json_u64_of(g, mr, "rkey"),
			.num_sge = 1,
			.sge = {app_sge(n->mr, 0, 0)}};
		unsigned op = 0;

		while (op < ARRAY_SIZE(post_ops) && strcmp(post_ops[op].name, text(post, "opcode")))
			op++;
		if (op == ARRAY_SIZE(post_ops)) {
			item_fail(g, "post %s is not handled", text(post, "opcode"));
			return;
		}
		s.opcode = post_ops[op].opcode;
		apply_post(g, n, &s, post);
		if (s.flags & ABI_WQE_INLINE) {
			s.inline_data = n->mr->mem;
			s.inline_len = s.sge[0].length;
		}
		app_post_send(n->qp, &s);
	}
}

static bool to_be_skipped(struct golden *g, const json_t *seq)
{
	const char *type = text(json_object_get(seq, "setup"), "qp_type");
	json_t *v;
	size_t i;

	if (*type && strcmp(type, "RC"))
		return skips(g, "qp %s", type);
	json_array_foreach(json_object_get(seq, "posts"), i,
		v) if (skips(g, "post %s", text(v, "opcode"))) return true;
	json_array_foreach(json_object_get(seq, "steps"), i, v)
	{
		uint8_t frame[FRAME_MAX];
		size_t len = json_bytes(json_object_get(v, "rx"), frame, sizeof(frame));
		struct pkt p;

		if (len && !frame_parse(&p, frame, len) && skips(g, "opcode 0x%x", p.op->code))
			return true;
	}
	return false;
}

/* --- running -------------------------------------------------------------------------- */

/* Nothing may be sent before the range begins; then time goes on until something is sent or the
 * range ends. */
static void advance(struct golden *g, struct node *n, const json_t *range, bool want_silence)
{
	uint64_t start = n->now;
	uint64_t min = json_u64(g, json_array_get(range, 0)) * USEC;
	const json_t *last = json_array_get(range, 1);
	uint64_t max =
		json_is_null(last) || !last ? 4 * min + 1000000 * USEC : json_u64(g, last) * USEC;

	if (min > USEC) {
		n->now = start + min - USEC;
		core_expire(&n->host->core, n->now);
		node_tx(n);
		if (n->sents)
			item_fail(g, "something is sent before %llu us have passed",
				(unsigned long long)(min / USEC));
	}
	n->now = start + min;
	core_expire(&n->host->core, n->now);
	node_tx(n);
	while (!n->sents && !want_silence) {
		uint64_t due = core_deadline(&n->host->core);

		if (due == WHEEL_NEVER || due > start + max)
			return;
		n->now = due > n->now ? due : n->now;
		core_expire(&n->host->core, n->now);
		node_tx(n);
	}
}

static void receive(struct golden *g, struct node *n, const json_t *rx)
{
	uint8_t frame[FRAME_MAX];
	size_t len = json_bytes(rx, frame, sizeof(frame));
	json_t *each;
	size_t i;

	if (json_is_array(rx)) {
		json_array_foreach((json_t *)rx, i, each) receive(g, n, each);
		return;
	}
	if (!rx || json_is_null(rx))
		return;
	if (!len)
		item_fail(g, "rx is no frame");
	node_rx(n, frame, len);
}

static void check_state(struct golden *g, struct node *n, const json_t *step)
{
	const json_t *state = json_object_get(step, "qp_state");
	const json_t *psn = json_object_get(step, "expected_psn");
	const json_t *mem = json_object_get(step, "memory_u64");
	uint64_t v;

	if (state && state_of(g, state) != n->qp->qp->state)
		item_fail(g, "the QP is in %s", state_name(n->qp->qp->state));
	if (psn && json_u64(g, psn) != n->qp->qp->resp.epsn)
		item_fail(g, "the expected PSN is 0x%x", n->qp->qp->resp.epsn);
	memcpy(&v, n->mr->mem, sizeof(v));
	if (mem && json_u64(g, mem) != v)
		item_fail(g, "memory holds 0x%llx", (unsigned long long)v);
}

static void check_members(struct golden *g, const json_t *step)
{
	static const char *const known[] = {"post_recv", "advance_us", "tx", "rx",
		"tx_alternatives", "tx_allow_extra", "cqes", "cqes_any_error", "qp_state",
		"expected_psn", "memory_u64", "note"};
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)step, key, v)
	{
		unsigned i = 0;

		while (i < ARRAY_SIZE(known) && strcmp(known[i], key))
			i++;
		if (i == ARRAY_SIZE(known))
			item_fail(g, "step %s is not handled", key);
	}
}

static void run_step(struct golden *g, struct node *n, const json_t *step, bool requester)
{
	const json_t *range = json_object_get(step, "advance_us");
	const json_t *tx = json_object_get(step, "tx");

	check_members(g, step);
	if (json_object_get(step, "post_recv"))
		node_post_recv(n, (unsigned)json_u64_of(g, step, "post_recv"));
	if (range)
		advance(g, n, range, json_is_array(tx) && !json_array_size(tx));
	if (requester) {
		node_tx(n);
		check_tx(g, n, step);
		receive(g, n, json_object_get(step, "rx"));
		/* What is sent because of it belongs to the next step; flushing needs the turn. */
		node_tx(n);
	} else {
		receive(g, n, json_object_get(step, "rx"));
		node_tx(n);
		check_tx(g, n, step);
	}
	check_cqes(g, n, step);
	check_state(g, n, step);
}

void run_sequences(struct golden *g, const json_t *sequences)
{
	static struct node n;
	json_t *seq, *step;
	size_t i, k;

	json_array_foreach((json_t *)sequences, i, seq)
	{
		const json_t *setup = json_object_get(seq, "setup");
		bool requester = !strcmp(text(seq, "side"), "requester");
		struct node_spec s;
		char name[128];

		item_begin(g, text(seq, "name"));
		g->skip = to_be_skipped(g, seq);
		if (g->skip) {
			item_end(g);
			continue;
		}
		s = node_spec_of(g, requester);
		s.recv_wqes = requester ? 0 : 1;
		apply_setup(g, &s, setup);
		node_init(&n, g, &s);
		if (json_object_get(setup, "B_memory_u64")) {
			uint64_t v = json_u64_of(g, setup, "B_memory_u64");

			memcpy(n.mr->mem, &v, sizeof(v));
		}
		post_all(g, &n, json_object_get(seq, "posts"));
		json_array_foreach(json_object_get(seq, "steps"), k, step)
		{
			snprintf(name, sizeof(name), "%s step %zu", text(seq, "name"), k);
			g->name = name;
			run_step(g, &n, step, requester);
		}
		node_fini(&n);
		item_end(g);
	}
}
