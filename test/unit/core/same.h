/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file same.h
 * For tests that do the same with and without the fast paths: compares the results.
 */
#ifndef SAME_H
#define SAME_H

#include "lone.h"

/** The two paths: without and with the fast ones. */
enum {
	LONG,
	SHORT,
	WAYS
};

/** Compares all state of the transport. */
void same_qp(const struct qp *a, const struct qp *b);

/** Compares that, the next packets and completions, memory, and counters. */
void same_lone(struct lone *a, struct lone *b);

/** Changes a packet of a run so that it is no longer part of the run. */
typedef void (*stranger)(struct lone *l, struct shot *s);

/** One per kind; the first WITHOUT_PAYLOAD of them need no payload. */
#define STRANGERS	10u
#define WITHOUT_PAYLOAD 9u
extern const stranger strangers[STRANGERS];

#endif
