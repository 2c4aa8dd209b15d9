/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file beside.h
 * Another thread on the CPU of this one.
 */
#ifndef BESIDE_H
#define BESIDE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/** Pins the calling thread, and starts one beside it, which looks at beside.enough. */
static struct {
	atomic_bool enough;
	cpu_set_t old;
	pthread_t t;
} beside;

static inline void beside_begin(void *(*run)(void *arg))
{
	cpu_set_t one;

	pthread_getaffinity_np(pthread_self(), sizeof(beside.old), &beside.old);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	atomic_store(&beside.enough, false);
	pthread_create(&beside.t, NULL, run, NULL); /* it inherits the CPU */
}

static inline void beside_end(void)
{
	atomic_store(&beside.enough, true);
	pthread_join(beside.t, NULL);
	pthread_setaffinity_np(pthread_self(), sizeof(beside.old), &beside.old);
}

/** A thread that keeps the CPU. */
static inline void *computes(void *arg)
{
	while (!atomic_load(&beside.enough))
		;
	return arg;
}

#endif
