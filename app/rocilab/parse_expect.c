/* SPDX-License-Identifier: BSD-3-Clause */
#include "metric.h"
#include "network.h"
#include "parse_impl.h"
#include "scenario.h"

/* "queue(sw0.8).mean" -> the name "queue.mean", and what is in parentheses. */
static int split_metric(
	struct parser *p, const char *word, char name[NAME_SIZE], char arg[NAME_SIZE])
{
	const char *open = strchr(word, '(');
	const char *close = open ? strchr(open, ')') : NULL;

	*arg = '\0';
	if (strlen(word) >= NAME_SIZE || (open && !close))
		return wrong(p, "'%s' is not a metric such as 'queue(sw0.8).mean'", word);
	if (!open) {
		strcpy(name, word);
		return 0;
	}
	snprintf(name, NAME_SIZE, "%.*s%s", (int)(open - word), word, close + 1);
	snprintf(arg, NAME_SIZE, "%.*s", (int)(close - open - 1), open + 1);
	return 0;
}

/* "sw0", or "8" for a host: a node. */
static bool find_node(const struct network *n, const char *word, uint32_t *node)
{
	bool is_switch = !strncmp(word, "sw", 2);
	uint32_t last;

	if (!text_range(word + 2 * is_switch, node, &last) || last != *node ||
		last >= (is_switch ? n->switches : n->hosts))
		return false;
	*node += is_switch * n->hosts;
	return true;
}

/* "sw0" and "sw1", or "8": the port of the one by which the other is reached. */
static bool find_toward(
	const struct network *n, const char *from, const char *to, uint32_t *sw, uint32_t *port)
{
	uint32_t a, b;

	if (!find_node(n, from, &a) || !find_node(n, to, &b) || a < n->hosts)
		return false;
	*sw = a - n->hosts;
	for (*port = 0; *port < net_ports(n, *sw); (*port)++)
		if (net_peer(n, *sw, *port) == b)
			return true;
	return false;
}

static int find_port(struct parser *p, const char *arg, uint32_t *index)
{
	const struct network *n = &p->s->net;
	const char *arrow = strstr(arg, "->");
	uint32_t sw, port;
	char from[NAME_SIZE];

	snprintf(from, sizeof(from), "%.*s", arrow ? (int)(arrow - arg) : 0, arg);
	if (arrow && !find_toward(n, from, arrow + 2, &sw, &port))
		return wrong(p, "'%s' is not a cable of a switch, such as sw0->8 or sw0->sw1", arg);
	if (!arrow && !net_port_named(n, arg, &sw, &port))
		return wrong(p,
			"'%s' is not a port; switches are sw0 to sw%u, and sw0 has the ports "
			"sw0.0 to sw0.%u",
			arg, n->switches - 1, net_ports(n, 0) - 1);
	*index = port;
	for (uint32_t i = 0; i < sw; i++)
		*index += net_ports(n, i);
	return 0;
}

/* Reports how a metric of a port or of a flow is written. */
static int of_one(struct parser *p, const struct metric *m)
{
	int base = (int)strcspn(m->name, ".");
	bool port = m->of == OF_PORT;

	return wrong(p, "%s needs a %s, such as %.*s(%s)%s", m->name, port ? "port" : "flow", base,
		m->name, port ? "sw0.0" : "0", m->name + base);
}

static int find_index(struct parser *p, const struct metric *m, const char *arg, uint32_t *index)
{
	uint32_t last;

	*index = METRIC_ALL;
	if (m->of == OF_ALL)
		return *arg ? wrong(p, "%s is for the whole network: remove the parentheses",
				      m->name)
			    : 0;
	if (!*arg && m->of != OF_ANY_FLOW)
		return of_one(p, m);
	if (m->of == OF_PORT)
		return find_port(p, arg, index);
	if (m->of == OF_ANY_FLOW && !*arg)
		return 0;
	if (flow_numbers(p, arg, index, &last))
		return -EINVAL;
	return last == *index ? 0 : wrong(p, "%s is for one flow", m->name);
}

