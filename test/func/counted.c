/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counted SOCKET MESSAGES BYTES: writes MESSAGES times BYTES from one end of a pair to the other,
 * sends one message, and has the receiver's QP flush the three receives that are left.
 */
#include <err.h>
#include <stdlib.h>
#include "pair.h"

#define BATCH 8
#define SPARE 3

static void must(int err, const char *what)
{
	if (err)
		errx(1, "%s: %s", what, roci_last_error());
}

static void post_receives(struct end *e, unsigned n)
{
	struct roci_sge sge = {.addr = (uintptr_t)e->mr->addr, .length = 64, .lkey = e->mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	for (unsigned i = 0; i < n; i++)
		must(roci_post_recv(e->qp, &wr, NULL), "receive");
}

static void flush(struct end *e)
{
	struct roci_qp_attr attr = {.size = sizeof(attr), .qp_state = ROCI_QPS_ERR};
	struct roci_wc wc;
	unsigned flushed = 0;

	must(roci_modify_qp(e->qp, &attr, ROCI_QP_STATE), "to ERR");
	while (flushed < SPARE) {
		int n = roci_poll_cq(e->cq, 1, &wc);

		if (n < 0 || (n && wc.status != ROCI_WC_WR_FLUSH_ERR))
			errx(1, "no flush: %s", roci_wc_status_str(wc.status));
		flushed += (unsigned)n;
	}
}

int main(int argc, char **argv)
{
	struct end e[2];
	unsigned long messages;
	uint32_t length;

	if (argc != 4)
		errx(2, "use: counted SOCKET MESSAGES BYTES");
	messages = strtoul(argv[2], NULL, 10);
	length = (uint32_t)strtoul(argv[3], NULL, 10);
	pair_open(e, argv[1], 2 * length, ROCI_MTU_1024);
	for (unsigned long done = 0; done < messages; done += BATCH) {
		unsigned n = messages - done < BATCH ? (unsigned)(messages - done) : BATCH;

		for (unsigned i = 0; i < n; i++)
			pair_post(&e[0], &e[1], ROCI_WR_RDMA_WRITE, 0, length);
		for (unsigned i = 0; i < n; i++)
			pair_wait(&e[0]);
	}
	post_receives(&e[1], 1 + SPARE);
	pair_post(&e[0], &e[1], ROCI_WR_SEND, 0, 64);
	pair_wait(&e[0]);
	pair_wait(&e[1]);
	flush(&e[1]);
	pair_close(e);
	return 0;
}
