/* SPDX-License-Identifier: BSD-3-Clause */
/* Step by step: what arrives, what is sent, what completes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "frame.h"
#include "golden.h"
#include "opcode.h"

/* Longest that an open range waits: beyond the longest RNR timer and four of the usual ACK
 * timeouts. */
#define OPEN_RANGE 1000000000ull

/* --- what was sent ---------------------------------------------------------------------- */

/* Packets that @p allow names may lie between those that @p want lists. */
static bool list_matches(struct golden *g, struct node *n, const json_t *want, const json_t *allow,
	char *why, size_t room)
{
	char other[256];
	size_t at = 0;

	for (unsigned i = 0; i < n->sents; i++) {
		const json_t *w = json_array_get(want, at);
		const json_t *extra;
		bool ok = false;
		size_t k;

		if (w && packet_matches(g, n->sent[i], n->sent_len[i], w, why, room)) {
			at++;
			continue;
		}
		json_array_foreach((json_t *)allow, k, extra)
		{
			ok |= packet_matches(
				g, n->sent[i], n->sent_len[i], extra, other, sizeof(other));
		}
		if (ok)
			continue;
		if (!w)
			snprintf(why, room, "packet %u of the step is too many (opcode 0x%x)",
				i + 1, n->sent[i][n->qp->qp->path.hdr_len]);
		return false;
	}
	if (at == json_array_size(want))
		return true;
	snprintf(why, room, "%zu packets are missing", json_array_size(want) - at);
	return false;
}

/* A list of packets is an array of objects. */
static bool is_list(struct golden *g, const char *what, const json_t *list)
{
	const json_t *v;
	size_t i;
	bool ok = json_is_array(list);

	json_array_foreach((json_t *)list, i, v) ok &= json_is_object(v);
	if (!ok)
		item_fail(g, "%s is no list of packets", what);
	return ok;
}

static bool lists_ok(struct golden *g, const json_t *step)
{
	const json_t *allow = json_object_get(step, "tx_allow_extra");
	const json_t *others = json_object_get(step, "tx_alternatives");
	bool ok = is_list(g, "tx", json_object_get(step, "tx"));
	const json_t *v;
	size_t i;

	if (allow)
		ok &= is_list(g, "tx_allow_extra", allow);
	if (others && !json_is_array(others)) {
		item_fail(g, "tx_alternatives is no array");
		return false;
	}
	json_array_foreach((json_t *)others, i, v) ok &= is_list(g, "tx_alternatives", v);
	return ok;
}

static void check_tx(struct golden *g, struct node *n, const json_t *step)
{
	const json_t *want = json_object_get(step, "tx");
	const json_t *allow = json_object_get(step, "tx_allow_extra");
	const json_t *other;
	char why[256] = "", ignore[256];
	size_t i;

	if (!want) {
		if (allow || json_object_get(step, "tx_alternatives"))
			item_fail(g, "there are alternatives to no tx");
		return;
	}
	for (unsigned s = 0; s < n->sents; s++)
		if (!wire_ok(n, n->sent[s], n->sent_len[s], why, sizeof(why)))
			item_fail(g, "%s", why);
	if (lists_ok(g, step) && !list_matches(g, n, want, allow, why, sizeof(why))) {
		bool ok = false;

		json_array_foreach(json_object_get(step, "tx_alternatives"), i, other)
		{
			ok |= list_matches(g, n, other, allow, ignore, sizeof(ignore));
		}
		if (!ok)
			item_fail(g, "%s", why);
	}
	n->sents = 0;
}

/* --- what is posted ------------------------------------------------------------------------ */

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

	if (!json_is_array(flags))
		item_fail(g, "flags are no array");
	json_array_foreach((json_t *)flags, i, v)
	{
		const char *name = json_is_string(v) ? json_string_value(v) : "?";
		unsigned b = 0;

		while (b < ARRAY_SIZE(bits) && strcmp(bits[b].name, name))
			b++;
		if (b == ARRAY_SIZE(bits))
			item_fail(g, "flag %.40s is not handled", name);
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
	{"SEND_WITH_IMM", ABI_WR_SEND_WITH_IMM}, {"RDMA_READ", ABI_WR_RDMA_READ},
	{"ATOMIC_CMP_AND_SWP", ABI_WR_ATOMIC_CMP_AND_SWP},
	{"ATOMIC_FETCH_AND_ADD", ABI_WR_ATOMIC_FETCH_AND_ADD},
	{"SEND_WITH_INV", ABI_WR_SEND_WITH_INV}, {"LOCAL_INV", ABI_WR_LOCAL_INV},
	{"BIND_MW", ABI_WR_BIND_MW}, {"FLUSH", ABI_WR_FLUSH},
	{"ATOMIC_WRITE", ABI_WR_ATOMIC_WRITE}};

