/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/complete.h
 * Completions of the last word of a command line: functions for struct document_section, with the
 * table of commands. Control thread.
 */
#ifndef ADMIN_COMPLETE_H
#define ADMIN_COMPLETE_H

#include "admin/table.h"
#include "text/document.h"

/** For `complete LINE`: a list of {"word": ..., "help": ...} with whole words. An empty word means
 *  that the values cannot be listed; the help describes them. */
bool complete_next(admin_table row, struct ctl *ctl, const struct argument arg[],
	struct document_cursor *at, json_t **element);
bool complete_keep(const struct argument arg[], const json_t *element);

/** For `help LINE`: the kinds of arguments of its commands. */
bool complete_argument(
	admin_table row, const struct argument arg[], struct document_cursor *at, json_t **element);

#endif
