/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "pair.h"
#include "abi_ctl.h"
#include "icrc.h"
#include "qp.h"

#define START 5000000ull

struct pair_spec pair_defaults(void)
{
	struct pair_spec s = {.seed = 1, .cq_depth = 1024};

	for (int e = A; e < ENDS; e++) {
		s.link[e] = (struct link_config){.delay_ns = 2000, .rate_bps = 10000000000ull};
		s.qp[e] = (struct app_qp_spec){
			.sq_depth = 64, .rq_depth = 64, .max_sge = SGE_MAX, .max_inline = 128};
		s.attr[e] = app_attr(0, e == A ? 0x123456 : 0xFFFFF0, 0);
	}
	return s;
}

/* The bulk of a pair's memory waits here for the next pair: fresh pages cost more than a short
 * run. */
static struct {
	struct sim_host *host;
	struct sim_frame *frames;
	struct sim_frame **places;
} spare[ENDS];

static void take_bulk(struct pair_end *end, int e)
{
	if (spare[e].host) {
		end->host = spare[e].host;
		end->frames = spare[e].frames;
		end->places = spare[e].places;
		spare[e].host = NULL;
	} else {
		end->host = aligned_alloc(CACHE_LINE, sizeof(*end->host));
		end->frames = calloc(PAIR_FRAMES, sizeof(*end->frames));
		end->places = calloc(PAIR_FRAMES, sizeof(*end->places));
		assert_true(end->host && end->frames && end->places);
	}
	for (unsigned i = 0; i < PAIR_FRAMES; i++)
		end->places[i] = &end->frames[i];
}

static void leave_bulk(const struct pair_end *end, int e)
{
	if (spare[e].host) {
		free(end->places);
		free(end->frames);
		free(end->host);
		return;
	}
	spare[e].host = end->host;
	spare[e].frames = end->frames;
	spare[e].places = end->places;
}

static void make_srq(struct pair_end *end, const struct pair_spec *spec, struct app_qp_spec *qp)
{
	if (spec->xrc) {
		end->srq = app_xrc_srq(
			&end->app, spec->srq_depth, qp->max_sge, PAIR_XRCD, end->recv_cq);
		qp->xrcd = PAIR_XRCD;
		return;
	}
	end->srq = app_srq(&end->app, spec->srq_depth, qp->max_sge);
	qp->srq = end->srq;
}

static void end_init(struct pair *p, int e)
{
	struct pair_end *end = &p->end[e];
	struct app_qp_spec qp = p->spec.qp[e];

	take_bulk(end, e);
	host_init(end->host, (uint8_t)(e + 1), icrc_best(), START);
	if (p->spec.cnp_interval) {
		atomic_store(&end->host->ports.port[0].rcm, rcm_word(48 << 2, 6, true));
		atomic_store(&end->host->ports.port[0].cnp_interval, p->spec.cnp_interval);
	}
	link_init(&end->link, end->places, PAIR_FRAMES, &p->spec.link[e],
		p->spec.seed * 2 + (uint64_t)e + 1000);
	app_init(&end->app, end->host);
	end->send_cq = app_cq(&end->app, p->spec.cq_depth);
	end->recv_cq = app_cq(&end->app, p->spec.cq_depth);
	qp.send_cq = end->send_cq;
	qp.recv_cq = end->recv_cq;
	end->srq = NULL;
	if (p->spec.srq_depth && e == B)
		make_srq(end, &p->spec, &qp);
	if (p->spec.xrc)
		qp.type = e == A ? ABI_QPT_XRC_SEND : ABI_QPT_XRC_RECV;
	end->qp = app_qp(&end->app, &qp);
	end->qp->free_ids = qp.type == ABI_QPT_XRC_RECV; /* its receives are the SRQ's */
	fabric_add(&p->fabric, end->host);
}

