/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "crowd.h"

/* @return false when the user's quota is used up. */
static bool make_qp(struct crowd *c, unsigned i, const struct abi_create_qp *in)
{
	struct raw_qp *qp = &c->qp[i];
	int fd, status;

	*qp = (struct raw_qp){.s = &c->s};
	status = raw_call(&c->s, ABI_CREATE_QP, in, sizeof(*in), -1, &qp->r, sizeof(qp->r), &fd, 1);
	must(!status || status == -EDQUOT, c->s.why);
	if (status)
		return false;
	qp->region = mmap(NULL, qp->r.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(qp->region != MAP_FAILED, "the QP cannot be mapped");
	close(fd);
	return true;
}

void crowd_open(struct crowd *c, const struct arena *a, const struct crowd_spec *spec)
{
	uint32_t each = 2 * spec->depth * (spec->n / spec->cqs);
	uint32_t channel = ABI_NO_HANDLE;
	struct abi_create_qp in;

	must(spec->n <= CROWD_MAX, "a crowd is smaller");
	raw_open(&c->s, a->socket);
	raw_mr(&c->s, &c->mr, spec->memory, 0, DUO_ACCESS | ABI_ACCESS_REMOTE_ATOMIC);
	c->n = spec->n;
	c->ncqs = 0;
	c->channel = -1;
	if (spec->channel)
		must(!raw_call(&c->s, ABI_CREATE_CHANNEL, NULL, 0, -1, &channel, sizeof(channel),
			     &c->channel, 1),
			"a channel");
	for (unsigned i = 0; i < c->n; i++) {
		struct raw_cq *cq = &c->cq[i % spec->cqs];

		if (i < spec->cqs) {
			c->ncqs++;
			raw_cq(&c->s, cq, spec->cq_depth ? spec->cq_depth : each, channel);
		}
		in = raw_qp_request(&c->s, cq, spec->depth);
		in.max_send_sge = in.max_recv_sge = spec->sges;
		if (!make_qp(c, i, &in))
			c->n = i & ~1u;
	}
	must(c->n >= 2, "queue pairs for an attack");
}

void crowd_close(struct crowd *c)
{
	for (unsigned i = 0; i < c->n; i++)
		raw_qp_unmap(&c->qp[i]);
	for (unsigned i = 0; i < c->ncqs; i++)
		raw_cq_unmap(&c->cq[i]);
	if (c->channel >= 0)
		close(c->channel);
	raw_mr_free(&c->mr);
	raw_close(&c->s);
}

void crowd_pair(struct crowd *c)
{
	for (unsigned i = 0; i + 1 < c->n; i += 2)
		raw_connect_qps(&c->qp[i], &c->qp[i + 1], DUO_ACCESS | ABI_ACCESS_REMOTE_ATOMIC);
}

struct abi_sge crowd_sge(const struct crowd *c, size_t at, uint32_t len)
{
	return (struct abi_sge){(uintptr_t)c->mr.mem + at, len, c->mr.key};
}

void crowd_post(struct raw_qp *qp, unsigned opcode, const struct abi_sge *sge, unsigned n,
	uint64_t remote, uint32_t rkey)
{
	struct abi_wqe w = {.ctl = ABI_WQE_CTL(opcode, n, ABI_WQE_SIGNALED),
		.remote_addr = remote,
		.rkey = rkey};

	raw_post(qp, &w, sge);
}

unsigned crowd_drain(struct crowd *c)
{
	struct abi_cqe cqe;
	unsigned n = 0;

	for (unsigned i = 0; i < c->ncqs; i++)
		while (raw_poll(&c->cq[i], &cqe))
			n++;
	return n;
}
