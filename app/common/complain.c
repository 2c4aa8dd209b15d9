/* SPDX-License-Identifier: BSD-3-Clause */
#include "complain.h"
#include <stdio.h>

int complain(const char *program, const char *why, int status)
{
	fprintf(stderr, "%s: %s\n", program, why);
	return status;
}
