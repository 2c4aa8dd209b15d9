/* SPDX-License-Identifier: BSD-3-Clause */
/* index.html: one page that shows a run, without any other file. */
#include <errno.h>
#include <string.h>
#include <jansson.h>
#include "bits.h"
#include "out.h"

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

/* A row per member. */
static void put_members(FILE *f, const char *title, json_t *object)
{
	const char *key;
	json_t *value;

	fprintf(f, "<table><caption>%s</caption>\n", title);
	json_object_foreach(object, key, value)
	{
		if (json_is_object(value) || json_is_array(value))
			continue;
		fputs("<tr><th>", f);
		put_text(f, key);
		fputs("</th><td>", f);
		put_value(f, value);
		fputs("</td></tr>\n", f);
	}
	fputs("</table>\n", f);
}

/* A row per object, a column per member of the first. */
static void put_rows(FILE *f, const char *title, json_t *array)
{
	const char *key;
	json_t *value, *row;
	size_t i;

	if (!json_array_size(array))
		return;
	fprintf(f, "<table><caption>%s</caption>\n<tr>", title);
	json_object_foreach(json_array_get(array, 0), key, value)
	{
		fputs("<th>", f);
		put_text(f, key);
		fputs("</th>", f);
	}
	fputs("</tr>\n", f);
	json_array_foreach(array, i, row)
	{
		fputs("<tr>", f);
		json_object_foreach(json_array_get(array, 0), key, value)
		{
			fputs("<td>", f);
			put_value(f, json_object_get(row, key));
			fputs("</td>", f);
		}
		fputs("</tr>\n", f);
	}
	fputs("</table>\n", f);
}

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
	      "body{font:15px/1.4 sans-serif;margin:2em auto;max-width:84em;color:#222}\n"
	      "table{border-collapse:collapse;margin:1em 1em 1em 0;display:inline-table;"
	      "vertical-align:top;font-size:13px}\n"
	      "caption{text-align:left;font-weight:bold;padding:.3em 0}\n"
	      "th,td{border:1px solid #ccc;padding:.2em .5em;text-align:left}\n"
	      "td{font-variant-numeric:tabular-nums}\n"
	      ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(30em,1fr))}\n"
	      "figure{margin:.5em 0}\nfigure "
	      "svg{max-width:100%;height:auto}\n</style></head>\n<body><h1>",
		f);
	put_text(f, json_string_value(json_object_get(run, "scenario")));
	fputs("</h1>\n<p>", f);
	put_text(f, json_string_value(json_object_get(run, "title")));
	fputs("</p>\n", f);
	put_rows(f, "Expectations", json_object_get(run, "expectations"));
	fputs("<div class=\"plots\">\n", f);
	for (unsigned i = 0; i < out_plot_count; i++)
		put_plot(f, folder, out_plot_name[i]);
	fputs("</div>\n", f);
	put_members(f, "Results", json_object_get(run, "results"));
	put_members(f, "Run", run);
	put_members(f, "Network", parameters);
	put_members(f, "Switches", json_object_get(parameters, "switch"));
	put_members(f, "Hosts", json_object_get(parameters, "host"));
	put_members(f, "Congestion control", json_object_get(parameters, "cc"));
	put_rows(f, "Ports", json_object_get(run, "ports"));
	put_rows(f, "Flows", json_object_get(run, "flows"));
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
