/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/reaper.h
 * Slow releases, on separate threads, so that the control thread never waits for them. A descriptor
 * from an application can be anything: a file of its own file system, a socket that lingers. So can
 * those in the unread messages of its socket. The last mapping of gigabytes takes the kernel a
 * second to free.
 *
 * Threads are started as needed; one that hangs delays only itself. Each release has an owner, who
 * can occupy a few threads and no more, so that those of others proceed. Control thread.
 */
#ifndef SESSION_REAPER_H
#define SESSION_REAPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reaper;

struct reaper_config {
	unsigned threads;	/* how many releases may hang at the same time */
	unsigned owner_threads; /* how many of them for one owner */
	/** Leave a socket that lingers on close to the kernel after a moment, by a SIGURG from the
	 * reaper to its own thread. */
	bool interrupts;
};

/** The owner of rocid's own resources. */
#define OWNER_ROCID UINT64_MAX

/** A user's connections, with their unread messages. */
static inline uint64_t owner_connections(uint32_t uid)
{
	return uid;
}

/** Descriptors that a user's programs passed to rocid. They are separate from connections because a
 *  file system of the user can block their close for ever. */
static inline uint64_t owner_passed(uint32_t uid)
{
	return 1ull << 32 | uid;
}

/** Count of unmapped memory: any thread adds, the owner subtracts. The bytes are added last; the
 *  reaper does not access the struct after that. */
struct reaped {
	_Atomic uint64_t mappings;
	_Atomic uint64_t bytes;
};

/** @return NULL when memory is short. */
struct reaper *reaper_create(const struct reaper_config *cfg);

/** Waits for queued releases, but not for those that hang. NULL is harmless. */
void reaper_destroy(struct reaper *d);

/** Closes @p fd; synchronously when memory is short. */
void reap_fd(struct reaper *d, uint64_t owner, int fd);

/** Unmaps @p size bytes at @p base, in pieces so that no other operation on the process's address
 *  space waits for long.
 *  @param charge  bytes that were charged for it
 *  @param done    counts them once it is unmapped; may be NULL */
void reap_memory(struct reaper *d, void *base, size_t size, uint64_t charge, struct reaped *done);

/** Frees @p p. */
void reap_heap(struct reaper *d, void *p);

/** @return the number of unfinished releases of @p owner. */
unsigned reaper_load(struct reaper *d, uint64_t owner);

#endif
