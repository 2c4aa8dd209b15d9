/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file siblings.h
 * One user namespace for the programs that a user runs over the same devices. The ranks of a
 * parallel program on one machine reach each other's memory (process_vm_readv(), /proc/PID/fd),
 * which the kernel denies to a user between two user namespaces; UCX aborts then. A file of the
 * user lists the processes in whose namespaces later ones may come. One thread.
 */
#ifndef SIBLINGS_H
#define SIBLINGS_H

#include <stdbool.h>
#include <stdint.h>

/** Until siblings_announce() no other roci-run of the user makes or joins a namespace. */
struct siblings {
	int fd; /* the file, locked; -1: each program has a namespace of its own */
	uint64_t key;
};

/**
 * @param shown  what the namespace shows, in words: only those that show the same share it
 * @return whether the caller is in the namespaces of another program now, where all is made;
 * otherwise it may make its own.
 */
bool siblings_join(struct siblings *s, const char *shown);

/** The namespaces of the caller are complete: others may join. */
void siblings_announce(struct siblings *s);

#endif
