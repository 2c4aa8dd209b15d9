/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/congestion.h
 * A port's congestion control as people write it: "dcqcn,profile=connectx,rp_ai_rate=10,line=25G",
 * "notify,np_cnp_dscp=46", or "off". Likewise that of one QP, which knows algorithms, profiles and
 * parameters that limit rates: all else is its port's.
 */
#ifndef NET_CONGESTION_H
#define NET_CONGESTION_H

#include <stdbool.h>
#include <stddef.h>
#include "cc.h"
#include "net/switches.h"
#include "path.h"

struct congestion {
	bool on;	 /* packets are ECN-capable, marked ones are answered with CNPs */
	bool reacts;	 /* and CNPs that arrive lower rates, by the algorithm of cfg */
	bool line_given; /* cfg.line is not the port's speed */
	bool of_qp;	 /* of one QP, not of a port */
	uint32_t burst;	 /* packets of a limited QP that leave together */
	struct cc_config cfg;
	struct switches switches;
};

/** Room for what congestion_text() writes. */
#define CONGESTION_TEXT (1024 + SWITCHES_TEXT)

/** Congestion control is off (CNP-14). */
void congestion_init(struct congestion *c);

/**
 * Makes @p c what @p text says.
 * @param why  receives what is wrong
 * @return 0 or -EINVAL.
 */
int congestion_parse(struct congestion *c, const char *text, char *why, size_t why_size);

/** The same for a text that may begin with a parameter, if @p c is on: all others stay as they are.
 *  After an error @p c is good for nothing. */
int congestion_change(struct congestion *c, const char *text, char *why, size_t why_size);

/** Writes all that @p c says.  @return @p text. */
const char *congestion_text(const struct congestion *c, char text[CONGESTION_TEXT]);

/** The port that @p c is for has @p speed_mbps, 0 for unknown: its line, unless the text says. */
void congestion_port(struct congestion *c, uint32_t speed_mbps);

/** @return bytes of a header that the algorithm adds to packets, between IP and UDP. */
uint32_t congestion_header(const struct congestion *c);

/** @return whether packets with IPv6 extension headers may be for the port: telemetry, Fast CNPs.
 */
bool congestion_options(const struct congestion *c);

/** @return a copy of the parameters for the workers, and those for packets without ACKs, to be
 *  freed together; NULL: no rate is limited, or no memory. */
const struct cc_config *congestion_config(const struct congestion *c);

/** Has the workers see it.
 *  @return the former parameters, to be freed after a grace period, or NULL. */
const struct cc_config *congestion_publish(const struct congestion *c, struct port *shared);

#endif
