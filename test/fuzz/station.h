/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file station.h
 * A control thread and workers for fuzzers, all run on the fuzzer's own thread: the input decides
 * which of them runs next. Sockets, shared memory and rings are real; no port has a device, so
 * packets go between QPs of the station itself.
 */
#ifndef STATION_H
#define STATION_H

#include "daemon.h"

/** Starts the station; call it from LLVMFuzzerInitialize(). */
void station_start(void);

struct ctl *station_ctl(void);

/** The applications' socket; the administrators' socket has ABI_ADMIN_SUFFIX appended. */
const char *station_path(void);

/** Has the control thread handle all pending input, and whatever that causes. */
void station_turn(void);

/** Has worker @p i (modulo the number of workers) run @p rounds rounds of its loop. */
void station_work(unsigned i, unsigned rounds);

/** Every client has disconnected: checks that none of their objects is left. */
void station_must_be_empty(void);

#endif
