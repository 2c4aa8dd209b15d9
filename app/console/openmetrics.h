/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file openmetrics.h
 * Families of samples (lib/ctl/show/metrics.c) as OpenMetrics text, for Prometheus and for the
 * textfile collector of its node_exporter.
 */
#ifndef OPENMETRICS_H
#define OPENMETRICS_H

#include <jansson.h>
#include <stdio.h>

/** Prints the list @p families, including the line that ends it, "# EOF". */
void openmetrics_print(const json_t *families, FILE *f);

#endif
