/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file roci.h
 * Queue pairs from rocid, the RoCE daemon: the API of libroci.
 *
 * Objects, functions, constants and their values are those of verbs with the prefix `roci_`; if you
 * know libibverbs, you know this library. The differences: there is one device per context, reached
 * through rocid's socket; and option structures begin with their `size`.
 *
 * **Results.** Functions that return a pointer return NULL on failure and set errno. Functions that
 * return int return 0 or a positive errno value, except roci_poll_cq(). After a failure,
 * roci_last_error() returns a sentence that says what went wrong and what to do about it. Any
 * control call may also fail with
 * - EIO: rocid is gone; see "Death of the daemon" below,
 * - EPROTO: the library does not understand rocid's reply,
 * - ENOMEM: this process or rocid is out of memory or of a quota,
 * - EINVAL: an argument is wrong, or the `size` of a structure is not set.
 *
 * **Sizes.** If a structure begins with `size`, the caller sets it to sizeof that structure. A
 * newer library then accesses only the members that an older program knows.
 *
 * **Threads.** Any thread may call any function. roci_post_send(), roci_post_recv() and
 * roci_poll_cq() take one short spin lock of their queue; different queues share no lock. Control
 * calls of one context are serialized. As in verbs, no call may use an object while another thread
 * destroys it. Signal handlers must not call the library.
 *
 * **fork().** A child must not use its parent's objects; the library closes its copies of their
 * descriptors. The child has a copy of memory that the parent has registered, but shares memory of
 * roci_alloc_mem() with it. It may open sessions of its own.
 *
 * **Byte order.** Host order, except GIDs and immediate data, which are in wire order.
 *
 * **Death of the daemon.** When rocid ends, roci_poll_cq() first returns the completions that are
 * ready, then a ROCI_WC_WR_FLUSH_ERR for each outstanding work request, then -EIO. Threads that
 * wait for events are woken likewise. The program must still destroy its objects; roci_open()
 * starts a new session.
 */
#ifndef ROCI_H
#define ROCI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks the functions that the library exports. */
#if defined(__GNUC__)
#define ROCI_API __attribute__((visibility("default")))
#else
#define ROCI_API
#endif

#include "roci_mw.h"

/* --- context -------------------------------------------------------------------------- */

/** A session with rocid. The members are read-only. */
struct roci_context {
	/** The session's socket. rocid ends the session when it is closed. */
	int cmd_fd;
	/** Readable when roci_get_async_event() has an event: for poll() and O_NONBLOCK. */
	int async_fd;
	/** Name of the device, "roci0" unless rocid has another one (--device). */
	const char *device;
};

/**
 * Opens a session.
 * @param socket_path  rocid's socket; NULL: the environment variable ROCI_SOCKET, or if it is not
 *                     set /run/rocid/rocid.sock
 * @return the context, or NULL with errno ENOENT or ECONNREFUSED (no rocid there), EACCES (no
 * permission for the socket), ENAMETOOLONG, EPROTONOSUPPORT (rocid and this library have no version
 * in common), EUSERS (rocid has as many sessions as it can serve, or as it allows a user).
 */
ROCI_API struct roci_context *roci_open(const char *socket_path);

/** The device of a rocid, as shown without a session. */
struct roci_device_info {
	size_t size;	    /**< sizeof(struct roci_device_info) */
	char name[16];	    /**< of the device */
	uint64_t node_guid; /**< EUI-64, bytes as on the wire */
	uint32_t ports;	    /**< numbered 1 .. this */
};

/**
 * Asks a rocid for its device, without opening a session.
 * @param socket_path  as for roci_open()
 * @param info         filled in; the caller sets its `size`
 * @return 0, or an errno value as for roci_open().
 */
ROCI_API int roci_probe(const char *socket_path, struct roci_device_info *info);

/**
 * Ends the session. rocid destroys all objects left in it, and memory of roci_alloc_mem()
 * is unmapped; the program's handles become invalid.
 * @param ctx  the session
 * @return 0, or EBUSY: the program still has PDs, CQs or channels, which must be destroyed first
 * (as with ibv_close_device()); nothing changed.
 */
ROCI_API int roci_close(struct roci_context *ctx);

/**
 * Explains the last failure.
 * @return a sentence that says why the calling thread's last failed call failed and what to do
 * about it; "" before the first failure. Valid until the thread's next call of this library.
 */
ROCI_API const char *roci_last_error(void);

/** The operations with which atomic operations are atomic. */
enum roci_atomic_cap {
	ROCI_ATOMIC_NONE, /**< there are no atomic operations */
	ROCI_ATOMIC_HCA,  /**< with each other, through this device */
	ROCI_ATOMIC_GLOB, /**< with atomic operations of CPUs, too */
};

/** Capabilities of the device. */
struct roci_device_attr {
	size_t size;		  /**< sizeof(struct roci_device_attr) */
	char fw_ver[32];	  /**< rocid's version */
	uint64_t node_guid;	  /**< EUI-64, bytes as on the wire */
	uint32_t phys_port_cnt;	  /**< ports are numbered 1 .. this */
	uint32_t max_qp;	  /**< QPs; the administrator may allow a program fewer */
	uint32_t max_qp_wr;	  /**< work requests per queue */
	uint32_t max_sge;	  /**< scatter/gather entries per work request */
	uint32_t max_inline_data; /**< bytes per work request */
	uint32_t max_cq;	  /**< CQs */
	uint32_t max_cqe;	  /**< completions per CQ */
	uint32_t max_mr;	  /**< MRs */
	uint32_t max_pd;	  /**< PDs */
	uint32_t max_qp_rd_atom;  /**< outstanding READs, atomics and FLUSHes, per direction */
	uint32_t max_pkeys;	  /**< entries of a port's P_Key table */
	enum roci_atomic_cap atomic_cap; /**< ROCI_ATOMIC_GLOB */
	uint32_t max_mw;		 /**< memory windows and MRs together */
	uint32_t max_ah;		 /**< address handles */
	uint32_t max_srq;		 /**< SRQs */
	uint32_t max_srq_wr;		 /**< work requests per SRQ */
	uint32_t max_srq_sge;		 /**< scatter/gather entries per work request of an SRQ */
	uint32_t max_sge_rd;		 /**< scatter/gather entries per READ */
	uint32_t max_mcast_grp;		 /**< multicast groups */
	uint32_t max_mcast_qp_attach;	 /**< QPs per multicast group */
	uint32_t max_total_mcast_qp_attach; /**< attachments of all QPs */
	uint32_t max_res_rd_atom;	    /**< READs and atomics of peers, over all QPs */
	uint32_t timestamp_bits;	    /**< significant bits of a completion's timestamp */
	uint32_t hca_core_clock;	    /**< of timestamps, kHz */
	uint8_t local_ca_ack_delay; /**< 4.096 us * 2^this: how long an ACK may be delayed */
};

