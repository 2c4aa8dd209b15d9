/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file stage.h
 * One real host with one QP; the fuzzer plays its application and its peer. Everything that the QP
 * does is judged: the packets it sends by rules.h, its completions by app.h, its writes here.
 */
#ifndef STAGE_H
#define STAGE_H

#include "app.h"
#include "records.h"
#include "rules.h"

#define STAGE_PEER_QPN	0x21u
#define STAGE_PEER_VA	0x500000000000ull
#define STAGE_PEER_KEY	0xABCD01u
#define STAGE_QKEY	0x11223344u
#define STAGE_AH	3u /* leads to the peer; the next one to a group */
#define REGION_LEN	8192u
#define REGION_HUGE_LEN (1ull << 32)

/** Memory regions of the application. */
enum region {
	REGION_ALL,	/* local write, remote write and read */
	REGION_LOCAL,	/* nothing remote */
	REGION_RO,	/* remote read; never written */
	REGION_FOREIGN, /* of another protection domain: never touched */
	REGIONS,
	/* and two that have no guards */
	REGION_HOLE = REGIONS, /* its second page is missing */
	REGION_HUGE,	       /* for the longest messages */
	REGIONS_ALL
};

/** Whose packets arrive. */
enum from {
	FROM_PEER,
	FROM_STRANGER,
	FROM_MULTICAST, /* its source address is multicast */
	FROM_LOST,	/* meant for another host */
	FROM_VLAN,	/* the peer, tagged */
	FROMS
};

struct stage_region {
	struct mr *mr;
	struct app_mr *app; /* NULL: has no guards */
	bool frozen;	    /* nobody may write it now; it must be as `was` */
	uint8_t was[REGION_LEN];
};

struct stage {
	struct sim_host *host;
	struct sim_host *peer; /* for its addresses only */
	struct app app;
	struct app_cq *send_cq, *recv_cq;
	struct app_qp *qp;
	struct app_srq *srq; /* NULL: receives are the QP's own */
	struct ah ah[2];     /* UD */
	struct app_qp_spec spec;
	struct abi_qp_attr attr;
	struct path_spec path;
	struct path from[FROMS];
	struct stage_region region[REGIONS_ALL];
	struct rules rules;
	uint64_t now;
	bool honest;	/* the application posts only where there is room, and scribbles nowhere */
	bool shared;	/* receives are an SRQ's */
	bool forgot;	/* a receive may have gone without a completion: RESET, or no SRQ */
	uint32_t came;	/* completions of receives */
	bool stalled;	/* it does not poll its CQs */
	bool deaf;	/* the shell does not take events */
	bool huge;	/* a READ was requested that is too long for all its responses to be sent */
	uint32_t wr_id; /* of the next work request */
	uint64_t sent, received;
};

/** Sets everything up as @p cfg says, with the QP in RTS. */
void stage_init(struct stage *s, const struct record *cfg);

/** Ends the stage: every posted request must complete or be flushed. */
void stage_fini(struct stage *s);

/** Moves the QP to RESET and back to RTS. */
void stage_revive(struct stage *s);

/** Destroys the QP and creates another one. Not for an XRC target: its SRQ holds its CQ. */
void stage_recreate(struct stage *s);

/** One core_tx() of at most @p n packets; @p repeat: until it has no more. */
void stage_tx(struct stage *s, unsigned n, bool repeat);

/** Advances the clock and runs the timers. */
void stage_wait(struct stage *s, uint64_t ns);

/** XRC: removes the SRQ, or adds it again. */
void stage_srq(struct stage *s, bool there);

/** Withdraws or publishes a region. */
void stage_dereg(struct stage *s, enum region which);
void stage_rereg(struct stage *s, enum region which);

/** Checks completions, events and invariants, after every step. */
void stage_check(struct stage *s);

/** Takes all completions. */
void stage_poll(struct stage *s);

#endif
