/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file qp_table.h
 * From a QP number to its QP.
 */
#ifndef QP_TABLE_H
#define QP_TABLE_H

#include <stdatomic.h>
#include <stdint.h>
#include "limits.h"

struct qp;

/** QPN -> QP. Written by the control thread, read by all workers (decision 0000.4). A QP that was
 *  removed from the table is freed only after a grace period. */
struct qp_table {
	_Atomic(struct qp *) slot[QP_MAX];
	_Atomic(struct qp *) gsi[PORT_MAX]; /* QP1 of each port, which occupies no slot */
};

/* The worker bits name the QP's home: its first owner, and the worker to which a NIC rule steers
 * its packets. */
#define QPN_SLOT(qpn)	((qpn) & (QP_MAX - 1))
#define QPN_WORKER(qpn) ((qpn) >> QPN_SLOT_BITS & (WORKER_MAX - 1))
#define QPN_MAKE(gen, worker, slot)                             \
	((uint32_t)(gen) << (QPN_SLOT_BITS + QPN_WORKER_BITS) | \
		(uint32_t)(worker) << QPN_SLOT_BITS | (uint32_t)(slot))

#endif
