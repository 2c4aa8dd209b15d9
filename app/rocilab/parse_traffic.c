/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow_file.h"
#include "lab.h"
#include "parse_impl.h"
#include "scenario.h"
#include "sizes.h"

static const char *const patterns[] = {[TRAFFIC_POISSON] = "poisson",
	[TRAFFIC_PERMUTATION] = "permutation",
	[TRAFFIC_ALL_TO_ALL] = "all-to-all",
	[TRAFFIC_FILE] = "file"};

static int read_pattern(struct parser *p, struct traffic_line *t)
{
	for (unsigned i = 0; p->words > 1 && i < ARRAY_SIZE(patterns); i++) {
		if (strcmp(p->word[1], patterns[i]))
			continue;
		t->pattern = i;
		return 0;
	}
	return wrong(p, "'%s' is not a pattern: use poisson, permutation, all-to-all or file",
		p->words > 1 ? p->word[1] : "");
}

/* Removes the word "NAME=..." from the words. @return the value, or NULL */
static const char *take_word(struct parser *p, const char *name)
{
	size_t len = strlen(name);

	for (unsigned i = 2; i < p->words; i++) {
		const char *word = p->word[i];

		if (strncmp(word, name, len) || word[len] != '=')
			continue;
		memmove(&p->word[i], &p->word[i + 1], (--p->words - i) * sizeof(p->word[0]));
		return word + len + 1;
	}
	return NULL;
}

/* The operation, before the settings. */
static void find_op(struct parser *p, struct flow_line *f)
{
	for (unsigned i = 2; i < p->words; i++) {
		if (!take_op(p->word[i], f))
			continue;
		memmove(&p->word[i], &p->word[i + 1], (--p->words - i) * sizeof(p->word[0]));
		i--;
	}
}

static int read_hosts(struct parser *p, struct flow_line *f)
{
	const char *hosts = take_word(p, "hosts");

	f->first = 0;
	f->last = p->s->net.hosts - 1;
	if (hosts && !text_range(hosts, &f->first, &f->last))
		return wrong(p, "'hosts=%s' needs hosts such as 0..7", hosts);
	if (f->last >= p->s->net.hosts)
		return wrong(p, "the topology has hosts 0..%u", p->s->net.hosts - 1);
	return f->first < f->last ? 0 : wrong(p, "traffic needs two hosts or more");
}

static int read_sizes(struct parser *p, struct traffic_line *t)
{
	const char *sizes = take_word(p, "sizes");
	char why[256];
	double bytes;

	t->sizes.bytes[0] = (double)t->line.size;
	if (!sizes)
		return 0;
	if (t->pattern != TRAFFIC_POISSON)
		return wrong(p, "sizes= is for poisson; %s has size=", patterns[t->pattern]);
	if (text_number(sizes, UNIT_BYTES, &bytes) && bytes >= 1 && bytes <= 1u << 30)
		t->sizes.bytes[0] = bytes;
	else if (sizes_read(&t->sizes, sizes, why, sizeof(why)))
		return wrong(p, "%s", why);
	return 0;
}

static int read_settings(struct parser *p, struct traffic_line *t)
{
	uint64_t qps = t->pattern == TRAFFIC_POISSON ? t->line.last - t->line.first + 1 : 1;
	const struct key poisson[] = {
		{"load", KIND_PART, &t->load, 0.0001, 2, {0}},
		{"qps", KIND_WHOLE, &qps, 1, 1000000, {0}},
		{"start", KIND_RANGE, t->line.start, 0, 0, {0}},
	};
	const struct key others[] = {
		{"size", KIND_BYTES, &t->line.size, 1, 1ull << 30, {0}},
		{"count", KIND_WHOLE, &t->line.count, 1, 1e12, {0}},
		{"qps", KIND_WHOLE, &qps, 1, 4096, {0}},
		{"start", KIND_RANGE, t->line.start, 0, 0, {0}},
		{"gap", KIND_TIME, &t->line.gap, 0, 1e9, {0}},
	};
	bool is_poisson = t->pattern == TRAFFIC_POISSON;

	if (set_all(p, 2, is_poisson ? poisson : others,
		    is_poisson ? ARRAY_SIZE(poisson) : ARRAY_SIZE(others)))
		return -EINVAL;
	t->line.qps = (uint32_t)qps;
	if (!is_poisson) {
		t->sizes.bytes[0] = (double)t->line.size;
		return 0;
	}
	t->line.size = 0; /* each message has its own */
	t->line.count = 0;
	if (t->line.start[1] <= t->line.start[0])
		return wrong(
			p, "poisson needs a time in which messages arrive, such as start=0..10ms");
	return t->load > 0 ? 0 : wrong(p, "poisson needs a load such as load=50%%");
}

/* "traffic file PATH", and settings. */
static int on_file(struct parser *p, struct traffic_line *t)
{
	uint64_t base = 0;
	const struct key keys[] = {{"base", KIND_TIME, &base, 0, 1e15, {0}}};

	if (p->words < 3 || strchr(p->word[2], '='))
		return wrong(p, "traffic file needs a path");
	if (set_all(p, 3, keys, ARRAY_SIZE(keys)) || flow_file_read(p, p->word[2], base, t))
		return -EINVAL;
	p->s->traffic_lines++;
	return 0;
}

int on_traffic(struct parser *p)
{
	struct traffic_line *t = &p->s->traffic[p->s->traffic_lines];

	if (!p->s->net.hosts)
		return wrong(p, "the topology must come before the traffic");
	if (p->s->traffic_lines == TRAFFIC_LINES)
		return wrong(p, "too many traffic statements: at most %u", TRAFFIC_LINES);
	*t = (struct traffic_line){.line = {.size = 1048576, .count = 1}};
	if (read_pattern(p, t))
		return -EINVAL;
	if (t->pattern == TRAFFIC_FILE)
		return on_file(p, t);
	if (read_hosts(p, &t->line) || read_sizes(p, t))
		return -EINVAL;
	find_op(p, &t->line);
	if (t->pattern == TRAFFIC_POISSON && t->line.op == FLOW_UD)
		return wrong(p,
			"a poisson message may need several packets, a datagram has one: use "
			"another operation");
	if (take_repeat(p, 2, &t->line.count) || read_settings(p, t))
		return -EINVAL;
	p->s->traffic_lines++;
	return 0;
}
