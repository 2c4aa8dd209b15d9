/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cm/gsi.h
 * QP1 of each port as rocid's own (A17.6; CA17-33): a session without a program, whose other end is
 * here, so that quotas, grace periods and readdressing are those of any session. Datagrams in and
 * out; what they say is the owner's affair. Control thread.
 */
#ifndef CM_GSI_H
#define CM_GSI_H

#include <stdbool.h>
#include <stdint.h>
#include "cm.h"
#include "limits.h"
#include "loop/loop.h"
#include "mad.h"
#include "session/shm.h"

struct ctl;
struct qp_obj;
struct session;

#define GSI_AHS	    256u   /* destinations to which MADs go */
#define GSI_ASKED   128u   /* of them may be looked for at a time, to answer them ... */
#define GSI_OWN	    192u   /* ... or because a program begins something */
#define GSI_PENDING 4u	   /* MADs that wait for one of them to be resolved */
#define GSI_RECVS   256u   /* receives per port */
#define GSI_SENDS   256u   /* sends per port */
#define GSI_ROUND   64u	   /* MADs per round: others take their turn */
#define GSI_WAITING 32768u /* MADs that wait to be sent: of each connection one */
#define GSI_PACE    64u	   /* MADs per millisecond, which the peer's QP1 can take ... */
#define GSI_BURST   128u   /* ... and how many at once */

struct gsi_waiting {
	struct cm_path to;
	uint8_t mad[MAD_LEN];
};

/** QP1 of one port. */
struct gsi_port {
	struct qp_obj *qp; /* NULL: a program has it, or none */
	uint32_t handle;   /* of the QP */
	bool stopped;	   /* in SQE */
	uint32_t posted;   /* sends */
	uint32_t received; /* receives that were posted */
};

/** A destination of MADs. */
struct gsi_ah {
	struct cm_path path;
	uint32_t handle; /* 0: not resolved yet */
	bool used;
	bool asked; /* a CREATE_AH is under way */
	uint32_t npending;
	uint64_t last_ms;
	uint8_t pending[GSI_PENDING][MAD_LEN];
};

struct gsi {
	struct ctl *ctl;
	struct session *session;
	int fd;		      /* the other end of the session's socket */
	struct watch replies; /* of CREATE_AH that had to wait */
	struct watch arrived; /* of the CQ's channel */
	uint32_t pd, channel, cq;
	uint32_t lkey;
	uint8_t *buffer; /* GSI_RECVS slots per port */
	size_t buffer_size;
	uint8_t *ring; /* of the CQ */
	uint32_t cq_depth, lanes, lane_off, lane_stride;
	uint32_t taken[WORKER_MAX]; /* CQEs, per lane */
	bool more;		    /* the last round left some */
	struct gsi_port port[PORT_MAX];
	struct gsi_ah ah[GSI_AHS];
	uint32_t nasked;	     /* of them are being looked for */
	struct gsi_waiting *waiting; /* a ring */
	uint32_t first, nwaiting;
	uint32_t paced; /* MADs that may be sent now */
	uint64_t paced_ms;
	uint64_t unresolved; /* MADs dropped: nobody answers for the destination */
	uint64_t full;	     /* MADs dropped: no room in the send queue */
	uint64_t strange;    /* datagrams dropped: not from a QP1, or no address of ours */
	/** A MAD arrived; the owner's. */
	void (*mad)(void *arg, const struct cm_path *from, const uint8_t *mad, size_t len);
	void *arg;
};

/** Opens QP1 of all ports. @return 0 or a negative errno with a sentence; call gsi_close() then. */
int gsi_open(struct gsi *g, struct ctl *ctl, char why[ABI_SENTENCE_MAX]);

/** Before the sessions end. */
void gsi_close(struct gsi *g);

/** Sends @p mad: at once, or in its turn where many are to be sent, or when the destination is
 *  known. */
void gsi_send(struct gsi *g, const struct cm_path *to, const uint8_t mad[MAD_LEN]);

/** Sends what waits, as far as it may.  @return whether more waits: call again in 1 ms. */
bool gsi_flush(struct gsi *g);

/** Takes what has arrived. @return true while there is more. */
bool gsi_poll(struct gsi *g);

/** @return the index of the GID table entry from which MADs along @p path leave, or -1. */
int gsi_sgid_index(const struct ctl *ctl, const struct cm_path *path);

/** @return the index of the P_Key of @p path in the table of its port, or -1. */
int gsi_pkey_index(const struct ctl *ctl, const struct cm_path *path);

#endif
