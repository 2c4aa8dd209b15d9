/* SPDX-License-Identifier: BSD-3-Clause */
#include "core_command.h"
#include "headers.h"
#include "opcode.h"
#include "pacing.h"
#include "qp_impl.h"
#include "seq24.h"
#include "telemetry.h"
#include "txd.h"
#include "txd_bth.h"

/* The packets of one turn take at most this long on the wire, unless there is only one: at low
 * rates whole quanta would leave in bursts that outlast timers. */
#define TURN_NS 100000.0

/* Bytes of extended headers that a packet has at most, except atomics. */
#define EXTENDED (RETH_LEN + IMMDT_LEN)

/* FCS, preamble, start delimiter and gap of a frame. */
#define WIRE_EXTRA 24u

/* bit/s. Below it, the time of a burst of the largest packets would not fit limiter.step times
 * limiter.owed; not every algorithm has a minimum rate. */
#define RATE_LEAST 1000.0

/* QPs made ready in one call: a call sends BURST packets at most. */
#define READY_ROUND (2 * BURST)

static const struct port *port_of(const struct core *c, const struct qp *qp)
{
	return &c->cfg.ports->port[qp->attr.port ? qp->attr.port - 1 : 0];
}

static bool has_acks(const struct qp *qp)
{
	return qp->type == ABI_QPT_RC || qp->type == ABI_QPT_XRC_SEND ||
	       qp->type == ABI_QPT_XRC_RECV;
}

/* The parameters of @p qp: its own, or those of its port. NULL: none. */
static const struct cc_config *whole_config(const struct core *c, const struct qp *qp)
{
	if (unlikely(qp->limiter->has_own))
		return qp->limiter->chosen;
	return atomic_load_explicit(&port_of(c, qp)->cc, memory_order_acquire);
}

/* Those that @p qp follows now. */
static const struct cc_config *config_of(const struct core *c, const struct qp *qp)
{
	const struct cc_config *cfg = whole_config(c, qp);

	return cfg && qp->limiter->unacked && cfg->unacked ? cfg->unacked : cfg;
}

void pacing_init(struct qp *qp)
{
	struct limiter *l = qp->limiter;

	memset(l, 0, sizeof(*l));
	l->qp = qp;
	l->change_at = CC_NEVER;
	l->unacked = !has_acks(qp);
	wheel_timer_init(&l->timer);
}

/* --- departures --------------------------------------------------------------------------- */

/* When the next packet may leave, at the current rate. */
static uint64_t departure(const struct limiter *l)
{
	return l->last + ((l->owed * l->step + l->fraction) >> PACING_SHIFT);
}

/* The departure @p due, which has come, is the last from now on. */
static void depart(struct limiter *l, uint64_t due, uint64_t now)
{
	uint64_t oldest = l->waited ? (now > l->slack ? now - l->slack : 0) : now;

	if (due < oldest) {
		l->last = oldest;
		l->fraction = 0;
	} else {
		l->fraction = (l->owed * l->step + l->fraction) & ((1u << PACING_SHIFT) - 1);
		l->last = due;
	}
	l->owed = 0;
}

bool pacing_waits(const struct qp *qp)
{
	return qp->limited && wheel_armed(&qp->limiter->timer);
}

void pacing_cancel(struct core *c, struct qp *qp)
{
	if (!pacing_waits(qp))
		return;
	wheel_cancel(&c->pace, &qp->limiter->timer);
	c->paced--;
}

static void arm(struct core *c, struct limiter *l)
{
	uint64_t due = departure(l);

	c->paced += !wheel_armed(&l->timer);
	wheel_arm(&c->pace, &l->timer, due < l->change_at ? due : l->change_at);
}

void pacing_wait(struct core *c, struct qp *qp)
{
	qp->limiter->waited = true;
	if (list_empty(&qp->ready) && qp->state < ABI_QPS_SQE) /* an event of its turn may differ */
		arm(c, qp->limiter);
}

