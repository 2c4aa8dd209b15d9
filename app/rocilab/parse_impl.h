/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file parse_impl.h
 * Inside the parser:
 *
 *     parse.c         lines, statements, and those that are short
 *     parse_keys.c    errors, and settings such as kmin=5K
 *     parse_cc.c      cc
 *     parse_net.c     topology, switch
 *     network_file.c  the file of a topology
 *     parse_flow.c    flow, at
 *     parse_traffic.c traffic
 *     parse_expect.c  expect
 */
#ifndef PARSE_IMPL_H
#define PARSE_IMPL_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bits.h"
#include "parse.h"
#include "suggest.h"
#include "text.h"

struct flow_line;

#define WORDS_MAX 40u

struct parser {
	struct scenario *s;
	const char *name;
	unsigned line;
	char *word[WORDS_MAX];
	unsigned words;
	unsigned seen; /* a bit per statement that may occur once, and did */
	struct setting *settings;
	unsigned nsettings;
	char *why;
	size_t why_size;
	const uint32_t *node; /* of a topology file: the number here of each of its nodes */
	uint32_t nodes;	      /* 0: the topology is of no file */
};

/** Reports what is wrong with the line. @return -EINVAL */
__attribute__((format(printf, 2, 3))) int wrong(struct parser *p, const char *format, ...);

enum kind {
	KIND_WHOLE, /* uint64_t */
	KIND_BYTES, /* uint64_t */
	KIND_RATE,  /* uint64_t */
	KIND_TIME,  /* uint64_t */
	KIND_PART,  /* double */
	KIND_RANGE, /* two uint64_t: times, "0..1us" or "1us" */
	KIND_CHOICE /* bool: the second of two words */
};

struct key {
	const char *name;
	enum kind kind;
	void *to;
	double min, max;
	const char *choice[2];
};

/** Reads @p value for @p k.  @return 0, or as wrong() */
int set_key(struct parser *p, const struct key *k, const char *value);

/** Reads the words from @p first on as settings, then those of the command line for this
 *  statement.  @return 0, or as wrong() */
int set_all(struct parser *p, unsigned first, const struct key *keys, unsigned n);

/** Reads the numbers of flows that exist.  @return 0, or as wrong() */
int flow_numbers(struct parser *p, const char *word, uint32_t *first, uint32_t *last);

/** Reads the network in the file @p path (network_file.c).  @return 0, or as wrong() */
int network_file(struct parser *p, const char *path);

/** Lists the topologies. */
void topology_help(FILE *f);

/** Prints the algorithms of congestion control, their profiles and parameters. */
void cc_help(FILE *f);

/** Sets the operation of @p f if @p word is the name of one.  @return whether it is */
bool take_op(const char *word, struct flow_line *f);

/** Checks the size of a flow of datagrams when the path MTU is known, which is the default.
 *  @return 0 or -EINVAL */
int check_datagrams(struct parser *p, struct flow_line *f);

/** Removes the word "repeat", if present, from the words from @p first on, and sets @p count to 0.
 *  @return 0 or -EINVAL: both "repeat" and a count are given */
int take_repeat(struct parser *p, unsigned first, uint64_t *count);

/* Statements. */
int on_traffic(struct parser *p);
int on_topology(struct parser *p);
int on_switch(struct parser *p);
int on_cc(struct parser *p);
int on_flow(struct parser *p);
int on_at(struct parser *p);
int on_expect(struct parser *p);

#endif
