/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/qp_obj.h
 * Queue pairs of a session. Control thread.
 */
#ifndef VERBS_QP_OBJ_H
#define VERBS_QP_OBJ_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "core_command.h"
#include "flow.h"
#include "list.h"
#include "memory/shm.h"
#include "net/gids.h"
#include "net/neigh.h"
#include "session/notifier.h"

struct ctl;
struct session;

struct cq_obj;
struct dest;
struct inject;
struct no_queue;
struct pd;
struct qp_cc;
struct srq_obj;
struct xrcd_ref;

struct qp_obj {
	struct qp *qp; /* the part that workers use */
	struct session *session;
	struct shm rings;
	size_t bytes; /* of qp */
	struct pd *pd;
	struct cq_obj *send_cq, *recv_cq; /* NULL for XRC_RECV */
	struct srq_obj *srq;		  /* NULL: none */
	struct xrcd_ref *xrcd;		  /* XRC_RECV */
	struct no_queue *none;		  /* XRC_RECV: the send queue that the core sees */
	uint32_t handle;
	uint32_t qpn; /* 0: none yet */
	uint32_t worker;
	uint32_t doorbell; /* slot */
	struct event_source async;
	struct gid_hold hold;
	struct inject *inject; /* verbs/fault.c; NULL: no faults */
	struct qp_cc *cc;      /* verbs/qp_cc.c; NULL: as for its port */
	struct dest *dest;     /* NULL: none yet */
	struct qp_flow flow;   /* flow of its packets, published while it has an address vector */
	uint16_t sport;	       /* set by an administrator; 0: none */
	struct list dest_node;
	struct list members; /* struct member of the groups that it attached to */
	uint32_t nmembers;
	/* a MODIFY_QP whose destination is being resolved */
	bool resolving;
	struct neigh_query query;
	struct core_cmd cmd;
	struct dest_key key;
	struct gid_hold wanted;
	struct abi_msg request;
};

/** Records the failure and the QPN of @p o, which will be destroyed, while the objects that explain
 *  the failure exist. */
void qp_note_gone(const struct qp_obj *o);
/** Withdraws @p o from the QP table and its doorbell slot; cancels an unfinished MODIFY_QP without
 * a reply. */
void qp_unpublish(struct qp_obj *o);

/** Maximum number of QPs per qps_call(). */
#define QPS_CALL_MAX 64u
/** Has the workers of the @p n QPs @p o execute @p cmd, a command for several QPs: one message per
 *  worker. */
void qps_call(struct ctl *ctl, const struct core_cmd *cmd, struct qp_obj *const o[], uint32_t n);

/** Adds @p step to the QPs of @p o's worker; rocid's own QPs do not count. */
void qp_count_at_worker(const struct qp_obj *o, int step);

/** Frees @p o, after a grace period. */
void qp_release(struct qp_obj *o);

/** Makes all QPs copy their entry of the P_Key table again; they keep it so that packets need no
 *  lookup. */
void qps_reload_pkeys(struct ctl *ctl);

/** Congestion control of a port has changed: makes all QPs follow. */
void qps_congestion(struct ctl *ctl);

#endif
