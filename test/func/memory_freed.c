/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_freed SOCKET, with --max-memory 64: a program that registers 40 MiB again and again, and
 * unmaps them, never has more than that.
 */
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "roci.h"

#define LEN    (40ul << 20)
#define ROUNDS 6

static void *block(void)
{
	void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	memset(p, 1, LEN);
	return p;
}

int main(int argc, char **argv)
{
	struct roci_context *ctx = argc > 1 ? roci_open(argv[1]) : NULL;
	struct roci_pd *pd = ctx ? roci_alloc_pd(ctx) : NULL;
	struct roci_mr *mr;
	void *p, *q;

	if (!pd)
		errx(1, "%s", roci_last_error());
	for (int i = 0; i < ROUNDS; i++) {
		p = block();
		mr = roci_reg_mr(pd, p, LEN, ROCI_ACCESS_LOCAL_WRITE);
		if (!mr)
			errx(1, "round %d: %s", i, roci_last_error());
		roci_dereg_mr(mr);
		munmap(p, LEN);
	}
	/* The limit holds for memory that is still there. */
	p = block();
	q = block();
	mr = roci_reg_mr(pd, p, LEN, ROCI_ACCESS_LOCAL_WRITE);
	if (!mr)
		errx(1, "%s", roci_last_error());
	if (roci_reg_mr(pd, q, LEN, ROCI_ACCESS_LOCAL_WRITE) || errno != EDQUOT)
		errx(1, "more than the limit is registered");
	roci_dereg_mr(mr);
	roci_dealloc_pd(pd);
	return roci_close(ctx);
}
