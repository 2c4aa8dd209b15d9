/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file worker.h
 * The DPDK shell around a core: one worker an lcore, polling its queues (design.md 1, 4). The
 * functions below are the control thread's way to reach workers; none of them makes a worker
 * wait for the control thread.
 */
#ifndef WORKER_H
#define WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rte_rcu_qsbr.h>
#include "abi_ring.h"
#include "core.h"

struct exception;
struct worker;

/** What all workers of a daemon share. Filled by app/rocid before workers start. */
struct dataplane {
	struct qp_table *qps;	   /* written by the control thread */
	struct mr_table *mrs;	   /* written by the control thread */
	struct port_table *ports;  /* published parts written by the control thread */
	struct rte_rcu_qsbr *qsbr; /* readers are the workers */
	uint32_t nworkers;
	struct worker *worker[WORKER_MAX];
	/** Completion and async events of all workers: elements are struct core_event. Filled by
	 *  workers, drained by the notifier thread (ctl). */
	struct rte_ring *events;
	/** ethdev port id of dataplane port i (ports->port[i]). */
	uint16_t ethdev[PORT_MAX];
	uint32_t nports; /* opened with port_open() */
	/** Where what is not RoCE goes and comes from, of port i; NULL: it is dropped. Set before
	 * the workers run. */
	struct exception *exception[PORT_MAX];
	const struct icrc_ops *icrc;
	/** Packet buffers a worker; set before worker_create(). */
	uint32_t mbufs;
	/** Whether an idle worker offers its CPU to others each round (sched_yield): for machines
	 *  with fewer cores than spinning threads. Set before the workers run. */
	bool yield;
};

/** What the shell counts besides struct core_counters. One writer, the worker. */
struct worker_stats {
	uint64_t tx_stalled; /* packets dropped because their port took none for a while */
	uint64_t no_mbuf;    /* rounds that had no packet buffer to send with */
	uint64_t pauses;     /* rounds that began more than a millisecond after the last */
	uint64_t to_kernel;  /* frames that are not RoCE, passed on (exception.h) */
	uint64_t from_kernel;
	uint64_t kernel_full; /* frames for the kernel that were lost because it was too slow */
};

/**
 * A session's doorbell as one worker sees it. The control thread fills it, publishes it with
 * worker_add_doorbell(), and may free it after worker_del_doorbell() and a grace period.
 */
struct worker_doorbell {
	struct abi_doorbell *shared; /* hostile: only bits are read */
	/** Slot -> QP of this worker, NULL when the slot is free. Control thread writes. */
	_Atomic(struct qp *) qp[ABI_DB_MAX];
};

/** @return 0, or -ENOSPC when the worker has no room for another session. Control thread. */
int worker_add_doorbell(struct worker *w, struct worker_doorbell *db);

/** Withdraws @p db. Control thread. */
void worker_del_doorbell(struct worker *w, struct worker_doorbell *db);

/**
 * Has @p w run @p cmd and waits for the answer, a few microseconds while the worker polls. The
 * worker repeats core_cmd() until it answers something else than -EAGAIN, packets in between.
 * A worker that does not run (yet, or any more) cannot answer: the caller then executes the
 * command itself.
 * @return what core_cmd() returned. Control thread.
 */
int worker_call(struct worker *w, struct core_cmd *cmd);

/** Waits until no worker holds a pointer that was withdrawn before the call (QSBR). Control
 *  thread. */
void worker_grace(struct dataplane *dp);

/** Adds the counters of all workers. Any thread; the sum is not a snapshot. */
void worker_counters(const struct dataplane *dp, struct core_counters *sum);

/** The same for what the shell counts. */
void worker_stats(const struct dataplane *dp, struct worker_stats *sum);

/* --- app/rocid ------------------------------------------------------------------------ */

/**
 * Makes the tables that @p nworkers workers share, empty, on NUMA node @p socket.
 * @return NULL when memory is short.
 */
struct dataplane *dataplane_create(uint32_t nworkers, int socket);

/** Frees @p dp; its workers have been destroyed. NULL is harmless. */
void dataplane_destroy(struct dataplane *dp);

/**
 * Makes worker @p index of @p dp on NUMA node @p socket; its core is ready, nothing runs yet.
 * @return NULL when memory is short.
 */
struct worker *worker_create(struct dataplane *dp, uint32_t index, int socket);

/** The poll loop: runs on the calling lcore until worker_stop(). Suits rte_eal_remote_launch.
 *  @param arg  a struct worker *.  @return 0. */
int worker_run(void *arg);

/** @return true from when @p w polls until it has left worker_run(). worker_call() must not
 *  race with the start of a worker: see that it runs first. Any thread. */
bool worker_running(const struct worker *w);

/** Asks @p w, if it runs, to leave worker_run(). Any thread, signal handlers too. */
void worker_stop(struct worker *w);

void worker_destroy(struct worker *w);

/**
 * Survives SIGBUS in application memory on the calling process's workers: the handler maps a
 * zero page over the hole and counts (uaccess.h).  @return 0 or a negative errno.
 */
int worker_install_sigbus(void);

#endif
