/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "proc.h"
#include "raw.h"
#include "victim.h"

#define SIZE   8192u /* of what is registered */
#define AROUND 5000u /* bytes of canary on both sides, not whole pages */
#define LENGTH 3000u /* of a message: three packets */
#define CANARY 0xC7
#define LOOKS  16u /* at a lane, for one at /proc */
#define ACCESS (ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ)

/* Where things lie in the memory of an end. */
enum {
	OUT = 0,
	IN = 3072,
	SECRET = 6144,
	IDLE = 6144 + SECRET_LEN
};

static struct victim *victim;
static struct proc proc;

struct end {
	struct raw s;
	struct raw_cq cq;
	struct raw_mr mr;
	struct raw_qp qp;
};

static uint8_t pattern(uint64_t seq, size_t i)
{
	return (uint8_t)((seq * 0x9E3779B97F4A7C15u >> (i & 31)) + i);
}

static void fill(uint8_t *p, uint64_t seq)
{
	for (size_t i = 0; i < LENGTH; i++)
		p[i] = pattern(seq, i);
}

static void check_bytes(const uint8_t *p, uint64_t seq, const char *what)
{
	for (size_t i = 0; i < LENGTH; i++)
		if (p[i] != pattern(seq, i))
			errx(1, "victim: byte %zu of a %s is wrong", i, what);
}

/* Nobody was asked to write there: around the region, and in its idle part. */
static void check_canaries(const struct end *e, const uint8_t *secret)
{
	const uint8_t *p = e->mr.base;

	for (size_t i = 0; i < e->mr.size; i++) {
		if (i >= AROUND && i < AROUND + IDLE)
			continue;
		if (p[i] != CANARY)
			errx(1, "victim: somebody wrote byte %zu, which nobody may write", i);
	}
	if (memcmp(e->mr.mem + SECRET, secret, SECRET_LEN))
		errx(1, "victim: somebody wrote its secret");
}

static void open_end(struct end *e, const char *socket, const uint8_t *secret)
{
	struct abi_create_qp in;

	raw_open(&e->s, socket);
	raw_cq(&e->s, &e->cq, 64, ABI_NO_HANDLE);
	raw_mr(&e->s, &e->mr, SIZE, AROUND, ACCESS);
	memset(e->mr.base, CANARY, e->mr.size);
	memcpy(e->mr.mem + SECRET, secret, SECRET_LEN);
	in = raw_qp_request(&e->s, &e->cq, 16);
	raw_qp(&e->s, &e->qp, &e->cq, &in);
}

void waits_note(struct waits *w, uint64_t ns, uint64_t bound)
{
	if (ns > bound)
		atomic_fetch_add(&w->stalls, 1);
	if (ns > atomic_load(&w->longest_ns))
		atomic_store(&w->longest_ns, ns);
}

/* Waits for a completion, and notes for how long no worker made it. */
static bool await(struct end *e, struct abi_cqe *cqe)
{
	time_t until = time(NULL) + RAW_PATIENCE_S;
	struct look begin, now, end;

	if (raw_poll(&e->cq, cqe))
		return true;
	proc_look(&proc, &begin);
	now = begin;
	for (unsigned looks = 1;; looks++) {
		struct look look = now;

		if (looks % LOOKS == 0)
			proc_look(&proc, &look); /* before the look */
		if (raw_poll(&e->cq, cqe))
			break;
		now = look;
		if (time(NULL) > until)
			return false;
		sched_yield();
	}
	proc_look(&proc, &end);
	waits_note(&victim->message, proc_waited(&proc, THREAD_WORKER, &begin, &now, &end),
		MESSAGE_NS);
	return true;
}

static void expect(struct end *e, uint64_t wr_id, const char *what)
{
	struct abi_cqe cqe;

	if (!await(e, &cqe))
		errx(1, "victim: its %s does not complete within %d s", what, RAW_PATIENCE_S);
	if (cqe.status)
		errx(1, "victim: its %s failed with status %u", what, cqe.status);
	if (cqe.wr_id != wr_id)
		errx(1, "victim: its %s completes as another request", what);
}

static struct abi_sge piece(const struct end *e, size_t at)
{
	return (struct abi_sge){(uintptr_t)e->mr.mem + at, LENGTH, e->mr.key};
}

/* A SEND, a WRITE and a READ, all checked. */
static void exchange(struct end *a, struct end *b, uint64_t seq)
{
	uint64_t remote = (uintptr_t)b->mr.mem;

	fill(a->mr.mem + OUT, seq);
	raw_post_recv(&b->qp, seq, piece(b, IN));
	raw_request(&a->qp, ABI_WR_SEND, seq, piece(a, OUT), 0, 0);
	expect(b, seq, "receive");
	expect(a, seq, "SEND");
	check_bytes(b->mr.mem + IN, seq, "SEND");
	raw_request(&a->qp, ABI_WR_RDMA_WRITE, seq, piece(a, OUT), remote + OUT, b->mr.key);
	expect(a, seq, "WRITE");
	check_bytes(b->mr.mem + OUT, seq, "WRITE");
	fill(b->mr.mem + IN, ~seq);
	raw_request(&a->qp, ABI_WR_RDMA_READ, seq, piece(a, IN), remote + IN, b->mr.key);
	expect(a, seq, "READ");
	check_bytes(a->mr.mem + IN, ~seq, "READ");
}

