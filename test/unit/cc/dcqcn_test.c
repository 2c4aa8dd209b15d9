/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "cc.h"
#include "dcqcn_model.h"
#include "random.h"

#define USEC	 1000ull
#define MSEC	 1000000ull
#define GBIT	 1e9
#define PROFILES 3u

struct rp {
	struct cc_config cfg;
	struct cc cc;
};

static void rp_init(struct rp *rp, const char *profile, double line)
{
	cc_config_init(&rp->cfg, &cc_dcqcn, (unsigned)cc_find_profile(&cc_dcqcn, profile), line);
	cc_init(&rp->cc, &rp->cfg, 0);
}

static void set(struct rp *rp, const char *name, double value)
{
	int i = cc_find_param(&cc_dcqcn, name);

	assert_true(i >= 0);
	assert_true(cc_config_set(&rp->cfg, (unsigned)i, value));
}

static struct cc_view at(struct rp *rp, uint64_t now)
{
	struct cc_view v;

	cc_dcqcn.on_time(&rp->cc, now);
	cc_dcqcn.look(&rp->cc, &v);
	return v;
}

static void cnp(struct rp *rp, uint64_t now)
{
	cc_dcqcn.on_cnp(&rp->cc, CC_CNP_PLAIN, &(struct cc_hops){0}, now);
}

static void sent(struct rp *rp, uint32_t bytes, uint64_t now)
{
	cc_dcqcn.on_sent(&rp->cc, bytes, 0, false, now);
}

/* Relative error of 1e-5. */
static void assert_rate(double got, double want)
{
	if (fabs(got - want) > 1e-5 * want)
		fail_msg("%.9g, not %.9g", got, want);
}

/* --- vectors ---------------------------------------------------------------------------- */

/* One QP at 40 Gb/s, CNPs at 100 and 107.5 us: rates in Gb/s. */
static const struct {
	const char *profile;
	double rate[5];
} vectors[PROFILES] = {
	{"paper", {20, 10, 18.75, 19.6875, 20.1515}},
	{"connectx", {20.4069, 10.5551, 10.5551, 25.2775, 32.6388}},
	{"ns3hpcc", {20.3107, 10.4287, 10.4287, 25.2144, 32.6072}},
};

static void dcqcn__follows_the_vectors(void **state)
{
	static const uint64_t when[] = {104001, 108001, 300 * USEC, 408500, 708500};

	for (unsigned i = 0; i < PROFILES; i++) {
		struct rp rp;

		rp_init(&rp, vectors[i].profile, 40 * GBIT);
		cnp(&rp, 100 * USEC);
		for (unsigned k = 0; k < 5; k++) {
			if (k == 1)
				cnp(&rp, 107500);
			assert_rate(at(&rp, when[k]).rate, vectors[i].rate[k] * GBIT);
		}
	}
}

/* The last state alone, with nobody looking in between. */
static void dcqcn__computes_timers_without_being_asked(void **state)
{
	for (unsigned i = 0; i < PROFILES; i++) {
		struct rp rp;

		rp_init(&rp, vectors[i].profile, 40 * GBIT);
		cnp(&rp, 100 * USEC);
		cnp(&rp, 107500);
		assert_rate(at(&rp, 708500).rate, vectors[i].rate[4] * GBIT);
	}
}

/* hyper increase needs both stages beyond the threshold, and grows with them. By
 * hand: F = 5, six increases by bytes, the sixth additive; then six by time, the sixth hyper. */
static void dcqcn__rises_by_bytes_and_hyper(void **state)
{
	struct rp rp;
	double rate = 20, target = 40;

	rp_init(&rp, "paper", 40 * GBIT);
	cnp(&rp, 0);
	cnp(&rp, 1); /* Rt 20, Rc 10 */
	rate = 10;
	target = 20;
	for (unsigned i = 1; i <= 6; i++) {
		sent(&rp, 10000000 - 1, 2);
		assert_rate(at(&rp, 2).rate, rate * GBIT); /* one byte is missing */
		sent(&rp, 1, 2);
		target += i > 5 ? 0.04 : 0;
		rate = (rate + target) / 2;
		assert_rate(at(&rp, 2).rate, rate * GBIT);
	}
	for (unsigned i = 1; i <= 8; i++) {
		target += i <= 5 ? 0.04 : 0.2; /* min(T, 6) - F = 1 from the sixth on */
		rate = (rate + target) / 2;
		assert_rate(at(&rp, 1 + i * 55 * USEC).rate, rate * GBIT);
	}
	sent(&rp, 10000000, 1 + 8 * 55 * USEC); /* T 8, B 7: twice the hyper increase */
	target += 0.4;
	rate = (rate + target) / 2;
	assert_rate(at(&rp, 1 + 8 * 55 * USEC).rate, rate * GBIT);
	assert_rate(at(&rp, 1 + 8 * 55 * USEC).target, target * GBIT);
}