/* Each post has bytes of its own, from @p at on: zeros, unless its payload is given. */
static void apply_payload(
	struct golden *g, struct node *n, struct app_send *s, const json_t *v, size_t at)
{
	size_t len;
	uint8_t *b = hex_bytes(g, "payload", v, &len);

	if (len > n->mr->len - at)
		item_fail(g, "a payload is too long");
	else if (b)
		memcpy(n->mr->mem + at, b, len);
	if (!s->sge[0].length)
		s->sge[0].length = (uint32_t)len;
	free(b);
}

/* Operands that only some operations have. @return false when it is none of them. */
static bool apply_operand(struct golden *g, struct app_send *s, const char *key, const json_t *v)
{
	if (s->opcode == ABI_WR_FLUSH && !strcmp(key, "plt"))
		s->imm |= (uint32_t)number_upto(g, key, v, 15);
	else if (s->opcode == ABI_WR_FLUSH && !strcmp(key, "sel"))
		s->imm |= (uint32_t)number_upto(g, key, v, 3) << 4;
	else if (!strcmp(key, "invalidate_rkey"))
		s->imm = (uint32_t)number_upto(g, key, v, UINT32_MAX);
	else
		return false;
	return true;
}

/* The members of a post, in the WQE's terms: only data have an SGE. */
static void arrange(struct golden *g, struct node *n, struct app_send *s)
{
	if (s->opcode == ABI_WR_LOCAL_INV)
		node_bind_window(n, s->imm); /* there is one to invalidate */
	if (s->opcode == ABI_WR_FLUSH)
		s->flush_len = s->sge[0].length;
	if (s->opcode == ABI_WR_BIND_MW) {
		n->mr->mr.access |= ABI_ACCESS_MW_BIND;
		n->mw = app_mw_as(&n->app, MW_TYPE_2, s->rkey);
		s->mw = s->rkey;
		s->lkey = n->mr->mr.key;
		s->access = ABI_ACCESS_REMOTE_READ | ABI_ACCESS_REMOTE_WRITE;
		s->remote_addr = s->sge[0].addr;
		s->bind_len = s->sge[0].length;
	}
	if (s->opcode == ABI_WR_LOCAL_INV || s->opcode == ABI_WR_FLUSH ||
		s->opcode == ABI_WR_BIND_MW) {
		s->num_sge = 0;
		s->sge[0].length = 0;
	}
}

static void apply_post(
	struct golden *g, struct node *n, struct app_send *s, const json_t *post, size_t at)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)post, key, v)
	{
		if (!strcmp(key, "opcode") || !strcmp(key, "note") || apply_operand(g, s, key, v))
			continue;
		if (!strcmp(key, "wr_id"))
			s->wr_id = number(g, key, v);
		else if (!strcmp(key, "length"))
			s->sge[0].length = (uint32_t)number_upto(g, key, v, UINT32_MAX);
		else if (!strcmp(key, "flags"))
			s->flags = flags_of(g, v);
		else if (!strcmp(key, "imm"))
			s->imm = __builtin_bswap32((uint32_t)number_upto(g, key, v, UINT32_MAX));
		else if (!strcmp(key, "remote_addr") || !strcmp(key, "va"))
			s->remote_addr = number(g, key, v);
		else if (!strcmp(key, "rkey"))
			s->rkey = (uint32_t)number_upto(g, key, v, UINT32_MAX);
		else if (!strcmp(key, "compare_add"))
			s->compare_add = number(g, key, v);
		else if (!strcmp(key, "swap"))
			s->swap = number(g, key, v);
		else if (!strcmp(key, "srqn"))
			s->srqn = (uint32_t)number_upto(g, key, v, 0xFFFFFF);
		else if (!strcmp(key, "remote_qpn"))
			s->remote_addr = number_upto(g, key, v, 0xFFFFFF) << 32 | NODE_AH;
		else if (!strcmp(key, "remote_qkey"))
			s->rkey = (uint32_t)number_upto(g, key, v, UINT32_MAX);
		else if (!strcmp(key, "payload"))
			apply_payload(g, n, s, v, at);
		else
			item_fail(g, "post %.40s is not handled", key);
	}
}

