/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/command.h
 * The administrators' commands. Control thread.
 */
#ifndef ADMIN_COMMAND_H
#define ADMIN_COMMAND_H

#include "abi_ctl.h"

struct ctl;
struct document;
struct text;

/**
 * Executes @p line.
 * @param d     receives the reply, to be read with document_part()
 * @param text  receives a short reply instead
 * @return 0 or -ENOMEM; an error is a reply, too.
 */
int admin_execute(struct ctl *ctl, const char *line, struct document *d, struct text *text);

#endif
