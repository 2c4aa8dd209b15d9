/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci.h
 * Queue pairs from rocid, the RoCE daemon: the API of libroci.
 *
 * Objects, calls, constants and their values are those of verbs with the prefix `roci_`; who
 * knows libibverbs knows this. What differs: there is one device a context, reached through
 * rocid's socket; memory that is registered must come from roci_alloc_mem() or
 * roci_alloc_mr(); structures of options begin with their `size`.
 *
 * **Results.** Functions that return a pointer return NULL and set errno. Functions that
 * return int return 0 or a positive errno value, except roci_poll_cq(). After a failure
 * roci_last_error() says in a sentence what went wrong and what to do about it. Any control
 * call may also fail with
 * - EIO: rocid is gone; see "Death of the daemon" below,
 * - EPROTO: rocid answered something that this library does not understand,
 * - ENOMEM: this process or rocid is out of memory or of a quota,
 * - EINVAL: an argument is wrong, or `size` is not set in a structure that has one.
 *
 * **Sizes.** In a structure that begins with `size`, the caller sets it to sizeof of that
 * structure. A newer library then reads and writes only what an older program knows.
 *
 * **Threads.** Every function may be called by any thread. roci_post_send(),
 * roci_post_recv() and roci_poll_cq() take one short spin lock of their queue; different
 * queues do not share any. Control calls of one context wait for each other. As in verbs, no
 * call may use an object while another thread destroys it.
 *
 * **fork().** A child must not use its parent's objects; registered memory is shared with it.
 *
 * **Byte order.** Host order, except GIDs and immediate data, which are bytes as on the wire.
 *
 * **Death of the daemon.** When rocid ends, roci_poll_cq() first delivers what was complete,
 * then a ROCI_WC_WR_FLUSH_ERR for each work request that was outstanding, then -EIO. Events
 * wake their readers likewise. The objects remain to be destroyed; roci_open() starts anew.
 */
#ifndef ROCI_H
#define ROCI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ROCI_API __attribute__((visibility("default")))
#else
#define ROCI_API
#endif

/* --- context -------------------------------------------------------------------------- */

/** A session with a rocid. The fields are read-only. */
struct roci_context {
	/** The session's socket. rocid ends the session when it closes. */
	int cmd_fd;
	/** Readable when roci_get_async_event() has something: for poll() and O_NONBLOCK. */
	int async_fd;
	/** Name of the device, "roci0". */
	const char *device;
};

/**
 * Opens a session.
 * @param socket_path  rocid's socket; NULL: the environment's ROCI_SOCKET, and without it
 *                     /run/rocid/rocid.sock
 * @return the context, or NULL with errno ENOENT or ECONNREFUSED (no rocid there), EACCES (no
 * permission for the socket), ENAMETOOLONG, EPROTONOSUPPORT (rocid and this library have no
 * version in common), EUSERS (rocid serves as many programs as it can, or as a user may run).
 */
ROCI_API struct roci_context *roci_open(const char *socket_path);

/**
 * Ends the session. rocid destroys all that is left of it, and memory of roci_alloc_mem() is
 * unmapped; the program's handles of it become invalid.
 * @return 0, or EBUSY: the program still has PDs, CQs or channels, which are to be destroyed
 * first (as ibv_close_device() demands); nothing happened.
 */
ROCI_API int roci_close(struct roci_context *ctx);

/**
 * The sentence that belongs to the calling thread's last failed call; "" before the first.
 * Valid until the thread's next call of this library.
 */
ROCI_API const char *roci_last_error(void);

enum roci_atomic_cap {
	ROCI_ATOMIC_NONE,
	ROCI_ATOMIC_HCA,
	ROCI_ATOMIC_GLOB,
};

