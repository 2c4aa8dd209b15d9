/* SPDX-License-Identifier: BSD-3-Clause */
/** @file json_text.h  JSON values as users read and type them. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <jansson.h>

/** Room for a number as text. */
#define JSON_TEXT_MAX 32

/** @return @p value, formatted in @p text if it is a number: "yes" and "no" for the truth values,
 *  and "-" for none, an object or an array. */
const char *json_text(const json_t *value, char text[JSON_TEXT_MAX]);

#endif
