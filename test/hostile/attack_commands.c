/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that have much to do, of many sessions at once. */
#include <string.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"

enum {
	SESSIONS = 24,
	DATAGRAM_QPS = 100
};

/* Sends a request whose reply comes later. */
static void ask(struct raw *s, uint32_t type, const void *body, size_t len)
{
	uint8_t bytes[ABI_MSG_MAX];
	struct abi_msg msg = {.type = type, .seq = ++s->seq};

	memcpy(bytes, &msg, sizeof(msg));
	memcpy(bytes + sizeof(msg), body, len);
	must(raw_send(s->sock, bytes, sizeof(msg) + len, NULL, 0) > 0, "a request is not taken");
}

static void hear(struct raw *s)
{
	uint8_t body[ABI_MSG_MAX];
	struct abi_msg msg;
	int fd = -1;

	must(raw_receive(s->sock, &msg, body, sizeof(body), &fd, 1) && !msg.status,
		"a command within its rights is refused");
	if (fd >= 0)
		close(fd);
}

/* Each copies 32 MB. */
static void large_resizes(struct arena *a)
{
	static struct raw s[SESSIONS];
	static struct abi_modify_srq change[SESSIONS];

	for (unsigned i = 0; i < SESSIONS; i++) {
		struct abi_create_srq in = {
			.max_wr = 65536, .max_sge = 16, .xrcd = ABI_NO_HANDLE, .cq = ABI_NO_HANDLE};
		struct abi_create_srq_reply out;
		int fd = -1;

		raw_open(&s[i], a->socket);
		in.pd = s[i].pd;
		must(!raw_call(
			     &s[i], ABI_CREATE_SRQ, &in, sizeof(in), -1, &out, sizeof(out), &fd, 1),
			"no SRQ");
		close(fd);
		change[i] = (struct abi_modify_srq){
			.handle = out.handle, .mask = ABI_SRQ_MAX_WR, .max_wr = 65536};
	}
	for (unsigned n = 0; n < a->effort; n++) {
		for (unsigned i = 0; i < SESSIONS; i++)
			ask(&s[i], ABI_MODIFY_SRQ, &change[i], sizeof(change[i]));
		for (unsigned i = 0; i < SESSIONS; i++)
			hear(&s[i]);
	}
	for (unsigned i = 0; i < SESSIONS; i++)
		raw_close(&s[i]);
}

static uint32_t address_handle(struct raw *s)
{
	struct abi_query_gid q = {.port = 2};
	struct abi_create_ah in = {
		.pd = s->pd, .attr = {.port = 1, .is_global = 1, .hop_limit = 64}};
	struct abi_handle_reply out;
	struct abi_gid gid;

	raw_must(s, ABI_QUERY_GID, &q, sizeof(q), &gid, sizeof(gid));
	memcpy(in.attr.dgid, gid.gid, sizeof(gid.gid));
	raw_must(s, ABI_CREATE_AH, &in, sizeof(in), &out, sizeof(out));
	return out.handle;
}

/* A handle that goes has everything taken that is posted, of all datagram QPs. */
static void handle_of_full_queues(struct arena *a)
{
	static struct raw_qp qp[DATAGRAM_QPS];
	struct abi_create_qp in;
	struct raw_cq cq;
	struct raw s;

	raw_open(&s, a->socket);
	raw_cq(&s, &cq, 16, ABI_NO_HANDLE);
	in = raw_qp_request(&s, &cq, 16384);
	in.type = ABI_QPT_UD;
	in.max_recv_wr = 1;
	for (unsigned i = 0; i < DATAGRAM_QPS; i++) {
		struct abi_modify_qp m = {.attr = {.port = 1, .qkey = 1, .qp_state = ABI_QPS_INIT}};

		raw_qp(&s, &qp[i], &cq, &in);
		m.handle = qp[i].r.handle;
		m.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY;
		raw_must(&s, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
		must(!raw_state(&qp[i], ABI_QPS_RTR), "no RTR");
		for (uint32_t k = 0; k < qp[i].r.sq_depth; k++) /* of a first lap */
			raw_wqe(&qp[i], k)->ctl =
				ABI_WQE_CTL(ABI_WR_SEND, 0, 0) | abi_phase(k, qp[i].r.sq_depth);
	}
	for (unsigned n = 0; n < 3 * a->effort; n++) {
		uint32_t ah = address_handle(&s);

		for (unsigned i = 0; !n && i < DATAGRAM_QPS; i++) {
			struct abi_modify_qp m = {.handle = qp[i].r.handle,
				.mask = ABI_QP_STATE | ABI_QP_SQ_PSN,
				.attr = {.qp_state = ABI_QPS_RTS}};

			ask(&s, ABI_MODIFY_QP, &m, sizeof(m));
			hear(&s);
		}
		ask(&s, ABI_DESTROY_AH, &ah, sizeof(ah));
		hear(&s);
	}
	raw_close(&s);
}

const struct attack attacks_commands[] = {
	{"SRQs that are resized by many", large_resizes},
	{"an address handle beside full queues", handle_of_full_queues},
	{NULL, NULL},
};
