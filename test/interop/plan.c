/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "plan.h"

#define GOLDEN	   0x9e3779b97f4a7c15ull
#define GUARD_BYTE 0xA5

/* Sub-streams of a batch's seed. */
#define STREAM_TARGET 0x7461726765740000ull
#define STREAM_OPS    0x6f70730000000000ull

static const char *const kind_names[OP_KINDS] = {
	[OP_SEND] = "send",
	[OP_SEND_IMM] = "send_imm",
	[OP_WRITE] = "write",
	[OP_WRITE_IMM] = "write_imm",
	[OP_READ] = "read",
	[OP_CMP_SWAP] = "cmp_swap",
	[OP_FETCH_ADD] = "fetch_add",
	[OP_SEND_INV] = "send_inv",
};

const char *op_kind_name(enum op_kind kind)
{
	return kind_names[kind];
}

enum op_kind op_kind_find(const char *name)
{
	unsigned k;

	for (k = 0; k < OP_KINDS; k++)
		if (!strcmp(name, kind_names[k]))
			break;
	return k;
}

bool op_kind_takes_recv(enum op_kind kind)
{
	return op_kind_is_send(kind) || kind == OP_WRITE_IMM;
}

bool op_kind_is_send(enum op_kind kind)
{
	return kind == OP_SEND || kind == OP_SEND_IMM || kind == OP_SEND_INV;
}

bool op_kind_has_imm(enum op_kind kind)
{
	return kind == OP_SEND_IMM || kind == OP_WRITE_IMM;
}

bool op_kind_is_atomic(enum op_kind kind)
{
	return kind == OP_CMP_SWAP || kind == OP_FETCH_ADD;
}

