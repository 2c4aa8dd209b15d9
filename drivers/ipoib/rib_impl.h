/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of this folder. */
#ifndef RIB_IMPL_H
#define RIB_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <roci.h>
#include "ipoib.h"
#include "jobs.h"
#include "rib.h"

#define RIB_BURST  64u
#define RIB_RECVS  4096u
#define RIB_SENDS  512u
#define RIB_SIGNAL 32u /* one send in this many is signaled */
#define RIB_CHAIN  16u /* sends that are posted together: one fence, and at most one doorbell */
/** Room per datagram: 40 octets of GRH, the packet, and the bytes that a translation adds. In front
 *  of a frame that is read here, ROCI_GRH_LEN bytes are free. */
#define RIB_SLOT   4352u
#define RIB_GROUPS 256u
/** Of these, solicited-node groups of hosts on the bridge, newest hosts first. This leaves room for
 * the groups that hosts join. */
#define RIB_HOST_GROUPS 192u
/** How often memberships are read where the kernel does not report them. The hosts of a bridge are
 *  always read at this interval: each packet may come from another host, and none may make the port
 *  join and leave groups faster. */
#define RIB_READ_MS 1000
/** Questions without an answer, of each kind. */
#define RIB_ASKED_PEERS_MAX  (NEIGH_MAX - RIB_ASKED_GROUPS_MAX)
#define RIB_ASKED_GROUPS_MAX 256u
#define RIB_HOSTS	     1024u /* STATION_MAX */
/** Peers that are resolved at the same time. */
#define RIB_ASKING 64u
/** In the wr_id of a receive, in addition to its slot: a failed completion has no other valid
 * field. */
#define RIB_RECV (1ull << 32)
/** Pause between attempts to open the session or the netdev. */
#define RIB_PAUSE_MIN_MS 200
#define RIB_PAUSE_MAX_MS 6400

/** The session and its objects. Owned by the packet thread, except the handles. */
struct rib_qp {
	struct roci_context *ctx;
	struct roci_pd *pd;
	uint8_t *slots; /* RIB_RECVS, then RIB_SENDS */
	struct roci_mr *mr;
	struct roci_channel *channel;
	struct roci_cq *cq;
	struct roci_qp *qp;
	uint8_t gid_index;
	uint16_t vid; /* of the GID */
	uint16_t pkey_index;
	uint16_t capacity; /* IP MTU that the port carries */
	uint8_t mac[6];
	struct ipoib_addr own;
	uint32_t posted, done; /* sends, including those of the chain */
	uint32_t chained;      /* sends to be posted */
	struct roci_send_wr chain[RIB_CHAIN];
	struct roci_sge sge[RIB_CHAIN];
	struct roci_ah *ah[NEIGH_MAX];
};

/** Rings between the two threads. */
enum rib_ring {
	RIB_ASKED,	  /* peers; the packet thread adds, and drops the oldest if full */
	RIB_ASKED_GROUPS, /* likewise, groups */
	RIB_ANSWERED,	  /* the helper adds */
	RIB_UNUSED,	  /* handles to be destroyed; the packet thread adds */
	RIB_RINGS,
};

/** A peer that is being resolved. */
struct rib_wanted {
	struct rib_job job;
	uint64_t due, until; /* next attempt, and when to give up; ms */
	uint32_t pause;	     /* ms */
};

/** The helper's. */
struct rib_asking {
	uint32_t n;
	uint64_t begin_next; /* when the next lookup may start, apart from the burst; ms */
	struct rib_wanted wanted[RIB_ASKING];
};

/** IPv6 addresses of the netdev's side, as the packet thread has seen them. */
struct rib_hosts {
	uint32_t others, n; /* those of MACs other than the netdev's come first */
	uint8_t ip6[RIB_HOSTS][16];
};

struct rib {
	struct rib_config cfg;
	pthread_t packets, helper;
	_Atomic bool stop;
	int wake;	     /* eventfd: the packet thread has something to do */
	int wake_helper;     /* likewise */
	int tap;	     /* -1: none */
	int home;	     /* the network namespace that rocid was started in */
	_Atomic int mtu;     /* the last that the port could carry */
	char name[IFNAMSIZ]; /* that the netdev has now; under lock */
	uint8_t mac[6];	     /* likewise */
	uint32_t ifindex;
	ino_t netns;	      /* where the netdev was when its session began */
	uint8_t given_mac[6]; /* the port's MAC when this code last gave it to the netdev */
	struct rib_qp q;
	struct ipoib *ipoib;
	struct rib_frames *frames; /* frames in flight */
	bool failed;		   /* the session or the netdev failed: begin again */
	const char *why;	   /* the reason */
	uint32_t sessions;	   /* begun so far */
	bool gone;		   /* the netdev was deleted */
	bool costly;		   /* the attempt got as far as allocating memory for packets */
	_Atomic bool helping;	   /* the helper may run */
	_Atomic bool asked_port;   /* events came: the helper compares the port's properties */
	_Atomic bool outdated;	   /* they changed, or the netdev was moved or deleted; helper */
	pthread_mutex_t lock;
	struct rib_jobs ring[RIB_RINGS];
	struct rib_hosts hosts;		  /* under lock */
	uint32_t open_peers, open_groups; /* questions without an answer; the packet thread's */
	char said[RIB_SAID];		  /* last sentence on stderr */
	/* for rib_look(): written by the packet thread, under lock */
	struct rib_view view;
	uint64_t counts[IPOIB_COUNTS];
	uint64_t before[IPOIB_COUNTS]; /* of the sessions that have ended; the packet thread's */
	_Atomic uint32_t ngroups, missing; /* groups joined and not joined; written by the helper */
	uint64_t tap_full;
	uint64_t published; /* when it did so last */
};

