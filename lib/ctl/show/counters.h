/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file show/counters.h
 * The counters of a port, for documents and metrics. Control thread.
 */
#ifndef SHOW_COUNTERS_H
#define SHOW_COUNTERS_H

#include <stdbool.h>
#include "core_counters.h"

struct ctl;

/** The first values in the order of core_counter_name(): sums of the ports' counters. */
#define TOTALS 4u

struct port_counts {
	struct core_port_counters roce;
	uint64_t bad_pkey; /* saturates at BAD_PKEY_MAX */
	uint64_t bad_qkey; /* the same */
	uint64_t link_downed;
	/* from the device, including frames other than RoCE */
	uint64_t errors;   /* received, but broken */
	uint64_t missed;   /* lost before rocid saw them */
	uint64_t discards; /* not sent */
};

/** Reads the counters of port @p i. */
void port_counts(struct ctl *ctl, uint32_t i, struct port_counts *to);

#define PORT_COUNTERS 11u

/** A counter under its name of /sys/class/infiniband. */
struct named_count {
	const char *name;
	uint64_t value;
};

/** Reads the counters of port @p i under their names. */
void port_named_counts(struct ctl *ctl, uint32_t i, struct named_count to[PORT_COUNTERS]);

/** Reads the i-th of the daemon's hw_counters from @p sum.  @return false after the last. */
bool hw_named_count(const struct core_counters *sum, unsigned i, struct named_count *to);

#endif
