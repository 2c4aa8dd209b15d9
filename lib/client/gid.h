/* SPDX-License-Identifier: BSD-3-Clause */
/** @file gid.h  Kinds of addresses that a GID may contain. */
#ifndef GID_H
#define GID_H

#include <stdbool.h>
#include <string.h>
#include "roci.h"

/** @return whether @p g is an IPv4 address, ::ffff:a.b.c.d. */
static inline bool gid_is_ipv4(const union roci_gid *g)
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	return !memcmp(g->raw, mapped, sizeof(mapped));
}

/** @return whether @p g is in fe80::/10, which no router forwards. */
static inline bool gid_is_link_local(const union roci_gid *g)
{
	return g->raw[0] == 0xFE && (g->raw[1] & 0xC0) == 0x80;
}

#endif
