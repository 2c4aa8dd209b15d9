/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file abi_ctl.h
 * Control messages between an application and rocid: one request or one reply per packet of a
 * SOCK_SEQPACKET unix socket, with file descriptors in SCM_RIGHTS. doc/abi.md describes them in
 * prose, with the order of calls.
 *
 * A request is a struct abi_msg and the body of its type. The reply repeats type and seq. A
 * negative status is an errno, and the body is then a NUL-terminated sentence that says what to do.
 * Replies come in the order in which rocid finishes the requests; match them by `seq`. Handles are
 * numbers of this session. Bodies may grow at the end: a reader takes the members that it knows and
 * treats missing ones as zero.
 */
#ifndef ABI_CTL_H
#define ABI_CTL_H

#include <stdbool.h>
#include <stdint.h>

#define ABI_MAGIC	   0x49434F52u /* "ROCI" */
#define ABI_VERSION_MIN	   1
#define ABI_VERSION	   1
#define ABI_MSG_MAX	   1024
#define ABI_SENTENCE_MAX   256
#define ABI_WHY_MAX	   768 /* for EXPLAIN_QP */
#define ABI_SOCKET_DEFAULT "/run/rocid/rocid.sock"
/** rocictl connects to the applications' socket path with this suffix. */
#define ABI_ADMIN_SUFFIX ".admin"
/** A folder of files as below /sys/class has the socket's path with this suffix (doc/abi.md). */
#define ABI_SYSFS_SUFFIX ".sys"
/** Environment variable with another socket path. */
#define ABI_SOCKET_ENV "ROCI_SOCKET"

enum abi_msg_type {
	ABI_HELLO = 1,
	ABI_QUERY_DEVICE,
	ABI_QUERY_PORT,
	ABI_QUERY_GID,
	ABI_QUERY_PKEY,
	ABI_ALLOC_PD,
	ABI_DEALLOC_PD,
	ABI_REG_MR,
	ABI_DEREG_MR,
	ABI_ALLOC_MW,
	ABI_DEALLOC_MW,
	ABI_CREATE_CHANNEL,
	ABI_DESTROY_CHANNEL,
	ABI_CREATE_CQ,
	ABI_RESIZE_CQ,
	ABI_DESTROY_CQ,
	ABI_CREATE_SRQ,
	ABI_MODIFY_SRQ,
	ABI_QUERY_SRQ,
	ABI_DESTROY_SRQ,
	ABI_CREATE_AH,
	ABI_DESTROY_AH,
	ABI_CREATE_QP,
	ABI_MODIFY_QP,
	ABI_QUERY_QP,
	ABI_DESTROY_QP,
	ABI_ATTACH_MCAST,
	ABI_DETACH_MCAST,
	ABI_OPEN_XRCD,
	ABI_CLOSE_XRCD,
	ABI_GET_WAKE,
	ABI_EXPLAIN_QP,
	ABI_INJECT_FAULT,
	ABI_QUERY_FAULT,
	ABI_CLEAR_FAULT,
	ABI_GET_ARENA,
	ABI_GET_USERFAULTFD,
	ABI_REREG_MR,
	ABI_QUERY_GIDS,
	ABI_PROBE,
	/* abi_cm.h */
	ABI_CM_OPEN,
	ABI_CM_CLOSE,
	ABI_CM_CREATE_ID,
	ABI_CM_DESTROY_ID,
	ABI_CM_MIGRATE_ID,
	ABI_CM_BIND,
	ABI_CM_RESOLVE_ADDR,
	ABI_CM_RESOLVE_ROUTE,
	ABI_CM_QUERY,
	ABI_CM_LISTEN,
	ABI_CM_CONNECT,
	ABI_CM_ACCEPT,
	ABI_CM_REJECT,
	ABI_CM_DISCONNECT,
	ABI_CM_INIT_QP_ATTR,
	ABI_CM_NOTIFY,
	ABI_CM_SET_OPTION,
	ABI_CM_JOIN,
	ABI_CM_LEAVE,
	ABI_CM_GET_EVENT,
	/* of this file again */
	ABI_LIMIT_QP,
	ABI_REPORT,
	ABI_MSG_TYPES
};

struct abi_msg {
	uint32_t type;	/* enum abi_msg_type */
	uint32_t seq;	/* chosen by the client, repeated in the reply */
	int32_t status; /* reply: 0 or negative errno */
	uint32_t reserved;
};

/* HELLO: the first message. The reply carries two fds: the session region and the async event
 * channel. rocid answers EPROTONOSUPPORT when the version ranges do not overlap. */
