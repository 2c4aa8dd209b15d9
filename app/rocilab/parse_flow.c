/* SPDX-License-Identifier: BSD-3-Clause */
#include "parse_impl.h"
#include "lab.h"
#include "scenario.h"

static const char *const op_name[FLOW_OPS] = {
	[FLOW_WRITE] = "write", [FLOW_READ] = "read", [FLOW_SEND] = "send", [FLOW_UD] = "ud"};

bool take_op(const char *word, struct flow_line *f)
{
	for (unsigned i = 0; i < FLOW_OPS; i++) {
		if (strcmp(word, op_name[i]))
			continue;
		f->op = i;
		if (i == FLOW_UD)
			f->size = 0;
		return true;
	}
	return false;
}

int check_datagrams(struct parser *p, struct flow_line *f)
{
	if (f->op != FLOW_UD)
		return 0;
	if (!f->size)
		f->size = p->s->mtu;
	return f->size <= p->s->mtu
		       ? 0
		       : wrong(p, "a datagram has at most the MTU, %u bytes: size=%llu",
				 (unsigned)p->s->mtu, (unsigned long long)f->size);
}

static int unknown_op(struct parser *p, const char *word)
{
	struct suggestion s;

	suggest_begin(&s, word);
	for (unsigned i = 0; i < FLOW_OPS; i++)
		suggest_try(&s, op_name[i]);
	if (s.best)
		return wrong(p, "'%s' is not an operation; did you mean '%s'?", word, s.best);
	return wrong(p, "'%s' is not an operation: use write, read, send or ud", word);
}

static int flow_words(struct parser *p, struct flow_line *f)
{
	uint32_t same;

	if (p->words < 5 || strcmp(p->word[2], "->") ||
		!text_range(p->word[1], &f->first, &f->last) ||
		!text_range(p->word[3], &f->to, &same) || same != f->to)
		return wrong(p, "a flow looks like 'flow 0..7 -> 8 write size=1M repeat'");
	if (!take_op(p->word[4], f))
		return unknown_op(p, p->word[4]);
	if (!p->s->net.hosts)
		return wrong(p, "the topology must come before the flows");
	if (f->last >= p->s->net.hosts || f->to >= p->s->net.hosts)
		return wrong(p, "the topology has hosts 0..%u", p->s->net.hosts - 1);
	if (f->to >= f->first && f->to <= f->last)
		return wrong(p, "host %u would send to itself", f->to);
	return 0;
}

int take_repeat(struct parser *p, unsigned first, uint64_t *count)
{
	bool repeat = false, counted = false;

	for (unsigned i = first; i < p->words; i++) {
		counted |= !strncmp(p->word[i], "count=", 6);
		if (strcmp(p->word[i], "repeat"))
			continue;
		repeat = true;
		memmove(&p->word[i], &p->word[i + 1], (--p->words - i) * sizeof(p->word[0]));
		i--;
	}
	if (repeat && counted)
		return wrong(p, "repeat never ends: leave out either repeat or count=");
	if (repeat)
		*count = 0;
	return 0;
}

int on_flow(struct parser *p)
{
	struct flow_line f = {.text_line = p->line, .qps = 1, .size = 1048576, .count = 1};
	uint64_t qps = 1;
	const struct key keys[] = {
		{"size", KIND_BYTES, &f.size, 1, 1ull << 30, {0}},
		{"count", KIND_WHOLE, &f.count, 1, 1e12, {0}},
		{"start", KIND_RANGE, f.start, 0, 0, {0}},
		{"qps", KIND_WHOLE, &qps, 1, 4096, {0}},
		{"gap", KIND_TIME, &f.gap, 0, 1e9, {0}},
	};

	if (p->s->flow_lines == FLOW_LINES)
		return wrong(p, "too many flow statements: at most %u", FLOW_LINES);
	if (flow_words(p, &f))
		return -EINVAL;
	if (take_repeat(p, 5, &f.count) || set_all(p, 5, keys, ARRAY_SIZE(keys)))
		return -EINVAL;
	f.qps = (uint32_t)qps;
	p->s->flow[p->s->flow_lines++] = f;
	return 0;
}

int flow_numbers(struct parser *p, const char *word, uint32_t *first, uint32_t *last)
{
	uint32_t n = place_count(p->s);

	if (!text_range(word, first, last))
		return wrong(p, "'%s' is neither a flow number nor a range such as 2..7", word);
	if (*last >= n)
		return wrong(p,
			n ? "'%s': the flows so far are 0..%u"
			  : "'%s': no flow comes before this line",
			word, n - 1);
	return 0;
}

int on_at(struct parser *p)
{
	struct event_line e = {.line = p->line};
	double at;

	if (p->words != 4 || !text_number(p->word[1], UNIT_TIME, &at) || at < 0)
		return wrong(p, "an event looks like 'at 100ms stop 2..7' or 'at 1ms cnp 0'");
	if (!strcmp(p->word[2], "stop"))
		e.kind = EVENT_STOP;
	else if (!strcmp(p->word[2], "cnp"))
		e.kind = EVENT_CNP;
	else
		return wrong(p, "'%s' is not an event: use stop or cnp", p->word[2]);
	if (flow_numbers(p, p->word[3], &e.first, &e.last))
		return -EINVAL;
	if (p->s->events == EVENTS_MAX)
		return wrong(p, "too many events: at most %u", EVENTS_MAX);
	e.at = (uint64_t)at;
	p->s->event[p->s->events++] = e;
	return 0;
}