/* --- against the model ---------------------------------------------------------------------- */

static void check(struct rp *rp, const struct model *m, uint64_t now)
{
	struct cc_view v = at(rp, now);

	assert_rate(v.rate, m->rc);
	assert_rate(v.target, m->rt);
	if (m->known && fabs(v.alpha - m->alpha) > 1e-9)
		fail_msg("alpha %.12g, not %.12g", v.alpha, m->alpha);
}

/* A gap between two things that happen, from nanoseconds to long pauses, often on a grid. */
static uint64_t gap(struct random *r)
{
	switch (random_below(r, 6)) {
	case 0:
		return random_below(r, 500);
	case 1:
		return random_below(r, 8) * USEC;
	case 2:
		return random_below(r, 100) * USEC + random_below(r, 1000);
	case 3:
		return 55 * USEC * random_below(r, 20);
	case 4:
		return 300 * USEC * random_below(r, 10);
	default:
		return random_below(r, 100) ? random_below(r, 100000)
					    : random_below(r, 2000 * MSEC / 100);
	}
}

static void change(struct rp *rp, struct model *m, struct random *r)
{
	unsigned f = 1 + random_below(r, 6);
	unsigned kib = 4 + random_below(r, 4000);
	unsigned ai = 1 + random_below(r, 200);
	unsigned hai = 1 + random_below(r, 2000);
	bool clamp = random_below(r, 2);

	set(rp, "rp_threshold", f);
	set(rp, "rp_byte_reset", kib * 1024.0);
	set(rp, "rp_ai_rate", ai);
	set(rp, "rp_hai_rate", hai);
	set(rp, "rp_clamp_tgt_rate", clamp);
	m->f = f;
	m->bytes_reset = m->law == MODEL_NS3HPCC ? 0 : kib * 1024ull;
	m->ai = ai * 1e6;
	m->hai = hai * 1e6;
	m->clamp = clamp;
}

static void run_both(const char *profile, enum model_law law, uint32_t seed, bool vary)
{
	struct random r = {seed};
	struct model m;
	struct rp rp;
	uint64_t now = 0;
	unsigned looks = 0;
	double line = (double)(10 + 10 * random_below(&r, 10)) * GBIT;

	rp_init(&rp, profile, line);
	model_init(&m, law, line);
	if (vary)
		change(&rp, &m, &r);
	for (unsigned i = 0; i < 3000; i++) {
		unsigned what = random_below(&r, 100);

		now += gap(&r);
		if (what < 20) {
			model_cnp(&m, now);
			cnp(&rp, now);
		} else if (what < 80) {
			uint32_t bytes = random_below(&r, 4) ? 1106 : random_below(&r, 3000000);

			model_sent(&m, bytes, now);
			sent(&rp, bytes, now);
		} else {
			model_run(&m, now);
		}
		if (what % 3 == 0) {
			model_run(&m, now);
			check(&rp, &m, now);
			looks++;
		}
	}
	assert_true(looks > 500);
}

static void dcqcn__equals_event_by_event(void **state)
{
	for (uint32_t seed = 1; seed <= 12; seed++)
		for (unsigned i = 0; i < PROFILES; i++) {
			run_both(vectors[i].profile, (enum model_law)i, seed, false);
			run_both(vectors[i].profile, (enum model_law)i, seed * 7919, true);
		}
}

/* --- limits ----------------------------------------------------------------------------- */

/* whatever comes, the rate stays above its floor and below the line's. */
static void dcqcn__stays_between_floor_and_line(void **state)
{
	static const double floors[PROFILES] = {10e6, 1e6, 100e6};

	for (unsigned i = 0; i < PROFILES; i++) {
		uint64_t now = 0;
		struct rp rp;

		rp_init(&rp, vectors[i].profile, 25 * GBIT);
		for (unsigned k = 0; k < 20000; k++, now += USEC) {
			cnp(&rp, now);
			assert_true(at(&rp, now).rate >= floors[i]);
		}
		assert_rate(at(&rp, now).rate, floors[i]);
		for (unsigned k = 0; k < 20000; k++, now += MSEC) {
			sent(&rp, 1000000, now);
			assert_true(at(&rp, now).rate <= 25 * GBIT);
		}
		assert_false(at(&rp, now).limited);
		assert_true(rp.cc.rate == CC_UNLIMITED);
	}
}

/* A long sleep costs the same few steps as a short one, and ends at the line's rate. */
static void dcqcn__recovers_from_years_of_silence(void **state)
{
	for (unsigned i = 0; i < PROFILES; i++) {
		struct rp rp;

		rp_init(&rp, vectors[i].profile, 100 * GBIT);
		for (unsigned k = 0; k < 1000; k++)
			cnp(&rp, k * 10 * USEC);
		assert_false(at(&rp, 1ull << 60).limited);
		cnp(&rp, (1ull << 60) + 1);
		assert_true(at(&rp, (1ull << 60) + 10 * USEC).rate > 99.5 * GBIT); /* alpha is g */
	}
}

