/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file loop/listen.h
 * Unix sockets on which rocid listens: for applications (session/server.h) and for administrators
 * (admin/server.h).
 */
#ifndef LOOP_LISTEN_H
#define LOOP_LISTEN_H

#include <stdint.h>
#include <sys/types.h>
#include "abi_ctl.h"

struct listen_spec {
	const char *path;
	int type; /* SOCK_* */
	uint32_t mode;
	const char *group; /* name or number; NULL: unchanged */
};

/** Reads the name or the number of a group.  @return 0, or -EINVAL: there is no such group. */
int listen_group(const char *group, gid_t *gid);

/**
 * Creates a socket file and listens. Replaces a file that no process serves.
 * @return a non-blocking descriptor, or a negative errno with a sentence.
 */
int listen_open(const struct listen_spec *spec, char why[ABI_SENTENCE_MAX]);

#endif
