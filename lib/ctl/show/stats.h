/* SPDX-License-Identifier: BSD-3-Clause */
/** @file show/stats.h  The sum of all counters as JSON. */
#ifndef SHOW_STATS_H
#define SHOW_STATS_H

#include <jansson.h>

struct dataplane;

/**
 * The sum of all workers' counters: the names of core_counter_name(), and "drops" with those of
 * drop_name(). Any thread.  @return an object, NULL when memory is short.
 */
json_t *show_stats(const struct dataplane *dp);

#endif
