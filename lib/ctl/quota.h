/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file quota.h
 * How much one application, and all of one user, may have (struct ctl_limits). Each check says
 * -EDQUOT, or -EUSERS for sessions, and a sentence that names the option behind it. root is no
 * user that a limit protects others from: only an application's own limits hold for it.
 */
#ifndef QUOTA_H
#define QUOTA_H

#include "state.h"

/** @return @p limits with defaults for what is 0, and nothing beyond what the tables hold. */
struct ctl_limits quota_limits(const struct ctl_limits *limits);

/** May @p peer have another session? */
int quota_session(const struct ctl *ctl, const struct ucred *peer, char why[ABI_SENTENCE_MAX]);

/** May @p s have another QP, CQ? */
int quota_qp(const struct session *s, char why[ABI_SENTENCE_MAX]);
int quota_cq(const struct session *s, char why[ABI_SENTENCE_MAX]);

/** Whether @p s may have one more memory region or window.  @return as quota_mr(). */
int quota_key(const struct session *s, char why[ABI_SENTENCE_MAX]);

/** May @p s have another region, of @p length bytes? */
int quota_mr(const struct session *s, uint64_t length, char why[ABI_SENTENCE_MAX]);

/** May @p s have @p size bytes more of queues? */
int quota_queues(const struct session *s, size_t size, char why[ABI_SENTENCE_MAX]);

#endif
