/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file session/failures.h
 * The record of what failed, and of the keys and QPNs of objects that are gone. The room `diagnose`
 * writes the sentences (diagnose/diagnose.h), by way of `struct failure_ops`. Control thread.
 */
#ifndef SESSION_FAILURES_H
#define SESSION_FAILURES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "abi_ctl.h"
#include "session/session.h"

struct ctl;
struct qp_obj;

/** What happened, as it is told. */
struct failure {
	uint32_t id;	  /* grows with each change; 0: empty */
	uint64_t time_ms; /* of the calendar, when it happened last */
	uint64_t key;	  /* tells one happening from another */
	uint64_t alike;	  /* the same of those whose sentences differ in plain numbers only */
	bool drop;	  /* packets were dropped, else a QP failed, */
	bool stalled;	  /* or waits for what will not come */
	uint32_t qpn;
	uint32_t session; /* 0: nobody's */
	uint64_t count;
	const char *cause; /* for programs */
	const char *rule;
	char program[sizeof(((struct abi_hello *)0)->name) + 1];
	char text[ABI_WHY_MAX];
};

/** Failures of QPs that are remembered, and dropped packets of QPs that are gone. */
#define FAILURES_MAX	  256u
#define FAILURE_DROPS_MAX 128u
/** Failures that are told of QPs that end with their session. */
#define FAILURES_TOLD_MAX 64u
/** Keys and QPNs of what is gone. */
#define FAILURES_GONE_MAX 512u

struct gone_mr {
	uint32_t key;
	uint32_t pd;
	uint64_t iova;
	uint64_t length;
	uint64_t time_ms; /* of the calendar; 0: empty */
	uint32_t session;
};

struct gone_qp {
	uint32_t qpn;
	uid_t uid;
	uint64_t time_ms;
	const char *how;
	char program[sizeof(((struct session *)0)->program)];
};

/** How a failure becomes a sentence; that needs more than this room knows. */
struct failure_ops {
	/** @return why @p o failed, NULL when it did not. Good until the next call. */
	const struct failure *(*of_qp)(struct ctl *ctl, const struct qp_obj *o);
	/** @p o will be destroyed or reset: keeps what there is to say about it. */
	void (*keep)(struct ctl *ctl, const struct qp_obj *o);
};

struct failures {
	const struct failure_ops *ops;
	uint32_t next_id;
	uint32_t mrs, qps; /* ever gone */
	struct gone_mr mr[FAILURES_GONE_MAX];
	struct gone_qp qp[FAILURES_GONE_MAX];
	struct failure error[FAILURES_MAX];
	struct failure drop[FAILURE_DROPS_MAX];
};

/** @return NULL when memory is short. */
struct failures *failures_create(const struct failure_ops *ops);

void failures_destroy(struct failures *f);

/** The same by way of ctl->failures. */
const struct failure *failure_of_qp(struct ctl *ctl, const struct qp_obj *o);
void failure_keep(struct ctl *ctl, const struct qp_obj *o);

/** Remembers a QP or a region that goes: keys and QPNs that come for it later are told from those
 *  that never were. Their time is set here. */
void failures_qp_gone(struct failures *f, const struct gone_qp *gone);
void failures_mr_gone(struct failures *f, const struct gone_mr *gone);

/** @return what is remembered of the QP @p qpn that went, or NULL. */
const struct gone_qp *failures_gone_qp(const struct failures *f, uint32_t qpn);

#endif