/**
 * Returns the capabilities of the device.
 * @param ctx   the session
 * @param attr  filled in; the caller sets its `size`
 * @return 0 or an errno value.
 */
ROCI_API int roci_query_device(struct roci_context *ctx, struct roci_device_attr *attr);

/** Path MTU; the value is an enumeration, not bytes: see roci_mtu_bytes(). */
enum roci_mtu {
	ROCI_MTU_256 = 1,  /**< 256 bytes */
	ROCI_MTU_512 = 2,  /**< 512 bytes */
	ROCI_MTU_1024 = 3, /**< 1024 bytes: fits an Ethernet MTU of 1500 */
	ROCI_MTU_2048 = 4, /**< 2048 bytes: needs an Ethernet MTU of 2144 */
	ROCI_MTU_4096 = 5, /**< 4096 bytes: needs an Ethernet MTU of 4192 */
};

/**
 * Converts the enumeration to bytes.
 * @param mtu  a valid value
 * @return @p mtu in bytes.
 */
static inline uint32_t roci_mtu_bytes(enum roci_mtu mtu)
{
	return 128u << mtu;
}

/**
 * Converts bytes to the enumeration.
 * @param bytes  256, 512, 1024, 2048 or 4096
 * @return the enum roci_mtu of exactly @p bytes, or 0.
 */
static inline int roci_mtu_of_bytes(uint32_t bytes)
{
	for (int mtu = ROCI_MTU_256; mtu <= ROCI_MTU_4096; mtu++)
		if (128u << mtu == bytes)
			return mtu;
	return 0;
}

/** States of a port, as in verbs; a RoCE port is DOWN or ACTIVE. */
enum roci_port_state {
	ROCI_PORT_NOP = 0,	    /**< not used by RoCE */
	ROCI_PORT_DOWN = 1,	    /**< no link */
	ROCI_PORT_INIT = 2,	    /**< not used by RoCE */
	ROCI_PORT_ARMED = 3,	    /**< not used by RoCE */
	ROCI_PORT_ACTIVE = 4,	    /**< the link is up */
	ROCI_PORT_ACTIVE_DEFER = 5, /**< not used by RoCE */
};

/** Link layers of ports, as in verbs. */
enum roci_link_layer {
	ROCI_LINK_LAYER_ETHERNET = 2, /**< every port of rocid */
};

/** RoCE versions that a port speaks (annex A17.5.1: its port type, and "RoCE supported"). */
enum roci_roce_version {
	ROCI_ROCE_V1 = 1 << 0, /**< EtherType 0x8915 */
	ROCI_ROCE_V2 = 1 << 1, /**< UDP port 4791; every port does */
};

/** State of a port. RoCE ports have neither a LID nor a subnet manager (GID-08). */
struct roci_port_attr {
	size_t size;		    /**< sizeof(struct roci_port_attr) */
	enum roci_port_state state; /**< DOWN or ACTIVE */
	enum roci_mtu max_mtu;	    /**< largest that the device supports */
	enum roci_mtu active_mtu;   /**< largest that the Ethernet MTU allows (GID-09) */
	uint32_t gid_tbl_len;	    /**< entries of the GID table, including empty ones */
	uint32_t pkey_tbl_len;	    /**< entries of the P_Key table */
	uint32_t speed_mbps;	    /**< 0: unknown */
	uint8_t mac[6];		    /**< of the port */
	char netdev[16];	    /**< its kernel netdev; "" if there is none */
	uint16_t bad_pkey_cntr;	    /**< packets dropped for their P_Key; saturates at 0xFFFF */
	uint16_t qkey_viol_cntr;    /**< datagrams dropped for their Q_Key; saturates at 0xFFFF */
	enum roci_link_layer link_layer; /**< Ethernet */
	uint32_t roce_versions; /**< enum roci_roce_version: types that its GIDs may have */
};

/**
 * Returns a port's state, MTU, MAC and other attributes.
 * @param ctx   the session
 * @param port  from 1 to phys_port_cnt
 * @param attr  filled in; the caller sets its `size`
 * @return 0; EINVAL: no such port.
 */
ROCI_API int roci_query_port(struct roci_context *ctx, uint32_t port, struct roci_port_attr *attr);

/** A GID, in wire order. IPv4 addresses are IPv4-mapped: ten bytes 0, two bytes 0xFF, then the
 *  address (GID-04). */
union roci_gid {
	uint8_t raw[16]; /**< the bytes */
	/** The halves of a GID. */
	struct {
		uint64_t subnet_prefix; /**< big-endian */
		uint64_t interface_id;	/**< big-endian */
	} global;			/**< the same as two halves, as in verbs */
};

/** Protocol of a GID table entry (GID-01); a RoCEv2 entry uses IPv4 when its GID is IPv4-mapped,
 *  else IPv6. */
enum roci_gid_type {
	ROCI_GID_TYPE_IB,      /**< InfiniBand: never the type of an entry of rocid */
	ROCI_GID_TYPE_ROCE_V1, /**< EtherType 0x8915, within one Ethernet */
	ROCI_GID_TYPE_ROCE_V2, /**< UDP port 4791 */
};

/** A GID table entry. */
struct roci_gid_entry {
	size_t size;		     /**< sizeof(struct roci_gid_entry) */
	union roci_gid gid;	     /**< the address */
	uint32_t gid_index;	     /**< its index in the table: for sgid_index */
	uint32_t port_num;	     /**< the port whose table it is in, from 1 */
	enum roci_gid_type gid_type; /**< protocol of packets sent from it */
	uint32_t ndev_ifindex;	     /**< netdev that has the address; 0: static entry */
	uint16_t vid;		     /**< VLAN, 0: untagged */
	uint8_t mac[6];		     /**< source MAC of packets sent from it */
};

