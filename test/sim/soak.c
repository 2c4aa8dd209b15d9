/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak [--seed S] [--runs N]: random traffic in both directions of a pair of QPs over bad links.
 * Each run is decided by its seed. Every byte is compared: what a SEND, WRITE or READ moved, and
 * what lies around it. On a failure the seed is printed; `soak --seed S` repeats that run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "traffic.h"

#define TIME_LIMIT (120 * SEC)

struct soak {
	struct pair pair;
	struct traffic traffic;
	struct random random;
	unsigned messages;
	uint32_t max_len;
	uint32_t recv_share; /* receives are posted one step of so many */
};

static struct totals {
	uint64_t runs, packets, retransmits, rnr, timeouts, seq_naks, implied;
	uint64_t lost, duplicated, reordered, corrupted, truncated, failed_runs;
} totals;

static uint32_t pick(struct soak *s, uint32_t from, uint32_t to)
{
	return from + (uint32_t)random_below(&s->random, to - from + 1);
}

static bool chance(struct soak *s, uint32_t percent)
{
	return random_below(&s->random, 100) < percent;
}

/* --- making a run --------------------------------------------------------------------- */

static uint32_t pow2(struct soak *s, uint32_t from_log2, uint32_t to_log2)
{
	return 1u << pick(s, from_log2, to_log2);
}

static struct link_config link_of(struct soak *s, bool faults)
{
	struct link_config c = {
		.delay_ns = pick(s, 100, 20000),
		.rate_bps = chance(s, 30) ? 0 : 1000000000ull * pick(s, 1, 100),
	};
	struct link_faults *f = &c.faults;

	f->reorder_ns = pick(s, 1, 50000);
	if (!faults)
		return c;
	if (chance(s, 60))
		f->loss = pick(s, 100, chance(s, 30) ? 100000 : 10000);
	if (chance(s, 30))
		f->duplicate = pick(s, 100, 50000);
	if (chance(s, 30))
		f->reorder = pick(s, 100, 50000);
	if (chance(s, 30))
		f->corrupt = pick(s, 100, 20000);
	if (chance(s, 30))
		f->truncate = pick(s, 100, 20000);
	return c;
}

static struct pair_spec spec_of(struct soak *s, uint64_t seed)
{
	struct pair_spec p = pair_defaults();
	uint32_t mtu = pow2(s, 8, 12);
	uint32_t rd[ENDS] = {pick(s, 1, 16), pick(s, 1, 16)};
	bool faults = chance(s, 80);

	p.seed = seed;
	p.gid = (enum host_gid)pick(s, 0, 2);
	p.cq_depth = 256;
	for (int e = A; e < ENDS; e++) {
		p.link[e] = link_of(s, faults);
		p.qp[e] = (struct app_qp_spec){
			.sq_depth = pow2(s, 0, 6),
			.rq_depth = pow2(s, 0, 6),
			.max_sge = pick(s, 1, SGE_MAX),
			.max_inline = chance(s, 50) ? pick(s, 1, 256) : 0,
			.window = chance(s, 50) ? pick(s, 1, 64) : 0,
			.sig_all = chance(s, 20),
		};
		p.attr[e].path_mtu = mtu;
		p.attr[e].sq_psn =
			(chance(s, 50) ? 0xFFFFFFu - pick(s, 0, 200) : pick(s, 0, 0xFFFFFF));
		p.attr[e].max_rd_atomic = (uint8_t)rd[e];
		p.attr[e].max_dest_rd_atomic = (uint8_t)rd[!e];
		p.attr[e].timeout = (uint8_t)pick(s, 14, 16);
		p.attr[e].min_rnr_timer = (uint8_t)pick(s, 1, 14);
	}
	return p;
}

static void soak_init(struct soak *s, uint64_t seed)
{
	struct pair_spec spec;
	struct traffic_spec traffic = {.seed = seed, .area = 1u << 20};

	memset(s, 0, sizeof(*s));
	s->random.state = seed * 0x9E3779B97F4A7C15ull | 1;
	for (int i = 0; i < 8; i++)
		random_next(&s->random);
	s->messages = pick(s, 40, 120);
	s->max_len = chance(s, 30) ? 65536 : pick(s, 1, 16384);
	s->recv_share = chance(s, 30) ? pick(s, 1, 400) : 1;
	spec = spec_of(s, seed);
	pair_init(&s->pair, &spec);
	traffic.recv_len = s->max_len;
	traffic_init(&s->traffic, s->pair.end[A].qp, s->pair.end[B].qp, &traffic);
	for (int e = A; e < ENDS; e++) {
		s->pair.end[e].host->burst = pick(s, 1, BURST);
		traffic_allow(&s->traffic, e, TRAFFIC_MAY(ABI_WC_RETRY_EXC_ERR), 0);
	}
}

static void soak_fini(struct soak *s)
{
	traffic_fini(&s->traffic);
	pair_fini(&s->pair);
}

/* --- posting -------------------------------------------------------------------------- */

static uint32_t length_of(struct soak *s)
{
	uint32_t mtu = s->pair.spec.attr[A].path_mtu;

	switch (pick(s, 0, 5)) {
	case 0:
		return 0;
	case 1:
		return pick(s, 0, s->max_len < 64 ? s->max_len : 64);
	case 2: { /* around a multiple of the MTU */
		uint64_t n = (uint64_t)mtu * pick(s, 1, 5) + pick(s, 0, 2) - 1;

		return n < s->max_len ? (uint32_t)n : s->max_len;
	}
	default:
		return pick(s, 0, s->max_len);
	}
}