uint64_t rib_now_ns(void);

static inline uint64_t rib_now_ms(void)
{
	return rib_now_ns() / 1000000u;
}

/** Prints @p text on stderr, unless it is the same as last time. */
__attribute__((format(printf, 2, 3))) void rib_say(struct rib *r, const char *text, ...);

/** Requests the end of the session, because @p why. Packet thread. */
static inline void rib_fail(struct rib *r, const char *why)
{
	if (!r->failed)
		r->why = why;
	r->failed = true;
}

/** @return the next pause in ms. @param in_vain  the last attempt used memory and served only
 * briefly */
static inline int rib_next_pause(int before, bool in_vain)
{
	if (!in_vain)
		return RIB_PAUSE_MIN_MS;
	return before < RIB_PAUSE_MAX_MS ? 2 * before : RIB_PAUSE_MAX_MS;
}

/* packets.c */

/** @return room for frames in flight, to be freed; NULL: no memory. */
struct rib_frames *rib_frames_create(void);

/** Forgets them: a session begins. */
void rib_frames_begin(struct rib_frames *f);

/** Moves a burst of received packets to the kernel. @return how many completions there were. */
int rib_from_wire(struct rib *r, uint64_t now);

/** Sends a burst of the kernel's frames. @return how many there were. */
int rib_from_kernel(struct rib *r, uint64_t now);

/** Sends what has waited for an address handle, or is due. */
void rib_send_waiting(struct rib *r, uint64_t now);

void rib_netdev_gone(struct rib *r);

/* questions.c */

/** Asks the helper for the address handles that are needed. */
void rib_ask(struct rib *r, uint64_t now);
void rib_take_answers(struct rib *r, uint64_t now);

/* serve.c */

/** Moves packets until the session fails, or the thread is to end. */
void rib_serve(struct rib *r);

/** For rib_look(). */
void rib_publish(struct rib *r, bool up);

/* session.c */

/** @return which of a port's @p n GIDs the netdev has: link-local, RoCEv2 and without a VLAN; NULL:
 * none yet. VLAN netdevs of the kernel have the port's MAC, so usually its link-local address, too:
 * entries may differ only in the VLAN, in any order. */
const struct roci_gid_entry *rib_choose_gid(const struct roci_gid_entry *e, int n);

/** Opens the session with its queue pair. @return 0; -EAGAIN: try later; the reason is on stderr.
 */
int rib_open(struct rib *r);

/** The netdev has a carrier while the port is active. @return whether an address, the MAC, the
 * P_Key or the MTU of the port differs from the session's. Waits for rocid. */
bool rib_port_changed(struct rib *r);

/** Ends the session. The helper has ended. */
void rib_close(struct rib *r);

/** Posts the receives of @p n slots, at most RIB_BURST. */
void rib_post_recvs(struct rib *r, const uint32_t *slots, uint32_t n);

static inline uint8_t *rib_recv_slot(const struct rib *r, uint32_t i)
{
	return r->q.slots + (size_t)i * RIB_SLOT;
}

/** @return where to build the next datagram, RIB_SLOT octets; NULL: all slots are being sent. */
uint8_t *rib_send_slot(struct rib *r);

/** Sends the slot that rib_send_slot() returned last, in a batch that rib_flush_sends() completes.
 */
void rib_post_send(struct rib *r, const struct ipoib_tx *tx);
void rib_flush_sends(struct rib *r);

/** @return an address handle to @p gid, or NULL; errno is EAGAIN while the kernel resolves it. Any
 * thread.
 */
struct roci_ah *rib_handle(struct rib *r, const uint8_t gid[16]);

/* tap.c */

/** Creates the netdev, unless there is one, and brings it up. @return 0 or a negative errno; the
 * reason is on stderr. */
int rib_tap_open(struct rib *r);
/** @return false: the netdev is in a network namespace that rocid may not enter, so that a session
 * would be useless; stderr says so. */
bool rib_tap_is_near(struct rib *r);
void rib_tap_close(struct rib *r);

