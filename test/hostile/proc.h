/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file proc.h
 * What /proc tells about the rocid under attack: its threads' CPU time, and what it holds.
 *
 * Time here is CPU time of the thread that should have served somebody, less the time for which
 * the one who waits was itself not allowed to run: a machine that pauses programs makes
 * neither of them grow, a thread that is busy with somebody else's nonsense does.
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
	int self;		  /* and of the caller */
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

/** A moment, for proc_since(). */
struct moment {
	uint64_t worker[PROC_WORKERS];
	uint64_t control;
	uint64_t waited; /* the caller, for a CPU */
};

void proc_now(const struct proc *p, struct moment *m);

/** @return nanoseconds that the busiest worker ran from @p a to @p b while the caller could run. */
uint64_t proc_worker_ns(const struct proc *p, const struct moment *a, const struct moment *b);

/** The same of the control thread. */
uint64_t proc_control_ns(const struct moment *a, const struct moment *b);

#endif
