/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "text/document.h"

static uint32_t length;	  /* of the list */
static uint32_t short_at; /* the element for which there is no memory */

static json_t *object(struct ctl *ctl, const struct argument arg[])
{
	return json_pack("{s:i}", "one", 1);
}

static json_t *no_object(struct ctl *ctl, const struct argument arg[])
{
	return NULL;
}

static bool next(
	struct ctl *ctl, const struct argument arg[], struct document_cursor *at, json_t **element)
{
	if (at->index == length)
		return false;
	*element = at->index == short_at ? NULL : json_integer(at->index);
	at->index++;
	return true;
}

static const struct document_section single = {.name = "single", .object = object};
static const struct document_section list = {.name = "list", .next = next};
static const struct document_section other = {.name = "other", .next = next};
static const struct document_section no_memory = {.name = "none", .object = no_object};

/* All parts together.  @return their number, or a negative errno. */
static int read_all(const struct document_section *const *sections, struct text *text)
{
	struct document d = {0};
	int parts = 1, more;

	document_begin(&d, NULL, sections);
	while ((more = document_part(&d, text)) == 1)
		parts++;
	return more ? more : parts;
}

static void read_is(const struct document_section *const *sections, const char *want)
{
	struct text text = {0};

	assert_true(read_all(sections, &text) > 0);
	assert_int_equal(text_add(&text, "", 1), 0);
	assert_string_equal(text.bytes, want);
	text_free(&text);
}

static void document_part__sections(void **state)
{
	static const struct document_section *const three[] = {&list, &single, &other, NULL};
	static const struct document_section *const one[] = {&list, NULL};

	length = 0;
	short_at = UINT32_MAX;
	read_is(one, "{\"list\":[]}\n");
	length = 1;
	read_is(one, "{\"list\":[0]}\n");
	length = 3;
	read_is(three, "{\"list\":[0,1,2],\"single\":{\"one\":1},\"other\":[0,1,2]}\n");
}

/* The buffer may be emptied between any two parts. */
static void document_part__is_bounded(void **state)
{
	static const struct document_section *const two[] = {&list, &other, NULL};
	struct text part = {0}, all = {0};
	struct document d = {0};
	json_t *read;
	int more = 1;

	short_at = UINT32_MAX;
	length = 10 * DOCUMENT_PART + 7;
	document_begin(&d, NULL, two);
	while (more) {
		unsigned elements = 0;

		part.len = 0;
		more = document_part(&d, &part);
		assert_true(more >= 0);
		for (size_t i = 0; i < part.len; i++)
			elements += part.bytes[i] == ',';
		assert_true(elements <= DOCUMENT_PART);
		assert_int_equal(text_add(&all, part.bytes, part.len), 0);
	}
	read = json_loadb(all.bytes, all.len, 0, NULL);
	assert_non_null(read);
	assert_int_equal(json_array_size(json_object_get(read, "list")), length);
	assert_int_equal(json_array_size(json_object_get(read, "other")), length);
	for (uint32_t i = 0; i < length; i++)
		assert_int_equal(
			json_integer_value(json_array_get(json_object_get(read, "other"), i)), i);
	json_decref(read);
	text_free(&part);
	text_free(&all);
}

static void document_part__no_memory(void **state)
{
	static const struct document_section *const in_list[] = {&list, NULL};
	static const struct document_section *const in_object[] = {&no_memory, NULL};
	struct text text = {0};

	length = 5;
	short_at = 3;
	assert_int_equal(read_all(in_list, &text), -ENOMEM);
	text_free(&text);
	assert_int_equal(read_all(in_object, &text), -ENOMEM);
	text_free(&text);
}

static void text_add__grows(void **state)
{
	static const char bytes[5000] = {'x'};
	struct text text = {0};

	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(text_add(&text, bytes, sizeof(bytes)), 0);
	assert_int_equal(text.len, 20 * sizeof(bytes));
	assert_memory_equal(text.bytes + 19 * sizeof(bytes), bytes, sizeof(bytes));
	text_free(&text);
	assert_null(text.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document_part__sections),
		cmocka_unit_test(document_part__is_bounded),
		cmocka_unit_test(document_part__no_memory),
		cmocka_unit_test(text_add__grows),
	};

	return cmocka_run_group_tests_name("document", tests, NULL, NULL);
}
