/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about errors, on stderr: for people who run a program that says only "Couldn't create
 * QP". */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "verbs.h"

/* Each sentence is said once: programs try again in loops. */
#define SAID_MAX 32

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char *said[SAID_MAX];
static unsigned n_said;

static bool verbose(void)
{
	const char *v = secure_getenv("ROCI_VERBOSE");

	return v && *v && strcmp(v, "0") != 0;
}

static bool is_new(const char *line)
{
	bool new = true;

	pthread_mutex_lock(&said_lock);
	for (unsigned i = 0; i < n_said && new; i++)
		new = strcmp(said[i], line) != 0;
	if (new &&n_said < SAID_MAX) {
		said[n_said] = strdup(line);
		n_said += said[n_said] != NULL;
	}
	pthread_mutex_unlock(&said_lock);
	return new;
}

static void say(const char *call, int err, const char *fmt, va_list ap)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "%s: ", call);

	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	if (is_new(line))
		fprintf(stderr, "rocinante: %s (%s)\n", line, strerror(err));
}

int explain_as(const char *call, int err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return 0;
	if (verbose()) {
		va_start(ap, fmt);
		say(call, err, fmt, ap);
		va_end(ap);
	}
	errno = err; /* a system call that fails leaves it so, and programs print it */
	return err;
}

int explain(const char *call, int err)
{
	return explain_as(call, err, "%s", roci_last_error());
}

void *explain_null(const char *call, int err)
{
	errno = explain(call, err);
	return NULL;
}
