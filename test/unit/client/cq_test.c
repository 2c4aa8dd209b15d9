/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "effort.h"
#include "fixture.h"
#include "patience.h"

static bool complete(struct rig *r, unsigned lane, uint64_t wr_id)
{
	return harness_complete(r->h, 0, lane, 0, wr_id, ABI_WC_RECV, ABI_WC_SUCCESS);
}

static _Atomic uint32_t *consumer(struct rig *r, unsigned lane)
{
	return (_Atomic uint32_t *)r->h->cq[0].cq.lane[lane].consumer;
}

static _Atomic uint32_t *arm(struct rig *r)
{
	return r->h->cq[0].cq.arm;
}

/* proves CQ-02 */
static void create_cq__bad_sizes(void **state)
{
	struct rig *r = *state;

	assert_null(roci_create_cq(r->ctx, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(roci_create_cq(r->ctx, -5, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
}

/* proves CQ-02 */
static void create_cq__says_what_it_got(void **state)
{
	struct rig *r = *state;
	int user;
	struct roci_cq *cq = roci_create_cq(r->ctx, 100, &user, NULL, 0);

	assert_int_equal(cq->cqe, 128);
	assert_ptr_equal(cq->user_data, &user);
	assert_int_equal(r->h->cq[1].asked.depth, 100);
	assert_true(r->h->cq[1].asked.channel == ABI_NO_HANDLE);
	assert_int_equal(roci_destroy_cq(cq), 0);
}

/* proves CQ-12 */
static void destroy_cq__with_qps(void **state)
{
	struct rig *r = *state;

	assert_int_equal(roci_destroy_cq(r->cq), EBUSY);
	assert_int_equal(r->h->calls[ABI_DESTROY_CQ], 0);
	assert_int_equal(roci_destroy_qp(r->qp), 0);
	r->qp = NULL;
	assert_int_equal(roci_destroy_cq(r->cq), 0);
	r->cq = NULL;
}

/* proves CQ-13 */
static void poll_cq__empty(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc;

	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 0);
	assert_int_equal(roci_poll_cq(r->cq, 0, NULL), 0);
	assert_int_equal(roci_poll_cq(r->cq, -1, NULL), -EINVAL);
}

/* proves CQ-08, CQ-09 */
static void poll_cq__all_fields(void **state)
{
	struct rig *r = *state;
	struct abi_cqe cqe = {
		.wr_id = 0x1020304050607080,
		.byte_len = 0x11223345,
		.imm = 0x55667788,
		.qpn = r->qp->qp_num,
		.src_qp = 0x123456,
		.opcode = ABI_WC_RECV_RDMA_WITH_IMM,
		.status = ABI_WC_LOC_LEN_ERR,
		.flags = ABI_WC_WITH_IMM | ABI_WC_SOLICITED,
		.sl = 3,
		.pkey_index = 9,
		.vendor_err = 0x61,
	};
	struct roci_wc wc;

	assert_true(cq_push(&r->h->cq[0].cq.lane[2], &cqe, 0));
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	assert_true(wc.wr_id == cqe.wr_id);
	assert_int_equal(wc.byte_len, cqe.byte_len);
	assert_int_equal(wc.imm_data, cqe.imm);
	assert_int_equal(wc.qp_num, cqe.qpn);
	assert_int_equal(wc.src_qp, cqe.src_qp);
	assert_int_equal(wc.opcode, ROCI_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.status, ROCI_WC_LOC_LEN_ERR);
	assert_int_equal(wc.wc_flags, ROCI_WC_WITH_IMM); /* bit 7 is our own business */
	assert_int_equal(wc.sl, 3);
	assert_int_equal(wc.pkey_index, 9);
	assert_int_equal(wc.vendor_err, 0x61);
}

/* proves XRC-05: a receive of an SRQ completes with its QP's number, be it another
 * program's perhaps, and counts for none of ours. */
static void poll_cq__of_an_xrc_srq(void **state)
{
	struct rig *r = *state;
	struct abi_cqe cqe = {
		.wr_id = 7, .qpn = r->qp->qp_num, .opcode = ABI_WC_RECV, .srqn = 0x1234};
	struct roci_wc_net net[4];
	struct roci_wc wc[4];

	assert_true(cq_push(&r->h->cq[0].cq.lane[0], &cqe, 3));
	cqe.qpn ^= 0x10; /* none of ours */
	cqe.srqn = 0x1235;
	assert_true(cq_push(&r->h->cq[0].cq.lane[0], &cqe, 3));
	assert_true(complete(r, 0, 8));
	assert_int_equal(roci_poll_cq_net(r->cq, 4, wc, net), 3);
	assert_int_equal(net[0].srq_num, 0x1234);
	assert_int_equal(wc[0].wr_id, 7);
	assert_int_equal(wc[0].qp_num, r->qp->qp_num);
	assert_int_equal(net[1].srq_num, 0x1235);
	assert_int_equal(wc[1].qp_num, r->qp->qp_num ^ 0x10);
	assert_int_equal(net[2].srq_num, 0);
	assert_int_equal(wc[2].wr_id, 8);
}

static void poll_cq__every_lane_in_its_order(void **state)
{
	struct rig *r = *state;
	uint64_t last[HARNESS_WORKERS] = {0};
	unsigned seen = 0;
	struct roci_wc wc[5];
	int n;

	for (uint64_t i = 1; i <= 10; i++)
		for (unsigned l = 0; l < HARNESS_WORKERS; l++)
			assert_true(complete(r, l, l << 8 | i));
	while ((n = roci_poll_cq(r->cq, 5, wc)) > 0) {
		for (int i = 0; i < n; i++) {
			unsigned l = wc[i].wr_id >> 8;

			assert_int_equal(wc[i].wr_id & 0xff, last[l] + 1);
			last[l]++;
			seen++;
		}
	}
	assert_int_equal(n, 0);
	assert_int_equal(seen, 30);
}

/* A QP whose worker changes, at any moment: its completions come in their order, none of them
 * twice, and a poll that is not full has emptied the queue. */
static void poll_cq__order_of_a_qp_that_moves(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc[16];
	uint64_t posted = 0;
	uint64_t taken = 0;

	for (unsigned round = 0; round < 500; round++) {
		int max = 1 + (int)(round * 7 % 16);
		int n;

		for (unsigned i = 0; i < round * 5 % 12; i++, posted++) /* it moves each 1 to 4 */
			assert_true(
				complete(r, posted / (1 + round % 4) % HARNESS_WORKERS, posted));
		do {
			n = roci_poll_cq(r->cq, max, wc);
			for (int i = 0; i < n; i++)
				assert_true(wc[i].wr_id == taken++);
		} while (n == max);
		assert_true(taken == posted);
	}
}

/* Two QPs that change places hold each other's lane up, but not for ever. */
static void poll_cq__qps_that_cross(void **state)
{
	struct rig *r = *state;
	struct roci_qp *other = rig_qp(r, 4, 0);
	struct roci_wc wc[8];

	harness_complete(r->h, 0, 0, 0, 1, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 1, 1, 11, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 1, 0, 2, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 0, 1, 12, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 0, 0, 3, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 1, 1, 13, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_poll_cq(r->cq, 8, wc), 6);
	for (unsigned i = 0, a = 1, b = 11; i < 6; i++)
		assert_true(wc[i].wr_id == (wc[i].wr_id < 10 ? a++ : b++));
	assert_int_equal(roci_destroy_qp(other), 0);
}

/* Sends and receives are counted apart, and both anew after RESET. */
static void poll_cq__order_begins_anew_with_reset(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc[8];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 2; i++) {
			harness_complete(r->h, 0, 0, 0, i, ABI_WC_RECV, ABI_WC_SUCCESS);
			harness_complete(r->h, 0, 1, 0, i, ABI_WC_SEND, ABI_WC_SUCCESS);
		}
		assert_int_equal(roci_poll_cq(r->cq, 8, wc), 4);
		complete(r, 2, 9); /* thrown away */
		assert_int_equal(rig_modify(r->qp, ROCI_QPS_RESET), 0);
		assert_int_equal(roci_poll_cq(r->cq, 8, wc), 0);
	}
}

static void poll_cq__no_lane_starves(void **state)
{
	struct rig *r = *state;
	bool served[HARNESS_WORKERS] = {false};
	struct roci_wc wc;

	for (unsigned l = 0; l < HARNESS_WORKERS; l++)
		complete(r, l, l);
	/* The first lane is refilled all the time. */
	for (unsigned i = 0; i < HARNESS_WORKERS; i++) {
		assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
		served[wc.wr_id] = true;
		complete(r, 0, 0);
	}
	for (unsigned l = 0; l < HARNESS_WORKERS; l++)
		assert_true(served[l]);
}

static void poll_cq__laps(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc[16];

	for (uint64_t i = 0; i < 1000; i += 7) {
		for (uint64_t j = 0; j < 7; j++)
			assert_true(complete(r, 1, i + j));
		assert_int_equal(roci_poll_cq(r->cq, 16, wc), 7);
		for (uint64_t j = 0; j < 7; j++)
			assert_true(wc[j].wr_id == i + j);
	}
}

/* proves CQ-01: a CQ that was full has the room of what the program took, however little. */
static void poll_cq__makes_room_for_as_many_as_it_took(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc[16];

	for (uint64_t i = 0; i < 16; i++)
		assert_true(complete(r, 0, i));
	assert_int_equal(roci_poll_cq(r->cq, 3, wc), 3);
	assert_int_equal(*consumer(r, 0), 3);
	for (uint64_t i = 16; i < 19; i++)
		assert_true(complete(r, 0, i));
	assert_false(complete(r, 0, 19)); /* full */
	r->h->cq[0].cq.lane[0].overflow = false;
	assert_int_equal(roci_poll_cq(r->cq, 16, wc), 16);
	assert_int_equal(*consumer(r, 0), 19);
}

/* proves CQ-12 */
static void poll_cq__skips_a_destroyed_qp(void **state)
{
	struct rig *r = *state;
	struct roci_qp *other = rig_qp(r, 4, 0);
	struct roci_wc wc[4];

	harness_complete(r->h, 0, 0, 1, 1, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 0, 0, 2, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 2, 1, 3, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_destroy_qp(other), 0);
	/* Its number comes back at once, its completions do not. */
	other = rig_qp(r, 4, 0);
	assert_int_equal(roci_poll_cq(r->cq, 4, wc), 1);
	assert_true(wc[0].wr_id == 2);
	assert_int_equal(roci_destroy_qp(other), 0);
}

/* proves CQ-12: also when its completion was the last that was taken. */
static void poll_cq__skips_the_destroyed_qp_of_the_last_completion(void **state)
{
	struct rig *r = *state;
	struct roci_qp *other = rig_qp(r, 4, 0);
	struct roci_wc wc[4];

	harness_complete(r->h, 0, 0, 1, 1, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_poll_cq(r->cq, 4, wc), 1);
	assert_int_equal(roci_destroy_qp(other), 0);
	harness_complete(r->h, 0, 0, 1, 2, ABI_WC_RECV, ABI_WC_SUCCESS);
	assert_int_equal(roci_poll_cq(r->cq, 4, wc), 0);
}

/* proves CQ-12: all of its completions, in both of its CQs, each of which it holds. */
static void poll_cq__skips_a_destroyed_qp_of_two_cqs(void **state)
{
	struct rig *r = *state;
	struct roci_cq *cq[2] = {roci_create_cq(r->ctx, 16, NULL, NULL, 0),
		roci_create_cq(r->ctx, 16, NULL, NULL, 0)};
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.send_cq = cq[0],
		.recv_cq = cq[1],
		.cap = {4, 4, 1, 1, 0},
		.qp_type = ROCI_QPT_RC};
	struct roci_qp *other = roci_create_qp(r->pd, &init);
	struct roci_wc wc[4];

	for (uint64_t i = 0; i < 4; i++) {
		harness_complete(r->h, 1, 1, 1, i, ABI_WC_SEND, ABI_WC_SUCCESS);
		harness_complete(r->h, 2, 1, 1, i, ABI_WC_RECV, ABI_WC_SUCCESS);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(roci_destroy_cq(cq[i]), EBUSY);
	assert_int_equal(roci_destroy_qp(other), 0);
	other = roci_create_qp(r->pd, &init); /* of the same number */
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(roci_poll_cq(cq[i], 4, wc), 0);
	/* nor do they keep the lane from those of its successor */
	harness_complete(r->h, 1, 1, 1, 0, ABI_WC_SEND, ABI_WC_SUCCESS);
	harness_complete(r->h, 2, 1, 1, 0, ABI_WC_RECV, ABI_WC_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(roci_poll_cq(cq[i], 4, wc), 1);
	assert_int_equal(roci_destroy_qp(other), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(roci_destroy_cq(cq[i]), 0);
}

/* proves CQ-13: never more than there is room for. */
static void poll_cq__at_most_what_was_asked_for(void **state)
{
	struct rig *r = *state;

	for (int max = 1; max <= 10; max++) {
		struct roci_wc wc[11];
		int seen = 0, n;

		for (uint64_t i = 0; i < 10; i++)
			assert_true(complete(r, i / 5 % HARNESS_WORKERS, i));
		memset(wc, 0xAB, sizeof(wc));
		while ((n = roci_poll_cq(r->cq, max, wc)) > 0) {
			assert_in_range(n, 1, max);
			assert_true(wc[max].wr_id == 0xABABABABABABABAB);
			seen += n;
		}
		assert_int_equal(seen, 10);
	}
}

#define POLLERS 3
#define MANY	EFFORT(400000u)

static struct {
	struct rig *rig;
	pthread_barrier_t start;
	_Atomic bool stop;
	uint8_t seen[POLLERS][MANY];
} crowd;

static void *poll_in_a_crowd(void *seen)
{
	struct roci_wc wc[4];
	int n;

	pthread_barrier_wait(&crowd.start);
	do {
		bool last = atomic_load(&crowd.stop);

		n = roci_poll_cq(crowd.rig->cq, 4, wc);
		for (int i = 0; i < n; i++)
			((uint8_t *)seen)[wc[i].wr_id % MANY]++;
		if (!n && last)
			break;
	} while (n >= 0);
	return NULL;
}

/* proves CQ-13: several threads, and each completion goes to one of them. */
static void poll_cq__by_several_threads(void **state)
{
	time_t end = patience_begin();
	pthread_t thread[POLLERS];

	crowd.rig = *state;
	memset(crowd.seen, 0, sizeof(crowd.seen));
	atomic_store(&crowd.stop, false);
	pthread_barrier_init(&crowd.start, NULL, POLLERS + 1);
	for (unsigned t = 0; t < POLLERS; t++)
		pthread_create(&thread[t], NULL, poll_in_a_crowd, crowd.seen[t]);
	pthread_barrier_wait(&crowd.start);
	for (uint64_t i = 0; i < MANY && !patience_over(end);) {
		if (complete(crowd.rig, 1, i)) {
			i++;
			continue;
		}
		crowd.rig->h->cq[0].cq.lane[1].overflow = false; /* the pollers are late */
		sched_yield();
	}
	atomic_store(&crowd.stop, true);
	for (unsigned t = 0; t < POLLERS; t++)
		pthread_join(thread[t], NULL);
	for (unsigned i = 0; i < MANY; i++) {
		unsigned times = 0;

		for (unsigned t = 0; t < POLLERS; t++)
			times += crowd.seen[t][i];
		assert_int_equal(times, 1);
	}
}

/* --- arming ------------------------------------------------------------------------------- */

static void req_notify__each_differs(void **state)
{
	struct rig *r = *state;
	uint32_t before = *arm(r), now;

	roci_req_notify_cq(r->cq, 0);
	now = *arm(r);
	assert_int_equal(now & ABI_CQ_ARM_MASK, ABI_CQ_ARM_ANY);
	assert_int_equal(now >> 2, (before >> 2) + 1);
	roci_req_notify_cq(r->cq, 0);
	assert_int_equal(*arm(r) >> 2, (before >> 2) + 2);
}

/* proves CQ-05 */
static void req_notify__never_weakens(void **state)
{
	struct rig *r = *state;

	roci_req_notify_cq(r->cq, 1);
	assert_int_equal(*arm(r) & ABI_CQ_ARM_MASK, ABI_CQ_ARM_SOLICITED);
	roci_req_notify_cq(r->cq, 0);
	assert_int_equal(*arm(r) & ABI_CQ_ARM_MASK, ABI_CQ_ARM_ANY);
	roci_req_notify_cq(r->cq, 1);
	assert_int_equal(*arm(r) & ABI_CQ_ARM_MASK, ABI_CQ_ARM_ANY);
}

static void req_notify__counter_wraps(void **state)
{
	struct rig *r = *state;

	atomic_store(arm(r), ~ABI_CQ_ARM_MASK);
	roci_req_notify_cq(r->cq, 1);
	assert_int_equal(*arm(r), ABI_CQ_ARM_SOLICITED);
}

/* --- death of rocid ------------------------------------------------------------------------- */

static void post_some(struct rig *r)
{
	struct roci_send_wr send = {.opcode = ROCI_WR_SEND};
	struct roci_recv_wr recv = {.num_sge = 0};

	for (uint64_t i = 0; i < 5; i++) {
		send.wr_id = 100 + i;
		send.send_flags = i % 2 ? ROCI_SEND_SIGNALED : 0;
		recv.wr_id = 200 + i;
		assert_int_equal(roci_post_send(r->qp, &send, NULL), 0);
		assert_int_equal(roci_post_recv(r->qp, &recv, NULL), 0);
	}
}

/* Polls until something comes, as a program does. */
static int poll_on(struct rig *r, int max, struct roci_wc *wc)
{
	int n = 0;

	for (int i = 0; i < 20000 && n == 0; i++)
		n = roci_poll_cq(r->cq, max, wc);
	return n;
}

static void expect_flushed(struct rig *r, const uint64_t *ids, unsigned n)
{
	struct roci_wc wc;

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(poll_on(r, 1, &wc), 1);
		assert_int_equal(wc.status, ROCI_WC_WR_FLUSH_ERR);
		assert_int_equal(wc.wr_id, ids[i]);
		assert_int_equal(wc.qp_num, r->qp->qp_num);
		assert_int_equal(wc.opcode & ROCI_WC_RECV, ids[i] >= 200 ? ROCI_WC_RECV : 0);
	}
	assert_int_equal(poll_on(r, 1, &wc), -EIO);
	assert_int_equal(poll_on(r, 1, &wc), -EIO);
}

static void dead__flushes_all(void **state)
{
	static const uint64_t ids[] = {100, 101, 102, 103, 104, 200, 201, 202, 203, 204};
	struct rig *r = *state;

	post_some(r);
	harness_die(r->h);
	expect_flushed(r, ids, 10);
}

static void dead__after_what_is_complete(void **state)
{
	static const uint64_t ids[] = {102, 103, 104, 201, 202, 203, 204};
	struct rig *r = *state;
	struct roci_wc wc[4];

	post_some(r);
	harness_complete(r->h, 0, 0, 0, 101, ABI_WC_SEND, ABI_WC_SUCCESS);
	harness_complete(r->h, 0, 2, 0, 200, ABI_WC_RECV, ABI_WC_SUCCESS);
	harness_end(r->h);
	assert_int_equal(poll_on(r, 4, wc), 2);
	assert_int_equal(wc[0].status, ROCI_WC_SUCCESS);
	assert_int_equal(wc[1].status, ROCI_WC_SUCCESS);
	expect_flushed(r, ids, 7);
}

/* Events at the moment when the client reads the epoch. */
static struct {
	struct rig *rig;
	void *page;
} trap;

static void on_look(int sig)
{
	(void)sig;
	mprotect(trap.page, 4096, PROT_READ | PROT_WRITE);
	harness_complete(trap.rig->h, 0, 0, 0, 101, ABI_WC_SEND, ABI_WC_SUCCESS);
	atomic_store(&((struct abi_session *)trap.rig->h->session.base)->epoch, 0);
}

/* The client's mapping of the session region: the one that is not the harness's. */
static void *client_region(const struct harness *h)
{
	unsigned long inode, start;
	void *found = NULL;
	char line[512];
	struct stat st;
	FILE *f = fopen("/proc/self/maps", "re");

	assert_non_null(f);
	assert_int_equal(fstat(h->session.fd, &st), 0);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%*x %*s %*x %*s %lu", &start, &inode) == 2 &&
			inode == st.st_ino && (void *)start != h->session.base)
			found = (void *)start;
	fclose(f);
	assert_non_null(found);
	return found;
}

/* A completion that comes after the lanes were looked at and before the end is seen. */
static void dead__after_the_last_completion(void **state)
{
	static const uint64_t ids[] = {102, 103, 104, 200, 201, 202, 203, 204};
	struct sigaction sa = {.sa_handler = on_look}, old;
	struct rig *r = *state;
	struct roci_wc wc[4];

	post_some(r);
	trap.rig = r;
	trap.page = client_region(r->h);
	sigaction(SIGSEGV, &sa, &old);
	assert_int_equal(mprotect(trap.page, 4096, PROT_NONE), 0);
	assert_int_equal(poll_on(r, 4, wc), 1);
	sigaction(SIGSEGV, &old, NULL);
	assert_true(wc[0].wr_id == 101);
	assert_int_equal(wc[0].status, ROCI_WC_SUCCESS);
	expect_flushed(r, ids, 8);
}

/* Killed between a completion and the next: unsignaled ones count by the consumer index. */
static void dead__unsignaled_by_consumer_index(void **state)
{
	static const uint64_t ids[] = {103, 104, 200, 201, 202, 203, 204};
	struct rig *r = *state;
	struct roci_wc wc;

	post_some(r);
	harness_complete(r->h, 0, 0, 0, 101, ABI_WC_SEND, ABI_WC_SUCCESS);
	atomic_store(&harness_sq(r->h, 0)->consumer, 3);
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	harness_die(r->h);
	expect_flushed(r, ids, 7);
}

static void dead__after_an_error(void **state)
{
	static const uint64_t ids[] = {103, 104, 201, 202, 203, 204};
	struct rig *r = *state;
	struct roci_wc wc[4];

	post_some(r);
	/* 100 succeeded silently; 101 failed; 102 was flushed although it is unsignaled. */
	harness_fail(r->h, 0, 0, 0, 1, 101, ABI_WC_RETRY_EXC_ERR);
	harness_fail(r->h, 0, 0, 0, 2, 102, ABI_WC_WR_FLUSH_ERR);
	harness_complete(r->h, 0, 0, 0, 200, ABI_WC_RECV, ABI_WC_WR_FLUSH_ERR);
	assert_int_equal(roci_poll_cq(r->cq, 4, wc), 3);
	harness_die(r->h);
	expect_flushed(r, ids, 6);
}

/* Requests that only the consumer index tells apart. */
static void dead__after_an_error_with_equal_wr_ids(void **state)
{
	struct rig *r = *state;
	struct roci_send_wr wr = {.wr_id = 9, .opcode = ROCI_WR_SEND};
	struct roci_wc wc[4];

	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0); /* succeeds */
	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0); /* fails */
	wr.send_flags = ROCI_SEND_SIGNALED;
	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0); /* is flushed */
	harness_fail(r->h, 0, 0, 0, 1, 9, ABI_WC_REM_OP_ERR);
	harness_fail(r->h, 0, 0, 0, 2, 9, ABI_WC_WR_FLUSH_ERR);
	atomic_store(&harness_sq(r->h, 0)->consumer, 3);
	harness_die(r->h);
	assert_int_equal(poll_on(r, 4, wc), 2);
	assert_int_equal(poll_on(r, 4, wc), -EIO);
}

