/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/reaper.h
 * Releases what may take long to release, on threads of its own, so that the control thread
 * never waits for it. A descriptor that an application sent can be anything: a file of its own
 * file system, a socket that lingers; and so can what lies unread in its socket. The last mapping
 * of gigabytes takes the kernel a second to free.
 *
 * Threads are started as they are needed; one that hangs holds up only itself. What hangs belongs
 * to an owner, who can occupy a few threads and no more: what others own is released meanwhile.
 * Control thread.
 */
#ifndef SESSION_REAPER_H
#define SESSION_REAPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reaper;

struct reaper_config {
	unsigned threads;	/* how many releases may hang at the same time, */
	unsigned owner_threads; /* those of one owner among them */
	/** A socket that lingers when it is closed is left to the kernel after a moment, by a
	 * SIGURG that the reaper sends its own thread. */
	bool interrupts;
};

/** Whose it is that is released: rocid's own. */
#define OWNER_ROCID UINT64_MAX

/** A user's connections, with what lies unread in them. */
static inline uint64_t owner_connections(uint32_t uid)
{
	return uid;
}

/** Descriptors that a user's programs passed to rocid. They are kept apart from connections,
 *  because a file system of the user's own can hold up their close for ever. */
static inline uint64_t owner_passed(uint32_t uid)
{
	return 1ull << 32 | uid;
}

/** Memory that has been unmapped: any thread adds, the owner takes it away. The bytes are added
 *  last, and the reaper does not look at it again. */
struct reaped {
	_Atomic uint64_t mappings;
	_Atomic uint64_t bytes;
};

/** @return NULL when memory is short. */
struct reaper *reaper_create(const struct reaper_config *cfg);

/** Waits for what is queued, but not for releases that hang. NULL is harmless. */
void reaper_destroy(struct reaper *d);

/** Closes @p fd; at once when memory is short. */
void reap_fd(struct reaper *d, uint64_t owner, int fd);

/** Unmaps @p size bytes at @p base, in pieces so that no other call of the process on its address
 *  space waits for long.
 *  @param done  is told when that is over; NULL: nobody is */
void reap_memory(struct reaper *d, void *base, size_t size, struct reaped *done);

/** Frees @p p. */
void reap_heap(struct reaper *d, void *p);

/** @return how many things of @p owner are not released yet. */
unsigned reaper_load(struct reaper *d, uint64_t owner);

#endif
