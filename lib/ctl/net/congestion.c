/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/congestion.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILE "profile="
#define LINE	25e9 /* no parameter of the notification point depends on it */

/* An item of the list, cut out. */
struct item {
	char text[64];
	char *value; /* after '='; NULL: there is none */
};

static int __attribute__((format(printf, 3, 4)))
complain(char *why, size_t why_size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, why_size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static const char *take_item(const char *at, struct item *item)
{
	size_t len = strcspn(at, ",");

	snprintf(item->text, sizeof(item->text), "%.*s", (int)len, at);
	item->value = strchr(item->text, '=');
	if (item->value)
		*item->value++ = '\0';
	return at[len] ? at + len + 1 : NULL;
}

/* Those of the notification point: rates are not limited yet. */
static bool is_of_np(const struct cc_param *p)
{
	return !strncmp(p->name, "np_", 3);
}

static int set_param(struct congestion *c, const struct item *item, char *why, size_t why_size)
{
	int i = cc_find_param(c->cfg.ops, item->text);
	const struct cc_param *p;
	char *end;
	double value;

	if (i < 0)
		return complain(why, why_size,
			"\"%s\" is no parameter: say profile, np_min_time_between_cnps, "
			"np_cnp_dscp, np_cnp_prio, np_cnp_ecn, np_cnp_becn, fastcnp, fastcnp_opt1, "
			"fastcnp_opt2, fastcnp_rate, fastcnp_rate_all or fastcnp_burst",
			item->text);
	p = &c->cfg.ops->params[i];
	if (!is_of_np(p))
		return complain(why, why_size,
			"%s belongs to the limiter of rates, which this rocid does not have: "
			"leave it out",
			p->name);
	value = strtod(item->value, &end);
	if (!*item->value || *end || !cc_config_set(&c->cfg, (unsigned)i, value))
		return complain(why, why_size, "%s is a whole number from %.0f to %.0f, not %s",
			p->name, p->or_zero ? 0 : p->min, p->max, item->value);
	return 0;
}

static int set_profile(struct congestion *c, const struct item *item, char *why, size_t why_size)
{
	int profile = cc_find_profile(c->cfg.ops, item->value);

	if (profile < 0)
		return complain(why, why_size,
			"there is no profile \"%s\": say paper, connectx or ns3hpcc", item->value);
	if (c->cfg.set)
		return complain(why, why_size, "say the profile before other parameters");
	cc_config_init(&c->cfg, c->cfg.ops, (unsigned)profile, LINE);
	return 0;
}

void congestion_init(struct congestion *c)
{
	c->on = false;
	cc_config_init(&c->cfg, &cc_dcqcn, 0, LINE);
	switches_init(&c->switches);
}

static int set_item(struct congestion *c, const struct item *item, char *why, size_t why_size)
{
	int err = switches_set(&c->switches, item->text, item->value, why, why_size);

	if (err != -ENOENT)
		return err;
	return strcmp(item->text, "profile") ? set_param(c, item, why, why_size)
					     : set_profile(c, item, why, why_size);
}

int congestion_parse(struct congestion *c, const char *text, char *why, size_t why_size)
{
	struct item item;
	const char *at = take_item(text, &item);

	congestion_init(c);
	c->on = !strcmp(item.text, "notify");
	if ((!c->on && strcmp(item.text, "off") != 0) || item.value || (!c->on && at))
		return complain(why, why_size,
			"\"%s\" is neither notify[,PARAMETER=VALUE...] nor off", text);
	while (at) {
		int err;

		at = take_item(at, &item);
		if (!item.value)
			return complain(why, why_size, "\"%s\" is not PARAMETER=VALUE", item.text);
		err = set_item(c, &item, why, why_size);
		if (err)
			return err;
	}
	return switches_check(&c->switches, why, why_size);
}

const char *congestion_text(const struct congestion *c, char text[CONGESTION_TEXT])
{
	const struct cc_ops *ops = c->cfg.ops;
	size_t len;

	if (!c->on)
		return strcpy(text, "off");
	len = (size_t)snprintf(
		text, CONGESTION_TEXT, "notify," PROFILE "%s", ops->profiles[c->cfg.profile]);
	for (unsigned i = 0; i < ops->nparams; i++)
		if (is_of_np(&ops->params[i]))
			len += (size_t)snprintf(text + len, CONGESTION_TEXT - len, ",%s=%.0f",
				ops->params[i].name, c->cfg.value[i]);
	switches_text(&c->switches, text + len, CONGESTION_TEXT - len);
	return text;
}

static double value_of(const struct congestion *c, const char *name)
{
	return c->cfg.value[cc_find_param(c->cfg.ops, name)];
}

void congestion_publish(const struct congestion *c, struct port *shared)
{
	unsigned dscp = (unsigned)value_of(c, "np_cnp_dscp");
	unsigned ecn = (unsigned)value_of(c, "np_cnp_ecn");
	uint32_t word = rcm_word((uint8_t)(dscp << 2 | ecn), (uint8_t)value_of(c, "np_cnp_prio"),
		value_of(c, "np_cnp_becn") > 0);

	atomic_store(
		&shared->cnp_interval, (uint32_t)(value_of(c, "np_min_time_between_cnps") * 1000));
	atomic_store(&shared->rcm, c->on ? word : 0);
}
