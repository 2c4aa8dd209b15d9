/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/shm.h
 * Shared memory: regions that rocid makes for applications (rings), and memory of
 * applications that rocid maps (memory regions). Control thread.
 */
#ifndef SESSION_SHM_H
#define SESSION_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "session/reaper.h"
#include "sigbus.h"

/** A mapping of this process. */
struct shm {
	uint8_t *base; /* NULL: none */
	size_t size;
	size_t page; /* bytes of one of its pages */
	bool whole;  /* of a client: sealed, so that nobody can punch a hole */
	int guard;   /* sigbus.h; 0: none */
};

/**
 * Makes a zeroed memfd of @p size bytes, sealed so that nobody resizes it, and maps it.
 * @param fd  receives the descriptor to send to the application; the caller closes it
 * @return 0 or a negative errno with a sentence in @p why.
 */
int shm_create(struct shm *m, const char *name, size_t size, int *fd, char why[ABI_SENTENCE_MAX]);

/** What a mapping of an application's memfd takes. */
struct shm_extent {
	uint64_t mapped; /* bytes: whole pages */
	uint64_t file;	 /* bytes of the memfd */
};

/** Tells what shm_map_client() would take for the same.  @return as it. */
int shm_client_extent(int fd, uint64_t off, uint64_t len, bool writable, struct shm_extent *out,
	char why[ABI_SENTENCE_MAX]);

/** @return @p size in whole pages, as shm_create() maps it. */
size_t shm_rounded(size_t size);

/**
 * Maps the pages of [@p off, @p off + @p len) of an application's memfd.
 * @param writable  peers or receives may write there
 * @param first     receives the address of byte @p off
 * @return 0 or a negative errno with a sentence: -EPERM for what is no memfd or may still
 * shrink, -EINVAL for a range that the file does not have or pages above HUGE_PAGE_MAX, -EACCES for
 * a read-only one.
 */
int shm_map_client(struct shm *m, int fd, uint64_t off, uint64_t len, bool writable,
	uint8_t **first, char why[ABI_SENTENCE_MAX]);

/** @return whether @p m is in huge pages, which need session/huge.h before a worker touches them.
 */
bool shm_is_huge(const struct shm *m);

/**
 * Has faults in @p m survived. Before anything touches it.
 * @param who  what it holds and who is to blame; where it is need not be set
 * @return 0, or -ENOMEM with a sentence.
 */
int shm_guard(struct shm *m, const struct sigbus_area *who, char why[ABI_SENTENCE_MAX]);

/** Has @p d unmap, which takes long when it frees much, and tell @p done. */
void shm_retire(struct shm *m, struct reaper *d, struct reaped *done);

/** Unmaps; harmless when nothing is mapped. */
void shm_unmap(struct shm *m);

#endif
