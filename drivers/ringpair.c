/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include "limits.h"
#include "ringpair.h"

static void ring_name(char name[RTE_RING_NAMESIZE], unsigned number, unsigned dir, unsigned queue)
{
	snprintf(name, RTE_RING_NAMESIZE, "pair%u%c%u", number, dir ? 'b' : 'a', queue);
}

int ringpair_create(unsigned number, uint16_t queues, int socket, uint16_t ethdev[2])
{
	struct rte_ring *ring[2][WORKER_MAX];
	char name[RTE_RING_NAMESIZE];

	if (!queues || queues > WORKER_MAX)
		return -EINVAL;
	for (unsigned dir = 0; dir < 2; dir++) {
		for (unsigned q = 0; q < queues; q++) {
			ring_name(name, number, dir, q);
			/* one worker sends by a queue and one receives on it */
			ring[dir][q] = rte_ring_create(
				name, RINGPAIR_DEPTH, socket, RING_F_SP_ENQ | RING_F_SC_DEQ);
			if (!ring[dir][q])
				return -rte_errno;
		}
	}
	for (unsigned side = 0; side < 2; side++) {
		int port;

		snprintf(name, sizeof(name), "pair%u%c", number, side ? 'b' : 'a');
		port = rte_eth_from_rings(
			name, ring[!side], queues, ring[side], queues, (unsigned)socket);
		if (port < 0)
			return rte_errno ? -rte_errno : -ENOMEM;
		ethdev[side] = (uint16_t)port;
	}
	return 0;
}

void ringpair_destroy(unsigned number, uint16_t queues)
{
	char name[RTE_RING_NAMESIZE];

	for (unsigned dir = 0; dir < 2; dir++) {
		snprintf(name, sizeof(name), "net_ring_pair%u%c", number, dir ? 'b' : 'a');
		rte_eal_hotplug_remove("vdev", name);
		for (unsigned q = 0; q < queues; q++) {
			struct rte_ring *r;
			void *m;

			ring_name(name, number, dir, q);
			r = rte_ring_lookup(name);
			while (r && !rte_ring_dequeue(r, &m))
				rte_pktmbuf_free(m);
			rte_ring_free(r);
		}
	}
}
