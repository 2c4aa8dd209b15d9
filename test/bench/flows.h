/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file flows.h
 * Programs on libroci at both ends: one session on each port, one completion queue a session, any
 * number of connections between them.
 */
#ifndef FLOWS_H
#define FLOWS_H

#include <roci.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Messages under way at most: three bursts, for a message is posted in one round of the worker,
 *  arrives in the next and is acknowledged in the one after it. */
#define FLOWS_BATCHES 3u

/** Work requests of one post call at most. */
#define FLOWS_LIST_MAX 32u
/** Bytes of a message of flows_touch(): memory is this or more. */
#define FLOWS_TOUCH 65536u

struct flows_config {
	unsigned connections;
	unsigned depth; /* work requests that a queue of a QP holds */
	size_t memory;	/* bytes that each end registers */
	uint32_t reads; /* RDMA READs of one QP under way */
	bool one_port;	/* both ends are programs of the first port: no frame between them */
};

struct traffic {
	enum roci_wr_opcode opcode;
	size_t size;	   /* bytes per message */
	size_t set;	   /* of the memory is used: places are chosen at random */
	unsigned list;	   /* messages posted to one QP in one call */
	unsigned signaled; /* each so many messages make a completion; `list` is a multiple */
	unsigned packets;  /* that a message takes: how many go into a burst */
};

/** The cost of one message. `post` and `poll` are parts of `all`, measured when asked for. */
struct flows_cost {
	double all_ns;
	double post_ns;
	double poll_ns;
};

struct flows;

/** Opens both ends at the daemon in this process and connects them. Called from another thread than
 *  the worker's: host_while(). Ends the program with a sentence when it fails. */
struct flows *flows_open(const struct flows_config *cfg);
void flows_close(struct flows *f);

/** Moves @p messages, rounded up, from end 0 to end 1 (READ: the other way), calling @p round
 *  (@p arg) once for each batch posted.
 *  @param split  measures post_ns and poll_ns too, which costs about 1 ns a message. */
struct flows_cost flows_run(struct flows *f, const struct traffic *t, unsigned long messages,
	void (*round)(void *arg), void *arg, int split);

/** Writes all memory of end 1 from that of end 0 once, so that no page is met for the first time
 *  later. */
void flows_touch(struct flows *f, void (*round)(void *arg), void *arg);

/** The parts of an end. */
struct roci_qp *flows_qp(struct flows *f, unsigned connection, unsigned end);
struct roci_cq *flows_cq(struct flows *f, unsigned end);
struct roci_mr *flows_mr(struct flows *f, unsigned end);

#endif
