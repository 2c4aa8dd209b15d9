/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "metric.h"
#include "parse.h"
#include "suggest.h"

#define WORDS_MAX 40u
#define LINE_SIZE 512u
#define HOSTS_MAX 4096u

struct parser {
	struct scenario *s;
	const char *name;
	unsigned line;
	char *word[WORDS_MAX];
	unsigned words;
	struct setting *settings;
	unsigned nsettings;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int wrong(struct parser *p, const char *format, ...)
{
	va_list ap;
	int n = snprintf(p->why, p->why_size, "%s:%u: ", p->name, p->line);

	va_start(ap, format);
	if (n >= 0 && (size_t)n < p->why_size)
		vsnprintf(p->why + n, p->why_size - (size_t)n, format, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- settings: key=value ------------------------------------------------------------------ */

enum kind {
	KIND_WHOLE, /* uint64_t */
	KIND_BYTES, /* uint64_t */
	KIND_RATE,  /* uint64_t */
	KIND_TIME,  /* uint64_t */
	KIND_PART,  /* double */
	KIND_RANGE, /* two uint64_t: times, "0..1us" or "1us" */
	KIND_CHOICE /* bool: the second of two words */
};

struct key {
	const char *name;
	enum kind kind;
	void *to;
	double min, max;
	const char *choice[2];
};

static const enum unit unit_of[] = {
	[KIND_WHOLE] = UNIT_NONE,
	[KIND_BYTES] = UNIT_BYTES,
	[KIND_RATE] = UNIT_RATE,
	[KIND_TIME] = UNIT_TIME,
	[KIND_PART] = UNIT_PART,
	[KIND_RANGE] = UNIT_TIME,
};

static int set_choice(struct parser *p, const struct key *k, const char *value)
{
	for (unsigned i = 0; i < 2; i++) {
		if (!strcmp(value, k->choice[i])) {
			*(bool *)k->to = i;
			return 0;
		}
	}
	return wrong(p, "'%s=%s': it is %s or %s", k->name, value, k->choice[0], k->choice[1]);
}

static int set_number(struct parser *p, const struct key *k, const char *value)
{
	double v;

	if (!text_number(value, unit_of[k->kind], &v))
		return wrong(p, "'%s=%s' needs %s", k->name, value, text_what(unit_of[k->kind]));
	if (v < k->min || v > k->max) {
		char least[32], most[32];

		return wrong(p, "'%s=%s' must be from %s to %s", k->name, value,
			text_of(k->min, unit_of[k->kind], least, sizeof(least)),
			text_of(k->max, unit_of[k->kind], most, sizeof(most)));
	}
	if (k->kind == KIND_PART)
		*(double *)k->to = v;
	else
		*(uint64_t *)k->to = (uint64_t)(v + 0.5);
	return 0;
}

static int set_range(struct parser *p, const struct key *k, const char *value)
{
	uint64_t *to = k->to;
	char first[64];
	const char *dots = strstr(value, "..");
	double from, until;

	snprintf(first, sizeof(first), "%.*s", dots ? (int)(dots - value) : 63, value);
	if (!text_number(first, UNIT_TIME, &from) ||
		!text_number(dots ? dots + 2 : first, UNIT_TIME, &until) || from < 0 ||
		until < from)
		return wrong(p, "'%s=%s' needs a time, or two such as 0..1us", k->name, value);
	to[0] = (uint64_t)from;
	to[1] = (uint64_t)until;
	return 0;
}

static int set_key(struct parser *p, const struct key *k, const char *value)
{
	if (k->kind == KIND_CHOICE)
		return set_choice(p, k, value);
	if (k->kind == KIND_RANGE)
		return set_range(p, k, value);
	return set_number(p, k, value);
}

static int unknown_key(
	struct parser *p, const char *statement, const char *name, const struct key *keys, unsigned n)
{
	struct suggestion s;

	suggest_begin(&s, name);
	for (unsigned i = 0; i < n; i++)
		suggest_try(&s, keys[i].name);
	if (s.best)
		return wrong(p, "'%s' is not a setting of %s; did you mean '%s'?", name, statement,
			s.best);
	return wrong(p, "'%s' is not a setting of %s: see 'rocilab help'", name, statement);
}

static int set_named(struct parser *p, const char *statement, const char *name, const char *value,
	const struct key *keys, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(keys[i].name, name))
			return set_key(p, &keys[i], value);
	return unknown_key(p, statement, name, keys, n);
}

/* The words from @p first on, then what the command line says instead. */
static int set_all(struct parser *p, unsigned first, const struct key *keys, unsigned n)
{
	const char *statement = p->word[0];

	for (unsigned i = first; i < p->words; i++) {
		char *value = strchr(p->word[i], '=');
		int err;

		if (!value)
			return wrong(p, "'%s': %s takes settings such as %s=...", p->word[i],
				statement, keys[0].name);
		*value = '\0';
		err = set_named(p, statement, p->word[i], value + 1, keys, n);
		if (err)
			return err;
	}
	for (unsigned i = 0; i < p->nsettings; i++) {
		struct setting *s = &p->settings[i];

		if (strcmp(s->statement, statement))
			continue;
		s->used = true;
		if (set_named(p, statement, s->name, s->value, keys, n))
			return -EINVAL;
	}
	return 0;
}

/* --- statements ------------------------------------------------------------------------- */

static int on_title(struct parser *p)
{
	char *to = p->s->title;
	size_t room = sizeof(p->s->title);

	for (unsigned i = 1; i < p->words; i++) {
		int n = snprintf(to, room, "%s%s", i > 1 ? " " : "", p->word[i]);

		if ((size_t)n >= room)
			return wrong(p, "the title is longer than %zu characters",
				sizeof(p->s->title) - 1);
		to += n;
		room -= (size_t)n;
	}
	return 0;
}

static int on_verify(struct parser *p)
{
	if (p->words != 2 || (strcmp(p->word[1], "quick") && strcmp(p->word[1], "full")))
		return wrong(p, "verify is followed by quick or full");
	p->s->quick = p->word[1][0] == 'q';
	return 0;
}

static int on_topology(struct parser *p)
{
	uint64_t hosts = p->s->hosts;
	const struct key keys[] = {
		{"hosts", KIND_WHOLE, &hosts, 1, HOSTS_MAX, {0}},
		{"rate", KIND_RATE, &p->s->rate, 1e6, 1e12, {0}},
		{"receiver", KIND_RATE, &p->s->last, 1e6, 1e12, {0}},
		{"delay", KIND_TIME, &p->s->delay, 0, 1e9, {0}},
	};

	if (p->words < 2 || strcmp(p->word[1], "star"))
		return wrong(p, "'%s' is not a topology; there is: star",
			p->words < 2 ? "" : p->word[1]);
	if (set_all(p, 2, keys, ARRAY_SIZE(keys)))
		return -EINVAL;
	p->s->hosts = (uint32_t)hosts;
	return 0;
}

static int on_switch(struct parser *p)
{
	struct aqm_config *c = &p->s->aqm;
	const struct key keys[] = {
		{"mark", KIND_CHOICE, &c->ingress, 0, 0, {"egress", "ingress"}},
		{"kmin", KIND_BYTES, &c->kmin, 0, 1e12, {0}},
		{"kmax", KIND_BYTES, &c->kmax, 0, 1e12, {0}},
		{"pmax", KIND_PART, &c->pmax, 0, 1, {0}},
		{"buffer", KIND_BYTES, &c->limit, 0, 1e12, {0}},
	};

	if (set_all(p, 1, keys, ARRAY_SIZE(keys)))
		return -EINVAL;
	if (c->kmax && c->kmax <= c->kmin)
		return wrong(p, "kmax must be above kmin");
	return 0;
}

static int on_host(struct parser *p)
{
	struct scenario *s = p->s;
	const struct key keys[] = {
		{"mtu", KIND_WHOLE, &s->mtu, PATH_MTU_MIN, PATH_MTU_MAX, {0}},
		{"window", KIND_WHOLE, &s->window, 4, WINDOW_MAX, {0}},
		{"timeout", KIND_WHOLE, &s->timeout, 0, 31, {0}},
		{"retry", KIND_WHOLE, &s->retries, 0, 7, {0}},
		{"burst", KIND_WHOLE, &s->quantum, 1, QUANTUM, {0}},
		{"ip", KIND_CHOICE, &s->ip6, 0, 0, {"4", "6"}},
	};

	if (set_all(p, 1, keys, ARRAY_SIZE(keys)))
		return -EINVAL;
	if (s->mtu & (s->mtu - 1))
		return wrong(p, "mtu is one of 256, 512, 1024, 2048, 4096");
	return 0;
}

static int on_fault(struct parser *p)
{
	static const char *const kinds[] = {
		[FAULT_CNP] = "cnp", [FAULT_ACK] = "ack", [FAULT_DATA] = "data"};

	for (unsigned i = 0; p->words > 1 && i < FAULT_KINDS; i++) {
		const struct key key = {"loss", KIND_PART, &p->s->loss[i], 0, 1, {0}};

		if (!strcmp(p->word[1], kinds[i]))
			return set_all(p, 2, &key, 1);
	}
	return wrong(p, "a fault reads 'fault cnp loss=50%%'; there are: cnp, ack, data");
}

static int on_seed(struct parser *p)
{
	double v;

	if (p->words != 2 || !text_number(p->word[1], UNIT_NONE, &v) || v < 0 || v > 1e9)
		return wrong(p, "seed is followed by a whole number");
	p->s->seed = (uint64_t)v;
	return 0;
}

/* --- cc --------------------------------------------------------------------------------- */

static int unknown_word(struct parser *p, const char *what, const char *word,
	const char *(*known)(const struct cc_ops *ops, unsigned i), const struct cc_ops *ops)
{
	struct suggestion s;

	suggest_begin(&s, word);
	for (unsigned i = 0; known(ops, i); i++)
		suggest_try(&s, known(ops, i));
	if (s.best)
		return wrong(p, "'%s' is not %s; did you mean '%s'?", word, what, s.best);
	return wrong(p, "'%s' is not %s: see 'rocilab help'", word, what);
}

static const char *algorithm_name(const struct cc_ops *ops, unsigned i)
{
	return cc_algorithm(i) ? cc_algorithm(i)->name : NULL;
}

static const char *profile_name(const struct cc_ops *ops, unsigned i)
{
	return i < ops->nprofiles ? ops->profiles[i] : NULL;
}

static const char *param_name(const struct cc_ops *ops, unsigned i)
{
	return i < ops->nparams ? ops->params[i].name : NULL;
}

static int set_param(struct parser *p, const char *name, const char *value)
{
	struct cc_config *cc = &p->s->cc;
	int i = cc_find_param(cc->ops, name);
	double v;

	if (i < 0)
		return unknown_word(p, "a parameter of the algorithm", name, param_name, cc->ops);
	if (!text_number(value, UNIT_NONE, &v) || !cc_config_set(cc, (unsigned)i, v)) {
		const struct cc_param *row = &cc->ops->params[i];

		return wrong(p, "'%s=%s' needs a whole number from %.0f to %.0f%s%s%s", name, value,
			row->min, row->max, *row->unit ? " (" : "", row->unit,
			*row->unit ? ")" : "");
	}
	return 0;
}

static int set_cc(struct parser *p, const char *name, const char *value)
{
	struct cc_config *cc = &p->s->cc;
	int profile;

	if (strcmp(name, "profile"))
		return set_param(p, name, value);
	profile = cc_find_profile(cc->ops, value);
	if (profile < 0)
		return unknown_word(p, "a profile of the algorithm", value, profile_name, cc->ops);
	if (cc->set)
		return wrong(p, "profile comes before the parameters that differ from it");
	cc_config_init(cc, cc->ops, (unsigned)profile, cc->line);
	return 0;
}

static int on_cc(struct parser *p)
{
	struct cc_config *cc = &p->s->cc;
	const struct cc_ops *ops;

	if (p->words < 2)
		return wrong(p, "cc is followed by off or an algorithm");
	p->s->control = strcmp(p->word[1], "off") != 0;
	if (!p->s->control)
		return 0;
	ops = cc_find(p->word[1]);
	if (!ops)
		return unknown_word(p, "an algorithm", p->word[1], algorithm_name, NULL);
	cc_config_init(cc, ops, 0, (double)p->s->rate);
	for (unsigned i = 2; i < p->words; i++) {
		char *value = strchr(p->word[i], '=');

		if (!value)
			return wrong(p, "'%s': cc takes settings such as profile=...", p->word[i]);
		*value = '\0';
		if (set_cc(p, p->word[i], value + 1))
			return -EINVAL;
	}
	for (unsigned i = 0; i < p->nsettings; i++) {
		if (strcmp(p->settings[i].statement, "cc"))
			continue;
		p->settings[i].used = true;
		if (set_cc(p, p->settings[i].name, p->settings[i].value))
			return -EINVAL;
	}
	return 0;
}

/* --- flow, at, measure ------------------------------------------------------------------ */

static int flow_words(struct parser *p, struct flow_line *f)
{
	uint32_t same;

	if (p->words < 5 || strcmp(p->word[2], "->") || !text_range(p->word[1], &f->first, &f->last) ||
		!text_range(p->word[3], &f->to, &same) || same != f->to)
		return wrong(p, "a flow reads 'flow 0..7 -> 8 write size=1M repeat'");
	if (!strcmp(p->word[4], "write"))
		f->op = FLOW_WRITE;
	else if (!strcmp(p->word[4], "read"))
		f->op = FLOW_READ;
	else
		return wrong(p, "'%s' is not an operation; there are: write, read", p->word[4]);
	if (f->last > p->s->hosts || f->to > p->s->hosts)
		return wrong(p, "the topology has hosts 0..%u", p->s->hosts);
	if (f->to >= f->first && f->to <= f->last)
		return wrong(p, "host %u would send to itself", f->to);
	return 0;
}

static int on_flow(struct parser *p)
{
	struct flow_line f = {.qps = 1, .size = 1048576, .count = 1};
	uint64_t qps = 1;
	const struct key keys[] = {
		{"size", KIND_BYTES, &f.size, 1, 1ull << 30, {0}},
		{"count", KIND_WHOLE, &f.count, 1, 1e12, {0}},
		{"start", KIND_RANGE, f.start, 0, 0, {0}},
		{"qps", KIND_WHOLE, &qps, 1, 4096, {0}},
	};

	if (p->s->flow_lines == FLOW_LINES)
		return wrong(p, "there are more than %u flow statements", FLOW_LINES);
	if (flow_words(p, &f))
		return -EINVAL;
	for (unsigned i = 5; i < p->words; i++) {
		if (strcmp(p->word[i], "repeat"))
			continue;
		f.count = 0;
		memmove(&p->word[i], &p->word[i + 1], (--p->words - i) * sizeof(p->word[0]));
		i--;
	}
	if (set_all(p, 5, keys, ARRAY_SIZE(keys)))
		return -EINVAL;
	f.qps = (uint32_t)qps;
	p->s->flow[p->s->flow_lines++] = f;
	return 0;
}

static uint32_t flow_count(const struct scenario *s)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < s->flow_lines; i++)
		n += (s->flow[i].last - s->flow[i].first + 1) * s->flow[i].qps;
	return n;
}

