/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "json_text.h"
#include "number.h"
#include "text/document.h"

#define FIRST_SIZE 1024u

int text_add(struct text *t, const char *bytes, size_t len)
{
	size_t size = t->size ? t->size : FIRST_SIZE;
	char *grown;

	while (size - t->len < len)
		size *= 2;
	if (size != t->size) {
		grown = realloc(t->bytes, size);
		if (!grown)
			return -ENOMEM;
		t->bytes = grown;
		t->size = size;
	}
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	return 0;
}

static int add_bytes(const char *bytes, size_t len, void *t)
{
	return text_add(t, bytes, len);
}

int text_add_json(struct text *t, json_t *value)
{
	int err = value && !json_dump_callback(value, add_bytes, t, JSON_COMPACT | JSON_ENCODE_ANY)
			  ? 0
			  : -ENOMEM;

	json_decref(value);
	return err;
}

void text_free(struct text *t)
{
	free(t->bytes);
	memset(t, 0, sizeof(*t));
}

void document_begin(
	struct document *d, struct ctl *ctl, const struct document_section *const *sections)
{
	d->ctl = ctl;
	d->section = sections;
	d->started = false;
	d->begun = false;
	memset(&d->at, 0, sizeof(d->at));
}

static int add_text(struct text *out, const char *s)
{
	return text_add(out, s, strlen(s));
}

static void next_section(struct document *d)
{
	d->section++;
	d->begun = false;
	memset(&d->at, 0, sizeof(d->at));
}

static int begin_section(struct document *d, struct text *out)
{
	int err = add_text(out, d->started ? "," : "{");

	d->started = true;
	d->begun = true;
	d->first = true;
	return err ? err : text_add_json(out, json_string((*d->section)->name));
}

static int add_object(struct document *d, struct text *out)
{
	int err = add_text(out, ":");

	if (!err)
		err = text_add_json(out, (*d->section)->object(d->ctl, d->arg));
	next_section(d);
	return err;
}

static bool has_pair(const json_t *element, const struct document_pair *pair)
{
	const json_t *value = json_object_get(element, pair->member);
	char text[JSON_TEXT_MAX];
	uint64_t number;

	if (json_is_integer(value) && parse_number(pair->value, INT64_MAX, &number))
		return json_integer_value(value) == (json_int_t)number;
	return !strcasecmp(json_text(value, text), pair->value);
}

static bool wanted(const struct document *d, const json_t *element)
{
	const struct document_section *s = *d->section;

	if (s->keep && !s->keep(d->arg, element))
		return false;
	for (unsigned i = 0; i < d->pairs; i++)
		if (!has_pair(element, &d->pair[i]))
			return false;
	return true;
}

/* Appends one element, or the end of the list. */
static int add_element(struct document *d, struct text *out)
{
	json_t *element = NULL;
	bool more = (*d->section)->next(d->ctl, d->arg, &d->at, &element);
	int err = 0;

	if (more && element && !wanted(d, element)) {
		json_decref(element);
		return 0;
	}
	if (d->first)
		err = add_text(out, ":[");
	else if (more)
		err = add_text(out, ",");
	d->first = false;
	if (!err && more)
		return text_add_json(out, element);
	json_decref(element);
	if (more)
		return err;
	next_section(d);
	return err ? err : add_text(out, "]");
}

int document_part(struct document *d, struct text *out)
{
	for (unsigned i = 0; i < DOCUMENT_PART; i++) {
		int err = 0;

		if (!*d->section)
			return add_text(out, "}\n");
		if (!d->begun)
			err = begin_section(d, out);
		if (!err)
			err = (*d->section)->object ? add_object(d, out) : add_element(d, out);
		if (err)
			return err;
	}
	return 1;
}
