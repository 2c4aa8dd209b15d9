/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"
#include "icrc.h"
#include "qp.h"
#include "qp_trace.h"
#include "seq24.h"

#define START  5000000ull
#define FRAMES 512u /* on a link */

void world_digest(struct chaos_world *w, uint64_t word)
{
	w->digest = (w->digest ^ word) * 0x100000001B3ull;
	w->digest ^= w->digest >> 29;
}

/* --- making it ------------------------------------------------------------------------ */

struct link_impair world_impair(struct chaos_world *w)
{
	struct link_impair f = {.reorder_ns = pick(w, 1, 50000)};

	if (w->perfect)
		return f;
	if (chance(w, 60))
		f.loss = pick(w, 100, w->moderate ? 20000 : 120000);
	if (chance(w, 20)) /* a burst, or here and there */
		f.loss_mask = w->moderate || chance(w, 50) ? 1ull << pick(w, 0, 63)
							   : random_next(&w->random);
	if (chance(w, 30))
		f.duplicate = pick(w, 100, 50000);
	if (chance(w, 30))
		f.reorder = pick(w, 100, 50000);
	if (chance(w, 30))
		f.corrupt = pick(w, 100, 10000);
	if (chance(w, 30))
		f.truncate = pick(w, 100, 10000);
	if (chance(w, 50))
		f.mark = pick(w, 1000, 500000);
	if (chance(w, 20)) {
		f.pause = pick(w, 100, 2000);
		f.pause_ns = pick(w, 1, w->moderate ? 5000 : 50000) * USEC;
	}
	return f;
}

static void make_link(struct chaos_world *w, unsigned from, unsigned to, uint64_t seed)
{
	struct link_config cfg = {
		.delay_ns = pick(w, 100, 20000),
		.rate_bps = chance(w, 30) ? 0 : 1000000000ull * pick(w, 1, 100),
		.impair = world_impair(w),
	};
	struct sim_frame **place = calloc(FRAMES, sizeof(*place));
	struct sim_frame *frame = malloc(FRAMES * sizeof(*frame)); /* untouched until used */

	assert_true(place && frame);
	for (unsigned i = 0; i < FRAMES; i++)
		place[i] = &frame[i];
	w->places[from][to] = place;
	w->frames[from][to] = frame;
	link_init(&w->link[from][to], place, FRAMES, &cfg, seed);
	wirecheck_tap(&w->wire, &w->link[from][to]);
}

/* Each other host has the fast path between its own QPs, and names payload in frames. */
static void make_host(struct chaos_world *w, unsigned h, bool direct)
{
	w->host[h] = aligned_alloc(CACHE_LINE, sizeof(*w->host[h]));
	assert_non_null(w->host[h]);
	host_init(w->host[h], (uint8_t)(h + 1), icrc_best(), START);
	if (chance(w, 50)) {
		struct port *port = &w->host[h]->ports.port[0];

		atomic_store(&port->rcm, rcm_word((uint8_t)pick(w, 0, 63) << 2, 6, chance(w, 50)));
		atomic_store(&port->cnp_interval, pick(w, 0, 50000));
	}
	w->host[h]->burst = pick(w, 1, BURST);
	core_direct(&w->host[h]->core, direct && w->host[h]->burst % 4);
	core_names(&w->host[h]->core, direct);
	w->wire.direct |= (unsigned)direct << w->host[h]->id;
	app_init(&w->app[h], w->host[h]);
	for (unsigned i = 0; i < w->cqs; i++)
		w->cq[h][i] = app_cq(&w->app[h], CHAOS_CQ_DEPTH);
	fabric_add(&w->fabric, w->host[h]);
}

