/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file config/capacity.h
 * How much there is of what sessions share: the sizes of rocid's tables, and what the machine
 * gives rocid (memory, descriptors, mappings).
 */
#ifndef CONFIG_CAPACITY_H
#define CONFIG_CAPACITY_H

#include <stdint.h>
#include "config/config.h"

/** Fills @p capacity; memory and queues in bytes. To be called when rocid has its own memory and
 *  descriptors already, which are not for sessions. */
void capacity_of_machine(uint64_t capacity[CTL_KINDS]);

#endif
