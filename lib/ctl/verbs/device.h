/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/device.h
 * Port events for programs, and changes to ports by an administrator. Control thread.
 */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct ctl;

/** @return the GUID of the device, in network byte order: from the MAC of its first port. */
uint64_t device_guid(const struct ctl *ctl);

/** Notifies programs of the NETPORT_* changes @p what of port @p i. */
void port_tell(struct ctl *ctl, uint32_t i, unsigned what);

/** Disables or enables port @p i (net/netport.h). */
void port_disable(struct ctl *ctl, uint32_t i, bool down);

/** Changes an entry of the P_Key table of port @p i while QPs use it: they send and accept the new
 *  key from then on, and programs get a PKEY_CHANGE event. */
void port_set_pkey(struct ctl *ctl, uint32_t i, uint32_t index, uint16_t pkey);

#endif
