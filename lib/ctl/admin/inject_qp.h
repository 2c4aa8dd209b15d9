/* SPDX-License-Identifier: BSD-3-Clause */
/** @file admin/inject_qp.h  rocictl inject: faults in the packets of any QP. Control thread. */
#ifndef ADMIN_INJECT_QP_H
#define ADMIN_INJECT_QP_H

#include "admin/arg.h"

/** inject qp QPN FAULT LINE */
int admin_inject(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);
/** inject clear */
int admin_inject_clear(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);
/** inject clear qp QPN */
int admin_inject_clear_qp(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);
/** inject clear qp QPN fault ID */
int admin_inject_clear_one(
	struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** All faults, and those of one QP. */
extern const struct document_section show_faults, show_qp_faults;

#endif