struct abi_hello {
	uint32_t magic; /* ABI_MAGIC */
	uint16_t version_min;
	uint16_t version_max;
	char name[32]; /* of the program, shown by `rocictl show sessions` */
};
struct abi_hello_reply {
	uint32_t magic;
	uint16_t version; /* the version in use */
	uint16_t workers;
	uint64_t epoch;
	uint32_t region_size; /* of the session region */
	uint32_t doorbell_off;
	uint32_t doorbell_stride;
	uint32_t session;
	char device[16]; /* "roci0" */
	uint32_t sleeps; /* 1: workers sleep; GET_WAKE returns the means to wake them */
	uint32_t rocev1; /* 1: ports have RoCEv1 GIDs in addition to RoCEv2 ones (GID-10) */
};

/* GET_WAKE: the reply carries an eventfd for one worker (abi_ring.h, struct abi_doorbell). A
 * session that does not ask for it is served too, but late after a pause. EOPNOTSUPP when workers
 * do not sleep. */
struct abi_get_wake {
	uint32_t worker;
};

/* QUERY_DEVICE: no body */
struct abi_device_attr {
	uint64_t node_guid; /* EUI-64 of the first port, big-endian */
	uint32_t ports;
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_pd;
	uint32_t max_srq;
	uint32_t max_srq_wr;
	uint32_t max_ah;
	uint32_t max_rd_atomic; /* in each direction */
	uint32_t max_pkeys;
	uint32_t atomic_cap; /* 0 none, 1 HCA, 2 global */
	char version[32];
	uint32_t max_mw; /* windows and MRs together */
	uint32_t max_srq_sge;
	uint32_t max_mcast_groups;
	uint32_t max_mcast_members; /* QPs a group */
	uint32_t max_mcast_attach;  /* of all QPs to groups */
	uint32_t max_res_rd_atomic; /* of all QPs together, as responders */
	uint32_t timestamp_bits;    /* of abi_cqe.timestamp that count */
	uint32_t core_clock_khz;    /* of abi_cqe.timestamp */
};

struct abi_query_port {
	uint32_t port; /* 1.. */
};
struct abi_port_attr {
	uint32_t state;	     /* as enum ibv_port_state: 1 down, 4 active */
	uint32_t max_mtu;    /* bytes */
	uint32_t active_mtu; /* bytes (GID-09) */
	uint32_t gids;	     /* table length */
	uint32_t pkeys;
	uint32_t speed_mbps;
	uint8_t mac[6];
	uint16_t bad_pkey_cntr; /* saturates at 0xFFFF (VAL-10) */
	char netdev[16];
	uint32_t qkey_viol_cntr; /* saturates at 0xFFFF (VAL-16) */
};

struct abi_query_gid {
	uint32_t port;
	uint32_t index;
};
/** Values in the order of enum ibv_gid_type_sysfs: CA17-26. */
enum abi_gid_type {
	ABI_GID_ROCEV1 = 0, /* "IB GID" */
	ABI_GID_ROCEV2_IPV4 = 1,
	ABI_GID_ROCEV2_IPV6 = 2,
};
struct abi_gid {
	uint8_t gid[16];
	uint32_t type; /* enum abi_gid_type */
	uint32_t ifindex;
	uint16_t vid;
	uint8_t mac[6];
};

/* QUERY_GIDS: the entries of the table from `first` on that are not empty, as many as fit. */
struct abi_query_gids {
	uint32_t port;
	uint32_t first;
};
struct abi_gid_at {
	uint32_t index;
	struct abi_gid gid;
};
#define ABI_GIDS_MAX 26
struct abi_gids {
	uint32_t count;
	uint32_t next; /* `first` of the next request; 0: there are no more */
	struct abi_gid_at at[ABI_GIDS_MAX];
};

/* PROBE: no body. Also before HELLO: what the device is called. */
struct abi_probe {
	char device[16];
	uint64_t node_guid; /* as in abi_device_attr */
	uint32_t ports;
	uint32_t reserved;
};

struct abi_query_pkey {
	uint32_t port;
	uint32_t index;
};
struct abi_pkey {
	uint32_t pkey;
};

/** DEALLOC_PD, DEREG_MR, DEALLOC_MW, DESTROY_*, QUERY_SRQ, CLOSE_XRCD. */
struct abi_handle {
	uint32_t handle;
};

