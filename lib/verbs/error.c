/* SPDX-License-Identifier: BSD-3-Clause */
/* Error sentences on stderr, for people whose program prints only "Couldn't create QP". */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "abi_ctl.h"
#include "verbs.h"

/* Each sentence is printed once, because programs retry in loops. */
#define SAID_MAX 256

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char *said[SAID_MAX];
static unsigned n_said;

static bool verbose(void)
{
	const char *v = secure_getenv("ROCI_VERBOSE");

	return v && *v && strcmp(v, "0") != 0;
}

/* After SAID_MAX sentences nothing is new: a program may cause any number of different errors. */
static bool is_new(const char *line)
{
	bool fresh;

	pthread_mutex_lock(&said_lock);
	fresh = n_said < SAID_MAX;
	for (unsigned i = 0; i < n_said && fresh; i++)
		fresh = strcmp(said[i], line) != 0;
	if (fresh) {
		said[n_said] = strdup(line);
		n_said += said[n_said] != NULL;
	}
	pthread_mutex_unlock(&said_lock);
	return fresh;
}

/* Prints @p line, which fits a report.
 * @return whether it is new */
static bool say(const char *line, int err)
{
	bool fresh = is_new(line);

	if (fresh && verbose())
		fprintf(stderr, "rocinante: %s (%s)\n", line, strerror(err));
	return fresh;
}

static void write_line(char line[ABI_REPORT_MAX], const char *call, const char *fmt, va_list ap)
{
	int n = snprintf(line, ABI_REPORT_MAX, "%s: ", call);

	vsnprintf(line + n, ABI_REPORT_MAX - (size_t)n, fmt, ap);
}

int explain_as(const char *call, int err, const char *fmt, ...)
{
	char line[ABI_REPORT_MAX];
	va_list ap;

	if (!err)
		return 0;
	va_start(ap, fmt);
	write_line(line, call, fmt, ap);
	va_end(ap);
	say(line, err);
	errno = err; /* leave errno as a failed system call does: programs print it */
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

/* An older rocid does not know the message, and after rocid has ended there is nobody to report to.
 */
static int report(
	struct ibv_context *c, uint32_t qpn, const char *call, int err, const char *fmt, va_list ap)
{
	struct abi_report r = {.qpn = qpn};

	write_line(r.sentence, call, fmt, ap);
	if (say(r.sentence, err))
		roci_cm_call(context_of(c)->roci, ABI_REPORT, &r, sizeof(r), NULL, 0, NULL);
	errno = err;
	return err;
}

int refused_as(struct ibv_context *c, const char *call, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err = err ? report(c, 0, call, err, fmt, ap) : 0;
	va_end(ap);
	return err;
}

int refused_qp(const struct ibv_qp *qp, const char *call, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err = err ? report(qp->context, qp->qp_num, call, err, fmt, ap) : 0;
	va_end(ap);
	return err;
}

int refused(struct ibv_context *c, const char *call, int err)
{
	return refused_as(c, call, err, "%s", roci_last_error());
}

void *refused_null(struct ibv_context *c, const char *call, int err)
{
	errno = refused(c, call, err);
	return NULL;
}
