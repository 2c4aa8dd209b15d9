/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file xport.h
 * What the peer program needs from an RDMA library: one RC queue pair and two memory regions.
 * verbs_peer.c implements it on stock libibverbs; another library implements the same
 * functions and links peer.c, line.c and plan.c. Every function that fails says why on stderr.
 */
#ifndef XPORT_H
#define XPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

/** Command-line options; peer.c documents and checks them. */
struct options {
	const char *host; /* NULL: TCP server */
	const char *port;
	const char *device; /* device name, or whatever the library takes; NULL: the first */
	bool driver;
	int gid_index;
	unsigned mtu;	/* path MTU asked for, bytes */
	unsigned depth; /* work requests outstanding, each way */
	unsigned sge;
	unsigned inline_max; /* bytes */
	unsigned signal_every;
	unsigned timeout, retry, rnr_retry, min_rnr; /* codes as in ibv_qp_attr */
	unsigned rd_atomic;
	bool rnr_test;
	bool solicited;
	unsigned wait_s; /* give up on a completion or a line after so many seconds */
	unsigned rounds, count;
	uint64_t seed;
	uint32_t min_len, max_len, target_len;
	unsigned kinds; /* bit mask by enum op_kind */
};

/** One side of the connection, as told to the other. */
struct endpoint {
	uint32_t qpn, psn;
	uint8_t gid[16];
	uint32_t mtu; /* bytes */
	uint32_t rd;  /* READs outstanding: as many as this side takes and sends */
	uint64_t va;  /* target memory */
	uint32_t rkey, len;
};

/** A completion. */
struct done {
	uint64_t id;
	bool recv;
	bool has_imm;
	uint32_t imm;	   /* host order */
	uint32_t byte_len; /* receives only */
};

/** The two memory regions, allocated and registered by xport_open(). */
struct memory {
	uint8_t *target; /* remote read, remote write; opt->target_len bytes */
	uint8_t *local;	 /* local write; holds the slots */
};

struct xport;

/** Open the device, make all objects, bring the QP to INIT and fill @p local and @p mem.
 *  @return NULL on failure. */
struct xport *xport_open(
	const struct options *opt, size_t local_len, struct endpoint *local, struct memory *mem);

/** INIT to RTR to RTS, with the smaller of the two MTUs and READ depths. */
int xport_connect(struct xport *x, const struct endpoint *remote);

/** Post a receive into pieces of the local memory; @p slot is added to their offsets. */
int xport_post_recv(
	struct xport *x, uint64_t id, size_t slot, const struct piece pieces[], unsigned n);

/** Post one operation; @p remote_va counts for WRITE and READ only. */
int xport_post(struct xport *x, const struct op *op, enum op_kind kind, uint64_t id, size_t slot,
	const struct piece pieces[], unsigned n, uint64_t remote_va, bool signaled);

/** @return the number of completions, 0 for none yet, -1 after a completion in error. */
int xport_poll(struct xport *x, struct done done[], int n);

void xport_close(struct xport *x);

#endif
