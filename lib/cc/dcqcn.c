/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN (Zhu et al., SIGCOMM 2015): each CNP lowers the rate; time and bytes raise it again. Names
 * and units are those of mlx5's parameters. There are three profiles: the paper's reaction point;
 * ConnectX's, which reacts once per monitor period and updates alpha on a separate timer; and that
 * of the simulator published with HPCC. doc/congestion.md compares them.
 *
 * No timer runs. settle() computes what the timers would have done since its last call. Of events
 * at the same instant, the alpha update comes first, then the increase, then the decrease.
 */
#include "cc.h"

enum {
	NP_MIN_TIME,
	NP_DSCP,
	NP_PRIO,
	NP_ECN,
	NP_BECN,
	TIME_RESET,
	BYTE_RESET,
	THRESHOLD,
	AI_RATE,
	HAI_RATE,
	MIN_DEC_FAC,
	MIN_RATE,
	MAX_RATE,
	FIRST_RATE,
	GD,
	DCE_TCP_G,
	DCE_TCP_RTT,
	INITIAL_ALPHA,
	MONITOR,
	CLAMP,
	CLAMP_ATI,
	PARAMS
};

enum {
	PAPER,
	CONNECTX,
	NS3HPCC,
	PROFILES
};

static const char *const profiles[PROFILES] = {
	[PAPER] = "paper", [CONNECTX] = "connectx", [NS3HPCC] = "ns3hpcc"};

/* One default for each profile. */
#define FLAT(v)          \
	{                \
		v, false \
	}
#define PER_25G(v)      \
	{               \
		v, true \
	}
#define ALL(v)                            \
	{                                 \
		FLAT(v), FLAT(v), FLAT(v) \
	}
#define EACH(p, c, n)                     \
	{                                 \
		FLAT(p), FLAT(c), FLAT(n) \
	}

