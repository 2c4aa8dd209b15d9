/* SPDX-License-Identifier: BSD-3-Clause */
/** @file seal.h  Sealing a packet before the caller does. */
#ifndef SEAL_H
#define SEAL_H

#include <stdint.h>

struct core;
struct txd;

/** Like core_seal(), but does not yet count the packet as sent. */
uint16_t seal_frame(struct core *c, struct txd *t);

#endif
