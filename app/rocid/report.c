/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include "report.h"

void report_add(struct report *r, const char *format, ...)
{
	char sentence[REPORT_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(sentence, sizeof(sentence), format, ap);
	va_end(ap);
	for (char *p = sentence; *p; p++) /* bytes from a file must not control the terminal */
		if ((unsigned char)*p < ' ' || *p == 0x7F)
			*p = '?';
	if (r->why && !r->count)
		snprintf(r->why, REPORT_MAX, "%s", sentence);
	if (r->all)
		fprintf(r->all, "rocid: %s\n", sentence);
	r->count++;
}
