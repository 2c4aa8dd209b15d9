/* SPDX-License-Identifier: BSD-3-Clause */
#include "json_text.h"
#include <stdio.h>

const char *json_text(const json_t *value, char text[JSON_TEXT_MAX])
{
	switch (value ? json_typeof(value) : JSON_NULL) {
	case JSON_STRING:
		return json_string_value(value);
	case JSON_INTEGER:
		snprintf(text, JSON_TEXT_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return text;
	case JSON_REAL:
		snprintf(text, JSON_TEXT_MAX, "%g", json_real_value(value));
		return text;
	case JSON_TRUE:
		return "yes";
	case JSON_FALSE:
		return "no";
	default:
		return "-";
	}
}
