/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/set.h
 * Changes to a running daemon by administrators; each is an admin_run. They do not survive a
 * restart: put lasting settings into the configuration file. Control thread.
 */
#ifndef ADMIN_SET_H
#define ADMIN_SET_H

#include "admin/arg.h"

/** `set window PACKETS`: for QPs created from now on. */
int admin_set_window(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN window PACKETS`: for an existing QP. */
int admin_set_qp_window(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN rate RATE` */
int admin_set_qp_rate(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN cc CHOICE`: its congestion control, in place of its port's. */
int admin_set_qp_cc(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set migrate ON|OFF` */
int admin_set_migrate(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set idle IDLE` */
int admin_set_idle(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set limit LIMIT VALUE`: applications that exceed it keep their objects. */
int admin_set_limit(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT STATE` */
int admin_set_port(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT impair IMPAIRMENT` */
int admin_set_impair(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `reset counters`: restarts `show counters` at 0. The workers' own counters, and those read
 *  elsewhere, are not reset. */
int admin_reset_counters(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `reset drops`: the same for `show drops`. */
int admin_reset_drops(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `kill qp QPN`: moves it to ERR, as its application could; its work requests are flushed. */
int admin_kill_qp(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `kill session SESSION`: as if its program had ended. */
int admin_kill_session(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

#endif
