/* SPDX-License-Identifier: BSD-3-Clause */
/** @file jobs.h  Several runs at the same time, whose output is printed in their order. */
#ifndef JOBS_H
#define JOBS_H

struct jobs_result {
	unsigned bad;	 /* expectations that were not met */
	unsigned failed; /* runs that could not be done */
	double cpu_s;
};

/**
 * Does @p n jobs, @p at_once of them at the same time, each in a process of its own.
 * @param job  does job @p i. @return expectations that are not met; negative: it could not run
 */
struct jobs_result jobs_run(
	unsigned n, unsigned at_once, int (*job)(void *arg, unsigned i), void *arg);

#endif
