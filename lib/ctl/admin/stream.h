/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/stream.h
 * A socket that an administrator passes along with a command, for what goes on after the reply: it
 * ends when the administrator closes it, or shuts it down for writing. So rocid opens no file for
 * anybody, and whoever asks writes with his own rights. Control thread.
 */
#ifndef ADMIN_STREAM_H
#define ADMIN_STREAM_H

#include "abi_ctl.h"
#include "admin/arg.h"

struct ctl;

/** @return 0 when a socket came with the command under way, or a negative errno with a sentence. */
int admin_stream_check(const struct ctl *ctl, char why[ABI_SENTENCE_MAX]);

/**
 * Takes the socket of the command under way.
 * @param fd  receives it; to be given up with reap_fd(), and sent to with MSG_DONTWAIT
 * @return 0 or a negative errno with a sentence.
 */
int admin_stream_take(struct ctl *ctl, int *fd, char why[ABI_SENTENCE_MAX]);

/**
 * Cuts what follows a command into its words.
 * @param word  receives them; behind the last comes NULL
 * @return their number, or a negative errno with a sentence when there are more than ADMIN_WORDS.
 */
int admin_stream_words(char *line, char *word[ADMIN_WORDS + 1], char why[ABI_SENTENCE_MAX]);

#endif
