/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of algorithms, and how their parameters are set. */
#include "cc.h"
#include <string.h>

/* The only algorithms that configuration, commands and help know. */
#define CC_ALGORITHM(name) &cc_##name,
static const struct cc_ops *const algorithms[] = {CC_ALGORITHMS};

#define ALGORITHMS (sizeof(algorithms) / sizeof(algorithms[0]))
#define LINE_UNIT  25e9

/* The pure layers must not call strcmp(). */
static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

const struct cc_ops *cc_algorithm(unsigned i)
{
	return i < ALGORITHMS ? algorithms[i] : NULL;
}

const struct cc_ops *cc_find(const char *name)
{
	for (unsigned i = 0; i < ALGORITHMS; i++)
		if (same(algorithms[i]->name, name))
			return algorithms[i];
	return NULL;
}

int cc_find_profile(const struct cc_ops *ops, const char *name)
{
	for (unsigned i = 0; i < ops->nprofiles; i++)
		if (same(ops->profiles[i], name))
			return (int)i;
	return -1;
}

int cc_find_param(const struct cc_ops *ops, const char *name)
{
	for (unsigned i = 0; i < ops->nparams; i++)
		if (same(ops->params[i].name, name))
			return (int)i;
	return -1;
}

static double default_of(const struct cc_config *cfg, unsigned i)
{
	const struct cc_default *d = &cfg->ops->params[i].def[cfg->profile];

	return d->per_25g ? d->value * cfg->line / LINE_UNIT : d->value;
}

void cc_config_line(struct cc_config *cfg, double line)
{
	cfg->line = line;
	for (unsigned i = 0; i < cfg->ops->nparams; i++)
		if (!(cfg->set >> i & 1))
			cfg->value[i] = default_of(cfg, i);
}

void cc_config_init(struct cc_config *cfg, const struct cc_ops *ops, unsigned profile, double line)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->ops = ops;
	cfg->profile = profile;
	cc_config_line(cfg, line);
}

bool cc_config_set(struct cc_config *cfg, unsigned i, double value)
{
	const struct cc_param *p = &cfg->ops->params[i];

	if (!(value >= p->min && value <= p->max) && !(p->or_zero && value == 0))
		return false;
	if (!p->fraction && value != (double)(int64_t)value)
		return false;
	cfg->value[i] = value;
	cfg->set |= 1u << i;
	return true;
}

double cc_config_notice(const struct cc_config *cfg, const char *name)
{
	int i = cc_find_param(cfg->ops, name);

	return i >= 0 ? cfg->value[i]
		      : cc_dcqcn.params[cc_find_param(&cc_dcqcn, name)].def[0].value;
}

void cc_config_unacked(struct cc_config *cfg, struct cc_config *unacked)
{
	int profile = cc_find_profile(&cc_dcqcn, cfg->ops->profiles[cfg->profile]);

	cfg->unacked = NULL;
	if (!cfg->ops->needs_acks)
		return;
	cc_config_init(unacked, &cc_dcqcn, profile < 0 ? 0 : (unsigned)profile, cfg->line);
	cfg->unacked = unacked;
}

void cc_init(struct cc *c, const struct cc_config *cfg, uint64_t now)
{
	memset(c, 0, sizeof(*c));
	c->cfg = cfg;
	c->rate = CC_UNLIMITED;
	c->window = CC_NO_WINDOW;
	cfg->ops->init(c, now);
}
