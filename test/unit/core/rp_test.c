/* SPDX-License-Identifier: BSD-3-Clause */
/* A CNP limits the rate of its QP as the port's algorithm says, and of no other. */
#include "core_command.h"
#include "fixture.h"
#include "np.h"
#include "pacing.h"
#include "qp.h"
#include "seq24.h"

#define LINE 40e9
#define US   1000ull
#define MS   1000000ull
#define CNP  0x81
#define MTU  1024u

static struct cc_config cfg;

static struct port *port(void)
{
	return &l.host->ports.port[0];
}

static void use(const char *profile)
{
	cc_config_init(&cfg, &cc_dcqcn, (unsigned)cc_find_profile(&cc_dcqcn, profile), LINE);
	atomic_store(&port()->cc, &cfg);
	atomic_store(&port()->rcm, rcm_word(48 << 2, 6, true));
	atomic_store(&port()->burst, 1);
}

static int setup(void **state)
{
	lone_init(&l);
	l.attr.path_mtu = MTU;
	l.spec.sq_depth = 256;
	l.spec.window = 4096;
	l.ect = true;
	l.tos = 2;
	l.cnp_tos = 48 << 2;
	l.now = 100 * US;
	use("paper");
	return 0;
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

static void assert_gbps(double expected)
{
	double rate = look().rate;

	if (rate < expected * 0.999e9 || rate > expected * 1.001e9)
		fail_msg("%.4f Gb/s instead of %.4f", rate / 1e9, expected);
}

static void acknowledge(void)
{
	const struct qp *qp = l.qp->qp;

	if (qp->comp.una != qp->req.psn)
		lone_ack(&l, seq24_add(qp->req.psn, SEQ24_MASK), 0);
}

/* Goes from departure to departure until @p end.  @return packets sent */
static unsigned send_until(uint64_t end)
{
	unsigned before = l.packets;

	while (l.now < end) {
		uint64_t due;

		lone_tx_max(&l, 1);
		acknowledge();
		core_expire(&l.host->core, l.now);
		due = core_deadline(&l.host->core);
		if (due >= end)
			break;
		l.now = due > l.now ? due : l.now + 226; /* the line's time for a packet */
	}
	l.now = end;
	return l.packets - before;
}

static void post_writes(void)
{
	for (unsigned i = 0; i < 64; i++)
		lone_post(&l, ABI_WR_RDMA_WRITE, i, 1 << 20, 0);
}

/* proves CNP-11: by nothing else does a QP that was never told of congestion differ. */
static void cnp__limits_from_the_first_on(void **state)
{
	lone_start(&l);
	assert_false(l.qp->qp->limited);
	assert_gbps(40);
	cnp();
	assert_true(l.qp->qp->limited);
	assert_int_equal(look().cnps, 1);
	assert_gbps(20);
	assert_int_equal(count()->rp_cnp_handled, 1);
}

/* proves CNP-12, CNP-13: the state vectors of the three profiles, under traffic: CNPs at 100 and
 * 107.5 us. */
static void cnp__follows_each_profile(void **state)
{
	static const struct {
		const char *profile;
		double gbps[5]; /* just after 104, 108, and at 300, 408.5, 708.5 us */
	} row[] = {
		{"paper", {20, 10, 18.75, 19.6875, 20.1515}},
		{"connectx", {20.4069, 10.5551, 10.5551, 25.2775, 32.6388}},
		{"ns3hpcc", {20.3107, 10.4287, 10.4287, 25.2144, 32.6072}},
	};
	static const uint64_t at[] = {104001, 108001, 300000, 408500, 708500};

	lone_teardown(NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		setup(NULL);
		use(row[i].profile);
		cfg.value[cc_find_param(&cc_dcqcn, "rp_byte_reset")] = 0; /* by time alone */
		l.now = 99 * US;
		lone_start(&l);
		post_writes();
		send_until(100 * US);
		cnp();
		for (unsigned k = 0; k < ARRAY_SIZE(at); k++) {
			if (k == 1) {
				send_until(107500);
				cnp();
			}
			send_until(at[k]);
			assert_gbps(row[i].gbps[k]);
		}
		lone_teardown(NULL);
	}
	setup(NULL);
}

/* Packets leave at the rate of the moment, while it changes. */
static void cnp__paces(void **state)
{
	double bits = 0;
	unsigned n;

	lone_start(&l);
	post_writes();
	for (unsigned i = 0; i < 12; i++) {
		cnp();
		l.now += US;
	}
	assert_gbps(0.01); /* rp_min_rate */
	assert_in_range(send_until(l.now + 50 * US), 0, 1);
	n = l.packets;
	for (unsigned i = 0; i < 2000; i++) { /* 20 ms of recovery */
		bits += look().rate * 10e-6;
		send_until(l.now + 10 * US);
	}
	n = l.packets - n;
	if (n * 1106.0 * 8 < bits * 0.98 || n * 1106.0 * 8 > bits * 1.02)
		fail_msg("%u packets instead of %.0f", n, bits / 8 / 1106);
}

/* proves CNP-11, CNP-13: a flood of CNPs ends at the least rate, and the QP continues. */
static void cnp__flood_leaves_the_least_rate(void **state)
{
	unsigned n = 0;

	lone_start(&l);
	post_writes();
	for (unsigned i = 0; i < 20000; i++) { /* 1 M/s for 20 ms */
		cnp();
		n += send_until(l.now + US);
	}
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_gbps(0.01);
	assert_in_range(n, 20, 30); /* 10 Mb/s: 22 packets, and what left before */
	assert_int_equal(count()->local_ack_timeout_err, 0);
	send_until(l.now + 200 * MS);
	assert_false(look().limited); /* recovered */
}

/* No increases for the time in which the worker could not send, but one. */
static void cnp__a_pause_raises_once(void **state)
{
	lone_start(&l);
	post_writes();
	send_until(l.now + US);
	cnp();
	send_until(l.now + US);
	core_resumed(&l.host->core, l.now, l.now + 100 * MS);
	l.now += 100 * MS;
	lone_tx_max(&l, 1);
	assert_true(l.qp->qp->limiter->cc.rate < 20.001e9); /* Rx is not drained yet */
	core_expire(&l.host->core, l.now);
	assert_gbps(30);
}

/* The worker pauses again before it has received what had arrived during the first pause. */
static void cnp__two_pauses_raise_once(void **state)
{
	lone_start(&l);
	post_writes();
	send_until(l.now + US);
	cnp();
	send_until(l.now + US);
	for (unsigned i = 0; i < 2; i++) {
		core_resumed(&l.host->core, l.now, l.now + MS);
		l.now += MS;
		lone_tx_max(&l, 1);
	}
	core_expire(&l.host->core, l.now);
	assert_gbps(30);
}

/* RESET and INIT -> RTR start anew. */
static void reset__starts_anew(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_RESET}};

	lone_start(&l);
	cnp();
	cmd.qp = l.qp->qp;
	while (core_cmd(&l.host->core, &cmd, l.now))
		;
	assert_false(l.qp->qp->limited);
	lone_climb(&l, ABI_QPS_RTS);
	assert_gbps(40);
	assert_int_equal(look().cnps, 0);
}