/** What the device can do. */
struct roci_device_attr {
	size_t size;		/**< sizeof(struct roci_device_attr) */
	char fw_ver[32];	/**< rocid's version */
	uint64_t node_guid;	/**< EUI-64, bytes as on the wire */
	uint32_t phys_port_cnt; /**< ports are 1 .. this */
	uint32_t max_qp;
	uint32_t max_qp_wr;	  /**< work requests a queue */
	uint32_t max_sge;	  /**< scatter/gather entries a work request */
	uint32_t max_inline_data; /**< bytes */
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_mr;
	uint32_t max_pd;
	uint32_t max_qp_rd_atom; /**< RDMA READs outstanding, either direction */
	uint32_t max_pkeys;
	enum roci_atomic_cap atomic_cap;
};

/** Fills @p attr.  @return 0 or an errno value. */
ROCI_API int roci_query_device(struct roci_context *ctx, struct roci_device_attr *attr);

/** Path MTU; the value is not in bytes: see roci_mtu_bytes(). */
enum roci_mtu {
	ROCI_MTU_256 = 1,
	ROCI_MTU_512 = 2,
	ROCI_MTU_1024 = 3,
	ROCI_MTU_2048 = 4,
	ROCI_MTU_4096 = 5,
};

/** @return @p mtu in bytes. */
static inline uint32_t roci_mtu_bytes(enum roci_mtu mtu)
{
	return 128u << mtu;
}

/** @return the enum roci_mtu of exactly @p bytes, 0 if there is none. */
static inline int roci_mtu_of_bytes(uint32_t bytes)
{
	for (int mtu = ROCI_MTU_256; mtu <= ROCI_MTU_4096; mtu++)
		if (128u << mtu == bytes)
			return mtu;
	return 0;
}

enum roci_port_state {
	ROCI_PORT_NOP = 0,
	ROCI_PORT_DOWN = 1,
	ROCI_PORT_INIT = 2,
	ROCI_PORT_ARMED = 3,
	ROCI_PORT_ACTIVE = 4,
	ROCI_PORT_ACTIVE_DEFER = 5,
};

/** State of a port. RoCE ports have no LID, no subnet manager (GID-08). */
struct roci_port_attr {
	size_t size; /**< sizeof(struct roci_port_attr) */
	enum roci_port_state state;
	enum roci_mtu max_mtu;
	enum roci_mtu active_mtu; /**< largest that the Ethernet MTU lets through (GID-09) */
	uint32_t gid_tbl_len;
	uint32_t pkey_tbl_len;
	uint32_t speed_mbps; /**< 0: unknown */
	uint8_t mac[6];
	char netdev[16];	/**< the kernel netdev beside the port; "" if there is none */
	uint16_t bad_pkey_cntr; /**< packets dropped for their P_Key; stops at 0xFFFF */
};

/** Fills @p attr for @p port (1 ..).  @return 0; EINVAL: no such port. */
ROCI_API int roci_query_port(struct roci_context *ctx, uint32_t port, struct roci_port_attr *attr);

/** A GID: bytes as on the wire. IPv4 addresses are ::ffff:a.b.c.d (GID-04). */
union roci_gid {
	uint8_t raw[16];
	struct {
		uint64_t subnet_prefix; /* big-endian */
		uint64_t interface_id;	/* big-endian */
	} global;
};

/** Protocol that a GID table entry stands for (GID-01); a RoCEv2 entry is over IPv4 when its
 *  GID is IPv4-mapped, else over IPv6. */
enum roci_gid_type {
	ROCI_GID_TYPE_IB,
	ROCI_GID_TYPE_ROCE_V1,
	ROCI_GID_TYPE_ROCE_V2,
};

/** A GID table entry. */
struct roci_gid_entry {
	size_t size; /**< sizeof(struct roci_gid_entry) */
	union roci_gid gid;
	uint32_t gid_index;
	uint32_t port_num;
	enum roci_gid_type gid_type;
	uint32_t ndev_ifindex; /**< of the netdev that has the address; 0: static entry */
	uint16_t vid;	       /**< VLAN, 0: untagged */
	uint8_t mac[6];
};

