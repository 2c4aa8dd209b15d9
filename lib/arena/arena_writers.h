/* SPDX-License-Identifier: BSD-3-Clause */
/** @file arena_writers.h  The means to hold writers. */
#ifndef ARENA_WRITERS_H
#define ARENA_WRITERS_H

/** How writers are held while memory is swapped, best first. */
enum arena_writers {
	ARENA_WRITERS_NONE,	  /* not held: there are no other threads, or no means */
	ARENA_WRITERS_UFFD_ROCID, /* by a userfaultfd that rocid passed */
	ARENA_WRITERS_UFFD, /* by the process's own userfaultfd, including faults in the kernel */
	ARENA_WRITERS_UFFD_USER, /* user-mode faults only: system calls get EFAULT */
	ARENA_WRITERS_SIGNALS,	 /* by stopping the other threads */
};

/** Allowed means as bits 1 << enum arena_writers. For tests; set before the first registration. */
extern unsigned arena_means;

#endif
