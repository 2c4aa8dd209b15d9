/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file limits.h
 * Every compile-time capacity, each with its reason. What depends on a machine or a
 * user is a run-time option instead (doc/man, config/rocid.conf).
 */
/* The compiler's <limits.h> asks for the system's by #include_next, which finds this file first. */
#include_next <limits.h>

#ifndef LIMITS_H
#define LIMITS_H

/* --- wire --------------------------------------------------------------------------- */

/** Largest IB path MTU in bytes; larger ones do not exist in the enumeration of verbs. */
#define PATH_MTU_MAX 4096u
/** Smallest IB path MTU in bytes. */
#define PATH_MTU_MIN 256u
/** Room a frame needs: headers (Ethernet 14, VLAN 4, IPv6 or GRH 40, UDP 8, BTH 12, XRCETH 4,
 *  AtomicETH 28 = 110), payload, pad and ICRC, rounded to cache lines. */
#define FRAME_MAX 4288u
/** Longest message: IBA C9-94 (REQ-07). */
#define MSG_LEN_MAX (1u << 31)

/* --- QPs ---------------------------------------------------------------------------- */

/** QPN = generation << 18 | worker << 14 | slot (design.md 4). 16,384 QPs a daemon covers
 *  the 10,000 that are promised; 16 workers cover the machines that are expected. */
#define QPN_SLOT_BITS	14
#define QPN_WORKER_BITS 4
#define QPN_GEN_BITS	(24 - QPN_SLOT_BITS - QPN_WORKER_BITS)
#define QP_MAX		(1u << QPN_SLOT_BITS)
#define WORKER_MAX	(1u << QPN_WORKER_BITS)
/** So many others become free before a slot is taken again (QPS-23): packets of its former QP are
 *  gone by then. The other free ones are chosen from at random. */
#define QPN_REST (QP_MAX / 4)
/** Scatter/gather entries a work request: what perftest and MPI ask for at most. */
#define SGE_MAX 16u
/** Inline bytes a work request: what mlx5 offers by default, rounded to the slot size. */
#define INLINE_MAX 512u
/** Work requests a queue. */
#define WR_MAX 16384u
/** Outstanding READ and ATOMIC requests of one QP, each direction (a power of two): twice
 *  what adapters offer; a slot costs 64 bytes in each of 10,000 QPs. */
#define RD_ATOMIC_MAX 32u
/** Binds and invalidations of one QP that are executed and wait for the requests before them: they
 *  complete with one acknowledgement, in one step. */
#define LOCAL_AHEAD 64u
/** Packets in flight of one QP unless configured otherwise (design.md 3, "Window"). */
#define WINDOW_DEFAULT 128u
/** And at most: far above what any path holds, far below half of the PSNs. */
#define WINDOW_MAX 65536u

/* --- shared receive queues ---------------------------------------------------------- */

/** SRQN = generation << 12 | slot. An SRQ serves many QPs, so fewer are needed than QPs. */
#define SRQN_SLOT_BITS 12
#define SRQ_MAX	       (1u << SRQN_SLOT_BITS)
/** Work requests of one: those of many QPs. */
#define SRQ_WR_MAX 65536u
/** XRC domains a daemon: one or two an application that spans processes. */
#define XRCD_MAX 1024u

/* --- other objects ------------------------------------------------------------------ */

/** Memory regions and windows; a key is index << 8 | key part (MR-01). */
#define MR_MAX (1u << 16)
/** Address handles (a power of two): a datagram program has one for each of its peers. */
#define AH_MAX (1u << 15)
/** Multicast groups of all ports; each is charged as GROUP_SOCKETS (group.h) descriptors, the
 * sockets that join it on a netdev and its VLANs. */
#define MCAST_GROUP_MAX 1024u
/** Queue pairs that one group can have: a packet to it is copied so often. */
#define MCAST_MEMBERS_MAX 256u
/** Attachments of queue pairs to groups, all together: rocid has a copy of each group's list. */
#define MCAST_ATTACH_MAX (16 * MCAST_GROUP_MAX)
/** Completion queues: two per QP. */
#define CQ_MAX (2 * QP_MAX)
/** Copies of multicast datagrams that a worker delivers in one round, besides one of each: as many
 *  as it receives packets in two bursts. */
#define GROUP_COPIES 64u
/** Of these to QPs of one session, before another one has its turn. */
#define GROUP_TURN 16u
/** Multicast datagrams that a worker holds until all members have had their turn, a buffer each
 *  (fits a byte), and those that wait for QPs of one session; more are lost. */
