/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file memory.h
 * For tests of registration: a peer that reads and writes memory of end 0 by RDMA.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include "pair.h"

/** Ends the program with @p what and roci_last_error() unless @p ok. */
void must(int ok, const char *what);

/** Opens both ends; the peer may copy up to @p size bytes at a time. */
void peer_open(struct end e[2], const char *socket, size_t size);

/** The peer READs [@p addr, + @p len) and compares the bytes with those that the program sees. */
void peer_reads(struct end e[2], struct roci_mr *mr, const void *addr, size_t len);

/** The peer WRITEs bytes derived from @p seed there, and the program must see them. */
void peer_writes(struct end e[2], struct roci_mr *mr, void *addr, size_t len, unsigned seed);

/** peer_reads(), peer_writes(), and peer_reads() again after the program has written other bytes.
 */
void both_ways(struct end e[2], struct roci_mr *mr, void *addr, size_t len, unsigned seed);

/** The byte that peer_writes() puts at @p i. */
static inline uint8_t pattern(unsigned seed, size_t i)
{
	return (uint8_t)(seed * 151u + i * 7u + (i >> 8) * 13u + (i >> 16));
}

/** All rights that these tests give to an MR. */
#define ALL                                                                             \
	(ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ | \
		ROCI_ACCESS_REMOTE_ATOMIC)

#endif
