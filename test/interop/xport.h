/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file xport.h
 * The peer program's interface to an RDMA library: one queue pair and two memory regions.
 * verbs_peer.c implements it with stock libibverbs; for another library, implement the same
 * functions and link peer.c, line.c and plan.c. A function that fails prints the reason on stderr.
 */
#ifndef XPORT_H
#define XPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "plan.h"

/* The values that --marks puts into the address vector. */
#define MARK_TCLASS (46 << 2)
#define MARK_LABEL  0x12345
#define MARK_HOPS   7
#define MARK_SL	    3

/** Command-line options; peer.c documents and checks them. */
struct options {
	const char *host; /* NULL: TCP server */
	const char *port;
	const char *device; /* device name, or whatever the library takes; NULL: the first */
	bool driver;
	bool uc;     /* the queue pair is UC */
	bool ud;     /* UD; else RC */
	bool srq;    /* receives come from a shared receive queue */
	bool mcast;  /* UD goes to a group */
	unsigned mw; /* 1 or 2: the peer may access target memory only through a window of this
		      * type */
	int gid_index;
	unsigned mtu;	/* requested path MTU, bytes */
	unsigned depth; /* work requests outstanding, each way */
	unsigned sge;
	unsigned inline_max; /* bytes */
	unsigned signal_every;
	unsigned timeout, retry, rnr_retry, min_rnr; /* codes as in ibv_qp_attr */
	unsigned rd_atomic;
	bool rnr_test;
	bool solicited;
	bool marks;	 /* MARK_* in the address vector */
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
	uint32_t rd;  /* READs that this side may have outstanding, and accepts from the other */
	uint64_t va;  /* target memory */
	uint32_t rkey, len;
};

/** A completion. */
struct done {
	uint64_t id;
	bool recv;
	bool has_imm;
	uint32_t imm;	   /* host order */
	uint32_t byte_len; /* receives only; of UD without the GRH */
	bool has_inv;
	uint32_t inv_rkey; /* the rkey that it invalidated */
};

/** UD: bytes before a datagram, and the Q_Key that both sides have. */
#define GRH_LEN 40
#define UD_QKEY 0x11111111u

#define UD_MULTICAST_QPN 0xffffffu

/** --mcast: the group for a sender with @p gid, IPv6 or IPv4-mapped. */
static inline void group_of(const uint8_t gid[16], uint8_t mgid[16])
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 239, 77, 1, 2};
	static const uint8_t v6[16] = {0xff, 0x1e, [12] = 0x77, 0, 1, 2};

	memcpy(mgid, memcmp(gid, v4, 12) ? v6 : v4, 16);
}

/** @return whether the bytes before a datagram say that it came from @p gid: an IPv6 header or, in
 * the second half, an IPv4 header. */
static inline bool grh_is_from(const uint8_t grh[GRH_LEN], const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, mapped, sizeof(mapped)) ? !memcmp(grh + 8, gid, 16)
						   : !memcmp(grh + 32, gid + 12, 4);
}

/** The target of a WRITE, READ or atomic, and the key that a SEND_WITH_INV invalidates. */
struct remote {
	uint64_t va;
	uint32_t rkey;
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

/** INIT to RTR to RTS; RC and UC with the smaller of the two MTUs and READ depths. */
int xport_connect(struct xport *x, const struct endpoint *remote);

/** Post a receive into pieces of the local memory; @p slot is added to their offsets. */
int xport_post_recv(
	struct xport *x, uint64_t id, size_t slot, const struct piece pieces[], unsigned n);

/** Post one operation; @p to is ignored for SENDs without invalidation. */
int xport_post(struct xport *x, const struct op *op, enum op_kind kind, uint64_t id, size_t slot,
	const struct piece pieces[], unsigned n, const struct remote *to, bool signaled);

/** --mw, in RTS, with nothing else outstanding: invalidate the window if it is of type 2 and
 * @p bound, bind it to the target memory and wait. @p rkey receives the key for the peer.
 */
int xport_bind(struct xport *x, bool bound, uint32_t *rkey);

/** Wait up to opt->wait_s for the next completion. @return 0 when the peer refused the request with
 *  a remote access error, because its rkey is not valid. */
int xport_refused(struct xport *x);

/** @return the number of completions, 0 for none yet, -1 after a completion in error. */
int xport_poll(struct xport *x, struct done done[], int n);

void xport_close(struct xport *x);

#endif
