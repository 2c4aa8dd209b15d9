/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proc.h
 * What /proc tells about the rocid under attack: what its threads do with their time, and what it
 * holds.
 *
 * A victim's wait is measured twice, from the look after its request to its last look that found no
 * answer yet; a pause of the victim before its request does not count. As CPU time of the thread
 * that should serve it: a machine that pauses programs makes it no longer, a thread that is busy
 * with somebody else's nonsense does. And as time that passed less that in which the thread could
 * run and no CPU was free: a thread that is blocked makes that longer. The longer one counts.
 */
#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_WORKERS 8

/** Which of rocid's threads an answer comes from. */
enum thread {
	THREAD_WORKER, /* any */
	THREAD_CONTROL,
	THREAD_NOTIFIER,
};

struct proc {
	pid_t pid;
	unsigned nworkers;
	int worker[PROC_WORKERS]; /* schedstat of each worker thread, */
	int control;		  /* of the control thread, */
	int notifier;		  /* and of the one that sends events */
};

/** The figures that a leak would increase. */
struct holdings {
	unsigned fds;
	unsigned maps; /* of memfds */
};

/** Opens the files about the process that owns @p socket, for this process's own use:
 *  a child opens its own. */
void proc_open(struct proc *p, const char *socket);

bool proc_alive(const struct proc *p);

struct holdings proc_holdings(const struct proc *p);

/** Nanoseconds that a thread has run so far, and in which it could have. */
struct spent {
	uint64_t ran;
	uint64_t queued;
};

struct look {
	uint64_t wall;
	struct spent worker[PROC_WORKERS];
	struct spent control;
	struct spent notifier;
};

void proc_look(const struct proc *p, struct look *l);

/**
 * @param begin  after the request
 * @param last   before the last look that found no answer
 * @param end    after the answer
 * @return how long @p thread kept somebody waiting, in nanoseconds.
 */
uint64_t proc_waited(const struct proc *p, enum thread thread, const struct look *begin,
	const struct look *last, const struct look *end);

#endif
