/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file talk.h
 * What the two programs of the demo tell each other over a local socket, beside RDMA: how to
 * connect, what to do next, and digests of their memory. All functions end the program with a
 * sentence when they fail.
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
	ORDER_ECHO, /* answered when ready; sends back what comes, until one has immediate data */
	ORDER_END,
};

/** What A asks B to do with @p len bytes of its memory from @p off on. */
struct order {
	uint32_t type;
	uint32_t len;
	uint64_t off;
	uint64_t seed;
};

/** @return B's end of the connection, once A is there. */
int talk_listen(const char *path);

/** @return A's end; B listens already. */
int talk_connect(const char *path);

#endif
