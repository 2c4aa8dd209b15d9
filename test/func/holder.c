/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * holder SOCKET PDS CQS QPS MRS [SIZE [DEPTH]]: makes that many objects, regions of SIZE bytes and
 * send queues of DEPTH work requests, says "ready" and keeps them until its input ends. A SIZE that
 * is no number is a name: the program says that it is called so.
 */
#include <err.h>
#include <errno.h>
#include <roci.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

/* All of it, which ends with the program. */
static void **held;
static size_t nheld;

static void *hold(void *object, const char *what)
{
	if (!object)
		errx(1, "%s: %s", what, roci_last_error());
	held = realloc(held, (nheld + 1) * sizeof(*held));
	if (!held)
		err(1, "no memory");
	return held[nheld++] = object;
}

int main(int argc, char **argv)
{
	struct roci_qp_init_attr init = {.size = sizeof(init), .qp_type = ROCI_QPT_RC};
	struct roci_context *ctx;
	struct roci_pd *pd = NULL;
	unsigned size = 0;
	char byte;

	if (argc < 6)
		errx(2, "use: holder SOCKET PDS CQS QPS MRS [SIZE|NAME [DEPTH]]");
	if (argc > 6)
		size = number(argv[6]);
	if (argc > 6 && !size)
		program_invocation_short_name = argv[6];
	ctx = hold(roci_open(argv[1]), "rocid");
	for (unsigned i = 0; i < number(argv[2]); i++)
		pd = hold(roci_alloc_pd(ctx), "PD");
	for (unsigned i = 0; i < number(argv[3]); i++)
		init.send_cq = hold(roci_create_cq(ctx, 1, NULL, NULL, 0), "CQ");
	init.recv_cq = init.send_cq;
	init.cap = (struct roci_qp_cap){argc > 7 ? number(argv[7]) : 1, 1, 1, 1, 0};
	for (unsigned i = 0; i < number(argv[4]); i++)
		hold(roci_create_qp(pd, &init), "QP");
	for (unsigned i = 0; i < number(argv[5]); i++)
		hold(roci_alloc_mr(pd, size ? size : 4096, ROCI_ACCESS_LOCAL_WRITE), "MR");
	puts("ready");
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) != 0;
}