void pacing_rest(struct qp *qp)
{
	qp->limiter->waited = false;
	qp->limiter->left = 0;
}

/* --- the rate ----------------------------------------------------------------------------- */

static double rate_of(const struct limiter *l)
{
	double rate = l->asked ? (double)l->asked : CC_UNLIMITED;

	if (l->own.rate && (double)l->own.rate < rate)
		rate = (double)l->own.rate;
	return l->ops && l->cc.rate < rate ? l->cc.rate : rate;
}

static uint32_t at_least_one(double x, uint32_t max)
{
	return x >= max ? max : x < 1 ? 1 : (uint32_t)x;
}

/* Bytes of a full packet on the wire. */
static uint32_t full_packet(const struct core *c, const struct qp *qp)
{
	return (1u << qp->mtu_shift) + qp->path.hdr_len + BTH_HLEN + EXTENDED + ICRC_LEN +
	       WIRE_EXTRA + telemetry_bytes(c, qp);
}

/* Packets that may leave together. */
static uint32_t burst_of(const struct core *c, const struct qp *qp, uint32_t packet)
{
	const struct core_shape *own = &qp->limiter->own;
	uint32_t burst = atomic_load_explicit(&port_of(c, qp)->burst, memory_order_relaxed);
	uint32_t most = own->burst / (own->packet ? own->packet : packet);

	if (!burst)
		burst = QUANTUM;
	if (burst > PACING_RUN)
		burst = PACING_RUN;
	if (!own->burst || most >= burst)
		return burst;
	return most ? most : 1;
}

/* The consequences of a new rate. */
static void set_step(const struct core *c, struct qp *qp, double rate)
{
	struct limiter *l = qp->limiter;
	uint32_t bytes = full_packet(c, qp);
	uint32_t burst = burst_of(c, qp, bytes);
	double packet;

	l->quantum = QUANTUM;
	l->ack_every = UINT32_MAX;
	l->slack = 0;
	if (rate >= CC_UNLIMITED) {
		l->step = 0;
		return;
	}
	rate = rate < RATE_LEAST ? RATE_LEAST : rate;
	l->step = (uint64_t)(8e9 / rate * (1u << PACING_SHIFT));
	packet = 8e9 / rate * bytes;
	l->quantum = (uint8_t)at_least_one(TURN_NS / packet, burst);
	if (l->left > l->quantum)
		l->left = 0;
	l->slack = (uint64_t)(packet * burst);
	if (qp->ack_timeout)
		l->ack_every = at_least_one((double)qp->ack_timeout / 8 / packet, WINDOW_MAX);
}

static void set_window(struct qp *qp)
{
	const struct limiter *l = qp->limiter;
	bool any = l->ops && l->cc.window < CC_NO_WINDOW;

	if (l->turns && l->unacked)
		return; /* of the requests, which follow the other algorithm */
	window_cap(&qp->win, any ? at_least_one(l->cc.window, WINDOW_MAX) : UINT32_MAX);
}

/* Brings everything that follows from the outputs of the algorithm up to date. */
static void follow(struct core *c, struct qp *qp, uint64_t now)
{
	struct limiter *l = qp->limiter;
	bool limited;

	set_step(c, qp, rate_of(l));
	set_window(qp);
	if (l->ops && l->cc.ack_every && l->cc.ack_every < l->ack_every)
		l->ack_every = l->cc.ack_every;
	limited = l->step ||
		  (l->ops && (l->change_at != CC_NEVER || l->ops->from_start || l->turns ||
				     l->cc.window < CC_NO_WINDOW)) ||
		  l->detours;
	if (pacing_waits(qp) && limited) {
		arm(c, l);
	} else if (pacing_waits(qp)) {
		pacing_cancel(c, qp);
		qp_make_ready(c, qp);
	}
	qp->limited = limited;
	if (!l->step) {
		l->since = 0;
	} else if (!l->since) {
		l->since = now;
		l->before = l->cnps ? l->cnps - 1 : 0; /* the last one made the limit */
	}
}

