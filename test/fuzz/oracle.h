/* SPDX-License-Identifier: BSD-3-Clause */
/** @file oracle.h  What must hold in every run; `assert` that no build leaves out. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdio.h>
#include <stdlib.h>

#define MUST(cond)                                                                            \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			fprintf(stderr, "%s:%d: %s: does not hold: %s\n", __FILE__, __LINE__, \
				__func__, #cond);                                             \
			abort();                                                              \
		}                                                                             \
	} while (0)

#endif