/**
 * Reads entry @p index of @p port's GID table.
 * @return 0; EINVAL: no such port or index; ENODATA: the entry is empty.
 */
ROCI_API int roci_query_gid(
	struct roci_context *ctx, uint32_t port, uint32_t index, struct roci_gid_entry *entry);

/**
 * Finds the first RoCEv2 entry of @p port that suits a peer: of the same family as @p peer,
 * and link-local if @p peer is (A17.4.2). @p peer NULL: the first RoCEv2 entry that is not
 * link-local.
 * @return 0 and @p entry filled (its `size` set by the caller); EADDRNOTAVAIL: none does.
 */
ROCI_API int roci_find_gid(struct roci_context *ctx, uint32_t port, const union roci_gid *peer,
	struct roci_gid_entry *entry);

/** Reads entry @p index of @p port's P_Key table into @p pkey.  @return 0; EINVAL. */
ROCI_API int roci_query_pkey(
	struct roci_context *ctx, uint32_t port, uint32_t index, uint16_t *pkey);

/* --- protection domains and memory ----------------------------------------------------- */

/** A protection domain: what MRs and QPs must share to work together (MR-06). */
struct roci_pd {
	struct roci_context *context;
};

ROCI_API struct roci_pd *roci_alloc_pd(struct roci_context *ctx);

/** @return 0, or EBUSY: MRs or QPs still use it. */
ROCI_API int roci_dealloc_pd(struct roci_pd *pd);

enum roci_access_flags {
	ROCI_ACCESS_LOCAL_WRITE = 1 << 0,
	ROCI_ACCESS_REMOTE_WRITE = 1 << 1,
	ROCI_ACCESS_REMOTE_READ = 1 << 2,
	ROCI_ACCESS_REMOTE_ATOMIC = 1 << 3,
	ROCI_ACCESS_ZERO_BASED = 1 << 5,
};

/** A memory region. The fields are read-only. */
struct roci_mr {
	struct roci_context *context;
	struct roci_pd *pd;
	void *addr;    /**< where the program sees it */
	size_t length; /**< bytes */
	uint32_t lkey; /**< for struct roci_sge */
	uint32_t rkey; /**< for the peer */
};

/**
 * Allocates zeroed memory that can be registered: whole pages of a memfd, aligned to pages,
 * and to 2 MiB from 2 MiB on so that huge pages can back it.
 * @return its address, or NULL with errno EINVAL (@p length is 0), ENOMEM, EMFILE.
 */
ROCI_API void *roci_alloc_mem(struct roci_context *ctx, size_t length);

/**
 * Frees memory of roci_alloc_mem().
 * @return 0; EINVAL: @p addr is no such memory; EBUSY: MRs lie in it, deregister them first.
 */
ROCI_API int roci_free_mem(struct roci_context *ctx, void *addr);

/**
 * Registers [@p addr, @p addr + @p length), which must lie inside one allocation of
 * roci_alloc_mem(). Several MRs may overlap, with different rights.
 * @param access  enum roci_access_flags; remote write needs local write too (MR-02). With
 *                ROCI_ACCESS_ZERO_BASED the first byte has address 0 in SGEs and on the wire
 *                (MR-03).
 * @return the MR, or NULL with errno EOPNOTSUPP (the memory is not of roci_alloc_mem()),
 * EINVAL, ENOMEM, EDQUOT (too many MRs, or too much memory).
 */
ROCI_API struct roci_mr *roci_reg_mr(struct roci_pd *pd, void *addr, size_t length, int access);

/** As roci_reg_mr(), but the first byte has address @p iova in SGEs and on the wire (MR-04). */
ROCI_API struct roci_mr *roci_reg_mr_iova(
	struct roci_pd *pd, void *addr, size_t length, uint64_t iova, int access);

/** Allocates memory (see roci_alloc_mem()) and registers it; roci_dereg_mr() frees both. */
ROCI_API struct roci_mr *roci_alloc_mr(struct roci_pd *pd, size_t length, int access);