#define GROUP_HELD	   128u
#define GROUP_HELD_SESSION 32u
/** How often one of these waits for a session: many groups have QPs of several. */
#define GROUP_JOBS 512u
/** Entries a completion queue lane. */
#define CQE_MAX (1u << 20)
/** GID table entries a port: IPv4, IPv6 and RoCEv1 forms of some dozens of addresses. */
#define GID_MAX 128u
/** VLAN netdevs of one port that are followed: one address each fills half of the GID table. */
#define PORT_VLAN_MAX (GID_MAX / 2)
/** Ports a daemon. */
#define PORT_MAX 8u
/** P_Key table entries a port; index 0 is 0xFFFF (GID-07). */
#define PKEY_MAX 16u

/* --- data path ---------------------------------------------------------------------- */

/** Packets a burst, receive and transmit. */
#define BURST 32u
/** CNPs of one worker that wait to be sent. A packet that is marked while all places are taken is
 *  not answered. */
#define CNP_OWED 64u
/** Async events and completion notices that a worker passes on in one round; the rest waits in the
 *  objects that they are about. */
#define EVENTS_ROUND 256u
/** Sessions a daemon. Each costs a worker one glance per round at a cache line of its
 *  doorbell, so this also bounds the length of an idle round. A power of two. */
#define SESSION_MAX 256u
/** Doorbell words (of 64 slots) that a worker serves per session and round, so that no
 *  session that rings all of its 16,384 doorbells at once keeps packets waiting. */
#define DOORBELL_WORDS_POLL 4u
/** And of all sessions together in one round, before which it stops and goes on with the next
 *  session: 2,048 QPs, whose lines are mostly in no cache. */
#define DOORBELL_WORDS_ROUND 32u
/** Bytes that a worker copies per core_tx() call between QPs of its own, without frames: as many as
 *  four bursts of 4 KiB carry. */
#define DIRECT_ROUND (512u << 10)
/** As so many counts each message, and each SGE but its first: it may be in a page of its own. */
#define DIRECT_PIECE 4096u
/** Timers that a worker lets expire per round: a program may have thousands that are due at once.
 *  The dearest, a QP that fails and looks back at what it sent, costs some microseconds. */
#define TIMERS_ROUND 64u
/** And timers that it moves in its wheel per round, some 0.1 us each. */
#define TIMERS_MOVED 1024u
/** Nanoseconds of a round after which it takes no more bursts from ports, and one from the inbox. A
 *  burst whose packets are scattered over pages that are not there takes a millisecond by itself.
 */
#define ROUND_LONG_NS 1000000
/** Descriptors a port queue, each direction: some 20 us of 64-byte packets at 25 M/s, and
 *  two ports' worth of buffers still fits `-m 64` without hugepages. */
#define PORT_DESC 512u
/** Frames that wait in a worker's inbox: what other workers hand over and what goes from one local
 *  QP to another. A window of WINDOW_DEFAULT of eight QPs; inbox.c divides it among sources. */
#define INBOX_SIZE 1024u
/** Data room of a packet buffer besides the headroom: FRAME_MAX, rounded up to the AF_PACKET
 *  frame that tiles whole pages (eight in nine), because that driver wants its frame to fit. */
#define MBUF_ROOM 4608u
/** Packet buffers that DPDK's AF_XDP driver keeps in a queue's fill ring, however short the queue.
 */
#define AF_XDP_FILL 2048u
/** The same where a port is AF_XDP: the kernel wants a buffer, with DPDK's 384 bytes of headers, in
 * one page. Holds frames of path MTU 2048. */
#define MBUF_ROOM_PAGE 3712u
/** Notices that wait for the notifier thread, of all workers (a power of two): all QPs of the
 *  daemon may fail at once, and nobody else's notice is lost for that. */
#define EVENT_RING (2 * QP_MAX)

/** Events of a traced QP that wait to be read (a power of two): those of some thousand packets. */
#define TRACE_EVENTS 8192u
/** QPs that are traced at the same time: a step of a core is dearer meanwhile. */
#define TRACES_MAX 16u
/** Faults that are armed for one QP at the same time. */
#define INJECT_RULES 16u
/** Frames of one QP that faults hold back at the same time: a window of WINDOW_DEFAULT, 550 KB. */
#define INJECT_HELD 128u
/** QPs of the daemon, and of one session, that have faults: a worker looks at each that holds
 * frames back in every round. */
#define INJECT_QPS_MAX	       64u
#define INJECT_SESSION_QPS_MAX 16u
/** Captures at the same time: each has every frame copied once more while it runs. */
#define CAPTURES_MAX 4u
/** Bytes of a capture's ring, of each worker (a power of two): a thread empties it, which a busy
 *  machine pauses for some milliseconds. 2,000 frames of 4 KiB. */
#define CAPTURE_RING (1u << 23)

/* --- the bound ---------------------------------------------------------------------- */

/** What a program without rights, or a peer, can make others wait for, on a worker that nobody else
 *  keeps busy; doc/security.md, "The bound", derives it, and test/hostile measures it. Time in
 * which a machine gives the CPU to others does not count. */
