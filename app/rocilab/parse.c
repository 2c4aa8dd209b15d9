/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc.h"
#include "flow_file.h"
#include "limits.h"
#include "parse_impl.h"
#include "scenario.h"

#define LINE_SIZE 512u

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
		return wrong(p, "verify needs quick or full");
	p->s->quick = p->word[1][0] == 'q';
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
		return wrong(p, "mtu must be 256, 512, 1024, 2048 or 4096");
	return 0;
}

static bool has_word(const struct parser *p, const char *begin)
{
	for (unsigned i = 1; i < p->words; i++)
		if (!strncmp(p->word[i], begin, strlen(begin)))
			return true;
	return false;
}

static int on_impair(struct parser *p)
{
	static const char *const kinds[] = {
		[FRAME_CNP] = "cnp", [FRAME_ACK] = "ack", [FRAME_DATA] = "data"};
	struct suggestion s;

	if (p->words > 2 && has_word(p, "late=") && !has_word(p, "delay="))
		return wrong(p, "late= is the fraction that delay= makes late: add one such as "
				"delay=1ms");
	for (unsigned i = 0; p->words > 2 && i < FRAME_KINDS; i++) {
		struct impair_line *f = &p->s->impair[i];
		const struct key keys[] = {
			{"loss", KIND_PART, &f->loss, 0, 1, {0}},
			{"duplicate", KIND_PART, &f->duplicate, 0, 1, {0}},
			{"delay", KIND_TIME, &f->delay, 0, 1e9, {0}},
			{"late", KIND_PART, &f->late, 0, 1, {0}},
		};

		if (!strcmp(p->word[1], kinds[i]))
			return set_all(p, 2, keys, ARRAY_SIZE(keys));
	}
	suggest_begin(&s, p->words > 1 ? p->word[1] : "");
	for (unsigned i = 0; i < FRAME_KINDS; i++)
		suggest_try(&s, kinds[i]);
	if (s.best && strcmp(s.best, p->word[1]))
		return wrong(
			p, "'%s' is not a kind of frame; did you mean '%s'?", p->word[1], s.best);
	return wrong(p, "an impairment looks like 'impair cnp loss=50%%', for cnp, ack or data");
}

static int on_seed(struct parser *p)
{
	double v;

	if (p->words != 2 || !text_number(p->word[1], UNIT_NONE, &v) || v < 0 || v > 1e9)
		return wrong(p, "seed needs a whole number");
	p->s->seed = (uint64_t)v;
	return 0;
}

