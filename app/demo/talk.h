/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file talk.h
 * The messages of the demo's two programs over a local socket, outside RDMA: how to connect, what
 * to do next, and digests of their memory. All functions end the program with a sentence if they
 * fail.
 */
#ifndef TALK_H
#define TALK_H

#include <stdint.h>
#include <roci.h>

/** How to reach one side's queue pair and memory. */
struct hello {
	uint32_t qpn;
	uint32_t psn;
	union roci_gid gid;
	uint32_t mtu; /* enum roci_mtu */
	uint32_t rkey;
	uint64_t addr;
};

enum order_type {
	ORDER_FILL,    /* write a pattern to memory; answered with its digest */
	ORDER_CLEAR,   /* write zeroes to memory */
	ORDER_DIGEST,  /* answered with the digest of memory */
	ORDER_RECEIVE, /* answered when a receive is posted, again when it is complete */
	ORDER_ECHO,    /* answered when ready; returns received messages until one has immediate
			* data */
	ORDER_END,
};

/** A's order to B for @p len bytes of its memory from @p off. */
struct order {
	uint32_t type;
	uint32_t len;
	uint64_t off;
	uint64_t seed;
};

/** @return B's end of the connection, once A has connected. */
int talk_listen(const char *path);

/** @return A's end; B listens already. */
int talk_connect(const char *path);

#endif
