/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of this folder. */
#ifndef RIB_IMPL_H
#define RIB_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <roci.h>
#include "cut.h"
#include "ipoib.h"
#include "merge.h"
#include "rib.h"

#define RIB_BURST  64u
#define RIB_RECVS  4096u
#define RIB_SENDS  512u
#define RIB_SIGNAL 32u /* one send of so many is signaled */
/** Room of a datagram: 40 octets of GRH, the packet, and what a translation adds. Before a frame
 *  that is read here ROCI_GRH_LEN stay free. */
#define RIB_SLOT   4352u
#define RIB_GROUPS 256u
#define RIB_JOBS   NEIGH_MAX
/** A frame that the kernel leaves to be cut: an IP packet, its Ethernet header. */
#define RIB_FRAME (65536u + 64u)

/** The session, and all that it has. The packet thread's, but for the handles. */
struct rib_qp {
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_mr *mr; /* RIB_RECVS slots, then RIB_SENDS */
	struct roci_channel *channel;
	struct roci_cq *cq;
	struct roci_qp *qp;
	uint8_t gid_index;
	uint16_t pkey_index;
	uint16_t capacity; /* IP MTU that the port carries */
	uint8_t mac[6];
	struct ipoib_addr own;
	uint32_t posted, done; /* sends */
	struct roci_ah *ah[NEIGH_MAX];
};

/** A question to the helper thread, and its answer. */
struct rib_job {
	struct ipoib_ask ask;
	struct roci_ah *ah; /* the answer; NULL: none */
};

/** A ring between the two threads, under rib.lock. */
struct rib_jobs {
	uint32_t first, n;
	struct rib_job job[RIB_JOBS];
};

struct rib {
	struct rib_config cfg;
	pthread_t packets, helper;
	_Atomic bool stop;
	int wake;	 /* eventfd: the packet thread has something to do */
	int wake_helper; /* likewise */
	int tap;	 /* -1: none */
	int settings;	 /* socket for those of the netdev; -1: none */
	int mtu;	 /* the last that the port could carry */
	uint32_t ifindex;
	uint8_t given_mac[6]; /* the port's, when the netdev had it last from here */
	struct rib_qp q;
	struct ipoib *ipoib;
	struct cut cut;		  /* the frame in `frame` */
	struct merge merge;	  /* for the kernel */
	uint32_t held[MERGE_MAX]; /* receive slots of its pieces */
	uint8_t frame[RIB_FRAME]; /* of the kernel */
	bool failed;		  /* the session or the netdev: begin again */
	bool gone;		  /* the netdev was deleted */
	_Atomic bool helping;	  /* the helper may run */
	pthread_mutex_t lock;
	struct rib_jobs asked, answered; /* under lock */
	uint32_t questions;		 /* without an answer so far: at most RIB_JOBS */
	char said[RIB_SAID];		 /* last sentence on stderr */
	/* for rib_look(): written by the packet thread, under lock */
	struct rib_view view;
	uint64_t counts[IPOIB_COUNTS];
	_Atomic uint32_t ngroups, missing; /* groups joined, and not; written by the helper */
	uint64_t tap_full;
	uint64_t published, busy_at; /* when it did so, and had traffic, last */
	uint32_t load;		     /* packets of a busy round, averaged, times LOAD_WEIGHT */
};

/** Says @p text on stderr, once in a row. */
__attribute__((format(printf, 2, 3))) void rib_say(struct rib *r, const char *text, ...);

/* session.c */

/** Opens the session with its queue pair. @return 0; -EAGAIN: later, and why was said. */
int rib_open(struct rib *r);

/** Ends the session. The helper has ended. */
void rib_close(struct rib *r);

/** Posts the receive of a slot. */
void rib_post_recv(struct rib *r, uint32_t slot);

static inline uint8_t *rib_recv_slot(const struct rib *r, uint32_t i)
{
	return (uint8_t *)r->q.mr->addr + (size_t)i * RIB_SLOT;
}

/** Where the next datagram to send is built: RIB_SLOT octets; NULL: all are being sent. */
uint8_t *rib_send_slot(struct rib *r);

/** Sends what rib_send_slot() returned last. */
void rib_post_send(struct rib *r, const struct ipoib_tx *tx);

/** An address handle to @p gid; NULL: nobody answers. Any thread. */
struct roci_ah *rib_handle(struct rib *r, const uint8_t gid[16]);

/* tap.c */

/** Makes the netdev, unless there is one, and brings it up. @return 0 or a negative errno; why was
 *  said. */
int rib_tap_open(struct rib *r);
void rib_tap_close(struct rib *r);

/** Takes the MAC and the MTU that an administrator gave the netdev, or puts the MTU back, and says
 *  so, if the port cannot carry it. */
void rib_tap_follow(struct rib *r);

/** Without a carrier the kernel forgets the netdev's neighbours. */
void rib_tap_carrier(struct rib *r, bool up);

/* helper.c */

/** The thread. @param arg struct rib */
void *rib_help(void *arg);

void rib_jobs_put(struct rib *r, struct rib_jobs *to, const struct rib_job *job);
bool rib_jobs_take(struct rib *r, struct rib_jobs *from, struct rib_job *job);
bool rib_jobs_take_youngest(struct rib *r, struct rib_jobs *from, struct rib_job *job);
void rib_wake(int eventfd);

/* memberships.c */

/** The groups that the kernel joined on the netdev, as MGIDs. */
struct rib_groups {
	uint32_t n, over; /* over: for which there was no room */
	uint8_t mgid[RIB_GROUPS][16];
};

struct mnl_socket;

/** @return a socket that is readable when memberships or addresses may have changed, or NULL. */
struct mnl_socket *rib_memberships_open(void);

/** Reads what the kernel joined. */
void rib_memberships_read(const struct rib *r, struct rib_groups *to);

#endif
