/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer program: meets another peer over TCP, connects one queue pair with it, and then
 * either drives batches of operations or follows. peer_protocol.md is the reference.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "line.h"
#include "options.h"
#include "plan.h"
#include "xport.h"

#define PROTOCOL_VERSION 1
#define POLL_BURST	 16
/* A poll loop that never sleeps starves the peer's own transport in an emulated guest. */
#define IDLE_US	    50
#define RNR_TEST_MS 100
#define GRACE_S	    15 /* for the last message, where it was not lost */

struct peer {
	struct options opt;
	struct line_conn line;
	struct xport *x;
	struct memory mem;
	struct endpoint local, remote;
	size_t slot_len; /* the local memory is depth receive slots, then depth send slots */
	unsigned complaints;
	uint32_t uc_posted, uc_taken; /* UC, UD: receives, which outlive their batch */
	bool window_bound;	      /* --mw: ours, for all that we know */
	uint32_t window_rkey;
};

/* --- Meeting ------------------------------------------------------------------------ */

static int hello_send(struct peer *p)
{
	const struct endpoint *e = &p->local;
	char gid[33];

	for (unsigned i = 0; i < 16; i++)
		snprintf(gid + 2 * i, 3, "%02x", e->gid[i]);
	return line_send(&p->line,
		"hello %d %s qpn=%06x psn=%06x gid=%s mtu=%u rd=%u va=%016" PRIx64
		" rkey=%08x len=%u",
		PROTOCOL_VERSION, p->opt.driver ? "driver" : "follower", e->qpn, e->psn, gid,
		e->mtu, e->rd, e->va, e->rkey, e->len);
}

static int hello_recv(struct peer *p)
{
	char line[LINE_MAX_LEN], role[9], gid[33];
	struct endpoint *e = &p->remote;
	int version, n;

	if (line_recv(&p->line, line))
		return -1;
	n = sscanf(line,
		"hello %d %8s qpn=%x psn=%x gid=%32[0-9a-f] mtu=%u rd=%u va=%" SCNx64
		" rkey=%x len=%u",
		&version, role, &e->qpn, &e->psn, gid, &e->mtu, &e->rd, &e->va, &e->rkey, &e->len);
	if (n != 10 || strlen(gid) != 32 || version != PROTOCOL_VERSION) {
		fprintf(stderr, "the peer does not speak version %d of the protocol: %s\n",
			PROTOCOL_VERSION, line);
		return -1;
	}
	if (!strcmp(role, "driver") == p->opt.driver) {
		fprintf(stderr, "both sides are %ss: give --driver to exactly one\n", role);
		return -1;
	}
	if (e->mtu < 256 || e->mtu > 4096 || e->mtu & (e->mtu - 1)) {
		fprintf(stderr, "the peer offers a path MTU of %u\n", e->mtu);
		return -1;
	}
	for (unsigned i = 0; i < 16; i++)
		sscanf(gid + 2 * i, "%2hhx", &e->gid[i]);
	return 0;
}

static int expect(struct peer *p, const char *word)
{
	char line[LINE_MAX_LEN];

	if (line_recv(&p->line, line))
		return -1;
	if (!strcmp(line, word))
		return 0;
	fprintf(stderr, "the peer said \"%s\" instead of \"%s\"\n", line, word);
	return -1;
}

/* The client speaks first each time. */
static int meet(struct peer *p)
{
	bool client = p->opt.host != NULL;

	if (line_open(&p->line, p->opt.host, p->opt.port, p->opt.wait_s))
		return -1;
	p->slot_len = p->opt.max_len + PLAN_SLOT_OVERHEAD;
	p->x = xport_open(&p->opt, 2 * p->opt.depth * p->slot_len, &p->local, &p->mem);
	if (!p->x)
		return -1;
	if (client && hello_send(p))
		return -1;
	if (hello_recv(p))
		return -1;
	if (!client && hello_send(p))
		return -1;
	if (xport_connect(p->x, &p->remote))
		return -1;
	if (client && line_send(&p->line, "ready"))
		return -1;
	if (expect(p, "ready"))
		return -1;
	return client ? 0 : line_send(&p->line, "ready");
}

