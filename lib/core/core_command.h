/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core_command.h
 * Commands of the control thread to a core.
 */
#ifndef CORE_COMMAND_H
#define CORE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "path.h"

struct abi_cq_lane;
struct abi_fault;
struct cc_config;
struct cq;
struct inject;
struct qp;
struct trace;

enum core_cmd_type {
	CORE_CMD_MODIFY_QP,
	CORE_CMD_QUERY_QP,
	CORE_CMD_DETACH_QP,  /* before destruction: the core forgets the QP */
	CORE_CMD_DETACH_QPS, /* the same for `n` QPs */
	CORE_CMD_GIVE_QP,    /* the QP belongs to worker `worker` from here on */
	CORE_CMD_TAKE_QP,    /* at that worker, after GIVE_QP */
	CORE_CMD_DETACH_CQ,  /* before destruction: the core forgets this worker's lane */
	CORE_CMD_DETACH_CQS, /* the same for `n` CQs */
	CORE_CMD_COUNT_CQ,   /* counts the CQEs that wait in this worker's lane */
	CORE_CMD_RESIZE_CQ,  /* this worker's lane continues in another ring */
	CORE_CMD_SET_WINDOW, /* allows the QP `n` packets in flight */
	CORE_CMD_SET_RATE,   /* an administrator limits the QP to `rate` */
	CORE_CMD_SHAPE_QP,   /* its program does so: `shape` */
	CORE_CMD_SET_CC,     /* an administrator chooses the QP's congestion control: `cc` */
	/** The MAC of the neighbour or of the port changed: packets that the `n` QPs build from now
	 *  on go to path.dmac, from sgid.mac, or through this daemon when path.local. Valid in any
	 *  state. No packet that is already built changes, because each is sealed before the next
	 *  command. */
	CORE_CMD_READDRESS_QPS,
	/** The datagrams that the `n` QPs have posted so far keep their path, whatever happens to
	 *  the address handles that they name (UD-16). */
	CORE_CMD_SNAPSHOT_QPS,
	/** Rebuilds the QP's path from attr.ah, path and sgid, as MODIFY_QP with ABI_QP_AV does.
	 *  -EINVAL: it has none. */
	CORE_CMD_REPATH_QP,
	/** Congestion control of the ports of the `n` QPs changed: ECN of their packets and their
	 *  limits follow. */
	CORE_CMD_CONGESTION_QPS,
	CORE_CMD_QUERY_RATE,   /* what limits the QP: `limit` */
	CORE_CMD_RELOAD_PKEYS, /* the P_Key table changed: look up the keys of `n` QPs again */
	CORE_CMD_TRACING,      /* to all workers, before the first TRACE_QP and after the last */
	CORE_CMD_INJECTING,    /* likewise for INJECT_QP */
	CORE_CMD_INJECT_QP,    /* attaches `inject` to the QP; NULL: detaches */
	CORE_CMD_ARM_FAULT,    /* arms `fault`; n: out, its number */
	CORE_CMD_CLEAR_FAULT,  /* clears fault number `n` */
	CORE_CMD_TRACE_QP,     /* sends the QP's events to `trace` from here on; NULL: stops */
};

/** The limit that a program sets to its own QP. */
struct core_shape {
	uint64_t rate;	 /* bit/s on the wire; 0: no limit */
	uint32_t burst;	 /* bytes that leave together at most; 0: as the port's QPs */
	uint32_t packet; /* bytes of a packet, for `burst`; 0: full ones */
};

/** The congestion control of one QP. */
struct core_cc {
	bool own;		     /* `cfg` holds in place of the port's */
	const struct cc_config *cfg; /* it lives until the next SET_CC has returned; NULL: off */
};

/** The limit of a QP's rate. */
struct core_limit {
	const char *algorithm; /* NULL: none */
	uint64_t asked;	       /* bit/s, by an administrator; 0: no limit */
	uint64_t own;	       /* bit/s, by the QP's program; 0: no limit */
	bool limited;	       /* its packets wait for their departures */
	double rate;	       /* bit/s now; the line's where there is no limit */
	double target;	       /* bit/s to which the algorithm raises it */
	double alpha;
	double window;	       /* packets in flight that the algorithm allows; < 0: any */
	uint64_t rtt;	       /* ns, the last that the algorithm measured; 0: none */
	uint64_t limited_ns;   /* for how long it has been limited */
	uint64_t limited_cnps; /* handled in that time */
	bool by_switch;	       /* the last of them was a Fast CNP */
	uint64_t cnps;	       /* handled since INIT -> RTR */
};

/** Why MODIFY_QP was refused with -EINVAL. */
enum modify_refusal {
	MODIFY_OK,
	MODIFY_NO_TRANSITION, /* none exists from `state` to the requested state (QPS-01) */
	MODIFY_MISSING,	      /* it requires `attrs`, which the mask lacks (QPS-12) */
	MODIFY_FORBIDDEN,     /* it does not allow `attrs` (QPS-12) */
	MODIFY_CUR_STATE,     /* cur_qp_state is not `state` (QPS-13) */
	MODIFY_DRAINING,      /* SQD -> SQD while requests are outstanding (QPS-19) */
	MODIFY_VALUE,	      /* the value of `attrs` is out of range (QPS-15) */
};

struct modify_result {
	uint8_t refusal; /* enum modify_refusal */
	uint8_t state;	 /* previous state of the QP, enum abi_qp_state */
	uint8_t port;	 /* MODIFY_VALUE: number of the port that `attrs` disagrees with, or 0 */
	uint32_t attrs;	 /* ABI_QP_*: all that are missing or forbidden, or one with a bad value */
};

struct core_cmd {
	enum core_cmd_type type;
	struct qp *qp; /* *_CQ, *S: NULL */
	struct cq *cq; /* *_CQ */
	uint32_t n;    /* *S: some dozens at most, done in one step; SET_WINDOW */
	struct qp *const *qps;
	struct cq *const *cqs;
	uint16_t worker;	  /* GIVE_QP */
	uint64_t rate;		  /* SET_RATE: bit/s on the wire; 0: no limit */
	struct core_shape shape;  /* SHAPE_QP */
	struct core_cc cc;	  /* SET_CC */
	struct core_limit limit;  /* QUERY_RATE: out */
	uint32_t cqes;		  /* COUNT_CQ: out; RESIZE_CQ: the new depth */
	struct abi_cq_lane *lane; /* RESIZE_CQ: the new ring's */
	bool tracing;		  /* TRACING, INJECTING: any QP is */
	struct trace *trace;	  /* TRACE_QP */
	struct inject *inject;	  /* INJECT_QP */
	const struct abi_fault *fault;
	uint32_t progress;	 /* used by the core; 0 at first */
	uint32_t mask;		 /* ABI_QP_* */
	struct abi_qp_attr attr; /* MODIFY: in; QUERY: out */
	struct path_spec path; /* MODIFY with ABI_QP_AV: the resolved AV; the core adds the QPNs */
	struct gid_entry sgid; /* what path.sgid points to; READDRESS uses only its MAC */
	/* MODIFY: out, the reason for -EINVAL */
	struct modify_result result;
};

#endif
