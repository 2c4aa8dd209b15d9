/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/device.h
 * Ports as programs hear of them, and what an administrator changes of one. Control thread.
 */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct ctl;

/** Tells programs of NETPORT_* @p what happened to port @p i. */
void port_tell(struct ctl *ctl, uint32_t i, unsigned what);

/** Takes port @p i out of use, or into it again (net/netport.h). */
void port_disable(struct ctl *ctl, uint32_t i, bool down);

/** Changes an entry of the P_Key table of port @p i while QPs use it: what they send and accept
 *  from then on has the new key, and programs hear of it (PKEY_CHANGE). */
void port_set_pkey(struct ctl *ctl, uint32_t i, uint32_t index, uint16_t pkey);

#endif
