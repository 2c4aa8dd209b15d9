/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file abi_wqe.h
 * Work queue entries and completion queue entries. Host byte order, except immediate data, which
 * are passed unconverted (BTH-26).
 */
#ifndef ABI_WQE_H
#define ABI_WQE_H

#include <stdbool.h>
#include <stdint.h>

/** Size of the smallest entry; strides are this times a power of two. */
#define ABI_ENTRY 64

struct abi_sge {
	uint64_t addr; /* virtual address as registered (iova) */
	uint32_t length;
	uint32_t lkey;
};
_Static_assert(sizeof(struct abi_sge) == 16, "abi_sge");

/** Send WQE opcodes. The values are those of enum ibv_wr_opcode where one exists. */
enum abi_wr_opcode {
	ABI_WR_RDMA_WRITE = 0,
	ABI_WR_RDMA_WRITE_WITH_IMM = 1,
	ABI_WR_SEND = 2,
	ABI_WR_SEND_WITH_IMM = 3,
	ABI_WR_RDMA_READ = 4,
	ABI_WR_ATOMIC_CMP_AND_SWP = 5,
	ABI_WR_ATOMIC_FETCH_AND_ADD = 6,
	ABI_WR_LOCAL_INV = 7,
	ABI_WR_BIND_MW = 8,
	ABI_WR_SEND_WITH_INV = 9,
	ABI_WR_FLUSH = 14,
	ABI_WR_ATOMIC_WRITE = 15,
};

/* struct abi_wqe.ctl: mark, flags, opcode, count */
#define ABI_WQE_PHASE	  (1u << 0)
#define ABI_WQE_SIGNALED  (1u << 1)
#define ABI_WQE_SOLICITED (1u << 2)
#define ABI_WQE_FENCE	  (1u << 3)
#define ABI_WQE_INLINE	  (1u << 4)
#define ABI_WQE_FLAGS	  0x1Fu
/** Not an application's: a MAD of QP1 brings a flow label. */
#define ABI_WQE_LABEL	    (1u << 5)
#define ABI_WQE_OPCODE(ctl) (((ctl) >> 8) & 0xFF)
/** Number of SGEs, or of inline bytes when ABI_WQE_INLINE is set. */
#define ABI_WQE_COUNT(ctl) ((ctl) >> 16)
#define ABI_WQE_CTL(op, count, flags) \
	((uint32_t)(count) << 16 | (uint32_t)(op) << 8 | (uint32_t)(flags))

/** Bytes of a send WQE before its SGEs, inline data or operands. */
#define ABI_WQE_HDR 32

/**
 * Send WQE. `ctl` is written last, with release. SGEs (or inline bytes) start at offset
 * ABI_WQE_HDR, after an opcode's operands there.
 */
struct abi_wqe {
	uint32_t ctl;
	union {
		uint32_t imm;	     /* *_WITH_IMM, network order */
		uint32_t inv_rkey;   /* SEND_WITH_INV, LOCAL_INV */
		uint32_t feth;	     /* FLUSH: placement type 3:0, selectivity 5:4 */
		uint32_t flow_label; /* ABI_WQE_LABEL: of this MAD, host order */
	};
	uint64_t wr_id;
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
			uint32_t srqn; /* XRC: remote SRQ number */
		};
		struct {
			uint32_t ah; /* UD: address handle id */
			uint32_t remote_qpn;
			uint32_t remote_qkey;
			uint32_t pkey_index; /* QP1 */
		} ud;
	};
	union {
		struct abi_sge sge[2];
		uint8_t inline_data[32];
		struct {
			uint64_t compare_add;
			uint64_t swap;
			struct abi_sge sge;
		} atomic;
		struct {
			uint32_t mw;	   /* any rkey of the window: the low 8 bits are ignored */
			uint32_t mr_lkey;  /* the region; 0: none (type 1: unbind) */
			uint32_t new_rkey; /* the new rkey; only the low 8 bits may differ */
			uint32_t access;
			uint64_t addr; /* in the region's address range */
			uint64_t length;
		} bind;
		struct {
			uint32_t length; /* FLUSH of a range */
		} flush;
	};
};
_Static_assert(sizeof(struct abi_wqe) == ABI_ENTRY, "abi_wqe");

/** Receive WQE. `ctl` (mark and number of SGEs) is written last, with release. */
struct abi_recv_wqe {
	uint32_t ctl;
	uint32_t reserved;
	uint64_t wr_id;
	struct abi_sge sge[3];
};
_Static_assert(sizeof(struct abi_recv_wqe) == ABI_ENTRY, "abi_recv_wqe");
#define ABI_RECV_WQE_HDR 16

/** @return the stride of a send queue whose WQEs hold @p sges SGEs or @p inl inline bytes;
 *  atomics carry 16 operand bytes before their one SGE. */
