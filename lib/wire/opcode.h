/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file opcode.h
 * One row per BTH opcode: which headers follow and what the packet means (IBA 9.2.1 Table 35, Annex
 * A14 for XRC, IBTA 1.5 for FLUSH and ATOMIC WRITE; BTH-17..23).
 *
 * If you add an opcode here, also add a row in opcode.c, its execution in core/responder.c or
 * core/completer.c, the request side in core/requester.c, and its WQE opcode in abi/abi_wqe.h.
 */
#ifndef OPCODE_H
#define OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/** BTH opcode bits 7:5: the transport service. */
enum opcode_class {
	OPC_RC = 0x00,
	OPC_UC = 0x20,
	OPC_RD = 0x40,
	OPC_UD = 0x60,
	OPC_CNP = 0x80,
	OPC_XRC = 0xA0,
};
#define OPC_CLASS_MASK 0xE0
#define OPC_OP_MASK    0x1F

/** BTH opcode bits 4:0, the same for RC, UC, UD and XRC. */
enum opcode_op {
	OP_SEND_FIRST = 0x00,
	OP_SEND_MIDDLE = 0x01,
	OP_SEND_LAST = 0x02,
	OP_SEND_LAST_WITH_IMM = 0x03,
	OP_SEND_ONLY = 0x04,
	OP_SEND_ONLY_WITH_IMM = 0x05,
	OP_WRITE_FIRST = 0x06,
	OP_WRITE_MIDDLE = 0x07,
	OP_WRITE_LAST = 0x08,
	OP_WRITE_LAST_WITH_IMM = 0x09,
	OP_WRITE_ONLY = 0x0A,
	OP_WRITE_ONLY_WITH_IMM = 0x0B,
	OP_READ_REQUEST = 0x0C,
	OP_READ_RESP_FIRST = 0x0D,
	OP_READ_RESP_MIDDLE = 0x0E,
	OP_READ_RESP_LAST = 0x0F,
	OP_READ_RESP_ONLY = 0x10,
	OP_ACKNOWLEDGE = 0x11,
	OP_ATOMIC_ACK = 0x12,
	OP_CMP_SWAP = 0x13,
	OP_FETCH_ADD = 0x14,
	OP_SEND_LAST_WITH_INV = 0x16,
	OP_SEND_ONLY_WITH_INV = 0x17,
	OP_FLUSH = 0x1C,
	OP_ATOMIC_WRITE = 0x1D,
};
#define OPCODE_CNP 0x81

/** Operation of a message; all of its packets share it. */
enum opcode_kind {
	KIND_NONE, /* not in the table: reserved */
	KIND_SEND,
	KIND_WRITE,
	KIND_READ, /* request */
	KIND_READ_RESP,
	KIND_ACK,
	KIND_ATOMIC_ACK,
	KIND_ATOMIC, /* CmpSwap, FetchAdd */
	KIND_FLUSH,
	KIND_ATOMIC_WRITE,
	KIND_CNP,
};

struct opcode {
	const char *name; /* "RC_SEND_FIRST"; NULL for a reserved opcode */
	uint8_t code;	  /* correct for reserved opcodes, too, because of their class */
	uint8_t kind;	  /* enum opcode_kind */
	uint8_t hdr_len;  /* bytes of BTH and extended headers; 0: no QP has this class (VAL-21) */
	/* place in the message; ONLY is first and last */
	uint8_t first : 1;
	uint8_t last : 1;
	uint8_t request : 1;
	uint8_t response : 1;
	uint8_t payload : 1;  /* may carry payload */
	uint8_t recv_wqe : 1; /* the message consumes a receive WQE (CRD-05) */
	/* extended headers, in their order after the BTH (BTH-18..24) */
	uint8_t xrceth : 1;
	uint8_t deth : 1;
	uint8_t feth : 1;
	uint8_t reth : 1;
	uint8_t atomiceth : 1;
	uint8_t aeth : 1;
	uint8_t atomicack : 1;
	uint8_t immdt : 1;
	uint8_t ieth : 1;
};

extern const struct opcode opcode_table[256];

/** @return the row of BTH opcode @p code; its name is NULL when the opcode is reserved. */
static inline const struct opcode *opcode_row(uint8_t code)
{
	return &opcode_table[code];
}

#endif