/* A QP that no CNP has reached has no limit, whatever the line's rate is said to be. */
static void dcqcn__without_a_cnp_does_not_limit(void **state)
{
	struct rp rp;

	rp_init(&rp, "connectx", 1e6);
	sent(&rp, 1u << 30, 5);
	assert_true(cc_dcqcn.on_time(&rp.cc, MSEC) == CC_NEVER);
	assert_true(rp.cc.rate == CC_UNLIMITED);
	assert_true(rp.cc.window == CC_NO_WINDOW);
	assert_false(at(&rp, 10).limited);
}

/* A worker that stood still did not find out that there was no congestion. */
static void dcqcn__a_pause_counts_as_one_increase(void **state)
{
	struct rp rp;

	rp_init(&rp, "paper", 40 * GBIT);
	cnp(&rp, 0);
	cc_dcqcn.on_pause(&rp.cc, 60 * MSEC);
	assert_rate(at(&rp, 60 * MSEC).rate, 30 * GBIT);
	assert_rate(at(&rp, 60 * MSEC + 54 * USEC).rate, 30 * GBIT);
	assert_rate(at(&rp, 60 * MSEC + 55 * USEC).rate, 35 * GBIT);
	cc_dcqcn.on_pause(&rp.cc, 60 * MSEC + 100 * USEC); /* a short one changes nothing */
	assert_rate(at(&rp, 60 * MSEC + 110 * USEC).rate, 37.5 * GBIT);
}

/* on_time() names the next change, and nothing changes before it. */
static void dcqcn_on_time__names_the_next_change(void **state)
{
	struct random r = {4711};

	for (unsigned i = 0; i < PROFILES; i++) {
		uint64_t now = 0;
		struct rp rp;

		rp_init(&rp, vectors[i].profile, 40 * GBIT);
		for (unsigned k = 0; k < 500; k++) {
			uint64_t next;
			double rate;

			now += random_below(&r, 400) * USEC;
			if (random_below(&r, 3) == 0)
				cnp(&rp, now);
			next = cc_dcqcn.on_time(&rp.cc, now);
			if (next == CC_NEVER)
				continue;
			assert_true(next > now);
			rate = rp.cc.rate;
			cc_dcqcn.on_time(&rp.cc, next - 1);
			assert_true(rp.cc.rate == rate);
			cc_dcqcn.on_time(&rp.cc, next);
			assert_true(rp.cc.rate != rate);
			now = next;
		}
	}
}

/* --- parameters --------------------------------------------------------------------------- */

static void dcqcn__first_rate_min_dec_fac_and_max_rate(void **state)
{
	struct rp rp;

	rp_init(&rp, "paper", 40 * GBIT);
	set(&rp, "rp_rate_to_set_on_first_cnp", 8000);
	set(&rp, "rp_min_dec_fac", 75);
	set(&rp, "rp_max_rate", 7000);
	cnp(&rp, 0); /* the ceiling is 7, then 75 % of it */
	assert_rate(at(&rp, 1).rate, 5.25 * GBIT);
	assert_rate(at(&rp, 1).target, 7 * GBIT);
	assert_false(at(&rp, 100 * MSEC).limited);

	rp_init(&rp, "paper", 40 * GBIT);
	set(&rp, "rp_rate_to_set_on_first_cnp", 8000);
	set(&rp, "rp_gd", 12); /* a quarter of alpha */
	cnp(&rp, 0);
	assert_rate(at(&rp, 1).rate, 6 * GBIT);
}

/* Decreases in a row leave the target, unless it is clamped; after an increase they take the rate.
 */
static void dcqcn__clamps_the_target(void **state)
{
	struct rp rp;

	rp_init(&rp, "connectx", 40 * GBIT);
	cnp(&rp, 0);
	cnp(&rp, 5 * USEC);
	assert_rate(at(&rp, 9 * USEC).target, 40 * GBIT);
	cnp(&rp, 700 * USEC); /* after two increases by time */
	assert_true(at(&rp, 710 * USEC).target < 39 * GBIT);

	rp_init(&rp, "connectx", 40 * GBIT);
	set(&rp, "rp_clamp_tgt_rate_ati", 0);
	cnp(&rp, 0);
	cnp(&rp, 700 * USEC);
	assert_rate(at(&rp, 710 * USEC).target, 40 * GBIT);
	sent(&rp, 4000000, 711 * USEC);
	cnp(&rp, 712 * USEC); /* bytes always count */
	assert_true(at(&rp, 720 * USEC).target < 39 * GBIT);
}

