/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file limits.h
 * Every compile-time capacity, each with its reason. Values that depend on a machine or a user are
 * run-time options instead (doc/man, config/rocid.conf).
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

/** QPN = generation << 18 | worker << 14 | slot (decision 0000.4). 16,384 QPs per daemon cover the
 * promised 10,000; 16 workers cover the expected machines. */
#define QPN_SLOT_BITS	14
#define QPN_WORKER_BITS 4
#define QPN_GEN_BITS	(24 - QPN_SLOT_BITS - QPN_WORKER_BITS)
#define QP_MAX		(1u << QPN_SLOT_BITS)
#define WORKER_MAX	(1u << QPN_WORKER_BITS)
/** A slot is reused only after this many others have become free (QPS-23), when no packets of its
 * former QP are left. The choice among the other free slots is random. */
#define QPN_REST (QP_MAX / 4)
/** Scatter/gather entries per work request: the most that perftest and MPI ask for. */
#define SGE_MAX 16u
/** Inline bytes per work request: what mlx5 offers by default, rounded to the slot size. */
#define INLINE_MAX 512u
/** Work requests per queue. */
#define WR_MAX 16384u
/** Outstanding READ and ATOMIC requests of one QP, each direction (a power of two): twice what
 * adapters support; a slot costs 64 bytes in each of 10,000 QPs. */
#define RD_ATOMIC_MAX 32u
/** Binds and invalidations of one QP that are executed and wait for earlier requests: they complete
 * with one acknowledgement, in one step. */
#define LOCAL_AHEAD 64u
/** Packets in flight of one QP unless configured otherwise (decision 0000.3, "Window"). */
#define WINDOW_DEFAULT 128u
/** The maximum: far above what any path holds, far below half of the PSNs. */
#define WINDOW_MAX 65536u

/* --- shared receive queues ---------------------------------------------------------- */

/** SRQN = generation << 12 | slot. An SRQ serves many QPs, so fewer are needed than QPs. */
#define SRQN_SLOT_BITS 12
#define SRQ_MAX	       (1u << SRQN_SLOT_BITS)
/** Work requests per SRQ: those of many QPs. */
#define SRQ_WR_MAX 65536u
/** XRC domains per daemon: one or two per application that spans processes. */
#define XRCD_MAX 1024u

/* --- other objects ------------------------------------------------------------------ */

/** Memory regions and windows; a key is index << 8 | key part (MR-01). */
#define MR_MAX (1u << 16)
/** Address handles (a power of two): a datagram program has one for each of its peers. */
#define AH_MAX (1u << 15)
/** Multicast groups of all ports; each is charged as GROUP_SOCKETS (group.h) descriptors, the
 * sockets that join it on a netdev and its VLANs. */
#define MCAST_GROUP_MAX 1024u
/** Queue pairs per group: the number of copies of each packet to it. */
#define MCAST_MEMBERS_MAX 256u
/** Attachments of queue pairs to groups, all together: rocid has a copy of each group's list. */
#define MCAST_ATTACH_MAX (16 * MCAST_GROUP_MAX)
/** Completion queues: two per QP. */
#define CQ_MAX (2 * QP_MAX)
/** Copies of multicast datagrams that a worker delivers in one round, in addition to one of each:
 * as many as it receives packets in one burst. */
#define GROUP_COPIES 32u
/** Of these, copies to QPs of one session before another session has its turn. */
#define GROUP_TURN 8u
/** Multicast datagrams that a worker holds until all members have had their turn, one buffer each
 * (the count fits a byte), and those of them that wait for QPs of one session; further ones are
 * lost. */
#define GROUP_HELD	   128u
#define GROUP_HELD_SESSION 32u
/** Pairs of such a datagram and a session that it waits for: many groups have QPs of several
 * sessions. */
#define GROUP_JOBS 512u
/** Entries per completion queue lane. */
#define CQE_MAX (1u << 20)
/** GID table entries per port: IPv4, IPv6 and RoCEv1 forms of some dozens of addresses. */
#define GID_MAX 128u
/** VLAN netdevs followed per port: one address each fills half of the GID table. */
#define PORT_VLAN_MAX (GID_MAX / 2)
/** Ports per daemon. */
#define PORT_MAX 8u
/** P_Key table entries per port; index 0 is 0xFFFF (GID-07). */
#define PKEY_MAX 16u

/* --- data path ---------------------------------------------------------------------- */

/** Packets per burst, receive and transmit. */
#define BURST 32u
/** Packets that a QP sends before the next has its turn, and that leave together when its rate is
 * limited; also the WQEs flushed per turn. Large enough to keep a QP's cache lines warm, small
 * enough that a burst serves several QPs. */
#define QUANTUM 8u

/* Packets of a limited QP that may leave together, in several turns: with --gso a run of them costs
 * about as much as one. */
#define PACING_RUN 32u
/** CNPs of one worker that wait to be sent. Marks that arrive while all places are taken are not
 * answered. */
#define CNP_OWED 64u
/** Entries in a port's list of switches whose Fast CNPs it accepts: a host has a few switches close
 * to it, and a prefix covers a whole fabric. */
