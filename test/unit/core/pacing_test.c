/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets leave at the rate that a QP is limited to, and nothing else waits for them. */
#include "fixture.h"
#include "pacing.h"
#include "seq24.h"

#define MBIT 1000000ull
#define MS   1000000ull
#define US   1000ull

/* A packet of the path MTU that these tests use, on the wire. */
#define MTU	1024u
#define HEADERS (14u + 20 + 8 + 12 + 4 + 24) /* Ethernet to BTH, ICRC, FCS, preamble, gap */

static void limit(uint64_t rate)
{
	struct core_cmd cmd = {.type = CORE_CMD_SET_RATE, .qp = l.qp->qp, .rate = rate};

	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
}

static int setup(void **state)
{
	lone_init(&l);
	l.attr.path_mtu = MTU;
	l.spec.sq_depth = 256;
	l.cq_depth = 256;
	l.spec.window = 4096;
	return 0;
}

/* Sends what may leave at l.now.  @return packets */
static unsigned send(unsigned max)
{
	unsigned before = l.packets;

	lone_tx_max(&l, max);
	return l.packets - before;
}

/* The peer has all that was sent. */
static void acknowledge(void)
{
	const struct qp *qp = l.qp->qp;

	if (qp->comp.una != qp->req.psn)
		lone_ack(&l, seq24_add(qp->req.psn, SEQ24_MASK), 0);
}

/* Goes from departure to departure until @p end.  @return packets sent */
static uint64_t send_until(uint64_t end, unsigned max)
{
	uint64_t n = 0;

	while (l.now <= end) {
		uint64_t due;

		n += send(max);
		acknowledge();
		core_expire(&l.host->core, l.now);
		due = core_deadline(&l.host->core);
		if (due > l.now)
			l.now = due;
	}
	return n;
}

static void post_writes(unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < n; i++)
		lone_post(&l, ABI_WR_RDMA_WRITE, i, len, 0);
}

/* The rate is that which was asked for, to one in a hundred. */
static void check_rate(uint64_t rate, unsigned max)
{
	double packet = (MTU + HEADERS) * 8e9 / (double)rate;
	double time = 1000 * packet > 10 * MS ? 1000 * packet : 10 * MS;
	double n;

	setup(NULL);
	lone_start(&l);
	limit(rate);
	post_writes(128, 1 << 20);
	n = (double)send_until(l.now + (uint64_t)time, max);
	if (!(n * packet > 0.99 * time && n * packet < 1.01 * time))
		fail_msg("%.0f packets instead of %.0f at %.0f Mb/s", n, time / packet, (double)rate / 1e6);
	lone_teardown(NULL);
}

/* From 1 Mb/s to a fast line's, for a NIC that pulls one packet at a time and for bursts. */
static void rate__is_kept(void **state)
{
	static const uint64_t rates[] = {1 * MBIT, 10 * MBIT, 100 * MBIT, 1000 * MBIT, 9999 * MBIT,
		40000 * MBIT, 100000 * MBIT};

	lone_teardown(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		check_rate(rates[i], 1);
		check_rate(rates[i], BURST);
	}
	setup(NULL);
}

static void rate__off_sends_at_once(void **state)
{
	lone_start(&l);
	limit(100 * MBIT);
	post_writes(16, MTU);
	assert_int_equal(send(BURST), 1); /* a quantum takes 100 us at most */
	assert_int_equal(send(BURST), 0);
	limit(0);
	assert_false(l.qp->qp->limited);
	assert_int_equal(send(BURST), 15);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, lone_teardown)
	const struct CMUnitTest tests[] = {
		T(rate__is_kept),
		T(rate__off_sends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