static int unknown_metric(struct parser *p, const char *name)
{
	struct suggestion s;

	suggest_begin(&s, name);
	for (unsigned i = 0; i < metric_count; i++)
		suggest_try(&s, metrics[i].name);
	if (s.best)
		return wrong(p, "'%s' is not a metric; did you mean '%s'?", name, s.best);
	return wrong(p, "'%s' is not a metric: see 'rocilab help'", name);
}

/* "+-12%": a part of the value; "+-5K": in its unit. */
static int tolerance(struct parser *p, const char *word, struct expectation *e)
{
	double v;

	if (strncmp(word, "+-", 2))
		return wrong(p, "'%s': a tolerance begins with +-", word);
	if (strchr(word, '%') && text_number(word + 2, UNIT_PART, &v))
		e->tolerance = v * (e->value < 0 ? -e->value : e->value);
	else if (text_number(word + 2, e->metric->unit, &v))
		e->tolerance = v;
	else
		return wrong(p, "'%s' is not a tolerance such as +-12%%", word);
	return 0;
}

static int expected(struct parser *p, unsigned i, struct expectation *e)
{
	if (i < p->words && !strcmp(p->word[i], ">="))
		e->sign = EXPECT_LEAST;
	else if (i < p->words && !strcmp(p->word[i], "<="))
		e->sign = EXPECT_MOST;
	else
		e->sign = EXPECT_NEAR;
	i += e->sign != EXPECT_NEAR;
	if (i < p->words && strspn(p->word[i], "=<>"))
		return wrong(p, "'%s' is unknown: use %s VALUE +-12%%, %s >= VALUE or %s <= VALUE",
			p->word[i], e->metric->name, e->metric->name, e->metric->name);
	if (i >= p->words || !text_number(p->word[i], e->metric->unit, &e->value))
		return wrong(p, "the value of %s must be %s", e->metric->name,
			text_what(e->metric->unit));
	i++;
	if (e->sign == EXPECT_NEAR && i < p->words)
		return tolerance(p, p->word[i++], e) ||
				       (i < p->words && wrong(p, "'%s' is unexpected", p->word[i]))
			       ? -EINVAL
			       : 0;
	return i == p->words ? 0 : wrong(p, "'%s' is unexpected", p->word[i]);
}

static void keep_text(struct parser *p, struct expectation *e)
{
	size_t len = 0;

	for (unsigned i = 1; i < p->words && len < sizeof(e->text); i++)
		len += (size_t)snprintf(
			e->text + len, sizeof(e->text) - len, "%s%s", i > 1 ? " " : "", p->word[i]);
}

int on_expect(struct parser *p)
{
	struct expectation e = {.line = p->line};
	char name[NAME_SIZE], arg[NAME_SIZE];
	unsigned next = 2;
	double at;

	if (p->words < 3)
		return wrong(p, "an expectation looks like 'expect queue(sw0.8).mean 126K +-12%%'");
	if (p->s->expects == EXPECT_MAX)
		return wrong(p, "too many expectations: at most %u", EXPECT_MAX);
	if (split_metric(p, p->word[1], name, arg))
		return -EINVAL;
	e.metric = metric_find(name);
	if (!e.metric)
		return unknown_metric(p, name);
	if (find_index(p, e.metric, arg, &e.index))
		return -EINVAL;
	if (e.metric->moment) {
		if (p->words < 5 || strcmp(p->word[2], "at") ||
			!text_number(p->word[3], UNIT_TIME, &at) || at < 0)
			return wrong(p, "%s needs a time: '%s at 104us ...'", name, p->word[1]);
		e.at = (uint64_t)at;
		next = 4;
	}
	keep_text(p, &e);
	if (expected(p, next, &e))
		return -EINVAL;
	p->s->expect[p->s->expects++] = e;
	return 0;
}
