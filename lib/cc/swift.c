/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Swift (Kumar et al., SIGCOMM 2020): compares the round trip with a target. Below the target the
 * window grows by `ai` packets per round trip. Above it the window shrinks in proportion to the
 * excess, once per round trip. Small windows have a higher target (flow scaling), so that many
 * flows find their share of a queue. A window below one packet becomes a pace.
 *
 * Only the fabric delay is measured: the round trip excludes an endpoint's own delay (rtt.h),
 * because ACKs leave first and a stalled worker takes no sample. Hops are not counted: base_target
 * must include their part.
 */
#include <string.h>
#include "cc.h"
#include "mean.h"

enum {
	BASE_TARGET,
	FS_RANGE,
	FS_MIN_CWND,
	FS_MAX_CWND,
	AI,
	BETA,
	MAX_MDF,
	MIN_CWND,
	MAX_CWND,
	FIRST_CWND,
	ACK_EVERY,
	PARAMS
};

static const struct cc_param params[PARAMS] = {
	[BASE_TARGET] = {.name = "base_target",
		.unit = "us",
		.help = "round-trip target of a large window",
		.min = 1,
		.max = 1e6,
		.def = {{25, false}}},
	[FS_RANGE] = {.name = "fs_range",
		.unit = "us",
		.help = "maximum that flow scaling adds to the target; 0: no flow scaling",
		.min = 1,
		.max = 1e6,
		.or_zero = true,
		.def = {{50, false}}},
	[FS_MIN_CWND] = {.name = "fs_min_cwnd",
		.unit = "1/1000 packets",
		.help = "window at or below which flow scaling adds its maximum",
		.min = 1,
		.max = 1e6,
		.def = {{100, false}}},
	[FS_MAX_CWND] = {.name = "fs_max_cwnd",
		.unit = "1/1000 packets",
		.help = "window at or above which flow scaling adds nothing",
		.min = 2,
		.max = 1e7,
		.def = {{100000, false}}},
	[AI] = {.name = "ai",
		.unit = "1/1000 packets",
		.help = "additive increase of the window per round trip",
		.min = 1,
		.max = 1e6,
		.def = {{1000, false}}},
	[BETA] = {.name = "beta",
		.unit = "%",
		.help = "share of the excess delay by which the window shrinks",
		.min = 1,
		.max = 100,
		.def = {{80, false}}},
	[MAX_MDF] = {.name = "max_mdf",
		.unit = "%",
		.help = "maximum decrease of the window at once",
		.min = 1,
		.max = 99,
		.def = {{50, false}}},
	[MIN_CWND] = {.name = "min_cwnd",
		.unit = "1/1000 packets",
		.help = "minimum window",
		.min = 1,
		.max = 1e6,
		.def = {{10, false}}},
	[MAX_CWND] = {.name = "max_cwnd",
		.unit = "packets",
		.help = "maximum window",
		.min = 1,
		.max = 65536,
		.def = {{128, false}}},
	[FIRST_CWND] = {.name = "first_cwnd",
		.unit = "packets",
		.help = "window of a new queue pair",
		.min = 1,
		.max = 65536,
		.def = {{16, false}}},
	[ACK_EVERY] = {.name = "ack_every",
		.unit = "packets",
		.help = "packets per requested ACK",
		.min = 1,
		.max = 64,
		.def = {{1, false}}},
};

static const char *const profiles[] = {"paper"};

/* Successive timeouts after which the window drops to its minimum. */
#define RETX_RESET_THRESHOLD 5u

struct swift {
	double cwnd;
	uint64_t rtt;	    /* ns, latest; 0: none yet */
	uint64_t decreased; /* ns: when the window last fell */
	struct mean mean;
	uint32_t retransmits;  /* successive timeouts */
	double fs_max, fs_min; /* the values that the next two were computed from */
	double least, most;    /* 1 / square root of fs_max_cwnd and of fs_min_cwnd */
} __attribute__((may_alias));
_Static_assert(sizeof(struct swift) <= CC_STATE_MAX, "");

static struct swift *of(struct cc *c)
{
	return (struct swift *)c->state;
}

static double param(const struct cc *c, unsigned i)
{
	return c->cfg->value[i];
}

/* Square root by Newton's method: the first guess halves the exponent, and each of four steps
 * doubles the number of correct digits. The pure layers must not call libm. */
static double root(double x)
{
	uint64_t bits;
	double y;

	memcpy(&bits, &x, sizeof(bits));
	bits = 0x1FF7A3BEA91D9B1Bull + (bits >> 1);
	memcpy(&y, &bits, sizeof(y));
	for (unsigned i = 0; i < 4; i++)
		y = (y + x / y) / 2;
	return y;
}

static void take_parameters(struct cc *c)
{
	struct swift *s = of(c);

	if (s->fs_max == param(c, FS_MAX_CWND) && s->fs_min == param(c, FS_MIN_CWND))
		return;
	s->fs_max = param(c, FS_MAX_CWND);
	s->fs_min = param(c, FS_MIN_CWND);
	s->least = 1 / root(s->fs_max / 1000);
	s->most = 1 / root(s->fs_min / 1000);
}

