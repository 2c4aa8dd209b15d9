/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file worker_impl.h
 * The internals of a worker, shared by the files of this folder. Each part names its writer.
 */
#ifndef WORKER_IMPL_H
#define WORKER_IMPL_H

#include <rte_mbuf.h>
#include <rte_ring.h>
#include "abi_ring.h"
#include "clock.h"
#include "core.h"
#include "inbox.h"
#include "txd.h"
#include "worker.h"

/** Why a worker does not use a port. */
#define SHUT_CLOSED (1u << 0) /**< between port_close_live() and port_use_live() */
#define SHUT_DOWN   (1u << 1) /**< port_set_down(): nothing is received or sent */

/** A longer time from one round's begin to the next one's is a pause of the worker. */
#define WORKER_PAUSE_NS 1000000u

/** A port as one worker uses it. The first part is set by port_open() and port_wakes(), the rest
 *  is tx.c's. */
struct worker_port {
	uint16_t ethdev;
	uint16_t queue;	      /* both directions */
	bool rx;	      /* the port has a receive queue for this worker */
	bool fragile;	      /* its rings can vanish in a burst: burst.h */
	_Atomic uint8_t shut; /**< SHUT_*; 0: it is used. The control thread */
	uint8_t wake;	      /* enum port_wake */
	bool spreads; /* it has a receive queue for every worker: the queue that a packet arrives
		       * on shows which worker should have its QP */
	/* packets that the port has not accepted yet: at most one burst */
	uint16_t sent;
	uint16_t count;
	uint64_t stalled; /* since when it accepts nothing, moved by tx_resumed(); 0: it accepts */
	struct rte_mbuf *backlog[BURST];
};

/** A session's place in the scan; doorbell.c. */
struct doorbell_slot {
	_Atomic(struct worker_doorbell *) db; /* control thread */
	_Atomic uint32_t serial;	      /* control thread: changes with every `db` */
	uint32_t announced; /* the worker: `serial` of the session to which it announced that it
			     * sleeps; 0: none */
	uint64_t pending[ABI_DB_SUMMARY]; /* summary bits taken but not served; the worker */
};

/** One command at a time from the one control thread; mailbox.c. */
struct mailbox {
	/** Not NULL while a command waits. The control thread sets it, the worker clears it
	 *  after it has written `result`. */
	_Atomic(struct core_cmd *) cmd;
	int result;
	uint32_t waited; /* rounds that the command has waited for a quiet moment; the worker */
} CACHE_ALIGNED;

/** A yield of this length gave the CPU to a thread that keeps it for a time slice. */
#define YIELD_LONG_NS 100000u

/**
 * How an idle worker sleeps; sleep.c, which has all system calls of the poll loop.
 *
 * Before it sleeps it says so (`waker` to other threads, abi_doorbell.asleep to applications),
 * fences, and runs the whole loop once more; it sleeps only if that round finds no work.
 */
struct sleeper {
	struct waker waker;
	int epoll; /* -1: it never sleeps; set before the worker runs */
	/* the worker */
	bool interrupts;  /* some ports' are enabled */
	uint64_t busy_at; /* when a round last found work */
	uint32_t shared;  /* rounds without work that yield at once */
} CACHE_ALIGNED;

/** Frames for a worker, gathered over one burst; handoff.c. */
struct handoff {
	unsigned count;
	struct rte_mbuf *m[2 * BURST]; /* a burst that waits for room in the inbox, and another */
};

struct worker {
	/* set before the worker runs */
	struct dataplane *dp;
	uint32_t index;
	uint32_t nports;
	struct rte_mempool *pool;
	struct inbox inbox; /* filled by all workers, emptied by this one */
	/** The captures; NULL: none. Read once per burst, so it is next to data that is read then
	 * anyway. Control thread. */
	_Atomic(struct capture *) captures;

	/* control thread */
	_Atomic bool stop CACHE_ALIGNED;
	_Atomic uint32_t doorbells; /* slots ever used */
	struct mailbox mailbox;
	struct sleeper sleeper;

	/* other workers: doorbells that reached them, by slot of the QP table */
	struct abi_doorbell passed CACHE_ALIGNED;

	/* the worker */
	_Atomic bool running CACHE_ALIGNED;
	volatile uint32_t faults; /* its SIGBUS handler */
	struct tsc_clock clock;
	uint64_t now;	       /* read once per round, before anything is received */
	uint64_t burst_at;     /* when the last large burst was over */
	uint32_t first_source; /* rx.c: where this round begins to receive; a round that becomes
				* long leaves the others to the next one */
	/* loop.c: everything that arrived before `asof` has been received, after `backlog` more
	 * packets */
	uint64_t asof;
	uint32_t backlog;
	/* tx.c: empty buffers, txd[i].frame is in spare[i]. The first `gap` have been sent, so
	 * `nspare` follow them. */
	uint32_t nspare;
	uint32_t gap;
	struct rte_mbuf *spare[BURST];
	struct txd txd[BURST];
	struct worker_port port[PORT_MAX];
	struct rte_mbuf *held[GROUP_HELD]; /* rx.c: by the core's places (VERDICT_HELD) */
	/* handoff.c: frames laid aside, one bit per kind and worker that has any, and the workers
	 * whose inboxes may hold local frames of this one */
	struct handoff handoff[INBOX_KINDS][WORKER_MAX];
	uint32_t laid;
	uint32_t looped;
	/* loop.c: the core's grace period that is watched, 0: none, and its QSBR token */
	uint32_t grace;
	uint64_t grace_token;
	uint32_t nkept;
	struct core_event kept[BURST]; /* events.c: taken from the core, not passed on yet */
	struct worker_stats stats;
	struct worker_doorbell passed_bell; /* `passed`, as doorbell.c serves it */
	struct doorbell_slot passed_slot;
	struct doorbell_slot doorbell[SESSION_MAX];
	uint32_t first_doorbell; /* that the next round begins with */
	bool cut_short;		 /* not all were looked at in the last round */
	struct core core;
} CACHE_ALIGNED;