/**
 * Deregisters. When it returns, nothing touches the memory through this MR any more.
 * @return 0, or an errno value, the MR being as before.
 */
ROCI_API int roci_dereg_mr(struct roci_mr *mr);

/* --- completion channels and queues ---------------------------------------------------- */

/** Where completion events arrive. */
struct roci_channel {
	struct roci_context *context;
	/** Readable when roci_get_cq_event() has something: for poll() and O_NONBLOCK. */
	int fd;
};

ROCI_API struct roci_channel *roci_create_channel(struct roci_context *ctx);

/** @return 0, or EBUSY: CQs still use it. */
ROCI_API int roci_destroy_channel(struct roci_channel *channel);

/** A completion queue. The fields are read-only. */
struct roci_cq {
	struct roci_context *context;
	struct roci_channel *channel;
	void *user_data;
	int cqe; /**< how many completions it holds at least */
};

/**
 * Makes a completion queue for at least @p cqe completions (CQ-02).
 * @param user_data    what roci_get_cq_event() gives back
 * @param channel      where its events go; NULL: it has none
 * @param comp_vector  0
 * @return the CQ, or NULL with errno EINVAL (cqe 0 or beyond max_cqe, an unknown vector), or
 * EDQUOT (too many CQs, or too long).
 */
ROCI_API struct roci_cq *roci_create_cq(struct roci_context *ctx, int cqe, void *user_data,
	struct roci_channel *channel, int comp_vector);

/**
 * Destroys @p cq. Waits until each of its events that roci_get_cq_event() returned has been
 * acknowledged (CQ-07).
 * @return 0, or EBUSY: QPs still use it (CQ-12).
 */
ROCI_API int roci_destroy_cq(struct roci_cq *cq);

/**
 * Makes @p cq hold at least @p cqe completions, more or fewer than before; cq->cqe tells how
 * many. Completions that wait in it stay, in their order (CQ-11). Other threads may poll, post
 * and wait for events meanwhile.
 * @return 0; EINVAL: @p cqe is 0, beyond max_cqe, or less than what waits in the queue (CQ-11):
 * it is as before.
 */
ROCI_API int roci_resize_cq(struct roci_cq *cq, int cqe);

/** How a work request ended. */
enum roci_wc_status {
	ROCI_WC_SUCCESS,
	ROCI_WC_LOC_LEN_ERR,
	ROCI_WC_LOC_QP_OP_ERR,
	ROCI_WC_LOC_EEC_OP_ERR,
	ROCI_WC_LOC_PROT_ERR,
	ROCI_WC_WR_FLUSH_ERR,
	ROCI_WC_MW_BIND_ERR,
	ROCI_WC_BAD_RESP_ERR,
	ROCI_WC_LOC_ACCESS_ERR,
	ROCI_WC_REM_INV_REQ_ERR,
	ROCI_WC_REM_ACCESS_ERR,
	ROCI_WC_REM_OP_ERR,
	ROCI_WC_RETRY_EXC_ERR,
	ROCI_WC_RNR_RETRY_EXC_ERR,
	ROCI_WC_LOC_RDD_VIOL_ERR,
	ROCI_WC_REM_INV_RD_REQ_ERR,
	ROCI_WC_REM_ABORT_ERR,
	ROCI_WC_INV_EECN_ERR,
	ROCI_WC_INV_EEC_STATE_ERR,
	ROCI_WC_FATAL_ERR,
	ROCI_WC_RESP_TIMEOUT_ERR,
	ROCI_WC_GENERAL_ERR,
};

/** What a completion completes; bit 7 is set in those of the receive queue. */
enum roci_wc_opcode {
	ROCI_WC_SEND = 0,
	ROCI_WC_RDMA_WRITE = 1,
	ROCI_WC_RDMA_READ = 2,
	ROCI_WC_RECV = 1 << 7,
	ROCI_WC_RECV_RDMA_WITH_IMM = ROCI_WC_RECV + 1,
};