static int on_measure(struct parser *p)
{
	uint64_t range[2];
	const struct key key = {"measure", KIND_RANGE, range, 0, 0, {0}};

	if (p->words != 2)
		return wrong(p, "measure needs a time such as 100ms..1100ms");
	if (set_key(p, &key, p->word[1]))
		return -EINVAL;
	if (range[1] <= range[0])
		return wrong(p, "the measurement is empty: for a run of 5 ms, 'measure 0..5ms'");
	p->s->from = range[0];
	p->s->to = range[1];
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
	{"verify", on_verify, "verify quick|full",
		"'rocilab verify' runs it, with --quick or without"},
	{"topology", on_topology, "topology NAME rate=40G delay=1us [KEY=VALUE ...]",
		"the network, and rate and delay of each cable; the topologies:"},
	{"switch", on_switch, "switch mark=egress|ingress kmin=5K kmax=200K pmax=1% buffer=0",
		"RED of each port, and the size of its queue in bytes; 0: unlimited"},
	{"switch", on_switch, "switch shared=12M alpha=1 xoff=100K xon=90K headroom=0",
		"the buffer of a switch, a queue's share of the unused part, and PFC of each port"},
	{"switch", on_switch, "switch fastcnp=50us",
		"a Fast CNP to the source instead of a mark, one per flow in that time; 0: none"},
	{"host", on_host, "host mtu=1024 window=128 timeout=14 retry=7 burst=1 ip=4|6",
		"path MTU, packets in flight, ACK timeout code, retries, packets of a limited flow "
		"that "
		"leave together"},
	{"cc", on_cc, "cc ALGORITHM|off [profile=NAME] [PARAMETER=VALUE ...]",
		"congestion control of all hosts; the algorithms:"},
	{"impair", on_impair, "impair cnp|ack|data loss=50% duplicate=1% delay=1ms late=10%",
		"frames of hosts that are lost, arrive twice, or arrive late"},
	{"seed", on_seed, "seed 1", "the seed of all random choices"},
	{"flow", on_flow,
		"flow 0..7 -> 8 write|read|send|ud size=1M [repeat | count=1] [start=0..1us] "
		"[qps=1] "
		"[gap=0us]",
		"data from each host to one; with read, the receiver reads it; with gap, a pause "
		"follows each message. Flows are numbered from 0"},
	{"traffic", on_traffic,
		"traffic poisson load=50% sizes=websearch|hadoop|FILE|1M start=0..10ms [qps=N] "
		"[hosts=0..7] [read]",
		"messages arrive at random at N QPs between random hosts, so that each host sends "
		"that fraction of its rate"},
	{"traffic", on_traffic,
		"traffic permutation|all-to-all size=1M [repeat | count=1] [start=0..1us] [qps=1] "
		"[gap=0us] [hosts=0..7] [read|send|ud]",
		"each host sends to one other, chosen at random, or to all others"},
	{"traffic", on_traffic, "traffic file PATH [base=2s]",
		"the flows of a file of HPCC's simulator; the run begins at the file's time "
		"'base'"},
	{"at", on_at, "at 100ms stop|cnp 2..7", "flows stop, or each receives a CNP"},
	{"measure", on_measure, "measure 100ms..1100ms",
		"the period that is measured; its end is the end of the run"},
	{"expect", on_expect, "expect NAME VALUE +-12% | NAME >= VALUE | NAME <= VALUE",
		"an expected result"},
};

/* A second one would silently replace the first. */
static bool is_once(const struct statement *s)
{
	return s->read == on_title || s->read == on_verify || s->read == on_topology ||
	       s->read == on_cc || s->read == on_seed || s->read == on_measure;
}

static int read_statement(struct parser *p, unsigned i)
{
	if (is_once(&statements[i]) && p->seen & 1u << i)
		return wrong(p, "there is already a %s", statements[i].name);
	p->seen |= 1u << i;
	return statements[i].read(p);
}

static int unknown_statement(struct parser *p, const char *name)
{
	struct suggestion s;

	suggest_begin(&s, name);
	for (unsigned i = 0; i < ARRAY_SIZE(statements); i++)
		suggest_try(&s, statements[i].name);
	if (!strcmp(name, "fault")) /* rocid has faults of QPs, but impairs links */
		s.best = "impair";
	if (s.best)
		return wrong(p, "'%s' is not a statement; did you mean '%s'?", name, s.best);
	return wrong(p, "'%s' is not a statement: see 'rocilab help'", name);
}

static int read_line(struct parser *p, char *line)
{
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
	for (unsigned i = 0; i < ARRAY_SIZE(statements); i++)
		if (!strcmp(p->word[0], statements[i].name))
			return read_statement(p, i);
	return unknown_statement(p, p->word[0]);
}

/* Applies --set to optional statements that the scenario does not have. */
static int set_absent(struct parser *p)
{
	char host[] = "host", sw[] = "switch";
	struct {
		char *name;
		int (*read)(struct parser *p);
	} may[] = {{host, on_host}, {sw, on_switch}};

	for (unsigned i = 0; i < p->nsettings; i++)
		for (unsigned k = 0; k < ARRAY_SIZE(may); k++) {
			if (p->settings[i].used || strcmp(p->settings[i].statement, may[k].name))
				continue;
			p->word[0] = may[k].name;
			p->words = 1;
			if (may[k].read(p))
				return -EINVAL;
		}
	return 0;
}