/**
 * Reads an entry of a port's GID table. Entries change with the addresses of the port's netdev
 * (ROCI_EVENT_GID_CHANGE); an address that returns gets its former index (GID-03).
 * @param ctx    the session
 * @param port   from 1
 * @param index  from 0 to gid_tbl_len - 1
 * @param entry  filled in; the caller sets its `size`
 * @return 0; EINVAL: no such port or index; ENODATA: the entry is empty.
 */
ROCI_API int roci_query_gid(
	struct roci_context *ctx, uint32_t port, uint32_t index, struct roci_gid_entry *entry);

/**
 * Reads the entries of a port's GID table that are not empty.
 * @param ctx    the session
 * @param port   from 1
 * @param entry  filled in; the caller sets the `size` of each
 * @param n      number of entries that there is room for
 * @return the number of entries filled in, or a negative errno: -EINVAL: no such port.
 */
ROCI_API int roci_query_gids(
	struct roci_context *ctx, uint32_t port, struct roci_gid_entry *entry, unsigned int n);

/**
 * Finds the first RoCEv2 entry of @p port for packets to a peer: of the same family as @p peer, and
 * link-local if @p peer is (A17.4.2).
 * @param ctx    the session
 * @param port   from 1
 * @param peer   GID of the peer; NULL: the first RoCEv2 entry that is not link-local
 * @param entry  filled in; the caller sets its `size`
 * @return 0; EADDRNOTAVAIL: there is none; give the port an address of the peer's family.
 */
ROCI_API int roci_find_gid(struct roci_context *ctx, uint32_t port, const union roci_gid *peer,
	struct roci_gid_entry *entry);

/**
 * Reads an entry of a port's P_Key table. Entry 0 is 0xFFFF unless an administrator changed it
 * (GID-07); the others are empty unless an administrator set them. ROCI_EVENT_PKEY_CHANGE reports
 * changes.
 * @param ctx    the session
 * @param port   from 1
 * @param index  from 0 to pkey_tbl_len - 1
 * @param pkey   receives the key, 0 for an empty entry
 * @return 0; EINVAL: no such port or index.
 */
ROCI_API int roci_query_pkey(
	struct roci_context *ctx, uint32_t port, uint32_t index, uint16_t *pkey);

#include "roci_mr.h"

/* --- completion channels and queues ---------------------------------------------------- */

/** A channel for completion events. */
struct roci_channel {
	struct roci_context *context; /**< its session */
	/** Readable when roci_get_cq_event() has an event: for poll() and O_NONBLOCK. */
	int fd;
};

/**
 * Creates a channel. Several CQs can share one.
 * @param ctx  the session
 * @return the channel, or NULL with errno ENOMEM, EMFILE, EDQUOT or ENOSPC (too many).
 */
ROCI_API struct roci_channel *roci_create_channel(struct roci_context *ctx);

/**
 * Destroys a channel and closes its fd.
 * @param channel  the channel; its CQs must have been destroyed
 * @return 0, or EBUSY: CQs still use it.
 */
ROCI_API int roci_destroy_channel(struct roci_channel *channel);

/** A completion queue. The members are read-only. */
struct roci_cq {
	struct roci_context *context; /**< its session */
	struct roci_channel *channel; /**< for its events, or NULL */
	void *user_data;	      /**< from roci_create_cq() */
	int cqe;		      /**< completions that it can hold, at least */
};

/**
 * Creates a completion queue for at least @p cqe completions (CQ-02). A CQ that overflows raises
 * ROCI_EVENT_CQ_ERR, and its QPs fail (CQ-01): it needs room for all signaled send requests and all
 * receive requests that may be outstanding on it.
 * @param ctx          the session
 * @param cqe          from 1 to max_cqe
 * @param user_data    returned by roci_get_cq_event()
 * @param channel      for its events; NULL: it has none
 * @param comp_vector  0
 * @return the CQ, or NULL with errno EINVAL (cqe 0 or beyond max_cqe, an unknown vector), or EDQUOT
 * (too many CQs, or too long).
 */
ROCI_API struct roci_cq *roci_create_cq(struct roci_context *ctx, int cqe, void *user_data,
	struct roci_channel *channel, int comp_vector);

/** Options of a completion queue. */
enum roci_create_cq_flags {
	ROCI_CQ_TIMESTAMP = 1 << 0, /**< completions have timestamps */
};

/**
 * Like roci_create_cq(), with options.
 * @param ctx          the session
 * @param cqe          from 1 to max_cqe
 * @param user_data    returned by roci_get_cq_event()
 * @param channel      for its events; NULL: it has none
 * @param comp_vector  0
 * @param flags        enum roci_create_cq_flags
 * @return as roci_create_cq(); EOPNOTSUPP: rocid does not know a flag.
 */
ROCI_API struct roci_cq *roci_create_cq_flags(struct roci_context *ctx, int cqe, void *user_data,
	struct roci_channel *channel, int comp_vector, unsigned int flags);

/**
 * Destroys @p cq. Waits until every event of it that roci_get_cq_event() returned has been
 * acknowledged (CQ-07).
 * @param cq  the CQ; its QPs must have been destroyed
 * @return 0, or EBUSY: QPs still use it (CQ-12).
 */
ROCI_API int roci_destroy_cq(struct roci_cq *cq);

/**
 * Resizes @p cq to hold at least @p cqe completions, more or fewer than before; cq->cqe is set to
 * the new capacity. Waiting completions stay, in their order (CQ-11). Other threads may poll, post
 * and wait for events meanwhile.
 * @param cq   the CQ
 * @param cqe  from 1 to max_cqe
 * @return 0; EINVAL: @p cqe is 0, beyond max_cqe, or less than the number of waiting completions
 * (CQ-11); the CQ is unchanged.
 */
ROCI_API int roci_resize_cq(struct roci_cq *cq, int cqe);

