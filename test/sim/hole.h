/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hole.h
 * A memory region that has lost the second of its two pages, as after PUNCH_HOLE on a full disk:
 * touching that page is a fault, counted as the shell does (uaccess.h). Only one can be open.
 */
#ifndef HOLE_H
#define HOLE_H

#include "host.h"

#define HOLE_PAGE 4096u
#define HOLE_KEY  0x999900u
#define HOLE_VA	  0x1000000ull

/** Registers the region on @p h, in domain @p pd, with all access rights. Its faults count as those
 *  of @p h. */
struct mr *hole_open(struct sim_host *h, uint32_t pd);
void hole_close(struct sim_host *h);

#endif