static void tell(const struct end e[2])
{
	struct victim *v = victim;

	for (int i = 0; i < 2; i++) {
		v->key[i] = e[i].mr.key;
		v->addr[i] = (uintptr_t)e[i].mr.mem;
		v->qpn[i] = e[i].qp.r.qpn;
	}
	v->len = SIZE;
	v->qp_handle = e[0].qp.r.handle;
	v->mr_handle = e[0].mr.handle;
	v->cq_handle = e[0].cq.r.handle;
	v->pd_handle = e[0].s.pd;
	atomic_fetch_add(&v->ready, 1);
}

void victim_data(struct victim *v, const char *socket)
{
	static struct end e[2];

	victim = v;
	proc_open(&proc, socket);
	for (int i = 0; i < 2; i++)
		open_end(&e[i], socket, v->secret);
	raw_connect_qps(&e[0].qp, &e[1].qp, ACCESS);
	tell(e);
	for (uint64_t seq = 1; !atomic_load(&v->stop); seq++) {
		exchange(&e[seq & 1], &e[~seq & 1], seq);
		check_canaries(&e[seq & 1], v->secret);
		atomic_fetch_add(&v->message.done, 3);
		usleep(PAUSE_US);
	}
	for (int i = 0; i < 2; i++)
		check_canaries(&e[i], v->secret);
}

/* --- commands ------------------------------------------------------------------------- */

/* @return false when it was refused by a rocid that has nothing left. */
static bool answer_of(struct raw *s, uint32_t type, void *out, size_t out_len)
{
	uint8_t answer[ABI_MSG_MAX] = {0};
	struct abi_msg m;

	if (!raw_receive(s->sock, &m, answer, sizeof(answer), NULL, 0) || m.type != type)
		errx(1, "victim: no answer to its command %u", type);
	if (m.status && atomic_load(&victim->starved))
		return false;
	if (m.status)
		errx(1, "victim: its command %u was refused: %s", type, (const char *)answer);
	if (out_len)
		memcpy(out, answer, out_len);
	return true;
}

/* Asks something, and notes for how long it was not answered.  @return whether it was granted. */
static bool ask(struct raw *s, uint32_t type, const void *body, size_t len, int fd, void *out,
	size_t out_len)
{
	time_t until = time(NULL) + RAW_PATIENCE_S;
	struct abi_msg m = {.type = type};
	uint8_t request[ABI_MSG_MAX], byte;
	struct look begin, now, look, end;

	memcpy(request, &m, sizeof(m));
	if (len)
		memcpy(request + sizeof(m), body, len);
	if (raw_send(s->sock, request, sizeof(m) + len, &fd, fd >= 0) < 0)
		errx(1, "victim: its session has ended");
	proc_look(&proc, &begin);
	now = begin;
	for (;;) {
		proc_look(&proc, &look); /* before the look */
		if (recv(s->sock, &byte, sizeof(byte), MSG_DONTWAIT | MSG_PEEK) >= 0)
			break;
		now = look;
		if (time(NULL) > until)
			errx(1, "victim: no answer within %d s", RAW_PATIENCE_S);
		usleep(50);
	}
	proc_look(&proc, &end);
	waits_note(&victim->command, proc_waited(&proc, THREAD_CONTROL, &begin, &now, &end),
		COMMAND_NS);
	atomic_fetch_add(&victim->command.done, 1);
	return answer_of(s, type, out, out_len);
}

/* The usual questions of programs; nobody's load may keep rocid from answering them. */
static void live(struct raw *s, int memfd)
{
	struct abi_reg_mr in = {.access = ACCESS, .length = SIZE};
	struct abi_reg_mr_reply mr;

	ask(s, ABI_QUERY_DEVICE, NULL, 0, -1, NULL, 0);
	if (!ask(s, ABI_ALLOC_PD, NULL, 0, -1, &in.pd, sizeof(in.pd)))
		return;
	if (ask(s, ABI_REG_MR, &in, sizeof(in), memfd, &mr, sizeof(mr)))
		ask(s, ABI_DEREG_MR, &mr.handle, sizeof(mr.handle), -1, NULL, 0);
	ask(s, ABI_DEALLOC_PD, &in.pd, sizeof(in.pd), -1, NULL, 0);
}

void victim_commands(struct victim *v, const char *socket)
{
	int memfd = raw_memfd(SIZE, F_SEAL_SHRINK);
	struct raw s;

	victim = v;
	proc_open(&proc, socket);
	raw_open(&s, socket);
	atomic_fetch_add(&v->ready, 1);
	while (!atomic_load(&v->stop)) {
		live(&s, memfd);
		usleep(PAUSE_US);
	}
}