/* --- Checking ----------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void complain(struct peer *p, const char *fmt, ...)
{
	va_list ap;

	p->complaints++;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void complain_bytes(
	struct peer *p, const char *what, uint32_t i, uint32_t len, struct mismatch m)
{
	if (m.at < 0)
		return;
	complain(p, "%s %u of %u bytes: byte %" PRId64 " %s is %02x, expected %02x", what, i, len,
		m.at, m.guard ? "of the slot, outside the message," : "of the message", m.found,
		m.expected);
}

static uint8_t *recv_slot(const struct peer *p, uint32_t i)
{
	return p->mem.local + i % p->opt.depth * p->slot_len;
}

static uint8_t *send_slot(const struct peer *p, uint32_t i)
{
	return p->mem.local + (p->opt.depth + i % p->opt.depth) * p->slot_len;
}

static size_t slot_off(const struct peer *p, const uint8_t *slot)
{
	return (size_t)(slot - p->mem.local);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

struct deadline {
	time_t end;
	unsigned wait_s;
};

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* Poll once; sleep a little when there is nothing. */
static int poll_some(struct peer *p, struct done done[], struct deadline *d, const char *what)
{
	int n = xport_poll(p->x, done, POLL_BURST);

	if (n > 0) {
		d->end = now() + d->wait_s;
		return n;
	}
	if (!n && now() >= d->end) {
		complain(p, "no completion of a %s for %u s", what, d->wait_s);
		return -1;
	}
	if (!n)
		usleep(IDLE_US);
	return n;
}

static bool may_lose(const struct peer *p)
{
	return p->opt.uc || p->opt.ud;
}

/* --- Driving ------------------------------------------------------------------------ */

/* With --mw the follower says which rkey its window has now. */
static int go_recv(struct peer *p)
{
	char line[LINE_MAX_LEN];

	if (!p->opt.mw)
		return expect(p, "go");
	if (line_recv(&p->line, line))
		return -1;
	if (sscanf(line, "go %x", &p->remote.rkey) == 1)
		return 0;
	fprintf(stderr, "the peer said \"%s\" instead of \"go RKEY\"\n", line);
	return -1;
}

struct drive {
	struct batch b;
	uint32_t posted, completed;
	uint64_t bytes, digest;
	uint8_t *model; /* atomics: the target memory when all that is posted is done */
	uint64_t *orig; /* and the answers that are due, by index modulo depth */
};

static bool fetches(enum op_kind kind)
{
	return kind == OP_READ || op_kind_is_atomic(kind);
}

static unsigned drive_pieces(const struct peer *p, const struct drive *d, uint32_t i, uint32_t len,
	struct piece pieces[])
{
	return plan_scatter(
		d->b.seed + i, len, op_kind_is_atomic(d->b.kind) ? 1 : p->opt.sge, pieces);
}

static int drive_post(struct peer *p, struct drive *d, uint32_t i)
{
	struct piece pieces[PLAN_MAX_SGE];
	uint8_t *slot = send_slot(p, i);
	bool last = i + 1 == d->b.count, signaled = (i + 1) % p->opt.signal_every == 0 || last;
	enum op_kind kind = d->b.kind == OP_SEND_INV && !last ? OP_SEND : d->b.kind;
	struct remote to = {.rkey = p->remote.rkey};
	unsigned n;
	struct op op;

	plan_op(&d->b, i, &op);
	n = drive_pieces(p, d, i, op.len, pieces);
	slot_clear(slot, p->slot_len);
	if (op_kind_is_atomic(d->b.kind)) {
		plan_atomic(&d->b, d->model, &op);
		d->orig[i % p->opt.depth] = op.orig;
	}
	if (!fetches(d->b.kind))
		slot_fill(slot, pieces, n, op.seed, 0);
	if (op_kind_is_send(kind))
		d->digest = digest_pieces(d->digest, slot, pieces, n, op.len);
	d->bytes += op.len;
	to.va = p->remote.va + op.target_off;
	return xport_post(p->x, &op, kind, i, slot_off(p, slot), pieces, n, &to, signaled);
}

