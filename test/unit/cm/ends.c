/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "bits.h"
#include "wheel.h"

static void send_mad(void *arg, const struct cm_path *to, const uint8_t *mad)
{
	struct end *e = arg;
	struct ends *net = e->net;
	unsigned other = !e->number, copies = 1 + (random_below(&net->random, 100) < net->twice);

	assert_int_equal(mad_check(mad, MAD_LEN), MAD_CM);
	assert_memory_equal(to->remote, net->end[other].to.local, 16);
	memcpy(e->last, mad, MAD_LEN);
	e->last_label = to->flow_label;
	e->sent++;
	while (copies--) {
		struct in_flight *f = &net->mads[net->n];

		if (random_below(&net->random, 100) < net->loss)
			continue;
		assert_true(net->n < NET_MADS);
		memcpy(f->mad, mad, MAD_LEN);
		if (net->filter && net->filter(net, other, f->mad))
			continue;
		f->when = net->now + net->delay +
			  (net->jitter ? random_below(&net->random, net->jitter) : 0);
		f->to = other;
		f->from = net->end[other].to;
		net->n++;
	}
}

static enum cm_rej note(void *arg, const struct cm_event *e)
{
	struct end *end = arg;
	struct end_event *to = &end->event[end->events];

	assert_true(end->events < END_EVENTS);
	end->events++;
	*to = (struct end_event){.type = e->type,
		.id = e->id,
		.reason = e->reason,
		.over_share = e->over_share,
		.cookie = e->cookie};
	to->private_len = e->private_len;
	if (e->private_len)
		memcpy(to->private_data, e->private_data, e->private_len);
	return e->type == CM_EV_REQ || e->type == CM_EV_SIDR_REQ ? end->refuses : 0;
}

static void address(uint8_t gid[16], unsigned end)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xFF;
	gid[12] = 192;
	gid[14] = 2;
	gid[15] = (uint8_t)(10 + end);
}

struct ends *ends_new(uint32_t conns, uint32_t listeners, uint64_t seed, const struct cm_conf *conf)
{
	static const struct cm_ops ops = {send_mad, note};
	struct ends *net = calloc(1, sizeof(*net));

	net->mads = calloc(NET_MADS, sizeof(*net->mads));
	net->random.state = seed;
	net->delay = MS / 10;
	net->now = 12345678;
	for (unsigned i = 0; i < ENDS; i++) {
		struct end *e = &net->end[i];
		struct cm_conf c = conf ? *conf : cm_defaults();

		e->net = net;
		e->number = i;
		e->to = (struct cm_path){.pkey = 0xFFFF, .hop_limit = 64};
		address(e->to.local, i);
		address(e->to.remote, !i);
		c.guid = 0x020000fffe000000ull + i;
		random_fill(&net->random, c.id_key.byte, sizeof(c.id_key.byte));
		random_fill(&net->random, (uint8_t *)&c.seed, sizeof(c.seed));
		e->cm = cm_init(calloc(1, cm_size(conns, listeners)), conns, listeners, &c, &ops, e,
			net->now);
	}
	return net;
}

void ends_free(struct ends *net)
{
	for (unsigned i = 0; i < ENDS; i++)
		free(net->end[i].cm);
	free(net->mads);
	free(net);
}

static unsigned earliest(const struct ends *net)
{
	unsigned best = 0;

	for (unsigned i = 1; i < net->n; i++)
		if (net->mads[i].when < net->mads[best].when)
			best = i;
	return best;
}

static void deliver(struct ends *net, unsigned which)
{
	struct in_flight f = net->mads[which];

	net->mads[which] = net->mads[--net->n];
	cm_mad(net->end[f.to].cm, &f.from, f.mad, MAD_LEN, net->now);
}

void ends_run(struct ends *net, uint64_t when)
{
	for (;;) {
		uint64_t a = cm_deadline(net->end[0].cm), b = cm_deadline(net->end[1].cm);
		uint64_t timer = a < b ? a : b, next = timer;
		unsigned mad = earliest(net);

		if (net->n && net->mads[mad].when < next)
			next = net->mads[mad].when;
		if (next > when || next == WHEEL_NEVER)
			break;
		net->now = next > net->now ? next : net->now;
		if (net->n && net->mads[mad].when <= net->now) {
			deliver(net, mad);
			continue;
		}
		for (unsigned i = 0; i < ENDS; i++)
			while (!cm_expire(net->end[i].cm, net->now, 64))
				;
	}
	net->now = when != WHEEL_NEVER && when > net->now ? when : net->now;
}

const struct end_event *end_peek(struct end *e)
{
	return e->taken < e->events ? &e->event[e->taken] : NULL;
}

const struct end_event *end_take(struct end *e, enum cm_event_type type)
{
	const struct end_event *ev = end_peek(e);

	assert_non_null(ev);
	assert_int_equal(ev->type, type);
	e->taken++;
	return ev;
}

size_t end_cma(const struct end *e, uint8_t *p)
{
	struct cma_hdr h = {.family = 4, .src_port = 40000};

	memcpy(h.src, e->to.local, 16);
	memcpy(h.dst, e->to.remote, 16);
	cma_write(p, &h);
	return CMA_HDR_LEN;
}

struct cm_param end_param(const struct end *e, uint32_t qpn, uint8_t *hdr)
{
	struct cm_param p = {.qpn = qpn,
		.psn = 0x123456 + qpn,
		.responder_resources = 4,
		.initiator_depth = 8,
		.retry_count = 6,
		.rnr_retry = 5,
		.mtu = 3};

	if (hdr) {
		p.private_len = end_cma(e, hdr);
		p.private_data = hdr;
	}
	return p;
}

void end_give(struct end *e, const uint8_t *mad)
{
	cm_mad(e->cm, &e->to, mad, MAD_LEN, e->net->now);
}
