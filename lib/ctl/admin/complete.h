/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/complete.h
 * Completions of the last word of a command line. Control thread.
 */
#ifndef ADMIN_COMPLETE_H
#define ADMIN_COMPLETE_H

#include "text/document.h"

/** For `complete LINE`: a list of {"word": ..., "help": ...} with whole words. An empty word means
 *  that the values cannot be listed; the help describes them. */
extern const struct document_section show_completions;

/** For `help LINE`: the kinds of arguments of its commands. */
extern const struct document_section show_arguments;

#endif
