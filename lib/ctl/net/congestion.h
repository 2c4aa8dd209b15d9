/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/congestion.h
 * A port's congestion control as people write it: "notify,profile=connectx,np_cnp_dscp=46", or
 * "off".
 */
#ifndef NET_CONGESTION_H
#define NET_CONGESTION_H

#include <stdbool.h>
#include <stddef.h>
#include "cc.h"
#include "net/switches.h"
#include "path.h"

struct congestion {
	bool on; /* packets are ECN-capable, marked ones are answered with CNPs */
	struct cc_config cfg;
	struct switches switches;
};

/** Room for what congestion_text() writes. */
#define CONGESTION_TEXT (256 + SWITCHES_TEXT)

/** Congestion control is off (CNP-14). */
void congestion_init(struct congestion *c);

/**
 * Makes @p c what @p text says.
 * @param why  receives what is wrong
 * @return 0 or -EINVAL.
 */
int congestion_parse(struct congestion *c, const char *text, char *why, size_t why_size);

/** Writes all that @p c says.  @return @p text. */
const char *congestion_text(const struct congestion *c, char text[CONGESTION_TEXT]);

/** Has the workers see it. */
void congestion_publish(const struct congestion *c, struct port *shared);

#endif
