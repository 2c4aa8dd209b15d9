/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file scenario_row.h
 * Macros for scenario rows. Unless a row says otherwise: path MTU 1024, 10 Gb/s and 2 us
 * each way, ACK timeout code 14 (67.1 ms), seven retries, RNR retry infinite, RNR timer code 1
 * (10 us), 16 READs, a window of 128 packets, 64 places in each queue.
 *
 * A bound is the sum of everything that the row waits for: packets on the wire, round trips,
 * timers.
 */
#ifndef SCENARIO_ROW_H
#define SCENARIO_ROW_H

#include "bits.h"
#include "scenario.h"

/** ns of a full packet: 1024 bytes, 62 of headers, AETH and ICRC, 24 around the frame. */
#define PKT 888ull
/** ns of a round trip, with a frame of up to 200 bytes and its ACK on the wire. */
#define RTT (2 * 2 * USEC + 320)
/** Maximum ns that a timer is late: a tick of the wheel, and the tick in which it was set. */
#define TICK 2048ull
/** ns of an ACK timeout code (REQ-22). */
#define T(code) (4096ull << (code))

#define NONE	 0, VAL(0)
#define ONE	 1, VAL(1)
#define SOME	 1, UINT64_MAX
#define N(n)	 n, VAL(n)
#define TO(a, b) a, VAL(b)

/** COUNT(A, retransmits, NONE) */
#define COUNT(side, field, ...)                                                  \
	{                                                                        \
		side, #field, offsetof(struct core_counters, field), __VA_ARGS__ \
	}
/** DROPS(A, ICRC, SOME) */
#define DROPS(side, why, ...)                                                                     \
	{                                                                                         \
		side, #why, offsetof(struct core_counters, drop) + DROP_##why * sizeof(uint64_t), \
			__VA_ARGS__                                                               \
	}

/** Three packets. */
#define SEND_3                                 \
	{                                      \
		A, TRAFFIC_SEND, 1, 3000, 0, 0 \
	}
#define WRITE_3                                 \
	{                                       \
		A, TRAFFIC_WRITE, 1, 3000, 0, 0 \
	}
#define READ_3                                 \
	{                                      \
		A, TRAFFIC_READ, 1, 3000, 0, 0 \
	}

#endif
