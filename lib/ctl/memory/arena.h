/* SPDX-License-Identifier: BSD-3-Clause */
/** @file memory/arena.h  Opens descriptors with which a program can make any memory registrable
 *  (doc/abi.md, "Memory regions"). rocid keeps none of them. */
#ifndef MEMORY_ARENA_H
#define MEMORY_ARENA_H

#include "abi_ctl.h"

/** Creates the sealed file of ABI_ARENA_SIZE bytes to which a program's memory moves. The program
 *  could not create it under a file size limit (ulimit -f). @p page: as in abi_get_arena.
 *  @return a descriptor, or a negative errno with a sentence. */
int arena_file(uint32_t page, char why[ABI_SENTENCE_MAX]);

/** @return a descriptor of /dev/userfaultfd, or -EOPNOTSUPP with a sentence. */
int arena_userfaultfd(char why[ABI_SENTENCE_MAX]);

#endif
