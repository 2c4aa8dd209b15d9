/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sysfs/writer.h
 * A thread that changes files. A file system may keep its caller waiting, for a journal or for a
 * disk; programs' commands, which the control thread answers, must not wait with it.
 */
#ifndef SYSFS_WRITER_H
#define SYSFS_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include "sysfs/changes.h"

struct writer {
	struct folder *folder;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;   /* `given` or `stop` is set */
	struct changes *given; /* under `lock`; the thread's until it is NULL */
	bool failed;	       /* under `lock`: in the last of those */
	bool stop;	       /* under `lock` */
};

/** Starts the thread.  @return 0 or a negative errno. */
int writer_start(struct writer *w, struct folder *f);

/** Waits for the changes in progress, and ends the thread. */
void writer_stop(struct writer *w);

/** Hands @p c over until writer_idle(). The writer must be idle. */
void writer_give(struct writer *w, struct changes *c);

/**
 * Returns whether the thread has made all changes that it was given.
 * @param failed  whether one of the last could not be made; false before the first
 */
bool writer_idle(struct writer *w, bool *failed);

#endif
