/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/set.h
 * What administrators change of a running daemon; each is an admin_run. Nothing of it is kept over
 * a restart: that is the configuration file's. Control thread.
 */
#ifndef ADMIN_SET_H
#define ADMIN_SET_H

#include "admin/arg.h"

/** `set window PACKETS`: of QPs that are made from now on. */
int admin_set_window(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN window PACKETS`: of one that there is. */
int admin_set_qp_window(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set migrate ON|OFF` */
int admin_set_migrate(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set idle IDLE` */
int admin_set_idle(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set limit LIMIT VALUE`: who has more already keeps it. */
int admin_set_limit(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT STATE` */
int admin_set_port(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT impair IMPAIRMENT` */
int admin_set_impair(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `reset counters`: what `show counters` tells begins at 0. The workers' own counters, and what is
 *  read elsewhere, go on. */
int admin_reset_counters(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `reset drops`: the same for `show drops`. */
int admin_reset_drops(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `kill qp QPN`: to ERR, as its application could do; its work requests are flushed. */
int admin_kill_qp(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `kill session SESSION`: as if its program had ended. */
int admin_kill_session(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

#endif
