/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connections SERVER-SOCKET CLIENT-SOCKET SERVER CLIENT: two programs connect through the
 * communication manager of one rocid (`-`) or two, from address CLIENT to SERVER, and send. The
 * server is killed: the client, which is idle, hears of it. Where nobody listens, the refusal says
 * so. A datagram service gives its QPN. MADs may be lost, and the protocol repeats them.
 */
#include <err.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cm.h"
#include "pair.h"

#define PORT	7471
#define HEARS_S 60 /* MADs may be lost and repeated */
#define ROUNDS	3

static const char *server_socket, *client_socket, *server_ip, *client_ip;

static void wait_wc(struct end *e)
{
	struct roci_wc wc;
	int n;

	while ((n = roci_poll_cq(e->cq, 1, &wc)) == 0)
		sched_yield();
	cm_must(n == 1 && wc.status == ROCI_WC_SUCCESS, "a completion");
}

static void post_recv(struct end *e)
{
	struct roci_sge sge = {(uintptr_t)e->mr->addr, 4096, e->mr->lkey};
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};

	cm_must(!roci_post_recv(e->qp, &wr, NULL), "post a receive");
}

static void send_word(struct end *e, const char *word)
{
	struct roci_sge sge = {(uintptr_t)e->mr->addr, 64, e->mr->lkey};
	struct roci_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = ROCI_WR_SEND,
		.send_flags = ROCI_SEND_SIGNALED};

	snprintf(e->mr->addr, 64, "%s", word);
	cm_must(!roci_post_send(e->qp, &wr, NULL), "post a send");
	wait_wc(e);
}

static struct abi_cm_param param_of(const struct end *e, const char *data)
{
	struct abi_cm_param p = {.qpn = e->qp->qp_num,
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7};

	p.private_len = (uint16_t)strlen(data);
	memcpy(p.private_data, data, p.private_len);
	return p;
}

/* --- the server --------------------------------------------------------------------------- */

static void serve(int ready)
{
	struct abi_cm_accept accept = {0};
	struct abi_cm_event e;
	struct cm_user u;
	struct end end;

	end_open(&end, server_socket, 4096);
	cm_user_open(&u, end.ctx);
	cm_serve(&u, ABI_CM_PS_TCP, strchr(server_ip, ':') ? "::" : "0.0.0.0", PORT);
	cm_must(write(ready, "", 1) == 1, "tell the client");
	e = cm_expect(&u, ABI_CM_CONNECT_REQUEST);
	cm_must(!memcmp(e.param.private_data, "hello", 5), "private data of the REQ");
	cm_must(e.uid == 1 && e.param.responder_resources == 4, "the request");
	for (uint32_t state = ABI_QPS_INIT; state <= ABI_QPS_RTS; state++)
		cm_move(&u, e.id, end.qp, state);
	post_recv(&end);
	accept.id = e.id;
	accept.uid = 3;
	accept.param = param_of(&end, "welcome");
	cm_ask(&u, ABI_CM_ACCEPT, &accept, sizeof(accept), NULL, 0);
	e = cm_expect(&u, ABI_CM_ESTABLISHED);
	cm_must(e.uid == 3, "the uid of the accepted id");
	wait_wc(&end);
	cm_must(!strcmp(end.mr->addr, "across"), "the message");
	send_word(&end, "back");
	pause();
	_exit(0);
}

static pid_t start(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	cm_must(!pipe(ready), "pipe");
	pid = fork();
	if (!pid)
		serve(ready[1]);
	close(ready[1]);
	cm_must(read(ready[0], &byte, 1) == 1, "the server");
	close(ready[0]);
	return pid;
}

/* --- the client --------------------------------------------------------------------------- */

static uint32_t begin(struct cm_user *u, const struct end *end, uint16_t port)
{
	struct abi_cm_connect connect = {.param = param_of(end, "hello")};

	connect.id = cm_resolve(u, ABI_CM_PS_TCP, client_ip, server_ip, port);
	cm_ask(u, ABI_CM_CONNECT, &connect, sizeof(connect), NULL, 0);
	return connect.id;
}

