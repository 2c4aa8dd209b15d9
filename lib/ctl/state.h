/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file state.h
 * What the control thread keeps: the daemon, its sessions and their objects. Everything is
 * the control thread's, except what session/notifier.h says about its lock.
 */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "ah.h"
#include "core.h"
#include "ctl.h"
#include "mw.h"
#include "loop/loop.h"
#include "net/neigh.h"
#include "net/netport.h"
#include "qp.h"
#include "session/handles.h"
#include "session/huge.h"
#include "session/ids.h"
#include "session/notifier.h"
#include "session/quota.h"
#include "session/reaper.h"
#include "session/shm.h"
#include "text/sentence.h"
#include "verbs/dest.h"
#include "verbs/group.h"
#include "verbs/migrate.h"
#include "worker.h"

struct ctl {
	struct dataplane *dp;
	struct loop loop;
	struct watch listener;
	struct watch stopper;	/* eventfd: ctl_stop() */
	struct watch news;	/* rtnetlink */
	struct watch faults;	/* eventfd: shared memory faulted */
	struct watch populated; /* eventfd: session/huge.h is done with a region */
	struct huge *huge;
	struct watch late; /* eventfd: QPs were not answered in time */
	bool stopping;
	char *socket_path;
	uint64_t listen_ms;	  /* when to look at the listener again; 0: always */
	uint64_t look_again_ms;	  /* when to read ports that are stale again; 0: none is */
	uint32_t look_again_wait; /* how long it is until then the next time */
	int reserve_fd;		  /* given up to turn a connection away when descriptors run out */
	uint32_t window;
	bool plain_label; /* ctl.h */
	struct quota quota;
	uint64_t epoch;
	int announce_fd; /* announce_open() */
	struct rtnl rtnl;
	struct neigh_queue neighs;
	struct dests dests;
	struct groups groups;
	struct netport port[PORT_MAX];
	bool disabled[PORT_MAX]; /* ports that an administrator set down */
	bool closed[PORT_MAX];	 /* ports without a device (ctl_devices.open) */
	uint32_t nports;
	ctl_netdev_changed netdev_changed; /* NULL: nobody wants to know */
	void *netdev_arg;
	struct notifier notifier;
	struct session *session[SESSION_MAX];
	uint32_t nsessions;  /* of them */
	struct list endings; /* sessions that end */
	uint32_t nending;
	struct list turns;	/* session/turn.c */
	struct list jobs;	/* session/job.c */
	struct list held;	/* sessions that wait until what was passed is closed */
	uint64_t held_ms;	/* when to look at them again */
	int fd_max;		/* connections beyond it are turned away, for the others' sake */
	uint32_t session_count; /* sessions ever opened */
	uint64_t since_ms;	/* when rocid began to serve */
	struct admin *admin;
	int passed_fd;	      /* that came with the administrator's command under way; -1: none */
	struct list captures; /* admin/captures.c */
	uint32_t ncaptures;
	struct list traces; /* admin/traces.c */
	uint32_t ntraces;
	uint32_t ninjected;		   /* QPs that have faults: verbs/fault.c */
	bool application_faults;	   /* programs may inject faults into their own QPs */
	bool application_macs;		   /* programs may choose a destination MAC */
	struct core_counters counted;	   /* before the administrator's last reset */
	const struct ctl_devices *devices; /* NULL: nothing is known of them */
	struct disposer *closer;	   /* of descriptors that others made */
	struct disposer *unmapper;	   /* of memory */
	struct handles pds;   /* of all sessions: their handles are core's PD numbers */
	struct handles xrcds; /* likewise */
	struct handles ahs;   /* of all sessions: their handles are the ids of work requests */
	struct qpn_pool qpns;
	struct srqn_pool srqns;
	struct key_pool keys;
	uint32_t worker_qps[WORKER_MAX]; /* for placing new ones */
	struct migration migration;
	struct why *why; /* diagnose/diagnose.h */
};

struct pd {
	uint32_t number; /* unique in the daemon: mr.pd, qp.pd */
	uint32_t users;	 /* MRs, MWs, SRQs, AHs, QPs */
	uint32_t handle;
};

struct mr_obj {
	struct mr mr; /* what workers see */
	struct shm map;
	struct session *session;
	struct pd *pd;
	uint32_t handle;
	bool faulted; /* and counts as such */
	/* a REG_MR whose huge pages are being touched */
	struct huge_job job;
	struct abi_msg request;
};

