/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/pkeys.h
 * The P_Key table of a port (A17.4.7, GID-07, BTH-11, VAL-08, VAL-09). It has PKEY_MAX entries; the
 * value 0 marks an empty one, which matches nothing and which no QP can use. Control thread.
 */
#ifndef NET_PKEYS_H
#define NET_PKEYS_H

#include <stdbool.h>
#include "config/config.h"

struct port;

/** Fills the table: entry 0 is 0xFFFF unless @p k sets it. */
void pkeys_init(struct port *p, const struct ctl_pkey *k, uint32_t n);

/** Sets an entry, of which QPs keep copies.  @return whether the value has changed. */
bool pkeys_set(struct port *p, uint32_t index, uint16_t pkey);

#endif
