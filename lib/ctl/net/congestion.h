/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/congestion.h
 * The text form of a port's congestion control: "dcqcn,profile=connectx,rp_ai_rate=10,line=25G",
 * "notify,np_cnp_dscp=46" or "off"; and that of one QP, which accepts algorithms, profiles and
 * parameters that limit rates: everything else belongs to its port.
 */
#ifndef NET_CONGESTION_H
#define NET_CONGESTION_H

#include <stdbool.h>
#include <stddef.h>
#include "cc.h"
#include "net/switches.h"
#include "path.h"

struct congestion {
	bool on;	 /* packets are ECN-capable, and marked ones cause CNPs */
	bool reacts;	 /* arriving CNPs lower rates, by the algorithm of cfg */
	bool line_given; /* cfg.line was configured, not taken from the port */
	bool of_qp;	 /* it belongs to one QP, not to a port */
	uint32_t burst;	 /* packets of a limited QP that may leave together */
	struct cc_config cfg;
	struct switches switches;
};

/** Room for the text from congestion_text(). */
#define CONGESTION_TEXT (1024 + SWITCHES_TEXT)

/** Congestion control is off (CNP-14). */
void congestion_init(struct congestion *c);

/**
 * Sets @p c according to @p text.
 * @param why  receives the error sentence
 * @return 0 or -EINVAL.
 */
int congestion_parse(struct congestion *c, const char *text, char *why, size_t why_size);

/** The same, but if @p c is on, @p text may begin with a parameter: all others stay unchanged.
 *  After an error @p c is unusable. */
int congestion_change(struct congestion *c, const char *text, char *why, size_t why_size);

/** Writes the text form of @p c.  @return @p text. */
const char *congestion_text(const struct congestion *c, char text[CONGESTION_TEXT]);

/** Sets the speed of the port of @p c, 0 for unknown: the line rate, unless one is configured. */
void congestion_port(struct congestion *c, uint32_t speed_mbps);

/** @return the bytes of a header that the algorithm adds to packets between IP and UDP. */
uint32_t congestion_header(const struct congestion *c);

/** @return whether the port accepts packets with IPv6 extension headers: telemetry, Fast CNPs. */
bool congestion_options(const struct congestion *c);

/** Copies the parameters for the workers.
 *  @param config  receives the copy, with the parameters for packets without ACKs, to be freed
 *                 together; NULL: no rate is limited
 *  @return 0 or -ENOMEM. */
int congestion_config(const struct congestion *c, const struct cc_config **config);

/** Publishes @p c to the workers, with @p config from congestion_config(), which they use from now
 *  on. It cannot fail.
 *  @return the former parameters, to be freed after a grace period, or NULL. */
const struct cc_config *congestion_publish(
	const struct congestion *c, const struct cc_config *config, struct port *shared);

#endif
