/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/congestion.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "ioam.h"
#include "limits.h"
#include "number.h"
#include "refuse.h"

#define PROFILE "profile="
/* The line rate of a port whose speed is unknown. */
#define LINE 25e9

/* One item of the list. */
struct item {
	char text[64];
	char *value; /* after '='; NULL: none */
	bool is_cut; /* it was longer than that */
};

static const char *take_item(const char *at, struct item *item)
{
	size_t len = strcspn(at, ",");

	item->is_cut = len >= sizeof(item->text);
	snprintf(item->text, sizeof(item->text), "%.*s", (int)len, at);
	item->value = strchr(item->text, '=');
	if (item->value)
		*item->value++ = '\0';
	return at[len] ? at + len + 1 : NULL;
}

/* @return whether @p p belongs to the notification point; other parameters limit rates. */
static bool is_of_np(const struct cc_param *p)
{
	return !strncmp(p->name, "np_", 3);
}

static int set_param(struct congestion *c, const struct item *item, char *why, size_t why_size)
{
	int i = cc_find_param(c->cfg.ops, item->text);
	const struct cc_param *p;
	double value;

	if (i < 0)
		return refuse_in(why, why_size, -EINVAL,
			"%s has no parameter \"%s\": rocid(8) lists those that it has",
			c->reacts ? c->cfg.ops->name : "notify", item->text);
	p = &c->cfg.ops->params[i];
	if (!c->reacts && !is_of_np(p))
		return refuse_in(why, why_size, -EINVAL,
			"%s limits rates, but notify does not: leave it out, or use %s instead "
			"of notify",
			p->name, c->cfg.ops->name);
	if (!parse_decimal(item->value, &value) || !cc_config_set(&c->cfg, (unsigned)i, value))
		return refuse_in(why, why_size, -EINVAL,
			"%s is a %snumber from %.10g to %.10g, not %s", p->name,
			p->fraction ? "" : "whole ", p->or_zero ? 0 : p->min, p->max, item->value);
	return 0;
}

/* Lists the profiles of @p c, separated by commas. */
static const char *profiles(const struct congestion *c, char text[64])
{
	size_t len = 0;

	for (unsigned i = 0; i < c->cfg.ops->nprofiles && len < 64; i++)
		len += (size_t)snprintf(
			text + len, 64 - len, "%s%s", i ? ", " : "", c->cfg.ops->profiles[i]);
	return text;
}

static int set_profile(struct congestion *c, const struct item *item, char *why, size_t why_size)
{
	int profile = cc_find_profile(c->cfg.ops, item->value);
	char known[64];

	if (profile < 0)
		return refuse_in(why, why_size, -EINVAL,
			"there is no profile \"%s\": use one of %s", item->value,
			profiles(c, known));
	if (c->cfg.set)
		return refuse_in(why, why_size, -EINVAL, "put the profile before other parameters");
	cc_config_init(&c->cfg, c->cfg.ops, (unsigned)profile, c->cfg.line);
	return 0;
}

static int set_line(struct congestion *c, const struct item *item, char *why, size_t why_size)
{
	uint64_t line;

	if (!parse_rate(item->value, &line))
		return refuse_in(why, why_size, -EINVAL,
			"line is a rate from 1M to 1000G, such as 25G, not %s", item->value);
	c->line_given = true;
	cc_config_line(&c->cfg, (double)line);
	return 0;
}

static int set_burst(struct congestion *c, const struct item *item, char *why, size_t why_size)
{
	uint64_t burst;

	if (!parse_number(item->value, PACING_RUN, &burst) || !burst)
		return refuse_in(why, why_size, -EINVAL,
			"burst is a number of packets from 1 to %u, not %s", PACING_RUN,
			item->value);
	c->burst = (uint32_t)burst;
	return 0;
}

static const struct {
	const char *name;
	int (*set)(struct congestion *c, const struct item *item, char *why, size_t why_size);
} options[] = {
	{"profile", set_profile},
	{"line", set_line},
	{"burst", set_burst},
};

/* Line, CNPs and switches belong to a port. */
static bool is_of_port(const struct item *item)
{
	return !strcmp(item->text, "line") || !strcmp(item->text, "burst") ||
	       !strncmp(item->text, "np_", 3) || !strncmp(item->text, "fastcnp", 7);
}

static int set_item(struct congestion *c, const struct item *item, char *why, size_t why_size)
{
	int err;

	if (item->is_cut)
		return refuse_in(why, why_size, -EINVAL, "no parameter is as long as \"%.32s...\"",
			item->text);
	if (c->of_qp && is_of_port(item))
		return refuse_in(why, why_size, -EINVAL,
			"%s is the same for all queue pairs of a port: use \"set port PORT cc "
			"%s=...\"",
			item->text, item->text);
	if (!item->value)
		return refuse_in(
			why, why_size, -EINVAL, "\"%s\" is not PARAMETER=VALUE", item->text);
	for (unsigned i = 0; i < ARRAY_SIZE(options); i++)
		if (!strcmp(item->text, options[i].name))
			return options[i].set(c, item, why, why_size);
	err = switches_set(&c->switches, item->text, item->value, why, why_size);
	return err == -ENOENT ? set_param(c, item, why, why_size) : err;
}

void congestion_init(struct congestion *c)
{
	*c = (struct congestion){.burst = QUANTUM};
	cc_config_init(&c->cfg, &cc_dcqcn, 0, LINE);
	switches_init(&c->switches);
}

