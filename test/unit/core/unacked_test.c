/* SPDX-License-Identifier: BSD-3-Clause */
/* Under an algorithm that ACKs steer, packets that have none follow DCQCN. */
#include "core_command.h"
#include "fixture.h"
#include "np.h"
#include "opcodes.h"
#include "pacing.h"
#include "qp.h"
#include "seq24.h"
#include "telemetry.h"
#include "txd.h"

#define LINE 40e9
#define US   1000ull
#define CNP  0x81

static struct cc_config cfg[2];

static struct port *port(void)
{
	return &l.host->ports.port[0];
}

static int setup(void **state)
{
	lone_init(&l);
	l.attr.path_mtu = 1024;
	l.spec.sq_depth = 256;
	l.spec.window = 4096;
	l.ect = true;
	l.tos = 2;
	l.cnp_tos = 48 << 2;
	l.now = 100 * US;
	cc_config_init(&cfg[0], &cc_swift, 0, LINE);
	cc_config_unacked(&cfg[0], &cfg[1]);
	atomic_store(&port()->cc, &cfg[0]);
	atomic_store(&port()->rcm, rcm_word(48 << 2, 6, true));
	return 0;
}

static int teardown(void **state)
{
	atomic_store(&port()->cc, NULL);
	return lone_teardown(state);
}

static void cnp(void)
{
	assert_int_equal(lone_rx(&l, &(struct shot){.opcode = CNP, .len = 16}), DROP_NONE);
}

static struct core_limit look(void)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_RATE, .qp = l.qp->qp};

	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	return cmd.limit;
}

static void assert_follows(const char *algorithm, double gbps)
{
	struct core_limit limit = look();

	assert_string_equal(limit.algorithm, algorithm);
	assert_in_range((uint64_t)(limit.rate / 1e6), gbps * 999, gbps * 1001);
}

/* The peer reads; the response leaves. */
static void answer_read(uint32_t psn)
{
	lone_request(&l, READ_REQ, psn, 0, 1024, 0);
	lone_tx(&l);
}

/* Also if it has to wait for its departure. */
static void write_leaves(void)
{
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 1024, 0);
	l.now += 20 * US;
	core_expire(&l.host->core, l.now);
	lone_tx(&l);
}

/* A WRITE leaves and is acknowledged. */
static void write_once(void)
{
	write_leaves();
	l.now += 20 * US;
	lone_ack(&l, seq24_add(l.qp->qp->req.psn, SEQ24_MASK), 0);
}

static void uc__follows_dcqcn_alone(void **state)
{
	l.spec.type = ABI_QPT_UC;
	lone_start(&l);
	assert_false(l.qp->qp->limited);
	assert_follows("dcqcn", 40);
	cnp();
	assert_true(l.qp->qp->limited);
	assert_follows("dcqcn", 20);
}

static void read_response__follows_dcqcn(void **state)
{
	lone_start(&l);
	assert_follows("swift", 40);
	answer_read(0x100);
	assert_follows("dcqcn", 40);
	cnp();
	assert_follows("dcqcn", 20);
}

/* Each keeps what it knows while the other one holds. */
static void both__keep_their_state(void **state)
{
	double window;

	lone_start(&l);
	write_once();
	assert_follows("swift", 40);
	window = look().window;
	assert_true(window > 16 && window < 17);
	answer_read(0x100);
	cnp();
	assert_follows("dcqcn", 20);
	assert_int_equal(l.qp->qp->win.cap, 16); /* that of requests still holds */
	write_once();
	assert_follows("swift", 40);
	assert_true(look().window > window);
	cnp(); /* is nothing to it */
	assert_follows("swift", 40);
	answer_read(0x101);
	assert_follows("dcqcn", 20);
}

/* Bytes that leave while the worker is late are reported afterwards, to the algorithm that they
 * belong to. */
static void both__hear_of_their_own_bytes(void **state)
{
	const struct limiter *k;
	uint32_t responses, requests;

	lone_start(&l);
	k = l.qp->qp->limiter;
	answer_read(0x100);
	cnp();
	write_once();
	l.host->core.lags = true;
	answer_read(0x101);
	responses = k->unsaid;
	assert_true(k->unacked && responses > 1024);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 1024, 0);
	l.now += 20 * US;
	lone_tx(&l);
	requests = k->unsaid;
	assert_true(!k->unacked && requests > responses && requests < 1200); /* it has a RETH */
	answer_read(0x102);
	assert_true(k->unacked);
	assert_int_equal(k->unsaid, 2 * responses);
}

/* An ACK is news of requests, also between responses. */
static void ack__speaks_of_requests(void **state)
{
	double window;

	lone_start(&l);
	window = look().window;
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 1024, 0);
	lone_tx(&l);
	answer_read(0x100);
	assert_follows("dcqcn", 40);
	l.now += 20 * US;
	lone_ack(&l, seq24_add(l.qp->qp->req.psn, SEQ24_MASK), 0);
	assert_follows("swift", 40);
	assert_true(look().window > window);
}

