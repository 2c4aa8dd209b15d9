/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/mapping.h
 * Mappings of applications' files. Regions of a session within the same aligned piece of a file
 * share one mapping, because a process can have only vm.max_map_count mappings, and programs
 * register tens of thousands of small buffers. A region that consists of several ranges of its file
 * has a separate mapping, in which they are side by side. Control thread.
 */
#ifndef SESSION_MAPPING_H
#define SESSION_MAPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "abi_ctl.h"
#include "list.h"
#include "memory/shm.h"
#include "mr.h"

struct session;
struct sessions;

struct mapping {
	struct list node; /* in sessions.mapping, while others may share it */
	struct session *session;
	dev_t dev;
	ino_t ino;
	uint64_t first; /* offset in the file */
	bool writable;
	bool counted; /* its fault is included in session.faulted */
	uint32_t users;
	uint32_t mappings; /* how many it takes in rocid */
	struct shm map;
	struct mr_list regions; /* those that workers can find; for the SIGBUS handler */
};

/** The range that a region needs. */
struct mapping_spec {
	int fd;
	bool writable;
	unsigned npieces;
	const struct abi_piece *piece; /* ascending by address; checked by mapping_check() */
	uint64_t length;	       /* their sum */
};

/** The range that mapping_get() would map for a region. */
struct mapping_extent {
	uint64_t mapped; /* bytes of whole pages */
	uint64_t file;	 /* bytes allocated to the file */
};

/** Checks file and ranges.  @return 0 or a negative errno with a sentence, as shm_check_client().
 */
int mapping_check(
	const struct mapping_spec *spec, struct mapping_extent *out, char why[ABI_SENTENCE_MAX]);

/**
 * Finds or maps a mapping and guards it.
 * @param first  receives the address of the first byte
 * @return 0, or a negative errno with a sentence; -EDQUOT beyond the limit of mappings.
 */
int mapping_get(struct session *s, const struct mapping_spec *spec, struct mapping **out,
	uint8_t **first, char why[ABI_SENTENCE_MAX]);

/** Releases a region's share; @p bytes of CTL_MEMORY are charged for it. After a grace period. */
void mapping_put(struct mapping *w, uint64_t bytes);

/** Adds @p mr, before workers can find it. */
void mapping_add(struct mapping *w, struct mr *mr);

/** Removes @p mr, which workers can no longer find; a handler may use it until a grace period is
 *  over. */
void mapping_remove(struct mapping *w, struct mr *mr);

/** @return whether a page of it has faulted: the rest must not be trusted. */
bool mapping_faulted(const struct mapping *w);

void mappings_init(struct sessions *all);

#endif
