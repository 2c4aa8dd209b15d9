/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memory_kinds.h
 * For the tables of memory_kinds, whose rows register memory of end 0.
 */
#ifndef MEMORY_KINDS_H
#define MEMORY_KINDS_H

#include "memory.h"

#define PAGE 4096ul
#define MB   (1ul << 20)

/** A test of its own. */
struct row {
	const char *name;
	void (*run)(void);
};

#define ROW(name)           \
	{                   \
#name, name \
	}

/** Both ends, and the name of the row that runs. */
extern struct end e[2];
extern const char *row;

/** The rows of memory_afterwards.c. */
extern const struct row memory_afterwards[];

/** Registers; the program ends if it cannot. */
struct roci_mr *reg(void *addr, size_t len, int access);

/** Deregisters. */
void dereg(struct roci_mr *mr);

/** Registration must fail with @p err and a sentence. */
void refused(void *addr, size_t len, int access, int err);

/** Writes the bytes that belong to @p seed. */
void fill(void *p, size_t len, unsigned seed);

/** Ends the program unless the bytes are those of @p seed. */
void check(const void *p, size_t len, unsigned seed);

/** Registers memory, and both ends read and write it. */
void use(void *p, size_t len);

/** Private memory of the program's own, absent so far. */
void *anon(size_t len, int prot);

/** Touches @p n more pages of this thread's stack, one after the other. */
void deep(int n);

#endif