static const struct cc_param params[PARAMS] = {
	[NP_MIN_TIME] = {.name = "np_min_time_between_cnps",
		.unit = "us",
		.help = "minimum time between two CNPs of a QP; 0: a CNP per marked packet",
		.min = 1,
		.max = 1e6,
		.or_zero = true,
		.def = EACH(50, 4, 0)},
	[NP_DSCP] = {.name = "np_cnp_dscp",
		.unit = "",
		.help = "DSCP of CNPs",
		.max = 63,
		.def = ALL(48)},
	[NP_PRIO] = {.name = "np_cnp_prio",
		.unit = "",
		.help = "802.1p priority of CNPs, where they have a tag",
		.max = 7,
		.def = ALL(6)},
	[NP_ECN] = {.name = "np_cnp_ecn",
		.unit = "",
		.help = "ECN field of CNPs",
		.max = 3,
		.def = ALL(0)},
	[NP_BECN] = {.name = "np_cnp_becn",
		.unit = "",
		.help = "BECN bit of CNPs",
		.max = 1,
		.def = ALL(1)},
	[TIME_RESET] = {.name = "rp_time_reset",
		.unit = "us",
		.help = "time between two increases",
		.min = 1,
		.max = 131071,
		.def = EACH(55, 300, 300)},
	[BYTE_RESET] = {.name = "rp_byte_reset",
		.unit = "bytes",
		.help = "bytes sent between two increases; 0: time alone increases",
		.min = 4096,
		.max = 4294967295.0,
		.or_zero = true,
		.def = EACH(10e6, 32767 * 64, 0)},
	[THRESHOLD] = {.name = "rp_threshold",
		.unit = "",
		.help = "increases before the target rises",
		.min = 1,
		.max = 31,
		.def = EACH(5, 1, 1)},
	[AI_RATE] = {.name = "rp_ai_rate",
		.unit = "Mb/s",
		.help = "additive increase of the target",
		.min = 0.0001,
		.max = 1e6,
		.fraction = true,
		.def = {FLAT(40), FLAT(5), PER_25G(5)}},
	[HAI_RATE] = {.name = "rp_hai_rate",
		.unit = "Mb/s",
		.help = "hyper increase of the target",
		.min = 0.0001,
		.max = 1e6,
		.fraction = true,
		.def = {FLAT(200), FLAT(50), PER_25G(50)}},
	[MIN_DEC_FAC] = {.name = "rp_min_dec_fac",
		.unit = "%",
		.help = "minimum share of the rate kept in one decrease; 0: no minimum",
		.min = 1,
		.max = 100,
		.or_zero = true,
		.def = EACH(0, 50, 0)},
	[MIN_RATE] = {.name = "rp_min_rate",
		.unit = "Mb/s",
		.help = "the rate never falls below it",
		.min = 1,
		.max = 1e6,
		.def = EACH(10, 1, 100)},
	[MAX_RATE] = {.name = "rp_max_rate",
		.unit = "Mb/s",
		.help = "rate at which limiting stops; 0: the port's rate",
		.min = 1,
		.max = 1e6,
		.or_zero = true,
		.def = ALL(0)},
	[FIRST_RATE] = {.name = "rp_rate_to_set_on_first_cnp",
		.unit = "Mb/s",
		.help = "rate after the first CNP; 0: the port's rate",
		.min = 1,
		.max = 1e6,
		.or_zero = true,
		.def = ALL(0)},
	[GD] = {.name = "rp_gd",
		.unit = "",
		.help = "each decrease takes alpha / 2^(rp_gd - 10) of the rate",
		.min = 10,
		.max = 15,
		.def = ALL(11)},
	[DCE_TCP_G] = {.name = "rp_dce_tcp_g",
		.unit = "1/1024",
		.help = "part of alpha that an update keeps",
		.max = 1023,
		.def = EACH(1020, 1019, 1020)},
	[DCE_TCP_RTT] = {.name = "rp_dce_tcp_rtt",
		.unit = "us",
		.help = "time between two updates of alpha",
		.min = 1,
		.max = 131071,
		.def = EACH(55, 1, 1)},
	[INITIAL_ALPHA] = {.name = "rp_initial_alpha_value",
		.unit = "1/1024",
		.help = "alpha before the first CNP",
		.min = 1,
		.max = 1024,
		.def = EACH(1024, 1023, 1024)},
	[MONITOR] = {.name = "rp_rate_reduce_monitor_period",
		.unit = "us",
		.help = "the rate falls once per period at most; 0: with each CNP",
		.min = 1,
		.max = 131071,
		.or_zero = true,
		.def = EACH(0, 4, 4)},
	[CLAMP] = {.name = "rp_clamp_tgt_rate",
		.unit = "",
		.help = "1: each decrease sets the target to the current rate",
		.max = 1,
		.def = EACH(1, 0, 0)},
	[CLAMP_ATI] = {.name = "rp_clamp_tgt_rate_ati",
		.unit = "",
		.help = "1: so does the first decrease after an increase by time",
		.max = 1,
		.def = EACH(0, 1, 1)},
};
_Static_assert(PARAMS <= CC_PARAMS_MAX, "dcqcn params");

/* May alias: it is stored in the bytes of struct cc. */
struct __attribute__((may_alias)) dcqcn {
	double rate;   /* Rc, bit/s */
	double target; /* Rt */
	double alpha;
	uint64_t alpha_at;  /* last update of alpha */
	uint64_t period_at; /* start of some monitor period */
	uint64_t drop_at;   /* end of the monitor period that had a CNP; CC_NEVER: none had */
	uint64_t rise_at;   /* last increase by time, or decrease */
	/* Set by the latest on_time(): past time counts with the parameters that applied to it. */
	uint64_t alpha_every;
	uint64_t rise_every;
	uint32_t bytes;	  /* sent since the last increase by bytes */
	uint32_t times;	  /* T: increases by time since the last decrease ... */
	uint32_t lengths; /* B: ... and by bytes */
	bool known;	  /* a CNP has arrived */
	bool marked;	  /* a CNP has arrived since alpha was updated */
};
_Static_assert(sizeof(struct dcqcn) <= CC_STATE_MAX, "dcqcn");

#define STAGE_MAX (1u << 30) /* counters saturate: above, the value makes no difference */

static struct dcqcn *of(struct cc *c)
{
	return (struct dcqcn *)c->state;
}

