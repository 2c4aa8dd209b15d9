/* SPDX-License-Identifier: BSD-3-Clause */
/* The same again and again, as fast as it goes: commands, windows, receives that are not there,
 * address handles; and several such programs at once. */
#include <errno.h>
#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "bits.h"
#include "crowd.h"

static struct crowd crowd;

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint64_t in_a_while(const struct arena *a)
{
	return now_ms() + 600 * a->effort;
}

/* --- commands ------------------------------------------------------------------------- */

struct asked {
	uint32_t type;
	size_t len;
	union {
		struct abi_handle handle;
		struct abi_modify_qp modify;
		struct abi_resize_cq resize;
	};
};

/* rocid ends a session that leaves more replies unread than its socket holds
 * (SESSION_UNREAD_BYTES): 43 small ones, or 26 with a sentence of 270 bytes. */
#define UNANSWERED_MAX 16u

/* Sends it without waiting for the reply, and takes replies as they come. */
static void send_only(struct raw *s, const struct asked *q)
{
	struct abi_msg m = {.type = q->type};
	uint8_t buf[sizeof(m) + sizeof(*q)], answer[ABI_MSG_MAX];

	memcpy(buf, &m, sizeof(m));
	memcpy(buf + sizeof(m), &q->handle, q->len);
	must(raw_send(s->sock, buf, sizeof(m) + q->len, NULL, 0) > 0, "the session has ended");
	s->unanswered++;
	while (recv(s->sock, answer, sizeof(answer),
		       s->unanswered > UNANSWERED_MAX ? 0 : MSG_DONTWAIT) > 0)
		s->unanswered--;
}

static void fill_queues(struct raw_qp *qp)
{
	const struct abi_sge none = {0};
	uint32_t left = qp->r.rq_depth - (qp->received - atomic_load(&raw_rq(qp)->consumer));

	for (uint32_t n = raw_sq_room(qp); n; n--)
		crowd_post(qp, ABI_WR_SEND, &none, 1, 0, 0);
	for (; left; left--)
		raw_post_recv(qp, left, none);
}

/* QPs with long queues go to RESET, one session each, without an end. */
static void resets(struct arena *a)
{
	enum {
		SESSIONS = 24
	};
	static struct raw s[SESSIONS];
	static struct raw_cq cq[SESSIONS];
	static struct raw_qp qp[SESSIONS];
	uint64_t until = in_a_while(a);

	for (unsigned i = 0; i < SESSIONS; i++) {
		struct abi_create_qp in;

		raw_open(&s[i], a->socket);
		raw_cq(&s[i], &cq[i], 16, ABI_NO_HANDLE);
		in = raw_qp_request(&s[i], &cq[i], 16384);
		raw_qp(&s[i], &qp[i], &cq[i], &in);
	}
	while (now_ms() < until)
		for (unsigned i = 0; i < SESSIONS; i++) {
			struct asked q = {.type = ABI_MODIFY_QP,
				.len = sizeof(q.modify),
				.modify = {.handle = qp[i].r.handle, .mask = ABI_QP_STATE}};

			fill_queues(&qp[i]);
			q.modify.attr.qp_state = ABI_QPS_ERR;
			send_only(&s[i], &q);
			q.modify.attr.qp_state = ABI_QPS_RESET;
			send_only(&s[i], &q);
		}
	for (unsigned i = 0; i < SESSIONS; i++) {
		raw_qp_unmap(&qp[i]);
		raw_cq_unmap(&cq[i]);
		raw_close(&s[i]);
	}
}

/* Sessions that have a CQ resized and look at a QP, as many at a time as sockets take. */
static void small_commands(struct arena *a)
{
	enum {
		SESSIONS = 100
	};
	static struct raw s[SESSIONS];
	static struct raw_cq cq[SESSIONS];
	uint64_t until = in_a_while(a);
	unsigned n = 0;

	for (; n < SESSIONS && raw_try_open(&s[n], a->socket); n++)
		raw_cq(&s[n], &cq[n], 16, ABI_NO_HANDLE);
	must(n > SESSIONS / 2, "sessions");
	while (now_ms() < until)
		for (unsigned i = 0; i < n; i++) {
			const struct asked q = {.type = ABI_RESIZE_CQ,
				.len = sizeof(q.resize),
				.resize = {.handle = cq[i].r.handle, .depth = 1u << 18}};

			send_only(&s[i], &q);
		}
	for (unsigned i = 0; i < n; i++) {
		raw_cq_unmap(&cq[i]);
		raw_close(&s[i]);
	}
}

/* --- windows --------------------------------------------------------------------------- */

