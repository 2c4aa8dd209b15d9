/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin_command.h
 * What an administrator can say: the table of commands. Control thread.
 */
#ifndef ADMIN_COMMAND_H
#define ADMIN_COMMAND_H

#include "abi_ctl.h"
#include "document.h"

/** Most words of a command. */
#define ADMIN_WORDS 8

/**
 * A command that does something.
 * @param arg  the words that stand where the form has capitals
 * @return 0 or a negative errno with a sentence.
 */
typedef int (*admin_run)(struct ctl *ctl, char *const arg[], char why[ABI_SENTENCE_MAX]);

/** One row of the table. */
struct admin_command {
	const char *form; /* its words; those in capitals stand for arguments */
	const char *help;
	admin_run run;				    /* NULL: only shows */
	const struct document_section *const *show; /* the reply; NULL: {"done": form} */
};

/**
 * Executes @p line, whose words it takes apart.
 * @param d     receives the reply, to be read with document_part() ...
 * @param text  ... unless it is short: then it is here
 * @return 0 or -ENOMEM; a refusal is a reply too.
 */
int admin_execute(struct ctl *ctl, char *line, struct document *d, struct text *text);

/** @return the i-th row, NULL behind the last. */
const struct admin_command *admin_command_at(unsigned i);

#endif
