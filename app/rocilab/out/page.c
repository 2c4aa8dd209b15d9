/* SPDX-License-Identifier: BSD-3-Clause */
/* index.html: one page that shows a run, without any other file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "bits.h"
#include "cc.h"
#include "metric.h"
#include "out.h"

#define ROWS 64u /* of a table */

static void put_text(FILE *f, const char *text)
{
	for (; text && *text; text++) {
		const char *code = *text == '<'	  ? "&lt;"
				   : *text == '>' ? "&gt;"
				   : *text == '&' ? "&amp;"
				   : *text == '"' ? "&quot;"
						  : NULL;

		if (code)
			fputs(code, f);
		else
			fputc(*text, f);
	}
}

static void put_value(FILE *f, const json_t *v)
{
	if (json_is_string(v))
		put_text(f, json_string_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "yes" : "no", f);
	else if (json_is_integer(v))
		fprintf(f, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		fprintf(f, "%.6g", json_real_value(v));
}

/* "9.4657G" as "9.4657 Gbit/s". */
static void put_number(FILE *f, double v, enum unit unit)
{
	char text[32];
	size_t digits = strspn(text_of(v, unit, text, sizeof(text)), "+-.0123456789e");
	const char *of = unit == UNIT_BYTES ? "B" : unit == UNIT_RATE ? "bit/s" : "";

	fprintf(f, "%.*s", (int)digits, text);
	if (digits && (text[digits] || *of))
		fprintf(f, "&nbsp;%s%s", text + digits, of);
	else
		fputs(text + digits, f);
}

/* The value of metric @p name, with its unit if it is measured. */
static void put_named(FILE *f, const char *name, const json_t *v)
{
	const struct metric *m = metric_find(name);

	if (!m || m->unit == UNIT_NONE)
		put_value(f, v);
	else if (json_is_number(v))
		put_number(f, json_number_value(v), m->unit);
}

/* --- tables ------------------------------------------------------------------------------- */

/* The unit of a setting of switches. */
static enum unit unit_of(const char *name)
{
	static const char *const bytes[] = {
		"kmin", "kmax", "buffer", "shared", "xoff", "xon", "headroom"};

	for (unsigned i = 0; i < ARRAY_SIZE(bytes); i++)
		if (!strcmp(name, bytes[i]))
			return UNIT_BYTES;
	return strcmp(name, "pmax") ? UNIT_NONE : UNIT_PART;
}

static void put_setting(FILE *f, const char *name, const json_t *v)
{
	if (json_is_number(v) && unit_of(name) != UNIT_NONE)
		put_number(f, json_number_value(v), unit_of(name));
	else
		put_named(f, name, v);
}

static void put_cell(FILE *f, const char *text)
{
	fputs("<td>", f);
	put_text(f, text);
	fputs("</td>", f);
}

/* One row per member; with @p help also its description. */
static void put_members(FILE *f, const char *title, json_t *object, bool help)
{
	const char *key;
	json_t *value;

	if (!json_object_size(object))
		return;
	fprintf(f, "<table><caption>%s</caption>\n", title);
	json_object_foreach(object, key, value)
	{
		const struct metric *m = help ? metric_find(key) : NULL;

		if (json_is_object(value) || json_is_array(value) || json_is_null(value))
			continue;
		fputs("<tr><th>", f);
		put_text(f, key);
		fputs("</th><td>", f);
		put_setting(f, key, value);
		fputs("</td>", f);
		if (m)
			put_cell(f, m->help);
		fputs("</tr>\n", f);
	}
	fputs("</table>\n", f);
}

/* The parameters of an algorithm, with their units. */
static void put_algorithm(FILE *f, json_t *cc)
{
	const char *name = json_string_value(json_object_get(cc, "algorithm"));
	const struct cc_ops *ops = name ? cc_find(name) : NULL;

	if (!ops)
		return;
	fprintf(f, "<table><caption>Congestion control: %s, profile ", ops->name);
	put_text(f, json_string_value(json_object_get(cc, "profile")));
	fputs("</caption>\n", f);
	for (unsigned i = 0; i < ops->nparams; i++) {
		const struct cc_param *p = &ops->params[i];

		fprintf(f, "<tr><th>%s</th><td>%.10g %s</td>", p->name,
			json_number_value(json_object_get(cc, p->name)), p->unit);
		put_cell(f, p->help);
		fputs("</tr>\n", f);
	}
	fputs("</table>\n", f);
}

/* A column of a table of rows: a member, and how it is called there. */
struct column {
	const char *key, *title;
};

static void put_row(FILE *f, const struct column *c, unsigned columns, json_t *row)
{
	fputs("<tr>", f);
	for (unsigned i = 0; i < columns; i++) {
		const json_t *v = json_object_get(row, c[i].key);

		fputs(json_is_false(v) ? "<td class=\"bad\">" : "<td>", f);
		put_named(f, c[i].key, v);
		fputs("</td>", f);
	}
	fputs("</tr>\n", f);
}

/* The first rows; run.json has all. */
static void put_rows(
	FILE *f, const char *title, const struct column *c, unsigned columns, json_t *rows)
{
	size_t all = json_array_size(rows), n = all < ROWS ? all : ROWS;

	if (!all)
		return;
	fprintf(f, "<table><caption>%s", title);
	if (n < all)
		fprintf(f, ": %zu of %zu, run.json has the others", n, all);
	fputs("</caption>\n<tr>", f);
	for (unsigned i = 0; i < columns; i++)
		fprintf(f, "<th>%s</th>", c[i].title);
	fputs("</tr>\n", f);
	for (size_t i = 0; i < n; i++)
		put_row(f, c, columns, json_array_get(rows, i));
	fputs("</table>\n", f);
}

/* A row, its original position, and its sort key. */
struct place {
	json_t *row;
	size_t at;
	double by;
};

static int longer(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->by > y->by || x->by < y->by)
		return x->by < y->by ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

/* @return the ports, with the longest queue first. */
static json_t *sorted(json_t *ports)
{
	size_t n = json_array_size(ports), i;
	struct place *p = calloc(n + 1, sizeof(*p));
	json_t *all = json_array(), *row;

	json_array_foreach(ports, i, row)
	{
		if (p)
			p[i] = (struct place){
				row, i, json_number_value(json_object_get(row, "queue.mean"))};
	}
	if (p)
		qsort(p, n, sizeof(*p), longer);
	for (i = 0; p && i < n; i++)
		json_array_append(all, p[i].row);
	free(p);
	return all;
}

static void put_ports(FILE *f, json_t *ports)
{
	static const struct column c[] = {{"port", "port"}, {"to", "leads to"},
		{"queue.mean", "queue: mean"}, {"queue.p50", "median"}, {"queue.p95", "95 %"},
		{"queue.p99", "99 %"}, {"queue.max", "most"}, {"util.mean", "use"},
		{"marked", "marked"}, {"dropped", "dropped"}, {"pauses", "pauses"}};
	json_t *by_queue = sorted(ports);

	put_rows(f, "Ports", c, ARRAY_SIZE(c), by_queue);
	json_decref(by_queue);
}

static void put_flows(FILE *f, json_t *flows)
{
	static const struct column c[] = {{"flow", "flow"}, {"from", "from host"},
		{"to", "to host"}, {"size", "message (bytes)"}, {"messages", "messages"},
		{"failed", "failed"}, {"goodput", "goodput"}};

	put_rows(f, "Flows", c, ARRAY_SIZE(c), flows);
}

static void put_expectations(FILE *f, json_t *expectations)
{
	static const struct column c[] = {
		{"text", "expected"}, {"shown", "came out"}, {"met", "met"}};

	put_rows(f, "Expectations", c, ARRAY_SIZE(c), expectations);
}

/* --- the page ----------------------------------------------------------------------------- */

/* The picture itself, without the head that a file of its own needs. */
static void put_plot(FILE *f, const char *folder, const char *name)
{
	char path[OUT_PATH], block[4096];
	FILE *svg = fopen(out_path(path, folder, name), "r");
	bool begun = false;

	if (!svg)
		return;
	fputs("<figure>", f);
	while (fgets(block, sizeof(block), svg)) {
		const char *from = begun ? block : strstr(block, "<svg");

		begun |= from != NULL;
		if (from)
			fputs(from, f);
	}
	fputs("</figure>\n", f);
	fclose(svg);
}

static void put_page(FILE *f, const char *folder, json_t *run)
{
	json_t *parameters = json_object_get(run, "parameters");

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", f);
	put_text(f, json_string_value(json_object_get(run, "scenario")));
	fputs("</title>\n<style>\n"
	      ":root{color-scheme:light}\n"
	      "body{font:15px/1.4 sans-serif;margin:2em auto;padding:0 1em;max-width:90em;"
	      "color:#222;background:#fff}\n"
	      "table{border-collapse:collapse;margin:1em 1em 1em 0;display:inline-table;"
	      "vertical-align:top;font-size:13px}\n"
	      "caption{text-align:left;font-weight:bold;padding:.3em 0}\n"
	      "th,td{border:1px solid #ccc;padding:.2em .5em;text-align:left}\n"
	      "td{font-variant-numeric:tabular-nums}\n"
	      ".bad{color:#b00;font-weight:bold}\n"
	      ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(36em,1fr))}\n"
	      "figure{margin:.5em 0}\nfigure "
	      "svg{max-width:100%;height:auto}\n</style></head>\n<body><h1>",
		f);
	put_text(f, json_string_value(json_object_get(run, "scenario")));
	fputs("</h1>\n<p>", f);
	put_text(f, json_string_value(json_object_get(run, "title")));
	fputs("</p>\n", f);
	put_expectations(f, json_object_get(run, "expectations"));
	fputs("<div class=\"plots\">\n", f);
	for (unsigned i = 0; i < out_plot_count; i++)
		put_plot(f, folder, out_plot_name[i]);
	fputs("</div>\n", f);
	put_members(f, "Results", json_object_get(run, "results"), true);
	put_members(f, "Run", run, false);
	put_members(f, "Network", parameters, false);
	put_members(f, "Switches", json_object_get(parameters, "switch"), false);
	put_members(f, "Hosts", json_object_get(parameters, "host"), false);
	put_algorithm(f, json_object_get(parameters, "cc"));
	put_ports(f, json_object_get(run, "ports"));
	put_flows(f, json_object_get(run, "flows"));
	fputs("</body></html>\n", f);
}

int out_page(const char *folder)
{
	char path[OUT_PATH];
	json_t *run = json_load_file(out_path(path, folder, "run.json"), 0, NULL);
	FILE *f = run ? fopen(out_path(path, folder, "index.html"), "w") : NULL;
	int bad = !f;

	if (f) {
		put_page(f, folder, run);
		bad = ferror(f);
		bad |= fclose(f);
	}
	json_decref(run);
	return bad ? -EIO : 0;
}