static int flow_numbers(struct parser *p, const char *word, uint32_t *first, uint32_t *last)
{
	uint32_t n = flow_count(p->s);

	if (!text_range(word, first, last))
		return wrong(p, "'%s' is not the number of a flow, or two such as 2..7", word);
	if (*last >= n)
		return wrong(p, n ? "'%s': the flows so far are 0..%u" : "'%s': no flow precedes",
			word, n - 1);
	return 0;
}

static int on_at(struct parser *p)
{
	struct event_line e = {0};
	double at;

	if (p->words != 4 || !text_number(p->word[1], UNIT_TIME, &at) || at < 0)
		return wrong(p, "an event reads 'at 100ms stop 2..7' or 'at 1ms cnp 0'");
	if (!strcmp(p->word[2], "stop"))
		e.kind = EVENT_STOP;
	else if (!strcmp(p->word[2], "cnp"))
		e.kind = EVENT_CNP;
	else
		return wrong(p, "'%s' is not an event; there are: stop, cnp", p->word[2]);
	if (flow_numbers(p, p->word[3], &e.first, &e.last))
		return -EINVAL;
	if (p->s->events == EVENTS_MAX)
		return wrong(p, "there are more than %u events", EVENTS_MAX);
	e.at = (uint64_t)at;
	p->s->event[p->s->events++] = e;
	return 0;
}

