/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file sysfs/sysfs.h
 * The device as files, as Linux shows an RDMA adapter below /sys/class/infiniband. roci-run directs
 * programs to them (ibstat, show_gids, UCX). They follow the device at once, its counters every
 * SYSFS_PERIOD_MS, and disappear when rocid ends. Control thread.
 */
#ifndef SYSFS_SYSFS_H
#define SYSFS_SYSFS_H

#include <stdint.h>
#include "abi_ctl.h"

struct ctl;

/** Maximum age of counters, as hw_counters/lifespan reports. */
#define SYSFS_PERIOD_MS 1000u

/**
 * Creates the folder @p socket ABI_SYSFS_SUFFIX. A failure is not fatal: rocid works without it.
 * @return 0, or a negative errno with a sentence.
 */
int sysfs_open(struct ctl *ctl, const char *socket, char why[ABI_SENTENCE_MAX]);

/** Removes it. Call it before the socket is removed, whose name another rocid may then use. */
void sysfs_close(struct ctl *ctl);

/** Writes what has changed.  @return milliseconds until the next call is due; -1: never. */
int sysfs_poll(struct ctl *ctl, uint64_t now_ms);

#endif