void pair_init(struct pair *p, const struct pair_spec *spec)
{
	memset(p, 0, sizeof(*p));
	p->spec = *spec;
	fabric_init(&p->fabric, START);
	wirecheck_init(&p->wire);
	for (int e = A; e < ENDS; e++)
		end_init(p, e);
	for (int e = A; e < ENDS; e++) {
		struct pair_end *me = &p->end[e];
		struct pair_end *peer = &p->end[!e];
		struct path_spec path = host_path(me->host, peer->host, 0, spec->gid);
		struct abi_qp_attr *attr = &p->spec.attr[e];

		fabric_plug(&p->fabric, &me->link, me->host, 0, peer->host, 0);
		attr->dest_qpn = peer->qp->qp->qpn;
		attr->rq_psn = spec->attr[!e].sq_psn;
		assert_int_equal(app_to_init(me->qp, attr, START), 0);
		assert_int_equal(app_to_rtr(me->qp, attr, &path, START), 0);
		assert_int_equal(app_to_rts(me->qp, attr, START), 0);
		wirecheck_tap(&p->wire, &me->link);
	}
	pair_wire(p);
}

static struct wire_end wire_end(const struct pair *p, int e)
{
	const struct pair_end *end = &p->end[e];

	return (struct wire_end){end->host->id, end->qp->qp->qpn, end->qp->qp->req.psn_new};
}

void pair_wire(struct pair *p)
{
	struct wire_end a = wire_end(p, A), b = wire_end(p, B);

	wirecheck_connect_by(
		&p->wire, &a, &b, p->spec.attr[A].path_mtu, p->spec.xrc ? WIRE_XRC : WIRE_RC);
	memset(p->flow, 0, sizeof(p->flow));
}

void pair_fini(struct pair *p)
{
	wirecheck_fini(&p->wire);
	for (int e = A; e < ENDS; e++) {
		app_fini(&p->end[e].app);
		leave_bulk(&p->end[e], e);
	}
}

void pair_memory(struct pair *p, size_t len)
{
	for (int e = A; e < ENDS; e++)
		p->end[e].mr = app_mr(&p->end[e].app, len,
			ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ |
				ABI_ACCESS_REMOTE_ATOMIC);
}

/* --- steps ---------------------------------------------------------------------------- */

static void drain(struct pair_end *end)
{
	struct app_cq *cqs[] = {end->send_cq, end->recv_cq};

	app_events(&end->app);
	for (unsigned i = 0; i < 2 && !end->keep_cqes; i++)
		while (app_poll(&end->app, cqs[i], &end->cqe[end->cqes % 4096]))
			end->cqes++;
}

bool pair_step(struct pair *p, uint64_t until)
{
	bool more;

	for (int e = A; e < ENDS; e++)
		app_ring(&p->end[e].app, p->fabric.now);
	more = fabric_step(&p->fabric, until);
	for (int e = A; e < ENDS; e++) {
		drain(&p->end[e]);
		invariants_check(&p->end[e].app, p->fabric.now);
		invariants_flow(&p->flow[e], p->end[e].qp->qp, p->end[!e].qp->qp);
		assert_int_equal(p->end[e].host->core.count.cq_overflow, 0);
	}
	return more;
}

void pair_run(struct pair *p, uint64_t ns)
{
	uint64_t until = p->fabric.now + ns;

	for (;;) {
		uint64_t next;

		for (int e = A; e < ENDS; e++)
			app_ring(&p->end[e].app, p->fabric.now);
		next = fabric_next(&p->fabric);
		if (next == SIM_NEVER || !pair_step(p, until))
			return;
	}
}

void pair_until_cqes(struct pair *p, int end, unsigned n, uint64_t ns)
{
	uint64_t until = p->fabric.now + ns;

	while (p->end[end].cqes < n)
		if (!pair_step(p, until))
			fail_msg("%u of %u CQEs after %llu us", p->end[end].cqes, n,
				(unsigned long long)(ns / 1000));
}
