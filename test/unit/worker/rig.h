/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file rig.h
 * A daemon without applications: workers on threads of their own over a ring pair, and QPs whose
 * rings the test fills as an application would.
 */
#ifndef RIG_H
#define RIG_H

#include <pthread.h>
#include "mr.h"
#include "port.h"
#include "qp.h"
#include "worker_impl.h"

#define RIG_DEPTH 64u

/* The surroundings of a worker. */
struct rig_thread {
	pthread_t thread;
	struct worker *w;
	pid_t tid; /* known when the worker runs */
};

struct rig {
	struct dataplane *dp;
	uint16_t ethdev[2];
	struct port_info info[2];
	struct gid_table gids[2]; /* port 0: 192.0.2.10, port 1: 192.0.2.11 */
	struct rig_thread thread[WORKER_MAX];
	bool runs;
	/* Of QPs that are connected from now on: its code. 0, as at first: none runs, so a slow
	 * machine has nothing sent again, and what is lost or not woken for is never done. */
	uint8_t ack_timeout;
};

/* One end of a connection and all the memory it needs. */
struct rig_qp {
	struct qp *qp;
	struct cq *cq;
	struct abi_queue *sq;
	struct abi_queue *rq;
	struct abi_cqe *cqe;
	struct abi_cq_lane *lane; /* of its worker */
	struct abi_doorbell *bell;
	struct worker_doorbell db;
	int wake; /* IDLE_ADAPTIVE: eventfd of its worker, else -1 */
	struct mr mr;
	struct worker *w;
	uint32_t posted;
	uint32_t polled;
	uint8_t *memory; /* the MR: RIG_MEMORY bytes at iova 0x1000 */
};
#define RIG_MEMORY 65536u
#define RIG_IOVA   0x1000u

/* Tables, workers and ports, stopped. */
void rig_up(struct rig *r, uint32_t nworkers);
void rig_up_idle(struct rig *r, uint32_t nworkers, enum idle idle);
void rig_down(struct rig *r);

/* Runs the workers on threads, and stops them. */
void rig_start(struct rig *r);
void rig_stop(struct rig *r);

/* A QP in RESET with handle, slot and R_Key `slot` on worker `worker`; its doorbell is heard. */
void rig_qp_up(struct rig *r, struct rig_qp *q, uint32_t slot, uint32_t worker);
void rig_qp_down(struct rig *r, struct rig_qp *q, uint32_t slot);

/* Rings, and wakes the worker if it sleeps, as an application would. */
void rig_ring(struct rig_qp *q);

/* Brings `a`, on port `port`, to RTS towards `b` on the other port. `local`: on the same port, not
 * by the wire. */
void rig_connect(struct rig *r, struct rig_qp *a, struct rig_qp *b, uint8_t port, bool local);

/* Posts a signaled RDMA WRITE of [0, len) to the peer's [0, len) and rings. */
void rig_write(struct rig_qp *a, struct rig_qp *b, uint32_t len);

/* Waits for the next completion.  @return its status, -1 when patience is over. */
int rig_poll(struct rig_qp *q);

/* The number of free packet buffers of worker `w`. */
unsigned rig_free_buffers(const struct worker *w);

/** rx_poll() of a round that has just begun, however slow the machine is. */
static inline unsigned rig_rx(struct worker *w, bool *drained)
{
	w->burst_at = w->now;
	return rx_poll(w, drained);
}

#endif
