/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/find.h
 * Objects of whatever session, by the numbers under which administrators and peers know them.
 * Control thread. What belongs to a session that is ending is not found.
 */
#ifndef VERBS_FIND_H
#define VERBS_FIND_H

#include <stdint.h>

struct ctl;
struct mr_obj;
struct qp_obj;
struct session;

/** @return the session of that number, or NULL. */
struct session *find_session(const struct ctl *ctl, uint64_t number);

/** @return the QP of that QPN, or NULL. */
struct qp_obj *find_qp(const struct ctl *ctl, uint64_t qpn);

/** @param owner receives its session  @return the region of that key, or NULL. */
struct mr_obj *find_mr(const struct ctl *ctl, uint64_t key, struct session **owner);

#endif