static bool post_message(struct soak *s, int e)
{
	const struct app_qp_spec *q = &s->pair.spec.qp[e];
	struct traffic_wr w = {
		.op = (enum traffic_op)pick(s, 0, TRAFFIC_OPS - 1),
		.len = length_of(s),
		.sges = q->max_sge,
	};

	w.flags |= chance(s, 30) ? ABI_WQE_SOLICITED : 0;
	w.flags |= chance(s, 10) ? ABI_WQE_FENCE : 0;
	if (chance(s, 50) || s->traffic.side[e].posted + 1 == s->messages)
		w.flags |= ABI_WQE_SIGNALED;
	if (w.op != TRAFFIC_READ && w.len <= q->max_inline && chance(s, 50))
		w.flags |= ABI_WQE_INLINE;
	return traffic_post(&s->traffic, e, &w);
}

/* --- running -------------------------------------------------------------------------- */

static void post(struct soak *s, int e)
{
	const struct app_qp_spec *q = &s->pair.spec.qp[e];

	while (s->traffic.side[e].posted < s->messages && chance(s, 70))
		if (!post_message(s, e))
			break;
	while (random_below(&s->random, s->recv_share) == 0)
		if (!traffic_post_recv(&s->traffic, e, q->max_sge, MISTAKE_NONE))
			break;
}

static bool broke(const struct soak *s)
{
	return traffic_broken(&s->traffic, A) || traffic_broken(&s->traffic, B);
}

static bool over(const struct soak *s)
{
	if (broke(s))
		return true;
	for (int e = A; e < ENDS; e++)
		if (s->traffic.side[e].done != s->messages)
			return false;
	return true;
}

/* What is left when the connection broke must come back flushed (QPS-20). */
static void finish(struct soak *s)
{
	const uint32_t gone = TRAFFIC_MAY(ABI_WC_WR_FLUSH_ERR);

	for (int e = A; e < ENDS; e++) {
		struct app_qp *q = s->pair.end[e].qp;

		traffic_allow(&s->traffic, e, gone, gone);
		assert_int_equal(app_to_state(q, ABI_QPS_ERR, s->pair.fabric.now), 0);
	}
	for (int i = 0; i < 1000; i++) {
		pair_step(&s->pair, s->pair.fabric.now);
		traffic_take(&s->traffic, &s->pair);
	}
	for (int e = A; e < ENDS; e++) {
		assert_int_equal(s->traffic.side[e].done, s->traffic.side[e].posted);
		assert_int_equal(s->traffic.side[e].recv_done, s->traffic.side[e].recv_posted);
	}
	traffic_restart(&s->traffic, s->pair.end[A].qp, s->pair.end[B].qp);
}

static void count(const struct soak *s)
{
	for (int e = A; e < ENDS; e++) {
		const struct core_counters *c = &s->pair.end[e].host->core.count;
		const struct link_counters *l = &s->pair.end[e].link.count;

		totals.packets += c->tx_packets;
		totals.retransmits += c->retransmits;
		totals.rnr += c->rnr_nak_recv;
		totals.timeouts += c->local_ack_timeout_err;
		totals.seq_naks += c->packet_seq_err;
		totals.implied += c->implied_nak_seq_err;
		totals.lost += l->lost;
		totals.duplicated += l->duplicated;
		totals.reordered += l->reordered;
		totals.corrupted += l->corrupted;
		totals.truncated += l->truncated;
	}
}

static void run(uint64_t seed)
{
	static struct soak s;

	soak_init(&s, seed);
	while (!over(&s)) {
		for (int e = A; e < ENDS; e++)
			post(&s, e);
		/* Receives must be posted while nothing else happens. */
		pair_step(&s.pair, s.pair.fabric.now + (s.recv_share > 1 ? 50 * USEC : 50 * MSEC));
		traffic_take(&s.traffic, &s.pair);
		assert_true(s.pair.fabric.now < TIME_LIMIT);
	}
	totals.failed_runs += broke(&s);
	finish(&s);
	count(&s);
	totals.runs++;
	soak_fini(&s);
}

static uint64_t first_seed = 1;
static uint64_t runs = 200;
static uint64_t current;

static void soak__every_seed(void **state)
{
	for (uint64_t i = 0; i < runs; i++) {
		current = first_seed + i;
		run(current);
	}
	current = 0;
	/* RETRY_EXC with seven retries needs bad luck. */
	if (runs >= 100)
		assert_true(totals.failed_runs * 20 < runs);
}

static void report(void)
{
	printf("%llu runs:", (unsigned long long)totals.runs);
	for (unsigned o = 0; o < TRAFFIC_OPS; o++)
		printf(" %s %llu", traffic_op_name[o],
			(unsigned long long)traffic_totals.completed[o]);
	printf("\nbytes %llu packets %llu again %llu", (unsigned long long)traffic_totals.bytes,
		(unsigned long long)totals.packets, (unsigned long long)totals.retransmits);
	printf(" rnr %llu timeouts %llu seq-nak %llu implied-nak %llu broken runs %llu\n",
		(unsigned long long)totals.rnr, (unsigned long long)totals.timeouts,
		(unsigned long long)totals.seq_naks, (unsigned long long)totals.implied,
		(unsigned long long)totals.failed_runs);
	printf("lost %llu duplicated %llu reordered %llu corrupted %llu truncated %llu\n",
		(unsigned long long)totals.lost, (unsigned long long)totals.duplicated,
		(unsigned long long)totals.reordered, (unsigned long long)totals.corrupted,
		(unsigned long long)totals.truncated);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(soak__every_seed)};
	int rc;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seed")) {
			first_seed = strtoull(argv[i + 1], NULL, 0);
			runs = runs == 200 ? 1 : runs;
		} else if (!strcmp(argv[i], "--runs")) {
			runs = strtoull(argv[i + 1], NULL, 0);
		}
	}
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	report();
	if (current)
		printf("failed with --seed %llu\n", (unsigned long long)current);
	return rc;
}
