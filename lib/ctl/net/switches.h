/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/switches.h
 * The text form of the switches whose Fast CNPs a port accepts: items of the port's congestion
 * control (net/congestion.h), "fastcnp=2001:db8:5::1,fastcnp_rate=1000".
 */
#ifndef NET_SWITCHES_H
#define NET_SWITCHES_H

#include <stddef.h>
#include <stdint.h>
#include "limits.h"
#include "path.h"

struct switches {
	uint32_t n; /* 0: no Fast CNP is accepted (FCN-01) */
	struct {
		uint8_t addr[16];
		uint8_t prefix;
	} entry[FAST_CNP_SWITCHES];
	/* the parameters; switches.c has their names */
	uint32_t opt1, opt2; /* the option types */
	uint32_t rate;	     /* Fast CNPs per second from each entry ... */
	uint32_t rate_all;   /* ... and from all */
	uint32_t burst;	     /* how many may arrive at once */
	uint32_t detour;     /* 1: QPs take another path (FCN-15) */
};

/** Room for the text from switches_text(). */
#define SWITCHES_TEXT (FAST_CNP_SWITCHES * 64 + 160)

/** No Fast CNP is accepted. */
void switches_init(struct switches *s);

/** Sets item @p name to @p value.
 *  @return 0; -ENOENT: there is no such item; -EINVAL with the reason in @p why. */
int switches_set(
	struct switches *s, const char *name, const char *value, char *why, size_t why_size);

/** Checks rules that involve more than one item.  @return 0 or -EINVAL with the reason in @p why.
 */
int switches_check(const struct switches *s, char *why, size_t why_size);

/** Writes the items of @p s, each preceded by a comma; nothing if there is no switch.
 *  @return the length */
size_t switches_text(const struct switches *s, char *text, size_t size);

/**
 * Publishes @p s to the workers; NULL: none.
 * @param old  receives the former list, to be freed after a grace period, or NULL
 * @return 0 or -ENOMEM
 */
int switches_publish(const struct switches *s, struct port *shared, struct switch_list **old);

#endif