static double value_of(const struct rp *rp, const char *name)
{
	return rp->cfg.value[cc_find_param(&cc_dcqcn, name)] * 1e6;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* rp_min_rate, or the rate at which limits end, if that is less. */
static double floor_of(const struct rp *rp)
{
	double top = value_of(rp, "rp_max_rate");

	return least(value_of(rp, "rp_min_rate"), least(top > 0 ? top : 25 * GBIT, 25 * GBIT));
}

/* A new floor lifts what is below it at once, not with the next CNP. */
static void dcqcn__a_new_floor_lifts_the_rate(void **state)
{
	for (unsigned i = 0; i < PROFILES; i++) {
		uint64_t now = 0;
		struct rp rp;

		rp_init(&rp, vectors[i].profile, 25 * GBIT);
		for (unsigned k = 0; k < 1000; k++, now += 5 * USEC)
			cnp(&rp, now);
		assert_true(at(&rp, now).rate < 1 * GBIT);
		set(&rp, "rp_min_rate", 2000);
		assert_rate(at(&rp, now).rate, 2 * GBIT);
		assert_true(at(&rp, now).target >= 2 * GBIT);
	}
}

/* Bytes and time of before count as they did then: at most one increase follows at once. */
static void dcqcn__shorter_resets_do_not_apply_to_the_past(void **state)
{
	uint64_t now = 50 * MSEC;
	struct rp rp;
	double alpha;

	rp_init(&rp, "paper", 40 * GBIT);
	set(&rp, "rp_time_reset", 100000);
	set(&rp, "rp_dce_tcp_rtt", 100000);
	cnp(&rp, 0);
	cnp(&rp, 1); /* Rt 20, Rc 10 */
	sent(&rp, 9000000, now);
	alpha = at(&rp, now).alpha;
	set(&rp, "rp_byte_reset", 4096);
	sent(&rp, 1000, now);
	assert_rate(at(&rp, now).rate, 15 * GBIT);
	set(&rp, "rp_time_reset", 10);
	assert_rate(at(&rp, now).rate, 15 * GBIT);
	assert_rate(at(&rp, now + 9 * USEC).rate, 17.5 * GBIT);
	assert_rate(at(&rp, now + 10 * USEC).rate, 18.75 * GBIT);
	set(&rp, "rp_dce_tcp_rtt", 1);
	assert_rate(at(&rp, now + 10 * USEC).alpha, alpha);
	assert_rate(at(&rp, now + 10 * USEC).alpha, alpha * 1020 / 1024);
}

/* The limits of every parameter, set under way: no rate is beyond floor and line. */
static void dcqcn__takes_limits_of_parameters_under_way(void **state)
{
	struct random r = {99};

	for (unsigned i = 0; i < PROFILES; i++) {
		uint64_t now = 0;
		struct rp rp;

		rp_init(&rp, vectors[i].profile, 25 * GBIT);
		for (unsigned k = 0; k < 20000; k++) {
			const struct cc_param *p;
			unsigned n = random_below(&r, cc_dcqcn.nparams);
			struct cc_view v;

			p = &cc_dcqcn.params[n];
			if (random_below(&r, 10) == 0)
				assert_true(cc_config_set(
					&rp.cfg, n, random_below(&r, 2) ? p->min : p->max));
			now += gap(&r);
			if (random_below(&r, 2))
				cnp(&rp, now);
			sent(&rp, random_below(&r, 65536), now);
			v = at(&rp, now);
			assert_true(v.rate >= floor_of(&rp) && v.rate <= 25 * GBIT);
			assert_true(v.target >= v.rate && v.target <= 25 * GBIT);
			assert_true(v.alpha >= 0 && v.alpha <= 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dcqcn__follows_the_vectors),
		cmocka_unit_test(dcqcn__computes_timers_without_being_asked),
		cmocka_unit_test(dcqcn__rises_by_bytes_and_hyper),
		cmocka_unit_test(dcqcn__equals_event_by_event),
		cmocka_unit_test(dcqcn__stays_between_floor_and_line),
		cmocka_unit_test(dcqcn__recovers_from_years_of_silence),
		cmocka_unit_test(dcqcn__without_a_cnp_does_not_limit),
		cmocka_unit_test(dcqcn__a_pause_counts_as_one_increase),
		cmocka_unit_test(dcqcn_on_time__names_the_next_change),
		cmocka_unit_test(dcqcn__first_rate_min_dec_fac_and_max_rate),
		cmocka_unit_test(dcqcn__clamps_the_target),
		cmocka_unit_test(dcqcn__a_new_floor_lifts_the_rate),
		cmocka_unit_test(dcqcn__shorter_resets_do_not_apply_to_the_past),
		cmocka_unit_test(dcqcn__takes_limits_of_parameters_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