/* Flow scaling: fs_range at fs_min_cwnd, 0 at fs_max_cwnd, and in between by the inverse square
 * root. */
static double scaling(struct cc *c, double cwnd)
{
	const struct swift *s = of(c);
	double range = param(c, FS_RANGE) * 1000;
	double at;

	take_parameters(c);
	if (range <= 0 || s->most <= s->least)
		return 0;
	at = 1 / root(cwnd);
	if (at <= s->least)
		return 0;
	return at >= s->most ? range : range * (at - s->least) / (s->most - s->least);
}

static double target_of(struct cc *c, double cwnd)
{
	return param(c, BASE_TARGET) * 1000 + scaling(c, cwnd);
}

/* A window below one packet becomes a rate. */
static void publish(struct cc *c)
{
	const struct swift *s = of(c);
	double bits = mean_packet(&s->mean) * 8;

	c->window = s->cwnd < 1 ? 1 : s->cwnd;
	c->rate = CC_UNLIMITED;
	if (s->cwnd < 1 && s->rtt && bits > 0)
		c->rate = bits * s->cwnd * 1e9 / (double)s->rtt;
	c->ack_every = (uint32_t)param(c, ACK_EVERY);
	if (c->ack_every > c->window)
		c->ack_every = (uint32_t)c->window;
}

static void set_cwnd(struct cc *c, double cwnd, uint64_t now)
{
	struct swift *s = of(c);
	double least = param(c, MIN_CWND) / 1000, most = param(c, MAX_CWND);

	cwnd = cwnd < least ? least : cwnd > most ? most : cwnd;
	if (cwnd < s->cwnd)
		s->decreased = now;
	s->cwnd = cwnd;
	publish(c);
}

static bool may_decrease(const struct swift *s, uint64_t now)
{
	return now - s->decreased >= s->rtt;
}

static void swift_init(struct cc *c, uint64_t now)
{
	of(c)->cwnd = param(c, FIRST_CWND);
	set_cwnd(c, of(c)->cwnd, now);
}

static void swift_on_sent(struct cc *c, uint32_t bytes, uint32_t psn, bool again, uint64_t now)
{
	struct swift *s = of(c);

	s->mean.bytes += again ? 0 : bytes;
}

static void swift_on_ack(struct cc *c, const struct cc_ack *ack, uint64_t now)
{
	struct swift *s = of(c);
	double target = target_of(c, s->cwnd), delay = (double)ack->rtt;
	double most = param(c, MAX_MDF) / 100, ai = param(c, AI) / 1000 * ack->packets;

	mean_acked(&s->mean, ack->packets);
	s->retransmits = 0;
	if (!ack->rtt)
		return;
	s->rtt = ack->rtt;
	if (delay < target) {
		set_cwnd(c, s->cwnd + (s->cwnd >= 1 ? ai / s->cwnd : ai), now);
	} else if (may_decrease(s, now)) {
		double less = param(c, BETA) / 100 * (delay - target) / delay;

		set_cwnd(c, s->cwnd * (1 - (less < most ? less : most)), now);
	}
}

static void swift_on_cnp(
	struct cc *c, enum cc_notice kind, const struct cc_hops *hops, uint64_t now)
{
}

static void swift_on_loss(struct cc *c, enum cc_loss kind, uint64_t now)
{
	struct swift *s = of(c);

	if (kind == CC_LOSS_RNR)
		return;
	s->retransmits = kind == CC_LOSS_TIMEOUT ? s->retransmits + 1 : 0; /* a NAK is an answer */
	if (s->retransmits >= RETX_RESET_THRESHOLD)
		set_cwnd(c, 0, now);
	else if (may_decrease(s, now))
		set_cwnd(c, s->cwnd * (1 - param(c, MAX_MDF) / 100), now);
}

static uint64_t swift_on_time(struct cc *c, uint64_t now)
{
	set_cwnd(c, of(c)->cwnd, now); /* its limits may have been changed */
	return CC_NEVER;
}

static void swift_on_pause(struct cc *c, uint64_t now)
{
}

static void swift_look(const struct cc *c, struct cc_view *v)
{
	const struct swift *s = (const struct swift *)c->state;

	v->limited = c->rate < CC_UNLIMITED;
	v->rate = v->limited ? c->rate : c->cfg->line;
	v->target = v->rate;
	v->alpha = 0;
	v->window = s->cwnd;
	v->rtt = s->rtt;
}

const struct cc_ops cc_swift = {
	.name = "swift",
	.title = "Swift: the round-trip time lowers or raises the window",
	.params = params,
	.nparams = PARAMS,
	.profiles = profiles,
	.nprofiles = 1,
	.from_start = true,
	.needs_acks = true,
	.wants_rtt = true,
	.init = swift_init,
	.on_sent = swift_on_sent,
	.on_ack = swift_on_ack,
	.on_cnp = swift_on_cnp,
	.on_loss = swift_on_loss,
	.on_time = swift_on_time,
	.on_pause = swift_on_pause,
	.look = swift_look,
};
