/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file text/document.h
 * JSON documents of any length for administrators, made a part at a time: neither a table of
 * thousands of QPs nor a reader that is slow holds up the control thread. A document is one line,
 * an object whose members are sections: an object each, or a list. Control thread.
 *
 * A list is no snapshot: what comes or goes while it is being read may be in it or not, but
 * nothing is in it twice and nothing that stays is missing.
 */
#ifndef TEXT_DOCUMENT_H
#define TEXT_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "limits.h"

struct ctl;

/** Most words of a command. */
#define ADMIN_WORDS 12

/** An argument of a command. */
struct argument {
	const char *word; /* as it was typed */
	uint64_t number;  /* its meaning: a number, the place among the choices; 0 for plain text */
};

/** Where a list goes on; starts as zeroes. The lists share it out among themselves. */
struct document_cursor {
	uint32_t slot;	 /* of a session */
	uint32_t number; /* of the session that was in that slot; 0: none yet */
	uint32_t index;	 /* in the table */
	uint32_t row;	 /* of what lists several tables */
	uint32_t asker;	 /* place of a list whose elements are those of other lists */
};

/** A member of a document. */
struct document_section {
	const char *name;
	/** An object; NULL when memory is short. @p arg: the command's arguments, checked when it
	 *  came; an object that went away since is json_null(). */
	json_t *(*object)(struct ctl *ctl, const struct argument arg[]);
	/** Without `object`, a list: makes its next element, NULL when memory is short.
	 *  @return false when there is none left. */
	bool (*next)(struct ctl *ctl, const struct argument arg[], struct document_cursor *at,
		json_t **element);
	/** Without it, all elements belong to the list. */
	bool (*keep)(const struct argument arg[], const json_t *element);
};

/** What an element of a list must have to be in it. */
struct document_pair {
	const char *member;
	const char *value;
};

/** Text that grows; starts as zeroes. */
struct text {
	char *bytes;
	size_t len;
	size_t size;
};

/** Starts as zeroes. */
struct document {
	struct ctl *ctl;
	char line[ADMIN_LINE_MAX]; /* the command, taken apart; `arg` points into it */
	struct argument arg[ADMIN_WORDS];
	unsigned pairs;
	struct document_pair pair[ADMIN_WORDS / 2];
	const struct document_section *const
		*section; /* the one under way; *section NULL: the end */
	bool started;	  /* the brace that opens it is written */
	bool begun;	  /* the section's name is written */
	bool first;	  /* nothing of it is */
	struct document_cursor at;
};

/** Begins the document of @p sections, which a NULL ends. `line`, `arg` and `pair` stay as
 *  they are. */
void document_begin(
	struct document *d, struct ctl *ctl, const struct document_section *const *sections);

/**
 * Appends the next part to @p out, DOCUMENT_PART elements at most.
 * @return 1 when there is more, 0 when the document is complete, or -ENOMEM.
 */
int document_part(struct document *d, struct text *out);
#define DOCUMENT_PART 64u

/** Room for a value as text. */
#define DOCUMENT_VALUE_MAX 32

/** @return @p value as people read and type it, in @p text where it is not text already: yes, no,
 *  "-" for none. */
const char *document_value(const json_t *value, char text[DOCUMENT_VALUE_MAX]);

/** @return 0 or -ENOMEM. */
int text_add(struct text *t, const char *bytes, size_t len);

/** Appends @p value as JSON on one line and gives it up. NULL: there was no memory for it.
 *  @return 0 or -ENOMEM. */
int text_add_json(struct text *t, json_t *value);

/** Frees what @p t holds; it may be used again. */
void text_free(struct text *t);

#endif