/* Other parameters apply at once; no algorithm, no limit. */
static void port__changes_under_way(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_CONGESTION_QPS, .n = 1};
	struct cc_config other = cfg;

	lone_start(&l);
	post_writes();
	cnp();
	cmd.qps = &l.qp->qp;
	assert_true(
		cc_config_set(&other, (unsigned)cc_find_param(&cc_dcqcn, "rp_max_rate"), 15000));
	atomic_store(&port()->cc, &other);
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_false(look().limited); /* 15 Gb/s is where the limit ends */
	cnp();
	assert_true(look().rate < 15e9);
	atomic_store(&port()->cc, NULL);
	atomic_store(&port()->rcm, 0);
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_false(l.qp->qp->limited);
	assert_int_equal(l.host->core.paced, 0);
	l.tos = 0; /* IP4-05: not ECN-capable any more */
	lone_tx_max(&l, 1);
	atomic_store(&port()->cc, NULL);
}

static void choose(bool own, const struct cc_config *config)
{
	struct core_cmd cmd = {.type = CORE_CMD_SET_CC, .qp = l.qp->qp, .cc = {own, config}};

	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
}

/* A QP may have parameters of its own in place of its port's. If the algorithm stays, so does what
 * it knows. */
static void choice__of_parameters(void **state)
{
	struct cc_config own = cfg;

	lone_start(&l);
	cnp();
	cnp();
	assert_gbps(10);
	assert_true(cc_config_set(&own, (unsigned)cc_find_param(&cc_dcqcn, "rp_min_rate"), 8000));
	choose(true, &own);
	assert_gbps(10);
	for (unsigned i = 0; i < 10; i++)
		cnp();
	assert_gbps(8);
	choose(false, NULL);
	assert_gbps(8);
	cnp();
	assert_true(look().rate < 7e9);
}

