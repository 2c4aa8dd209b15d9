/* SPDX-License-Identifier: BSD-3-Clause */
/** @file qp_modify.h  Changes of a QP's attributes, for core_cmd(). */
#ifndef QP_MODIFY_H
#define QP_MODIFY_H

#include <stdint.h>

struct core;
struct core_cmd;
struct qp;

/** CORE_CMD_MODIFY_QP.  @return as core_cmd() */
int qp_modify(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now);

/** CORE_CMD_REPATH_QP.  @return as core_cmd() */
int qp_repath(struct core *c, struct qp *qp, struct core_cmd *cmd, uint64_t now);

/** CORE_CMD_READDRESS_QPS, for @p qp. */
void qp_readdress(struct core *c, struct qp *qp, const struct core_cmd *cmd, uint64_t now);

/** CORE_CMD_RELOAD_PKEYS, for @p qp. */
void qp_load_pkey(const struct core *c, struct qp *qp);

#endif
