/* SPDX-License-Identifier: BSD-3-Clause */
/** @file invariants.h  What must hold of a host and its application after every step
 *  (design.md 8), whatever happened in it. */
#ifndef INVARIANTS_H
#define INVARIANTS_H

#include "app.h"

/** Fails the test when one does not hold at @p now. */
void invariants_check(const struct app *a, uint64_t now);

#endif
