/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "proc.h"
#include "raw.h"
#include "victim.h"

#define SIZE   8192u /* of what is registered */
#define AROUND 5000u /* bytes of canary on both sides, not whole pages */
#define LENGTH 3000u /* of a message: three packets */
#define CANARY 0xC7
#define ACCESS (ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ)

/* Where things lie in the memory of an end. */
enum {
	OUT = 0,
	IN = 3072,
	SECRET = 6144,
	IDLE = 6144 + SECRET_LEN
};

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

static void expect(struct end *e, uint64_t wr_id, const char *what)
{
	struct abi_cqe cqe;

	if (!raw_wait(&e->cq, &cqe))
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

static void note(_Atomic uint64_t *stalls, _Atomic uint64_t *longest, uint64_t ns)
{
	if (ns > STALL_NS)
		atomic_fetch_add(stalls, 1);
	if (ns > atomic_load(longest))
		atomic_store(longest, ns);
}

static void tell(struct victim *v, const struct end e[2])
{
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
	struct moment last, now;
	struct proc p;

	proc_open(&p, socket);
	for (int i = 0; i < 2; i++)
		open_end(&e[i], socket, v->secret);
	raw_connect_qps(&e[0].qp, &e[1].qp, ACCESS);
	tell(v, e);
	proc_now(&p, &last);
	for (uint64_t seq = 1; !atomic_load(&v->stop); seq++) {
		exchange(&e[seq & 1], &e[~seq & 1], seq);
		check_canaries(&e[seq & 1], v->secret);
		proc_now(&p, &now);
		note(&v->data_stalls, &v->longest_data_ns, proc_worker_ns(&p, &last, &now));
		last = now;
		atomic_fetch_add(&v->messages, 3);
	}
	for (int i = 0; i < 2; i++)
		check_canaries(&e[i], v->secret);
}

void victim_commands(struct victim *v, const char *socket)
{
	struct abi_device_attr attr;
	struct moment before, after;
	struct proc p;
	struct raw s;

	proc_open(&p, socket);
	raw_open(&s, socket);
	atomic_fetch_add(&v->ready, 1);
	while (!atomic_load(&v->stop)) {
		proc_now(&p, &before);
		raw_must(&s, ABI_QUERY_DEVICE, NULL, 0, &attr, sizeof(attr));
		proc_now(&p, &after);
		note(&v->command_stalls, &v->longest_command_ns, proc_control_ns(&before, &after));
		atomic_fetch_add(&v->commands, 1);
		usleep(500);
	}
}
