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

/** An XRC domain, of all sessions that have opened it. */
struct xrcd {
	uint32_t number;       /* unique in the daemon: srq.xrcd, qp.xrc.xrcd */
	struct list refs;      /* struct xrcd_ref.node */
	struct session *payer; /* who is charged for it: one of them */
	int fd;		       /* the file whose it is; -1: none */
	uid_t uid;	       /* of who sent it */
	uint32_t major, minor;
	uint64_t inode;
};

/** One that a session has opened. */
struct xrcd_ref {
	struct xrcd *xrcd;
	struct list node; /* of xrcd.refs */
	struct session *session;
	uint32_t handle;
	uint32_t users; /* SRQs, QPs */
};

/** Nothing of the session uses @p ref any more. */
void xrcd_release(struct xrcd_ref *ref);

#endif