static int on_measure(struct parser *p)
{
	uint64_t range[2];
	const struct key key = {"measure", KIND_RANGE, range, 0, 0, {0}};

	if (p->words != 2)
		return wrong(p, "measure is followed by a time such as 100ms..1100ms");
	if (set_range(p, &key, p->word[1]))
		return -EINVAL;
	if (range[1] <= range[0])
		return wrong(p, "the measurement has no length");
	p->s->from = range[0];
	p->s->to = range[1];
	return 0;
}

/* --- expect ----------------------------------------------------------------------------- */

/* "queue(sw0.8).mean" -> the name "queue.mean", and what is in parentheses. */
static int split_metric(struct parser *p, const char *word, char name[NAME_SIZE], char arg[NAME_SIZE])
{
	const char *open = strchr(word, '(');
	const char *close = open ? strchr(open, ')') : NULL;

	*arg = '\0';
	if (strlen(word) >= NAME_SIZE || (open && !close))
		return wrong(p, "'%s' does not read like 'queue(sw0.8).mean'", word);
	if (!open) {
		strcpy(name, word);
		return 0;
	}
	snprintf(name, NAME_SIZE, "%.*s%s", (int)(open - word), word, close + 1);
	snprintf(arg, NAME_SIZE, "%.*s", (int)(close - open - 1), open + 1);
	return 0;
}

