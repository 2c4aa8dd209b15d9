/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle_connections SOCKET COUNT SERVER [CLIENT]: one end of COUNT connections through rocid's
 * communication manager, with queue pairs that are ready to send and do not. SERVER and CLIENT are
 * addresses; without CLIENT this is the server. Says "listening", then "connected", and ends when
 * its standard input does.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cm.h"

#define PORT 7472

struct self {
	struct roci_pd *pd;
	struct roci_cq *cq;
	struct cm_user user;
};

static void open_session(struct self *s, const char *socket)
{
	struct roci_context *ctx = roci_open(socket);

	cm_must(ctx != NULL, "open");
	s->pd = roci_alloc_pd(ctx);
	cm_must(s->pd != NULL, "a PD");
	s->cq = roci_create_cq(ctx, 16, NULL, NULL, 0);
	cm_must(s->cq != NULL, "a CQ");
	cm_user_open(&s->user, ctx);
}

static struct roci_qp *new_qp(struct self *s)
{
	struct roci_qp_init_attr attr = {.size = sizeof(attr),
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = ROCI_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct roci_qp *qp = roci_create_qp(s->pd, &attr);

	cm_must(qp != NULL, "a QP");
	return qp;
}

static struct abi_cm_param param_of(const struct roci_qp *qp)
{
	return (struct abi_cm_param){.qpn = qp->qp_num, .retry_count = 7, .rnr_retry_count = 7};
}

static void to_rts(struct self *s, uint32_t id, struct roci_qp *qp)
{
	for (uint32_t state = ABI_QPS_INIT; state <= ABI_QPS_RTS; state++)
		cm_move(&s->user, id, qp, state);
}

static void accept_one(struct self *s)
{
	struct abi_cm_accept accept = {.uid = 1};
	struct roci_qp *qp = new_qp(s);

	accept.id = cm_expect(&s->user, ABI_CM_CONNECT_REQUEST).id;
	accept.param = param_of(qp);
	to_rts(s, accept.id, qp);
	cm_ask(&s->user, ABI_CM_ACCEPT, &accept, sizeof(accept), NULL, 0);
	cm_expect(&s->user, ABI_CM_ESTABLISHED);
}

static void connect_one(struct self *s, const char *from, const char *to)
{
	struct roci_qp *qp = new_qp(s);
	struct abi_cm_connect connect = {.param = param_of(qp)};
	struct abi_cm_accept rtu = {0};

	connect.id = rtu.id = cm_resolve(&s->user, ABI_CM_PS_TCP, from, to, PORT);
	cm_ask(&s->user, ABI_CM_CONNECT, &connect, sizeof(connect), NULL, 0);
	cm_expect(&s->user, ABI_CM_CONNECT_RESPONSE);
	to_rts(s, rtu.id, qp);
	cm_ask(&s->user, ABI_CM_ACCEPT, &rtu, sizeof(rtu), NULL, 0);
}

int main(int argc, char **argv)
{
	struct self s;
	char byte;

	if (argc != 4 && argc != 5)
		errx(2, "usage: idle_connections SOCKET COUNT SERVER [CLIENT]");
	open_session(&s, argv[1]);
	if (argc == 4)
		cm_serve(&s.user, ABI_CM_PS_TCP, argv[3], PORT);
	puts("listening");
	fflush(stdout);
	for (long i = 0; i < atol(argv[2]); i++)
		if (argc == 4)
			accept_one(&s);
		else
			connect_one(&s, argv[4], argv[3]);
	puts("connected");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	_exit(0); /* rocid ends what is left at once */
}
