/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file opcodes.h
 * RC opcodes as on the wire (IBA Table 35; A19 for FLUSH and ATOMIC WRITE): numbers, not the names
 * of the code that is tested.
 */
#ifndef OPCODES_H
#define OPCODES_H

enum {
	SEND_FIRST = 0x00,
	SEND_MIDDLE = 0x01,
	SEND_LAST = 0x02,
	SEND_LAST_IMM = 0x03,
	SEND_ONLY = 0x04,
	SEND_ONLY_IMM = 0x05,
	WRITE_FIRST = 0x06,
	WRITE_MIDDLE = 0x07,
	WRITE_LAST = 0x08,
	WRITE_LAST_IMM = 0x09,
	WRITE_ONLY = 0x0A,
	WRITE_ONLY_IMM = 0x0B,
	READ_REQ = 0x0C,
	RESP_FIRST = 0x0D,
	RESP_MIDDLE = 0x0E,
	RESP_LAST = 0x0F,
	RESP_ONLY = 0x10,
	ATOMIC_ACK = 0x12,
	CMP_SWAP = 0x13,
	FETCH_ADD = 0x14,
	RESERVED = 0x15,
	SEND_LAST_INV = 0x16,
	SEND_ONLY_INV = 0x17,
	FLUSH = 0x1C,
	ATOMIC_WRITE = 0x1D,
};

#endif