#define FAST_CNP_SWITCHES 16u
/** QPs that one Fast CNP slows down: normally only one QP is connected to a peer's QPN. */
#define FAST_CNP_QPS 64u
/** Async events and completion notices that a worker passes on in one round; the rest waits in
 * their objects. */
#define EVENTS_ROUND 256u
/** Sessions per daemon. Each costs a worker one read per round of a cache line of its doorbell, so
 * this also bounds the length of an idle round. A context of libibverbs is a session, and libraries
 * open several: 64 ranks of one user with four each fit in the half that a user has by default. A
 * power of two. */
#define SESSION_MAX 512u
/** Doorbell words (of 64 slots) that a worker serves per session and round, so that no
 *  session that rings all of its 16,384 doorbells at once keeps packets waiting. */
#define DOORBELL_WORDS_POLL 4u
/** The same for all sessions together in one round; the next round continues with the next session:
 * 2,048 QPs, whose lines are mostly not cached. */
#define DOORBELL_WORDS_ROUND 32u
/** Bytes that a worker copies per core_tx() call between QPs of its own, without frames: as many as
 *  two bursts of 4 KiB carry. */
#define DIRECT_ROUND (256u << 10)
/** Each message, and each SGE but its first, counts as at least this many bytes: it may be in a
 * separate page. */
#define DIRECT_PIECE 4096u
/** Shortest payload that a packet to another QP of this daemon names instead of carrying it. */
#define NAMED_MIN 1024u
/** Timers that a worker lets expire per round: a program may have thousands that are due at once.
 * The most expensive, a QP that fails and examines the packets it sent, costs a few
 * microseconds. */
#define TIMERS_ROUND 64u
/** Timers that it moves in its wheel per round, about 0.1 us each. */
#define TIMERS_MOVED 1024u
/** Nanoseconds of a round after which it receives no more, and sends half a burst. A burst whose
 * packets are scattered over absent pages takes a millisecond by itself. */
#define ROUND_LONG_NS 1000000
/** Descriptors per port queue, each direction: about 20 us of 64-byte packets at 25 M/s, and
 * buffers for two ports still fit into `-m 64` without hugepages. */
#define PORT_DESC 512u
/** Frames that wait in a worker's inbox: those that other workers hand over and those between local
 * QPs. A window of WINDOW_DEFAULT of eight QPs; inbox.c divides it among sources. */
#define INBOX_SIZE 1024u
/** Data room of a packet buffer without the headroom: FRAME_MAX, rounded up to the AF_PACKET frame
 * that tiles whole pages (eight in nine), because that driver needs its frame to fit. */
#define MBUF_ROOM 4608u
/** Packet buffers that DPDK's AF_XDP driver keeps in a queue's fill ring, however short the queue.
 */
#define AF_XDP_FILL 2048u
/** The same if a port is AF_XDP: the kernel needs a buffer, with DPDK's 384 bytes of headers, in
 * one page. Holds frames of path MTU 2048. */
#define MBUF_ROOM_PAGE 3712u
/** Notices that wait for the notifier thread, of all workers (a power of two): even if all QPs of
 * the daemon fail at once, no other notice is lost. */
#define EVENT_RING (2 * QP_MAX)

/** Events of a traced QP that wait to be read (a power of two): those of about a thousand
 * packets. */
#define TRACE_EVENTS 8192u
/** QPs that are traced at the same time: each step of a core costs more meanwhile. */
#define TRACES_MAX 16u
/** Faults that are armed for one QP at the same time. */
#define INJECT_RULES 16u
/** Frames of one QP that faults hold back at the same time: a window of WINDOW_DEFAULT, 550 KB. */
#define INJECT_HELD 128u
/** QPs of the daemon, and of one session, that have faults: in every round a worker checks each
 * that holds frames back. */
#define INJECT_QPS_MAX	       64u
#define INJECT_SESSION_QPS_MAX 16u
/** Captures at the same time: each copies every frame once more while it runs. */
#define CAPTURES_MAX 4u
/** Bytes of a capture's ring per worker (a power of two): a busy machine pauses the thread that
 * empties it for a few milliseconds. 2,000 frames of 4 KiB. */
#define CAPTURE_RING (1u << 23)

/* --- the bound ---------------------------------------------------------------------- */

/** The longest delay that an unprivileged program, or a peer, can cause for others on an otherwise
 * idle worker; doc/security.md, "The bound", derives it, and test/hostile measures it. Time during
 * which the machine gives the CPU to others does not count. */
/** One round of a worker. */
#define BOUND_ROUND_NS 5000000u
/** A message of a few packets and its answer, in rounds, in turn with all others. */
#define BOUND_MESSAGE_ROUNDS 8u
/** A command of another user's session, from the request to its reply. */
#define BOUND_COMMAND_NS 50000000u
/** An async event or a completion notice, from its cause to the application's socket. None is lost.
 */
#define BOUND_EVENT_NS 50000000u

/* --- control path ------------------------------------------------------------------- */

