/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file disposer.h
 * Releases what may take long to release, on threads of its own, so that the control thread
 * never waits for it. A descriptor that an application sent can be anything: a file of its own
 * file system, a socket that lingers; and so can what lies unread in its socket. The last mapping
 * of gigabytes takes the kernel a second to free.
 *
 * Threads are started as they are needed; one that hangs holds up only itself. Control thread.
 */
#ifndef DISPOSER_H
#define DISPOSER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct disposer;

/** Memory that has been unmapped: any thread adds, the owner takes it away. The bytes are added
 *  last, and the disposer does not look at it again. */
struct disposed {
	_Atomic uint64_t mappings;
	_Atomic uint64_t bytes;
};

/** @return NULL when memory is short.
 *  @param threads  how many releases may hang before others wait */
struct disposer *disposer_create(unsigned threads);

/** Waits for what is queued, but not for releases that hang. NULL is harmless. */
void disposer_destroy(struct disposer *d);

/** Closes @p fd; at once when memory is short. */
void dispose_fd(struct disposer *d, int fd);

/** Unmaps @p size bytes at @p base, in pieces so that no other call of the process on its address
 *  space waits for long.
 *  @param done  is told when that is over; NULL: nobody is */
void dispose_memory(struct disposer *d, void *base, size_t size, struct disposed *done);

#endif