/** Outcome of a work request. */
enum roci_wc_status {
	ROCI_WC_SUCCESS,	    /**< success */
	ROCI_WC_LOC_LEN_ERR,	    /**< the message exceeds its buffers, as in a short receive */
	ROCI_WC_LOC_QP_OP_ERR,	    /**< the request is invalid on this QP */
	ROCI_WC_LOC_EEC_OP_ERR,	    /**< not used by RC */
	ROCI_WC_LOC_PROT_ERR,	    /**< an SGE: unknown lkey, wrong PD, out of bounds, no right */
	ROCI_WC_WR_FLUSH_ERR,	    /**< not executed: the QP had failed, or rocid is gone */
	ROCI_WC_MW_BIND_ERR,	    /**< binding a window or invalidating a key failed */
	ROCI_WC_BAD_RESP_ERR,	    /**< the peer sent an unexpected response */
	ROCI_WC_LOC_ACCESS_ERR,	    /**< not generated by rocid */
	ROCI_WC_REM_INV_REQ_ERR,    /**< the peer refused it: too long, or not allowed */
	ROCI_WC_REM_ACCESS_ERR,	    /**< the peer refused it: rkey, bounds or right */
	ROCI_WC_REM_OP_ERR,	    /**< the peer failed while executing it */
	ROCI_WC_RETRY_EXC_ERR,	    /**< the peer did not respond: timeout x retry_cnt */
	ROCI_WC_RNR_RETRY_EXC_ERR,  /**< the peer had no receive posted, rnr_retry times */
	ROCI_WC_LOC_RDD_VIOL_ERR,   /**< not used by RC */
	ROCI_WC_REM_INV_RD_REQ_ERR, /**< not used by RC */
	ROCI_WC_REM_ABORT_ERR,	    /**< not generated by rocid */
	ROCI_WC_INV_EECN_ERR,	    /**< not used by RC */
	ROCI_WC_INV_EEC_STATE_ERR,  /**< not used by RC */
	ROCI_WC_FATAL_ERR,	    /**< not generated by rocid */
	ROCI_WC_RESP_TIMEOUT_ERR,   /**< not generated by rocid */
	ROCI_WC_GENERAL_ERR,	    /**< not generated by rocid */
};

/** The kind of request completed; bit 7 is set for the receive queue. */
enum roci_wc_opcode {
	ROCI_WC_SEND = 0,	  /**< a SEND of ours */
	ROCI_WC_RDMA_WRITE = 1,	  /**< a WRITE of ours */
	ROCI_WC_RDMA_READ = 2,	  /**< a READ of ours: the data are in place */
	ROCI_WC_COMP_SWAP = 3,	  /**< an atomic of ours: the original word is in place */
	ROCI_WC_FETCH_ADD = 4,	  /**< an atomic of ours: the original word is in place */
	ROCI_WC_BIND_MW = 5,	  /**< a window is bound, or unbound */
	ROCI_WC_LOCAL_INV = 6,	  /**< an rkey of ours is invalid and no longer in use */
	ROCI_WC_FLUSH = 8,	  /**< a FLUSH of ours: earlier WRITEs are placed */
	ROCI_WC_ATOMIC_WRITE = 9, /**< an ATOMIC WRITE of ours */
	ROCI_WC_RECV = 1 << 7,	  /**< a message arrived */
	ROCI_WC_RECV_RDMA_WITH_IMM = ROCI_WC_RECV + 1, /**< a WRITE with immediate data arrived */
};

/** How a message arrived (UD-10, XRC-05): the details that struct roci_wc has no room for. */
struct roci_wc_net {
	enum roci_gid_type type; /**< ROCI_GID_TYPE_ROCE_V1 or _V2 */
	uint8_t is_ipv4;	 /**< V2: over IPv4, else over IPv6 */
	uint8_t smac[6];	 /**< source MAC of the frame: the peer's, or the last router's */
	uint16_t vlan_id;	 /**< 0: untagged */
	uint32_t srq_num;	 /**< XRC: the SRQ that the receive was taken from; else 0 */
};

/** Optional contents of a completion. */
enum roci_wc_flags {
	ROCI_WC_GRH = 1 << 0,	   /**< 40 bytes precede the payload (UD): struct roci_grh_area */
	ROCI_WC_WITH_IMM = 1 << 1, /**< imm_data is valid */
	ROCI_WC_WITH_INV = 1 << 3, /**< invalidated_rkey is valid */
};

/** A work completion; laid out as struct ibv_wc. Unless its status is success, only wr_id, status,
 *  qp_num and vendor_err are valid (CQ-08). */
struct roci_wc {
	uint64_t wr_id;		    /**< of the work request */
	enum roci_wc_status status; /**< outcome */
	enum roci_wc_opcode opcode; /**< kind of request */
	uint32_t vendor_err;	    /**< AETH syndrome of the NAK that caused it, else 0; with
				       RETRY_EXC_ERR: of a NAK for a later request */
	uint32_t byte_len;	    /**< receive: bytes that arrived; READ: its length */
	union {
		uint32_t imm_data;	   /**< with ROCI_WC_WITH_IMM; network order */
		uint32_t invalidated_rkey; /**< with ROCI_WC_WITH_INV */
	};
	uint32_t qp_num;	/**< our QP */
	uint32_t src_qp;	/**< UD: QP of the sender */
	unsigned int wc_flags;	/**< enum roci_wc_flags */
	uint16_t pkey_index;	/**< UD: index of the P_Key of the datagram */
	uint16_t slid;		/**< 0 on RoCE */
	uint8_t sl;		/**< UD: the VLAN priority, 0 when untagged */
	uint8_t dlid_path_bits; /**< 0 on RoCE */
};

/**
 * Takes up to @p num_entries completions. It never sleeps (CQ-13). One of every few thousand empty
 * calls makes a system call to check that rocid is alive.
 * @param cq           the CQ
 * @param num_entries  room in @p wc
 * @param wc           receives completions, in order for each queue of each QP
 * @return the number written to @p wc; 0: none is ready; -EIO: rocid is gone and all outstanding
 * requests have been flushed; -EINVAL: @p num_entries is negative; -ENOMEM: this process could not
 * map the ring of a resized CQ.
 */
ROCI_API int roci_poll_cq(struct roci_cq *cq, int num_entries, struct roci_wc *wc);

