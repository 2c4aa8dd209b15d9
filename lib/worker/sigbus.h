/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sigbus.h
 * Memory shared with applications can fault although its memfd is sealed: a hole was punched and
 * no page is left to fill it. Whoever touches guarded memory, on any thread, survives that
 * (doc/decisions/0003-sigbus.md); the control thread hears of it and deals with the owner.
 *
 * One table per process, as there is one handler. It is written by the control thread and read by
 * the handler on any thread.
 */
#ifndef SIGBUS_H
#define SIGBUS_H

#include <stdbool.h>
#include <stddef.h>
#include "mr.h"

/** What a guarded mapping holds. */
enum sigbus_kind {
	SIGBUS_PAYLOAD, /* an application's memory: uaccess.h reports the fault to its caller */
	SIGBUS_RING,	/* queues, lanes, doorbells: nobody looks, so the handler counts it */
};

/** A mapping that may fault. */
struct sigbus_area {
	void *base;
	size_t size; /* a multiple of `page` */
	size_t page; /* bytes of one page of it */
	enum sigbus_kind kind;
	void *owner; /* what sigbus_take() returns when it faulted */
	/** Of a payload: the region, which the handler withdraws from its table, so that no other
	 *  access takes the zeroes for data. NULL: none. */
	struct mr *mr;
	struct mr_table *mrs;
};

/**
 * Survives SIGBUS in what is guarded: the handler maps a zero page over the hole.
 * @return 0 or a negative errno.
 */
int sigbus_install(void);

/**
 * Guards @p a, which is copied, until sigbus_unguard(). Control thread.
 * @return an id above 0; -ENOMEM without memory, or without the spare mappings that the handler
 * needs when the process has as many as it may have; -EINVAL for an area that is not whole pages.
 */
int sigbus_guard(const struct sigbus_area *a);

/** Ends the guard @p id, after a grace period and before the memory is unmapped; 0 is harmless.
 *  Control thread. */
void sigbus_unguard(int id);

/** Has each fault make the eventfd @p fd readable; -1: none. Control thread. */
void sigbus_notify(int fd);

/**
 * Takes one mapping that faulted since it was taken last.
 * @param kind  receives what it holds
 * @return its owner, NULL when there is none left. Control thread.
 */
void *sigbus_take(enum sigbus_kind *kind);

#endif
