/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects come and go while workers run: grace periods and the order of withdrawal, best run
 * under ASan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "abi_wqe.h"
#include "core_counters.h"
#include "daemon.h"
#include "patience.h"
#include "qp_table.h"

#define ROUNDS	 60
#define PROGRAMS 3
#define QPS	 8

static void connect_to_itself(struct client *c, const struct abi_create_qp_reply *qp)
{
	struct abi_modify_qp m = {.handle = qp->handle,
		.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS,
		.attr = {.qp_state = ABI_QPS_INIT, .port = 1}};

	client_must(c->sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
	m.mask = ABI_QP_STATE | ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN |
		 ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER;
	m.attr.min_rnr_timer = 1; /* 10 us */
	m.attr.qp_state = ABI_QPS_RTR;
	m.attr.path_mtu = 1024;
	m.attr.dest_qpn = qp->qpn;
	m.attr.ah.port = 1;
	m.attr.ah.is_global = 1;
	memcpy(m.attr.ah.dgid, gid_own4, 16);
	client_must(c->sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
	m.mask = ABI_QP_STATE | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY |
		 ABI_QP_SQ_PSN | ABI_QP_MAX_QP_RD_ATOMIC;
	m.attr.qp_state = ABI_QPS_RTS;
	m.attr.timeout = 8; /* a millisecond */
	m.attr.retry_cnt = 7;
	m.attr.rnr_retry = 7;
	client_must(c->sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

/* Posts a SEND of no bytes. Nobody posts receives, so an RNR timer will run for it. */
static struct abi_create_qp_reply create_and_post(struct client *c, uint32_t pd, uint32_t cq)
{
	struct abi_create_qp in = client_qp_request(pd, cq);
	struct abi_create_qp_reply out;
	struct abi_wqe *wqe;
	struct answer a;
	uint8_t *p;

	assert_int_equal(client_call(c->sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), 0);
	memcpy(&out, a.body, sizeof(out));
	p = mmap(NULL, out.region_size, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd[0], 0);
	assert_true(p != MAP_FAILED);
	wqe = (struct abi_wqe *)(p + out.sq_ring_off);
	atomic_store_explicit((_Atomic uint32_t *)&wqe->ctl,
		ABI_WQE_CTL(ABI_WR_SEND, 0, ABI_WQE_PHASE | ABI_WQE_SIGNALED),
		memory_order_release);
	munmap(p, out.region_size);
	answer_close(&a);
	return out;
}

static void ring_all(struct client *c)
{
	for (uint32_t w = 0; w < c->hello.workers; w++) {
		struct abi_doorbell *db =
			(struct abi_doorbell *)(c->region + c->hello.doorbell_off +
						w * c->hello.doorbell_stride);

		for (uint32_t slot = 0; slot < 2 * QPS; slot++) /* free ones too */
			abi_doorbell_ring(db, slot);
	}
}

/* A life of some objects; every other one ends without tidying up. */
static void live(const struct test_daemon *d, bool tidy)
{
	struct abi_create_qp_reply qp[QPS];
	struct abi_reg_mr_reply mr;
	struct abi_handle h;
	struct client c;
	uint32_t pd, cq;
	int fd = client_memfd(4096);

	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	mr = client_mr(&c, pd, fd, 4096);
	for (int i = 0; i < QPS; i++) {
		qp[i] = create_and_post(&c, pd, cq);
		connect_to_itself(&c, &qp[i]);
	}
	ring_all(&c);
	for (int i = 0; tidy && i < QPS; i++) {
		h.handle = qp[i].handle;
		client_must(c.sock, ABI_DESTROY_QP, &h, sizeof(h), NULL, 0);
		ring_all(&c);
	}
	if (tidy) {
		h.handle = mr.handle;
		client_must(c.sock, ABI_DEREG_MR, &h, sizeof(h), NULL, 0);
		h.handle = cq;
		client_must(c.sock, ABI_DESTROY_CQ, &h, sizeof(h), NULL, 0);
	}
	close(fd);
	client_close(&c);
}

static struct test_program program[PROGRAMS];

static void churn(const struct test_daemon *d)
{
	for (int round = 0; round < ROUNDS; round++)
		live(d, round % 2);
}

static int setup(void **state)
{
	daemon_config(*state);
	for (int i = 0; i < PROGRAMS; i++)
		program_fork(&program[i], *state, churn);
	daemon_run(*state);
	daemon_start_workers(*state);
	return 0;
}

static int teardown(void **state)
{
	daemon_stop(*state); /* workers run still, as in rocid */
	daemon_stop_workers(*state);
	return 0;
}

static bool any_qp(const struct test_daemon *d)
{
	bool any = false;

	for (uint32_t slot = 0; slot < QP_MAX; slot++)
		any |= atomic_load(&d->dp->qps->slot[slot]) != NULL;
	return any;
}

static void sessions__come_and_go_while_workers_run(void **state)
{
	struct test_daemon *d = *state;
	struct core_counters count;
	struct client c;

	for (int i = 0; i < PROGRAMS; i++)
		program_go(&program[i]);
	for (int i = 0; i < PROGRAMS; i++) {
		int status = -1;

		assert_int_equal(waitpid(program[i].pid, &status, 0), program[i].pid);
		assert_int_equal(status, 0);
	}
	worker_counters(d->dp, &count);
	assert_true(count.rnr_nak_recv > 0); /* QPs were busy */
	client_open(d, &c);
	client_close(&c);
	WAIT_UNTIL(!any_qp(d)); /* the last sessions end on their own */
	assert_false(any_qp(d));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			sessions__come_and_go_while_workers_run, setup, teardown),
	};

	return cmocka_run_group_tests_name(
		"churn", tests, daemon_group_setup, daemon_group_teardown);
}
