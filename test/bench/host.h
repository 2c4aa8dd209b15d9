/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file host.h
 * A whole rocid inside the benchmark: its own start-up code, ports, control thread and worker. But
 * the worker's rounds are called by the benchmark, so that one thread does, and is charged for,
 * all that one message costs: the application's part, the requester's and the responder's.
 *
 * Ports 1 and 2 of it (as applications count) are the two ends of a ring pair, if host_start()
 * makes it; with host_start_at() they are whatever the arguments say.
 */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>

struct worker;

/** Before host_start(): how many workers it has, 1 at first. All run on the calling thread. */
void host_workers(unsigned n);

/** A round of each worker. */
void host_round(void);

/** Starts it. Ends the program with a sentence when it fails.
 *  @param cc  congestion control of both ports, as --cc has it after the port; NULL: none */
struct worker *host_start(const char *program, const char *cc);

/** The same with a rocid's own arguments: those for EAL, "--", its options. The socket is chosen
 *  here. */
struct worker *host_start_at(int argc, char *argv[]);

/** The worker's time passes @p factor times slower, for tools that slow the program down. */
void host_slow_clock(unsigned factor);

/** Each QP receives a CNP. @return how many are limited then */
unsigned host_limit(void);

/** @return the path of its socket. */
const char *host_socket(void);

/** Runs @p fn(@p arg), which may talk to the daemon, on another thread, and the worker's rounds on
 *  this one until it returns. */
void host_while(void (*fn)(void *arg), void *arg);

/** Ends it. */
void host_stop(void);

#endif
