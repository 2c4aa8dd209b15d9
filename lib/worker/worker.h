/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file worker.h
 * The DPDK shell around a core: one worker per lcore, polling its queues (decision 0000.1, 4). The
 * functions below are the control thread's way to reach workers; none of them makes a worker wait
 * for the control thread.
 */
#ifndef WORKER_H
#define WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rte_rcu_qsbr.h>
#include "limits.h"

struct ah_table;
struct core_cmd;
struct core_counters;
struct drop_note;
struct exception;
struct flow_table;
struct mcast_table;
struct mr_table;
struct port_table;
struct qp_table;
struct srq_table;
struct worker;

/** How a worker idles after a round without work. */
enum idle {
	IDLE_POLL,     /* the next round: the lowest latency, a whole core */
	IDLE_YIELD,    /* yields its CPU in each round: for machines with fewer cores than spinning
			* threads */
	IDLE_ADAPTIVE, /* spins, then yields, then sleeps until there is work */
};

/** The names of enum idle, as users write them; NULL after the last. */
extern const char *const idle_names[];

/**
 * Wakes a thread that sleeps in the kernel. Both sides write one word and then read the other's, so
 * that nothing is lost: the sleeper sets `asleep`, fences, and searches for work once more before
 * it sleeps; a thread that adds work fences after it and then reads `asleep` (waker_wake()).
 */
struct waker {
	_Atomic bool asleep; /* the sleeper: it sleeps, or is about to */
	int fd;		     /* eventfd that it waits for; -1: it never sleeps */
};

/** Call after the work has been made visible. Any thread, signal handlers too. */
void waker_wake(struct waker *k);

struct rte_eth_stats;

/** State shared by all workers of a daemon. Filled by app/rocid before workers start. */
struct dataplane {
	struct qp_table *qps;	    /* written by the control thread */
	struct mr_table *mrs;	    /* written by the control thread */
	struct ah_table *ahs;	    /* written by the control thread */
	struct mcast_table *mcasts; /* written by the control thread */
	struct flow_table *flows;   /* written by the control thread */
	struct srq_table *srqs;	    /* written by the control thread */
	struct port_table *ports;   /* published parts written by the control thread */
	struct rte_rcu_qsbr *qsbr;  /* readers are the workers */
	uint32_t nworkers;
	struct worker *worker[WORKER_MAX];
	int node[WORKER_MAX]; /* NUMA node of the CPU that worker i runs on; -1: unknown */
	/** Completion and async events of all workers: elements are struct core_event. Filled by
	 *  workers, drained by the notifier thread (ctl). */
	struct rte_ring *events;
	/** A core has late QPs to report. Workers set it, the notifier thread clears it. */
	atomic_bool late;
	/** The notifier thread's, if it sleeps. */
	struct waker notifier;
	/** ethdev port id of dataplane port i (ports->port[i]). */
	uint16_t ethdev[PORT_MAX];
	uint32_t nports; /* opened with port_open() */
	/** Port i receives all multicast because port_set_groups() required it. Control thread. */
	bool allmulti[PORT_MAX];
	/** Replaces the counters of port i's ethdev; NULL: these are correct. Control thread. */
	void (*count[PORT_MAX])(void *arg, struct rte_eth_stats *stats);
	void *count_arg[PORT_MAX];
	/** The path of port i's non-RoCE frames to and from the kernel; NULL: they are dropped. Set
	 * before the workers run. */
	struct exception *exception[PORT_MAX];
	const struct icrc_ops *icrc;
	/** Packet buffers per worker; set before worker_create(). */
	uint32_t mbufs;
	/** Bytes of a packet buffer without the headroom, MBUF_ROOM or less; likewise. */
	uint32_t mbuf_room;
	/** Set before worker_create(). The control thread may change it between IDLE_POLL and
	 * IDLE_YIELD later; IDLE_ADAPTIVE is permanent. */
	enum idle idle;
	/** Counter value at which all workers' clocks are 0: timers move with a QP. */
	uint64_t tsc;
};

/* Counters of the shell in addition to struct core_counters. X(field, help) */
#define WORKER_STATS(X)                                                                \
	X(tx_stalled, "packets dropped because their port took none for a while")      \
	X(port_down, "packets dropped because their port was set down")                \
	X(no_mbuf, "rounds that had no packet buffer to send with")                    \
	X(pauses, "rounds that began more than a millisecond after the last")          \
	X(handoffs, "packets that came to this worker and were passed to their owner") \
	X(bells_passed, "doorbells of QPs that had moved")                             \
	X(local_waits, "times that packets to a moved QP waited for its new inbox")    \
	X(qps_given, "QPs that moved away")                                            \
	X(sleeps, "times that the worker slept")                                       \
	X(to_kernel, "frames that are not RoCE, passed to the kernel")                 \
	X(from_kernel, "frames of the kernel, sent")                                   \
	X(kernel_full, "frames for the kernel that were lost because it was too slow")