/* proves CQ-13: what a failure returns. */
static void dead__epoch_is_seen_at_once(void **state)
{
	struct rig *r = *state;
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND};
	struct roci_wc wc;

	harness_end(r->h);
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), -EIO);
	assert_int_equal(roci_post_send(r->qp, &wr, NULL), EIO);
}

static void dead__a_control_call_tells(void **state)
{
	struct rig *r = *state;
	struct roci_device_attr attr = {.size = sizeof(attr)};
	struct roci_wc wc;

	harness_die(r->h);
	assert_int_equal(roci_query_device(r->ctx, &attr), EIO);
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), -EIO);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup_16, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(create_cq__bad_sizes),
		T(create_cq__says_what_it_got),
		T(destroy_cq__with_qps),
		T(poll_cq__empty),
		T(poll_cq__all_fields),
		T(poll_cq__of_an_xrc_srq),
		T(poll_cq__every_lane_in_its_order),
		T(poll_cq__order_of_a_qp_that_moves),
		T(poll_cq__qps_that_cross),
		T(poll_cq__order_begins_anew_with_reset),
		T(poll_cq__no_lane_starves),
		T(poll_cq__laps),
		T(poll_cq__makes_room_for_as_many_as_it_took),
		T(poll_cq__skips_a_destroyed_qp),
		T(poll_cq__skips_the_destroyed_qp_of_the_last_completion),
		T(poll_cq__skips_a_destroyed_qp_of_two_cqs),
		T(poll_cq__at_most_what_was_asked_for),
		T(poll_cq__by_several_threads),
		T(req_notify__each_differs),
		T(req_notify__never_weakens),
		T(req_notify__counter_wraps),
		T(dead__flushes_all),
		T(dead__after_what_is_complete),
		T(dead__after_the_last_completion),
		T(dead__unsignaled_by_consumer_index),
		T(dead__after_an_error),
		T(dead__after_an_error_with_equal_wr_ids),
		T(dead__epoch_is_seen_at_once),
		T(dead__a_control_call_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
