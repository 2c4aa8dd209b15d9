/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/qp_cc.h
 * Congestion control that an administrator chose for one queue pair, instead of its port's. It
 * lasts until the queue pair is destroyed or set back to "port". Control thread.
 */
#ifndef VERBS_QP_CC_H
#define VERBS_QP_CC_H

#include "abi_ctl.h"
#include "net/congestion.h"

struct qp_obj;

struct qp_cc {
	struct congestion wanted;
	const struct cc_config *config; /* for its worker, if the port permits it; NULL: none */
};

/**
 * Executes `set qp QPN cc @p text`: "port", "off", or a text as in net/congestion.h.
 * @return 0 or a negative errno with a sentence.
 */
int qp_cc_set(struct qp_obj *o, const char *text, char why[ABI_SENTENCE_MAX]);

/** Call it when the port of @p o, which has its own congestion control, or the port's parameters
 *  have changed. */
void qp_cc_follow(struct qp_obj *o);

/** Writes the setting of @p o.  @return @p text, or NULL if it follows its port. */
const char *qp_cc_text(const struct qp_obj *o, char text[CONGESTION_TEXT]);

/** Frees the setting; no worker uses @p o any more. */
void qp_cc_release(struct qp_obj *o);

#endif
