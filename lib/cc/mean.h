/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mean.h
 * The size of a packet of one QP: the mean of those that were sent and acknowledged lately.
 *
 * Written by the algorithm whose state it is part of.
 */
#ifndef MEAN_H
#define MEAN_H

#include <stdint.h>

struct mean {
	uint64_t bytes;	  /* on the wire, of `packets` */
	uint64_t packets; /* that were acknowledged */
};

/** @p packets were acknowledged for the first time. */
void mean_acked(struct mean *m, uint32_t packets);

/** @return bytes on the wire of one packet; 0: not known yet. */
double mean_packet(const struct mean *m);

#endif
