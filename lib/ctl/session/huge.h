/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/huge.h
 * Regions in huge pages. The kernel clears a page when it is touched first: 2 MiB take a worker
 * most of a millisecond. So a thread touches all pages of a region before its keys are valid, and a
 * page that is missing later, because its program punched a hole, is not made: the access faults
 * (sigbus.h). doc/decisions/0100-huge-pages.md.
 *
 * All calls are the control thread's.
 */
#ifndef SESSION_HUGE_H
#define SESSION_HUGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "list.h"

struct huge;

/** A region on its way. The thread's from huge_start() until huge_take() or huge_cancel(). */
struct huge_job {
	struct list node;
	uint8_t *base;
	size_t size, page;
	uid_t uid;     /* users have turns */
	bool writable; /* in this process */
	bool whole;    /* nobody can punch a hole: sealed against writing */
	size_t done;   /* bytes */
	int err;
};

/** @param event  an eventfd that becomes readable when huge_take() has something to return; the
 *  caller's, for longer than the struct huge
 *  @return NULL when memory is short. */
struct huge *huge_create(int event);

/** No job is left. NULL is harmless. */
void huge_destroy(struct huge *h);

/** Begins @p job, whose fields up to `whole` are set.
 *  @return 0; -ENOSYS when rocid may not use userfaultfd(2); another negative errno. */
int huge_start(struct huge *h, struct huge_job *job);

/** Gives @p job up, whether it has ended or not: waits for one page at most. */
void huge_cancel(struct huge *h, struct huge_job *job);

/** @return a job that has ended, NULL when there is none left. job->err is 0; -ENOMEM when there
 *  are no pages for all of it; or another negative errno. */
struct huge_job *huge_take(struct huge *h);

#endif