/* --- the algorithm ------------------------------------------------------------------------ */

static void forget(struct limiter *l)
{
	l->ops = NULL;
	l->aside.ops = NULL;
	l->turns = false;
	l->unacked = !has_acks(l->qp);
	l->change_at = CC_NEVER;
}

/* The port's algorithm now. Packets to QPs of this daemon meet no congestion. The parameters that
 * `cc.cfg` points to may have been replaced and freed since the last call.
 * @return whether there is one */
static bool algorithm(const struct core *c, struct qp *qp, uint64_t now)
{
	struct limiter *l = qp->limiter;
	const struct cc_config *cfg = config_of(c, qp);

	if (!cfg || qp->path.local) {
		forget(l);
		return false;
	}
	l->turns = has_acks(qp) && whole_config(c, qp)->unacked;
	if (has_acks(qp) && !l->turns)
		l->unacked = false;
	if (l->ops != cfg->ops) {
		cc_init(&l->cc, cfg, now);
		l->ops = cfg->ops;
		l->settled = now;
		l->unsaid = 0;
		if (!l->unacked) {
			memset(&l->rtt, 0, sizeof(l->rtt));
			l->echo.nodes = 0;
		}
	}
	l->cc.cfg = cfg;
	return true;
}

/* Accounts for the time since the last call. A pause of the worker counts as one increase at most,
 * and only after the packets that arrived during it have been received. */
static void settle(const struct core *c, struct limiter *l, uint64_t now)
{
	if (unlikely(l->settled < c->resumed)) {
		if (l->settled < c->paused)
			l->ops->on_time(&l->cc, c->paused);
		l->ops->on_pause(&l->cc, c->resumed);
		rtt_forget(&l->rtt); /* that is our delay, not the network's */
	}
	if (l->settled < now) /* a command's time is that of the round's start */
		l->settled = now;
	l->change_at = l->ops->on_time(&l->cc, now);
}

/* Asks the algorithm, if it has something to say. */
static void update(struct core *c, struct qp *qp, uint64_t now)
{
	struct limiter *l = qp->limiter;
	const struct cc_config *cfg = config_of(c, qp);

	if (likely(now < l->change_at && (!l->ops || l->cc.cfg == cfg)))
		return;
	if (algorithm(c, qp, now) && likely(!c->lags))
		settle(c, l, now);
	follow(c, qp, now);
}

/* From now on @p qp sends packets that are acknowledged, or others. */
static void turn(struct core *c, struct qp *qp, bool unacked, uint64_t now)
{
	struct limiter *l = qp->limiter;
	const struct limiter_aside other = l->aside;

	l->aside = (struct limiter_aside){l->ops, l->settled, l->cc, l->unsaid};
	l->ops = other.ops;
	l->settled = other.settled;
	l->cc = other.cc;
	l->unsaid = other.unsaid;
	l->unacked = unacked;
	l->change_at = now; /* unless it is asked at once: that of the other one says nothing */
	if (algorithm(c, qp, now) && likely(!c->lags))
		settle(c, l, now);
	follow(c, qp, now);
}

/* ACKs and losses are of requests. */
static void turn_to_requests(struct core *c, struct qp *qp, uint64_t now)
{
	if (unlikely(qp->limiter->turns && qp->limiter->unacked))
		turn(c, qp, false, now);
}