static void destroy(struct cm_user *u, uint32_t id, uint32_t reported)
{
	const struct abi_handle body = {.handle = id};
	struct abi_cm_destroyed out;

	cm_ask(u, ABI_CM_DESTROY_ID, &body, sizeof(body), &out, sizeof(out));
	if (out.events_reported != reported)
		errx(1, "%u events reported, not %u", out.events_reported, reported);
}

static void connect_and_lose(void)
{
	pid_t server = start();
	struct abi_cm_accept rtu = {0};
	struct abi_cm_event e;
	struct cm_user u;
	struct end end;

	end_open(&end, client_socket, 4096);
	cm_user_open(&u, end.ctx);
	rtu.id = begin(&u, &end, PORT);
	e = cm_expect(&u, ABI_CM_CONNECT_RESPONSE);
	cm_must(!memcmp(e.param.private_data, "welcome", 7), "private data of the REP");
	for (uint32_t state = ABI_QPS_INIT; state <= ABI_QPS_RTS; state++)
		cm_move(&u, rtu.id, end.qp, state);
	cm_ask(&u, ABI_CM_ACCEPT, &rtu, sizeof(rtu), NULL, 0);
	send_word(&end, "across");
	post_recv(&end);
	wait_wc(&end);
	cm_must(!strcmp(end.mr->addr, "back"), "the answer");
	kill(server, SIGKILL);
	if (!cm_next(&u, HEARS_S * 1000, &e) || e.event != ABI_CM_DISCONNECTED)
		errx(1, "the death of the peer was not heard of");
	waitpid(server, NULL, 0);
	destroy(&u, rtu.id, 4);
	close(u.fd);
	end_close(&end);
}

static void nobody_listens(void)
{
	struct abi_cm_event e;
	struct cm_user u;
	struct end end;
	uint32_t id;

	end_open(&end, client_socket, 4096);
	cm_user_open(&u, end.ctx);
	id = begin(&u, &end, PORT + 1);
	e = cm_expect(&u, ABI_CM_REJECTED);
	cm_must(e.status == 8, "the reason");
	if (!strstr(e.why, "nobody listens on TCP port 7472 at") || !strstr(e.why, server_ip))
		errx(1, "the sentence: %s", e.why);
	destroy(&u, id, 3);
	close(u.fd);
	end_close(&end);
}

/* --- datagrams ---------------------------------------------------------------------------- */

static void datagrams(void)
{
	struct abi_cm_connect connect = {0};
	struct abi_cm_accept accept = {0};
	struct abi_cm_event e;
	struct cm_user u, v;
	struct end a, b;
	uint32_t listener;

	end_open(&a, client_socket, 4096);
	end_open(&b, server_socket, 4096);
	cm_user_open(&u, a.ctx);
	cm_user_open(&v, b.ctx);
	listener = cm_serve(&v, ABI_CM_PS_UDP, server_ip, PORT);
	connect.id = cm_resolve(&u, ABI_CM_PS_UDP, client_ip, server_ip, PORT);
	cm_ask(&u, ABI_CM_CONNECT, &connect, sizeof(connect), NULL, 0);
	e = cm_expect(&v, ABI_CM_CONNECT_REQUEST);
	cm_must(e.listener == listener, "the listener");
	accept.id = e.id;
	accept.param = param_of(&b, "");
	cm_ask(&v, ABI_CM_ACCEPT, &accept, sizeof(accept), NULL, 0);
	e = cm_expect(&u, ABI_CM_ESTABLISHED);
	cm_must(e.param.qpn == b.qp->qp_num && e.param.qkey == 0x01234567, "QPN and Q_Key");
	destroy(&v, listener, 1); /* of the new id the CONNECT_REQUEST counts to the listener */
	destroy(&v, accept.id, 0);
	close(u.fd);
	close(v.fd);
	end_close(&a);
	end_close(&b);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		errx(2, "usage: connections SERVER-SOCKET CLIENT-SOCKET SERVER CLIENT");
	server_socket = argv[1];
	client_socket = strcmp(argv[2], "-") ? argv[2] : server_socket;
	server_ip = argv[3];
	client_ip = argv[4];
	for (int i = 0; i < ROUNDS; i++)
		connect_and_lose();
	nobody_listens();
	datagrams();
	return 0;
}