/** The meaning of mbuf.port inside this folder: the dataplane's port, and the worker on whose queue
 * the packet arrived, PKT_NO_QUEUE, PKT_LOCAL or PKT_LOCAL_NAMED. The inbox needs both. */
static inline uint16_t origin(uint32_t port, uint32_t queue)
{
	return (uint16_t)(queue << 8 | port);
}

/** @return whether @p m is a frame from one QP of this daemon to another. */
static inline bool is_local(const struct rte_mbuf *m)
{
	return m->port >> 8 == PKT_LOCAL || m->port >> 8 == PKT_LOCAL_NAMED;
}

/** The egresses of inboxes. */
#define PORT_EGRESS  ((1u << EGRESS_LOCAL(0)) - 1)
#define LOCAL_EGRESS ((1u << EGRESS_NONE) - 1 - PORT_EGRESS)

/** Sets @p m aside for worker @p owner; @p kind is an enum inbox_kind. At most a burst before
 * handoff_flush(). */
void handoff_add(struct worker *w, unsigned kind, uint32_t owner, struct rte_mbuf *m);

/** @return whether half of the room for frames from this worker to worker @p owner is taken. */
bool handoff_half_full(const struct worker *w, unsigned kind, uint32_t owner);

/** @return a bit for each egress to an inbox that has room for a burst. */
uint32_t handoff_open(struct worker *w);

/** Sets a copy of @p m aside for worker @p owner, which may be this one, as if from @p from
 * (origin()). Copies may take half of the room; a copy is lost if that half is full or there is no
 * buffer. */
void handoff_copy(struct worker *w, uint32_t owner, const struct rte_mbuf *m, uint16_t from);

/** Moves the frames that were set aside to the inboxes. Local ones that do not fit stay. */
void handoff_flush(struct worker *w);

/** @return how many packets may be built after handoff_flush() so that all of them can be set
 * aside.
 */
uint32_t handoff_room(const struct worker *w);

/** @return whether this round has taken so long that the rest must be short: bursts can be
 *  expensive, above all if the memory that they are written to is absent. */
static inline bool worker_is_late(const struct worker *w)
{
	return (int64_t)(w->burst_at - w->now) > ROUND_LONG_NS;
}

static inline bool captured(const struct worker *w)
{
	return atomic_load_explicit(&w->captures, memory_order_relaxed);
}

/** Shows captures the packets of a burst that core_rx() has judged. */
void capture_received(struct worker *w, struct rte_mbuf *const m[], const struct pkt pkt[],
	const uint16_t verdict[], unsigned n, uint64_t now);

/** Shows captures, if there are any, a frame that was dropped outside the core. */
void capture_lost(struct worker *w, struct rte_mbuf *m, enum drop why);

/** Shows captures the sealed packet @p t in @p m. */
void capture_sent(struct worker *w, const struct txd *t, struct rte_mbuf *m, uint64_t now);

/** Receives one burst of each queue and some of the inbox.
 *  @return packets received; *drained tells whether every queue was emptied. */
unsigned rx_poll(struct worker *w, bool *drained);

/** Takes frames of the kernel, lets the core build one burst, and sends both, on ports without a
 * backlog. @return their number. */
unsigned tx_poll(struct worker *w);

/** This worker has offered no packets for @p pause nanoseconds, more than WORKER_PAUSE_NS: no more
 * than that counts as time in which its ports accepted none. */
void tx_resumed(struct worker *w, uint64_t pause);

/** Takes the @p n received buffers @p m, which nobody needs any more: as empty ones while the stock
 * has room, which saves two accesses to the pool each; the others are returned to the pool. */
void tx_restock(struct worker *w, struct rte_mbuf **m, unsigned n);

/** Releases the buffers that a stopped worker holds. */
void tx_release(struct worker *w);

/** Passes frame @p m, whose port is set, to the kernel if it is not RoCE. @return false if the
 * caller still owns it. */
bool exception_take(struct worker *w, struct rte_mbuf *m);

/** Puts frames of the kernel into the backlogs of their ports if these are empty. @return their
 * number. */
unsigned exception_poll(struct worker *w);

/** Serves doorbells.  @return QPs served. */
unsigned doorbell_poll(struct worker *w);

/** @return true if doorbells wait that were taken but not served. */
bool doorbell_left(const struct worker *w);

/** @return true if there was a command. */
bool mailbox_poll(struct worker *w);

void events_poll(struct worker *w);

/** Expires timers up to a time before which every arrived packet has been received. */
void timers_poll(struct worker *w, unsigned received, bool drained);

/** Creates the objects that @p w needs to sleep, if `idle` requires them. @return 0 or a negative
 * errno. */
int sleeper_open(struct worker *w);
void sleeper_close(struct worker *w);

/** Called on the thread that runs @p w, when it starts and when it stops. */
void sleeper_enter(struct worker *w);
void sleeper_leave(struct worker *w);

/** Stops watching the eventfd of @p db, if it has one. Control thread. */
void sleeper_forget(struct worker *w, struct worker_doorbell *db);

/** Ends a round according to `idle`. @param busy it found work */
void sleeper_rest(struct worker *w, bool busy);

/** Names @p w as the worker of this thread to the SIGBUS handler; NULL: none. */
void sigbus_bind(struct worker *w);

#endif