void pacing_cnp(struct core *c, struct qp *qp, enum cc_notice kind, uint64_t now)
{
	static const struct cc_hops none;
	struct limiter *l = qp->limiter;
	const struct cc_config *cfg = l->ops && qp->limited ? l->cc.cfg : NULL;
	double rate = l->cc.rate, window = l->cc.window;
	uint32_t ack_every = l->cc.ack_every;

	l->cnps++;
	if (!algorithm(c, qp, now))
		return;
	settle(c, l, now);
	l->ops->on_cnp(&l->cc, kind, &none, now);
	l->change_at = l->ops->on_time(&l->cc, now);
	/* A flood of CNPs does not change the rate, and must cost as little as possible. */
	if (l->cc.cfg != cfg || l->cc.rate != rate || l->cc.window != window ||
		l->cc.ack_every != ack_every)
		follow(c, qp, now);
}

/* --- another path ------------------------------------------------------------------------- */

/* FCN-15: changes the source port and the flow label, so that only ECMP chooses differently. Labels
 * that differ in the lowest bit give different source ports. */
static void take_detour(struct core *c, struct qp *qp, uint64_t now)
{
	uint32_t label = flow_label_of_qpns(qp->qpn + path_sport(&qp->path), 0x9E3779u);

	if (flow_label_to_sport(label) == path_sport(&qp->path))
		label ^= 1;
	path_set_label(&qp->path, label, false);
	c->count.rp_fast_cnp_detours++;
	qp->limiter->detours = false;
	follow(c, qp, now);
}

/* Responses have an order, too, and nothing says when they have arrived. */
static bool has_answered(const struct qp *qp)
{
	return qp->resp.res_head;
}

static bool is_drained(const struct qp *qp)
{
	return qp->comp.una == qp->req.psn_new;
}

void pacing_detour(struct core *c, struct qp *qp, uint64_t now)
{
	struct limiter *l = qp->limiter;

	if (!qp->reliable || qp->path.local || has_answered(qp))
		return;
	l->detours = true;
	if (is_drained(qp))
		take_detour(c, qp, now);
	else
		follow(c, qp, now);
}

/* @param back  the next packet is the oldest that is not acknowledged */
static void detour(struct core *c, struct qp *qp, bool back, uint64_t now)
{
	if (likely(!qp->limiter->detours) || (!back && !is_drained(qp)))
		return;
	if (has_answered(qp)) { /* meanwhile */
		qp->limiter->detours = false;
		follow(c, qp, now);
	} else {
		take_detour(c, qp, now);
	}
}

/* --- ACKs and losses ---------------------------------------------------------------------- */

void pacing_ack(struct core *c, struct qp *qp, uint32_t psn, uint32_t packets, uint64_t now)
{
	struct limiter *l = qp->limiter;
	struct cc_ack ack = {.psn = psn, .packets = packets};
	double rate, window;
	uint32_t ack_every;

	detour(c, qp, false, now);
	turn_to_requests(c, qp, now);
	rate = l->cc.rate;
	window = l->cc.window;
	ack_every = l->cc.ack_every;
	if (!l->ops || !l->ops->on_ack || !algorithm(c, qp, now))
		return;
	settle(c, l, now);
	if (unlikely(!l->ops->on_ack)) { /* it is another one since a moment ago */
		follow(c, qp, now);
		return;
	}
	if (c->hops && l->ops->wants_hops)
		ack.hops = *c->hops;
	ack.rtt = l->ops->wants_rtt ? rtt_acked(&l->rtt, psn, now) : 0;
	l->ops->on_ack(&l->cc, &ack, now);
	l->change_at = l->ops->on_time(&l->cc, now);
	if (l->cc.rate != rate || l->cc.ack_every != ack_every)
		follow(c, qp, now);
	else if (l->cc.window != window)
		set_window(qp);
}

void pacing_loss(struct core *c, struct qp *qp, enum cc_loss kind, uint64_t now)
{
	struct limiter *l = qp->limiter;

	detour(c, qp, true, now);
	turn_to_requests(c, qp, now);
	if (!l->ops || !algorithm(c, qp, now))
		return;
	settle(c, l, now);
	l->ops->on_loss(&l->cc, kind, now);
	l->change_at = l->ops->on_time(&l->cc, now);
	follow(c, qp, now);
}

