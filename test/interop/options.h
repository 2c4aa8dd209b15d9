/* SPDX-License-Identifier: BSD-3-Clause */
/** @file options.h The peer program's command line. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "xport.h"

/** Exits with 2 and a sentence on a wrong argument, with 0 after --help. */
void options_parse(struct options *opt, int argc, char **argv);

#endif
