/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memory/huge.h
 * Regions in huge pages. The kernel clears a page at the first access: 2 MiB cost a worker most of
 * a millisecond. So a thread touches all pages of a region before its keys become valid. A page
 * that is missing later, because the program punched a hole, is not allocated: the access faults
 * (sigbus.h). doc/decisions/0100-huge-pages.md.
 *
 * Only the control thread calls these functions.
 */
#ifndef MEMORY_HUGE_H
#define MEMORY_HUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "list.h"

/** Ordinary regions smaller than WARM_LEAST are not mapped ahead, because their faults cost less.
 *  The thread maps WARM_STEP bytes at a time, which takes half a millisecond. */
#define WARM_LEAST (64u << 10)
#define WARM_STEP  (2u << 20)

struct huge;

/** A region to populate. It belongs to the thread from huge_start() to huge_take() or
 *  huge_cancel(). */
struct huge_job {
	struct list node;
	uint8_t *base;
	size_t size, page;
	uid_t uid;     /* users take turns */
	bool writable; /* in this process */
	bool whole;    /* sealed against writing, so nobody can punch a hole */
	/** Ordinary memory: maps existing pages ahead of the workers; creates none and never fails.
	 *  `page` is then the size of a step. */
	bool warm;
	size_t done; /* bytes */
	int err;
};

/** @param event  an eventfd that becomes readable when huge_take() has a job to return; the caller
 *  owns it and closes it after huge_destroy()
 *  @return NULL when memory is short. */
struct huge *huge_create(int event);

/** Call it when there are no jobs left. NULL is harmless. */
void huge_destroy(struct huge *h);

/** Starts @p job, whose fields up to `whole` are set.
 *  @return 0; -ENOSYS if rocid may not use userfaultfd(2); another negative errno. */
int huge_start(struct huge *h, struct huge_job *job);

/** Cancels @p job, finished or not: waits for one page at most. */
void huge_cancel(struct huge *h, struct huge_job *job);

/** @return a job that has ended, or NULL. job->err is 0; -ENOMEM if there are not enough pages; or
 *  another negative errno. */
struct huge_job *huge_take(struct huge *h);

#endif
