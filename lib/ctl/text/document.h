/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file text/document.h
 * JSON documents of any length for administrators, generated in parts, so that neither a table of
 * thousands of QPs nor a slow reader delays the control thread. A document is one line: an object
 * whose members are sections, each an object or a list. Control thread.
 *
 * A list is not a snapshot: objects that are created or destroyed while it is read may be missing,
 * but no object appears twice, and objects that exist throughout are all there.
 */
#ifndef TEXT_DOCUMENT_H
#define TEXT_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "limits.h"

struct ctl;

/** Maximum number of words in a command. */
#define ADMIN_WORDS 12

/** An argument of a command. */
struct argument {
	const char *word; /* as it was typed */
	uint64_t number;  /* its value: a number, or the index of the choice; 0 for plain text */
};

/** The position in a list; zero at the start. Each list uses the members in its own way. */
struct document_cursor {
	uint32_t slot;	 /* of a session */
	uint32_t number; /* of the session that was in that slot; 0: none yet */
	uint32_t index;	 /* in the table */
	uint32_t row;	 /* of a list of several tables */
	uint32_t asker;	 /* position of a list that consists of other lists */
};

/** A member of a document. */
struct document_section {
	const char *name;
	/** @return an object; NULL when memory is short; json_null() if the object no longer
	 * exists.
	 *  @param arg  the command's arguments, checked when it arrived */
	json_t *(*object)(struct ctl *ctl, const struct argument arg[]);
	/** For a list, without `object`: creates its next element, NULL when memory is short.
	 *  @return false at the end. */
	bool (*next)(struct ctl *ctl, const struct argument arg[], struct document_cursor *at,
		json_t **element);
	/** Selects elements; NULL: the list contains all. */
	bool (*keep)(const struct argument arg[], const json_t *element);
};

/** A condition for the elements of a list. */
struct document_pair {
	const char *member;
	const char *value;
};

/** A growing text; zero at the start. */
struct text {
	char *bytes;
	size_t len;
	size_t size;
};

/** Zero at the start. */
struct document {
	struct ctl *ctl;
	char line[ADMIN_LINE_MAX]; /* the command, split into words; `arg` points into it */
	struct argument arg[ADMIN_WORDS];
	unsigned pairs;
	struct document_pair pair[ADMIN_WORDS / 2];
	const struct document_section *const *section; /* the current one; *section NULL: the end */
	bool started;				       /* the opening brace was written */
	bool begun;				       /* the section's name was written */
	bool first;				       /* no element was written */
	struct document_cursor at;
};

/** Begins the document of @p sections, which NULL terminates. Leaves `line`, `arg` and `pair`
 *  unchanged. */
void document_begin(
	struct document *d, struct ctl *ctl, const struct document_section *const *sections);

/**
 * Appends the next part to @p out, at most DOCUMENT_PART elements.
 * @return 1 if there is more, 0 when the document is complete, or -ENOMEM.
 */
int document_part(struct document *d, struct text *out);
#define DOCUMENT_PART 64u

/** @return 0 or -ENOMEM. */
int text_add(struct text *t, const char *bytes, size_t len);

/** Appends @p value as JSON on one line and releases it. NULL: out of memory.
 *  @return 0 or -ENOMEM. */
int text_add_json(struct text *t, json_t *value);

/** Frees the memory of @p t, which may be used again. */
void text_free(struct text *t);

#endif
