/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file plan.h
 * The frames to generate: the arguments of rocigen, and the n-th frame that they describe.
 */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "fast.h"
#include "path.h"

#define PLAN_OPS   16u
#define PLAN_QPS   1024u
#define PLAN_WHY   256u
#define PLAN_FRAME 9216u /* a jumbo frame */

/** The position of a packet in its message. */
enum plan_place {
	PLACE_ONLY,
	PLACE_FIRST,
	PLACE_MIDDLE,
	PLACE_LAST,
	PLACES,
};

/** A frame that only lacks its PSN, QPN, marks and ICRC. */
struct plan_template {
	size_t len;
	uint8_t frame[PLAN_FRAME];
};

struct plan {
	/* from the arguments */
	struct gid_entry source;
	struct path_spec way;
	const struct opcode *op[PLAN_OPS]; /* as they are named: ONLY for SEND and WRITE */
	unsigned nops;
	uint32_t qpn[PLAN_QPS];
	unsigned nqps;
	uint32_t psn;
	uint32_t psn_step;
	uint32_t message; /* packets; more than 1 for SEND and WRITE only */
	uint32_t size;	  /* bytes of payload per packet, if its opcode has payload */
	uint64_t va;
	uint32_t rkey;
	uint32_t qkey;
	uint32_t pkey;
	uint32_t syndrome;
	bool fast;	 /* Fast CNPs instead of `op`, */
	uint8_t dip[16]; /* about packets to this address; */
	uint32_t trace;	 /* bytes of IOAM trace: option 2; 0: option 1 */
	uint32_t option; /* the option's type; 0: the usual one */
	enum fast_fault fault;
	uint64_t count;
	/* every this many frames, 0: none */
	uint32_t ackreq;
	uint32_t ce;
	uint32_t bad_icrc;
	double mpps;  /* 0: as many as possible */
	uint32_t mtu; /* of the sending port; 0: unchanged */
	const char *pcap;
	bool hold;
	bool help;
	/* from those */
	struct path path;
	const struct icrc_ops *icrc;
	struct plan_template template[PLAN_OPS][PLACES];
};

/** Reads argv[1..argc), the part after "--". @param why receives a sentence @return 0 or
 * -EINVAL. */
int plan_parse(struct plan *p, int argc, char *argv[], char why[PLAN_WHY]);

/** Prints the arguments. */
void plan_help(void);

/** Makes the templates after plan_parse().  @return 0 or -EINVAL with a sentence. */
int plan_ready(struct plan *p, char why[PLAN_WHY]);

/** @return the length of frame number @p i, from 0. */
size_t plan_length(const struct plan *p, uint64_t i);

/** Writes frame number @p i, plan_length() bytes. */
void plan_frame(const struct plan *p, uint64_t i, uint8_t *frame);

#endif