/* The values are those of enum ibv_access_flags. */
#define ABI_ACCESS_LOCAL_WRITE	 (1u << 0)
#define ABI_ACCESS_REMOTE_WRITE	 (1u << 1)
#define ABI_ACCESS_REMOTE_READ	 (1u << 2)
#define ABI_ACCESS_REMOTE_ATOMIC (1u << 3)
#define ABI_ACCESS_MW_BIND	 (1u << 4)
#define ABI_ACCESS_ZERO_BASED	 (1u << 5)
#define ABI_ACCESS_FLUSH_GLOBAL	 (1u << 8)
#define ABI_ACCESS_FLUSH_PERSIST (1u << 9)

/* REG_MR: carries one fd, a file in memory (tmpfs, hugetlbfs). The region is [fd_off, fd_off +
 * length) of it; iova is the address of its first byte in SGEs and on the wire. */
struct abi_reg_mr {
	uint32_t pd;
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	uint64_t fd_off;
	uint32_t npieces; /* 0: one, at fd_off; otherwise so many struct abi_piece follow */
	uint32_t writers; /* enum abi_writers: how the program holds them */
};
/** A range of the file. All but the first begin with a page, all but the last end with one. */
struct abi_piece {
	uint64_t off;
	uint64_t length;
};
/** As many as fit into one message of REREG_MR. */
#define ABI_PIECES_MAX 58u
/** How a program holds the writes of its other threads while memory moves to the file. */
enum abi_writers {
	ABI_WRITERS_UNKNOWN,	/* nothing has moved */
	ABI_WRITERS_UFFD_ROCID, /* userfaultfd by GET_USERFAULTFD */
	ABI_WRITERS_UFFD,	/* its own */
	ABI_WRITERS_UFFD_USER,	/* without the kernel's faults */
	ABI_WRITERS_SIGNALS,	/* stops its threads */
};
/* REREG_MR: replaces everything about the region except its handle and keys. Carries a descriptor
 * as REG_MR does; the reply is that of REG_MR. While the command runs, the keys are unknown. */
struct abi_rereg_mr {
	uint32_t handle;
	uint32_t reserved;
	struct abi_reg_mr reg; /* pieces follow */
};
struct abi_reg_mr_reply {
	uint32_t handle;
	uint32_t lkey;
	uint32_t rkey;
};

/* GET_ARENA: the reply carries an empty memfd of ABI_ARENA_SIZE bytes that nobody can resize, for
 * memory that becomes registrable by moving there. */
#define ABI_ARENA_SIZE (1ull << 62)
struct abi_get_arena {
	uint32_t page; /* 2 MiB: of huge pages; 0, or no body: of ordinary ones */
	uint32_t reserved;
};

/* GET_USERFAULTFD: no body. The reply carries a descriptor of /dev/userfaultfd, from which a
 * program makes a userfaultfd that also sees the kernel's faults. EOPNOTSUPP: rocid has none, or
 * passes none to programs. */

/* ALLOC_MW: a memory window. Binding it is a work request (ABI_WR_BIND_MW). */
struct abi_alloc_mw {
	uint32_t pd;
	uint32_t type; /* as enum ibv_mw_type: 1 or 2 */
};
struct abi_alloc_mw_reply {
	uint32_t handle;
	uint32_t rkey; /* its first rkey; the window is not bound yet */
};

/* CREATE_CHANNEL: a completion channel. The reply carries one fd: the application's end of a
 * SOCK_SEQPACKET pair, from which it reads struct abi_event. EOF: rocid is gone. */
struct abi_event {
	uint32_t type;	 /* 0 completion, else 1 + enum ibv_event_type of verbs */
	uint32_t handle; /* of the CQ, QP or SRQ; port events: the port number */
	uint32_t reserved[2];
};
#define ABI_EVENT_COMPLETION	    0u
#define ABI_EVENT_CQ_ERR	    1u
#define ABI_EVENT_QP_FATAL	    2u
#define ABI_EVENT_QP_REQ_ERR	    3u
#define ABI_EVENT_QP_ACCESS_ERR	    4u
#define ABI_EVENT_COMM_EST	    5u
#define ABI_EVENT_SQ_DRAINED	    6u
#define ABI_EVENT_DEVICE_FATAL	    9u
#define ABI_EVENT_PORT_ACTIVE	    10u
#define ABI_EVENT_PORT_ERR	    11u
#define ABI_EVENT_PKEY_CHANGE	    13u
#define ABI_EVENT_SRQ_ERR	    15u
#define ABI_EVENT_SRQ_LIMIT_REACHED 16u
#define ABI_EVENT_QP_LAST_WQE	    17u
#define ABI_EVENT_GID_CHANGE	    19u

#define ABI_NO_HANDLE UINT32_MAX

