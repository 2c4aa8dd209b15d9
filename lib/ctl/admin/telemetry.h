/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/telemetry.h
 * The commands /roci/... on DPDK's telemetry socket: the administrators' commands (admin/command.h)
 * for dpdk-telemetry.py and other tools that monitor DPDK programs.
 *
 * DPDK's threads ask, and the control thread answers between its other work, one part of a document
 * at a time. A question waits at most TELEMETRY_PATIENCE_MS.
 */
#ifndef ADMIN_TELEMETRY_H
#define ADMIN_TELEMETRY_H

#include "abi_ctl.h"

struct ctl;

#define TELEMETRY_PATIENCE_MS 5000u

/** Starts to answer. DPDK 22.11 cannot unregister commands: without a daemon they return no
 *  answer.  @return 0, or a negative errno with a sentence. */
int telemetry_open(struct ctl *ctl, char why[ABI_SENTENCE_MAX]);

/** Refuses pending and later questions. Ignores NULL. */
void telemetry_close(struct ctl *ctl);

#endif
