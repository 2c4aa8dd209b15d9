/* SPDX-License-Identifier: BSD-3-Clause */
/* Built without ncurses. */
#include <stdio.h>
#include "top.h"

int top_run(const char *socket, double seconds, unsigned looks)
{
	fprintf(stderr, "rocictl: built without ncurses: use `rocictl watch show traffic`\n");
	return 1;
}
