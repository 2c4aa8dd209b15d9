/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sigbus.h
 * Memory shared with applications can fault although its memfd is sealed: a hole was punched and no
 * page is left to fill it. A thread that accesses guarded memory survives this
 * (doc/decisions/0003-sigbus.md); the control thread is notified and acts on the owner.
 *
 * One table per process, as there is one handler. It is written by the control thread and read by
 * the handler on any thread.
 */
#ifndef SIGBUS_H
#define SIGBUS_H

#include <stdbool.h>
#include <stddef.h>

/** The contents of a guarded mapping. */
enum sigbus_kind {
	SIGBUS_PAYLOAD, /* an application's memory: uaccess.h reports the fault to its caller */
	SIGBUS_RING,	/* queues, lanes, doorbells: callers do not check, so the handler counts
			 * it */
};

/** A mapping that may fault. */
struct sigbus_area {
	void *base;
	size_t size; /* a multiple of `page` */
	size_t page; /* bytes of one page of it */
	enum sigbus_kind kind;
	void *owner; /* returned by sigbus_take() when it faulted */
	/** For a payload: its regions, which the handler withdraws from their table, so that no
	 * other access treats the zeroes as data. NULL: none. */
	struct mr_list *list;
	struct mr_table *mrs;
};

/**
 * Installs a handler for SIGBUS in guarded memory, which maps a zero page over the hole.
 * @return 0 or a negative errno.
 */
int sigbus_install(void);

/**
 * Guards @p a, which is copied, until sigbus_unguard(). Control thread.
 * @return an id above 0; -ENOMEM without memory, or without the spare mappings that the handler
 * needs when the process has reached its limit; -EINVAL for an area that is not whole pages.
 */
int sigbus_guard(const struct sigbus_area *a);

/** Ends the guard @p id, after a grace period and before the memory is unmapped; 0 is harmless.
 *  Control thread. */
void sigbus_unguard(int id);

/** Makes the eventfd @p fd readable at each fault; -1: none. Control thread. */
void sigbus_notify(int fd);

/**
 * Takes one mapping that faulted since it was last taken.
 * @param kind  receives what it holds
 * @return its owner, NULL when there is none left. Control thread.
 */
void *sigbus_take(enum sigbus_kind *kind);

#endif
