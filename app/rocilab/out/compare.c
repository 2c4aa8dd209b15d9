/* SPDX-License-Identifier: BSD-3-Clause */
/* Two runs side by side. */
#include <errno.h>
#include <string.h>
#include <jansson.h>
#include "metric.h"
#include "out.h"

static json_t *load(const char *folder, char *why, size_t size)
{
	char path[OUT_PATH];
	json_error_t error;
	json_t *run = json_load_file(out_path(path, folder, "run.json"), 0, &error);

	if (!run)
		snprintf(why, size, "%s: %s: is it a folder that 'rocilab run --out' has made?",
			path, error.text);
	return run;
}

/* run.json has null for both "none" and "never". */
static const char *show(const json_t *v, enum unit unit, char *text, size_t size)
{
	return json_is_number(v) ? text_of(json_number_value(v), unit, text, size) : "-";
}

/* @p key: of a metric */
static void print_pair(const char *name, const char *key, const json_t *a, const json_t *b)
{
	const struct metric *m = metric_find(key);
	enum unit unit = m ? m->unit : UNIT_NONE;
	char text[2][32];

	printf("%-28s %14s %14s", name, show(a, unit, text[0], sizeof(text[0])),
		show(b, unit, text[1], sizeof(text[1])));
	if (json_is_number(a) && json_is_number(b) && json_number_value(a) != 0)
		printf(" %+8.1f %%", (json_number_value(b) / json_number_value(a) - 1) * 100);
	putchar('\n');
}

static json_t *find_port(json_t *run, const char *name)
{
	json_t *ports = json_object_get(run, "ports"), *p;
	size_t i;

	json_array_foreach(ports, i, p)
	{
		const char *found = json_string_value(json_object_get(p, "port"));

		if (found && !strcmp(found, name))
			return p;
	}
	return NULL;
}

static double mean_of(const json_t *port)
{
	return json_number_value(json_object_get(port, "queue.mean"));
}

static void print_ports(json_t *a, json_t *b)
{
	json_t *ports = json_object_get(a, "ports"), *p;
	size_t i;

	json_array_foreach(ports, i, p)
	{
		const char *port = json_string_value(json_object_get(p, "port"));
		json_t *other = port ? find_port(b, port) : NULL;
		char name[64];

		if (!other || (!mean_of(p) && !mean_of(other)))
			continue;
		snprintf(name, sizeof(name), "queue(%s).mean", port);
		print_pair(name, "queue.mean", json_object_get(p, "queue.mean"),
			json_object_get(other, "queue.mean"));
		snprintf(name, sizeof(name), "queue(%s).p99", port);
		print_pair(name, "queue.p99", json_object_get(p, "queue.p99"),
			json_object_get(other, "queue.p99"));
	}
}

int out_compare(const char *a, const char *b, char *why, size_t size)
{
	json_t *x = load(a, why, size), *y = x ? load(b, why, size) : NULL;
	const char *key;
	json_t *value;

	if (y) {
		printf("A: %s\nB: %s\n%-28s %14s %14s\n", a, b, "", "A", "B");
		json_object_foreach(json_object_get(x, "results"), key, value) print_pair(
			key, key, value, json_object_get(json_object_get(y, "results"), key));
		print_ports(x, y);
	}
	json_decref(x);
	json_decref(y);
	return y ? 0 : -EINVAL;
}
