/* SPDX-License-Identifier: BSD-3-Clause */
/** @file send.h  Sends a plan on a port, as fast as possible. */
#ifndef SEND_H
#define SEND_H

struct plan;

/** Starts EAL with @p argv, sends the frames of @p p on the first port, receives the answers and
 * prints a line of JSON. Ends the program with a sentence if it fails. */
void send_plan(const struct plan *p, int argc, char *argv[]);

#endif