static void post_one(struct golden *g, struct node *n, const json_t *post, size_t *at)
{
	const json_t *mr = json_object_get(g->context, "B_mr");
	struct app_send s = {.remote_addr = number_of(g, mr, "va"),
		.rkey = (uint32_t)number_of(g, mr, "rkey"),
		.num_sge = 1,
		.sge = {app_sge(n->mr, *at, 0)}};
	unsigned op = 0;

	if (is_datagram(n->spec.type)) {
		s.remote_addr = (uint64_t)n->spec.peer_qpn << 32 | NODE_AH;
		s.rkey = n->spec.qkey;
	}
	while (op < ARRAY_SIZE(post_ops) && strcmp(post_ops[op].name, text(post, "opcode")))
		op++;
	if (op == ARRAY_SIZE(post_ops)) {
		item_fail(g, "post '%.40s' is not handled", text(post, "opcode"));
		return;
	}
	s.opcode = post_ops[op].opcode;
	apply_post(g, n, &s, post, *at);
	arrange(g, n, &s);
	if (!app_sq_room(n->qp) || s.sge[0].length > n->mr->len - *at) {
		item_fail(g, "more is posted than the runner has room for");
		return;
	}
	if (s.flags & ABI_WQE_INLINE) {
		s.inline_data = n->mr->mem + *at;
		s.inline_len = s.sge[0].length;
		if (s.inline_len > n->qp->spec.max_inline) {
			item_fail(g, "%u bytes are too many for inline data", s.inline_len);
			return;
		}
	}
	*at += s.sge[0].length;
	app_post_send(n->qp, &s);
}

static void post_all(struct golden *g, struct node *n, const json_t *posts)
{
	size_t i, at = 0;
	json_t *post;

	if (posts && (!json_is_array(posts) || !n->spec.is_a))
		item_fail(g, "posts are no array, or a responder's");
	json_array_foreach((json_t *)posts, i, post) post_one(g, n, post, &at);
}

/* --- time --------------------------------------------------------------------------------- */

/* Whether the step waits for something besides packets, which has not happened yet. */
static bool awaits(struct golden *g, struct node *n, const json_t *step)
{
	const json_t *state = json_object_get(step, "qp_state");
	const json_t *cqes = json_object_get(step, "cqes");

	if (json_array_size(cqes) || json_is_true(json_object_get(step, "cqes_any_error")))
		return n->send_cq->cq.lane[0].head == n->send_cq->taken;
	return state && state_of(g, state) != n->qp->qp->state;
}

static void pass_time(struct node *n, uint64_t now)
{
	n->now = now > n->now ? now : n->now;
	core_expire(&n->host->core, n->now);
	node_tx(n);
}

/* Nothing may be sent before the range begins; then time advances until the step's packets are
 * sent or the range ends. */
static void advance(struct golden *g, struct node *n, const json_t *step, const json_t *range)
{
	const json_t *last = json_array_get(range, 1);
	bool silence = json_is_array(json_object_get(step, "tx")) &&
		       !json_array_size(json_object_get(step, "tx"));
	uint64_t start = n->now, min, max;

	if (!json_is_array(range) || json_array_size(range) != 2) {
		item_fail(g, "advance_us is no range");
		return;
	}
	min = nanoseconds(g, "advance_us", json_array_get(range, 0));
	max = json_is_null(last) ? 4 * min + OPEN_RANGE : nanoseconds(g, "advance_us", last);
	if (min > 1000) {
		pass_time(n, start + min - 1000);
		if (n->sents)
			item_fail(g, "something is sent before %llu us have passed",
				(unsigned long long)(min / 1000));
	}
	pass_time(n, start + min);
	while (!n->sents && (!silence || awaits(g, n, step))) {
		uint64_t due = core_deadline(&n->host->core);

		if (due == WHEEL_NEVER || due > start + max)
			return;
		pass_time(n, due);
	}
}

/* --- a step ---------------------------------------------------------------------------------- */

