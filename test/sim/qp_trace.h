/* SPDX-License-Identifier: BSD-3-Clause */
/** @file qp_trace.h  What happens to QPs of simulated hosts (core/trace.h), on standard output. */
#ifndef QP_TRACE_H
#define QP_TRACE_H

#include "app.h"

/** Traces @p q, which was just made, as @p name. */
void qp_trace_begin(struct app_qp *q, char name, uint64_t now);

/** Prints what has happened to all of them. */
void qp_trace_print(void);

#endif