/* CREATE_CQ: the reply carries the ring's memfd. */
struct abi_create_cq {
	uint32_t depth;	  /* minimum; rounded up */
	uint32_t channel; /* handle or ABI_NO_HANDLE */
	uint32_t vector;
	uint32_t flags; /* ABI_CQ_FLAG_* */
};
/** CQEs have timestamps. */
#define ABI_CQ_FLAG_TIMESTAMP (1u << 0)
struct abi_create_cq_reply {
	uint32_t handle;
	uint32_t depth;
	uint32_t lanes;
	uint32_t lane_off; /* of lane 0: struct abi_cq_lane, then depth * struct abi_cqe */
	uint32_t lane_stride;
	uint32_t region_size;
};
struct abi_resize_cq {
	uint32_t handle;
	uint32_t depth;
}; /* reply: struct abi_create_cq_reply and the new ring */

/* CREATE_SRQ: the reply carries the ring's memfd. */
struct abi_create_srq {
	uint32_t pd;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t limit;
	uint32_t xrcd; /* handle or ABI_NO_HANDLE */
	uint32_t cq;   /* XRC */
};
struct abi_create_srq_reply {
	uint32_t handle;
	uint32_t srqn;
	uint32_t max_wr;
	uint32_t stride;
	uint32_t ring_off; /* struct abi_queue at 0, entries here */
	uint32_t region_size;
};
/* MODIFY_SRQ: with ABI_SRQ_MAX_WR the reply is struct abi_create_srq_reply and the memfd of a new
 * region, whose entries replace the old ones; the head remains in the first region. Posted entries
 * have already been copied. The application must not post between request and reply. */
struct abi_modify_srq {
	uint32_t handle;
	uint32_t mask; /* ABI_SRQ_* */
	uint32_t max_wr;
	uint32_t limit;
};
#define ABI_SRQ_MAX_WR (1u << 0)
#define ABI_SRQ_LIMIT  (1u << 1)

/* QUERY_SRQ: struct abi_handle; the reply: */
struct abi_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t limit;	  /* 0: not armed */
	uint32_t waiting; /* posted and not taken yet */
};

/* OPEN_XRCD: may carry a descriptor: then it is the domain of that file, shared by all programs.
 * The reply is struct abi_handle_reply. */
struct abi_open_xrcd {
	uint32_t flags; /* ABI_XRCD_* */
};
#define ABI_XRCD_CREATE (1u << 0)
#define ABI_XRCD_EXCL	(1u << 1)

struct abi_ah_attr {
	uint8_t dgid[16];
	uint8_t dmac[6]; /* all ones or zeroes: rocid resolves it (A17.4.2) */
	uint8_t sgid_index;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t port;
	uint8_t is_global;
	uint32_t flow_label;
};

/* CREATE_QP: the reply carries the rings' memfd. The values of type are those of verbs. */
enum abi_qp_type {
	ABI_QPT_SMI = 0, /* QP0: not on RoCE (A17.5.8) */
	ABI_QPT_GSI = 1,
	ABI_QPT_RC = 2,
	ABI_QPT_UC = 3,
	ABI_QPT_UD = 4,
	ABI_QPT_RAW_IPV6 = 5, /* raw datagrams: not on RoCE (CA17-28) */
	ABI_QPT_RAW_ETHERTYPE = 6,
	ABI_QPT_RAW_PACKET = 8,
	ABI_QPT_XRC_SEND = 9,
	ABI_QPT_XRC_RECV = 10,
};
/** @return whether QPs of @p type send datagrams, each along its own address handle. */
static inline bool abi_is_datagram(uint32_t type)
{
	return type == ABI_QPT_UD || type == ABI_QPT_GSI;
}

struct abi_create_qp {
	uint32_t pd;
	uint32_t type; /* enum abi_qp_type */
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t srq; /* handle or ABI_NO_HANDLE */
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	uint32_t sq_sig_all;
	uint32_t xrcd;
	uint32_t port; /* GSI: port of the QP1, from 1 */
};
struct abi_create_qp_reply {
	uint32_t handle;
	uint32_t qpn;
	uint32_t worker;
	uint32_t doorbell; /* slot in that worker's struct abi_doorbell */
	uint32_t sq_depth;
	uint32_t sq_stride;
	uint32_t rq_depth; /* 0 with an SRQ */
	uint32_t rq_stride;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	uint32_t sq_queue_off; /* struct abi_queue */
	uint32_t sq_ring_off;
	uint32_t rq_queue_off;
	uint32_t rq_ring_off;
	uint32_t region_size;
};

