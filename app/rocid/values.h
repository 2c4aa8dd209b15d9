/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file values.h
 * Sets fields of struct options from text. All functions return 0, or -EINVAL with the reason in
 * @p why.
 */
#ifndef VALUES_H
#define VALUES_H

#include <stddef.h>
#include <stdint.h>
#include "options.h"

enum value_kind {
	VALUE_TEXT,  /* char[] */
	VALUE_OCTAL, /* uint32_t */
	VALUE_COUNT, /* uint32_t, decimal, from 1 */
	VALUE_FLAG,  /* bool: yes, no, or no value */
};

/** Where and how the value of an option is stored. */
struct value_type {
	enum value_kind kind;
	size_t offset;	  /* of the field in struct options */
	uint32_t max;	  /* the largest value, or the size of the array */
	const char *what; /* the value in error sentences */
	/** Not NULL: parses and stores the value instead. */
	int (*own)(struct options *o, const char *value, char why[VALUE_MAX]);
};

/** Sets the field that @p type describes, or calls its own function. */
int value_set(
	struct options *o, const struct value_type *type, const char *value, char why[VALUE_MAX]);

/* The options whose values are of no common type. */
int set_device(struct options *o, const char *value, char why[VALUE_MAX]);
int set_rocev1(struct options *o, const char *value, char why[VALUE_MAX]);
int set_cm(struct options *o, const char *value, char why[VALUE_MAX]);
int set_userfaultfd(struct options *o, const char *value, char why[VALUE_MAX]);
int set_share(struct options *o, const char *value, char why[VALUE_MAX]);
int set_tap(struct options *o, const char *value, char why[VALUE_MAX]);
int set_ipoib(struct options *o, const char *value, char why[VALUE_MAX]);
int set_gid(struct options *o, const char *value, char why[VALUE_MAX]);
int set_neigh(struct options *o, const char *value, char why[VALUE_MAX]);
int set_queues(struct options *o, const char *value, char why[VALUE_MAX]);
int set_mtu(struct options *o, const char *value, char why[VALUE_MAX]);
int set_pkey(struct options *o, const char *value, char why[VALUE_MAX]);
int set_priority(struct options *o, const char *value, char why[VALUE_MAX]);
int set_cc(struct options *o, const char *value, char why[VALUE_MAX]);
int set_flow_label(struct options *o, const char *value, char why[VALUE_MAX]);
int set_ring_pair(struct options *o, const char *value, char why[VALUE_MAX]);
int set_impair(struct options *o, const char *value, char why[VALUE_MAX]);
int set_migrate(struct options *o, const char *value, char why[VALUE_MAX]);
int set_idle(struct options *o, const char *value, char why[VALUE_MAX]);
int set_icrc(struct options *o, const char *value, char why[VALUE_MAX]);
int set_ready_fd(struct options *o, const char *value, char why[VALUE_MAX]);
int set_stats(struct options *o, const char *value, char why[VALUE_MAX]);

#endif
