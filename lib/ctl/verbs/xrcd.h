/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/xrcd.h
 * XRC domains. Control thread.
 */
#ifndef VERBS_XRCD_H
#define VERBS_XRCD_H

#include <stdint.h>
#include <sys/types.h>
#include "list.h"

struct session;

/** An XRC domain, shared by all sessions that have opened it. */
struct xrcd {
	uint32_t number;       /* unique in the daemon: srq.xrcd, qp.xrc.xrcd */
	struct list refs;      /* struct xrcd_ref.node */
	struct session *payer; /* the session that is charged for it */
	int fd;		       /* its file; -1: none */
	uid_t uid;	       /* of the program that sent the file */
	uint32_t major, minor;
	uint64_t inode;
};

/** A session's reference to a domain. */
struct xrcd_ref {
	struct xrcd *xrcd;
	struct list node; /* of xrcd.refs */
	struct session *session;
	uint32_t handle;
	uint32_t users; /* SRQs, QPs */
};

/** Releases @p ref, which no object of the session uses. */
void xrcd_release(struct xrcd_ref *ref);

#endif
