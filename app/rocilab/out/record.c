/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the CSV files, while a scenario runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "host.h"
#include "lab.h"
#include "lab_flow.h"
#include "lab_host.h"
#include "network.h"
#include "out.h"
#include "pacing.h"
#include "qp.h"
#include "scenario.h"
#include "switch.h"
#include "window.h"

#define LINES 1000u /* of each QP and port, unless the user says otherwise */

struct record {
	struct sim_event tick;
	struct lab *l;
	uint64_t interval;
	FILE *qp, *queue, *fct;
	struct capture *capture;
	uint64_t packets[OUT_FLOWS]; /* of each flow until the last tick */
	uint32_t port[OUT_PORTS];    /* in lab.port */
	unsigned ports;
};

static double seconds(uint64_t now)
{
	return (double)(now - LAB_START) * 1e-9;
}

/* --- lines -------------------------------------------------------------------------------- */

static void line_of_flow(struct record *r, unsigned i, uint64_t now)
{
	struct lab_flow *f = &r->l->flow[i];
	const struct limiter *limiter = f->source.qp->limiter;
	const struct window *w = &f->source.qp->win;
	struct cc_view v = flow_view(f, now);
	double goodput;

	flow_look(f);
	goodput = (double)(f->packets - r->packets[i]) * lab_payload(r->l, f) * 8e9 /
		  (double)r->interval;
	r->packets[i] = f->packets;
	fprintf(r->qp, "%.9f,%u,%.0f,%.0f,%.6f,%g,", seconds(now), i, v.rate, v.target, v.alpha,
		v.window > 0 && v.window < w->size ? v.window : w->size);
	if (v.rtt)
		fprintf(r->qp, "%.9f", (double)v.rtt * 1e-9);
	fprintf(r->qp, ",%.0f,%llu\n", goodput, (unsigned long long)limiter->cnps);
}

static void line_of_port(const struct record *r, uint32_t index, uint64_t now)
{
	const struct switch_port *p = &r->l->port[index];
	uint32_t sw = (uint32_t)(p->sw - r->l->sw);

	fprintf(r->queue, "%.9f,sw%u.%u,%llu,%llu,%llu,%d\n", seconds(now), sw,
		index - r->l->first[sw], (unsigned long long)p->queue[CLASS_DATA].aqm.bytes,
		(unsigned long long)p->count.marked, (unsigned long long)p->count.dropped, p->held);
}

static unsigned recorded_flows(const struct lab *l)
{
	return l->flows < OUT_FLOWS ? l->flows : OUT_FLOWS;
}

static void tick(struct sim_event *ev, uint64_t now)
{
	struct record *r = container_of(ev, struct record, tick);

	for (unsigned i = 0; i < recorded_flows(r->l); i++)
		line_of_flow(r, i, now);
	for (unsigned i = 0; i < r->ports; i++)
		line_of_port(r, r->port[i], now);
	engine_at(&r->l->engine, &r->tick, now + r->interval);
}

static void complete(struct lab *l, const struct lab_flow *f, uint64_t now)
{
	const struct record *r = l->listener;
	double ideal = ideal_of(f, flow_size(f));
	double took = (double)(now - f->since);

	fprintf(r->fct, "%u,%u,%u,%llu,%.9f,%.9f,%.0f,%.0f,%.3f\n", (unsigned)(f - l->flow),
		(unsigned)(f->from - l->host), (unsigned)(f->to - l->host),
		(unsigned long long)flow_size(f), seconds(f->since), seconds(now), took, ideal,
		took / ideal);
}

/* --- set-up ------------------------------------------------------------------------------- */

static void record_port(struct record *r, uint32_t index)
{
	for (unsigned i = 0; i < r->ports; i++)
		if (r->port[i] == index)
			return;
	if (r->ports < OUT_PORTS)
		r->port[r->ports++] = index;
}

/* First the ports that lead to receivers, then those between switches, then the others. */
static void choose_ports(struct record *r)
{
	const struct lab *l = r->l;
	const struct network *n = &l->s->net;

	for (int turn = 0; turn < 3; turn++)
		for (uint32_t sw = 0; sw < n->switches; sw++)
			for (uint32_t i = l->first[sw]; i < l->first[sw + 1]; i++) {
				uint32_t peer = net_peer(n, sw, i - l->first[sw]);
				bool receives = peer < n->hosts && l->host[peer].sinks;

				if (turn == (peer >= n->hosts ? 1 : receives ? 0 : 2))
					record_port(r, i);
			}
}

static FILE *begin_file(const char *folder, const char *name, const char *head)
{
	char path[OUT_PATH];
	FILE *f = fopen(out_path(path, folder, name), "w");

	if (f)
		fputs(head, f);
	return f;
}

static bool files(struct record *r, const char *folder)
{
	if (mkdir(folder, 0777) && errno != EEXIST)
		return false;
	r->qp = begin_file(folder, "qp.csv", "t,qp,rate,target,alpha,window,rtt,goodput,cnps\n");
	r->queue = begin_file(folder, "queue.csv", "t,port,bytes,marks,drops,paused\n");
	r->fct = begin_file(folder, "fct.csv", "flow,from,to,size,start,end,fct,ideal,slowdown\n");
	return r->qp && r->queue && r->fct;
}

static int captured(struct record *r, const struct out_options *o, char *why, size_t size)
{
	const struct network *n = &r->l->s->net;
	uint32_t sw, port;

	if (!o->capture)
		return 0;
	if (!net_port_named(n, o->capture, &sw, &port)) {
		snprintf(why, size, "'%s' is not a port such as sw0.%u", o->capture,
			net_ports(n, 0) - 1);
		return -EINVAL;
	}
	r->capture = capture_open(r->l, o->folder, sw, port);
	if (!r->capture)
		snprintf(why, size, "%s: %s", o->folder, strerror(errno));
	return r->capture ? 0 : -EIO;
}

struct record *record_open(struct lab *l, const struct out_options *o, char *why, size_t size)
{
	struct record *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->l = l;
	r->interval = o->interval ? o->interval : l->s->to / LINES + 1;
	if (!files(r, o->folder)) {
		snprintf(why, size, "%s: %s", o->folder, strerror(errno));
		record_close(r);
		return NULL;
	}
	if (captured(r, o, why, size)) {
		record_close(r);
		return NULL;
	}
	choose_ports(r);
	l->complete = complete;
	l->listener = r;
	engine_event(&r->tick, tick);
	engine_at(&l->engine, &r->tick, l->engine.now + r->interval);
	return r;
}

static int end_file(FILE *f)
{
	int bad = f ? ferror(f) : 0;

	return f && (fclose(f) || bad) ? -EIO : 0;
}

int record_close(struct record *r)
{
	int err = end_file(r->qp);

	err = end_file(r->queue) ? -EIO : err;
	err = end_file(r->fct) ? -EIO : err;
	if (r->capture && capture_close(r->capture))
		err = -EIO;
	free(r);
	return err;
}