static void atomic_completed(struct peer *p, const struct drive *d, uint32_t i)
{
	uint64_t orig = d->orig[i % p->opt.depth], got;
	struct piece piece[PLAN_MAX_SGE];
	uint8_t *slot = send_slot(p, i);

	drive_pieces(p, d, i, sizeof(got), piece);
	memcpy(&got, slot + piece->off, sizeof(got));
	if (got != orig)
		complain(p, "%s %u: the answer is %016" PRIx64 ", expected %016" PRIx64,
			op_kind_name(d->b.kind), i, got, orig);
	slot_clear(slot + piece->off, sizeof(got));
	complain_bytes(p, op_kind_name(d->b.kind), i, sizeof(got),
		slot_check(slot, p->slot_len, NULL, 0, 0, 0, 0));
}

/* A local buffer must come back as it was, and a READ's must hold the target's bytes. */
static void drive_completed(struct peer *p, struct drive *d, uint32_t i)
{
	struct piece pieces[PLAN_MAX_SGE];
	bool read = d->b.kind == OP_READ;
	struct op op;
	unsigned n;

	if (op_kind_is_atomic(d->b.kind)) {
		atomic_completed(p, d, i);
		return;
	}
	plan_op(&d->b, i, &op);
	n = drive_pieces(p, d, i, op.len, pieces);
	complain_bytes(p, op_kind_name(d->b.kind), i, op.len,
		slot_check(send_slot(p, i), p->slot_len, pieces, n,
			read ? target_seed(&d->b) : op.seed, read ? op.target_off : 0, op.len));
}

static int drive_ops(struct peer *p, struct drive *d)
{
	struct deadline dl = {now() + p->opt.wait_s, p->opt.wait_s};
	struct done done[POLL_BURST];

	while (d->completed < d->b.count) {
		int n;

		while (d->posted < d->b.count && d->posted - d->completed < p->opt.depth)
			if (drive_post(p, d, d->posted++))
				return -1;
		n = poll_some(p, done, &dl, op_kind_name(d->b.kind));
		if (n < 0)
			return -1;
		for (int k = 0; k < n; k++) {
			if (done[k].recv || done[k].id < d->completed || done[k].id >= d->posted) {
				complain(p,
					"a completion of request %" PRIu64
					" came out of order (requests %u to %u are out)",
					done[k].id, d->completed, d->posted - 1);
				return -1;
			}
			while (d->completed <= done[k].id)
				drive_completed(p, d, d->completed++);
		}
	}
	return 0;
}

/* The expected digest of the follower; SENDs were added as they were posted. */
static uint64_t expected_digest(const struct drive *d)
{
	uint8_t *model;
	uint64_t digest;

	if (op_kind_is_send(d->b.kind))
		return d->digest;
	model = malloc(d->b.target_len);
	if (!model)
		abort();
	target_model(&d->b, model);
	digest = digest_bytes(DIGEST_INIT, model, d->b.target_len);
	free(model);
	return digest;
}

static int drive_atomics(struct peer *p, struct drive *d)
{
	int rc;

	d->model = malloc(d->b.target_len);
	d->orig = calloc(p->opt.depth, sizeof(*d->orig));
	if (!d->model || !d->orig)
		abort();
	target_fill(&d->b, d->model);
	rc = drive_ops(p, d);
	free(d->model);
	free(d->orig);
	return rc;
}

