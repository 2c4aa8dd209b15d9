/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network in the format of HPCC's simulator: the numbers of nodes, switches and cables; the
 * numbers of the nodes that are switches; then per cable its two nodes, rate ("100Gbps"), delay
 * ("1us" or "0.001ms") and error rate, which must be 0. All other nodes are hosts.
 */
#include <ctype.h>
#include <stdarg.h>
#include "network.h"
#include "number.h"
#include "parse_impl.h"
#include "scenario.h"

#define WORD_SIZE 32u
#define NODES_MAX (HOSTS_MAX + SWITCHES_MAX)

struct reader {
	struct parser *p;
	const char *path;
	FILE *f;
	unsigned line; /* of the last word */
	uint32_t nodes;
	uint32_t number[NODES_MAX]; /* in our order */
	bool is_switch[NODES_MAX];
};

static int bad(struct reader *r, const char *format, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	return wrong(r->p, "%s:%u: %s", r->path, r->line, what);
}

/* The next word, truncated if necessary. */
static int next(struct reader *r, char word[WORD_SIZE])
{
	size_t n = 0;
	int c = fgetc(r->f);

	for (; c != EOF && isspace(c); c = fgetc(r->f))
		r->line += c == '\n';
	for (; c != EOF && !isspace(c); c = fgetc(r->f))
		if (n < WORD_SIZE - 1)
			word[n++] = (char)c;
	word[n] = '\0';
	if (c != EOF)
		ungetc(c, r->f);
	return n ? 0 : bad(r, "it ends too early: is a line, or a part of one, missing?");
}

static int number(struct reader *r, uint32_t most, uint32_t *to)
{
	uint64_t v;
	char word[WORD_SIZE];

	*to = 0;
	if (next(r, word))
		return -EINVAL;
	if (!parse_in_base(word, 10, most, &v))
		return bad(r, "'%s' is not a number up to %u", word, most);
	*to = (uint32_t)v;
	return 0;
}

/* "100Gbps" as "100G". */
static int rate(struct reader *r, uint64_t *to)
{
	char word[WORD_SIZE];
	double v;
	char *unit;

	if (next(r, word))
		return -EINVAL;
	unit = strstr(word, "bps");
	if (unit)
		*unit = '\0';
	if (!text_number(word, UNIT_RATE, &v) || v < 1e6 || v > 1e13)
		return bad(r, "'%s' is not a rate such as 100Gbps", word);
	*to = (uint64_t)v;
	return 0;
}

static int delay(struct reader *r, uint64_t *to)
{
	char word[WORD_SIZE];
	double v;

	if (next(r, word))
		return -EINVAL;
	if (!text_number(word, UNIT_TIME, &v) || v < 0 || v > 1e9)
		return bad(r, "'%s' is not a delay such as 1us", word);
	*to = (uint64_t)(v + 0.5);
	return 0;
}

static int cable(struct reader *r)
{
	struct network *n = &r->p->s->net;
	struct net_link l = {0};
	uint32_t a, b;
	char loss[WORD_SIZE];
	double part;

	if (number(r, r->nodes - 1, &a) || number(r, r->nodes - 1, &b) || rate(r, &l.rate) ||
		delay(r, &l.delay) || next(r, loss))
		return -EINVAL;
	if (!parse_decimal(loss, &part) || part > 0)
		return bad(r, "the error rate of a cable must be 0: see 'impair'");
	if (a == b || (!r->is_switch[a] && !r->is_switch[b]))
		return bad(r, "a cable needs two nodes, and one of them a switch");
	l.a = r->is_switch[a] ? b : a; /* hosts first */
	l.b = r->is_switch[a] ? a : b;
	if (!r->is_switch[l.a] && net_cable(n, r->number[l.a]))
		return bad(r, "node %u, a host, has more than one cable", l.a);
	if (!net_join(n, r->number[l.a], r->number[l.b], l.rate, l.delay))
		return bad(r, "it has too many cables");
	return 0;
}

static int switches(struct reader *r, uint32_t count)
{
	struct network *n = &r->p->s->net;
	uint32_t sw = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t node;

		if (number(r, r->nodes - 1, &node))
			return -EINVAL;
		if (r->is_switch[node])
			return bad(r, "node %u is listed as a switch twice", node);
		r->is_switch[node] = true;
	}
	n->switches = count;
	n->hosts = 0;
	for (uint32_t i = 0; i < r->nodes; i++)
		if (!r->is_switch[i])
			r->number[i] = n->hosts++;
	for (uint32_t i = 0; i < r->nodes; i++)
		if (r->is_switch[i])
			r->number[i] = n->hosts + sw++;
	if (!n->hosts || n->hosts > HOSTS_MAX || count > SWITCHES_MAX)
		return bad(r, "it has too many hosts or switches, or no host");
	return 0;
}

static int read_all(struct reader *r)
{
	const struct network *n = &r->p->s->net;
	uint32_t count, cables;

	if (number(r, NODES_MAX, &r->nodes) || number(r, r->nodes, &count) ||
		number(r, LINKS_MAX, &cables) || switches(r, count))
		return -EINVAL;
	for (uint32_t i = 0; i < cables; i++)
		if (cable(r))
			return -EINVAL;
	for (uint32_t i = 0; i < n->hosts; i++)
		if (!net_cable(n, i))
			return bad(r, "host %u has no cable", i);
	return 0;
}

int network_file(struct parser *p, const char *path)
{
	static struct reader r;
	int err;

	memset(&r, 0, sizeof(r));
	r.p = p;
	r.path = path;
	r.line = 1;
	r.f = fopen(path, "r");
	if (!r.f)
		return wrong(p, "%s: %s", path, strerror(errno));
	err = read_all(&r);
	fclose(r.f);
	p->node = r.number;
	p->nodes = r.nodes;
	return err;
}
