/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/set_qp.h
 * Changes to the addressing and marking of packets by administrators; each is an admin_run. A QP's
 * worker rebuilds the path between two packets; an address vector that the application sets later
 * replaces it. Control thread.
 */
#ifndef ADMIN_SET_QP_H
#define ADMIN_SET_QP_H

#include "admin/arg.h"

/** `set qp QPN sport SPORT`: UDP source port; 0: derived from the flow label. */
int admin_set_qp_sport(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN flow-label LABEL`, and the source port derived from it; 0: derived from the QPNs. */
int admin_set_qp_flow_label(
	struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN traffic-class TCLASS` */
int admin_set_qp_traffic_class(
	struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN hop-limit HOPS` */
int admin_set_qp_hop_limit(
	struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set qp QPN sl SL` */
int admin_set_qp_sl(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT pkey INDEX PKEY` */
int admin_set_port_pkey(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT priority PRIORITIES`: for objects connected from now on. */
int admin_set_port_priority(
	struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** `set port PORT cc CC`: takes effect at once for CNPs; for ECN-capability, only for objects
 *  connected from now on. */
int admin_set_port_cc(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

#endif