static void receive(struct golden *g, struct node *n, const json_t *rx)
{
	uint8_t *frame;
	json_t *each;
	size_t i, len;

	if (!rx || json_is_null(rx))
		return;
	json_array_foreach((json_t *)rx, i, each)
	{
		if (json_is_string(each))
			receive(g, n, each);
		else
			item_fail(g, "a member of rx is no frame");
	}
	if (json_is_array(rx))
		return;
	frame = hex_bytes(g, "rx", rx, &len);
	if (frame && !len)
		item_fail(g, "rx is empty");
	else if (frame)
		node_rx(n, frame, len);
	free(frame);
}

static void check_cqes(struct golden *g, struct node *n, const json_t *step)
{
	const json_t *want = json_object_get(step, "cqes");
	bool any_error = json_is_true(json_object_get(step, "cqes_any_error"));
	struct abi_cqe c;
	size_t got = 0;

	if (want && !json_is_array(want))
		item_fail(g, "cqes is no array");
	while (node_poll(n, &c)) {
		if (any_error && c.status == ABI_WC_SUCCESS)
			item_fail(g, "a completion is no error");
		if (want && got < json_array_size(want))
			check_cqe(g, &c, json_array_get(want, got));
		else if (want)
			item_fail(g, "completion %s %s is too many", wc_opcode_name(c.opcode),
				wc_status_name(c.status));
		got++;
	}
	if (got < json_array_size(want) || (any_error && !got))
		item_fail(g, "completions are missing");
}

static void check_state(struct golden *g, struct node *n, const json_t *step)
{
	const json_t *state = json_object_get(step, "qp_state");
	const json_t *psn = json_object_get(step, "expected_psn");
	const json_t *mem = json_object_get(step, "memory_u64");
	uint64_t v;

	if (state && state_of(g, state) != n->qp->qp->state)
		item_fail(g, "the QP is in %s", state_name(n->qp->qp->state));
	if (psn && number(g, "expected_psn", psn) != n->qp->qp->resp.epsn)
		item_fail(g, "the expected PSN is 0x%x", n->qp->qp->resp.epsn);
	if (!mem)
		return;
	memcpy(&v, n->mr->mem, sizeof(v));
	if (n->spec.is_a || number(g, "memory_u64", mem) != v)
		item_fail(g, "memory holds 0x%llx", (unsigned long long)v);
}

static void run_step(struct golden *g, struct node *n, const json_t *step)
{
	static const char *const known[] = {"post_recv", "advance_us", "tx", "rx",
		"tx_alternatives", "tx_allow_extra", "cqes", "cqes_any_error", "qp_state",
		"expected_psn", "memory_u64", "note"};
	const json_t *range = json_object_get(step, "advance_us");
	const json_t *recv = json_object_get(step, "post_recv");

	if (!KNOWN(g, "step", step, known))
		return;
	if (recv)
		node_post_recv(n, (unsigned)number_upto(g, "post_recv", recv, 64));
	if (range)
		advance(g, n, step, range);
	if (n->spec.is_a) {
		node_tx(n);
		check_tx(g, n, step);
		receive(g, n, json_object_get(step, "rx"));
		/* Packets sent because of it belong to the next step; flushing needs the turn. */
		node_tx(n);
	} else {
		receive(g, n, json_object_get(step, "rx"));
		node_tx(n);
		check_tx(g, n, step);
	}
	check_cqes(g, n, step);
	check_state(g, n, step);
}

/* --- a sequence ------------------------------------------------------------------------------- */

/* The first frame of @p rx that parses; it is what the QP's packets are like. */
static bool first_packet(const json_t *rx, struct pkt *p, uint8_t **frame)
{
	struct golden quiet = {.muted = true};
	const json_t *v = json_is_array(rx) ? json_array_get(rx, 0) : rx;
	size_t len;

	*frame = json_is_string(v) ? hex_bytes(&quiet, "rx", v, &len) : NULL;
	if (*frame && !frame_parse(p, *frame, len))
		return true;
	free(*frame);
	return false;
}

static struct node_spec spec_of(struct golden *g, const json_t *seq)
{
	const json_t *setup = json_object_get(seq, "setup");
	bool requester = text_is(seq, "side", "requester"), named = false;
	struct node_spec s = node_spec_of(g, requester);
	uint64_t posted = 1u << 16;
	const char *key;
	json_t *v;
	size_t i;

