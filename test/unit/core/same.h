/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file same.h
 * For tests that do the same with and without the fast paths: what must be the same afterwards.
 */
#ifndef SAME_H
#define SAME_H

#include "lone.h"

/** The two ways. */
enum {
	LONG,
	SHORT,
	WAYS
};

/** All state of the transport. */
void same_qp(const struct qp *a, const struct qp *b);

/** That, what they send and complete now, their memory, and their counters. */
void same_lone(struct lone *a, struct lone *b);

/** Changes a packet of a run into one that is no part of it. */
typedef void (*stranger)(struct lone *l, struct shot *s);

/** Those of any kind; the first WITHOUT_PAYLOAD of them need no payload. */
#define STRANGERS	10u
#define WITHOUT_PAYLOAD 9u
extern const stranger strangers[STRANGERS];

#endif