static int find_port(struct parser *p, const char *arg, uint32_t *index)
{
	unsigned sw, port;
	int n = 0;

	if (sscanf(arg, "sw%u.%u%n", &sw, &port, &n) != 2 || arg[n] || sw || port > p->s->hosts)
		return wrong(p, "'%s' is not a port; the switch has sw0.0 to sw0.%u", arg,
			p->s->hosts);
	*index = port;
	return 0;
}

static int find_index(struct parser *p, const struct metric *m, const char *arg, uint32_t *index)
{
	uint32_t last;

	*index = METRIC_ALL;
	if (m->of == OF_ALL)
		return *arg ? wrong(p, "%s is of the whole network, without parentheses", m->name)
			    : 0;
	if (m->of == OF_PORT)
		return find_port(p, arg, index);
	if (m->of == OF_ANY_FLOW && !*arg)
		return 0;
	if (flow_numbers(p, arg, index, &last))
		return -EINVAL;
	return last == *index ? 0 : wrong(p, "%s is of one flow", m->name);
}

static int unknown_metric(struct parser *p, const char *name)
{
	struct suggestion s;

	suggest_begin(&s, name);
	for (unsigned i = 0; i < metric_count; i++)
		suggest_try(&s, metrics[i].name);
	if (s.best)
		return wrong(p, "'%s' is not measured; did you mean '%s'?", name, s.best);
	return wrong(p, "'%s' is not measured: see 'rocilab help'", name);
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
	if (i >= p->words || !text_number(p->word[i], e->metric->unit, &e->value))
		return wrong(p, "%s is expected to be %s", e->metric->name,
			text_what(e->metric->unit));
	i++;
	if (e->sign == EXPECT_NEAR && i < p->words)
		return tolerance(p, p->word[i++], e) || (i < p->words &&
			wrong(p, "'%s' is too much", p->word[i])) ? -EINVAL : 0;
	return i == p->words ? 0 : wrong(p, "'%s' is too much", p->word[i]);
}

