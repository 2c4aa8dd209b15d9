/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/failures.h
 * A record of failures, and of the keys and QPNs of destroyed objects. The libraries above explain
 * them (diagnose/diagnose.h). Control thread.
 */
#ifndef SESSION_FAILURES_H
#define SESSION_FAILURES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "abi_ctl.h"

struct ctl;
struct qp_obj;
struct session;

/** A failure, as reported to users. */
struct failure {
	uint32_t id;	  /* grows with each change; 0: empty */
	uint64_t time_ms; /* calendar time of the last occurrence */
	uint64_t time_ns; /* the same by the workers' clock, which orders entries; 0 for requests */
	uint64_t key;	  /* distinguishes failures */
	uint64_t alike;	  /* equal for failures whose sentences differ only in numbers */
	bool drop;	  /* packets were dropped; otherwise a QP failed */
	bool stalled;	  /* the QP waits for something that will not happen */
	bool request;	  /* a request failed; uid: its user */
	uid_t uid;
	uint32_t qpn;
	uint32_t session; /* 0: nobody's */
	uint64_t count;
	const char *cause; /* for programs */
	const char *rule;
	char program[sizeof(((struct abi_hello *)0)->name) + 1];
	char text[ABI_WHY_MAX];
};

/** Records of failed QPs, and of dropped packets of destroyed QPs. */
#define FAILURES_MAX	  256u
#define FAILURE_DROPS_MAX 128u
/** Failures recorded at once: of QPs that are destroyed with their session, or that are stalled. */
#define FAILURES_AT_ONCE 64u
/** Failed requests recorded per user, whose programs can make up any number. */
#define FAILED_REQUESTS_MAX 32u
/** For all users together, so that they do not evict failures of queue pairs. */
#define REQUESTS_OF_ALL_MAX 128u
/** Records of destroyed regions, and of destroyed QPs. */
#define FAILURES_GONE_MAX 512u

struct gone_mr {
	uint32_t key;
	uint32_t pd;
	uint64_t iova;
	uint64_t length;
	uint64_t time_ms; /* calendar time; 0: empty */
	uint32_t session;
};

struct gone_qp {
	uint32_t qpn;
	uid_t uid;
	uint64_t time_ms;
	const char *how;
	char program[sizeof(((struct abi_hello *)0)->name) + 1];
};

/** A connection that could not be established (doc/connections.md), or a call that the library
 *  refused. */
struct failed_request {
	const struct session *session;
	uint32_t qpn;
	const char *cause, *rule, *text;
};

/** Turns failures into sentences, which needs more than this library knows. */
struct failure_ops {
	/** @return why @p o failed, or NULL if it did not. Valid until the next call. */
	const struct failure *(*of_qp)(struct ctl *ctl, const struct qp_obj *o);
	/** Records the failure and the drops of @p o, which will be destroyed or reset. */
	void (*keep)(struct ctl *ctl, const struct qp_obj *o);
	/** Records @p f. */
	void (*request)(struct ctl *ctl, const struct failed_request *f);
};

struct failures {
	const struct failure_ops *ops;
	uint32_t next_id;
	uint64_t seed;	   /* random */
	uint32_t mrs, qps; /* ever destroyed */
	struct gone_mr mr[FAILURES_GONE_MAX];
	struct gone_qp qp[FAILURES_GONE_MAX];
	struct failure error[FAILURES_MAX];
	struct failure drop[FAILURE_DROPS_MAX];
};

/** @return NULL when memory is short. */
struct failures *failures_create(const struct failure_ops *ops);

void failures_destroy(struct failures *f);

/** Call `ops` for @p o. */
const struct failure *failure_of_qp(struct ctl *ctl, const struct qp_obj *o);
void failure_keep(struct ctl *ctl, const struct qp_obj *o);
void failure_request(struct ctl *ctl, const struct failed_request *f);

/** Records a QP or a region that is destroyed, so that later packets for it are distinguished from
 *  those for a key or QPN that never existed. Sets time_ms. */
void failures_qp_gone(struct failures *f, const struct gone_qp *gone);
void failures_mr_gone(struct failures *f, const struct gone_mr *gone);

/** @return the last record of a destroyed QP @p qpn, or NULL. */
const struct gone_qp *failures_gone_qp(const struct failures *f, uint32_t qpn);

#endif
