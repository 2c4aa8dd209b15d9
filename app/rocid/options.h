/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file options.h
 * rocid's own arguments, those behind "--", and the lines of its configuration file: the same
 * names, the same values, one table (options.c).
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>
#include "ctl.h"
#include "limits.h"
#include "linkemu.h"
#include "worker.h"

struct icrc_ops;

/** Longest value of an option, in bytes with the NUL. */
#define VALUE_MAX 256
/** Static GIDs and neighbours that can be named. */
#define STATIC_MAX 256u
/** Any port: one that --share makes itself. */
#define PORT_NEW UINT32_MAX

struct option_share {
	uint32_t port; /* or PORT_NEW */
	char netdev[IFNAMSIZ];
};

struct option_tap {
	uint32_t port;
	char netdev[IFNAMSIZ];
};

struct option_gid {
	uint32_t port;
	struct ctl_gid gid;
};

struct option_neigh {
	uint32_t port;
	struct ctl_neigh neigh;
};

enum stats_format {
	STATS_NONE,
	STATS_TEXT,
	STATS_JSON,
};

struct options {
	char socket[VALUE_MAX];
	char socket_group[VALUE_MAX]; /* empty: unchanged */
	uint32_t socket_mode;	      /* 0: ctl's default */
	char admin_group[VALUE_MAX];
	uint32_t admin_mode;
	struct ctl_limits limits;
	uint32_t workers;
	uint32_t window; /* 0: the core's default */
	bool rocev1;
	enum idle idle;
	bool migrate;
	uint32_t shake_ms;	     /* --migrate MS; 0: not */
	const struct icrc_ops *icrc; /* NULL: the best */
	uint32_t nshares;
	struct option_share share[PORT_MAX];
	uint32_t ntaps;
	struct option_tap tap[PORT_MAX];
	uint32_t ngids;
	struct option_gid gid[STATIC_MAX];
	uint32_t nneighs;
	struct option_neigh neigh[STATIC_MAX];
	uint16_t mtu[PORT_MAX]; /* 0: as it is */
	bool impaired[PORT_MAX];
	struct linkemu_config impair[PORT_MAX];
	uint32_t npairs;
	struct linkemu_config pair[PORT_MAX / 2];
	int ready_fd; /* -1: none */
	enum stats_format stats;
	bool help;
	bool version;
	/** Highest port that an argument names, -1 for none, and that argument. */
	int highest_port;
	char highest_by[32];
};

/** Sets everything to its default. */
void options_init(struct options *o);

/**
 * Reads argv[1..argc), rocid's own arguments.
 * @param why  receives a sentence that names what is wrong
 * @return 0 or -EINVAL.
 */
int options_parse(struct options *o, int argc, char *argv[], char why[VALUE_MAX * 2]);

/**
 * Sets option @p name (without dashes) to @p value, "" when it has none.
 * @param why  receives what is wrong, without saying where
 * @return 0 or -EINVAL.
 */
int options_set(struct options *o, const char *name, const char *value, char why[VALUE_MAX]);

/** Reads "name = value" lines of @p path; '#' starts a comment.  @return 0 or -EINVAL. */
int options_read_file(struct options *o, const char *path, char why[VALUE_MAX * 2]);

/** Prints what `rocid --help` prints. */
void options_help(void);

#endif
