/* SPDX-License-Identifier: BSD-3-Clause */
/* A plain rate limit that ignores the network. */
#include "cc.h"

enum {
	RATE,
	PARAMS
};

static const struct cc_param params[PARAMS] = {
	[RATE] = {.name = "rate",
		.unit = "Mb/s",
		.help = "rate of each QP; 0: no limit",
		.min = 1,
		.max = 1e6,
		.or_zero = true},
};

static const char *const profiles[] = {"plain"};

static void fixed_init(struct cc *c, uint64_t now)
{
	double rate = c->cfg->value[RATE];

	c->rate = rate > 0 ? rate * 1e6 : CC_UNLIMITED;
}

static void fixed_on_sent(struct cc *c, uint32_t bytes, uint32_t psn, bool again, uint64_t now)
{
}

static void fixed_on_cnp(
	struct cc *c, enum cc_notice kind, const struct cc_hops *hops, uint64_t now)
{
}

static void fixed_on_loss(struct cc *c, enum cc_loss kind, uint64_t now)
{
}

static uint64_t fixed_on_time(struct cc *c, uint64_t now)
{
	fixed_init(c, now); /* the limit may have been changed */
	return CC_NEVER;
}

static void fixed_on_pause(struct cc *c, uint64_t now)
{
}

static void fixed_look(const struct cc *c, struct cc_view *v)
{
	v->limited = c->rate < CC_UNLIMITED;
	v->rate = v->limited ? c->rate : c->cfg->line;
	v->target = v->rate;
	v->alpha = 0;
}

const struct cc_ops cc_fixed = {
	.name = "fixed",
	.title = "a plain rate limit",
	.params = params,
	.nparams = PARAMS,
	.profiles = profiles,
	.nprofiles = 1,
	.from_start = true,
	.init = fixed_init,
	.on_sent = fixed_on_sent,
	.on_cnp = fixed_on_cnp,
	.on_loss = fixed_on_loss,
	.on_time = fixed_on_time,
	.on_pause = fixed_on_pause,
	.look = fixed_look,
};