/* Every --set must have been used. */
static int check_settings(struct parser *p)
{
	for (unsigned i = 0; i < p->nsettings; i++) {
		const struct setting *set = &p->settings[i];
		unsigned k = 0;

		if (set->used)
			continue;
		while (k < ARRAY_SIZE(statements) && strcmp(set->statement, statements[k].name))
			k++;
		if (k == ARRAY_SIZE(statements))
			return unknown_statement(p, set->statement);
		return wrong(p, "--set %s.%s: the scenario has no %s statement with settings",
			set->statement, set->name, set->statement);
	}
	return 0;
}

/* Nothing after the end of the run would have an effect. */
static int check_times(struct parser *p)
{
	const struct scenario *s = p->s;
	char end[32];

	text_of((double)s->to, UNIT_TIME, end, sizeof(end));
	for (unsigned i = 0; i < s->events; i++) {
		p->line = s->event[i].line;
		if (s->event[i].at >= s->to)
			return wrong(p, "the event comes after the end of the run, %s", end);
	}
	for (unsigned i = 0; i < s->expects; i++) {
		p->line = s->expect[i].line;
		if (s->expect[i].at > s->to)
			return wrong(p, "that moment comes after the end of the run, %s", end);
	}
	for (unsigned i = 0; i < s->flow_lines; i++) {
		p->line = s->flow[i].text_line;
		if (s->flow[i].start[0] >= s->to)
			return wrong(p, "the flow starts after the end of the run, %s", end);
	}
	return 0;
}

static int complete(struct parser *p)
{
	const struct scenario *s = p->s;

	if (set_absent(p))
		return -EINVAL;
	if (!s->net.hosts)
		return wrong(p, "there is no topology: add one such as "
				"'topology star hosts=8 rate=40G delay=1us'");
	if (!s->flow_lines && !s->traffic_lines)
		return wrong(p, "there is neither a flow nor traffic: add one such as "
				"'flow 0 -> 1 write size=1Mi repeat'");
	if (!s->to)
		return wrong(p, "there is no measure, so the run has no end: add one such as "
				"'measure 10ms..50ms'");
	if (check_settings(p))
		return -EINVAL;
	if (s->fastcnp && !s->ip6)
		return wrong(p, "fastcnp needs 'host ip=6': Fast CNPs are IPv6 packets");
	if (s->control && s->cc.ops->wants_hops && !s->ip6)
		return wrong(p, "cc %s needs 'host ip=6': switches write into an IPv6 header",
			s->cc.ops->name);
	cc_config_line(&p->s->cc, (double)s->rate);
	for (unsigned i = 0; i < s->flow_lines; i++)
		if (check_datagrams(p, &p->s->flow[i]))
			return -EINVAL;
	for (unsigned i = 0; i < s->traffic_lines; i++)
		if (check_datagrams(p, &p->s->traffic[i].line))
			return -EINVAL;
	return check_times(p);
}

int parse_scenario(struct scenario *s, const char *name, const char *text, struct setting *settings,
	unsigned n, char *why, size_t size)
{
	struct parser p = {.s = s,
		.name = name,
		.settings = settings,
		.nsettings = n,
		.why = why,
		.why_size = size};
	char line[LINE_SIZE];

	for (unsigned i = 0; i < TRAFFIC_LINES; i++)
		flow_file_free(&s->traffic[i]); /* of the line that was read before */
	memset(s, 0, sizeof(*s));
	s->rate = 40000000000ull;
	s->mtu = 1024;
	s->window = WINDOW_DEFAULT;
	s->timeout = 14;
	s->retries = 7;
	s->quantum = 1;
	s->seed = 1;
	for (unsigned i = 0; i < FRAME_KINDS; i++)
		s->impair[i].late = 1;
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
	for (unsigned i = 0; i < ARRAY_SIZE(statements); i++) {
		fprintf(f, "  %s\n      %s\n", statements[i].syntax, statements[i].help);
		if (statements[i].read == on_topology)
			topology_help(f);
		if (statements[i].read == on_cc)
			cc_help(f);
	}
}
