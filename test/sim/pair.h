/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pair.h
 * Two hosts, a cable between them, and a connected QP on each: A's and B's. After every step the
 * invariants of decision 0000.8 are checked, and every frame is checked against the rules of the
 * wire.
 */
#ifndef PAIR_H
#define PAIR_H

#include "abi_ctl.h"
#include "app.h"
#include "fabric.h"
#include "invariants.h"
#include "wirecheck.h"

#define PAIR_FRAMES 512u /* on the way in each direction */
#define USEC	    1000ull
#define MSEC	    1000000ull
#define SEC	    1000000000ull

enum {
	A,
	B,
	ENDS
};

/** The parameters of a pair; pair_defaults() fills it with values that work. */
struct pair_spec {
	uint64_t seed;
	enum host_gid gid;
	struct link_config link[ENDS]; /* from A, from B */
	struct app_qp_spec qp[ENDS];   /* CQs are filled in */
	struct abi_qp_attr attr[ENDS]; /* QPNs and PSNs of the other end are filled in */
	uint32_t cq_depth;
	uint32_t srq_depth;    /* not 0: B receives from an SRQ of this depth */
	bool xrc;	       /* from A to B */
	uint32_t cnp_interval; /* ns: both manage congestion; 0: they do not */
};

#define PAIR_XRCD 9u /* domain of B's SRQ */

struct pair_end {
	struct sim_host *host;
	struct sim_link link; /* from here to the other end */
	struct sim_frame *frames;
	struct sim_frame **places;
	struct app app;
	struct app_cq *send_cq;
	struct app_cq *recv_cq;
	struct app_srq *srq; /* or NULL */
	struct app_qp *qp;
	struct app_mr *mr;	  /* made by pair_memory() */
	struct abi_cqe cqe[4096]; /* all CQEs that pair_step() took, in the order of arrival */
	unsigned cqes;
	bool keep_cqes; /* do not poll: the test does */
};

struct pair {
	struct fabric fabric;
	struct wirecheck wire;
	struct invariants_flow flow[ENDS]; /* requests from A, from B */
	struct pair_end end[ENDS];
	struct pair_spec spec;
};

struct pair_spec pair_defaults(void);

/** Both QPs in RTS. */
void pair_init(struct pair *p, const struct pair_spec *spec);
void pair_fini(struct pair *p);

/** The QPs were reconnected: checks of them and the wire start again at their current PSNs. */
void pair_wire(struct pair *p);

/** Registers @p len bytes on both ends, with all access rights. */
void pair_memory(struct pair *p, size_t len);

/** Simulates the next event. Rings doorbells before it; takes CQEs and events, and checks the
 *  invariants, after it.
 *  @return false when no event was left before @p until. */
bool pair_step(struct pair *p, uint64_t until);

/** Steps until no event is left or @p ns of virtual time have passed. */
void pair_run(struct pair *p, uint64_t ns);

/** Steps until @p end has @p n CQEs; fails when it takes longer than @p ns. */
void pair_until_cqes(struct pair *p, int end, unsigned n, uint64_t ns);

#endif
