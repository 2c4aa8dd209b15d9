/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file host.h
 * A whole rocid inside the benchmark: its own start-up code, ports, control thread and worker. The
 * benchmark itself calls the worker's rounds, so that one thread does, and is charged for, all the
 * work for a message: the application's, the requester's and the responder's.
 *
 * After host_start(), its ports 1 and 2 (as applications count) are the two ends of a ring pair;
 * after host_start_at(), they are those that the arguments name.
 */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>

struct worker;

/** Before host_start(): sets how many workers it has (default 1). All run on the calling thread. */
void host_workers(unsigned n);

/** @return worker @p i. Another thread may run its rounds while this one is in no function of this
 *  file; a fault of a program's memory then ends the benchmark. */
struct worker *host_worker(unsigned i);

/** Runs one round of each worker. */
void host_round(void);

/** Starts the daemon. Ends the program with a sentence on failure.
 *  @param cc  congestion control of both ports, as in --cc after the port; NULL: none */
struct worker *host_start(const char *program, const char *cc);

/** The same with rocid's arguments: those for EAL, "--", its options. This function chooses the
 *  socket. */
struct worker *host_start_at(int argc, char *argv[]);

/** The worker's time passes @p factor times slower, for tools that slow the program down. */
void host_slow_clock(unsigned factor);

/** Has each QP receive a CNP. @return how many QPs are then limited */
unsigned host_limit(void);

/** @return the path of the daemon's socket. */
const char *host_socket(void);

/** Runs @p fn(@p arg), which may talk to the daemon, on another thread. Runs the worker's rounds on
 *  the calling thread until @p fn returns. */
void host_while(void (*fn)(void *arg), void *arg);

/** Stops the daemon. */
void host_stop(void);

#endif
