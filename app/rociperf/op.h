/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file op.h
 * The operations that can be measured. A new one is one more row of op.c; its members describe it,
 * and no other file knows operations by name.
 */
#ifndef OP_H
#define OP_H

#include <roci.h>
#include <stdbool.h>
#include <stdint.h>

/** The service that an operation needs; each includes those before it. */
enum op_wants {
	OP_WANTS_DATAGRAMS,  /**< anything */
	OP_WANTS_CONNECTION, /**< access to the peer's memory */
	OP_WANTS_ANSWERS,    /**< and an answer to each request */
};

struct op {
	const char *name;  /**< on the command line */
	const char *title; /**< in reports */
	enum roci_wr_opcode opcode;
	enum op_wants wants;
	bool receives;	 /**< the target posts receives and gets completions */
	bool scatters;	 /**< the target's receives hold the data */
	bool fetches;	 /**< data comes back to the initiator; nothing at the target */
	bool atomic;	 /**< it does not change the target's word: 0 is added, or replaces 0 */
	bool flushes;	 /**< a FLUSH of the same bytes follows each request, and both form one
			  * message */
	bool inlines;	 /**< its data may be inline */
	uint32_t length; /**< the only size that it has; 0: any */
};

/** @return whether a latency test waits for the initiator's completion, because it reports an
 * effect that the target does not notice. */
static inline bool op_told(const struct op *op)
{
	return op->fetches || op->flushes;
}

extern const struct op op_table[];
extern const unsigned op_count;

/** @return the operation of that name, NULL if there is none. */
const struct op *op_find(const char *name);

#endif
