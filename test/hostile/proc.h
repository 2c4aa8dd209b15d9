/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proc.h
 * Reads from /proc how the threads of the rocid under attack spend their time, and what it holds.
 *
 * A victim's wait lasts from its look at /proc after the request to its last look that found no
 * answer yet; a pause of the victim before its request does not count. The wait is measured in two
 * ways, and the longer one counts. One is the CPU time of the thread that should serve the victim:
 * it does not grow when the machine pauses programs, but it grows when an attacker keeps the thread
 * busy. The other is the time that passed, less the time in which the thread was ready to run but
 * no CPU was free: it grows when the thread is blocked.
 */
#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_WORKERS 8

/** The thread of rocid that an answer comes from. */
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

/** Opens the /proc files of the process that owns @p socket. A child must open its own. */
void proc_open(struct proc *p, const char *socket);

bool proc_alive(const struct proc *p);

struct holdings proc_holdings(const struct proc *p);

/** Nanoseconds that a thread has run so far, and that it has waited for a CPU. */
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
 * @return how long @p thread kept the victim waiting, in nanoseconds.
 */
uint64_t proc_waited(const struct proc *p, enum thread thread, const struct look *begin,
	const struct look *last, const struct look *end);

#endif
