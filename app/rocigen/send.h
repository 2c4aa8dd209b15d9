/* SPDX-License-Identifier: BSD-3-Clause */
/** @file send.h  A plan on a port, as fast as it goes. */
#ifndef SEND_H
#define SEND_H

struct plan;

/** Starts EAL with @p argv, sends the frames of @p p on the first port, takes what comes back and
 *  prints a line of JSON. Ends the program with a sentence when it cannot. */
void send_plan(const struct plan *p, int argc, char *argv[]);

#endif