static inline uint32_t abi_sq_stride(uint32_t sges, uint32_t inl)
{
	uint32_t body = sges * (uint32_t)sizeof(struct abi_sge);
	uint32_t stride = ABI_ENTRY;

	if (body < inl)
		body = inl;
	while (stride < ABI_WQE_HDR + body)
		stride *= 2;
	return stride;
}

/** @return the stride of a receive queue whose WQEs hold @p sges SGEs. */
static inline uint32_t abi_rq_stride(uint32_t sges)
{
	uint32_t stride = ABI_ENTRY;

	while (stride < ABI_RECV_WQE_HDR + sges * sizeof(struct abi_sge))
		stride *= 2;
	return stride;
}

/* --- completions -------------------------------------------------------------------- */

/** The values are those of enum ibv_wc_status. */
enum abi_wc_status {
	ABI_WC_SUCCESS = 0,
	ABI_WC_LOC_LEN_ERR = 1,
	ABI_WC_LOC_QP_OP_ERR = 2,
	ABI_WC_LOC_PROT_ERR = 4,
	ABI_WC_WR_FLUSH_ERR = 5,
	ABI_WC_MW_BIND_ERR = 6,
	ABI_WC_BAD_RESP_ERR = 7,
	ABI_WC_LOC_ACCESS_ERR = 8,
	ABI_WC_REM_INV_REQ_ERR = 9,
	ABI_WC_REM_ACCESS_ERR = 10,
	ABI_WC_REM_OP_ERR = 11,
	ABI_WC_RETRY_EXC_ERR = 12,
	ABI_WC_RNR_RETRY_EXC_ERR = 13,
	ABI_WC_REM_ABORT_ERR = 16,
	ABI_WC_FATAL_ERR = 19,
	ABI_WC_GENERAL_ERR = 21,
};

/** The values are those of enum ibv_wc_opcode. */
enum abi_wc_opcode {
	ABI_WC_SEND = 0,
	ABI_WC_RDMA_WRITE = 1,
	ABI_WC_RDMA_READ = 2,
	ABI_WC_COMP_SWAP = 3,
	ABI_WC_FETCH_ADD = 4,
	ABI_WC_BIND_MW = 5,
	ABI_WC_LOCAL_INV = 6,
	ABI_WC_FLUSH = 8,
	ABI_WC_ATOMIC_WRITE = 9,
	ABI_WC_RECV = 128,
	ABI_WC_RECV_RDMA_WITH_IMM = 129,
};

/** Network layer that a datagram arrived by (CA17 17.4.5.1). */
enum abi_net {
	ABI_NET_IPV4 = 0,
	ABI_NET_IPV6 = 1,
	ABI_NET_ROCEV1 = 2,
};

#define ABI_WC_GRH	 (1u << 0)
#define ABI_WC_WITH_IMM	 (1u << 1)
#define ABI_WC_WITH_INV	 (1u << 3)
#define ABI_WC_SOLICITED (1u << 7)

/** CQE. `mark` is written last, with release: bit 0 is the phase; the bits above it are the number
 *  of the completion among those of its send or receive queue, modulo 2^31. A QP may move to
 *  another worker and so to another lane, and a reader takes its completions in this order.
 *  `opcode` is valid in errors too, as far as its bit 7 tells the queue. */
struct abi_cqe {
	uint64_t wr_id;
	uint32_t byte_len;
	/** Network order; with ABI_WC_WITH_INV the invalidated rkey. In errors of a send queue: the
	 *  index of the entry that failed, modulo 2^32, as abi_queue counts them. */
	uint32_t imm;
	uint32_t qpn;
	uint32_t src_qp;
	uint8_t status; /* enum abi_wc_status */
	uint8_t opcode; /* enum abi_wc_opcode */
	uint8_t flags;	/* ABI_WC_* */
	uint8_t sl;
	uint16_t pkey_index;
	uint16_t vid;	 /* UD: VLAN of the packet, 0 when untagged */
	uint8_t smac[6]; /* UD: source MAC */
	uint8_t net;	 /* UD: enum abi_net */
	uint8_t reserved0;
	uint32_t vendor_err; /* the AETH syndrome, or enum of doc/abi.md */
	uint64_t timestamp;  /* nanoseconds of rocid's clock; 0 unless asked for */
	uint32_t srqn;
	uint32_t mark;
};
_Static_assert(sizeof(struct abi_cqe) == ABI_ENTRY, "abi_cqe");

/** @return `mark` of a CQE: @p phase of its lap, completion @p number of its queue. */
static inline uint32_t abi_cqe_mark(uint32_t phase, uint32_t number)
{
	return number << 1 | phase;
}

/** @return whether @p mark is that of completion @p number. */
static inline bool abi_cqe_is(uint32_t mark, uint32_t number)
{
	return mark >> 1 == (number & UINT32_MAX >> 1);
}

#endif