static void keep_text(struct parser *p, struct expectation *e)
{
	size_t len = 0;

	for (unsigned i = 1; i < p->words && len < sizeof(e->text); i++)
		len += (size_t)snprintf(e->text + len, sizeof(e->text) - len, "%s%s",
			i > 1 ? " " : "", p->word[i]);
}

static int on_expect(struct parser *p)
{
	struct expectation e = {.line = p->line};
	char name[NAME_SIZE], arg[NAME_SIZE];
	unsigned next = 2;
	double at;

	if (p->words < 3)
		return wrong(p, "an expectation reads 'expect queue(sw0.8).mean 126K +-12%%'");
	if (p->s->expects == EXPECT_MAX)
		return wrong(p, "there are more than %u expectations", EXPECT_MAX);
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
			return wrong(p, "%s is of one moment: '%s at 104us ...'", name, p->word[1]);
		e.at = (uint64_t)at;
		next = 4;
	}
	keep_text(p, &e);
	if (expected(p, next, &e))
		return -EINVAL;
	p->s->expect[p->s->expects++] = e;
	return 0;
}

/* --- the text --------------------------------------------------------------------------- */

static const struct statement {
	const char *name;
	int (*read)(struct parser *p);
	const char *syntax;
	const char *help;
} statements[] = {
	{"title", on_title, "title WORDS", "what the scenario shows"},
	{"verify", on_verify, "verify quick|full", "'rocilab verify' runs it, with --quick or without"},
	{"topology", on_topology, "topology star hosts=8 rate=40G delay=1us [receiver=10G]",
		"hosts 0..7 and a receiver 8 at one switch, sw0; rate and delay of each link, and the rate "
		"of the receiver's"},
	{"switch", on_switch, "switch mark=egress|ingress kmin=5K kmax=200K pmax=1% buffer=0",
		"RED of each port, and bytes that may wait; 0: any number"},
	{"host", on_host, "host mtu=1024 window=128 timeout=14 retry=7 burst=1 ip=4|6",
		"path MTU, packets in flight, ACK timeout code, retries, packets of a limited flow that "
		"leave together"},
	{"cc", on_cc, "cc ALGORITHM|off [profile=NAME] [PARAMETER=VALUE ...]",
		"congestion control of all hosts"},
	{"fault", on_fault, "fault cnp|ack|data loss=50%", "what the switch loses by chance"},
	{"seed", on_seed, "seed 1", "of everything random"},
	{"flow", on_flow, "flow 0..7 -> 8 write|read size=1M [repeat | count=1] [start=0..1us] [qps=1]",
		"data from each host to one; with read, the receiver reads them. Flows are numbered from 0"},
	{"at", on_at, "at 100ms stop|cnp 2..7", "flows stop, or receive a CNP each"},
	{"measure", on_measure, "measure 100ms..1100ms", "when counters count; the end is the run's"},
	{"expect", on_expect, "expect NAME VALUE +-12% | NAME >= VALUE | NAME <= VALUE",
		"what must come out"},
};

