/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/arg.h
 * What stands where a command's form has a word in capitals: QPN, PORT, SESSION ... The word says
 * what values there are, for checking them and for completing them. Control thread.
 */
#ifndef ADMIN_ARG_H
#define ADMIN_ARG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "text/document.h"

struct ctl;

/** Room for a value that is offered. */
#define ADMIN_VALUE_MAX 64

/** A kind of argument. */
struct admin_arg_kind {
	const char *name;	    /* the word in capitals */
	const char *help;	    /* what it is */
	const char *const *choices; /* the words it may be, NULL at the end; NULL: no such list */
	/**
	 * Without `choices`: checks @p arg[i].word and sets its number; arguments before it are
	 * done. NULL: any text.
	 * @return 0 or a negative errno with a sentence.
	 */
	int (*parse)(
		struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX]);
	/**
	 * Without `choices`: the next of the values that exist. @p at starts as zeroes.
	 * NULL: they cannot be listed.
	 * @return false when there is none left.
	 */
	bool (*next)(struct ctl *ctl, const struct argument arg[], unsigned i,
		struct document_cursor *at, char value[ADMIN_VALUE_MAX]);
};

/** @return the kind that the first @p len bytes of @p name call; any text for an unknown one. */
const struct admin_arg_kind *admin_arg_kind(const char *name, size_t len);

/** @return the i-th kind, any text excepted; NULL behind the last. */
const struct admin_arg_kind *admin_arg_kind_at(unsigned i);

/** Checks @p arg[i].word as @p kind says and sets its number.
 *  @return 0 or a negative errno with a sentence. */
int admin_arg_parse(struct ctl *ctl, const struct admin_arg_kind *kind, struct argument arg[],
	unsigned i, char why[ABI_SENTENCE_MAX]);

#endif
