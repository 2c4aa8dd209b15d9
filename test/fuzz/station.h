/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file station.h
 * A control thread and workers for fuzzers, all on the fuzzer's own thread, which lets one or the
 * other go on: what happens next is the input's doing. Sockets, shared memory and rings are real;
 * there is no port's device, so packets go between QPs of the station itself.
 */
#ifndef STATION_H
#define STATION_H

#include "daemon.h"

/** Starts it; to be called from LLVMFuzzerInitialize(). */
void station_start(void);

struct ctl *station_ctl(void);

/** The socket of applications; that of administrators has ABI_ADMIN_SUFFIX more. */
const char *station_path(void);

/** Has the control thread handle what has come, and what follows from that. */
void station_turn(void);

/** Has worker @p i (any number) make @p rounds of its loop. */
void station_work(unsigned i, unsigned rounds);

/** Nobody is connected any more: nothing must be left of what they had. */
void station_must_be_empty(void);

#endif