static int drive_batch(struct peer *p, enum op_kind kind, uint32_t round)
{
	struct drive d = {
		.b = {kind, p->opt.count, plan_random(p->opt.seed, round * OP_KINDS + kind),
			p->opt.min_len, smaller(p->opt.max_len, p->remote.len),
			smaller(p->local.mtu, p->remote.mtu), p->remote.len},
		.digest = DIGEST_INIT,
	};
	const char *name = op_kind_name(kind);
	char line[LINE_MAX_LEN];
	uint64_t digest;

	if (line_send(&p->line, "batch %s %u %016" PRIx64 " %u %u", name, d.b.count, d.b.seed,
		    d.b.min_len, d.b.max_len) ||
		go_recv(p) || (op_kind_is_atomic(kind) ? drive_atomics(p, &d) : drive_ops(p, &d)) ||
		line_send(&p->line, "end") || line_recv(&p->line, line))
		return -1;
	if (may_lose(p) && sscanf(line, "done %" SCNx64, &digest) == 1)
		printf("%s: %u messages, %" PRIu64 " arrived\n", name, d.b.count, digest);
	else if (sscanf(line, "done %" SCNx64, &digest) != 1)
		complain(p, "%s seed %016" PRIx64 ": the follower says: %s", name, d.b.seed, line);
	else if (digest != expected_digest(&d))
		complain(p, "%s seed %016" PRIx64 ": digest %016" PRIx64 ", expected %016" PRIx64,
			name, d.b.seed, digest, expected_digest(&d));
	else
		printf("%s: %u messages, %" PRIu64 " bytes, digest %016" PRIx64 "\n", name,
			d.b.count, d.bytes, digest);
	return 0;
}

/* A WRITE by an rkey that the follower has invalidated: refused, and nothing is written. The queue
 * pairs are of no use afterwards. */
static int drive_stale(struct peer *p)
{
	struct batch b = {OP_WRITE, 1, p->opt.seed, 1, 1, 256, p->remote.len};
	struct remote to = {p->remote.va, p->remote.rkey};
	struct piece piece = {0, 1};
	struct op op;

	plan_op(&b, 0, &op);
	slot_clear(send_slot(p, 0), p->slot_len);
	if (line_send(&p->line, "stale") || expect(p, "go") ||
		xport_post(p->x, &op, OP_WRITE, 0, slot_off(p, send_slot(p, 0)), &piece, 1, &to,
			true) ||
		xport_refused(p->x))
		return -1;
	printf("a WRITE by the rkey that was valid before: refused\n");
	return line_send(&p->line, "end") || expect(p, "done");
}

static int drive(struct peer *p)
{
	for (uint32_t round = 0; round < p->opt.rounds; round++)
		for (unsigned kind = 0; kind < OP_KINDS; kind++)
			if (p->opt.kinds & 1u << kind && drive_batch(p, kind, round))
				return -1;
	if (p->opt.mw && drive_stale(p))
		return -1;
	if (line_send(&p->line, "quit"))
		return -1;
	return expect(p, "bye");
}

/* --- Following ---------------------------------------------------------------------- */

struct follow {
	struct batch b;
	uint32_t posted, received;
	uint64_t digest;
};

/* Receives are scattered over their whole capacity, so a short message ends inside. */
static unsigned recv_pieces(
	const struct peer *p, const struct batch *b, uint32_t i, struct piece pieces[])
{
	return plan_scatter(~b->seed + i, b->max_len, p->opt.sge, pieces);
}

static int post_receives(struct peer *p, struct follow *f)
{
	struct piece pieces[PLAN_MAX_SGE];

	while (f->posted < f->b.count && f->posted - f->received < p->opt.depth) {
		uint8_t *slot = recv_slot(p, f->posted);
		unsigned n = recv_pieces(p, &f->b, f->posted, pieces);

		slot_clear(slot, p->slot_len);
		if (xport_post_recv(p->x, f->posted, slot_off(p, slot), pieces, n))
			return -1;
		f->posted++;
	}
	return 0;
}