/** One round of a worker. */
#define BOUND_ROUND_NS 5000000u
/** A message of a few packets and its answer: so many rounds, its way in turn with all others'. */
#define BOUND_MESSAGE_ROUNDS 8u
/** A command of another user's session, from the request to its reply. */
#define BOUND_COMMAND_NS 50000000u
/** An async event or a completion notice, from its cause to the application's socket. None is lost.
 */
#define BOUND_EVENT_NS 50000000u

/* --- control path ------------------------------------------------------------------- */

/** QPs, MRs, CQs and address handles of one session: three quarters of what the daemon has, so that
 * one application cannot starve all others and 10,000 QPs still fit one. */
#define SESSION_QP_MAX (QP_MAX / 4 * 3)
#define SESSION_MR_MAX (MR_MAX / 4 * 3)
#define SESSION_CQ_MAX (QP_MAX / 4 * 3)
#define SESSION_AH_MAX (AH_MAX / 4 * 3)
/** Attachments of one session's queue pairs to multicast groups. */
#define SESSION_MCAST_MAX 512u
/** Likewise. */
#define SESSION_SRQ_MAX	 (SRQ_MAX / 4 * 3)
#define SESSION_XRCD_MAX (XRCD_MAX / 4 * 3)
/** Protection domains of one session, and of the daemon. */
#define SESSION_PD_MAX 4096u
#define PD_MAX	       32768u
/** Completion channels of one session: each costs the daemon a descriptor. */
#define SESSION_CHANNEL_MAX 1024u
/** MB of rings, and of rocid's private copies of them, that one session can have unless configured
 *  otherwise. */
#define SESSION_QUEUE_MB 8192u
/** Regions of one session that may fault before it ends. Each keeps two mappings of rocid's, and a
 *  worker busy for some microseconds. */
#define SESSION_FAULTED_MAX 4u
/** Bytes of the largest pages of registered memory: clearing one takes a thread of rocid 0.7 ms,
 * with a lock for which workers may wait. */
#define HUGE_PAGE_MAX (2u << 20)
/** What all queues may take of the machine's memory, as a fraction: their pages are used as far as
 *  requests wait, and regions have the rest. */
#define QUEUES_OF_MEMORY 4u
/** What is kept back of each kind of object, as a fraction: the last quarter is for users who have
 *  less than a thirty-second part, so that whatever some users take, eight others get theirs. */
#define USER_RESERVE 4u
#define USER_SMALL   32u
/** Of vm.max_map_count and RLIMIT_NOFILE, what rocid keeps for itself beside what it has when it
 *  starts; at most a quarter. Mappings: a page that faults divides one into three. Descriptors:
 * those that programs pass, administrators, captures. */
#define MAPPINGS_OWN	4096u
#define DESCRIPTORS_OWN 512u
/** Milliseconds for which a connection may say nothing when another one wants its place. */
#define HELLO_PATIENCE_MS 1000u
/** Entries of an SRQ that a step of a resize copies (half a MB at most), and of send queues that a
 *  step of DESTROY_AH has taken (those of one QP at least): a millisecond or two. */
#define RESIZE_STEP   1024u
#define SNAPSHOT_STEP WR_MAX
/** Descriptors of applications whose closing may hang at the same time, on a thread each; of one
 *  user's connections, and of what his programs passed, so many of them. */
#define CLOSER_THREADS	    256u
#define CLOSER_USER_THREADS 2u
/** Descriptors that the programs of one user passed, and connections of theirs, that may wait to be
 *  closed: then no more are taken. Each costs a place in rocid's table of descriptors. */
#define CLOSING_USER_MAX 64u
/** Places in the table of descriptors that rocid has the kernel make at the start, at most: those
 * of all sessions' channels fit (4 MB). */
#define DESCRIPTOR_TABLE (2 * SESSION_MAX * SESSION_CHANNEL_MAX)
/** One in so many of rocid's descriptors is for sessions that are there already. */
#define DESCRIPTOR_RESERVE 8
/** Milliseconds between looks whether more can be taken. */
#define HELD_MS 2u
/** Destinations of one session that the kernel is looking for at the same time; each costs
 *  the control thread some look-ups a second. */
#define SESSION_RESOLVE_MAX 256u
/** And of all, so that their look-ups leave the control thread time for commands. */
#define RESOLVE_MAX (4 * SESSION_RESOLVE_MAX)
/** Bytes that the kernel keeps of a session's unread replies: some dozens. Descriptors in them
 *  count against rocid's RLIMIT_NOFILE, and beyond that nobody's replies carry any. */
#define SESSION_UNREAD_BYTES 16384
/** Connections of administrators; one more takes the place of the one silent for longest. */
#define ADMIN_CLIENT_MAX 16u
/** Bytes of an administrator's request, newline included: several times the longest command. */
#define ADMIN_LINE_MAX 256u

#endif