void world_init(struct chaos_world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->random.state = seed * 0x9E3779B97F4A7C15ull | 1;
	for (int i = 0; i < 8; i++)
		random_next(&w->random);
	w->trace = chaos_trace;
	w->before = traffic_totals;
	w->perfect = chance(w, 15);
	w->moderate = w->perfect || chance(w, 60);
	w->cqs = pick(w, 1, CHAOS_CQS);
	w->gid = (enum host_gid)pick(w, 0, HOST_GIDS_ALL - 1);
	w->psn_jump = pick(w, 1u << 20, 1u << 21);
	if (chance(w, 50)) /* stale packets have later PSNs, not earlier ones */
		w->psn_jump = -w->psn_jump & SEQ24_MASK;
	w->action_gap = chance(w, 15) ? 0 : pick(w, 5, 120);
	w->next_action = w->action_gap;
	fabric_init(&w->fabric, START);
	wirecheck_init(&w->wire);
	w->wire.stale = true;
	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		make_host(w, h, (seed + h) % 2);
	for (unsigned f = 0; f < CHAOS_HOSTS; f++)
		for (unsigned t = 0; t < CHAOS_HOSTS; t++) {
			make_link(w, f, t, seed * 4 + f * 2 + t);
			fabric_plug(&w->fabric, &w->link[f][t], w->host[f], 0, w->host[t], 0);
		}
	w->conns = pick(w, 1, CHAOS_CONNS);
	for (unsigned i = 0; i < w->conns; i++)
		conn_init(w, &w->conn[i]);
	w->ucs = (unsigned)(seed % (CHAOS_UCS + 1));
	for (unsigned i = 0; i < w->ucs; i++)
		uc_init(w, &w->uc[i], seed * CHAOS_UCS + i);
	flows_init(w, &w->flows, seed);
}

void world_fini(struct chaos_world *w)
{
	for (unsigned i = 0; i < w->conns; i++)
		conn_fini(&w->conn[i]);
	flows_fini(&w->flows);
	wirecheck_fini(&w->wire);
	for (unsigned f = 0; f < CHAOS_HOSTS; f++) {
		app_fini(&w->app[f]);
		free(w->host[f]);
		for (unsigned t = 0; t < CHAOS_HOSTS; t++) {
			free(w->places[f][t]);
			free(w->frames[f][t]);
		}
	}
}

/* --- counting ------------------------------------------------------------------------- */

uint64_t world_messages(const struct chaos_world *w)
{
	const struct traffic_totals *t = &traffic_totals, *b = &w->before;
	uint64_t n = 0;

	for (unsigned o = 0; o < TRAFFIC_OPS; o++)
		n += t->completed[o] - b->completed[o] + t->failed[o] - b->failed[o];
	return n;
}

uint64_t world_packets(const struct chaos_world *w)
{
	return w->host[A]->core.count.port[0].tx_packets +
	       w->host[B]->core.count.port[0].tx_packets;
}

/* --- events --------------------------------------------------------------------------- */

static void qp_event_came(struct chaos_world *w, const struct app *app, const struct core_event *ev)
{
	for (unsigned i = 0; i < w->conns; i++)
		for (int e = A; e < ENDS; e++) {
			struct chaos_end *end = &w->conn[i].end[e];

			if (end->app == app && end->qp && end->qp->qp->handle == ev->handle) {
				end->events[ev->type % ARRAY_SIZE(end->events)]++;
				return;
			}
		}
	fail_msg("event %u of QP %u, which does not exist", ev->type, ev->handle);
}

static void cq_event_came(struct chaos_world *w, unsigned h, const struct core_event *ev)
{
	for (unsigned i = 0; i < w->cqs; i++)
		if (w->cq[h][i]->cq.handle == ev->handle) {
			assert_int_equal(ev->type, ABI_EVENT_COMPLETION);
			w->notices[h][i]++;
			return;
		}
	for (unsigned i = 0; i < w->conns; i++)
		for (int e = A; e < ENDS; e++) {
			struct chaos_end *end = &w->conn[i].end[e];

			if (end->app != &w->app[h] || !end->small ||
				end->small->cq.handle != ev->handle)
				continue;
			assert_int_equal(ev->type, ABI_EVENT_CQ_ERR);
			assert_false(end->overflown); /* CQ-01: told once */
			end->overflown = true;
			return;
		}
	fail_msg("event %u of CQ %u, which does not exist", ev->type, ev->handle);
}

static void take_events(struct chaos_world *w, unsigned h)
{
	struct app *a = &w->app[h];

	app_events(a);
	assert_true(a->events - w->events_seen[h] <= APP_EVENTS);
	for (; w->events_seen[h] != a->events; w->events_seen[h]++) {
		const struct core_event *ev = &a->event[w->events_seen[h] % APP_EVENTS];

		world_digest(w, (uint64_t)ev->type << 32 | ev->handle);
		if (flows_event(&w->flows, a, ev))
			continue;
		if (ev->handle >= APP_CQ_HANDLE)
			cq_event_came(w, h, ev);
		else
			qp_event_came(w, a, ev);
	}
}

/* --- completions ---------------------------------------------------------------------- */

