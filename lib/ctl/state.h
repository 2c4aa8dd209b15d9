/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file state.h
 * What the control thread keeps: the daemon, its sessions and their objects. Everything is
 * the control thread's, except what notifier.h says about its lock.
 */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "core.h"
#include "ctl.h"
#include "dest.h"
#include "disposer.h"
#include "handle.h"
#include "migrate.h"
#include "neigh.h"
#include "netport.h"
#include "notifier.h"
#include "number.h"
#include "qp.h"
#include "sentence.h"
#include "shm.h"
#include "worker.h"

/** A descriptor in the event loop. */
struct watch {
	int fd; /* -1: none */
	void (*ready)(struct watch *w);
};

struct ctl {
	struct dataplane *dp;
	int epoll;
	struct watch listener;
	struct watch stopper; /* eventfd: ctl_stop() */
	struct watch news;    /* rtnetlink */
	struct watch faults;  /* eventfd: shared memory faulted */
	bool stopping;
	char *socket_path;
	uint64_t listen_ms; /* when to look at the listener again; 0: always */
	int reserve_fd;	    /* given up to turn a connection away when descriptors run out */
	uint32_t window;
	struct ctl_limits limits; /* none is 0 */
	uint64_t epoch;
	int announce_fd; /* announce_open() */
	struct rtnl rtnl;
	struct neigh_queue neighs;
	struct dests dests;
	struct netport port[PORT_MAX];
	uint32_t nports;
	ctl_netdev_changed netdev_changed; /* NULL: nobody wants to know */
	void *netdev_arg;
	struct notifier notifier;
	struct session *session[SESSION_MAX];
	uint32_t nsessions;  /* of them */
	struct list endings; /* sessions that end */
	uint32_t nending;
	uint32_t session_count; /* sessions ever opened */
	uint64_t since_ms;	/* when rocid began to serve */
	struct admin *admin;
	struct disposer *closer;   /* of descriptors that others made */
	struct disposer *unmapper; /* of memory */
	struct handles pds;	   /* of all sessions: their handles are core's PD numbers */
	struct qpn_pool qpns;
	struct key_pool keys;
	uint32_t worker_qps[WORKER_MAX]; /* for placing new ones */
	struct migration migration;
};

struct pd {
	uint32_t number; /* unique in the daemon: mr.pd, qp.pd */
	uint32_t users;	 /* MRs, QPs */
	uint32_t handle;
};

struct mr_obj {
	struct mr mr; /* what workers see */
	struct shm map;
	struct pd *pd;
	uint32_t handle;
};

struct cq_obj {
	struct cq cq;		 /* what workers see */
	struct shm ring;	 /* the first; its head is the CQ's for ever */
	struct shm resized;	 /* the one in use, after RESIZE_CQ */
	uint32_t users;		 /* QP sides that complete here */
	struct channel *channel; /* NULL: none */
	struct event_source completion;
	struct event_source async;
};

/** Where a QP's address vector holds on to a GID table entry (GID-03). */
struct gid_hold {
	struct gids *gids; /* NULL: nothing held */
	uint32_t index;
};

struct qp_obj {
	struct qp *qp; /* what workers see */
	struct session *session;
	struct shm rings;
	size_t bytes; /* of qp */
	struct pd *pd;
	struct cq_obj *send_cq, *recv_cq;
	uint32_t handle;
	uint32_t qpn; /* 0: none yet */
	uint32_t worker;
	uint32_t doorbell; /* slot */
	struct event_source async;
	struct gid_hold hold;
	struct dest *dest; /* where its packets go; NULL: nowhere yet */
	struct list dest_node;
	/* a MODIFY_QP whose destination is being looked for */
	bool resolving;
	struct neigh_query query;
	struct core_cmd cmd;
	struct dest_key key;
	struct gid_hold wanted;
	struct abi_msg request;
};

/** What is left to do of a session's end, in this order. */
enum ending {
	ENDING_NOT,
	ENDING_DETACH_QPS,
	ENDING_DETACH_CQS,
	ENDING_UNPUBLISH_MRS,
	ENDING_GRACE,
	ENDING_FREE_QPS,
	ENDING_FREE_CQS,
	ENDING_FREE_MRS,
	ENDING_FREE_CHANNELS,
	ENDING_FREE_PDS,
};

/** A session's doorbells. A QP keeps its slot when it moves to another worker. */
struct bells {
	struct worker_doorbell w[WORKER_MAX]; /* what each worker sees */
	_Atomic(struct qp *) qp[ABI_DB_MAX];  /* what they share */
	uint64_t taken[ABI_DB_WORDS];
	/** Where to look for a free slot for a worker's QP: those of one worker lie together, so
	 * that it takes them in few words. */
	uint32_t hint[WORKER_MAX];
};

struct session {
	struct watch watch;
	struct ctl *ctl;
	uint32_t slot;	 /* in ctl->session */
	uint32_t number; /* cq.session, qp.session: slot in the low bits, a count above */
	struct ucred peer;
	bool greeted;						 /* HELLO done */
	char program[sizeof(((struct abi_hello *)0)->name) + 1]; /* what it calls itself */
	uint64_t since_ms;
	struct shm region;
	uint64_t bytes;	    /* of all rings and QPs */
	uint64_t mr_bytes;  /* of registered memory that is mapped */
	uint32_t resolving; /* QPs that are */
	struct bells *bells;
	struct channel async;
	struct event_source port_events[PORT_MAX];
	struct handles pds, mrs, channels, cqs, qps;
	/* ending.c */
	enum ending ending;
	uint32_t cursor;  /* in the table that this phase is at */
	struct list node; /* on ctl->endings */
};

/** @return milliseconds of the monotonic clock. */
uint64_t ctl_now_ms(void);

/** Watches @p w for input.  @return 0 or a negative errno. */
int ctl_watch(struct ctl *ctl, struct watch *w);

/** Watches @p w for room to write instead of input, or for input again. */
void ctl_watch_output(struct ctl *ctl, struct watch *w, bool output);

/** Keeps @p w registered without looking at it, until ctl_watch_output(). */
void ctl_watch_nothing(struct ctl *ctl, struct watch *w);

/** Stops watching and closes @p w->fd; harmless when there is none. */
void ctl_unwatch(struct ctl *ctl, struct watch *w);

#endif