static void received(struct peer *p, struct follow *f, const struct done *done)
{
	const char *name = op_kind_name(f->b.kind);
	struct piece pieces[PLAN_MAX_SGE];
	uint32_t i = f->received++;
	uint8_t *slot = recv_slot(p, i);
	bool imm = op_kind_has_imm(f->b.kind), data = f->b.kind != OP_WRITE_IMM;
	bool inv = f->b.kind == OP_SEND_INV && i + 1 == f->b.count;
	unsigned n = recv_pieces(p, &f->b, i, pieces);
	struct op op;

	plan_op(&f->b, i, &op);
	if (!done->recv || done->id != i) {
		complain(p, "%s %u: completion of %s %" PRIu64 " instead", name, i,
			done->recv ? "receive" : "request", done->id);
		return;
	}
	if (done->byte_len != op.len)
		complain(p, "%s %u: %u bytes received, %u expected", name, i, done->byte_len,
			op.len);
	if (done->has_imm != imm)
		complain(p, "%s %u: came %s immediate data", name, i, imm ? "without" : "with");
	else if (imm && done->imm != op.imm)
		complain(p, "%s %u: immediate %08x, expected %08x", name, i, done->imm, op.imm);
	if (done->has_inv != inv || (inv && done->inv_rkey != p->window_rkey))
		complain(p, "%s %u: invalidated %08x, the window has %08x", name, i,
			done->has_inv ? done->inv_rkey : 0, inv ? p->window_rkey : 0);
	complain_bytes(p, name, i, op.len,
		slot_check(slot, p->slot_len, pieces, n, op.seed, 0, data ? op.len : 0));
	if (data)
		f->digest = digest_pieces(f->digest, slot, pieces, n, op.len);
}

static int follow_receives(struct peer *p, struct follow *f)
{
	struct deadline dl = {now() + p->opt.wait_s, p->opt.wait_s};
	struct done done[POLL_BURST];
	bool hurried = false;

	while (f->received < f->b.count) {
		int n = poll_some(p, done, &dl, op_kind_name(f->b.kind));

		if (n < 0)
			return -1;
		for (int k = 0; k < n; k++)
			received(p, f, &done[k]);
		if (n && post_receives(p, f))
			return -1;
		/* The driver is through, or gone: what is to come must be here soon. */
		if (!n && !hurried && line_pending(&p->line)) {
			hurried = true;
			dl.end = now() + GRACE_S;
		}
	}
	return 0;
}

static void follow_check(struct peer *p, struct follow *f)
{
	uint8_t *model = malloc(f->b.target_len);

	if (!model)
		abort();
	target_model(&f->b, model);
	for (uint32_t i = 0; i < f->b.target_len; i++) {
		if (model[i] == p->mem.target[i])
			continue;
		complain(p, "%s: byte %u of the target memory is %02x, expected %02x",
			op_kind_name(f->b.kind), i, p->mem.target[i], model[i]);
		break;
	}
	free(model);
	if (!op_kind_is_send(f->b.kind))
		f->digest = digest_bytes(DIGEST_INIT, p->mem.target, f->b.target_len);
}

/* --- Following UC and UD: what comes is whole, and in order, but may not come ----------------- */

static int uc_post_receives(struct peer *p)
{
	while (p->uc_posted - p->uc_taken < p->opt.depth) {
		struct piece all = {0, p->opt.max_len};
		uint8_t *slot = recv_slot(p, p->uc_posted);

		if (xport_post_recv(p->x, p->uc_posted, slot_off(p, slot), &all, 1))
			return -1;
		p->uc_posted++;
	}
	return 0;
}

/* Whether @p done can be operation @p i. Behind it may lie what came of a longer one. */
static bool uc_is(struct peer *p, const struct batch *b, uint32_t i, const struct done *done)
{
	const uint8_t *slot = recv_slot(p, p->uc_taken);
	bool imm = op_kind_has_imm(b->kind);
	struct op op;

	plan_op(b, i, &op);
	if (done->byte_len != op.len || done->has_imm != imm || (imm && done->imm != op.imm))
		return false;
	if (b->kind == OP_WRITE_IMM)
		return true; /* the bytes are looked at in the end */
	return content_check(op.seed, 0, slot, op.len).at < 0;
}

static void uc_received(struct peer *p, struct follow *f, const struct done *done)
{
	uint32_t i = f->received;

	if (!done->recv || done->id != p->uc_taken)
		complain(p, "completion %" PRIu64 " instead of receive %u", done->id, p->uc_taken);
	while (i < f->b.count && !uc_is(p, &f->b, i, done))
		i++;
	if (i == f->b.count)
		complain(p, "%s: %u bytes came that are no message after %u",
			op_kind_name(f->b.kind), done->byte_len, f->received);
	else
		f->received = i + 1;
	f->posted++; /* so many arrived */
	p->uc_taken++;
}

