/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/command.h
 * The administrators' commands. Control thread.
 */
#ifndef ADMIN_COMMAND_H
#define ADMIN_COMMAND_H

#include "abi_ctl.h"
#include "admin/arg.h"
#include "text/document.h"

/**
 * Executes a command, or checks whether its objects can be shown.
 * @param arg  the arguments, already checked according to their kinds (admin/arg.c)
 * @return 0 or a negative errno with a sentence.
 */
typedef int (*admin_run)(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** One row of the table. */
struct admin_command {
	const char *form; /* its words; those in capitals are arguments of that kind */
	const char *help;
	admin_run run; /* NULL: the command only shows something */
	/** The reply, whose sections receive the arguments, too; NULL: {"done": the line}. */
	const struct document_section *const *show;
};

/**
 * Executes @p line.
 * @param d     receives the reply, to be read with document_part()
 * @param text  receives a short reply instead
 * @return 0 or -ENOMEM; an error is a reply, too.
 */
int admin_execute(struct ctl *ctl, const char *line, struct document *d, struct text *text);

/** @return the i-th row, NULL after the last. */
const struct admin_command *admin_command_at(unsigned i);

#endif