/**
 * Like roci_poll_cq(), and also returns how datagrams arrived (UD-10), and the SRQ from which the
 * receive of a message to an XRC target was taken (XRC-05), since several may share the CQ.
 * @param cq           the CQ
 * @param num_entries  room in @p wc and @p net
 * @param wc           as for roci_poll_cq()
 * @param net          net[i] belongs to wc[i]; valid for receives of a UD QP; srq_num is valid for
 *                     those of an XRC target
 * @return as roci_poll_cq().
 */
ROCI_API int roci_poll_cq_net(
	struct roci_cq *cq, int num_entries, struct roci_wc *wc, struct roci_wc_net *net);

/**
 * Requests one event on the CQ's channel when the next completion arrives (CQ-03). Completions
 * already in the queue raise none (CQ-04): call this, then poll once more, then wait.
 * @param cq              the CQ
 * @param solicited_only  not 0: only for a solicited or failed completion. It never weakens an
 *                        earlier request for any completion (CQ-05).
 * @return 0.
 */
ROCI_API int roci_req_notify_cq(struct roci_cq *cq, int solicited_only);

/**
 * Takes an event from @p channel, waiting for one unless its fd is O_NONBLOCK. Every event must be
 * acknowledged before its CQ can be destroyed. When rocid is gone, each CQ of the channel is
 * returned once more, so that the program polls the flushed completions; after that EIO.
 * @param channel    the channel
 * @param cq         receives the CQ that the event is for
 * @param user_data  receives the value given to roci_create_cq(); may be NULL
 * @return 0, EAGAIN (O_NONBLOCK and no event), EINTR, EIO.
 */
ROCI_API int roci_get_cq_event(struct roci_channel *channel, struct roci_cq **cq, void **user_data);

/**
 * Acknowledges events, which lets roci_destroy_cq() proceed. Acknowledging several at once costs
 * less.
 * @param cq       from roci_get_cq_event()
 * @param nevents  number of events, at most as many as were returned
 */
ROCI_API void roci_ack_cq_events(struct roci_cq *cq, unsigned int nevents);

#include "roci_srq.h"

/* --- queue pairs ------------------------------------------------------------------------ */

/** Transport services. */
enum roci_qp_type {
	/** QP1 of a port, for management datagrams: one per port, for root or rocid's own user
	 *  only. As UD, with Q_Key 0x80010000. */
	ROCI_QPT_GSI = 1,
	ROCI_QPT_RC = 2, /**< reliable connection: one peer; reliable and in order */
	/** Unreliable connection: one peer; SEND and WRITE only, of up to 2^31 bytes. A message
	 * that loses a packet is lost without notice; messages that arrive are whole, and in order
	 * if the network keeps the order. A send completes when its last packet has left. (IBA
	 * 9.8.2) */
	ROCI_QPT_UC = 3,
	/** Unreliable datagrams: to any peer, each at most as long as the port's path MTU. */
	ROCI_QPT_UD = 4,
	ROCI_QPT_XRC_SEND = 9,	/**< RC that only sends, to SRQs of the peer's domain (XRC-02) */
	ROCI_QPT_XRC_RECV = 10, /**< the other end of such a QP: no queues, no CQs */
};

/** States of a QP (IBA 10.3.1). */
enum roci_qp_state {
	ROCI_QPS_RESET, /**< new; nothing can be posted */
	ROCI_QPS_INIT,	/**< receives can be posted */
	ROCI_QPS_RTR,	/**< ready to receive */
	ROCI_QPS_RTS,	/**< ready to send, too */
	ROCI_QPS_SQD, /**< send queue drained: outstanding requests finish, new ones do not start */
	/** UC: a send failed, later ones complete with WR_FLUSH_ERR, receives continue. Back to RTS
	 *  with roci_modify_qp(); not used by RC. */
	ROCI_QPS_SQE,
	ROCI_QPS_ERR, /**< failed: everything posted completes with WR_FLUSH_ERR */
};

/** Capacities of a QP. */
struct roci_qp_cap {
	uint32_t max_send_wr;	  /**< outstanding send work requests, 1 .. max_qp_wr */
	uint32_t max_recv_wr;	  /**< outstanding receive work requests, 0 .. max_qp_wr */
	uint32_t max_send_sge;	  /**< SGEs per send work request, 0 .. max_sge */
	uint32_t max_recv_sge;	  /**< SGEs per receive work request, 0 .. max_sge */
	uint32_t max_inline_data; /**< bytes, 0 .. the device's max_inline_data */
};

/** Parameters of a new QP. */
struct roci_qp_init_attr {
	size_t size;		 /**< sizeof(struct roci_qp_init_attr) */
	void *user_data;	 /**< for the program's use, copied to struct roci_qp */
	struct roci_cq *send_cq; /**< where sends complete */
	struct roci_cq *recv_cq; /**< where receives complete; may be the same */
	/** In: the minimum needed; out: the actual values. */
	struct roci_qp_cap cap;
	enum roci_qp_type qp_type; /**< both ends must have the same */
	int sq_sig_all;		   /**< not 0: every send is signaled (REQ-14) */
	struct roci_srq *srq; /**< source of receives, instead of its own queue; cap.max_recv_* are
				 then ignored */
	struct roci_xrcd *xrcd; /**< XRC_RECV: its domain */
	uint32_t port_num;	/**< ROCI_QPT_GSI: the port of the QP1, from 1; 0 is 1 */
};

/** A queue pair. The members are read-only. */
struct roci_qp {
	struct roci_context *context; /**< its session */
	struct roci_pd *pd;	      /**< its PD */
	struct roci_cq *send_cq;      /**< where sends complete */
	struct roci_cq *recv_cq;      /**< where receives complete */
	void *user_data;	      /**< from roci_create_qp() */
	uint32_t qp_num;	      /**< 24 bits: give it to the peer */
	enum roci_qp_type qp_type;    /**< from roci_create_qp() */
	struct roci_srq *srq;	      /**< source of its receives; NULL: its own queue */
};