enum roci_wc_flags {
	ROCI_WC_GRH = 1 << 0,	   /**< a GRH precedes the payload (UD) */
	ROCI_WC_WITH_IMM = 1 << 1, /**< imm_data is valid */
	ROCI_WC_WITH_INV = 1 << 3, /**< invalidated_rkey is valid */
};

/** A work completion; laid out as struct ibv_wc. With a status that is not success only
 *  wr_id, status, qp_num and vendor_err are valid (CQ-08). */
struct roci_wc {
	uint64_t wr_id;
	enum roci_wc_status status;
	enum roci_wc_opcode opcode;
	uint32_t vendor_err; /**< the AETH syndrome where a NAK caused it (also of RETRY_EXC_ERR:
			      * the peer refused what is behind, and is gone), else 0 */
	uint32_t byte_len;   /**< of a receive: bytes that arrived; of a READ: its length */
	union {
		uint32_t imm_data;	   /**< with ROCI_WC_WITH_IMM; network order */
		uint32_t invalidated_rkey; /**< with ROCI_WC_WITH_INV */
	};
	uint32_t qp_num;
	uint32_t src_qp;       /**< UD */
	unsigned int wc_flags; /**< enum roci_wc_flags */
	uint16_t pkey_index;
	uint16_t slid; /**< 0 on RoCE */
	uint8_t sl;
	uint8_t dlid_path_bits; /**< 0 on RoCE */
};

/**
 * Takes up to @p num_entries completions. It never sleeps (CQ-13). Every few thousand empty
 * calls make one system call to see whether rocid is still there.
 * @return how many were written to @p wc; 0: none is there; -EIO: rocid is gone and all that
 * was outstanding has been flushed; -EINVAL: @p num_entries is negative; -ENOMEM: this process
 * could not map the ring of a resize.
 */
ROCI_API int roci_poll_cq(struct roci_cq *cq, int num_entries, struct roci_wc *wc);

/**
 * Asks for one event on the CQ's channel when the next completion arrives (CQ-03). What
 * already is in the queue raises none (CQ-04): call, then poll once more, then wait.
 * @param solicited_only  not 0: only for a solicited or failed one. It never weakens an
 *                        earlier request for any (CQ-05).
 * @return 0.
 */
ROCI_API int roci_req_notify_cq(struct roci_cq *cq, int solicited_only);

/**
 * Takes an event from @p channel, waiting for one unless its fd is O_NONBLOCK. Every event
 * must be acknowledged before its CQ can be destroyed. When rocid is gone, each CQ of the
 * channel is returned once more, so that programs poll what was flushed; after that EIO.
 * @param cq         receives the queue whose request it was
 * @param user_data  receives what was given to roci_create_cq(); may be NULL
 * @return 0, EAGAIN (O_NONBLOCK, none there), EINTR, EIO.
 */
ROCI_API int roci_get_cq_event(struct roci_channel *channel, struct roci_cq **cq, void **user_data);

/** Acknowledges @p nevents events of @p cq. */
ROCI_API void roci_ack_cq_events(struct roci_cq *cq, unsigned int nevents);

/* --- queue pairs ------------------------------------------------------------------------ */

enum roci_qp_type {
	ROCI_QPT_RC = 2,
};

enum roci_qp_state {
	ROCI_QPS_RESET,
	ROCI_QPS_INIT,
	ROCI_QPS_RTR,
	ROCI_QPS_RTS,
	ROCI_QPS_SQD,
	ROCI_QPS_SQE,
	ROCI_QPS_ERR,
};

struct roci_qp_cap {
	uint32_t max_send_wr; /**< work requests outstanding */
	uint32_t max_recv_wr;
	uint32_t max_send_sge; /**< SGEs a work request */
	uint32_t max_recv_sge;
	uint32_t max_inline_data; /**< bytes */
};