/* A WRITE makes no completion here; its bytes show that it, and what was before it, has come. */
static bool uc_last_came(struct peer *p, const struct follow *f)
{
	struct op op;

	if (f->b.kind != OP_WRITE)
		return f->received == f->b.count;
	plan_op(&f->b, f->b.count - 1, &op);
	return op.len && content_check(op.seed, 0, p->mem.target + op.target_off, op.len).at < 0;
}

/* Until the driver is through and the last message has come, or nothing for a while. */
static int uc_follow(struct peer *p, struct follow *f)
{
	struct done done[POLL_BURST];
	time_t start = now(), end = 0;

	while (!end || now() < end) {
		int n = xport_poll(p->x, done, POLL_BURST);

		if (n < 0)
			return -1;
		for (int k = 0; k < n; k++)
			uc_received(p, f, &done[k]);
		if (n && uc_post_receives(p))
			return -1;
		if ((n || !end) && line_pending(&p->line))
			end = now() + GRACE_S;
		if (end && uc_last_came(p, f))
			break;
		if (!end && now() > start + p->opt.wait_s) {
			complain(p, "the driver says nothing for %u s", p->opt.wait_s);
			return -1;
		}
		if (!n)
			usleep(IDLE_US);
	}
	return 0;
}

/* Each byte is as before the batch, or some WRITE's; @return how many WRITEs lie there whole. */
static uint32_t uc_check_target(struct peer *p, const struct batch *b)
{
	uint8_t *was = malloc(b->target_len), *ok = calloc(b->target_len, 1);
	uint8_t *bytes = malloc(b->max_len + 1u);
	uint32_t whole = 0;
	struct op op;

	if (!was || !ok || !bytes)
		abort();
	target_fill(b, was);
	for (uint32_t i = 0; i < b->target_len; i++)
		ok[i] = was[i] == p->mem.target[i];
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t same = 0;

		plan_op(b, i, &op);
		content_fill(op.seed, 0, bytes, op.len);
		for (uint32_t k = 0; k < op.len; k++)
			if (bytes[k] == p->mem.target[op.target_off + k])
				ok[op.target_off + k] = 1, same++;
		whole += op.len && same == op.len;
	}
	for (uint32_t i = 0; i < b->target_len; i++) {
		if (ok[i])
			continue;
		complain(p, "%s: byte %u of the target memory is %02x, which nobody wrote there",
			op_kind_name(b->kind), i, p->mem.target[i]);
		break;
	}
	free(was);
	free(ok);
	free(bytes);
	return whole;
}

static int uc_follow_batch(struct peer *p, const struct batch *b)
{
	struct follow f = {.b = *b};
	unsigned before = p->complaints;
	bool writes = b->kind == OP_WRITE || b->kind == OP_WRITE_IMM;
	uint32_t arrived;

	target_fill(b, p->mem.target);
	if (uc_post_receives(p) || line_send(&p->line, "go") || uc_follow(p, &f) ||
		expect(p, "end"))
		return -1;
	arrived = writes ? uc_check_target(p, b) : f.posted;
	printf("%s: %u messages, %u arrived\n", op_kind_name(b->kind), b->count, arrived);
	if (!arrived || (op_kind_takes_recv(b->kind) && !f.posted))
		complain(p, "%s: nothing arrived", op_kind_name(b->kind));
	/* A datagram lives or dies alone, so the rate of the loss is that of the messages. */
	if (p->opt.ud && b->count <= p->opt.depth && arrived * 2 < b->count)
		complain(p, "%s: only %u of %u arrived", op_kind_name(b->kind), arrived, b->count);
	if (p->complaints != before)
		return line_send(&p->line, "fail %u complaints, see the follower's output",
			p->complaints - before);
	return line_send(&p->line, "done %016" PRIx64, (uint64_t)arrived);
}

/* --- Following, again ----------------------------------------------------------------- */

