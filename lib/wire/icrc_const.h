/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file icrc_const.h
 * Constants for computing the CRC by carry-less multiplication, for icrc_fold.h.
 *
 * P = 0x104C11DB7. A register holds a polynomial bit-reflected: its lowest bit is the highest
 * power. The carry-less product of two reflected 64-bit words is the reflected product shifted by
 * one, so a constant x^n mod P is stored as its 32 reflected bits shifted left by one.
 *
 * Folding by a distance of d bits replaces 128 bits A by something congruent to A * x^d: first word
 * * x^(d+32) + second word * x^(d-32); the 32 remain from aligning a 33-bit constant in a 64-bit
 * word. test/unit/wire/icrc_test.c derives all constants independently.
 */
#ifndef ICRC_CONST_H
#define ICRC_CONST_H

/* X(d, x^(d+32) mod P, x^(d-32) mod P) */
#define ICRC_FOLD_CONSTS(X)               \
	X(128, 0x1751997d0, 0x0ccaa009e)  \
	X(256, 0x0f1da05aa, 0x15a546366)  \
	X(384, 0x03db1ecdc, 0x174359406)  \
	X(512, 0x154442bd4, 0x1c6e41596)  \
	X(768, 0x0df068dc2, 0x18cb44e58)  \
	X(1024, 0x1e88ef372, 0x14a7fe880) \
	X(1536, 0x1821d8bc0, 0x12e958ac4) \
	X(2048, 0x11542778a, 0x1322d1430)

enum icrc_fold_const {
#define X(d, first, second) FOLD_##d##_FIRST = first, FOLD_##d##_SECOND = second,
	ICRC_FOLD_CONSTS(X)
#undef X
};

/* Barrett reduction from 96 to 32 bits: P, 33 bits reflected, and the first 64 of the 65 bits of
 * floor(x^96 / P); the last one has no effect on the 64 bits of a quotient. */
#define ICRC_P	0x1db710641
#define ICRC_MU 0xb4e5b025f7011641

#endif
