/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file raw.h
 * A numbered frame of no protocol that is passed back and forth through the port of a rocid in this
 * process, as its worker receives and sends: what is left of a round trip without RoCE.
 */
#ifndef RAW_H
#define RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worker;

/** Sends frame @p number, of @p size bytes, by the first port of @p w, whose rounds are not called
 *  meanwhile. */
void raw_send(struct worker *w, size_t size, uint32_t number);

/** @return whether frame @p number of the other end has arrived; all others are dropped. */
bool raw_arrived(struct worker *w, uint32_t number);

#endif