/* --- commands ----------------------------------------------------------------------------- */

/* Whether the port's algorithm needs to know of all that a QP does. */
static bool from_start(const struct core *c, const struct qp *qp)
{
	const struct cc_config *cfg = config_of(c, qp);

	return cfg && cfg->ops->from_start;
}

static void renew(struct core *c, struct qp *qp, uint64_t now)
{
	if ((qp->limiter->ops || from_start(c, qp)) && algorithm(c, qp, now))
		settle(c, qp->limiter, now);
	follow(c, qp, now);
}

void pacing_refresh(struct core *c, struct qp *qp, uint64_t now)
{
	if (qp->limited || from_start(c, qp))
		renew(c, qp, now);
}

void pacing_restart(struct core *c, struct qp *qp, uint64_t now)
{
	pacing_cancel(c, qp);
	forget(qp->limiter);
	qp->limiter->detours = false;
	pacing_rest(qp);
	qp->limiter->cnps = 0;
	qp->limiter->before = 0;
	renew(c, qp, now);
}

void pacing_reset(struct core *c, struct qp *qp, uint64_t now)
{
	qp->limiter->own = (struct core_shape){0};
	pacing_restart(c, qp, now);
}

void pacing_set_rate(struct core *c, struct qp *qp, uint64_t rate, uint64_t now)
{
	qp->limiter->asked = rate;
	qp->limiter->since = 0; /* what holds it from now on */
	renew(c, qp, now);
}

void pacing_shape(struct core *c, struct qp *qp, const struct core_shape *shape, uint64_t now)
{
	qp->limiter->own = *shape;
	qp->limiter->since = 0;
	renew(c, qp, now);
}

void pacing_set_cc(struct core *c, struct qp *qp, const struct core_cc *cc, uint64_t now)
{
	qp->limiter->has_own = cc->own;
	qp->limiter->chosen = cc->cfg;
	renew(c, qp, now);
}

void pacing_view(const struct core *c, const struct qp *qp, struct core_limit *out)
{
	const struct cc_config *cfg = config_of(c, qp);
	const struct limiter *l = qp->limiter;
	double line = cfg ? cfg->line : 0;
	struct cc_view v = {.rate = line, .target = line};
	double rate = rate_of(l);

	*out = (struct core_limit){
		.asked = l->asked,
		.own = l->own.rate,
		.limited = l->step != 0,
		.window = -1,
		.cnps = l->cnps,
	};
	if (cfg && !qp->path.local)
		out->algorithm = cfg->ops->name;
	if (l->ops && l->cc.cfg == cfg) {
		l->ops->look(&l->cc, &v);
		out->window = l->cc.window < CC_NO_WINDOW ? l->cc.window : -1;
	}
	out->rate = rate < CC_UNLIMITED ? rate : v.rate;
	out->target = l->ops ? v.target : out->rate;
	out->alpha = v.alpha;
	out->rtt = v.rtt;
}

void pacing_look(struct core *c, struct qp *qp, struct core_limit *out, uint64_t now)
{
	renew(c, qp, now);
	pacing_view(c, qp, out);
	if (!qp->limiter->since)
		return;
	/* A CNP of this round may have a later time: packets read the clock, commands do not. */
	out->limited_ns = now > qp->limiter->since ? now - qp->limiter->since : 0;
	out->limited_cnps = qp->limiter->cnps - qp->limiter->before;
	out->by_switch = qp->notice.kind == CC_CNP_FAST;
}

/* --- sending ------------------------------------------------------------------------------ */

unsigned pacing_room(struct core *c, struct qp *qp, unsigned n, uint64_t now)
{
	struct limiter *l = qp->limiter;
	uint64_t due;

	update(c, qp, now);
	if (unlikely(l->left)) /* of a quantum that is more than one turn */
		return n < l->left ? n : l->left;
	due = departure(l);
	if (due > now)
		return 0;
	depart(l, due, now);
	if (unlikely(l->quantum > QUANTUM))
		l->left = l->quantum;
	return n < l->quantum ? n : l->quantum;
}

