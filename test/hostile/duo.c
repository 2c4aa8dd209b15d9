/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <string.h>
#include "attack.h"

void must(bool ok, const char *what)
{
	if (!ok)
		errx(1, "%s", what);
}

void duo_open(struct duo *d, const struct arena *a)
{
	struct abi_create_qp in;

	raw_open(&d->s, a->socket);
	raw_cq(&d->s, &d->cq, 8 * DUO_DEPTH, ABI_NO_HANDLE);
	raw_mr(&d->s, &d->mr, DUO_MEMORY, DUO_AROUND, DUO_ACCESS);
	in = raw_qp_request(&d->s, &d->cq, DUO_DEPTH);
	for (int i = 0; i < 2; i++)
		raw_qp(&d->s, &d->qp[i], &d->cq, &in);
	raw_connect_qps(&d->qp[0], &d->qp[1], DUO_ACCESS);
}

void duo_close(struct duo *d)
{
	for (int i = 0; i < 2; i++)
		raw_qp_unmap(&d->qp[i]);
	raw_mr_free(&d->mr);
	raw_close(&d->s);
}

void duo_reset(struct duo *d)
{
	struct abi_cqe cqe;

	for (int i = 0; i < 2; i++)
		must(!raw_state(&d->qp[i], ABI_QPS_RESET), "a QP does not go to RESET");
	while (raw_poll(&d->cq, &cqe))
		;
	raw_connect_qps(&d->qp[0], &d->qp[1], DUO_ACCESS);
}

int duo_status(struct duo *d, const struct raw_qp *qp)
{
	struct abi_cqe cqe;

	while (raw_wait(&d->cq, &cqe))
		if (cqe.qpn == qp->r.qpn)
			return cqe.status;
	return -1;
}

struct abi_sge duo_sge(const struct duo *d, size_t at, uint32_t len)
{
	return (struct abi_sge){(uintptr_t)d->mr.mem + at, len, d->mr.key};
}
