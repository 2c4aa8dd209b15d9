/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file config/capacity.h
 * The capacity that sessions share: the sizes of rocid's tables, and the machine's limits for rocid
 * (memory, descriptors, mappings).
 */
#ifndef CONFIG_CAPACITY_H
#define CONFIG_CAPACITY_H

#include <stdint.h>
#include "config/config.h"

/** Fills @p capacity; memory and queues in bytes. Call it after rocid has allocated its own memory
 *  and opened its own descriptors, which it subtracts. */
void capacity_of_machine(uint64_t capacity[CTL_KINDS]);

#endif
