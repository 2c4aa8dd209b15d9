/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "openmetrics.h"

static const char *string_of(const json_t *object, const char *name)
{
	const char *s = json_string_value(json_object_get(object, name));

	return s ? s : "";
}

static void print_escaped(const char *s, FILE *f)
{
	for (; *s; s++) {
		if (*s == '\\' || *s == '"')
			fputc('\\', f);
		if (*s == '\n')
			fputs("\\n", f);
		else
			fputc(*s, f);
	}
}

static void print_labels(json_t *labels, FILE *f)
{
	const char *name;
	json_t *value;
	char before = '{';

	json_object_foreach(labels, name, value)
	{
		fprintf(f, "%c%s=\"", before, name);
		print_escaped(json_string_value(value), f);
		fputc('"', f);
		before = ',';
	}
	if (before == ',')
		fputc('}', f);
}

/* Suffixes of names that give the unit, for the "# UNIT" line. */
static const char *unit_of(const char *name)
{
	static const char *const unit[] = {"bytes", "seconds"};
	const char *last = strrchr(name, '_');

	for (unsigned i = 0; last && i < sizeof(unit) / sizeof(unit[0]); i++)
		if (!strcmp(last + 1, unit[i]))
			return unit[i];
	return NULL;
}

/* The end of the names of samples of @p type. */
static const char *suffix_of(const char *type)
{
	return !strcmp(type, "counter")		 ? "_total"
	       : !strcmp(type, "gaugehistogram") ? "_bucket"
						 : "";
}

static void print_family(const json_t *family, FILE *f)
{
	const char *name = string_of(family, "name");
	const char *type = string_of(family, "type");
	const char *unit = unit_of(name);
	const json_t *samples = json_object_get(family, "samples");
	json_t *sample;
	size_t i;

	fprintf(f, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(f, "# UNIT %s %s\n", name, unit);
	fprintf(f, "# HELP %s ", name);
	print_escaped(string_of(family, "help"), f);
	fputc('\n', f);
	json_array_foreach(samples, i, sample)
	{
		fprintf(f, "%s%s", name, suffix_of(type));
		print_labels(json_object_get(sample, "labels"), f);
		fprintf(f, " %" JSON_INTEGER_FORMAT "\n",
			json_integer_value(json_object_get(sample, "value")));
	}
}

void openmetrics_print(const json_t *families, FILE *f)
{
	json_t *family;
	size_t i;

	json_array_foreach(families, i, family)
	{
		print_family(family, f);
	}
	fputs("# EOF\n", f);
}
