/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file effort.h
 * How much of a search a test does: a quarter of it where programs are slow, under sanitizers and
 * in the emulator of another CPU. The plain build on x86-64 does all of it.
 */
#ifndef EFFORT_H
#define EFFORT_H

#define EFFORT(n) (SLOW_PROGRAMS ? (n) / 4 : (n))

/** The same of @p n seeds, of which the first @p kinds differ in kind: these stay. */
#define EFFORT_OF(n, kinds) (EFFORT(n) < (kinds) ? (kinds) : EFFORT(n))

#endif
