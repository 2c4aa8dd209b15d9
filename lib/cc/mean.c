/* SPDX-License-Identifier: BSD-3-Clause */
#include "mean.h"

/* Packets over which the size is averaged. */
#define MEAN_OF 1024u

void mean_acked(struct mean *m, uint32_t packets)
{
	m->packets += packets;
	if (m->packets < MEAN_OF)
		return;
	m->bytes /= 2;
	m->packets /= 2;
}

double mean_packet(const struct mean *m)
{
	return m->packets ? (double)m->bytes / (double)m->packets : 0;
}
