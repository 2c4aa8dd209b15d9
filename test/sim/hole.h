/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hole.h
 * A memory region that has lost the second of its two pages, as after PUNCH_HOLE on a full disk:
 * touching it is a fault, counted as the shell does (uaccess.h). One at a time.
 */
#ifndef HOLE_H
#define HOLE_H

#include "host.h"

#define HOLE_PAGE 4096u
#define HOLE_KEY  0x999900u
#define HOLE_VA	  0x1000000ull

/** Registers it on @p h, in domain @p pd, for everything. Its faults are @p h's. */
struct mr *hole_open(struct sim_host *h, uint32_t pd);
void hole_close(struct sim_host *h);

#endif