/**
 * Creates a QP in state RESET.
 * @param pd    the QP may use its MRs
 * @param attr  cap is updated to the actual values
 * @return the QP, or NULL with errno EINVAL (a capability beyond roci_query_device(); a CQ, SRQ or
 * PD of another context; type 0, which is QP0: QPS-24), EOPNOTSUPP (any other type: QPS-25), EDQUOT
 * (too many QPs, or too long queues), ENOSPC (rocid cannot hold more).
 */
ROCI_API struct roci_qp *roci_create_qp(struct roci_pd *pd, struct roci_qp_init_attr *attr);

/** Route to the peer. */
struct roci_global_route {
	union roci_gid dgid; /**< GID of the peer */
	uint32_t flow_label; /**< 20 bits; 0: derived from the QPNs (ENT-02) */
	uint8_t sgid_index;  /**< our GID; it selects protocol, source address and VLAN (GID-05) */
	uint8_t hop_limit;   /**< TTL of the packets; RoCEv2 to a single host: 0 means 64 */
	uint8_t traffic_class; /**< DSCP << 2 */
};

/** Address vector: the destination of a QP's packets. */
struct roci_ah_attr {
	struct roci_global_route grh; /**< addresses; RoCE uses no others */
	uint8_t sl;		      /**< 0..7: the VLAN priority */
	uint8_t is_global;	      /**< must be 1 on RoCE */
	uint8_t port_num;	      /**< from 1; for a connected QP: the QP's own */
};

/** Attributes of a QP; a mask of enum roci_qp_attr_mask selects the valid ones. */
struct roci_qp_attr {
	size_t size;			 /**< sizeof(struct roci_qp_attr) */
	enum roci_qp_state qp_state;	 /**< modify: the new state; query: the current one */
	enum roci_qp_state cur_qp_state; /**< the state that the caller assumes */
	enum roci_mtu path_mtu;		 /**< at most the port's active_mtu, and the peer's */
	uint32_t qkey;			 /**< UD: required of packets; bit 31: root only */
	uint32_t rq_psn;		 /**< 24 bits: first PSN that the peer will send */
	uint32_t sq_psn;		 /**< 24 bits: first PSN that we will send */
	uint32_t dest_qp_num;		 /**< 24 bits */
	int qp_access_flags;		 /**< enum roci_access_flags: rights of the peer */
	uint16_t pkey_index;		 /**< in the port's P_Key table */
	uint8_t en_sqd_async_notify;	 /**< not 0: raise ROCI_EVENT_SQ_DRAINED, on going to SQD */
	uint8_t sq_draining;		 /**< query only */
	uint8_t max_rd_atomic;		 /**< outstanding READs and atomics of ours */
	uint8_t max_dest_rd_atomic;	 /**< outstanding READs and atomics of the peer */
	uint8_t min_rnr_timer; /**< 0..31: how long the peer must wait when no receive is posted; 1:
				  0.01 ms, 12: 0.64 ms, 31: 491.52 ms, 0: 655.36 ms */
	uint8_t port_num;      /**< from 1 */
	uint8_t timeout;       /**< 0..31: local ACK timeout 4.096 us * 2^timeout; 0: infinite */
	uint8_t retry_cnt;     /**< 0..7, all of them finite (REQ-25) */
	uint8_t rnr_retry;     /**< 0..7; 7: unlimited */
	struct roci_ah_attr ah_attr; /**< the peer; UD: see roci_send_wr */
	struct roci_qp_cap cap;	     /**< query only */
};

/** Selects members of struct roci_qp_attr. */
enum roci_qp_attr_mask {
	ROCI_QP_STATE = 1 << 0,		      /**< qp_state */
	ROCI_QP_CUR_STATE = 1 << 1,	      /**< cur_qp_state */
	ROCI_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2, /**< en_sqd_async_notify */
	ROCI_QP_ACCESS_FLAGS = 1 << 3,	      /**< qp_access_flags */
	ROCI_QP_PKEY_INDEX = 1 << 4,	      /**< pkey_index */
	ROCI_QP_PORT = 1 << 5,		      /**< port_num */
	ROCI_QP_QKEY = 1 << 6,		      /**< qkey: UD */
	ROCI_QP_AV = 1 << 7,		      /**< ah_attr */
	ROCI_QP_PATH_MTU = 1 << 8,	      /**< path_mtu */
	ROCI_QP_TIMEOUT = 1 << 9,	      /**< timeout */
	ROCI_QP_RETRY_CNT = 1 << 10,	      /**< retry_cnt */
	ROCI_QP_RNR_RETRY = 1 << 11,	      /**< rnr_retry */
	ROCI_QP_RQ_PSN = 1 << 12,	      /**< rq_psn */
	ROCI_QP_MAX_QP_RD_ATOMIC = 1 << 13,   /**< max_rd_atomic */
	ROCI_QP_MIN_RNR_TIMER = 1 << 15,      /**< min_rnr_timer */
	ROCI_QP_SQ_PSN = 1 << 16,	      /**< sq_psn */
	ROCI_QP_MAX_DEST_RD_ATOMIC = 1 << 17, /**< max_dest_rd_atomic */
	ROCI_QP_CAP = 1 << 19,		      /**< cap: always refused */
	ROCI_QP_DEST_QPN = 1 << 20,	      /**< dest_qp_num */
};

/**
 * Changes attributes. The state table is that of verbs: RESET to INIT needs PKEY_INDEX, PORT,
 * ACCESS_FLAGS; INIT to RTR needs AV, PATH_MTU, DEST_QPN, RQ_PSN, MAX_DEST_RD_ATOMIC,
 * MIN_RNR_TIMER; RTR to RTS needs TIMEOUT, RETRY_CNT, RNR_RETRY, SQ_PSN, MAX_QP_RD_ATOMIC. Going to
 * RESET discards everything posted, and its completions (QPS-16); no other thread may post
 * meanwhile. In SQD attributes change only once the send queue is drained (QPS-19).
 * ah_attr.port_num must be the QP's port. In SQD, except for UC, an AV without PORT also sets its
 * port, and a new port needs an AV with that port.
 * @param qp    the QP
 * @param attr  the caller sets its `size`; only members selected by @p mask are read
 * @param mask  enum roci_qp_attr_mask
 * @return 0; EINVAL: a transition, attribute or value that is not allowed; EHOSTUNREACH,
 * ENETUNREACH or ETIMEDOUT: no route to the peer, or its MAC address could not be found; EBUSY: too
 * many of the program's QPs are being resolved, or a QP that is attached to multicast groups would
 * change its port. On failure the QP is unchanged (QPS-14).
 */
