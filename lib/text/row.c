/* SPDX-License-Identifier: BSD-3-Clause */
#include "row.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "address.h"

void row_begin(struct row *r)
{
	*r = (struct row){.object = json_object()};
}

void put_json(struct row *r, const char *column, json_t *value)
{
	if (json_object_set_new(r->object, column, value))
		r->failed = true;
}

void put_int(struct row *r, const char *column, int64_t value)
{
	put_json(r, column, json_integer(value));
}

void put_hex(struct row *r, const char *column, uint64_t value, int digits)
{
	char text[20];

	snprintf(text, sizeof(text), "0x%0*" PRIx64, digits, value);
	put_text(r, column, text);
}

void put_text(struct row *r, const char *column, const char *value)
{
	put_json(r, column, json_string(value));
}

void put_mac(struct row *r, const char *column, const uint8_t mac[6])
{
	char text[MAC_TEXT];

	put_text(r, column, mac_text(mac, text));
}

void put_real(struct row *r, const char *column, double value)
{
	put_json(r, column, isfinite(value) ? json_real(value) : json_null());
}

void put_bool(struct row *r, const char *column, bool value)
{
	put_json(r, column, json_boolean(value));
}

json_t *row_end(struct row *r)
{
	if (!r->failed)
		return r->object;
	json_decref(r->object);
	return NULL;
}