static double value(const struct cc *c, unsigned i)
{
	return c->cfg->value[i];
}

static uint64_t nsec(const struct cc *c, unsigned i)
{
	return (uint64_t)value(c, i) * 1000;
}

/* CNP-13: a rate that reaches this becomes unlimited. */
static double ceiling(const struct cc *c)
{
	double max = value(c, MAX_RATE) * 1e6;

	return max > 0 && max < c->cfg->line ? max : c->cfg->line;
}

/* CNP-13: never 0. */
static double floor_rate(const struct cc *c)
{
	double min = value(c, MIN_RATE) * 1e6;

	return min < ceiling(c) ? min : ceiling(c);
}

/* @return @p x to the power @p n. The results of pow() differ between C libraries. */
static double power(double x, uint64_t n)
{
	double y = 1;

	for (; n; n >>= 1, x *= x)
		if (n & 1)
			y *= x;
	return y;
}

static double gain(const struct cc *c)
{
	return (1024 - value(c, DCE_TCP_G)) / 1024;
}

/* --- alpha ------------------------------------------------------------------------------- */

/* All updates up to @p to, one per dce_tcp_rtt. Without a CNP, n updates are a power of the gain.
 */
static void age_alpha(struct cc *c, uint64_t to)
{
	struct dcqcn *d = of(c);
	uint64_t rtt = d->alpha_every;
	double keep = 1 - gain(c);
	uint64_t n;

	if (to < d->alpha_at + rtt)
		return;
	n = (to - d->alpha_at) / rtt;
	d->alpha_at += n * rtt;
	if (d->marked) {
		d->marked = false;
		d->alpha = keep * d->alpha + gain(c);
		n--;
	}
	d->alpha *= power(keep, n);
}

/* --- increases --------------------------------------------------------------------------- */

/* @return how much the target rises with the next increase, which has been counted already. */
static double rise_of(const struct cc *c, uint32_t times, uint32_t lengths)
{
	uint32_t least = times < lengths ? times : lengths;
	uint32_t most = times < lengths ? lengths : times;
	uint32_t limit = (uint32_t)value(c, THRESHOLD);

	if (c->cfg->profile == NS3HPCC) { /* time only; the second rise is a hyper increase */
		if (times <= limit)
			return 0;
		return value(c, times == limit + 1 ? AI_RATE : HAI_RATE) * 1e6;
	}
	if (most <= limit)
		return 0;
	if (least > limit)
		return (least - limit) * value(c, HAI_RATE) * 1e6;
	return value(c, AI_RATE) * 1e6;
}

/* @return how many successive increases by time, starting with @p times, raise by the same amount.
 */
static uint64_t run_of(const struct cc *c, uint32_t times, uint32_t lengths)
{
	uint32_t limit = (uint32_t)value(c, THRESHOLD);

	/* no increase yet, or only the additive one if the byte counter leads */
	if (times <= limit)
		return limit - times + 1;
	if (c->cfg->profile == NS3HPCC)
		return times == limit + 1 ? 1 : UINT64_MAX;
	return lengths > limit && times < lengths ? 1 : UINT64_MAX;
}

/* @p n increases that raise the target by @p rise each, up to the ceiling. Each halves the
 * difference between (target - rate) and @p rise. */
static void climb(struct cc *c, uint64_t n, double rise)
{
	struct dcqcn *d = of(c);
	double top = ceiling(c);

	if (rise > 0) {
		double room = (top - d->target) / rise;
		uint64_t free = room < (double)n ? (uint64_t)room : n;
		double gap = d->target - d->rate;

		if (free) {
			d->target += (double)free * rise;
			d->rate = d->target - rise - (gap - rise) * power(0.5, free);
			n -= free;
		}
		if (n)
			d->target = top;
	}
	d->rate = d->target - (d->target - d->rate) * power(0.5, n);
	if (d->rate > top * (1 - 1e-9)) /* unlimited again */
		d->rate = d->target = top;
}

static void count_times(struct dcqcn *d, uint64_t n)
{
	d->times = n < STAGE_MAX - d->times ? d->times + (uint32_t)n : STAGE_MAX;
}

