/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memory/shm.h
 * Shared memory: regions that rocid creates for applications (rings), and application memory that
 * rocid maps (memory regions). Control thread.
 */
#ifndef MEMORY_SHM_H
#define MEMORY_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi_ctl.h"

struct reaped;
struct reaper;
struct sigbus_area;

/** A mapping of this process. */
struct shm {
	uint8_t *base; /* NULL: none */
	size_t size;
	size_t page; /* bytes of one of its pages */
	bool whole;  /* client memory: sealed, so that nobody can punch a hole */
	int guard;   /* sigbus.h; 0: none */
};

/**
 * Creates a zeroed memfd of @p size bytes, sealed so that nobody can resize it, and maps it.
 * @param fd  receives the descriptor to send to the application; the caller closes it
 * @return 0 or a negative errno with a sentence in @p why.
 */
int shm_create(struct shm *m, const char *name, size_t size, int *fd, char why[ABI_SENTENCE_MAX]);

/** A range of an application's file. */
struct shm_extent {
	uint64_t mapped; /* bytes: whole pages */
	uint64_t file;	 /* bytes of memory that the file has */
	size_t page;
};

/**
 * Checks an application's file: m->page, m->whole.
 * @param writable  peers or receives may write there
 * @return 0 or a negative errno with a sentence: -EPERM if it is not a file in memory, -EINVAL if
 * its pages exceed HUGE_PAGE_MAX, -EACCES if it is read-only.
 */
int shm_check_client(struct shm *m, int fd, bool writable, char why[ABI_SENTENCE_MAX]);

/** Checks [@p off, @p off + @p len) of such a file as well.  @return as shm_check_client(); -EINVAL
 *  if the range is outside the file. */
int shm_client_extent(int fd, uint64_t off, uint64_t len, bool writable, struct shm_extent *out,
	char why[ABI_SENTENCE_MAX]);

/** @return @p size in whole pages, as shm_create() maps it. */
size_t shm_rounded(size_t size);

/** @return whether @p m is in huge pages, which memory/huge.h must populate before a worker
 *  touches them. */
bool shm_is_huge(const struct shm *m);

/**
 * Makes faults in @p m survivable. Call it before anything touches the memory.
 * @param who  its kind and owner; the address range need not be set
 * @return 0, or -ENOMEM with a sentence.
 */
int shm_guard(struct shm *m, const struct sigbus_area *who, char why[ABI_SENTENCE_MAX]);

/** Has @p d unmap @p m, which takes long if it frees much, and count @p charge in @p done. */
void shm_retire(struct shm *m, uint64_t charge, struct reaper *d, struct reaped *done);

/** Unmaps @p m; harmless if nothing is mapped. */
void shm_unmap(struct shm *m);

#endif