/* On the wire: with pad, ICRC, FCS, preamble and gap. */
static uint32_t wire_bytes(const struct txd *t)
{
	return t->hdr_len + ((t->payload_len + 3u) & ~3u) + ICRC_LEN + WIRE_EXTRA;
}

/* Whether the packet @p t is answered by an ACK, at once: no READ, no atomic, no response. */
static bool is_acked(const struct txd *t)
{
	const uint8_t *bth = txd_bth(t);
	unsigned op = bth[BTH_OPCODE] & OPC_OP_MASK;

	return (bth[BTH_ACKREQ] & BTH_A) &&
	       (op <= OP_WRITE_ONLY_WITH_IMM || op == OP_SEND_LAST_WITH_INV ||
		       op == OP_SEND_ONLY_WITH_INV);
}

static bool is_read_response(const struct txd *t)
{
	unsigned op = txd_bth(t)[BTH_OPCODE] & OPC_OP_MASK;

	return op >= OP_READ_RESP_FIRST && op <= OP_READ_RESP_ONLY;
}

static void measure(struct rtt *r, const struct txd out[], unsigned n, bool again, uint64_t now)
{
	if (again) {
		rtt_forget(r);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		if (is_acked(&out[i]))
			rtt_left(r, get_be32(txd_bth(&out[i]) + BTH_ACKREQ) & SEQ24_MASK, now);
}

bool pacing_sent(
	struct core *c, struct qp *qp, const struct txd out[], unsigned n, bool again, uint64_t now)
{
	struct limiter *l = qp->limiter;
	uint32_t bytes = 0;

	if (unlikely(l->turns && n && is_read_response(&out[n - 1]) != l->unacked))
		turn(c, qp, !l->unacked, now);
	for (unsigned i = 0; i < n; i++)
		bytes += wire_bytes(&out[i]);
	if (unlikely(l->ops && !l->unacked))
		bytes += n * telemetry_bytes(c, qp);
	l->owed += bytes;
	l->left -= l->left ? (uint8_t)n : 0;
	l->unsaid = l->ops ? l->unsaid + bytes : 0;
	if (l->ops && n && likely(!c->lags)) { /* pacing_room() has seen to its parameters */
		double rate = l->cc.rate;

		if (l->ops->wants_rtt)
			measure(&l->rtt, out, n, again, now);
		l->ops->on_sent(&l->cc, l->unsaid,
			get_be32(txd_bth(&out[n - 1]) + BTH_ACKREQ) & SEQ24_MASK, again, now);
		l->unsaid = 0;
		if (unlikely(l->cc.rate != rate)) {
			l->change_at = l->ops->on_time(&l->cc, now);
			follow(c, qp, now);
		}
	}
	return l->left || departure(l) <= now;
}

uint64_t pacing_rate(const struct qp *qp)
{
	uint64_t step = __atomic_load_n(&qp->limiter->step, __ATOMIC_RELAXED);

	return step ? (8000000000ull << PACING_SHIFT) / step : 0;
}

bool pacing_wants_ack(const struct qp *qp)
{
	return qp->req.since_ackreq >= qp->limiter->ack_every;
}

void pacing_expire(struct core *c, uint64_t now)
{
	unsigned moves = TIMERS_MOVED;

	for (unsigned n = 0; n < READY_ROUND; n++) {
		struct wheel_timer *t = wheel_expire(&c->pace, now, &moves);
		struct limiter *l;

		if (!t)
			return;
		l = container_of(t, struct limiter, timer);
		c->paced--;
		update(c, l->qp, now);
		if (departure(l) > now)
			arm(c, l);
		else
			qp_make_ready(c, l->qp);
	}
}
