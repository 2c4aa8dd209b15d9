/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file loop/reaper.h
 * Slow releases, on separate threads, so that the control thread never waits for them. A descriptor
 * from an application can be anything: a file on a file system of its own, or a socket that
 * lingers. The same holds for descriptors in unread messages of its socket. Freeing the last
 * mapping of gigabytes takes the kernel a second.
 *
 * Threads are started as needed; one that hangs delays only itself. Each release has an owner, who
 * can occupy only a few threads, so that releases of other owners proceed. Control thread.
 */
#ifndef LOOP_REAPER_H
#define LOOP_REAPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reaper;

struct reaper_config {
	unsigned threads;	/* how many releases may hang at the same time */
	unsigned owner_threads; /* maximum per owner */
	/** Interrupt a close() that lingers on a socket by a SIGURG from the reaper to its own
	 *  thread, which leaves the socket to the kernel. */
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

/** Counts unmapped memory: any thread adds, the owner subtracts. The bytes are added last; the
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