/* None: the QP's limit ends at once, and CNPs make none, but are handled. */
static void choice__of_none(void **state)
{
	lone_start(&l);
	post_writes();
	for (unsigned i = 0; i < 12; i++)
		cnp();
	send_until(l.now + 10 * US);
	assert_int_equal(l.host->core.paced, 1); /* it waits for its departure */
	choose(true, NULL);
	assert_int_equal(l.host->core.paced, 0);
	assert_false(l.qp->qp->limited);
	assert_null(look().algorithm);
	assert_true(send_until(l.now + 10 * US) > 20);
	cnp();
	assert_false(l.qp->qp->limited);
	assert_int_equal(count()->rp_cnp_handled, 13);
	choose(false, NULL);
	assert_gbps(40); /* the port's algorithm begins anew */
	cnp();
	assert_gbps(20);
}

/* Another algorithm begins anew; RESET leaves the choice, and the port may have none. */
static void choice__of_an_algorithm(void **state)
{
	struct core_cmd reset = {.type = CORE_CMD_MODIFY_QP,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_RESET}};
	struct cc_config fixed;

	cc_config_init(&fixed, &cc_fixed, 0, LINE);
	assert_true(cc_config_set(&fixed, 0, 3000));
	lone_start(&l);
	cnp();
	choose(true, &fixed);
	assert_gbps(3);
	cnp();
	assert_gbps(3);
	reset.qp = l.qp->qp;
	while (core_cmd(&l.host->core, &reset, l.now))
		;
	atomic_store(&port()->cc, NULL);
	lone_climb(&l, ABI_QPS_RTS);
	assert_gbps(3);
	choose(false, NULL);
	assert_false(l.qp->qp->limited);
}

/* An administrator's rate caps what the algorithm allows. */
static void rate__is_the_lesser(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_SET_RATE, .rate = 15000000000};

	lone_start(&l);
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_gbps(15);
	cnp();
	assert_gbps(15);
	cnp();
	assert_gbps(10);
}

/* The time of a limit begins with it, not with the one before. */
static void rate__counts_its_own_time(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_SET_RATE, .rate = 15000000000};

	lone_start(&l);
	cnp();
	l.now += 20 * US;
	assert_in_range(look().limited_ns, 20 * US, 20 * US);
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	l.now += 5 * US;
	assert_in_range(look().limited_ns, 5 * US, 5 * US);
}

/* A command has the time of the round's start, which may be before that of a CNP. */
static void rate__of_a_moment_before(void **state)
{
	uint64_t settled;

	lone_start(&l);
	cnp();
	settled = l.qp->qp->limiter->settled;
	l.now -= US;
	assert_int_equal(look().limited_ns, 0);
	assert_int_equal(l.qp->qp->limiter->settled, settled);
}

/* An algorithm that learns of everything from the start limits the packets in flight. */
static unsigned acked, sent, lost;

static void toy_init(struct cc *c, uint64_t now)
{
	c->window = 5.5;
}

