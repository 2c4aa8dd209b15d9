/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows in the format of HPCC's simulator: their number; then per flow the numbers of its two
 * hosts, its priority, UDP port, bytes and start in seconds. Each is one message on a QP of its
 * own. Priority and port are read and not used: there is one class for data, and a QP chooses its
 * port.
 */
#include <math.h>
#include <stdlib.h>
#include "flow_file.h"
#include "parse_impl.h"
#include "scenario.h"

#define START_MAX 1e6 /* seconds */

struct reader {
	struct parser *p;
	const char *path;
	FILE *f;
	uint64_t base; /* ns in the file at which the run begins */
};

/* Finds host @p n, which is a node of the topology's file if there is one. @return false: it is not
 * a host */
static bool find_host(const struct parser *p, unsigned n, uint32_t *to)
{
	if (p->nodes && n >= p->nodes)
		return false;
	*to = p->nodes ? p->node[n] : n;
	return *to < p->s->net.hosts;
}

static int flow(struct reader *r, unsigned number, struct flow_line *to)
{
	struct parser *p = r->p;
	unsigned from, dest, priority, port;
	unsigned long long size;
	double start;

	*to = (struct flow_line){.qps = 1, .count = 1};
	if (fscanf(r->f, "%u %u %u %u %llu %lf", &from, &dest, &priority, &port, &size, &start) !=
		6)
		return wrong(p,
			"%s: flow %u needs two hosts, a priority, a port, bytes and a start in "
			"seconds",
			r->path, number);
	if (!find_host(p, from, &to->first) || !find_host(p, dest, &to->to) || from == dest)
		return wrong(p,
			"%s: flow %u goes from node %u to %u; it needs two different hosts of the "
			"topology",
			r->path, number, from, dest);
	to->last = to->first;
	if (!size || size > 1u << 30)
		return wrong(p, "%s: flow %u has %llu bytes, not 1 to 1Gi", r->path, number, size);
	if (!(start >= 0 && start <= START_MAX) || (uint64_t)llround(start * 1e9) < r->base)
		return wrong(p,
			"%s: flow %u starts at %.9g s, and the run at %.9g s: see base=", r->path,
			number, start, (double)r->base / 1e9);
	to->size = size;
	to->start[0] = to->start[1] = (uint64_t)llround(start * 1e9) - r->base;
	return 0;
}

static int read_all(struct reader *r, struct traffic_line *t)
{
	unsigned count;

	if (fscanf(r->f, "%u", &count) != 1 || !count || count > FLOW_FILE_MAX)
		return wrong(r->p, "%s: its first line must be the number of flows, 1 to %u",
			r->path, FLOW_FILE_MAX);
	t->flow = calloc(count, sizeof(*t->flow));
	if (!t->flow)
		return wrong(r->p, "%s: there is not enough memory for %u flows", r->path, count);
	for (t->flows = 0; t->flows < count; t->flows++)
		if (flow(r, t->flows, &t->flow[t->flows]))
			return -EINVAL;
	return 0;
}

int flow_file_read(struct parser *p, const char *path, uint64_t base, struct traffic_line *t)
{
	struct reader r = {p, path, fopen(path, "r"), base};
	int err;

	if (!r.f)
		return wrong(p, "%s: %s", path, strerror(errno));
	err = read_all(&r, t);
	fclose(r.f);
	if (err)
		flow_file_free(t);
	return err;
}

void flow_file_free(struct traffic_line *t)
{
	free(t->flow);
	t->flow = NULL;
	t->flows = 0;
}