static struct chaos_cqe batch[CHAOS_HOSTS * CHAOS_CQS * CHAOS_CQ_DEPTH];

static unsigned poll_cq(struct app *a, struct app_cq *cq, unsigned n, bool *loud)
{
	while (app_poll(a, cq, &batch[n].cqe)) {
		const struct abi_cqe *cqe = &batch[n].cqe;

		*loud |= cqe->status != ABI_WC_SUCCESS || (cqe->flags & ABI_WC_SOLICITED);
		batch[n++].app = a;
		assert_true(n < ARRAY_SIZE(batch));
	}
	return n;
}

/* A CQ that was armed has told of what was there to tell, once; else it has told nothing
 * (CQ-03..06). */
static unsigned poll_shared(struct chaos_world *w, unsigned h, unsigned i, unsigned n)
{
	bool loud = false;
	unsigned got = poll_cq(&w->app[h], w->cq[h][i], n, &loud);
	bool told = (w->armed[h][i] == ABI_CQ_ARM_ANY && got != n) || (w->armed[h][i] && loud);

	assert_int_equal(w->notices[h][i], told);
	w->notices[h][i] = 0;
	if (told)
		w->armed[h][i] = ABI_CQ_ARM_NONE;
	if (!w->armed[h][i] && chance(w, 5)) {
		w->armed[h][i] = chance(w, 50) ? ABI_CQ_ARM_ANY : ABI_CQ_ARM_SOLICITED;
		app_arm(w->cq[h][i], w->armed[h][i] == ABI_CQ_ARM_SOLICITED);
	}
	return got;
}

static void judge(struct chaos_world *w, const struct chaos_cqe *b)
{
	for (unsigned i = 0; i < w->conns; i++)
		for (int e = A; e < ENDS; e++) {
			struct chaos_conn *c = &w->conn[i];

			if (c->end[e].app == b->app && c->traffic.side[e].qpn == b->cqe.qpn) {
				traffic_cqe(&c->traffic, e, &b->cqe);
				return;
			}
		}
	fail_msg("CQE of QPN 0x%x, which does not exist", b->cqe.qpn);
}

void world_take(struct chaos_world *w, bool small)
{
	unsigned n = 0;
	bool loud = false;

	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		for (unsigned i = 0; i < w->cqs; i++)
			n = poll_shared(w, h, i, n);
	for (unsigned i = 0; small && i < w->conns; i++)
		for (int e = A; e < ENDS; e++) {
			struct chaos_end *end = &w->conn[i].end[e];

			if (end->small && (end->overflown || w->conn[i].phase != CONN_UP))
				n = poll_cq(end->app, end->small, n, &loud);
		}
	for (int recv = 1; recv >= 0; recv--)
		for (unsigned i = 0; i < n; i++) {
			const struct abi_cqe *cqe = &batch[i].cqe;

			if (!!(cqe->opcode & ABI_WC_RECV) != recv)
				continue;
			world_digest(w, cqe->wr_id ^ (uint64_t)cqe->status << 56);
			world_digest(w, (uint64_t)cqe->byte_len << 32 | cqe->qpn);
			judge(w, &batch[i]);
		}
	for (unsigned i = 0; i < w->conns; i++)
		traffic_settle(&w->conn[i].traffic);
}

/* --- steps ---------------------------------------------------------------------------- */

static void check_flows(struct chaos_conn *c)
{
	for (int e = A; e < ENDS && c->phase == CONN_UP; e++)
		if (c->end[A].qp && c->end[B].qp && !c->end[e].rts_at) /* else no PSN yet */
			invariants_flow(&c->flow[e], c->end[e].qp->qp, c->end[!e].qp->qp);
}

void world_step(struct chaos_world *w)
{
	const uint64_t shortest = 20 * USEC, longest = 10 * MSEC;

	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		app_ring(&w->app[h], now_of(w));
	/* The longer nothing happens, the less often is anybody asked to do something. */
	if (fabric_step(&w->fabric, now_of(w) + w->quantum))
		w->quantum = shortest;
	else if (w->quantum < longest)
		w->quantum *= 2;
	qp_trace_print();
	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		take_events(w, h);
	world_take(w, true);
	for (unsigned i = 0; i < w->ucs; i++)
		uc_take(w, &w->uc[i]);
	flows_take(w, &w->flows);
	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		invariants_check(&w->app[h], now_of(w));
	for (unsigned i = 0; i < w->conns; i++)
		check_flows(&w->conn[i]);
}
