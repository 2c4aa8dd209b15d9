/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file harness.h
 * The other side of libroci's socket, for tests of libroci: a thread that answers control messages
 * with real regions, and rings that the test itself processes as a worker would. It does nothing on
 * its own: it has no state machine and no wire.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "abi_wqe.h"
#include "cq.h"
#include "roci.h"

#define HARNESS_WORKERS 3u
#define HARNESS_QPS	40u
#define HARNESS_CQS	8u
/* The QP of handle h has number HARNESS_QPN + h. */
#define HARNESS_QPN 0x1200u

struct harness_shm {
	int fd;
	uint8_t *base;
	uint32_t size;
};

struct harness_qp {
	bool live;
	struct harness_shm shm;
	struct abi_create_qp asked;
	struct abi_create_qp_reply told;
	uint32_t sq_next; /* entries taken */
	uint32_t rq_next;
	uint32_t cqes[2];	     /* completions of the send queue, of the receive queue */
	uint32_t modify_mask;	     /* of the last MODIFY_QP */
	struct abi_qp_attr attr;     /* what QUERY_QP answers; MODIFY_QP copies the state only */
	struct abi_qp_attr modified; /* of the last MODIFY_QP */
};

struct harness_cq {
	bool live;
	struct harness_shm shm;
	struct harness_shm resized; /* the ring in use, after a resize */
	struct abi_create_cq asked;
	struct cq cq;
};

struct harness;

/** Answers a request in its own way and returns true, or leaves it to the harness. Runs in the
 *  harness's thread. */
typedef bool harness_hook(
	struct harness *h, const struct abi_msg *msg, const void *body, size_t len);

struct harness {
	char dir[32];
	char path[64];
	int listener;
	_Atomic int conn;
	int async_fd;	/* our end */
	int channel_fd; /* our end of the only channel */
	struct harness_shm session;
	pthread_t thread;
	uint64_t epoch;
	bool full; /* refuses the session */
	int wake;  /* eventfd of worker 1, if harness_sleeps */
	/* what the next CREATE_QP grants, where not zero */
	uint32_t lie_ring_off;
	uint32_t calls[ABI_MSG_TYPES]; /* requests seen */
	_Atomic(harness_hook *) hook;
	/** Called, when there is one, after a resize and before its reply. */
	void (*resized)(struct harness *h);
	struct abi_reg_mr reg; /* the last REG_MR, and its memfd mapped */
	uint8_t *reg_base;
	struct harness_qp qp[HARNESS_QPS];
	struct harness_cq cq[HARNESS_CQS];
};

/** Whether the next harness has workers that sleep. */
extern bool harness_sleeps;

/** Whether its ports have RoCEv1 GIDs. */
extern bool harness_rocev1;

/** Serves one session at h->path. */
struct harness *harness_start(void);
void harness_stop(struct harness *h);

/** Ends like a killed rocid: its sockets close, and nothing is written. */
void harness_die(struct harness *h);

/** Ends like a rocid that was asked to stop: sets the epoch to 0, then closes the sockets. */
void harness_end(struct harness *h);

/** Answers the request @p msg. */
void harness_reply(struct harness *h, const struct abi_msg *msg, int status, const void *body,
	size_t len, const int *fds, unsigned nfds);

/** Takes the next send WQE of QP @p i.  @return false when its mark says that there is none. */
bool harness_take_send(struct harness *h, unsigned i, void *wqe);
bool harness_take_recv(struct harness *h, unsigned i, void *wqe);

struct abi_queue *harness_sq(struct harness *h, unsigned i);
struct abi_queue *harness_rq(struct harness *h, unsigned i);

/** @return whether the doorbell of QP @p i was rung; clears it. */
bool harness_bell(struct harness *h, unsigned i);

/** Puts a completion of QP @p qp on lane @p lane of CQ @p cq; sends the event that is owed.
 *  @return false when the lane is full. */
bool harness_complete(struct harness *h, unsigned cq, unsigned lane, unsigned qp, uint64_t wr_id,
	uint8_t opcode, uint8_t status);

/** The same of a send request that failed, the @p index-th that was ever posted. */
bool harness_fail(struct harness *h, unsigned cq, unsigned lane, unsigned qp, uint32_t index,
	uint64_t wr_id, uint8_t status);

/** Sends an event, as it is, on the channel or the async socket. */
void harness_event(int fd, uint32_t type, uint32_t handle);

/* --- what most tests begin with --------------------------------------------------------- */

struct rig {
	struct harness *h;
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_mr *mr;
};

/** A session with a QP in RTS, whose queues have @p depth entries, 2 SGEs and 64 inline bytes, and
 *  a CQ of 16 entries per lane. */
void rig_make(struct rig *r, uint32_t depth);
void rig_drop(struct rig *r);

/** Moves @p qp to that state without attributes, which the harness does not require. */
int rig_modify(struct roci_qp *qp, enum roci_qp_state state);

/** Another QP, in RESET, on the rig's CQ. */
struct roci_qp *rig_qp(struct rig *r, uint32_t depth, int sq_sig_all);
struct roci_qp *rig_qp_of(struct rig *r, enum roci_qp_type type, uint32_t depth, int sq_sig_all);

#endif
