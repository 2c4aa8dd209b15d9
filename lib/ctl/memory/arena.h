/* SPDX-License-Identifier: BSD-3-Clause */
/** @file memory/arena.h  Descriptors that a program needs to make any memory registrable
 *  (doc/abi.md, "Memory regions"). rocid keeps nothing of them. */
#ifndef MEMORY_ARENA_H
#define MEMORY_ARENA_H

#include "abi_ctl.h"

/** The file of ABI_ARENA_SIZE bytes, sealed, that a program's memory moves into. It could not make
 *  the file itself under a limit of file sizes (ulimit -f). @p page: as in abi_get_arena.
 *  @return a descriptor, or a negative errno with a sentence. */
int arena_file(uint32_t page, char why[ABI_SENTENCE_MAX]);

/** @return a descriptor of /dev/userfaultfd, or -EOPNOTSUPP with a sentence. */
int arena_userfaultfd(char why[ABI_SENTENCE_MAX]);

#endif
