/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/set_qp.h
 * What administrators change of how packets are addressed and marked; each is an admin_run. A QP's
 * worker makes the path anew between two packets; what the application asks for next (an address
 * vector) takes its place. Control thread.
 */
#ifndef ADMIN_SET_QP_H
#define ADMIN_SET_QP_H

#include "admin/arg.h"

/** `set qp QPN sport SPORT`: UDP source port; 0: that of the flow label. */
int admin_set_qp_sport(struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN flow-label LABEL`, and the source port that it makes; 0: that of the QPNs. */
int admin_set_qp_flow_label(
	struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN traffic-class TCLASS` */
int admin_set_qp_traffic_class(
	struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN hop-limit HOPS` */
int admin_set_qp_hop_limit(
	struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN sl SL` */
int admin_set_qp_sl(struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT pkey INDEX PKEY` */
int admin_set_port_pkey(struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT priority PRIORITIES`: of what is connected from now on. */
int admin_set_port_priority(
	struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT cc CC`: CNPs are sent and accepted so at once; what is connected from now on is
 *  ECN-capable, or not. */
int admin_set_port_cc(struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

#endif
