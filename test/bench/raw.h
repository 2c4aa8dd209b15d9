/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file raw.h
 * A numbered frame without any protocol, passed back and forth through the port of a rocid in this
 * process in the way that its worker receives and sends: a round trip less the cost of RoCE.
 */
#ifndef RAW_H
#define RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worker;

/** Sends frame @p number, of @p size bytes, through the first port of @p w, whose rounds must not
 *  run meanwhile. */
void raw_send(struct worker *w, size_t size, uint32_t number);

/** @return whether frame @p number has arrived from the other end; all others are dropped. */
bool raw_arrived(struct worker *w, uint32_t number);

#endif
