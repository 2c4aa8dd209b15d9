/* SPDX-License-Identifier: BSD-3-Clause */
/** @file capture.h  A plan as a capture file. */
#ifndef CAPTURE_H
#define CAPTURE_H

struct plan;

/** Writes the frames of @p p to p->pcap, classic pcap, one microsecond apart. @return 0 or a
 * negative errno. */
int capture_write(const struct plan *p);

#endif
