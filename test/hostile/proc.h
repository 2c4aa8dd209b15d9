/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proc.h
 * What /proc tells about the rocid under attack: its threads' CPU time, and what it holds.
 *
 * Time here is CPU time of the thread that should serve somebody, from his request to his last
 * look that found no answer yet. A machine that pauses programs, or the one who waits, makes it
 * no longer; a thread that is busy with somebody else's nonsense does.
 */
#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_WORKERS 8

struct proc {
	pid_t pid;
	unsigned nworkers;
	int worker[PROC_WORKERS]; /* schedstat of each worker thread */
	int control;		  /* and of the control thread */
};

/** What a leak would make grow. */
struct holdings {
	unsigned fds;
	unsigned maps; /* of memfds */
};

/** Opens what there is to read about the process behind @p socket, for this process's own use:
 *  a child opens its own. */
void proc_open(struct proc *p, const char *socket);

bool proc_alive(const struct proc *p);

struct holdings proc_holdings(const struct proc *p);

/** Nanoseconds that the threads have run so far. */
struct ran {
	uint64_t worker[PROC_WORKERS];
	uint64_t control;
};

void proc_ran(const struct proc *p, struct ran *r);

/** @return nanoseconds that the busiest worker ran from @p a to @p b. */
uint64_t proc_worker_ns(const struct proc *p, const struct ran *a, const struct ran *b);

#endif
