/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file burst.h
 * One burst of a worker through the driver of a port, in either direction.
 *
 * When the peer of a memif port ends, DPDK's driver unmaps the port's rings in its interrupt thread
 * and does not wait for the thread that polls them (doc/decisions/0118-memif-peer-ends.md). A burst
 * of a `fragile` port therefore survives SIGSEGV; the others are called as they are.
 */
#ifndef BURST_H
#define BURST_H

#include <rte_branch_prediction.h>
#include <rte_ethdev.h>
#include "worker_impl.h"

/** Installs the handler that fragile ports need, before the first burst. Any other fault ends the
 *  process as before.  @return 0 or a negative errno. */
int burst_install(void);

/** Like rte_eth_rx_burst(). If the rings vanish, no frame has come; up to BURST buffers are lost.
 */
uint16_t burst_rx_fragile(const struct worker_port *p, struct rte_mbuf **m);

/** Like rte_eth_tx_burst(). If the rings vanish, all @p n frames count as sent, and are lost with
 *  their buffers: it is unknown which of them the driver has freed. */
uint16_t burst_tx_fragile(const struct worker_port *p, struct rte_mbuf **m, uint16_t n);

/** Receives up to BURST frames into @p m.  @return how many. The port's worker. */
static inline uint16_t burst_rx(const struct worker_port *p, struct rte_mbuf **m)
{
	if (unlikely(p->fragile))
		return burst_rx_fragile(p, m);
	return rte_eth_rx_burst(p->ethdev, p->queue, m, BURST);
}

/** Offers the driver @p n frames.  @return how many it has accepted. The port's worker. */
static inline uint16_t burst_tx(const struct worker_port *p, struct rte_mbuf **m, uint16_t n)
{
	if (unlikely(p->fragile))
		return burst_tx_fragile(p, m, n);
	return rte_eth_tx_burst(p->ethdev, p->queue, m, n);
}

#endif
