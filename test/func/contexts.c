/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts of 64 ranks of one user, who is not root, with four each: libraries open several. */
#include <err.h>
#include "roci.h"

#define CONTEXTS 256

int main(int argc, char **argv)
{
	struct roci_context *c[CONTEXTS];

	if (argc < 2)
		errx(1, "no socket");
	for (unsigned i = 0; i < CONTEXTS; i++) {
		struct roci_pd *pd;

		c[i] = roci_open(argv[1]);
		pd = c[i] ? roci_alloc_pd(c[i]) : NULL;
		if (!pd || roci_dealloc_pd(pd))
			errx(1, "context %u: %s", i, roci_last_error());
	}
	for (unsigned i = 0; i < CONTEXTS; i++)
		if (roci_close(c[i]))
			errx(1, "close %u: %s", i, roci_last_error());
	return 0;
}
