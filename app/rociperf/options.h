/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file options.h
 * The command line.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "plan.h"

/** The location of one end. */
struct place {
	const char *socket; /**< rocid's; NULL: roci_open()'s choice */
	unsigned port;	    /**< of the device, from 1; 0: chosen */
	int gid_index;	    /**< -1: chosen */
};

struct options {
	struct plan plan;
	const char *host;     /**< NULL: this is the server */
	const char *tcp_port; /**< of the server */
	bool both;	      /**< both ends in this process */
	struct place own;
	struct place peer; /**< with `both` */
	bool json;
	const char *plot; /**< file for an SVG; NULL: none */
	int cpu;	  /**< to run on; -1: any */
};

enum options_result {
	OPTIONS_GO,
	OPTIONS_DONE,  /**< --help or --version were answered */
	OPTIONS_WRONG, /**< a sentence was printed */
};

enum options_result options_parse(struct options *o, int argc, char *argv[]);

#endif
