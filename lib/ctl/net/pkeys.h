/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net/pkeys.h
 * The P_Key table of a port (A17.4.7, GID-07, BTH-11, VAL-08, VAL-09). It has PKEY_MAX entries; 0
 * is an empty one, which nothing matches and no QP can be given. Control thread.
 */
#ifndef NET_PKEYS_H
#define NET_PKEYS_H

#include "config/config.h"

struct ctl;
struct port;

/** Fills the table: entry 0 is 0xFFFF unless one of @p k says otherwise. */
void pkeys_init(struct port *p, const struct ctl_pkey *k, uint32_t n);

/** Changes an entry while QPs use it: what they send and accept from then on has the new key, and
 *  applications hear of it (PKEY_CHANGE). @p port counts from 0. */
void pkeys_set(struct ctl *ctl, uint32_t port, uint32_t index, uint16_t pkey);

#endif
