/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file nic.h
 * A host on a wire that pulls: the transport is asked for one packet when the one before has left.
 * Nothing waits in front of the wire, so each packet leaves when its QP's pace says, a CNP leaves
 * next, and a rate that changes changes the next packet. While the other end has paused the NIC
 * (pfc.h), it sends no data, but CNPs and acknowledgements.
 */
#ifndef NIC_H
#define NIC_H

#include "wire.h"

struct sim_host;

struct sim_nic {
	struct sim_host *host;
	struct buffer_pool *pool;
	struct sim_sink in;
	struct sim_wire out;
	bool held;		    /* the other end takes no data now */
	struct buffer_fifo waiting; /* data that were built meanwhile, before an ACK */
	struct sim_event timer;	    /* what time alone causes */
	struct sim_event told;	    /* events of the core wait for `news` */
	/** The core has events, or completions: the application's turn. It may post, but not call
	 *  the NIC. */
	void (*news)(struct sim_nic *n, uint64_t now);
	void *arg;	 /* of `news` */
	uint64_t lost;	 /* packets without memory for their frame */
	uint8_t *header; /* FRAME_MAX bytes: a packet before its length is known */
};

/** @param header  FRAME_MAX bytes, the caller's memory */
void nic_init(struct sim_nic *n, struct sim_host *host, struct buffer_pool *pool, uint8_t *header);

/** Connects the NIC by @p wire to @p to; what it receives goes to its `in`. */
void nic_plug(struct sim_nic *n, struct sim_engine *e, const struct wire_config *wire,
	struct sim_sink *to);

/** Somebody else used the host: rang a doorbell, modified a QP, gave it a frame. */
void nic_wake(struct sim_nic *n, uint64_t now);

#endif
