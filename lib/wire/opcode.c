/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include "headers.h"
#include "opcode.h"

/* Bits for the extended headers, so that a row lists its chain and the length follows from it. */
enum {
	XRCETH = 1 << 0,
	DETH = 1 << 1,
	FETH = 1 << 2,
	RETH = 1 << 3,
	ATOMICETH = 1 << 4,
	AETH = 1 << 5,
	ATOMICACK = 1 << 6,
	IMMDT = 1 << 7,
	IETH = 1 << 8,
};

/* Other properties of a row. */
enum {
	FIRST = 1 << 0,
	LAST = 1 << 1,
	ONLY = FIRST | LAST,
	MIDDLE = 0,
	REQ = 1 << 2,
	RESP = 1 << 3,
	PAYLOAD = 1 << 4,
	RECV = 1 << 5, /* consumes a receive WQE */
};

#define HAS(set, bit) (((set) & (bit)) != 0)
#define CHAIN_LEN(h)                                                            \
	(BTH_HLEN + HAS(h, XRCETH) * XRCETH_LEN + HAS(h, DETH) * DETH_LEN +     \
		HAS(h, FETH) * FETH_LEN + HAS(h, RETH) * RETH_LEN +             \
		HAS(h, ATOMICETH) * ATOMICETH_LEN + HAS(h, AETH) * AETH_LEN +   \
		HAS(h, ATOMICACK) * ATOMICACK_LEN + HAS(h, IMMDT) * IMMDT_LEN + \
		HAS(h, IETH) * IETH_LEN)

#define ROW_AT(c, n, k, f, h)                   \
	[c] = {                                 \
		.name = n,                      \
		.code = (c),                    \
		.kind = KIND_##k,               \
		.hdr_len = CHAIN_LEN(h),        \
		.first = HAS(f, FIRST),         \
		.last = HAS(f, LAST),           \
		.request = HAS(f, REQ),         \
		.response = HAS(f, RESP),       \
		.payload = HAS(f, PAYLOAD),     \
		.recv_wqe = HAS(f, RECV),       \
		.xrceth = HAS(h, XRCETH),       \
		.deth = HAS(h, DETH),           \
		.feth = HAS(h, FETH),           \
		.reth = HAS(h, RETH),           \
		.atomiceth = HAS(h, ATOMICETH), \
		.aeth = HAS(h, AETH),           \
		.atomicack = HAS(h, ATOMICACK), \
		.immdt = HAS(h, IMMDT),         \
		.ieth = HAS(h, IETH),           \
	}
#define ROW(cls, op, k, f, h) ROW_AT(OPC_##cls | OP_##op, #cls "_" #op, k, f, h)

/* A reserved opcode of a class that QPs have: the headers after the BTH are unknown, so any length
 * is passed to the QP, which has to answer it (VAL-05). */
#define RESERVED(c) ROW_AT(c, NULL, NONE, PAYLOAD, 0)

/* clang-format off */

/* BTH-17: the services share the encoding of bits 4:0. Every XRC request has an XRCETH right after
 * the BTH, and no response does (BTH-22): `x` is the request's first extended header. */
#define SEND_ROWS(cls, x)                                                                          \
	ROW(cls, SEND_FIRST,           SEND,  FIRST  | REQ | PAYLOAD | RECV, x),                   \
	ROW(cls, SEND_MIDDLE,          SEND,  MIDDLE | REQ | PAYLOAD | RECV, x),                   \
	ROW(cls, SEND_LAST,            SEND,  LAST   | REQ | PAYLOAD | RECV, x),                   \
	ROW(cls, SEND_LAST_WITH_IMM,   SEND,  LAST   | REQ | PAYLOAD | RECV, x | IMMDT),           \
	ROW(cls, SEND_ONLY,            SEND,  ONLY   | REQ | PAYLOAD | RECV, x),                   \
	ROW(cls, SEND_ONLY_WITH_IMM,   SEND,  ONLY   | REQ | PAYLOAD | RECV, x | IMMDT)

#define WRITE_ROWS(cls, x)                                                                         \
	ROW(cls, WRITE_FIRST,          WRITE, FIRST  | REQ | PAYLOAD,        x | RETH),            \
	ROW(cls, WRITE_MIDDLE,         WRITE, MIDDLE | REQ | PAYLOAD,        x),                   \
	ROW(cls, WRITE_LAST,           WRITE, LAST   | REQ | PAYLOAD,        x),                   \
	ROW(cls, WRITE_LAST_WITH_IMM,  WRITE, LAST   | REQ | PAYLOAD | RECV, x | IMMDT),           \
	ROW(cls, WRITE_ONLY,           WRITE, ONLY   | REQ | PAYLOAD,        x | RETH),            \
	ROW(cls, WRITE_ONLY_WITH_IMM,  WRITE, ONLY   | REQ | PAYLOAD | RECV, x | RETH | IMMDT)

