/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sigbus.h
 * Memory shared with applications can fault although its memfd is sealed: a hole was punched and
 * no page is left to fill it. Whoever touches guarded memory, on any thread, survives that
 * (doc/decisions/0003-sigbus.md); the control thread hears of it and deals with the owner.
 *
 * One table a process, as there is one handler. It is written by the control thread and read by
 * the handler on any thread.
 */
#ifndef SIGBUS_H
#define SIGBUS_H

#include <stdbool.h>
#include <stddef.h>

/** What a guarded mapping holds. */
enum sigbus_kind {
	SIGBUS_PAYLOAD, /* an application's memory: uaccess.h reports the fault to its caller */
	SIGBUS_RING,	/* queues, lanes, doorbells: nobody looks, so the handler counts it */
};

/**
 * Survives SIGBUS in what is guarded: the handler maps a zero page over the hole.
 * @return 0 or a negative errno.
 */
int sigbus_install(void);

/**
 * Guards [@p base, @p base + @p size) until sigbus_unguard(). Control thread.
 * @param owner  what sigbus_take() returns when it faulted
 * @return an id above 0, or -ENOMEM.
 */
int sigbus_guard(void *base, size_t size, enum sigbus_kind kind, void *owner);

/** Ends the guard @p id, before the memory is unmapped; 0 is harmless. Control thread. */
void sigbus_unguard(int id);

/** Has each fault make the eventfd @p fd readable; -1: none. Control thread. */
void sigbus_notify(int fd);

/**
 * Takes one mapping that faulted since it was taken last.
 * @param base  receives where it begins
 * @return its owner, NULL when there is none left. Control thread.
 */
void *sigbus_take(void **base);

#endif