void congestion_port(struct congestion *c, uint32_t speed_mbps)
{
	if (!c->line_given)
		cc_config_line(&c->cfg, speed_mbps ? speed_mbps * 1e6 : LINE);
}

/* Accepts "off", "notify" or the name of an algorithm.  @return false: none of them */
static bool set_mode(struct congestion *c, const char *text)
{
	const struct cc_ops *ops = cc_find(text);

	c->on = ops || (!c->of_qp && !strcmp(text, "notify"));
	c->reacts = ops != NULL;
	if (ops)
		cc_config_init(&c->cfg, ops, 0, LINE);
	return c->on || !strcmp(text, "off");
}

/* Refuses @p text and names all algorithms. */
static int refuse_mode(const struct congestion *c, const char *text, char *why, size_t why_size)
{
	const struct cc_ops *ops;
	char names[128] = "";
	size_t len = 0;

	for (unsigned i = 0; (ops = cc_algorithm(i)) && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, ", %s", ops->name);
	return refuse_in(why, why_size, -EINVAL,
		"\"%.64s\" is not one of %s%s; all except %s may be followed by "
		",PARAMETER=VALUE...",
		text, c->of_qp ? "port, off" : "off, notify", names,
		c->of_qp ? "port and off" : "off");
}

static int set_items(struct congestion *c, const char *at, char *why, size_t why_size)
{
	struct item item;

	while (at) {
		int err;

		at = take_item(at, &item);
		err = set_item(c, &item, why, why_size);
		if (err)
			return err;
	}
	return switches_check(&c->switches, why, why_size);
}

static int parse_whole(struct congestion *c, const char *text, char *why, size_t why_size)
{
	struct item item;
	const char *at = take_item(text, &item);

	if (!set_mode(c, item.text) || item.value || (!c->on && at))
		return refuse_mode(c, text, why, why_size);
	return set_items(c, at, why, why_size);
}

int congestion_parse(struct congestion *c, const char *text, char *why, size_t why_size)
{
	congestion_init(c);
	return parse_whole(c, text, why, why_size);
}

int congestion_change(struct congestion *c, const char *text, char *why, size_t why_size)
{
	bool of_qp = c->of_qp;
	struct item item;

	take_item(text, &item);
	if (c->on && item.value)
		return set_items(c, text, why, why_size);
	congestion_init(c);
	c->of_qp = of_qp;
	return parse_whole(c, text, why, why_size);
}

/* Without an algorithm, the burst matters to rates that an administrator or a program sets, and the
 * line to an algorithm that is chosen later. */
static size_t of_port(const struct congestion *c, char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	if (c->reacts || c->line_given)
		len = (size_t)snprintf(text, size, ",line=%.0fM", c->cfg.line / 1e6);
	if (c->reacts || c->burst != QUANTUM)
		len += (size_t)snprintf(text + len, size - len, ",burst=%u", c->burst);
	return len;
}

const char *congestion_text(const struct congestion *c, char text[CONGESTION_TEXT])
{
	const struct cc_ops *ops = c->cfg.ops;
	size_t len;

	if (!c->on)
		return strcpy(text, "off");
	len = (size_t)snprintf(text, CONGESTION_TEXT, "%s," PROFILE "%s",
		c->reacts ? ops->name : "notify", ops->profiles[c->cfg.profile]);
	if (!c->of_qp)
		len += of_port(c, text + len, CONGESTION_TEXT - len);
	for (unsigned i = 0; i < ops->nparams; i++)
		if (is_of_np(&ops->params[i]) ? !c->of_qp : c->reacts)
			len += (size_t)snprintf(text + len, CONGESTION_TEXT - len, ",%s=%.10g",
				ops->params[i].name, c->cfg.value[i]);
	if (!c->of_qp)
		switches_text(&c->switches, text + len, CONGESTION_TEXT - len);
	return text;
}

uint32_t congestion_header(const struct congestion *c)
{
	return c->reacts && c->cfg.ops->wants_hops ? IOAM_LEN : 0;
}

bool congestion_options(const struct congestion *c)
{
	return c->switches.n || congestion_header(c);
}

int congestion_config(const struct congestion *c, const struct cc_config **config)
{
	struct cc_config *copy;

	*config = NULL;
	if (!c->reacts)
		return 0;
	copy = malloc(2 * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	copy[0] = c->cfg;
	cc_config_unacked(&copy[0], &copy[1]);
	*config = copy;
	return 0;
}

const struct cc_config *congestion_publish(
	const struct congestion *c, const struct cc_config *config, struct port *shared)
{
	unsigned dscp = (unsigned)cc_config_notice(&c->cfg, "np_cnp_dscp");
	unsigned ecn = (unsigned)cc_config_notice(&c->cfg, "np_cnp_ecn");
	uint32_t word = rcm_word((uint8_t)(dscp << 2 | ecn),
		(uint8_t)cc_config_notice(&c->cfg, "np_cnp_prio"),
		cc_config_notice(&c->cfg, "np_cnp_becn") > 0);

	atomic_store(&shared->cnp_interval,
		(uint32_t)(cc_config_notice(&c->cfg, "np_min_time_between_cnps") * 1000));
	atomic_store(&shared->burst, c->burst);
	atomic_store(&shared->rcm, c->on ? word : 0);
	return atomic_exchange_explicit(&shared->cc, config, memory_order_acq_rel);
}