static void toy_on_sent(struct cc *c, uint32_t bytes, uint32_t psn, bool again, uint64_t now)
{
	sent += bytes;
	c->ack_every = again ? 1 : 0;
}

static void toy_on_ack(struct cc *c, const struct cc_ack *ack, uint64_t now)
{
	acked += ack->packets;
	c->window += 0.25 * ack->packets;
}

static void toy_on_cnp(struct cc *c, enum cc_notice kind, const struct cc_hops *hops, uint64_t now)
{
	c->window = 0.5;
}

static void toy_on_loss(struct cc *c, enum cc_loss kind, uint64_t now)
{
	lost |= 1u << kind;
	c->window = 2;
}

static uint64_t toy_on_time(struct cc *c, uint64_t now)
{
	return CC_NEVER;
}

static void toy_on_pause(struct cc *c, uint64_t now)
{
}

static void toy_look(const struct cc *c, struct cc_view *v)
{
	*v = (struct cc_view){.rate = LINE, .target = LINE};
}

static const char *const toy_profiles[] = {"plain"};
static const struct cc_ops toy = {
	.name = "toy",
	.profiles = toy_profiles,
	.nprofiles = 1,
	.from_start = true,
	.init = toy_init,
	.on_sent = toy_on_sent,
	.on_ack = toy_on_ack,
	.on_cnp = toy_on_cnp,
	.on_loss = toy_on_loss,
	.on_time = toy_on_time,
	.on_pause = toy_on_pause,
	.look = toy_look,
};

static void window__is_the_lesser(void **state)
{
	struct cc_config plain = {.ops = &toy, .line = LINE};

	sent = acked = lost = 0;
	atomic_store(&port()->cc, &plain);
	lone_start(&l);
	assert_true(look().window == 5.5);
	post_writes();
	lone_tx(&l);
	assert_int_equal(l.packets, 5);
	assert_true(sent >= 5 * 1106 && sent < 5 * 1106 + 50);
	acknowledge();
	assert_int_equal(acked, 5);
	lone_tx(&l);
	assert_int_equal(l.packets, 5 + 6); /* 6.75 */
	lone_nak(&l, 0x60, seq24_add(SQ_PSN, 5), 0);
	assert_int_equal(lost, 1u << CC_LOSS_SEQUENCE);
	lone_tx(&l);
	assert_int_equal(l.packets, 5 + 6 + 2);
	cnp();
	acknowledge();
	lone_tx(&l);
	assert_int_equal(l.packets, 5 + 6 + 2 + 1); /* never none */
	atomic_store(&port()->cc, NULL);
}

/* An ACK or a loss that arrives after the port has other parameters, and before the QP has them. */
static void port__changes_before_an_ack(void **state)
{
	struct cc_config plain = {.ops = &toy, .line = LINE};

	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&port()->cc, &plain);
		lone_start(&l);
		post_writes();
		lone_tx(&l);
		atomic_store(&port()->cc, &cfg); /* DCQCN, to which ACKs say nothing */
		if (i)
			lone_nak(&l, 0x60, seq24_add(SQ_PSN, 2), 0);
		else
			acknowledge();
		assert_gbps(40);
		assert_true(look().window < 0);
		lone_tx(&l);
		assert_true(l.packets > 5 + 6);
		lone_teardown(NULL);
		setup(NULL);
	}
}

/* Another one, whose rate follows each ACK, and the time. */
static double toy_rate;
static uint64_t toy_change, toy_next, toy_rtt;

static void toy_follow(struct cc *c, const struct cc_ack *ack, uint64_t now)
{
	toy_rtt = ack->rtt;
	toy_change = toy_next;
	c->rate = toy_rate;
}

static uint64_t toy_later(struct cc *c, uint64_t now)
{
	if (now < toy_change)
		return toy_change;
	if (toy_change)
		c->rate = CC_UNLIMITED;
	return CC_NEVER;
}

static void toy_start(struct cc *c, uint64_t now)
{
}