struct mw_obj {
	struct mw mw; /* what workers see, and bind */
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

/** A send queue that nobody can post to. */
struct no_queue {
	struct abi_queue head;
	uint8_t entry[ABI_ENTRY];
};

/** @return the handle of @p cq, -1 for none. */
static inline int64_t cq_handle(const struct cq_obj *cq)
{
	return cq ? (int64_t)cq->cq.handle : -1;
}

/** Where a QP's address vector holds on to a GID table entry (GID-03). */
struct gid_hold {
	struct gids *gids; /* NULL: nothing held */
	uint32_t index;
};

/** An XRC domain, of all sessions that have opened it. */
struct xrcd {
	uint32_t number;       /* unique in the daemon: srq.xrcd, qp.xrc.xrcd */
	struct list refs;      /* struct xrcd_ref.node */
	struct session *payer; /* who is charged for it: one of them */
	int fd;		       /* the file whose it is; -1: none */
	uid_t uid;	       /* of who sent it */
	uint32_t major, minor;
	uint64_t inode;
};

/** One that a session has opened. */
struct xrcd_ref {
	struct xrcd *xrcd;
	struct list node; /* of xrcd.refs */
	struct session *session;
	uint32_t handle;
	uint32_t users; /* SRQs, QPs */
};

struct ah_obj {
	struct ah *ah; /* what workers see; NULL: not published yet */
	struct session *session;
	struct pd *pd;
	uint32_t id;	  /* its handle, of ctl.ahs; 0: none yet */
	struct list node; /* of session.ahs, or of its ahs_gone */
	struct gid_hold hold;
	struct dest *dest;
	struct list dest_node;
	struct path_spec spec; /* without its GID entry */
	struct dest_key key;
	struct neigh_query query;
	bool resolving; /* CREATE_AH waits for the destination */
	struct abi_msg request;
};

struct srq_obj {
	struct srq srq;	     /* what workers see */
	struct shm region;   /* the first one; its head is the SRQ's for ever */
	struct shm resized;  /* where the entries are, after a resize */
	struct srq_ring *at; /* what srq.ring points to */
	struct session *session;
	struct pd *pd;
	struct cq_obj *cq;     /* XRC; NULL: it is none */
	struct xrcd_ref *xrcd; /* likewise */
	uint32_t users;	       /* QPs */
	struct event_source async;
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

/** What is left to do of a session's end, in this order. */
enum ending {
	ENDING_NOT,
	ENDING_LEAVE_GROUPS,
	ENDING_DETACH_QPS,
	ENDING_UNPUBLISH_SRQS, /* before the CQs: others' XRC QPs complete there */
	ENDING_DETACH_CQS,
	ENDING_UNPUBLISH_MRS,
	ENDING_UNPUBLISH_MWS,
	ENDING_UNPUBLISH_AHS,
	ENDING_GRACE,
	ENDING_FREE_MWS, /* before the regions that they hold */
	ENDING_FREE_QPS,
	ENDING_FREE_SRQS,
	ENDING_FREE_CQS,
	ENDING_FREE_MRS,
	ENDING_FREE_AHS,
	ENDING_FREE_CHANNELS,
	ENDING_FREE_XRCDS,
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
	struct watch watch; /* in its user's turn */
	struct turn *turn;  /* NULL: none yet */
	struct job *job;    /* a command that goes on in steps (session/job.h); NULL: none */
	struct list held;   /* on ctl->held, while its socket is not looked at */
	struct ctl *ctl;
	uint32_t slot;	 /* in ctl->session */
	uint32_t number; /* cq.session, qp.session: slot in the low bits, a count above */
	struct ucred peer;
	bool greeted;						 /* HELLO done */
	char program[sizeof(((struct abi_hello *)0)->name) + 1]; /* what it calls itself */
	uint64_t since_ms;
	struct shm region;
	struct account *account;   /* its user's */
	uint64_t used[CTL_KINDS];  /* session/quota.h */
	uint32_t faulted;	   /* regions that did */
	struct mr_obj *populating; /* its region that session/huge.h has; NULL: none */
	struct list ahs;
	struct list ahs_gone; /* unpublished, until the grace period is over */
	uint32_t ninjected;   /* QPs that have faults: verbs/fault.c */
	struct bells *bells;
	struct event_turn events; /* of its channels */
	struct channel async;
	struct event_source port_events[PORT_MAX];
	struct handles pds, mrs, mws, channels, cqs, xrcds, srqs, qps;
	/* verbs/close.c */
	enum ending ending;
	uint32_t cursor;  /* in the table that this phase is at */
	uint32_t told;	  /* failures of its QPs (diagnose/log.c) */
	struct list node; /* on ctl->endings */
};

/** Takes port @p i out of use, or into it again (net/netport.h); programs are told. */
void ctl_set_port_down(struct ctl *ctl, uint32_t i, bool down);

/** Tells who made port @p i of CTL_NETDEV_* @p news. */
void ctl_tell_owner(struct ctl *ctl, uint32_t i, unsigned news);

#endif
