/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file plan.h
 * The operations of the two peers in an interop run. Both sides derive them from the same seed, so
 * that every byte can be checked without being sent. No transport and no input/output in here.
 *
 * The only generator is splitmix64: output number n of a seed is mix(seed + (n + 1) * GOLDEN),
 * so any output is reached directly. peer_protocol.md says how the peers use it.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_MAX_SGE	   16
#define PLAN_SLOT_OVERHEAD 512 /* room around a message for unaligned starts and gaps */

enum op_kind {
	OP_SEND,
	OP_SEND_IMM,
	OP_WRITE,
	OP_WRITE_IMM,
	OP_READ,
	OP_CMP_SWAP,
	OP_FETCH_ADD,
	OP_SEND_INV, /* SENDs, the last of which invalidates the follower's window */
	OP_KINDS
};

/** A run of operations of one kind: everything that the driver tells the follower about it. */
struct batch {
	enum op_kind kind;
	uint32_t count;
	uint64_t seed;
	uint32_t min_len; /* bytes, inclusive */
	uint32_t max_len;
	uint32_t mtu;	     /* path MTU of the connection: lengths cluster around its multiples */
	uint32_t target_len; /* bytes of the follower's target memory, at least max_len */
};

/** Operation number i of a batch. */
struct op {
	uint32_t len;
	uint32_t target_off; /* WRITE, READ: offset in the follower's target memory */
	uint32_t imm;	     /* *_IMM: host order */
	uint64_t seed;	     /* SEND, WRITE: of the message's bytes */
	/* atomics: plan_atomic() fills them in */
	uint64_t compare_add;
	uint64_t swap;
	uint64_t orig; /* the response */
};

/** One piece of a message in local memory, for one SGE. */
struct piece {
	uint32_t off; /* from the start of the slot */
	uint32_t len;
};

/** Where a check failed; ok() is at < 0. */
struct mismatch {
	int64_t at; /* first differing offset, -1 when all is equal */
	uint8_t expected, found;
	bool guard; /* the byte lies outside the message: something wrote beyond it */
};

const char *op_kind_name(enum op_kind kind);
/** @return the kind called @p name, or OP_KINDS. */
enum op_kind op_kind_find(const char *name);
/** @return true when each operation takes a receive of the follower. */
bool op_kind_takes_recv(enum op_kind kind);

/** @return true for SENDs of any kind: the bytes go into receives of the follower. */
bool op_kind_is_send(enum op_kind kind);
/** @return true when each operation has immediate data. */
bool op_kind_has_imm(enum op_kind kind);

/** @return true for CmpSwap and FetchAdd: 8 bytes, one SGE. */
bool op_kind_is_atomic(enum op_kind kind);

/** Output number @p n of the generator seeded with @p seed. */
uint64_t plan_random(uint64_t seed, uint64_t n);

/** Operation @p i of @p b, 0 <= i < b->count. */
void plan_op(const struct batch *b, uint32_t i, struct op *op);

/** Bytes @p pos .. @p pos + @p len of the contents of @p seed. */
void content_fill(uint64_t seed, uint64_t pos, uint8_t *buf, size_t len);
struct mismatch content_check(uint64_t seed, uint64_t pos, const uint8_t *buf, size_t len);

/** Fills in the operands of atomic @p op, the next one of @p b, and executes it on @p model, the
 *  contents of the target memory at that point. */
void plan_atomic(const struct batch *b, uint8_t *model, struct op *op);

/** The follower fills its target memory with this before a batch. */
void target_fill(const struct batch *b, uint8_t *target);
/** The expected target memory after the batch; every byte of it is defined. */
void target_model(const struct batch *b, uint8_t *model);
/** The expected result of READ number @p i: contents of this seed from op.target_off on. */
uint64_t target_seed(const struct batch *b);

/**
 * Cut @p len bytes into at most @p max pieces (1..PLAN_MAX_SGE) of at least one byte at odd
 * places with gaps between them, within len + PLAN_SLOT_OVERHEAD bytes.
 * @return the number of pieces; 0 for an empty message.
 */
unsigned plan_scatter(uint64_t seed, uint32_t len, unsigned max, struct piece pieces[]);

/** Marks the whole slot as untouched. */
void slot_clear(uint8_t *slot, size_t slot_len);
void slot_fill(uint8_t *slot, const struct piece pieces[], unsigned n, uint64_t seed, uint64_t pos);
/** The first @p len bytes of the pieces are contents of @p seed from @p pos on; the rest of the
 *  slot is untouched. */
struct mismatch slot_check(const uint8_t *slot, size_t slot_len, const struct piece pieces[],
	unsigned n, uint64_t seed, uint64_t pos, uint32_t len);

/** FNV-1a over 64 bits; start with DIGEST_INIT. */
#define DIGEST_INIT 0xcbf29ce484222325ull
uint64_t digest_bytes(uint64_t digest, const uint8_t *buf, size_t len);
/** @return the digest of the @p len bytes of a message that is in the pieces. */
uint64_t digest_pieces(uint64_t digest, const uint8_t *slot, const struct piece pieces[],
	unsigned n, uint32_t len);

#endif
