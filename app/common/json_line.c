/* SPDX-License-Identifier: BSD-3-Clause */
#include "json_line.h"
#include <err.h>
#include <stdio.h>

void json_line(json_t *value)
{
	if (!value || json_dumpf(value, stdout, JSON_REAL_PRECISION(10)))
		errx(1, "out of memory for the output: end other programs");
	json_decref(value);
	putchar('\n');
	fflush(stdout);
}
