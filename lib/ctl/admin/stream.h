/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/stream.h
 * A socket that an administrator passes with a command, for output after the reply. The output ends
 * when the administrator closes the socket or shuts it down for writing. Thus rocid opens no files
 * for clients, and clients write with their own rights. Control thread.
 */
#ifndef ADMIN_STREAM_H
#define ADMIN_STREAM_H

#include "abi_ctl.h"
#include "admin/arg.h"

struct ctl;

/** @return 0 if a socket was passed with the current command, or a negative errno with a sentence.
 */
int admin_stream_check(const struct ctl *ctl, char why[ABI_SENTENCE_MAX]);

/**
 * Takes the socket of the current command.
 * @param fd  receives it; release it with reap_fd(), and send with MSG_DONTWAIT
 * @return 0 or a negative errno with a sentence.
 */
int admin_stream_take(struct ctl *ctl, int *fd, char why[ABI_SENTENCE_MAX]);

/**
 * Splits the rest of a command line into words.
 * @param word  receives them, NULL-terminated
 * @return their number, or a negative errno with a sentence if there are more than ADMIN_WORDS.
 */
int admin_stream_words(char *line, char *word[ADMIN_WORDS + 1], char why[ABI_SENTENCE_MAX]);

#endif
