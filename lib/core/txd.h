/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file txd.h
 * A packet to send, as core_tx() makes it.
 */
#ifndef TXD_H
#define TXD_H

#include <stdbool.h>
#include <stdint.h>
#include "limits.h"

struct qp;

/** A piece of the payload, in application memory, or in the core's own for inline data. */
struct txseg {
	const uint8_t *addr;
	uint32_t len;
	uint32_t key; /* of its region; 0: it has none, or a memory window names it */
};

enum txd_sealed {
	TXD_OPEN,   /* the normal case: core_seal() seals it */
	TXD_SEALED, /* already sealed */
	TXD_LOST,   /* already sealed, and not to be sent: an injected fault drops it */
};

/** A packet to send. The caller sets `frame`, the core the rest. */
struct txd {
	uint8_t *frame;	      /* room for FRAME_MAX bytes; headers are written here */
	struct qp *qp;	      /* notified of a fault */
	uint16_t hdr_len;     /* bytes of headers written */
	uint16_t payload_len; /* sum of the pieces */
	uint8_t l3_off;
	uint8_t net;  /* enum net_type */
	uint8_t port; /* index of the port to send it by */
	bool local;   /* for a QP of this daemon: loop it back instead */
	bool group;   /* to a multicast group: see core_group_here() */
	bool named;   /* core_seal(), of a local one: its payload is where the frame says */
	uint8_t nsegs;
	uint8_t sealed; /* inject.c: enum txd_sealed; */
	/* the rest is set for TXD_SEALED and TXD_LOST only */
	uint8_t fault; /* enum abi_fault_kind: the latest fault applied to it; 0: none */
	uint16_t frame_len;
	struct txseg seg[SGE_MAX];
};

#endif
