/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hosts.h
 * The hosts of a fuzzer, created once because they are large and the same for all inputs.
 */
#ifndef HOSTS_H
#define HOSTS_H

#include "host.h"

#define FUZZ_HOSTS 4u

/** @return host @p id, 1 to FUZZ_HOSTS - 1, with a core restarted at @p now. */
struct sim_host *fuzz_host(unsigned id, uint64_t now);

#endif
