/* SPDX-License-Identifier: BSD-3-Clause */
/** @file run.h  The commands that run scenarios. */
#ifndef RUN_H
#define RUN_H

struct options;

/* Each returns the exit status of the program. */
int run_scenarios(struct options *o, char **names, int n);
int run_list(struct options *o);
int run_verify(struct options *o);

#endif
