/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file nic.h
 * A host on a pull-driven wire: it asks the transport for one packet whenever the previous one has
 * left. Nothing queues in front of the wire, so each packet leaves when its QP's pace says, a CNP
 * leaves next, and a rate change applies to the very next packet. While the other end pauses the
 * NIC (pfc.h), it sends CNPs and acknowledgements but no data.
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
	bool held;		    /* the other end has paused data */
	struct buffer_fifo waiting; /* data packets built while held, in search of an ACK */
	struct sim_event timer;	    /* for what time alone causes */
	struct sim_event news_due;  /* the core has events: call `news` */
	/** The core has events or completions: the application's turn. It may post, but must not
	 *  call the NIC. */
	void (*news)(struct sim_nic *n, uint64_t now);
	void *arg;	 /* for `news` */
	uint64_t lost;	 /* packets lost because there was no memory for a frame */
	uint8_t *header; /* FRAME_MAX bytes: a packet before its length is known */
};

/** @param header  FRAME_MAX bytes, provided by the caller */
void nic_init(struct sim_nic *n, struct sim_host *host, struct buffer_pool *pool, uint8_t *header);

/** Connects the NIC to @p to by @p wire; received frames go to its `in`. */
void nic_plug(struct sim_nic *n, struct sim_engine *e, const struct wire_config *wire,
	struct sim_sink *to);

/** Call this after using the host: after a doorbell, a modified QP, or a frame passed to it. */
void nic_wake(struct sim_nic *n, uint64_t now);

#endif