/* Windows of type 1 that are bound and unbound on all QPs, between SENDs. */
static void binds(struct arena *a)
{
	const struct crowd_spec spec = {
		.n = 16, .cqs = 1, .depth = 1024, .sges = 2, .memory = 65536};
	struct abi_reg_mr_reply region;
	struct abi_reg_mr reg = {.access = DUO_ACCESS | ABI_ACCESS_MW_BIND, .length = 65536};
	struct abi_alloc_mw in = {.type = 1};
	struct abi_alloc_mw_reply mw[16];
	uint64_t until = in_a_while(a);

	crowd_open(&crowd, a, &spec);
	crowd_pair(&crowd);
	in.pd = reg.pd = crowd.s.pd;
	must(!raw_call(&crowd.s, ABI_REG_MR, &reg, sizeof(reg), crowd.mr.fd, &region,
		     sizeof(region), NULL, 0),
		"a region for windows");
	for (unsigned i = 0; i < crowd.n; i++)
		raw_must(&crowd.s, ABI_ALLOC_MW, &in, sizeof(in), &mw[i], sizeof(mw[i]));
	for (unsigned n = 0; now_ms() < until; n++) {
		for (unsigned i = 0; i < crowd.n; i++) {
			struct raw_qp *qp = &crowd.qp[i];
			struct abi_wqe w = {.bind = {.mw = mw[(i + n) % crowd.n].rkey,
						    .mr_lkey = region.lkey,
						    .new_rkey = mw[(i + n) % crowd.n].rkey,
						    .length = n % 2 ? 4096 : 0}};

			while (raw_sq_room(qp) > 1)
				crowd_post(qp, ABI_WR_BIND_MW, w.sge, 2, 0, 0);
		}
		crowd_drain(&crowd);
	}
	crowd_close(&crowd);
}

/* --- receives -------------------------------------------------------------------------- */

/* SENDs that wait for receives, which come one at a time. */
static void not_ready(struct arena *a)
{
	const struct crowd_spec spec = {
		.n = 128, .cqs = 2, .depth = 64, .sges = 1, .memory = 65536};
	const uint64_t until = in_a_while(a);

	crowd_open(&crowd, a, &spec);
	crowd_pair(&crowd);
	while (now_ms() < until) {
		const struct abi_sge sge = crowd_sge(&crowd, 0, 4096);

		for (unsigned i = 0; i < crowd.n; i += 2) {
			while (raw_sq_room(&crowd.qp[i]))
				crowd_post(&crowd.qp[i], ABI_WR_SEND, &sge, 1, 0, 0);
			raw_post_recv(&crowd.qp[i + 1], i, sge);
		}
		usleep(500);
		crowd_drain(&crowd);
	}
	crowd_close(&crowd);
}

/* An SRQ whose limit is armed again after each message. */
static void limits(struct arena *a)
{
	struct abi_create_srq in = {
		.max_wr = 64, .max_sge = 1, .limit = 1, .xrcd = ABI_NO_HANDLE, .cq = ABI_NO_HANDLE};
	uint64_t until = in_a_while(a);
	struct abi_create_srq_reply r;
	struct raw s;
	int fd;

	raw_open(&s, a->socket);
	in.pd = s.pd;
	must(!raw_call(&s, ABI_CREATE_SRQ, &in, sizeof(in), -1, &r, sizeof(r), &fd, 1), "an SRQ");
	while (now_ms() < until) {
		struct abi_modify_srq m = {.handle = r.handle, .mask = ABI_SRQ_LIMIT, .limit = 1};

		raw_must(&s, ABI_MODIFY_SRQ, &m, sizeof(m), NULL, 0);
	}
	close(fd);
	raw_close(&s);
}

/* Atomics of many QPs on one word. */
static void one_word(struct arena *a)
{
	const struct crowd_spec spec = {.n = 64, .cqs = 1, .depth = 64, .sges = 2, .memory = 65536};
	const uint64_t until = in_a_while(a);

	crowd_open(&crowd, a, &spec);
	crowd_pair(&crowd);
	while (now_ms() < until) {
		for (unsigned i = 0; i < crowd.n; i++)
			while (raw_sq_room(&crowd.qp[i])) {
				struct raw_qp *qp = &crowd.qp[i];
				const struct abi_sge operands = {.addr = 1};

				raw_wqe(qp, qp->posted)->atomic.sge =
					crowd_sge(&crowd, 64 + 8 * i, 8);
				crowd_post(qp, ABI_WR_ATOMIC_FETCH_AND_ADD, &operands, 1,
					(uintptr_t)crowd.mr.mem, crowd.mr.key);
			}
		crowd_drain(&crowd);
	}
	crowd_close(&crowd);
}