struct roci_qp_init_attr {
	size_t size; /**< sizeof(struct roci_qp_init_attr) */
	void *user_data;
	struct roci_cq *send_cq;
	struct roci_cq *recv_cq;
	/** In: what is needed at least; out: what there is. */
	struct roci_qp_cap cap;
	enum roci_qp_type qp_type;
	int sq_sig_all; /**< not 0: every send is signaled (REQ-14) */
};

/** A queue pair. The fields are read-only. */
struct roci_qp {
	struct roci_context *context;
	struct roci_pd *pd;
	struct roci_cq *send_cq;
	struct roci_cq *recv_cq;
	void *user_data;
	uint32_t qp_num; /**< 24 bits */
	enum roci_qp_type qp_type;
};

/**
 * Makes a QP in state RESET.
 * @param attr  cap is updated to what the QP really has
 * @return the QP, or NULL with errno EINVAL (a capability beyond roci_query_device(); a CQ or
 * PD of another context; type 0, which is QP0: QPS-24), EOPNOTSUPP (any other type: QPS-25),
 * EDQUOT (too many QPs, or too long queues), ENOSPC (rocid has no more).
 */
ROCI_API struct roci_qp *roci_create_qp(struct roci_pd *pd, struct roci_qp_init_attr *attr);

/** Route to the peer. */
struct roci_global_route {
	union roci_gid dgid;
	uint32_t flow_label; /**< 20 bits; 0: made of the QPNs (ENT-02) */
	uint8_t sgid_index;  /**< our GID; it selects protocol, source address, VLAN (GID-05) */
	uint8_t hop_limit;
	uint8_t traffic_class; /**< DSCP << 2 */
};

struct roci_ah_attr {
	struct roci_global_route grh;
	uint8_t sl;	   /**< 0..7: the VLAN priority */
	uint8_t is_global; /**< must be 1 on RoCE */
	uint8_t port_num;  /**< 1 .. */
};

/** Attributes of a QP; which of them count is said by a mask of enum roci_qp_attr_mask. */
struct roci_qp_attr {
	size_t size; /**< sizeof(struct roci_qp_attr) */
	enum roci_qp_state qp_state;
	enum roci_qp_state cur_qp_state;
	enum roci_mtu path_mtu; /**< at most the port's active_mtu */
	uint32_t qkey;
	uint32_t rq_psn;      /**< 24 bits: first PSN that the peer sends */
	uint32_t sq_psn;      /**< 24 bits: first PSN that we send */
	uint32_t dest_qp_num; /**< 24 bits */
	int qp_access_flags;  /**< enum roci_access_flags: what the peer may do */
	uint16_t pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;	    /**< query only */
	uint8_t max_rd_atomic;	    /**< READs that we may have outstanding at the peer */
	uint8_t max_dest_rd_atomic; /**< READs of the peer outstanding here */
	uint8_t min_rnr_timer;	    /**< code 0..31 */
	uint8_t port_num;	    /**< 1 .. */
	uint8_t timeout;   /**< 0..31: local ACK timeout 4.096 us * 2^timeout; 0: infinite */
	uint8_t retry_cnt; /**< 0..7, all finite (REQ-25) */
	uint8_t rnr_retry; /**< 0..7; 7: for ever */
	struct roci_ah_attr ah_attr;
	struct roci_qp_cap cap; /**< query only */
};

enum roci_qp_attr_mask {
	ROCI_QP_STATE = 1 << 0,
	ROCI_QP_CUR_STATE = 1 << 1,
	ROCI_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	ROCI_QP_ACCESS_FLAGS = 1 << 3,
	ROCI_QP_PKEY_INDEX = 1 << 4,
	ROCI_QP_PORT = 1 << 5,
	ROCI_QP_QKEY = 1 << 6,
	ROCI_QP_AV = 1 << 7,
	ROCI_QP_PATH_MTU = 1 << 8,
	ROCI_QP_TIMEOUT = 1 << 9,
	ROCI_QP_RETRY_CNT = 1 << 10,
	ROCI_QP_RNR_RETRY = 1 << 11,
	ROCI_QP_RQ_PSN = 1 << 12,
	ROCI_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	ROCI_QP_MIN_RNR_TIMER = 1 << 15,
	ROCI_QP_SQ_PSN = 1 << 16,
	ROCI_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	ROCI_QP_CAP = 1 << 19,
	ROCI_QP_DEST_QPN = 1 << 20,
};