static int read_line(struct parser *p, char *line)
{
	struct suggestion s;
	char *save = NULL;
	char *hash = strchr(line, '#');

	if (hash)
		*hash = '\0';
	p->words = 0;
	for (char *w = strtok_r(line, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
		if (p->words == WORDS_MAX)
			return wrong(p, "more than %u words", WORDS_MAX);
		p->word[p->words++] = w;
	}
	if (!p->words)
		return 0;
	suggest_begin(&s, p->word[0]);
	for (unsigned i = 0; i < ARRAY_SIZE(statements); i++) {
		if (!strcmp(p->word[0], statements[i].name))
			return statements[i].read(p);
		suggest_try(&s, statements[i].name);
	}
	if (s.best)
		return wrong(p, "'%s' is not a statement; did you mean '%s'?", p->word[0], s.best);
	return wrong(p, "'%s' is not a statement: see 'rocilab help'", p->word[0]);
}

static int complete(struct parser *p)
{
	const struct scenario *s = p->s;

	if (!s->hosts)
		return wrong(p, "there is no topology");
	if (!s->flow_lines)
		return wrong(p, "there is no flow");
	if (!s->to)
		return wrong(p, "there is no measure: how long is the run?");
	for (unsigned i = 0; i < p->nsettings; i++)
		if (!p->settings[i].used)
			return wrong(p, "--set %s.%s: the scenario has no %s statement",
				p->settings[i].statement, p->settings[i].name,
				p->settings[i].statement);
	cc_config_line(&p->s->cc, (double)s->rate);
	return 0;
}

int parse_scenario(struct scenario *s, const char *name, const char *text,
	struct setting *settings, unsigned n, char *why, size_t size)
{
	struct parser p = {.s = s,
		.name = name,
		.settings = settings,
		.nsettings = n,
		.why = why,
		.why_size = size};
	char line[LINE_SIZE];

	memset(s, 0, sizeof(*s));
	*s = (struct scenario){.rate = 40000000000ull,
		.delay = 1000,
		.mtu = 1024,
		.window = WINDOW_DEFAULT,
		.timeout = 14,
		.retries = 7,
		.quantum = 1,
		.seed = 1};
	cc_config_init(&s->cc, cc_algorithm(0), 0, (double)s->rate);
	while (*text) {
		size_t len = strcspn(text, "\n");

		p.line++;
		if (len >= sizeof(line))
			return wrong(&p, "the line is longer than %u characters", LINE_SIZE - 1);
		memcpy(line, text, len);
		line[len] = '\0';
		if (read_line(&p, line))
			return -EINVAL;
		text += len + (text[len] == '\n');
	}
	return complete(&p);
}

void parse_help(FILE *f)
{
	for (unsigned i = 0; i < ARRAY_SIZE(statements); i++)
		fprintf(f, "  %s\n      %s\n", statements[i].syntax, statements[i].help);
}