/* QPs are reset while their packets lie in the inbox by the thousand. */
static void resets_in_flight(struct arena *a)
{
	const struct crowd_spec spec = {
		.n = 32, .cqs = 1, .depth = 64, .sges = 1, .memory = 1u << 20};

	crowd_open(&crowd, a, &spec);
	crowd_pair(&crowd);
	for (unsigned round = 0; round < 10 * a->effort; round++) {
		const struct abi_sge sge = crowd_sge(&crowd, 0, 100000);

		for (unsigned i = 0; i < crowd.n; i++)
			while (raw_sq_room(&crowd.qp[i]))
				crowd_post(&crowd.qp[i], ABI_WR_RDMA_WRITE, &sge, 1,
					(uintptr_t)crowd.mr.mem, crowd.mr.key);
		usleep((useconds_t)random_below(&a->random, 5000));
		for (unsigned i = 0; i < crowd.n; i++)
			must(!raw_state(&crowd.qp[i], ABI_QPS_RESET), "RESET");
		crowd_drain(&crowd);
		crowd_pair(&crowd);
	}
	crowd_close(&crowd);
}

/* --- address handles ------------------------------------------------------------------- */

/* Handles of groups whose GIDs differ where a weak hash does not look: all that a session may
 * have, and then one goes and one comes. */
static void handles(struct arena *a)
{
	struct abi_create_ah in = {
		.attr = {.port = 1, .is_global = 1, .dgid = {[10] = 0xFF, 0xFF}}};
	enum {
		KEPT = 4096
	};
	static uint32_t handle[KEPT];
	uint64_t until;
	struct raw s;

	raw_open(&s, a->socket);
	in.pd = s.pd;
	for (unsigned i = 0; i < KEPT; i++) {
		const uint32_t ip = 0xE1000000u + i * 256;

		put_be32(in.attr.dgid + 12, ip);
		must(!raw_call(&s, ABI_CREATE_AH, &in, sizeof(in), -1, &handle[i],
			     sizeof(handle[i]), NULL, 0),
			"an address handle");
	}
	until = in_a_while(a);
	for (unsigned i = 0; now_ms() < until; i = (i + 1) % KEPT) {
		raw_must(&s, ABI_DESTROY_AH, &handle[i], sizeof(handle[i]), NULL, 0);
		put_be32(in.attr.dgid + 12, 0xE1000000u + i * 256);
		raw_must(&s, ABI_CREATE_AH, &in, sizeof(in), &handle[i], sizeof(handle[i]));
	}
	raw_close(&s);
}

/* Many groups, joined by one QP, and left by its end. */
static void groups(struct arena *a)
{
	for (unsigned round = 0; round < 3 * a->effort; round++) {
		struct abi_create_qp in;
		struct abi_mcast m = {.mgid = {0xFF, 0x15}};
		struct raw_cq cq;
		struct raw_qp qp;
		struct raw s;

		raw_open(&s, a->socket);
		raw_cq(&s, &cq, 16, ABI_NO_HANDLE);
		in = raw_qp_request(&s, &cq, 16);
		in.type = ABI_QPT_UD;
		raw_qp(&s, &qp, &cq, &in);
		must(!raw_datagrams(&qp, 1), "a QP for datagrams");
		m.qp = qp.r.handle;
		for (uint32_t i = 0; i < 200; i++) {
			put_be32(m.mgid + 4, i); /* a weak hash looks at the end */
			raw_must(&s, ABI_ATTACH_MCAST, &m, sizeof(m), NULL, 0);
		}
		raw_qp_unmap(&qp);
		raw_cq_unmap(&cq);
		raw_close(&s);
	}
}

/* --- all together ---------------------------------------------------------------------- */

static void several(struct arena *a);

static const struct attack *any(struct random *r)
{
	static const struct attack *const tables[] = {attacks_words, attacks_wqe, attacks_srq,
		attacks_objects, attacks_memory, attacks_fuzz, attacks_crowds, attacks_pieces,
		attacks_storms};
	const struct attack *table, *k;

	do {
		unsigned n = 0;

		table = tables[random_below(r, ARRAY_SIZE(tables))];
		while (table[n].name)
			n++;
		k = &table[random_below(r, n)];
	} while (k->run == several);
	return k;
}

/* The quotas leave less than it asks for: a refusal is no failure of the test. */
static void several(struct arena *a)
{
	pid_t pid[4];

	for (unsigned i = 0; i < ARRAY_SIZE(pid); i++) {
		const struct attack *k = any(&a->random);

		pid[i] = fork();
		must(pid[i] >= 0, "no process");
		if (pid[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		must(freopen("/dev/null", "w", stderr) != NULL, "/dev/null");
		a->random.state += i;
		k->run(a);
		_exit(0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(pid); i++)
		waitpid(pid[i], NULL, 0);
}

const struct attack attacks_storms[] = {
	{"RESET of long queues", resets},
	{"small commands of a hundred sessions", small_commands},
	{"windows bound and unbound", binds},
	{"SENDs that nobody receives", not_ready},
	{"the limit of an SRQ", limits},
	{"atomics on one word", one_word},
	{"RESET in mid-flight", resets_in_flight},
	{"address handles in one bucket", handles},
	{"groups that one QP is in", groups},
	{"several at once", several},
	{NULL, NULL},
};
