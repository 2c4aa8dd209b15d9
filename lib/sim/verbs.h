/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs.h
 * Acts as the application and the control thread of a simulated host: moves QPs through their
 * states, posts work requests to rings and polls completions, in the layout of abi_ring.h.
 */
#ifndef SIM_VERBS_H
#define SIM_VERBS_H

#include <stdbool.h>
#include <stdint.h>

struct abi_cq_lane;
struct abi_cqe;
struct abi_qp_attr;
struct abi_queue;
struct core;
struct path_spec;
struct qp;

/** Runs one MODIFY_QP to completion.  @return as core_cmd() */
int verbs_modify(struct core *c, struct qp *qp, uint32_t mask, const struct abi_qp_attr *attr,
	const struct path_spec *path, uint64_t now);

/** MODIFY_QP with all attributes that the transition requires of a QP of this type (QPS-02,
 *  QPS-04, QPS-06).  @return as core_cmd() */
int verbs_to_init(struct core *c, struct qp *qp, const struct abi_qp_attr *attr, uint64_t now);
int verbs_to_rtr(struct core *c, struct qp *qp, const struct abi_qp_attr *attr,
	const struct path_spec *path, uint64_t now);
int verbs_to_rts(struct core *c, struct qp *qp, const struct abi_qp_attr *attr, uint64_t now);

/** Publishes an entry: writes @p ctl with the mark of entry @p idx into @p slot, whose other bytes
 *  are already there, and counts it in @p shared.  @return whether the doorbell must be rung */
bool verbs_publish(
	uint8_t *slot, uint32_t ctl, uint32_t idx, uint32_t depth, struct abi_queue *shared);

/** Takes the next CQE of @p lane of @p depth entries; @p taken counts those taken.
 *  @return false when there is none */
bool verbs_take(struct abi_cq_lane *lane, uint32_t depth, uint32_t *taken, struct abi_cqe *cqe);

#endif
