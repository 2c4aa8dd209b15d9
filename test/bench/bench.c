/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench.h"

double bench_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void bench_settle(void)
{
	const struct timespec pause = {.tv_nsec = 50000000};

	nanosleep(&pause, NULL);
}

void bench_die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct samples sorted(const struct samples *s)
{
	struct samples copy = *s;

	qsort(copy.v, copy.n, sizeof(copy.v[0]), by_value);
	return copy;
}

double median(const struct samples *s)
{
	struct samples copy = sorted(s);

	return copy.n ? copy.v[copy.n / 2] : 0;
}

double lowest(const struct samples *s)
{
	struct samples copy = sorted(s);

	return copy.n ? copy.v[0] : 0;
}

void line_begin(const char *bench)
{
	printf("{\"bench\": \"%s\"", bench);
}

void line_text(const char *name, const char *value)
{
	printf(", \"%s\": \"%s\"", name, value);
}

void line_number(const char *name, double value)
{
	printf(", \"%s\": %.6g", name, value);
}

void line_samples(const char *unit, const struct samples *s)
{
	line_text("unit", unit);
	line_number("median", median(s));
	line_number("min", lowest(s));
	printf(", \"samples\": [");
	for (unsigned i = 0; i < s->n; i++)
		printf("%s%.6g", i ? ", " : "", s->v[i]);
	printf("]");
}

void line_end(void)
{
	printf("}\n");
	fflush(stdout);
}