/* @p n increases by time. */
static void rise_by_time(struct cc *c, uint64_t n)
{
	struct dcqcn *d = of(c);

	while (n && d->rate < ceiling(c)) {
		uint64_t run = run_of(c, d->times + 1, d->lengths);
		double rise = rise_of(c, d->times + 1, d->lengths);

		if (run > n)
			run = n;
		count_times(d, run);
		climb(c, run, rise);
		n -= run;
	}
	count_times(d, n);
}

/* The remaining bytes count towards the next increase. */
static void rise_by_bytes(struct cc *c, uint32_t bytes)
{
	struct dcqcn *d = of(c);
	uint64_t sent = (uint64_t)d->bytes + bytes;
	uint64_t reset = (uint64_t)value(c, BYTE_RESET);

	if (!reset || c->cfg->profile == NS3HPCC)
		return;
	if (d->bytes >= reset) /* the parameter was larger when they were sent */
		sent = reset - 1 + bytes;
	for (; sent >= reset; sent -= reset) {
		if (d->lengths < STAGE_MAX)
			d->lengths++;
		climb(c, 1, rise_of(c, d->times, d->lengths));
	}
	d->bytes = (uint32_t)sent;
}

/* --- decreases --------------------------------------------------------------------------- */

/* CNP-13: keeps the rate and its target at or above the floor. */
static void lift(struct cc *c)
{
	struct dcqcn *d = of(c);

	if (d->rate < floor_rate(c))
		d->rate = floor_rate(c);
	if (d->target < d->rate)
		d->target = d->rate;
}

/* CNP-13: Rt = Rc, Rc *= 1 - alpha / 2. */
static void fall(struct cc *c, uint64_t now)
{
	struct dcqcn *d = of(c);
	double keep = 1 - d->alpha / (double)(1u << ((unsigned)value(c, GD) - 10));
	double least = value(c, MIN_DEC_FAC) / 100;

	if (value(c, CLAMP) > 0 || d->lengths || (d->times && value(c, CLAMP_ATI) > 0))
		d->target = d->rate;
	d->rate *= keep > least ? keep : least;
	lift(c);
	d->bytes = d->times = d->lengths = 0;
	d->rise_at = now;
}

/* Performs a decrease. The paper's profile updates alpha only now, with this CNP. */
static void react(struct cc *c, uint64_t now)
{
	struct dcqcn *d = of(c);

	age_alpha(c, now);
	fall(c, now);
	if (c->cfg->profile == PAPER) {
		d->alpha = (1 - gain(c)) * d->alpha + gain(c);
		d->alpha_at = now;
	}
}

/* --- time -------------------------------------------------------------------------------- */

/* CNP-12: performs the increases due by @p to, at most @p most; discards the rest. */
static void rise_until(struct cc *c, uint64_t to, uint64_t most)
{
	struct dcqcn *d = of(c);
	uint64_t reset = d->rise_every;
	uint64_t n;

	if (to < d->rise_at + reset)
		return;
	n = (to - d->rise_at) / reset;
	d->rise_at = n > most ? to : d->rise_at + n * reset;
	rise_by_time(c, n > most ? most : n);
}

/* CNP-13: applies the limits again; the parameters or the line rate may have changed. */
static void keep_limits(struct cc *c)
{
	struct dcqcn *d = of(c);

	if (d->target > ceiling(c))
		d->target = ceiling(c);
	if (d->rate > d->target)
		d->rate = d->target;
	lift(c);
}

/* Performs everything that was due by @p now. */
static void settle(struct cc *c, uint64_t now, uint64_t most)
{
	struct dcqcn *d = of(c);

	if (!d->known)
		return;
	keep_limits(c);
	if (d->drop_at <= now) {
		rise_until(c, d->drop_at, most);
		react(c, d->drop_at);
		d->drop_at = CC_NEVER;
	}
	rise_until(c, now, most);
}

static void publish(struct cc *c)
{
	const struct dcqcn *d = of(c);

	c->rate = d->known && d->rate < ceiling(c) ? d->rate : CC_UNLIMITED;
}

