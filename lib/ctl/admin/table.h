/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/table.h
 * The table of the administrators' commands. Control thread.
 */
#ifndef ADMIN_TABLE_H
#define ADMIN_TABLE_H

#include "abi_ctl.h"
#include "admin/arg.h"

struct document_section;

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

/** @return the i-th row, NULL after the last. */
typedef const struct admin_command *(*admin_table)(unsigned i);

#endif