/* Parameters that were replaced and freed meanwhile are not looked at again. */
static void port__changes_between(void **state)
{
	struct cc_config other[2];

	lone_start(&l);
	write_once();
	answer_read(0x100);
	cnp();
	cc_config_init(&other[0], &cc_hpcc, 0, LINE);
	cc_config_unacked(&other[0], &other[1]);
	atomic_store(&port()->cc, &other[0]);
	memset(cfg, 0xFF, sizeof(cfg));
	assert_follows("dcqcn", 20);
	write_leaves();
	assert_string_equal(look().algorithm, "hpcc");
	cc_config_init(&cfg[0], &cc_dcqcn, 0, LINE);
	atomic_store(&port()->cc, &cfg[0]);
	memset(other, 0xFF, sizeof(other));
	assert_follows("dcqcn", 40);
	answer_read(0x101);
	cnp();
	assert_follows("dcqcn", 20);
	write_leaves();
	assert_follows("dcqcn", 20);
}

/* The peer's requests bring traces, and its ACKs get them back, whichever algorithm holds here;
 * responses carry none. */
static void telemetry__is_of_requests(void **state)
{
	uint8_t frame[FRAME_MAX];
	struct txd t = {.frame = frame, .net = NET_IPV6};

	cc_config_init(&cfg[0], &cc_hpcc, 0, LINE);
	cc_config_unacked(&cfg[0], &cfg[1]);
	lone_start(&l);
	answer_read(0x100);
	assert_follows("dcqcn", 40);
	t.qp = l.qp->qp;
	t.qp->path.net = NET_IPV6;
	assert_int_equal(telemetry_bytes(&l.host->core, t.qp), IOAM_LEN);
	memset(frame, WRITE_ONLY, sizeof(frame));
	assert_int_equal(core_telemetry_room(&l.host->core, &t), IOAM_LEN);
	memset(frame, RESP_ONLY, sizeof(frame));
	assert_int_equal(core_telemetry_room(&l.host->core, &t), 0);
}

static double window_after_read(unsigned responses)
{
	uint32_t psn = l.qp->qp->req.psn;

	lone_post(&l, ABI_WR_RDMA_READ, 1, 1024 * responses, 0);
	l.now += 20 * US;
	core_expire(&l.host->core, l.now);
	lone_tx(&l);
	for (unsigned i = 0; i < responses; i++)
		lone_response(&l,
			responses == 1	     ? RESP_ONLY
			: i == 0	     ? RESP_FIRST
			: i == responses - 1 ? RESP_LAST
					     : RESP_MIDDLE,
			seq24_add(psn, i), 1024);
	return look().window;
}

/* A READ has one packet, however many PSNs its responses take. */
static void read__is_one_packet(void **state)
{
	double window;

	cc_config_init(&cfg[0], &cc_hpcc, 0, LINE);
	cc_config_unacked(&cfg[0], &cfg[1]);
	lone_start(&l);
	window = window_after_read(1);
	assert_true(window > 1 && window < CC_NO_WINDOW);
	assert_true(window_after_read(4) == window);
	assert_true(window_after_read(2) == window);
}

static void begin_anew(void)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
		.qp = l.qp->qp,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_RESET}};

	while (core_cmd(&l.host->core, &cmd, l.now))
		continue;
	lone_climb(&l, ABI_QPS_RTS);
}

/* The port's algorithm has changed. */
static void refresh(void)
{
	struct core_cmd cmd = {.type = CORE_CMD_CONGESTION_QPS, .n = 1, .qps = &l.qp->qp};

	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
}

/* A QP that has answered is as any other after a reset. */
static void reset__begins_with_requests(void **state)
{
	lone_start(&l);
	answer_read(0x100);
	cnp();
	assert_follows("dcqcn", 20);
	begin_anew();
	assert_follows("swift", 40);
	assert_true(l.qp->qp->limited);
	write_once();
	assert_true(look().window > 16);
}

/* So it is when the port has had no algorithm, or one without ACKs, meanwhile. */
static void port__begins_with_requests(void **state)
{
	struct cc_config plain;
	const struct cc_config *between[] = {NULL, &plain};

	cc_config_init(&plain, &cc_dcqcn, 0, LINE);
	for (unsigned i = 0; i < ARRAY_SIZE(between); i++) {
		if (i)
			begin_anew();
		else
			lone_start(&l);
		answer_read(0x100);
		atomic_store(&port()->cc, between[i]);
		refresh();
		assert_false(l.qp->qp->limited);
		atomic_store(&port()->cc, &cfg[0]);
		refresh();
		assert_true(l.qp->qp->limited);
		write_once();
		assert_follows("swift", 40);
		assert_true(look().window > 16);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(uc__follows_dcqcn_alone),
		T(read_response__follows_dcqcn),
		T(both__keep_their_state),
		T(both__hear_of_their_own_bytes),
		T(ack__speaks_of_requests),
		T(port__changes_between),
		T(reset__begins_with_requests),
		T(port__begins_with_requests),
		T(telemetry__is_of_requests),
		T(read__is_one_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