ROCI_API int roci_modify_qp(struct roci_qp *qp, const struct roci_qp_attr *attr, int mask);

/**
 * Reads all attributes (QPS-21).
 * @param qp         the QP
 * @param attr       the caller sets its `size`; may be NULL
 * @param mask       the attributes that the caller needs; all are filled in
 * @param init_attr  receives the parameters of creation; the caller sets its `size`; may be NULL
 * @return 0 or an errno value.
 */
ROCI_API int roci_query_qp(struct roci_qp *qp, struct roci_qp_attr *attr, int mask,
	struct roci_qp_init_attr *init_attr);

/** A limit of the rate of a QP. */
struct roci_rate_limit {
	size_t size;	 /**< sizeof(struct roci_rate_limit) */
	uint32_t kbps;	 /**< kbit/s on the wire, preamble and gap included: 1,000 to 1,000,000,000;
			    0: no limit */
	uint32_t burst;	 /**< most bytes that leave together, at least a packet; 0: rocid decides */
	uint32_t packet; /**< bytes of a typical packet, the unit of `burst`; 0: full packets */
};

/**
 * Limits the rate at which @p qp sends requests and READ responses. An administrator's limit and
 * congestion control apply, too; the lowest rate wins. RESET ends it.
 * @param qp    in any state
 * @param rate  the caller sets its `size`
 * @return 0; EINVAL: `kbps` is out of range; or another errno value.
 */
ROCI_API int roci_limit_qp(struct roci_qp *qp, const struct roci_rate_limit *rate);

/**
 * Explains in a sentence why @p qp went to ERR and what to do about it, with the rule that was
 * broken or applied in brackets (doc/rules.tsv): for programs that report why a work request
 * failed. It queries rocid, so it is a control call.
 * @param qp  in any state; it is not changed
 * @return the sentence; "" when the QP has not failed since RESET; roci_last_error() when rocid
 * cannot be queried. Never NULL. Valid until the thread's next call of this function.
 */
ROCI_API const char *roci_qp_error(struct roci_qp *qp);

/**
 * Destroys @p qp. When it returns, nothing accesses application memory on its behalf (QPS-22), and
 * its completions are gone from the CQs. Waits until its async events have been acknowledged.
 * @param qp  in any state
 * @return 0 or an errno value.
 */
ROCI_API int roci_destroy_qp(struct roci_qp *qp);

#include "roci_ud.h"

/* --- work requests ---------------------------------------------------------------------- */

/** A piece of registered memory; laid out as struct ibv_sge. */
struct roci_sge {
	uint64_t addr;	 /**< of the first byte, in the MR's address range (iova) */
	uint32_t length; /**< bytes; 0: empty, any lkey is accepted */
	uint32_t lkey;	 /**< of the MR */
};

/** Operation of a send work request. */
enum roci_wr_opcode {
	ROCI_WR_RDMA_WRITE = 0,		  /**< into the peer's memory, which is not notified */
	ROCI_WR_RDMA_WRITE_WITH_IMM = 1,  /**< as WRITE, and completes a receive of the peer */
	ROCI_WR_SEND = 2,		  /**< into the peer's next receive */
	ROCI_WR_SEND_WITH_IMM = 3,	  /**< as SEND, with immediate data */
	ROCI_WR_RDMA_READ = 4,		  /**< from the peer's memory into ours */
	ROCI_WR_ATOMIC_CMP_AND_SWP = 5,	  /**< sets the word to `swap` if it equals `compare_add` */
	ROCI_WR_ATOMIC_FETCH_AND_ADD = 6, /**< adds `compare_add` to the word, modulo 2^64 */
	ROCI_WR_LOCAL_INV = 7,	   /**< invalidates `invalidate_rkey`, of a type 2 window of ours */
	ROCI_WR_BIND_MW = 8,	   /**< binds a type 2 window as `bind_mw` says */
	ROCI_WR_SEND_WITH_INV = 9, /**< as SEND, and invalidates `invalidate_rkey` of the peer */
	ROCI_WR_FLUSH = 14,	   /**< completes when earlier WRITEs are placed (FLU-07) */
	ROCI_WR_ATOMIC_WRITE = 15, /**< 8 bytes, atomically; `rdma`, a multiple of 8 */
};

/** Options of a send work request. */
enum roci_send_flags {
	ROCI_SEND_FENCE = 1 << 0,     /**< starts after earlier READs and atomics (REQ-10) */
	ROCI_SEND_SIGNALED = 1 << 1,  /**< creates a completion on success, too */
	ROCI_SEND_SOLICITED = 1 << 2, /**< wakes a peer waiting for solicited completions */
	ROCI_SEND_INLINE = 1 << 3,    /**< copies the data at once; lkeys are ignored (REQ-15) */
};

/** Guarantee of a FLUSH. */
enum roci_placement_type {
	ROCI_FLUSH_GLOBAL = 1 << 0,	/**< written data are visible to everyone */
	ROCI_FLUSH_PERSISTENT = 1 << 1, /**< written data survive a power failure, too */
};

/** Range of a FLUSH. */
enum roci_selectivity_level {
	ROCI_FLUSH_RANGE = 0, /**< `length` bytes at `remote_addr` */
	ROCI_FLUSH_MR = 1,    /**< the whole region or window */
};