/**
 * Changes attributes. The state table is verbs' own: RESET to INIT needs
 * PKEY_INDEX, PORT, ACCESS_FLAGS; INIT to RTR needs AV, PATH_MTU, DEST_QPN, RQ_PSN,
 * MAX_DEST_RD_ATOMIC, MIN_RNR_TIMER; RTR to RTS needs TIMEOUT, RETRY_CNT, RNR_RETRY, SQ_PSN,
 * MAX_QP_RD_ATOMIC. Going to RESET discards what is posted and what it completed (QPS-16);
 * no other thread may post meanwhile.
 * @param mask  enum roci_qp_attr_mask
 * @return 0; EINVAL: a transition, attribute or value that is not allowed; EHOSTUNREACH or
 * ETIMEDOUT: the peer's MAC address could not be found. The QP is then as before (QPS-14). In
 * SQD attributes change only once the send queue is drained (QPS-19).
 */
ROCI_API int roci_modify_qp(struct roci_qp *qp, const struct roci_qp_attr *attr, int mask);

/**
 * Reads all attributes (QPS-21).
 * @param attr       its `size` set by the caller; may be NULL
 * @param mask       what the caller wants at least; everything is filled in
 * @param init_attr  receives how the QP was made; its `size` set by the caller; may be NULL
 * @return 0 or an errno value.
 */
ROCI_API int roci_query_qp(struct roci_qp *qp, struct roci_qp_attr *attr, int mask,
	struct roci_qp_init_attr *init_attr);

/**
 * Destroys @p qp. When it returns, nothing of it touches application memory (QPS-22), and its
 * completions are gone from the CQs. Waits until its async events have been acknowledged.
 */
ROCI_API int roci_destroy_qp(struct roci_qp *qp);

/* --- work requests ---------------------------------------------------------------------- */

/** A piece of registered memory; laid out as struct ibv_sge. */
struct roci_sge {
	uint64_t addr;
	uint32_t length; /**< bytes; 0 is none, with any lkey */
	uint32_t lkey;
};

enum roci_wr_opcode {
	ROCI_WR_RDMA_WRITE = 0,
	ROCI_WR_RDMA_WRITE_WITH_IMM = 1,
	ROCI_WR_SEND = 2,
	ROCI_WR_SEND_WITH_IMM = 3,
	ROCI_WR_RDMA_READ = 4,
};

enum roci_send_flags {
	ROCI_SEND_FENCE = 1 << 0,     /**< starts after all earlier READs (REQ-10) */
	ROCI_SEND_SIGNALED = 1 << 1,  /**< makes a completion also when it succeeds */
	ROCI_SEND_SOLICITED = 1 << 2, /**< wakes a peer that waits for solicited ones */
	ROCI_SEND_INLINE = 1 << 3,    /**< copy the data now; lkeys do not count (REQ-15) */
};

/** A send work request; laid out as the first members of struct ibv_send_wr. */
struct roci_send_wr {
	uint64_t wr_id;		   /**< what its completion carries */
	struct roci_send_wr *next; /**< posted after this one; NULL ends the list */
	struct roci_sge *sg_list;
	int num_sge;
	enum roci_wr_opcode opcode;
	unsigned int send_flags; /**< enum roci_send_flags */
	union {
		uint32_t imm_data; /**< *_WITH_IMM; network order */
		uint32_t invalidate_rkey;
	};
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma; /**< RDMA_* */
	} wr;
};

