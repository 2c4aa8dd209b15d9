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
#include "abi_ring.h"
#include "core.h"
#include "list.h"
#include "net/gids.h"
#include "net/neigh.h"
#include "session/notifier.h"
#include "session/shm.h"
#include "verbs/dest.h"

struct ctl;
struct session;

struct cq_obj;
struct inject;
struct pd;
struct srq_obj;
struct xrcd_ref;

/** A send queue that nobody can post to. */
struct no_queue {
	struct abi_queue head;
	uint8_t entry[ABI_ENTRY];
};

struct qp_obj {
	struct qp *qp; /* what workers see */
	struct session *session;
	struct shm rings;
	size_t bytes; /* of qp */
	struct pd *pd;
	struct cq_obj *send_cq, *recv_cq; /* NULL: of XRC_RECV */
	struct srq_obj *srq;		  /* NULL: none */
	struct xrcd_ref *xrcd;		  /* XRC_RECV */
	struct no_queue *none; /* XRC_RECV: what the core looks at instead of a send queue */
	uint32_t handle;
	uint32_t qpn; /* 0: none yet */
	uint32_t worker;
	uint32_t doorbell; /* slot */
	struct event_source async;
	struct gid_hold hold;
	struct inject *inject; /* verbs/fault.c; NULL: no faults */
	struct dest *dest;     /* where its packets go; NULL: nowhere yet */
	uint16_t sport;	       /* that an administrator set; 0: none */
	struct list dest_node;
	struct list members; /* struct member of the groups that it attached to */
	uint32_t nmembers;
	/* a MODIFY_QP whose destination is being looked for */
	bool resolving;
	struct neigh_query query;
	struct core_cmd cmd;
	struct dest_key key;
	struct gid_hold wanted;
	struct abi_msg request;
};

/** @p o will be destroyed: diagnoses its failure now, while what explains it still exists, and
 *  remembers its QPN (session/failures.h). */
void qp_note_gone(const struct qp_obj *o);
/** Takes @p o from the QP table and its doorbell; gives an unfinished MODIFY_QP up, without a
 *  reply. */
void qp_unpublish(struct qp_obj *o);

/** The same, and has its worker forget it. */
void qp_detach(struct qp_obj *o);

/** The most QPs of one qps_call(). */
#define QPS_CALL_MAX 64u
/** Has the workers of the @p n QPs @p o execute @p cmd, which is one of several QPs: one message to
 *  each worker. */
void qps_call(struct ctl *ctl, const struct core_cmd *cmd, struct qp_obj *const o[], uint32_t n);

/** After a grace period. */
void qp_release(struct qp_obj *o);

/** Has all QPs copy their entry of the P_Key table again, which they keep so that
 *  packets need not look it up. */
void qps_reload_pkeys(struct ctl *ctl);

#endif
