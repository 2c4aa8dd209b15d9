/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/telemetry.h
 * DPDK's telemetry socket, commands /roci/...: what administrators can ask (admin/command.h), for
 * dpdk-telemetry.py and monitoring that speaks to DPDK programs.
 *
 * DPDK's threads ask and the control thread answers, a part of a document at a time, between its
 * other work; who asks waits for TELEMETRY_PATIENCE_MS at most.
 */
#ifndef ADMIN_TELEMETRY_H
#define ADMIN_TELEMETRY_H

#include "abi_ctl.h"

struct ctl;

#define TELEMETRY_PATIENCE_MS 5000u

/** Answers from here on. DPDK 22.11 cannot take commands back: they stay, and have no answer when
 *  no daemon is there.  @return 0, or a negative errno with a sentence. */
int telemetry_open(struct ctl *ctl, char why[ABI_SENTENCE_MAX]);

/** Refuses who waits, and whoever asks later. NULL is harmless. */
void telemetry_close(struct ctl *ctl);

#endif
