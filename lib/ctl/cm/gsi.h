/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file cm/gsi.h
 * QP1 of each port, owned by rocid (A17.6; CA17-33): a session without a program, whose other end
 * is here, so that quotas, grace periods and readdressing work as for any session. It sends and
 * receives datagrams; their owner interprets them. Control thread.
 */
#ifndef CM_GSI_H
#define CM_GSI_H

#include <stdbool.h>
#include <stdint.h>
#include "cm.h"
#include "limits.h"
#include "loop/loop.h"
#include "mad.h"
#include "memory/shm.h"

struct ctl;
struct qp_obj;
struct session;

#define GSI_AHS	     256u   /* destinations of MADs */
#define GSI_ASKED    128u   /* of these, the maximum being resolved to answer MADs ... */
#define GSI_OWN	     192u   /* ... or because a program initiates something */
#define GSI_PENDING  4u	    /* MADs that wait for the same destination to be resolved */
#define GSI_RECVS    256u   /* receives per port */
#define GSI_SENDS    256u   /* sends per port */
#define GSI_ROUND    64u    /* MADs per round, so that other work is not delayed */
#define GSI_WAITING  65536u /* MADs that wait to be sent: twice one per connection */
#define GSI_TURNS    64u    /* queues of them */
#define GSI_PACE     64u    /* MADs per millisecond, a rate that the peer's QP1 can absorb ... */
#define GSI_BURST    128u   /* ... and as a burst */
#define GSI_AGAIN_MS 1000   /* until lost QP1s are opened again */

struct gsi_waiting {
	struct cm_path to;
	uint32_t next; /* in its queue, or of those that are free */
	uint8_t mad[MAD_LEN];
};

/** MADs of one sender (cm_path.sender), oldest first. */
struct gsi_turn {
	uint32_t sender;
	uint32_t n;
	uint32_t first, last; /* in gsi.waiting, if `n` */
};

/** QP1 of one port. */
struct gsi_port {
	struct qp_obj *qp; /* NULL: a program owns it, or there is none */
	uint32_t handle;   /* of the QP */
	bool stopped;	   /* in SQE */
	uint32_t posted;   /* sends */
	uint32_t received; /* receives posted so far */
};

/** A destination of MADs. */
struct gsi_ah {
	struct cm_path path;
	uint32_t handle; /* 0: not resolved yet */
	bool used;
	bool asked; /* a CREATE_AH is unfinished */
	uint32_t npending;
	uint64_t last_ms;
	struct {
		uint32_t flow_label;
		uint8_t mad[MAD_LEN];
	} pending[GSI_PENDING];
};

struct gsi {
	struct ctl *ctl;
	struct session *session;
	int fd;		      /* the other end of the session's socket */
	uint64_t again_ms;    /* when to open QP1 again, 0: it is open */
	struct watch arrived; /* of the CQ's channel */
	uint32_t pd, channel, cq;
	uint32_t lkey;
	uint8_t *buffer; /* GSI_RECVS slots per port */
	size_t buffer_size;
	uint8_t *ring; /* of the CQ */
	uint32_t cq_depth, lanes, lane_off, lane_stride;
	uint32_t taken[WORKER_MAX]; /* CQEs taken, per lane */
	bool more;		    /* the last round did not take all */
	struct gsi_port port[PORT_MAX];
	struct gsi_ah ah[GSI_AHS];
	uint32_t nasked; /* destinations being resolved */
	struct gsi_waiting *waiting;
	uint32_t nwaiting, touched; /* entries in use, and ever used: the others are free, ... */
	uint32_t free;		    /* ... this one first, if there are any */
	struct gsi_turn turn[GSI_TURNS];
	uint32_t last_turn;
	uint32_t paced; /* MADs that may be sent now */
	uint64_t paced_ms;
	uint64_t unresolved; /* MADs dropped: the destination did not resolve */
	uint64_t full;	     /* MADs dropped: no room in the send queue */
	uint64_t strange;    /* datagrams dropped: not from a QP1, or not to an address of ours */
	/** Called for each received MAD; set by the owner. */
	void (*mad)(void *arg, const struct cm_path *from, const uint8_t *mad, size_t len);
	void *arg;
};

/** Opens QP1 of all ports. @return 0, or a negative errno with a sentence, after which gsi_close()
 *  must be called. */
int gsi_open(struct gsi *g, struct ctl *ctl, char why[ABI_SENTENCE_MAX]);

/** Closes QP1; call it before the sessions end. */
void gsi_close(struct gsi *g);

/** The session of QP1 ends, because its memory faulted. */
void gsi_lost(struct gsi *g);

/** Opens QP1 again, if it was lost. @return milliseconds until the next attempt, -1: none is due.
 */
int gsi_reopen(struct gsi *g);

/** Sends @p mad: at once, in its turn if many are queued, or when its destination is resolved. */
void gsi_send(struct gsi *g, const struct cm_path *to, const uint8_t mad[MAD_LEN]);

/** Sends up to GSI_BURST queued MADs, as far as the pace allows.  @return whether more are queued:
 * call again in 1 ms. */
bool gsi_flush(struct gsi *g);

/** Processes received datagrams. @return true while there are more. */
bool gsi_poll(struct gsi *g);

/** @return the index of the GID table entry that MADs along @p path are sent from, or -1. */
int gsi_sgid_index(const struct ctl *ctl, const struct cm_path *path);

/** @return the index of the P_Key of @p path in the table of its port, or -1. */
int gsi_pkey_index(const struct ctl *ctl, const struct cm_path *path);

#endif
