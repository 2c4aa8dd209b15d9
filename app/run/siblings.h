/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file siblings.h
 * One user namespace for all programs that a user runs over the same devices. The ranks of a
 * parallel program on one machine access each other's memory (process_vm_readv(), /proc/PID/fd),
 * which the kernel denies to a user across user namespaces; UCX then aborts. A file of the user
 * lists the processes whose namespaces later ones may join. One thread.
 */
#ifndef SIBLINGS_H
#define SIBLINGS_H

#include <stdbool.h>
#include <stdint.h>

/** Until siblings_announce() no other roci-run of the user creates or joins a namespace. */
struct siblings {
	int fd; /* the file, locked; -1: each program has a namespace of its own */
	uint64_t key;
};

/**
 * @param shown   describes what the namespace shows: only programs with the same share it
 * @param status  of exit(), with a sentence, if the namespaces lack the working directory after all
 * @return whether the caller is now in the namespaces of another program, which are complete;
 * otherwise it may create its own.
 */
bool siblings_join(struct siblings *s, const char *shown, int status);

/** The namespaces of the caller are complete: others may join. */
void siblings_announce(struct siblings *s);

#endif
