/* SPDX-License-Identifier: BSD-3-Clause */
/** @file lab_flow.h  A flow of a running scenario. */
#ifndef LAB_FLOW_H
#define LAB_FLOW_H

#include <stdint.h>
#include "arrivals.h"
#include "engine.h"
#include "flow.h"

struct abi_queue;
struct ah;
struct flow_line;
struct lab_host;
struct qp;

/** An end of a flow. */
struct lab_qp {
	struct qp *qp;
	struct abi_queue *sq_shared;
	struct abi_queue *rq_shared;
	uint8_t *sq_ring;
	uint8_t *rq_ring;
	uint32_t posted;
	uint32_t received;   /* receive WQEs posted */
	struct qp_flow flow; /* by which Fast CNPs find it */
};

struct lab_flow {
	struct sim_event begin; /* and after each gap */
	struct lab_host *from;	/* sends the data */
	struct lab_host *to;
	struct lab_host *poster; /* posts the messages: `from`, or `to` if it reads */
	const struct flow_line *line;
	struct lab_qp source, sink;
	struct ah *ah;		  /* from the source to the sink: of datagrams */
	uint32_t received;	  /* receive WQEs that are complete */
	struct arrivals arrivals; /* of Poisson traffic */
	uint64_t allowed;	  /* messages that may have been posted */
	uint64_t bytes, full;	  /* that were posted, and the packets that they take */
	uint64_t posted;	  /* messages */
	uint64_t messages;	  /* complete */
	uint64_t since;		  /* when the current one was posted, or the previous one ended */
	double ideal_ns;   /* of a message of one full packet: the way there, and the ACK's way back
			    */
	double packet_ns;  /* of each further packet: its time on the slowest cable */
	double transit_ns; /* of a full packet on all cables */
	uint8_t failed;	   /* status of the first that failed, 0: none */
	uint64_t done_at;  /* of the last message; 0: not yet */
	uint32_t psn;	   /* where the sink was when it was last looked at */
	uint64_t packets;  /* that had arrived in order by then */
	uint64_t before;   /* of them when the measurement began */
	uint64_t sampled;  /* of them at the last sample */
};

#endif
