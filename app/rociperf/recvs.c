/* SPDX-License-Identifier: BSD-3-Clause */
#include "recvs.h"

#define BATCH 32

static void post(struct end *e, struct flow *f, uint32_t count)
{
	struct roci_recv_wr wr[BATCH];
	struct roci_sge sge[BATCH];

	for (uint32_t i = 0; i < count; i++) {
		sge[i] = (struct roci_sge){
			(uintptr_t)e->rx + cursor_rx(e, f, &f->posted) - e->shape.rx_header,
			e->shape.rx_stride, e->mr->lkey};
		wr[i] = (struct roci_recv_wr){
			.wr_id = (uint64_t)(f - e->flow),
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = e->op->scatters, /* otherwise the data goes elsewhere */
		};
		cursor_next(&f->posted, e->shape.rx_slots);
	}
	end_must(!(e->srq ? roci_post_srq_recv(e->srq, wr, NULL) : roci_post_recv(f->qp, wr, NULL)),
		"post receives");
	f->recvs += count;
}

void recvs_fill(struct end *e, struct flow *f)
{
	while (f->recvs < e->shape.rx_depth) {
		uint32_t missing = e->shape.rx_depth - f->recvs;

		post(e, f, missing < BATCH ? missing : BATCH);
	}
}