static void toy_heed(struct cc *c, uint32_t bytes, uint32_t psn, bool again, uint64_t now)
{
}

static void toy_shrug(struct cc *c, enum cc_loss kind, uint64_t now)
{
}

static const struct cc_ops follower = {
	.name = "follower",
	.profiles = toy_profiles,
	.nprofiles = 1,
	.from_start = true,
	.wants_rtt = true,
	.init = toy_start,
	.on_sent = toy_heed,
	.on_ack = toy_follow,
	.on_cnp = toy_on_cnp,
	.on_loss = toy_shrug,
	.on_time = toy_later,
	.on_pause = toy_on_pause,
	.look = toy_look,
};

static void follow_acks(struct cc_config *plain)
{
	*plain = (struct cc_config){.ops = &follower, .line = LINE};
	toy_rate = CC_UNLIMITED;
	toy_change = toy_next = toy_rtt = 0;
	l.now = 2 * MS; /* the wheel's clock began before */
	atomic_store(&port()->cc, plain);
	lone_start(&l);
}

/* A rate that an ACK brings holds from the next packet on, and moves a departure that waits. */
static void ack__changes_the_rate(void **state)
{
	struct cc_config plain;

	follow_acks(&plain);
	post_writes();
	lone_tx_max(&l, 1);
	toy_rate = 1e9;
	acknowledge();
	assert_int_equal(send_until(l.now + 10 * 8848 + 200), 10); /* the first has a RETH */
	toy_rate = 2e9;
	acknowledge();
	assert_in_range(send_until(l.now + 20 * 4424), 19, 21);
	atomic_store(&port()->cc, NULL);
}

/* on_ack() may set a time, at which the rate changes by itself. */
static void ack__sets_a_time(void **state)
{
	struct cc_config plain;
	unsigned before;

	follow_acks(&plain);
	post_writes();
	lone_tx_max(&l, 1);
	toy_rate = 1e6; /* 8.8 ms for a packet */
	toy_next = l.now + 50 * US;
	acknowledge();
	lone_tx_max(&l, 1);
	assert_in_range(core_deadline(&l.host->core), l.now, toy_next + US);
	l.now = toy_next + US;
	core_expire(&l.host->core, l.now);
	before = l.packets;
	lone_tx_max(&l, 1);
	assert_int_equal(l.packets, before + 1);
	atomic_store(&port()->cc, NULL);
}

/* From the call that built the packet to that which received its ACK; not after a loss. */
static void ack__brings_the_round_trip(void **state)
{
	struct cc_config plain;

	follow_acks(&plain);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 1 << 10, 0);
	lone_tx(&l);
	l.now += 7 * US;
	acknowledge();
	assert_int_equal(toy_rtt, 7 * US);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 1 << 10, 0);
	lone_tx(&l);
	l.now += 3 * US;
	lone_nak(&l, 0x60, seq24_add(SQ_PSN, 1), 0); /* sent again */
	lone_tx(&l);
	l.now += 5 * US;
	acknowledge();
	assert_int_equal(toy_rtt, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 3, 1 << 10, 0);
	lone_tx(&l);
	l.now += 9 * US;
	acknowledge();
	assert_int_equal(toy_rtt, 9 * US);
	atomic_store(&port()->cc, NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, lone_teardown)
	const struct CMUnitTest tests[] = {
		T(cnp__limits_from_the_first_on),
		T(cnp__follows_each_profile),
		T(cnp__paces),
		T(cnp__flood_leaves_the_least_rate),
		T(cnp__a_pause_raises_once),
		T(cnp__two_pauses_raise_once),
		T(reset__starts_anew),
		T(port__changes_under_way),
		T(port__changes_before_an_ack),
		T(choice__of_parameters),
		T(choice__of_none),
		T(choice__of_an_algorithm),
		T(rate__is_the_lesser),
		T(rate__counts_its_own_time),
		T(rate__of_a_moment_before),
		T(window__is_the_lesser),
		T(ack__changes_the_rate),
		T(ack__sets_a_time),
		T(ack__brings_the_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
