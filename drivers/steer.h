/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file steer.h
 * Asks a NIC to bring RoCE packets to our queues by itself: a ladder of rte_flow rules, of
 * which a port takes as many rungs as it can. Nothing depends on them: what the NIC does not
 * steer, the workers classify and hand over.
 */
#ifndef STEER_H
#define STEER_H

#include <stdint.h>

/* Rungs. */
#define STEER_UDP4   (1u << 0) /* IPv4, UDP port 4791 */
#define STEER_UDP6   (1u << 1) /* IPv6, UDP port 4791 */
#define STEER_ROCEV1 (1u << 2) /* EtherType 0x8915 */
#define STEER_ALL    (STEER_UDP4 | STEER_UDP6 | STEER_ROCEV1)

/**
 * Installs what started port @p ethdev can of the ladder, over its first @p queues queues:
 * spread by RSS when there are several, else to queue 0.
 * @return the rungs that hold, STEER_*.
 */
unsigned steer_install(uint16_t ethdev, uint16_t queues);

/** @return what to call @p rungs in a start-up banner. */
const char *steer_name(unsigned rungs);

#endif
