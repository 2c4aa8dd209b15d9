/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/arg.h
 * Arguments of commands, which are words in capitals in a command's form: QPN, PORT, SESSION ...
 * The word determines how values are checked and completed. Control thread.
 */
#ifndef ADMIN_ARG_H
#define ADMIN_ARG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi_ctl.h"
#include "text/document.h"

struct ctl;

/** Room for a completion. */
#define ADMIN_VALUE_MAX 64

/** A kind of argument. */
struct admin_arg_kind {
	const char *name;	    /* the word in capitals */
	const char *help;	    /* what it is */
	const char *const *choices; /* the accepted words, NULL-terminated; NULL: no fixed list */
	/**
	 * Only without `choices`: checks @p arg[i].word and sets its number; earlier arguments are
	 * already parsed. NULL: any text is accepted.
	 * @return 0 or a negative errno with a sentence.
	 */
	int (*parse)(
		struct ctl *ctl, struct argument arg[], unsigned i, char why[ABI_SENTENCE_MAX]);
	/**
	 * Only without `choices`: finds the next existing value. @p at is zero at the start. NULL:
	 * the values cannot be listed.
	 * @return false at the end.
	 */
	bool (*next)(struct ctl *ctl, const struct argument arg[], unsigned i,
		struct document_cursor *at, char value[ADMIN_VALUE_MAX]);
};

/** @return the kind that the first @p len bytes of @p name denote; any text if it is unknown. */
const struct admin_arg_kind *admin_arg_kind(const char *name, size_t len);

/** @return the i-th kind, except any text; NULL after the last. */
const struct admin_arg_kind *admin_arg_kind_at(unsigned i);

/** Checks @p arg[i].word as @p kind says and sets its number.
 *  @return 0 or a negative errno with a sentence. */
int admin_arg_parse(struct ctl *ctl, const struct admin_arg_kind *kind, struct argument arg[],
	unsigned i, char why[ABI_SENTENCE_MAX]);

#endif