uint64_t plan_random(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * GOLDEN;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint32_t clamp(uint64_t v, uint32_t lo, uint32_t hi)
{
	return v < lo ? lo : v > hi ? hi : (uint32_t)v;
}

/* Half of all lengths are k * mtu - 1, k * mtu or k * mtu + 1: that is where segmentation goes
 * wrong. A quarter are short (0..63 bytes), where padding does. The rest are uniform. */
static uint32_t random_len(const struct batch *b, uint64_t s)
{
	uint64_t shape = plan_random(s, 0), v = plan_random(s, 1);
	uint32_t span = b->max_len - b->min_len;

	if (shape % 4 < 2) {
		uint64_t len = (v % (b->max_len / b->mtu + 1)) * b->mtu;

		len += (shape >> 8) % 3;
		return clamp(len ? len - 1 : 0, b->min_len, b->max_len);
	}
	if (shape % 4 == 2)
		return clamp(b->min_len + v % 64, b->min_len, b->max_len);
	return b->min_len + (uint32_t)(v % ((uint64_t)span + 1));
}

void plan_op(const struct batch *b, uint32_t i, struct op *op)
{
	uint64_t s = plan_random(b->seed ^ STREAM_OPS, i);

	op->len = random_len(b, s);
	op->target_off = (uint32_t)(plan_random(s, 2) % (b->target_len - op->len + 1ull));
	op->imm = (uint32_t)plan_random(s, 3);
	op->seed = plan_random(s, 4);
	if (!op_kind_is_atomic(b->kind))
		return;
	op->len = sizeof(uint64_t);
	op->target_off =
		(uint32_t)(plan_random(s, 2) % (b->target_len / 8 < 16 ? b->target_len / 8 : 16)) *
		8;
}

/* Half of the CmpSwaps find what they look for. Words are in host order, as verbs has them. */
void plan_atomic(const struct batch *b, uint8_t *model, struct op *op)
{
	uint64_t word;

	memcpy(&op->orig, model + op->target_off, sizeof(op->orig));
	op->compare_add = op->seed;
	op->swap = plan_random(op->seed, 0);
	word = op->orig + op->compare_add;
	if (b->kind == OP_CMP_SWAP) {
		op->compare_add = op->orig + op->imm % 2;
		word = op->imm % 2 ? op->orig : op->swap;
	}
	memcpy(model + op->target_off, &word, sizeof(word));
}

static uint8_t content_byte(uint64_t seed, uint64_t pos)
{
	return (uint8_t)(plan_random(seed, pos >> 3) >> (8 * (pos & 7)));
}

void content_fill(uint64_t seed, uint64_t pos, uint8_t *buf, size_t len)
{
	size_t i = 0;

	while (i < len) {
		uint64_t word = plan_random(seed, (pos + i) >> 3) >> (8 * ((pos + i) & 7));

		do {
			buf[i] = (uint8_t)word;
			word >>= 8;
			i++;
		} while (i < len && ((pos + i) & 7));
	}
}

struct mismatch content_check(uint64_t seed, uint64_t pos, const uint8_t *buf, size_t len)
{
	struct mismatch m = {.at = -1};
	uint8_t expected[256];

	for (size_t i = 0; i < len; i += sizeof(expected)) {
		size_t n = len - i < sizeof(expected) ? len - i : sizeof(expected);

		content_fill(seed, pos + i, expected, n);
		if (!memcmp(expected, buf + i, n))
			continue;
		while (buf[i] == content_byte(seed, pos + i))
			i++;
		m.at = (int64_t)i;
		m.expected = content_byte(seed, pos + i);
		m.found = buf[i];
		return m;
	}
	return m;
}

uint64_t target_seed(const struct batch *b)
{
	return b->seed ^ STREAM_TARGET;
}

void target_fill(const struct batch *b, uint8_t *target)
{
	content_fill(target_seed(b), 0, target, b->target_len);
}

/* WRITEs of one queue pair are placed in order, so where they overlap the later one stays. */
void target_model(const struct batch *b, uint8_t *model)
{
	struct op op;

	target_fill(b, model);
	if (b->kind != OP_WRITE && b->kind != OP_WRITE_IMM && !op_kind_is_atomic(b->kind))
		return;
	for (uint32_t i = 0; i < b->count; i++) {
		plan_op(b, i, &op);
		if (op_kind_is_atomic(b->kind))
			plan_atomic(b, model, &op);
		else
			content_fill(op.seed, 0, model + op.target_off, op.len);
	}
}

unsigned plan_scatter(uint64_t seed, uint32_t len, unsigned max, struct piece pieces[])
{
	uint32_t off = (uint32_t)(plan_random(seed, 100) % 64), left = len;
	unsigned n = 0;

	while (left) {
		/* Leave at least a byte for each piece that follows. */
		uint32_t pieces_left = max - n, cut = left;
		uint64_t r = plan_random(seed, 101 + n);

		if (pieces_left > 1 && left > pieces_left)
			cut = 1 + (uint32_t)(r % (2ull * left / pieces_left));
		if (cut > left)
			cut = left;
		pieces[n].off = off;
		pieces[n].len = cut;
		off += cut + 1 + (uint32_t)(r >> 32) % 16;
		left -= cut;
		n++;
	}
	return n;
}

void slot_clear(uint8_t *slot, size_t slot_len)
{
	memset(slot, GUARD_BYTE, slot_len);
}

void slot_fill(uint8_t *slot, const struct piece pieces[], unsigned n, uint64_t seed, uint64_t pos)
{
	for (unsigned i = 0; i < n; i++) {
		content_fill(seed, pos, slot + pieces[i].off, pieces[i].len);
		pos += pieces[i].len;
	}
}

static struct mismatch guard_check(const uint8_t *slot, size_t from, size_t to)
{
	struct mismatch m = {.at = -1};

	for (size_t i = from; i < to; i++) {
		if (slot[i] != GUARD_BYTE) {
			m = (struct mismatch){(int64_t)i, GUARD_BYTE, slot[i], true};
			break;
		}
	}
	return m;
}

struct mismatch slot_check(const uint8_t *slot, size_t slot_len, const struct piece pieces[],
	unsigned n, uint64_t seed, uint64_t pos, uint32_t len)
{
	struct mismatch m;
	uint32_t seen = 0;
	size_t guard = 0; /* end of what was checked */

	for (unsigned i = 0; i < n && seen < len; i++) {
		uint32_t part = len - seen < pieces[i].len ? len - seen : pieces[i].len;

		m = guard_check(slot, guard, pieces[i].off);
		if (m.at >= 0)
			return m;
		m = content_check(seed, pos + seen, slot + pieces[i].off, part);
		if (m.at >= 0) {
			m.at += seen;
			return m;
		}
		seen += part;
		guard = pieces[i].off + part;
	}
	return guard_check(slot, guard, slot_len);
}

uint64_t digest_bytes(uint64_t digest, const uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		digest = (digest ^ buf[i]) * 0x100000001b3ull;
	return digest;
}

uint64_t digest_pieces(
	uint64_t digest, const uint8_t *slot, const struct piece pieces[], unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n && len; i++) {
		uint32_t part = len < pieces[i].len ? len : pieces[i].len;

		digest = digest_bytes(digest, slot + pieces[i].off, part);
		len -= part;
	}
	return digest;
}
