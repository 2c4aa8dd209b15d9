/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/qp_cc.h
 * Congestion control that an administrator chose for one queue pair, in place of its port's. It
 * holds until the queue pair is destroyed, or "port" gives it back. Control thread.
 */
#ifndef VERBS_QP_CC_H
#define VERBS_QP_CC_H

#include "abi_ctl.h"
#include "net/congestion.h"

struct qp_obj;

struct qp_cc {
	struct congestion wanted;
	const struct cc_config *config; /* what its worker has; NULL: no algorithm */
};

/**
 * `set qp QPN cc @p text`: "port", "off", or as net/congestion.h says.
 * @return 0 or a negative errno with a sentence.
 */
int qp_cc_set(struct qp_obj *o, const char *text, char why[ABI_SENTENCE_MAX]);

/** The port of @p o, which has a choice of its own, is another one, or has other parameters. */
void qp_cc_follow(struct qp_obj *o);

/** Writes the choice for @p o.  @return @p text, or NULL if it follows its port. */
const char *qp_cc_text(const struct qp_obj *o, char text[CONGESTION_TEXT]);

/** @p o is at no worker any longer. */
void qp_cc_release(struct qp_obj *o);

#endif
