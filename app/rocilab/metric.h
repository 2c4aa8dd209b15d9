/* SPDX-License-Identifier: BSD-3-Clause */
/** @file metric.h  What a scenario can expect, and a run measures. */
#ifndef METRIC_H
#define METRIC_H

#include "text.h"

struct expectation;
struct lab;

#define METRIC_ALL UINT32_MAX

enum metric_of {
	OF_ALL,	    /* the whole network */
	OF_PORT,    /* name(sw0.8) */
	OF_FLOW,    /* name(0) */
	OF_ANY_FLOW /* name or name(0) */
};

struct metric {
	const char *name; /* with its part: "queue.mean" */
	enum metric_of of;
	enum unit unit;
	bool moment; /* "at T" follows */
	const char *help;
	double (*value)(const struct lab *l, const struct expectation *e);
};

extern const struct metric metrics[];
extern const unsigned metric_count;

/** @return the metric called @p name, or NULL. */
const struct metric *metric_find(const char *name);

/** @return whether @p value is what @p e expects. */
bool metric_met(const struct expectation *e, double value);

#endif
