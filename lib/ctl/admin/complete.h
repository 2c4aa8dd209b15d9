/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/complete.h
 * What the last word of a line may become: for who types commands. Control thread.
 */
#ifndef ADMIN_COMPLETE_H
#define ADMIN_COMPLETE_H

#include "text/document.h"

/** Of `complete LINE`: a list of {"word": ..., "help": ...}, each word a whole one. An empty word:
 *  what is wanted cannot be listed, but the help says what it is. */
extern const struct document_section show_completions;

/** Of `help LINE`: the kinds of arguments that its commands have. */
extern const struct document_section show_arguments;

#endif