/** Adopts the name, the MAC and the MTU that an administrator gave the netdev. Resets an MTU that
 * the port cannot carry, and reports that. Call it during a visit.
 *  @return false: the netdev is no longer where its session began. */
bool rib_tap_follow(struct rib *r, int settings);

/** Without a carrier the kernel forgets the netdev's neighbours. */
void rib_tap_carrier(struct rib *r, bool up);

/* netns.c */

/** Enters the network namespace of the netdev. Any thread, which must end its visit soon.
 *  @return a socket for the settings of netdevs there; -EBADFD: the netdev was deleted; -EXDEV:
 *  rocid may not enter; another negative errno: try later. */
int rib_visit(const struct rib *r);
void rib_end_visit(const struct rib *r, int settings);

/** @return whether the thread is in the namespace that rocid was started in. */
bool rib_go_home(const struct rib *r);

/** @return the identity of the namespace that the thread is in. */
ino_t rib_netns(void);

/* helper.c */

/** The thread. @param arg struct rib */
void *rib_help(void *arg);

void rib_wake(int eventfd);
/** Takes the wakes so far. */
void rib_unwake(int eventfd);

/* handles.c */

/** Creates the requested address handles whose peers have been resolved. Helper.
 *  @return ms until the next call, at most @p longest_ms */
int rib_make_handles(struct rib *r, struct rib_asking *a, int longest_ms);

/* groups.c */

/** If there are too many groups, chooses those of the lowest number, then those that have been
 * received longest: no host can displace groups by joining more. */
enum rib_rank {
	RIB_OWN,  /**< all hosts, all routers, and the solicited-node groups of our own addresses */
	RIB_HOST, /**< solicited-node groups of a bridge's hosts: at most RIB_HOST_GROUPS */
	RIB_REST,
};

struct rib_groups {
	uint32_t n, over; /* over: for which there was no room */
	uint8_t mgid[RIB_GROUPS][16];
	uint8_t rank[RIB_GROUPS];
	uint32_t since[RIB_GROUPS]; /* of rib_members.reads, the first that listed it */
};

/** The groups, as the helper knows them. */
struct rib_members {
	uint32_t reads;			/* of memberships */
	uint16_t pkey;			/* of the link */
	uint32_t master;		/* the bridge that the netdev is a port of; 0: none */
	struct rib_groups now;		/* to be received */
	struct rib_groups joined;	/* that are received */
	struct rib_groups hosts;	/* of the hosts of a bridge, as they were read last */
	uint64_t hosts_due;		/* when they are read again; ms */
	uint32_t hosts_master;		/* of that bridge */
	uint32_t nown, own[RIB_GROUPS]; /* last 24 bits of the IPv6 addresses of the host */
};

bool rib_groups_has(const struct rib_groups *g, const uint8_t mgid[16]);

/** @param i below g->n */
void rib_groups_remove(struct rib_groups *g, uint32_t i);

/** @return whether it has a place that it did not have, or not by this rank. */
bool rib_groups_put(const struct rib_members *m, struct rib_groups *to, const uint8_t mgid[16],
	enum rib_rank rank);

/** Likewise, the MGID of an IP group of @p len octets. */
bool rib_groups_add(const struct rib_members *m, struct rib_groups *to, const uint8_t *ip,
	unsigned len, enum rib_rank rank);

/** Adds a group that the host has joined to `now`. */
void rib_groups_listed(struct rib_members *m, const uint8_t *ip, unsigned len);

/** Takes note of an IPv6 address of the host. */
void rib_groups_own(struct rib_members *m, const uint8_t ip6[16]);

/* memberships.c */

struct mnl_socket;
struct nlmsghdr;

/** @return a socket that is readable when memberships, addresses or settings of netdevs may have
 *  changed, including those of other namespaces where the kernel allows it; or NULL. Call it in
 *  rocid's own namespace. */
struct mnl_socket *rib_memberships_open(void);

/** Reads what the kernel joined, and what hosts on the netdev's bridge did, into m->now.
 *  @param now  in ms
 *  @return false: it could not be read. */
bool rib_memberships_read(struct rib *r, struct rib_members *m, uint64_t now);

/** Queries the kernel by rtnetlink; calls @p take for each message of the answer. @param head  of
 * the request, @p len octets. @return false: there was no answer. */
bool rib_ask_kernel(uint16_t type, uint16_t flags, const void *head, size_t len,
	int (*take)(const struct nlmsghdr *h, void *arg), void *arg);

/* bridge.c */

/** Copies the addresses that lib/ipoib knows, newest first, under the lock. Packet thread.
 */
void rib_hosts_publish(struct rib *r);

/** @return the index of the bridge that the netdev is a port of; 0: none. */
uint32_t rib_master(const struct rib *r);

/** Adds the groups of other hosts, which are read once per RIB_READ_MS. @param now  in ms */
void rib_hosts_groups(struct rib *r, struct rib_members *m, uint64_t now);

#endif
