/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "records.h"
#include "target.h"

static bool tracing;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	tracing = getenv("FUZZ_PRINT") != NULL;
	/* Checks of the fixtures are cmocka's, and there is no cmocka test to return to. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	return 0;
}

void trace(const char *fmt, ...)
{
	va_list ap;

	if (!tracing)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	fflush(stdout);
}

bool records_take(struct records *in, struct record *r)
{
	size_t n = in->left < sizeof(*r) ? in->left : sizeof(*r);

	if (!n || in->taken++ > RECORDS_MAX)
		return false;
	memset(r, 0, sizeof(*r));
	memcpy(r, in->at, n);
	in->at += n;
	in->left -= n;
	return true;
}
