/* SPDX-License-Identifier: BSD-3-Clause */
#include "refuse.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int refuse(char why[SENTENCE_MAX], int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, SENTENCE_MAX, format, ap);
	va_end(ap);
	return err;
}

int refuse_in(char *why, size_t size, int err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, size, format, ap);
	va_end(ap);
	return err;
}

int refuse_memory(char why[SENTENCE_MAX])
{
	return refuse(why, -ENOMEM,
		"rocid is out of memory: end other programs on this machine, then try again");
}