/* @return @p at, the start of an interval, or later: at most one that lasts @p every is over. */
static uint64_t not_long_ago(uint64_t at, uint64_t every, uint64_t now)
{
	return now > at + every ? now - every : at;
}

/* The times between increases and between updates of alpha have changed; the new ones apply from
 * @p now on. */
static void take_times(struct cc *c, uint64_t now)
{
	struct dcqcn *d = of(c);

	d->rise_every = nsec(c, TIME_RESET);
	d->alpha_every = nsec(c, DCE_TCP_RTT);
	d->rise_at = not_long_ago(d->rise_at, d->rise_every, now);
	d->alpha_at = not_long_ago(d->alpha_at, d->alpha_every, now);
}

/* The first CNP starts the rate limit. */
static void start(struct cc *c, uint64_t now)
{
	struct dcqcn *d = of(c);
	double first = value(c, FIRST_RATE) * 1e6;

	d->known = true;
	d->rate = d->target = first > 0 && first < ceiling(c) ? first : ceiling(c);
	lift(c);
	d->alpha = value(c, INITIAL_ALPHA) / 1024;
	d->alpha_at = d->period_at = d->rise_at = now;
	d->drop_at = CC_NEVER;
	take_times(c, now);
}

/* --- the contract ------------------------------------------------------------------------- */

static void dcqcn_init(struct cc *c, uint64_t now)
{
	of(c)->drop_at = CC_NEVER;
}

static void dcqcn_on_sent(struct cc *c, uint32_t bytes, uint32_t psn, bool again, uint64_t now)
{
	if (!of(c)->known)
		return;
	settle(c, now, UINT64_MAX);
	rise_by_bytes(c, bytes);
	publish(c);
}

static void dcqcn_on_cnp(
	struct cc *c, enum cc_notice kind, const struct cc_hops *hops, uint64_t now)
{
	struct dcqcn *d = of(c);
	uint64_t period = nsec(c, MONITOR);
	bool first = !d->known;

	if (first)
		start(c, now);
	settle(c, now, UINT64_MAX);
	if (!period) {
		react(c, now);
	} else if (d->drop_at == CC_NEVER) {
		d->period_at += (now - d->period_at) / period * period;
		d->drop_at = d->period_at + period;
	}
	if (c->cfg->profile != PAPER && !first) {
		age_alpha(c, now);
		d->marked = true;
	}
	publish(c);
}

static void dcqcn_on_loss(struct cc *c, enum cc_loss kind, uint64_t now)
{
}

static uint64_t dcqcn_on_time(struct cc *c, uint64_t now)
{
	const struct dcqcn *d = of(c);
	uint64_t rise = CC_NEVER;

	settle(c, now, UINT64_MAX);
	if (d->known) {
		age_alpha(c, now);
		take_times(c, now);
	}
	publish(c);
	if (d->known && d->rate < ceiling(c))
		rise = d->rise_at + d->rise_every;
	return rise < d->drop_at ? rise : d->drop_at;
}

static void dcqcn_on_pause(struct cc *c, uint64_t now)
{
	settle(c, now, 1);
	publish(c);
}

static void dcqcn_look(const struct cc *c, struct cc_view *v)
{
	const struct dcqcn *d = (const struct dcqcn *)c->state;

	v->limited = c->rate < CC_UNLIMITED;
	v->rate = v->limited ? d->rate : c->cfg->line;
	v->target = v->limited ? d->target : c->cfg->line;
	v->alpha = d->known ? d->alpha : value(c, INITIAL_ALPHA) / 1024;
}

const struct cc_ops cc_dcqcn = {
	.name = "dcqcn",
	.title = "DCQCN: CNPs lower the rate; time and bytes raise it",
	.params = params,
	.nparams = PARAMS,
	.profiles = profiles,
	.nprofiles = PROFILES,
	.init = dcqcn_init,
	.on_sent = dcqcn_on_sent,
	.on_cnp = dcqcn_on_cnp,
	.on_loss = dcqcn_on_loss,
	.on_time = dcqcn_on_time,
	.on_pause = dcqcn_on_pause,
	.look = dcqcn_look,
};
