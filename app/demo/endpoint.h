/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file endpoint.h
 * One end of the demo's connection: a queue pair, its completion queue and one memory region. All
 * functions end the program with a sentence if they fail.
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <stdint.h>
#include <roci.h>
#include "talk.h"

/** Bytes of the memory region: the largest message, and room to shift it. */
#define MEMORY_SIZE ((1u << 20) + 4096u)
/** Depth of the queues. */
#define QUEUE_DEPTH 64

struct endpoint {
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_cq *cq; /* of both queues */
	struct roci_qp *qp;
	struct roci_mr *mr;
	uint8_t *memory; /* MEMORY_SIZE bytes */
	uint8_t gid_index;
	struct hello own;
	struct hello peer;
};

/** Creates all objects with the rocid at @p socket_path and fills @p e->own. */
void endpoint_open(struct endpoint *e, const char *socket_path);

/** Connects to @p e->peer, with this code for the local ACK timeout: 4.096 us << code, eight times.
 */
void endpoint_connect(struct endpoint *e, uint8_t timeout);

void endpoint_close(struct endpoint *e);

/** Posts a signaled request for @p len bytes at offset @p off of both memories. */
void endpoint_post(struct endpoint *e, enum roci_wr_opcode opcode, uint64_t off, uint32_t len);

/** Posts a receive into @p len bytes at offset @p off. */
void endpoint_receive(struct endpoint *e, uint64_t off, uint32_t len);

/** Takes up to @p max successful completions, and yields the CPU if there is none. Gives up if none
 * arrives for two minutes. @return how many, at least 1. */
int endpoint_wait(struct endpoint *e, struct roci_wc wc[], int max);

/** @return seconds of the monotonic clock. */
double seconds(void);

#endif