#define READ_ATOMIC_ROWS(cls, x)                                                                   \
	ROW(cls, READ_REQUEST,         READ,         ONLY   | REQ,            x | RETH),           \
	ROW(cls, READ_RESP_FIRST,      READ_RESP,    FIRST  | RESP | PAYLOAD, AETH),               \
	ROW(cls, READ_RESP_MIDDLE,     READ_RESP,    MIDDLE | RESP | PAYLOAD, 0),                  \
	ROW(cls, READ_RESP_LAST,       READ_RESP,    LAST   | RESP | PAYLOAD, AETH),               \
	ROW(cls, READ_RESP_ONLY,       READ_RESP,    ONLY   | RESP | PAYLOAD, AETH),               \
	ROW(cls, ACKNOWLEDGE,          ACK,          ONLY   | RESP,           AETH),               \
	ROW(cls, ATOMIC_ACK,           ATOMIC_ACK,   ONLY   | RESP,           AETH | ATOMICACK),   \
	ROW(cls, CMP_SWAP,             ATOMIC,       ONLY   | REQ,            x | ATOMICETH),      \
	ROW(cls, FETCH_ADD,            ATOMIC,       ONLY   | REQ,            x | ATOMICETH)

#define INVALIDATE_ROWS(cls, x)                                                                    \
	ROW(cls, SEND_LAST_WITH_INV,   SEND,  LAST   | REQ | PAYLOAD | RECV, x | IETH),            \
	ROW(cls, SEND_ONLY_WITH_INV,   SEND,  ONLY   | REQ | PAYLOAD | RECV, x | IETH)

/* IBTA 1.5, Annex A19: BTH, FETH, RETH and BTH, RETH, 8 bytes of payload (BTH-23). */
#define MEMORY_PLACEMENT_ROWS(cls, x)                                                              \
	ROW(cls, FLUSH,                FLUSH,        ONLY | REQ,              x | FETH | RETH),    \
	ROW(cls, ATOMIC_WRITE,         ATOMIC_WRITE, ONLY | REQ | PAYLOAD,    x | RETH)

#define RELIABLE_ROWS(cls, x)                                                                      \
	SEND_ROWS(cls, x), WRITE_ROWS(cls, x), READ_ATOMIC_ROWS(cls, x),                           \
	RESERVED(OPC_##cls | 0x15),                                                                \
	INVALIDATE_ROWS(cls, x),                                                                   \
	RESERVED(OPC_##cls | 0x18), RESERVED(OPC_##cls | 0x19),                                    \
	RESERVED(OPC_##cls | 0x1A), RESERVED(OPC_##cls | 0x1B),                                    \
	MEMORY_PLACEMENT_ROWS(cls, x),                                                             \
	RESERVED(OPC_##cls | 0x1E), RESERVED(OPC_##cls | 0x1F)

#define RESERVED_4(c) RESERVED(c), RESERVED((c) + 1), RESERVED((c) + 2), RESERVED((c) + 3)

/* Missing rows (RD, the CNP class except CNP itself, manufacturers' opcodes) are all zero: no QP
 * has their class (VAL-21). */
const struct opcode opcode_table[256] = {
	RELIABLE_ROWS(RC, 0),

	SEND_ROWS(UC, 0),
	WRITE_ROWS(UC, 0),
	RESERVED_4(0x2C), RESERVED_4(0x30), RESERVED_4(0x34), RESERVED_4(0x38), RESERVED_4(0x3C),

	RESERVED_4(0x60),
	ROW(UD, SEND_ONLY,             SEND,  ONLY   | REQ | PAYLOAD | RECV, DETH),
	ROW(UD, SEND_ONLY_WITH_IMM,    SEND,  ONLY   | REQ | PAYLOAD | RECV, DETH | IMMDT),
	RESERVED(0x66), RESERVED(0x67),
	RESERVED_4(0x68), RESERVED_4(0x6C), RESERVED_4(0x70), RESERVED_4(0x74), RESERVED_4(0x78),
	RESERVED_4(0x7C),

	ROW_AT(OPCODE_CNP, "CNP", CNP, ONLY, 0),

	RELIABLE_ROWS(XRC, XRCETH),
};