/** A send work request; laid out as the first members of struct ibv_send_wr. */
struct roci_send_wr {
	uint64_t wr_id;		    /**< returned in its completion */
	struct roci_send_wr *next;  /**< posted after this one; NULL ends the list */
	struct roci_sge *sg_list;   /**< data to send, or buffers for a READ's data */
	int num_sge;		    /**< length of sg_list, 0 .. max_send_sge */
	enum roci_wr_opcode opcode; /**< operation */
	unsigned int send_flags;    /**< enum roci_send_flags */
	union {
		uint32_t imm_data;	  /**< *_WITH_IMM; network order */
		uint32_t invalidate_rkey; /**< *_INV */
	};
	/** Operands of the opcode. */
	union {
		/** Destination of a datagram: SEND* on a UD QP. */
		struct {
			struct roci_ah *ah;   /**< address of the peer, or of a multicast group */
			uint32_t remote_qpn;  /**< the peer's QP number; 0xFFFFFF for a group */
			uint32_t remote_qkey; /**< of that QP; bit 31: our own (UD-03) */
			uint16_t pkey_index;  /**< QP1 only; others use that of the QP (BTH-11) */
		} ud;			      /**< as in verbs */
		/** The peer's memory. */
		struct {
			uint64_t remote_addr; /**< of the first byte, in the MR's address range */
			uint32_t rkey;	      /**< of the peer's MR */
		} rdma;			      /**< RDMA_* */
		/** ATOMIC_*: one SGE of 8 bytes receives the original word, in host byte order. */
		struct {
			uint64_t remote_addr; /**< a multiple of 8 (RSP-32) */
			uint64_t compare_add; /**< value to compare with, or to add */
			uint64_t swap;	      /**< CMP_AND_SWP only */
			uint32_t rkey;	      /**< of a region with ROCI_ACCESS_REMOTE_ATOMIC */
		} atomic;		      /**< ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD */
		/** FLUSH, which has no SGEs. */
		struct {
			uint64_t remote_addr; /**< of the first byte; not with ROCI_FLUSH_MR */
			uint32_t rkey;	      /**< of a region with ROCI_ACCESS_FLUSH_* */
			uint32_t length;      /**< bytes; not with ROCI_FLUSH_MR */
			uint8_t type;	      /**< set of enum roci_placement_type */
			uint8_t level;	      /**< enum roci_selectivity_level */
		} flush;		      /**< FLUSH */
	} wr;				      /**< as in verbs */
	/** Operands for XRC_SEND. */
	union {
		/** Receiver of SENDs and immediate data. */
		struct {
			uint32_t remote_srqn; /**< srq_num of the peer's SRQ */
		} xrc;			      /**< XRC_SEND */
	} qp_type;			      /**< as in verbs */
	/** Operands of BIND_MW. */
	struct {
		struct roci_mw *mw;		    /**< of type 2 */
		uint32_t rkey;			    /**< its new rkey: roci_inc_rkey() */
		struct roci_mw_bind_info bind_info; /**< the range to bind it to */
	} bind_mw;				    /**< as in verbs */
};

/** A receive work request; laid out as struct ibv_recv_wr. */
struct roci_recv_wr {
	uint64_t wr_id;		   /**< returned in its completion */
	struct roci_recv_wr *next; /**< posted after this one; NULL ends the list */
	struct roci_sge *sg_list;  /**< buffers for the message, filled in order */
	int num_sge;		   /**< length of sg_list, 0 .. max_recv_sge */
};

/**
 * Posts a list of send work requests. On failure the requests before @p bad_wr are posted, the
 * others are not (REQ-17).
 * @param qp      in RTS or SQD, or ERR
 * @param wr      the first; the structures and SGEs may be reused when it returns, the memory that
 *                the SGEs name when the request is complete (ROCI_SEND_INLINE: at once)
 * @param bad_wr  receives the request that failed; may be NULL
 * @return 0, or
 * - EINVAL: the QP is in RESET, INIT or RTR (REQ-20); an unknown opcode or flag, more SGEs or
 *   inline data than the QP supports (REQ-16, REQ-17), a message longer than 2^31 bytes (REQ-07);
 * - ENOMEM: the send queue is full (REQ-19); a request leaves it when its completion or a later
 *   one is polled; an unsignaled one when it is complete;
 * - EIO: rocid is gone.
 * In state ERR requests are accepted, and complete with ROCI_WC_WR_FLUSH_ERR.
 */
ROCI_API int roci_post_send(
	struct roci_qp *qp, const struct roci_send_wr *wr, const struct roci_send_wr **bad_wr);

/**
 * Posts a list of receive work requests; errors as for roci_post_send(). EINVAL: the QP is in RESET
 * (QPS-17) or has an SRQ (SRQ-01), or a request has more SGEs than the QP supports. ENOMEM: the
 * queue is full; a request leaves it when its completion is polled.
 * @param qp      in any state except RESET
 * @param wr      the first; the structures and SGEs may be reused when it returns
 * @param bad_wr  receives the request that failed; may be NULL
 * @return 0 or an errno value as above.
 */
ROCI_API int roci_post_recv(
	struct roci_qp *qp, const struct roci_recv_wr *wr, const struct roci_recv_wr **bad_wr);

/**
 * Posts a list of receive work requests to an SRQ. On failure those before @p bad_wr are posted. A
 * message to any of its QPs takes the oldest one.
 * @param srq     the SRQ
 * @param wr      the first; the structures and SGEs may be reused when it returns
 * @param bad_wr  receives the request that failed; may be NULL
 * @return 0; EINVAL: more SGEs than the SRQ supports; ENOMEM: the SRQ is full, and has room again
 * when a message has taken a receive; EIO: rocid is gone.
 */
ROCI_API int roci_post_srq_recv(
	struct roci_srq *srq, const struct roci_recv_wr *wr, const struct roci_recv_wr **bad_wr);

#include "roci_event.h"

/* --- names ------------------------------------------------------------------------------ */

/**
 * Describes a status.
 * @param status  any value
 * @return a few words; never NULL.
 */
ROCI_API const char *roci_wc_status_str(enum roci_wc_status status);

/**
 * Describes an event.
 * @param type  any value
 * @return a few words; never NULL.
 */
ROCI_API const char *roci_event_type_str(enum roci_event_type type);

/**
 * Names a QP state.
 * @param state  any value
 * @return "RESET", "INIT", ...; never NULL.
 */
ROCI_API const char *roci_qp_state_str(enum roci_qp_state state);

/**
 * Names a port state.
 * @param state  any value
 * @return "DOWN", "ACTIVE", ...; never NULL.
 */
ROCI_API const char *roci_port_state_str(enum roci_port_state state);

#ifdef __cplusplus
}
#endif

/* A part of this header in a separate file. */
#include "roci_fault.h"

#endif
