/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file mean.h
 * The packet size of one QP, averaged over recently sent and acknowledged packets.
 *
 * Written by the algorithm whose state contains it.
 */
#ifndef MEAN_H
#define MEAN_H

#include <stdint.h>

struct mean {
	uint64_t bytes;	  /* on the wire, of `packets` */
	uint64_t packets; /* acknowledged */
};

/** @p packets were acknowledged for the first time. */
void mean_acked(struct mean *m, uint32_t packets);

/** @return mean bytes on the wire per packet; 0: not known yet. */
double mean_packet(const struct mean *m);

#endif
