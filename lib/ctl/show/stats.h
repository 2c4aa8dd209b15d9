/* SPDX-License-Identifier: BSD-3-Clause */
/** @file show/stats.h  Counters as JSON, for a file. */
#ifndef SHOW_STATS_H
#define SHOW_STATS_H

#include <stdio.h>

struct dataplane;

/**
 * Writes the sum of all workers' counters as one JSON object: the names of
 * core_counter_name(), and "drops" with those of drop_name(). Any thread.
 */
void ctl_stats_json(const struct dataplane *dp, FILE *f);

#endif