/** One writer, the worker. */
struct worker_stats {
#define X(field, help) uint64_t field;
	WORKER_STATS(X)
#undef X
};

/** @return the name, or the description, of the i-th counter in declaration order; NULL beyond the
 *  last. */
const char *worker_stat_name(unsigned i);
const char *worker_stat_help(unsigned i);

/** @return where @p w keeps the time of its current work: for completions' timestamps. */
const uint64_t *worker_clock(const struct worker *w);

/**
 * A session's doorbell as one worker sees it. The control thread fills it, publishes it with
 * worker_add_doorbell(), and may free it after worker_del_doorbell() and a grace period.
 */
struct worker_doorbell {
	struct abi_doorbell *shared; /* hostile: only bits are read */
	/** The application wakes the worker by eventfd `wake`. Written by
	 *  worker_doorbell_eventfd(). */
	_Atomic bool wakes;
	int wake;
	/** Slot -> QP, NULL when the slot is free: ABI_DB_MAX, of all workers. Control thread
	 * writes. */
	_Atomic(struct qp *) *qp;
};

/** @return 0, or -ENOSPC when the worker has no room for another session. Control thread. */
int worker_add_doorbell(struct worker *w, struct worker_doorbell *db);

/** Withdraws @p db. Control thread. */
void worker_del_doorbell(struct worker *w, struct worker_doorbell *db);

/**
 * Lets the application of @p db, which was added, wake @p w (abi_doorbell.asleep). Until then the
 * worker checks the doorbell every WORKER_SLICE_MAX_NS, so that an application that cannot wake it
 * is served too. Each application has its own descriptor, so misuse harms nobody else. Control
 * thread.
 * @return an eventfd for the application, which the caller closes; or a negative errno, -EOPNOTSUPP
 * when workers do not sleep.
 */
int worker_doorbell_eventfd(struct worker *w, struct worker_doorbell *db);

/**
 * Wakes @p w if it sleeps. Call it after giving the worker work in another way than by the
 * functions of this file: a ring that it polls, say. Any thread, signal handlers too.
 */
void worker_wake(struct worker *w);

/** Longest sleep of a worker that has a port, or an application, that cannot wake it. A wake-up
 * costs about 20 us of CPU, so this is 1 % of a core. */
#define WORKER_SLICE_MAX_NS 2000000u

/**
 * Passes the time of a thread that waits for a worker: it spins briefly, yields some hundreds of
 * times, then sleeps for some tens of microseconds each time. After a yield that took long it only
 * sleeps: on a busy machine sched_yield() spends the thread's share of the CPU on waiting, and the
 * thread is then not scheduled for seconds when it could continue.
 * @param turns  0 at first; counts
 */
void worker_wait(unsigned *turns);

/**
 * Makes @p w run @p cmd and waits for the answer, a few microseconds while the worker polls. The
 * worker repeats core_cmd() until it returns something other than -EAGAIN, with packets in between.
 * A worker that does not run (yet, or any more) cannot answer: the caller then executes the command
 * itself.
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

/** Copies what worker @p worker noted in slot @p slot, below DROP_NOTES, of packets dropped because
 * of @p why. @return false if there is none. Any thread. */
bool worker_drop_note(const struct dataplane *dp, uint32_t worker, uint32_t why, uint32_t slot,
	struct drop_note *note);
/** @return a QP of worker @p worker that was not answered in time, removed from slot @p slot, below
 * LATE_SLOTS; 0: none. Control thread. */
uint32_t worker_take_late(struct dataplane *dp, uint32_t worker, uint32_t slot);
/** Adds those of one worker. */
void worker_counters_of(const struct worker *w, struct core_counters *sum);
void worker_stats_of(const struct worker *w, struct worker_stats *sum);

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

/** The parts of worker_run(), for a caller with its own loop (test/bench): the calling thread is
 * the worker from worker_begin() to worker_end(), and calls worker_round() often. */
void worker_begin(struct worker *w);
void worker_round(struct worker *w);
void worker_end(struct worker *w);

/** @return true from when @p w polls until it has left worker_run(). worker_call() must not
 * race with the start of a worker: make sure that it runs first. Any thread. */
bool worker_running(const struct worker *w);

/** @return 0, or a negative errno if workers cannot sleep here (IDLE_ADAPTIVE). */
int worker_can_sleep(void);

/** Asks @p w, if it runs, to leave worker_run(). Any thread, signal handlers too. */
void worker_stop(struct worker *w);

void worker_destroy(struct worker *w);

#endif
