/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ask.h
 * One request to rocid's administration socket, and its answer.
 */
#ifndef ASK_H
#define ASK_H

#include <jansson.h>
#include <stddef.h>

/** Room for a sentence. */
#define ASK_WHY 512

/**
 * Connects to the administration socket that belongs to the applications' socket @p path.
 * @return a descriptor, or -1 with a sentence.
 */
int ask_connect(const char *path, char why[ASK_WHY]);

/**
 * Sends @p line, without its newline, and waits for the answer.
 * @return the document, to be released with json_decref(); NULL with a sentence.
 */
json_t *ask(int fd, const char *line, char why[ASK_WHY]);

/**
 * The same, and passes one end of a stream, on which rocid continues after the answer. It ends when
 * the stream is shut down for writing; data sent until then can still be read.
 * @param stream  receives our end
 * @return the document; NULL with a sentence, and no stream.
 */
json_t *ask_stream(int fd, const char *line, int *stream, char why[ASK_WHY]);

#endif
