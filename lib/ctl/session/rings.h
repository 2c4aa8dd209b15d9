/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/rings.h
 * Shared memory in which rocid and a program exchange requests and completions: rings and
 * doorbells, charged to the program's session. Control thread.
 */
#ifndef SESSION_RINGS_H
#define SESSION_RINGS_H

#include <stddef.h>
#include "abi_ctl.h"

struct session;
struct shm;

/** Creates shared memory that is charged to @p s.  @return as shm_create(), or -EDQUOT beyond the
 *  limit. */
int rings_create(struct session *s, struct shm *m, const char *name, size_t size, int *fd,
	char why[ABI_SENTENCE_MAX]);

/** Has it unmapped, and releases the charge when it is; harmless if nothing is mapped. */
void rings_free(struct session *s, struct shm *m);

#endif
