/* SPDX-License-Identifier: BSD-3-Clause */
/** @file options.h  The command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdint.h>
#include "out/out.h"
#include "parse.h"

#define SETTINGS_MAX 64u
#define SWEEPS_MAX   4u
#define SWEEP_VALUES 64u

/** --sweep: a setting with several values. */
struct sweep {
	const char *statement, *name;
	const char *value[SWEEP_VALUES];
	unsigned values;
};

struct options {
	const char *library;
	bool quick;
	bool all_ports;
	bool seeded;
	uint64_t seed;
	unsigned jobs;
	struct out_options out; /* folder NULL: no files */
	struct setting setting[SETTINGS_MAX];
	unsigned settings;
	struct sweep sweep[SWEEPS_MAX];
	unsigned sweeps;
};

/** Prints @p why on standard error. @return 2 */
int fail(const char *why);

/** Reads the command line; --help and --version end the program.  @return 0, or as fail() */
int options_read(struct options *o, int argc, char **argv);

void options_usage(FILE *f);
void options_help(void);

#endif