	if (*text(setup, "qp_type"))
		node_spec_kind(g, &s, text(setup, "qp_type"));
	if (requester)
		s.recv_wqes = 0;
	json_array_foreach(json_object_get(seq, "steps"), i, v)
	{
		struct pkt p;
		uint8_t *frame;

		if (!first_packet(json_object_get(v, "rx"), &p, &frame))
			continue;
		if (!named)
			node_spec_as(g, &s, &p);
		named = true;
		if (!s.srqn && p.op->xrceth && p.op->recv_wqe) /* no context names it */
			s.srqn = p.srqn;
		free(frame);
	}
	json_array_foreach(json_object_get(seq, "posts"), i, v)
	{
		if (json_object_get(v, "length"))
			posted += number_upto(g, "length", json_object_get(v, "length"), 16u << 20);
	}
	s.send_room = posted;
	json_object_foreach((json_t *)setup, key, v)
	{
		if (!strcmp(key, "qp_type") || !strcmp(key, "B_memory_u64"))
			continue;
		if (!node_spec_set(g, &s, key, v))
			item_fail(g, "setup %.40s is not handled", key);
	}
	return s;
}

/* @return true when the step needs what is not built: an opcode that the list names, received
 * or to be sent. */
static bool step_skipped(struct golden *g, const json_t *step)
{
	const json_t *rx = json_object_get(step, "rx"), *v;
	uint8_t *frame;
	struct pkt p;
	size_t i;

	if (first_packet(rx, &p, &frame)) {
		bool skip = p.op->name && skips(g, "opcode 0x%02x", p.op->code);

		free(frame);
		if (skip)
			return true;
	}
	json_array_foreach(json_object_get(step, "tx"), i, v)
	{
		const json_t *op = json_object_get(v, "opcode");

		if (json_is_integer(op) &&
			skips(g, "opcode 0x%02x", (unsigned)json_integer_value(op)))
			return true;
	}
	return false;
}

/* Of a sequence with an operation that is not built nothing is run; else everything up to the
 * first step that needs what is not built. */
static bool sequence_skipped(struct golden *g, const json_t *seq)
{
	const char *type = text(json_object_get(seq, "setup"), "qp_type");
	json_t *v;
	size_t i;

	if (!strcmp(type, "GSI")) /* messages to QP1, and its answers */
		return skips(g, "qp %s", type);
	json_array_foreach(json_object_get(seq, "posts"), i, v)
	{
		if (skips(g, "post %s", text(v, "opcode")))
			return true;
	}
	return false;
}

static bool sequence_ok(struct golden *g, const json_t *seq)
{
	static const char *const known[] = {
		"name", "side", "rule", "setup", "posts", "steps", "note"};

	if (!KNOWN(g, "sequence", seq, known))
		return false;
	if (!text_is(seq, "side", "requester") && !text_is(seq, "side", "responder"))
		item_fail(g, "side '%.40s' is not handled", text(seq, "side"));
	if (!json_array_size(json_object_get(seq, "steps")))
		item_fail(g, "there are no steps");
	if (json_object_get(seq, "setup") && !json_is_object(json_object_get(seq, "setup")))
		item_fail(g, "setup is no object");
	g->skip = !g->bad && sequence_skipped(g, seq);
	return !g->bad && !g->skip;
}

static void run_sequence(struct golden *g, const json_t *seq)
{
	const json_t *memory = json_object_get(json_object_get(seq, "setup"), "B_memory_u64");
	struct node_spec s = spec_of(g, seq);
	char name[128];
	struct node n;
	json_t *step;
	size_t k;

	if (g->bad || !node_init(&n, g, &s))
		return;
	if (memory && !n.spec.is_a) {
		uint64_t v = number(g, "B_memory_u64", memory);

		memcpy(n.mr->mem, &v, sizeof(v));
	}
	post_all(g, &n, json_object_get(seq, "posts"));
	json_array_foreach(json_object_get(seq, "steps"), k, step)
	{
		snprintf(name, sizeof(name), "%.100s step %zu", text(seq, "name"), k);
		g->name = name;
		g->skip = step_skipped(g, step);
		if (g->skip)
			break;
		run_step(g, &n, step);
	}
	g->name = text(seq, "name");
	node_fini(&n);
}

void run_sequences(struct golden *g, const json_t *sequences)
{
	json_t *seq;
	size_t i;

	if (!json_is_array(sequences)) {
		item_begin(g, "sequences");
		item_fail(g, "this group is no array");
		item_end(g);
	}
	json_array_foreach((json_t *)sequences, i, seq)
	{
		item_begin(g, text(seq, "name"));
		if (sequence_ok(g, seq))
			run_sequence(g, seq);
		item_end(g);
	}
}