/* QP states; the values are those of enum ibv_qp_state. */
enum abi_qp_state {
	ABI_QPS_RESET,
	ABI_QPS_INIT,
	ABI_QPS_RTR,
	ABI_QPS_RTS,
	ABI_QPS_SQD,
	ABI_QPS_SQE,
	ABI_QPS_ERR,
};

/* Attribute mask bits; the values are those of enum ibv_qp_attr_mask. */
#define ABI_QP_STATE		   (1u << 0)
#define ABI_QP_CUR_STATE	   (1u << 1)
#define ABI_QP_EN_SQD_ASYNC_NOTIFY (1u << 2)
#define ABI_QP_ACCESS_FLAGS	   (1u << 3)
#define ABI_QP_PKEY_INDEX	   (1u << 4)
#define ABI_QP_PORT		   (1u << 5)
#define ABI_QP_QKEY		   (1u << 6)
#define ABI_QP_AV		   (1u << 7)
#define ABI_QP_PATH_MTU		   (1u << 8)
#define ABI_QP_TIMEOUT		   (1u << 9)
#define ABI_QP_RETRY_CNT	   (1u << 10)
#define ABI_QP_RNR_RETRY	   (1u << 11)
#define ABI_QP_RQ_PSN		   (1u << 12)
#define ABI_QP_MAX_QP_RD_ATOMIC	   (1u << 13)
#define ABI_QP_ALT_PATH		   (1u << 14)
#define ABI_QP_MIN_RNR_TIMER	   (1u << 15)
#define ABI_QP_SQ_PSN		   (1u << 16)
#define ABI_QP_MAX_DEST_RD_ATOMIC  (1u << 17)
#define ABI_QP_PATH_MIG_STATE	   (1u << 18)
#define ABI_QP_CAP		   (1u << 19)
#define ABI_QP_DEST_QPN		   (1u << 20)

struct abi_qp_attr {
	uint8_t qp_state; /* enum abi_qp_state */
	uint8_t cur_qp_state;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint32_t access_flags;
	uint32_t path_mtu; /* bytes: 256, 512, 1024, 2048, 4096 */
	uint32_t qkey;
	uint32_t rq_psn;   /* 24 bits */
	uint32_t sq_psn;   /* 24 bits */
	uint32_t dest_qpn; /* 24 bits */
	uint16_t pkey_index;
	uint8_t port;
	uint8_t timeout;       /* 4.096 us * 2^timeout, 0 = infinite; 0..31 */
	uint8_t retry_cnt;     /* 0..7 */
	uint8_t rnr_retry;     /* 0..7, 7 = infinite */
	uint8_t min_rnr_timer; /* code, 0..31 */
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t path_mig_state;
	uint16_t reserved;
	struct abi_ah_attr ah;
};

struct abi_modify_qp {
	uint32_t handle;
	uint32_t mask;
	struct abi_qp_attr attr;
};
/* QUERY_QP: struct abi_handle; the reply is struct abi_qp_attr. */

/** Rates that a QP may be limited to, in kbit/s. */
#define ABI_RATE_MIN 1000u
#define ABI_RATE_MAX 1000000000u

/* LIMIT_QP: RESET ends it. An administrator's limit applies as well. */
struct abi_limit_qp {
	uint32_t handle;
	uint32_t rate;	 /* kbit/s on the wire, ABI_RATE_MIN to ABI_RATE_MAX; 0: no limit */
	uint32_t burst;	 /* bytes that leave together at most; 0: rocid decides */
	uint32_t packet; /* bytes of a typical packet, for `burst`; 0: full ones */
};

#define ABI_REPORT_MAX 508

/* REPORT: a refusal, for administrators: one that the library made itself without asking rocid, or
 * one of rocid's, repeated. Has no other effect. */
struct abi_report {
	uint32_t qpn;		       /* a QP of the session; 0: none */
	char sentence[ABI_REPORT_MAX]; /* ends with a 0 byte; not empty */
};

/* EXPLAIN_QP: struct abi_handle; why the QP went to ERR. An empty sentence: it has not. */
struct abi_explain_qp_reply {
	char rule[16]; /* in doc/rules.tsv */
	char cause[32];
	char sentence[ABI_WHY_MAX];
};

struct abi_mcast {
	uint32_t qp;
	uint8_t mgid[16];
};

enum abi_ah_flags {
	ABI_AH_AT_ONCE = 1 << 0, /* EAGAIN instead of a wait for the kernel, which begins to ask */
};

struct abi_create_ah {
	uint32_t pd;
	struct abi_ah_attr attr;
	uint32_t flags; /* enum abi_ah_flags; may be absent: 0 */
};
struct abi_handle_reply {
	uint32_t handle;
};

#endif
