/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/command.h
 * What an administrator can say: the table of commands. Control thread.
 */
#ifndef ADMIN_COMMAND_H
#define ADMIN_COMMAND_H

#include "abi_ctl.h"
#include "admin/arg.h"
#include "text/document.h"

/**
 * A command that does something, or that looks for what cannot be shown.
 * @param arg  what stands where the form has capitals, checked as its kind says (admin/arg.c)
 * @return 0 or a negative errno with a sentence.
 */
typedef int (*admin_run)(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** One row of the table. */
struct admin_command {
	const char *form; /* its words; those in capitals are arguments of the kind so named */
	const char *help;
	admin_run run; /* NULL: only shows */
	/** The reply, whose sections are given the arguments too; NULL: {"done": the line}. */
	const struct document_section *const *show;
};

/**
 * Executes @p line.
 * @param d     receives the reply, to be read with document_part() ...
 * @param text  ... unless it is short: then it is here
 * @return 0 or -ENOMEM; a refusal is a reply too.
 */
int admin_execute(struct ctl *ctl, const char *line, struct document *d, struct text *text);

/** @return the i-th row, NULL behind the last. */
const struct admin_command *admin_command_at(unsigned i);

#endif
