/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file flows.h
 * Programs on libroci at both ends: one session per port, one completion queue per session, and any
 * number of connections between them.
 */
#ifndef FLOWS_H
#define FLOWS_H

#include <roci.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Maximum number of batches in flight: a message is posted in one round of the worker, arrives in
 *  the next, and is acknowledged in the one after that. */
#define FLOWS_BATCHES 3u

/** Maximum number of work requests per post call. */
#define FLOWS_LIST_MAX 32u
/** Bytes per message of flows_touch(): an end needs at least this much memory. */
#define FLOWS_TOUCH 65536u

struct flows_config {
	unsigned connections;
	unsigned depth; /* work requests that a queue of a QP holds */
	size_t memory;	/* bytes that each end registers */
	uint32_t reads; /* outstanding RDMA READs per QP */
	bool one_port;	/* both ends use the first port, so no frames are sent */
};

struct traffic {
	enum roci_wr_opcode opcode;
	size_t size;	   /* bytes per message */
	size_t set;	   /* bytes of the memory that are used, at random places */
	unsigned list;	   /* messages posted to one QP per call */
	unsigned signaled; /* messages per completion; `list` is a multiple of it */
	unsigned packets;  /* per message; limits the messages in a burst */
};

/** The cost per message. `post` and `poll` are parts of `all`, measured only on request. */
struct flows_cost {
	double all_ns;
	double post_ns;
	double poll_ns;
};

struct flows;

/** Opens both ends at the daemon in this process and connects them. Call it from a thread other
 *  than the worker's: host_while(). Ends the program with a sentence on failure. */
struct flows *flows_open(const struct flows_config *cfg);
void flows_close(struct flows *f);

/** Opens @p n flows with sessions of their own. If rocid has @p n workers and no other QPs, all QPs
 *  of f[i] are worker i's. */
void flows_open_each(struct flows *f[], unsigned n, const struct flows_config *cfg);

/** Moves @p messages, rounded up, from end 0 to end 1 (READ: the other way), and calls @p round
 *  (@p arg) once per posted batch.
 *  @param split  also measures post_ns and poll_ns, which costs about 1 ns per message */
struct flows_cost flows_run(struct flows *f, const struct traffic *t, unsigned long messages,
	void (*round)(void *arg), void *arg, int split);

/** Writes all memory of end 1 from that of end 0 once, so that no page is touched for the first
 *  time during a measurement. */
void flows_touch(struct flows *f, void (*round)(void *arg), void *arg);

/** The parts of an end. */
struct roci_qp *flows_qp(struct flows *f, unsigned connection, unsigned end);
struct roci_cq *flows_cq(struct flows *f, unsigned end);
struct roci_mr *flows_mr(struct flows *f, unsigned end);

#endif
