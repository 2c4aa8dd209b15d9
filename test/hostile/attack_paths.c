/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways out of the host that the program was not given. */
#include <err.h>
#include <errno.h>
#include <string.h>
#include "attack.h"

static void refused(const struct raw *s, int status, int wanted, const char *what)
{
	if (status != wanted)
		errx(1, "%s: status %d, not %d", what, status, wanted);
	must(s->why[0], "a refusal without a sentence");
}

static void pair_open(struct duo *d, const struct arena *a)
{
	struct abi_create_qp in;

	raw_open(&d->s, a->socket);
	raw_cq(&d->s, &d->cq, 64, ABI_NO_HANDLE);
	in = raw_qp_request(&d->s, &d->cq, 16);
	for (unsigned i = 0; i < 2; i++)
		raw_qp(&d->s, &d->qp[i], &d->cq, &in);
}

static void pair_close(struct duo *d)
{
	for (unsigned i = 0; i < 2; i++)
		raw_qp_free(&d->qp[i]);
	raw_close(&d->s);
}

/* A QP of port 1 that would leave by port 2, with the P_Key that it has at port 1: when it is
 * connected, and in SQD. */
static void another_port(struct arena *a)
{
	struct abi_modify_qp m = {.attr = {.port = 2}};
	struct raw_qp *qp;
	struct duo d;

	pair_open(&d, a);
	qp = &d.qp[0];
	must(!raw_init(qp, 1, 0), "INIT");
	refused(&d.s, raw_rtr(qp, d.qp[1].r.qpn, raw_av(&d.s, 2, 1)), -EINVAL,
		"RTR with another port's address vector");
	must(!raw_state(qp, ABI_QPS_RESET), "RESET");
	raw_connect_qps(qp, &d.qp[1], 0);
	must(!raw_state(qp, ABI_QPS_SQD), "SQD");
	refused(&d.s, raw_modify(qp, &m, ABI_QPS_SQD, ABI_QP_PORT), -EINVAL, "another port alone");
	m.attr.ah = raw_av(&d.s, 1, 2);
	refused(&d.s, raw_modify(qp, &m, ABI_QPS_SQD, ABI_QP_PORT | ABI_QP_AV), -EINVAL,
		"a port beside another one's address vector");
	m.attr.ah = raw_av(&d.s, 2, 1);
	must(!raw_modify(qp, &m, ABI_QPS_SQD, ABI_QP_AV), "an address vector with its port");
	pair_close(&d);
}

/* A destination MAC of the program's choice: of a stranger, of the peer itself, of another port. */
static void own_macs(struct arena *a)
{
	struct abi_create_ah in;
	struct duo d;

	pair_open(&d, a);
	must(!raw_init(&d.qp[0], 1, 0), "INIT");
	in = (struct abi_create_ah){.pd = d.s.pd, .attr = raw_av(&d.s, 1, 2)};
	for (unsigned i = 0; i < 50 * a->effort; i++) {
		random_fill(&a->random, in.attr.dmac, sizeof(in.attr.dmac));
		in.attr.dmac[0] &= 0xFE; /* no group's */
		refused(&d.s, raw_rtr(&d.qp[0], d.qp[1].r.qpn, in.attr), -EPERM,
			"a MAC of the program's choice");
		refused(&d.s, raw_call(&d.s, ABI_CREATE_AH, &in, sizeof(in), -1, NULL, 0, NULL, 0),
			-EPERM, "an address handle with a MAC of the program's choice");
	}
	memset(in.attr.dmac, 0xFF, sizeof(in.attr.dmac));
	must(!raw_rtr(&d.qp[0], d.qp[1].r.qpn, in.attr), "RTR as the host's tables say");
	pair_close(&d);
}

/* A datagram QP that goes to port 2 and would still hear the groups of port 1. */
static void former_group(struct arena *a)
{
	struct abi_mcast in = {.mgid = {[0] = 0xFF, [1] = 0x15, [15] = 7}};
	struct abi_modify_qp m = {.attr = {.qkey = 1}};
	const uint32_t mask = ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY;
	struct abi_create_qp request;
	struct raw_qp qp;
	struct raw_cq cq;
	struct raw s;

	raw_open(&s, a->socket);
	raw_cq(&s, &cq, 64, ABI_NO_HANDLE);
	request = raw_qp_request(&s, &cq, 16);
	request.type = ABI_QPT_UD;
	raw_qp(&s, &qp, &cq, &request);
	in.qp = qp.r.handle;
	m.attr.port = 1;
	must(!raw_modify(&qp, &m, ABI_QPS_INIT, mask), "INIT");
	raw_must(&s, ABI_ATTACH_MCAST, &in, sizeof(in), NULL, 0);
	m.attr.port = 2;
	refused(&s, raw_modify(&qp, &m, ABI_QPS_INIT, mask), -EBUSY, "INIT again elsewhere");
	must(!raw_state(&qp, ABI_QPS_RESET), "RESET");
	refused(&s, raw_modify(&qp, &m, ABI_QPS_INIT, mask), -EBUSY, "INIT elsewhere");
	raw_must(&s, ABI_DETACH_MCAST, &in, sizeof(in), NULL, 0);
	must(!raw_modify(&qp, &m, ABI_QPS_INIT, mask), "INIT elsewhere, detached");
	raw_qp_free(&qp);
	raw_close(&s);
}

const struct attack attacks_paths[] = {
	{"a way through another port", another_port},
	{"destination MACs of its own", own_macs},
	{"a group of the port before", former_group},
	{NULL, NULL},
};