/* Each batch finds another rkey. A window cannot be bound again unless the SEND_WITH_INV
 * invalidated it, so this fails if it did not. */
static int window_renew(struct peer *p)
{
	if (!p->opt.mw)
		return 0;
	if (xport_bind(p->x, p->window_bound, &p->window_rkey))
		return -1;
	p->window_bound = true;
	return 0;
}

static int go_send(struct peer *p)
{
	return p->opt.mw ? line_send(&p->line, "go %08x", p->window_rkey)
			 : line_send(&p->line, "go");
}

static int follow_batch(struct peer *p, struct batch *b)
{
	struct follow f = {.b = *b, .digest = DIGEST_INIT};
	unsigned before = p->complaints;
	bool receives = op_kind_takes_recv(b->kind);

	target_fill(b, p->mem.target);
	if (window_renew(p))
		return -1;
	if (receives && !p->opt.rnr_test && post_receives(p, &f))
		return -1;
	if (go_send(p))
		return -1;
	if (receives && p->opt.rnr_test) {
		usleep(RNR_TEST_MS * 1000);
		if (post_receives(p, &f))
			return -1;
	}
	if (receives && follow_receives(p, &f)) {
		line_send(&p->line, "fail %u of %u received", f.received, b->count);
		return -1;
	}
	if (b->kind == OP_SEND_INV)
		p->window_bound = false;
	if (expect(p, "end"))
		return -1;
	follow_check(p, &f);
	printf("%s: %u messages, digest %016" PRIx64 "\n", op_kind_name(b->kind), b->count,
		f.digest);
	if (p->complaints != before)
		return line_send(&p->line, "fail %u complaints, see the follower's output",
			p->complaints - before);
	return line_send(&p->line, "done %016" PRIx64, f.digest);
}

/* The driver is about to use an rkey that it has used before. */
static int follow_stale(struct peer *p)
{
	uint32_t was = p->window_rkey;
	uint8_t byte;

	p->mem.target[0] = 0;
	if (window_renew(p) || was == p->window_rkey || line_send(&p->line, "go") ||
		expect(p, "end"))
		return -1;
	byte = p->mem.target[0];
	if (byte)
		complain(p, "a WRITE by an rkey of the past has put %02x here", byte);
	return line_send(&p->line, byte ? "fail" : "done");
}

static int follow(struct peer *p)
{
	for (;;) {
		struct batch b = {
			.mtu = smaller(p->local.mtu, p->remote.mtu),
			.target_len = p->local.len,
		};
		char line[LINE_MAX_LEN], name[16];

		if (line_recv(&p->line, line))
			return -1;
		if (!strcmp(line, "quit"))
			return line_send(&p->line, "bye");
		if (p->opt.mw && !strcmp(line, "stale")) {
			if (follow_stale(p))
				return -1;
			continue;
		}
		if (sscanf(line, "batch %15s %u %" SCNx64 " %u %u", name, &b.count, &b.seed,
			    &b.min_len, &b.max_len) != 5 ||
			(b.kind = op_kind_find(name)) == OP_KINDS || b.min_len > b.max_len) {
			fprintf(stderr, "the driver says what nobody understands: %s\n", line);
			line_send(&p->line, "fail unknown command");
			return -1;
		}
		if (b.max_len > p->opt.max_len || b.max_len > b.target_len) {
			line_send(&p->line, "fail messages of %u bytes: my --max is %u", b.max_len,
				p->opt.max_len);
			return -1;
		}
		if (may_lose(p) ? uc_follow_batch(p, &b) : follow_batch(p, &b))
			return -1;
	}
}

int main(int argc, char **argv)
{
	static struct peer p = {.line.fd = -1};
	int rc;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options_parse(&p.opt, argc, argv);
	rc = meet(&p);
	if (!rc)
		rc = p.opt.driver ? drive(&p) : follow(&p);
	line_close(&p.line);
	if (p.x)
		xport_close(p.x);
	if (rc || p.complaints) {
		printf("FAIL\n");
		return 1;
	}
	printf("PASS\n");
	return 0;
}
