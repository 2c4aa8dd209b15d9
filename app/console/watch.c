/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "number.h"
#include "table.h"
#include "terminal.h"

#define SECONDS_DEFAULT 2.0
#define SECONDS_MIN	0.1
#define SECONDS_MAX	86400.0
#define CLEAR_SCREEN	"\033[H\033[J"
#define BLANKS		" \t\r"

/* --- what to watch ---------------------------------------------------------------------- */

/* Moves the next word of @p line to @p word, "" at its end. */
static void take_word(const char **line, char word[32])
{
	size_t len;

	*line += strspn(*line, BLANKS);
	len = strcspn(*line, BLANKS);
	snprintf(word, 32, "%.*s", (int)len, *line);
	*line += len;
	*line += strspn(*line, BLANKS);
}

static int parse_seconds(struct watch *w, const char *word, char why[ASK_WHY])
{
	if (parse_decimal(word, &w->seconds) && w->seconds >= SECONDS_MIN &&
		w->seconds <= SECONDS_MAX)
		return 0;
	snprintf(why, ASK_WHY, "watch: %s is not a number of seconds from %g to %g", word,
		SECONDS_MIN, SECONDS_MAX);
	return -1;
}

static int parse_count(struct watch *w, const char *word, char why[ASK_WHY])
{
	uint64_t n;

	if (parse_in_base(word, 10, 1000000, &n) && n) {
		w->count = (unsigned)n;
		return 0;
	}
	snprintf(why, ASK_WHY, "watch: --count needs a number from 1 to 1000000");
	return -1;
}

int watch_parse(struct watch *w, const char *line, char why[ASK_WHY])
{
	const char *rest = line;
	char word[32];
	int err = 0;

	w->seconds = SECONDS_DEFAULT;
	w->count = 0;
	for (;;) {
		const char *at = rest;

		take_word(&rest, word);
		if (!strcmp(word, "--count")) {
			take_word(&rest, word);
			err = parse_count(w, word, why);
		} else if (*word >= '0' && *word <= '9') {
			err = parse_seconds(w, word, why);
		} else {
			rest = at;
			break;
		}
		if (err)
			return err;
	}
	rest += strspn(rest, BLANKS);
	if (!*rest) {
		snprintf(why, ASK_WHY, "watch needs a command, as in \"watch 1 show counters\"");
		return -1;
	}
	snprintf(w->command, sizeof(w->command), "%s", rest);
	return 0;
}

/* --- rates ------------------------------------------------------------------------------ */

static json_t *rates_of(const json_t *before, json_t *now, double seconds)
{
	json_t *rates = json_object();
	const char *name;
	json_t *value;

	json_object_foreach(now, name, value)
	{
		const json_t *old = json_object_get(before, name);
		double grown;

		if (!json_is_integer(value) || !json_is_integer(old))
			continue;
		grown = (double)(json_integer_value(value) - json_integer_value(old));
		if (grown > 0)
			json_object_set_new(rates, name, json_real(grown / seconds));
	}
	return rates;
}

json_t *watch_rates(const json_t *before, const json_t *now, double seconds)
{
	json_t *all = json_object();
	const char *name;
	json_t *section;

	json_object_foreach((json_t *)(uintptr_t)now, name, section)
	{
		if (json_is_object(section))
			json_object_set_new(all, name,
				rates_of(json_object_get(before, name), section, seconds));
	}
	return all;
}

/* --- again and again -------------------------------------------------------------------- */

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* @return false if it is time to end: a key, or `stop`. */
static bool wait_until(const struct watch *w, bool keys, double due)
{
	struct pollfd fds[] = {
		{.fd = keys ? w->in : -1, .events = POLLIN},
		{.fd = w->stop, .events = POLLIN},
	};
	double left;

	while ((left = due - now_s()) > 0) {
		int n = poll(fds, 2, (int)ceil(left * 1000));
		char key[64];

		if (n > 0 && fds[0].revents & POLLIN)
			n = read(w->in, key, sizeof(key)) < 0 ? -1 : 1;
		if (n > 0 || (n < 0 && errno != EINTR))
			return false;
	}
	return true;
}

static void head(const struct watch *w, bool repaint, bool keys)
{
	char when[32];
	time_t t = time(NULL);
	struct tm tm;

	strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&t, &tm));
	fprintf(w->out, "%severy %g s: %s  (%s%s)\n\n", repaint ? CLEAR_SCREEN : "", w->seconds,
		w->command, when, keys ? "; any key ends" : "");
}

static void print(const struct watch *w, json_t *document, json_t *rates, bool repaint, bool keys)
{
	if (w->json) {
		json_object_set(document, "per_second", rates);
		json_dumpf(document, w->out, JSON_COMPACT | JSON_REAL_PRECISION(6));
		fputc('\n', w->out);
	} else {
		head(w, repaint, keys);
		table_print_rates(document, rates, w->out);
		if (!repaint)
			fputc('\n', w->out);
	}
	fflush(w->out);
}

/* One request; *last is the previous document, which the new one replaces. */
static int ask_once(
	struct watch *w, json_t **last, double *last_s, bool repaint, bool keys, char why[ASK_WHY])
{
	json_t *document = NULL, *rates;
	const char *error;
	double now;
	int fd = ask_connect(w->socket, why);

	if (fd < 0)
		return -1;
	document = ask(fd, w->command, why);
	close(fd);
	if (!document)
		return -1;
	error = json_string_value(json_object_get(document, "error"));
	if (error) {
		snprintf(why, ASK_WHY, "%s", error);
		json_decref(document);
		return -1;
	}
	now = now_s();
	rates = watch_rates(*last, document, now - *last_s);
	print(w, document, rates, repaint, keys);
	json_decref(rates);
	json_decref(*last);
	*last = document;
	*last_s = now;
	if (!ferror(w->out))
		return 0;
	snprintf(why, ASK_WHY, "cannot write the output: %s", strerror(errno));
	return -1;
}

int watch_run(struct watch *w, char why[ASK_WHY])
{
	bool repaint = isatty(fileno(w->out)) && !w->json;
	bool keys = isatty(w->in) && repaint;
	struct terminal terminal;
	json_t *last = NULL;
	double last_s = 0;
	double due = now_s();
	int err = 0;

	terminal_init(&terminal, w->in);
	if (keys)
		terminal_raw(&terminal, w->signals);
	for (unsigned n = 0; !err; due += w->seconds) {
		if (!wait_until(w, keys, due))
			break;
		err = ask_once(w, &last, &last_s, repaint, keys, why);
		if (++n == w->count)
			break;
	}
	terminal_restore(&terminal);
	json_decref(last);
	return err;
}