/** A receive work request; laid out as struct ibv_recv_wr. */
struct roci_recv_wr {
	uint64_t wr_id;
	struct roci_recv_wr *next;
	struct roci_sge *sg_list;
	int num_sge;
};

/**
 * Posts a list of send work requests. On failure those before @p bad_wr stay posted, the
 * others are not (REQ-17).
 * @param bad_wr  receives the one that failed; may be NULL
 * @return 0, or
 * - EINVAL: the QP is in RESET, INIT or RTR (REQ-20); an unknown opcode or flag, more SGEs or
 *   inline data than the QP has (REQ-16, REQ-17), a message longer than 2^31 bytes (REQ-07);
 * - ENOMEM: the send queue is full (REQ-19); a request leaves it when its completion, or a
 *   later one, is polled, an unsignaled one when it is done;
 * - EIO: rocid is gone.
 * In state ERR requests are accepted and completed with ROCI_WC_WR_FLUSH_ERR.
 */
ROCI_API int roci_post_send(
	struct roci_qp *qp, const struct roci_send_wr *wr, const struct roci_send_wr **bad_wr);

/**
 * Posts a list of receive work requests; errors as for roci_post_send(). EINVAL: the QP is in
 * RESET (QPS-17), or more SGEs than it has. ENOMEM: the queue is full; a request leaves it
 * when its completion is polled.
 */
ROCI_API int roci_post_recv(
	struct roci_qp *qp, const struct roci_recv_wr *wr, const struct roci_recv_wr **bad_wr);

/* --- asynchronous events ---------------------------------------------------------------- */

enum roci_event_type {
	ROCI_EVENT_CQ_ERR = 0, /**< the CQ overflowed (CQ-01) */
	ROCI_EVENT_QP_FATAL = 1,
	ROCI_EVENT_QP_REQ_ERR = 2,
	ROCI_EVENT_QP_ACCESS_ERR = 3,
	ROCI_EVENT_COMM_EST = 4, /**< first packet while in RTR */
	ROCI_EVENT_SQ_DRAINED = 5,
	ROCI_EVENT_DEVICE_FATAL = 8, /**< rocid is gone */
	ROCI_EVENT_PORT_ACTIVE = 9,
	ROCI_EVENT_PORT_ERR = 10,
	ROCI_EVENT_QP_LAST_WQE_REACHED = 16,
	ROCI_EVENT_GID_CHANGE = 18,
};

struct roci_async_event {
	size_t size; /**< sizeof(struct roci_async_event) */
	union {
		struct roci_cq *cq; /**< CQ_* */
		struct roci_qp *qp; /**< QP_*, COMM_EST, SQ_DRAINED */
		uint32_t port_num;  /**< PORT_*, GID_CHANGE */
	} element;
	enum roci_event_type event_type;
};

/**
 * Takes an async event, waiting for one unless async_fd is O_NONBLOCK. Every event must be
 * acknowledged before its object can be destroyed. When rocid is gone the last event is
 * ROCI_EVENT_DEVICE_FATAL; after that EIO.
 * @return 0, EAGAIN, EINTR, EIO.
 */
ROCI_API int roci_get_async_event(struct roci_context *ctx, struct roci_async_event *event);

/** Acknowledges @p event. */
ROCI_API void roci_ack_async_event(struct roci_async_event *event);

/* --- names ------------------------------------------------------------------------------ */

/** @return a few words for @p status; never NULL. */
ROCI_API const char *roci_wc_status_str(enum roci_wc_status status);

/** @return a few words for @p type; never NULL. */
ROCI_API const char *roci_event_type_str(enum roci_event_type type);

/** @return "RESET", "INIT", ...; never NULL. */
ROCI_API const char *roci_qp_state_str(enum roci_qp_state state);

/** @return "DOWN", "ACTIVE", ...; never NULL. */
ROCI_API const char *roci_port_state_str(enum roci_port_state state);

#ifdef __cplusplus
}
#endif

#endif