/** QPs, MRs, CQs and address handles of one session: three quarters of what the daemon has, so that
 * one application cannot starve all others but can have 10,000 QPs. */
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
/** Ids of RDMA CM, requests that no program has read included, and the events that RESOLVE_ADDR and
 * joins cause: 700 bytes each while they are unread. */
#define CM_ID_MAX    65536u
#define CM_EVENT_MAX 65536u
/** Ports that ids are bound to: as many as there are ephemeral ones, so that a program within its
 * limits finds one, unless root, which has no limit, has taken them. */
#define CM_PORT_MAX	 28232u
#define CM_LISTENERS_MAX 4096u
/** Connections: both ends of all QPs of a rocid, and as many that are ending. */
#define CONNECTIONS_MAX 32768u
/** Requests of RDMA CM that no program has answered: 10,240 for one user, as many as `cmtime -c
 * 10000` sends before its server runs, and even if all wait, 12,288 connections remain. */
#define CM_REQUEST_MAX (CONNECTIONS_MAX / 8 * 5)
/** Likewise. */
#define SESSION_CM_ID_MAX      (CM_ID_MAX / 4 * 3)
#define SESSION_CM_EVENT_MAX   (CM_EVENT_MAX / 4 * 3)
#define SESSION_CM_PORT_MAX    (CM_PORT_MAX / 4 * 3)
#define SESSION_LISTENER_MAX   (CM_LISTENERS_MAX / 4 * 3)
#define SESSION_CONNECTION_MAX (CONNECTIONS_MAX / 4 * 3)
#define SESSION_CM_REQUEST_MAX (CM_REQUEST_MAX / 4 * 3)
/** Default of the MB of rings, and of rocid's private copies of them, per session. */
#define SESSION_QUEUE_MB 8192u
/** Regions of one session that may fault before it ends. Each takes two mappings of rocid, and a
 * few microseconds of a worker. */
#define SESSION_FAULTED_MAX 4u
/** Bytes of an application's file that regions share a mapping of: 40,000 small regions in a heap
 * of a hundred gigabytes need 2,000 mappings. */
#define MAPPING_BLOCK (64u << 20)
/** Lists of such mappings. */
#define MAPPING_BUCKETS 4096u
/** Bytes of the largest pages of registered memory: a thread of rocid clears one in 0.7 ms, with a
 * lock for which workers may wait. */
#define HUGE_PAGE_MAX (2u << 20)
/** The fraction of the machine's memory that all queues may take: their pages are used only as far
 * as requests wait; regions have the rest. */
#define QUEUES_OF_MEMORY 4u
/** The fraction of each kind of object that is reserved: the last quarter is for users who have
 * less than a thirty-second part, so that whatever some users take, eight others get their
 * share. */
#define USER_RESERVE 4u
#define USER_SMALL   32u
/** The part of vm.max_map_count and RLIMIT_NOFILE that rocid reserves for itself, in addition to
 * its use at the start; at most a quarter. Mappings: a page that faults splits one into three.
 * Descriptors: those that programs pass, those of administrators and of captures. */
#define MAPPINGS_OWN	4096u
#define DESCRIPTORS_OWN 512u
/** Milliseconds for which a connection may be silent if another one needs its place. */
#define HELLO_PATIENCE_MS 1000u
/** Entries of an SRQ that a step of a resize copies (half a MB at most), and of send queues that a
 *  step of DESTROY_AH has taken (those of one QP at least): a millisecond or two. */
#define RESIZE_STEP   1024u
#define SNAPSHOT_STEP WR_MAX
/** Threads for closing descriptors of applications, which may hang; of these, threads for one
 * user's connections, and for descriptors that the user's programs passed. */
#define CLOSER_THREADS	    256u
#define CLOSER_USER_THREADS 2u
/** Descriptors that the programs of one user passed, and connections of theirs, that may wait to be
 * closed; beyond that no more are accepted. Each takes a place in rocid's table of descriptors. */
#define CLOSING_USER_MAX 64u
/** The maximum size to which rocid has the kernel extend its table of descriptors at the start: the
 * channels of all sessions fit (8 MB). */
#define DESCRIPTOR_TABLE (2 * SESSION_MAX * SESSION_CHANNEL_MAX)
/** One of this many descriptors of rocid is reserved for existing sessions. */
#define DESCRIPTOR_RESERVE 8
/** Milliseconds between checks whether more can be accepted. */
#define HELD_MS 2u
/** Destinations of one session that the kernel resolves at the same time; each costs the control
 * thread a few look-ups per second. */
#define SESSION_RESOLVE_MAX 256u
/** And of all, so that their look-ups leave the control thread time for commands. */
#define RESOLVE_MAX (4 * SESSION_RESOLVE_MAX)
/** Bytes of a session's unread replies that the kernel keeps: several dozen replies. Descriptors in
 * them count against rocid's RLIMIT_NOFILE, and beyond it no reply can carry any. */
#define SESSION_UNREAD_BYTES 16384
/** Connections of administrators; a further one replaces the one that was idle for longest. */
#define ADMIN_CLIENT_MAX 16u
/** Bytes of an administrator's request, newline included: several times the longest command. */
#define ADMIN_LINE_MAX 256u

#endif
