/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPCC (Li et al., SIGCOMM 2019; HPCC++: draft-miao-ccwg-hpcc): every ACK carries the records of
 * the switches on the path. Two records of a link give the bytes in flight on it, as a fraction of
 * what it carries in a base round trip. The most loaded link decides: the window is set so that
 * this link is used to `eta`, and up to `max_stage` additive steps probe for more.
 *
 * This is Algorithm 1 of the SIGCOMM paper, starting with U = 1 as its simulator does. An ACK
 * without records changes nothing.
 */
#include "cc.h"
#include "mean.h"
#include "seq24.h"

enum {
	BASE_RTT,
	ETA,
	MAX_STAGE,
	W_AI,
	MIN_RATE,
	PARAMS
};

static const struct cc_param params[PARAMS] = {
	[BASE_RTT] = {.name = "base_rtt",
		.unit = "us",
		.help = "longest round trip without queues (T)",
		.min = 1,
		.max = 1e5,
		.def = {{13, false}}},
	[ETA] = {.name = "eta",
		.unit = "1/1000",
		.help = "target link utilization",
		.min = 500,
		.max = 1000,
		.def = {{950, false}}},
	[MAX_STAGE] = {.name = "max_stage",
		.unit = "",
		.help = "additive steps before the window is set by the load",
		.min = 1,
		.max = 100,
		.def = {{5, false}}},
	[W_AI] = {.name = "w_ai",
		.unit = "bytes",
		.help = "additive increase of the window",
		.min = 1,
		.max = 1e6,
		.def = {{80, false}}},
	[MIN_RATE] = {.name = "min_rate",
		.unit = "Mb/s",
		.help = "minimum rate",
		.min = 1,
		.max = 1e6,
		.def = {{100, false}}},
};

static const char *const profiles[] = {"paper"};

/* Older records are useless: their counters may have wrapped. */
#define RECORD_NS 5000000u
/* Tolerance for a link that seems faster than its rate: switches count whole frames. */
#define LUMP 16384.0

struct link {
	uint32_t time, sent, queue; /* as struct cc_hop */
	float rate;		    /* bit/s */
};

struct hpcc {
	double w;  /* bytes: the window */
	double wc; /* bytes: the reference that `w` is computed from, changed once per round trip */
	double u;  /* U: the load of the most loaded link, averaged */
	uint64_t recorded; /* ns: when `link` was recorded */
	struct mean mean;
	uint32_t update_psn; /* lastUpdateSeq: ACKs up to it belong to the present `wc` */
	uint32_t sent_psn;   /* of the last packet sent */
	uint32_t stage;	     /* incStage */
	uint32_t links;	     /* entries in `link`; 0: no record yet */
	struct link link[CC_HOPS_MAX];
} __attribute__((may_alias));
_Static_assert(sizeof(struct hpcc) <= CC_STATE_MAX, "");

static struct hpcc *of(struct cc *c)
{
	return (struct hpcc *)c->state;
}

static double param(const struct cc *c, unsigned i)
{
	return c->cfg->value[i];
}

/* T, in seconds. */
static double base_rtt(const struct cc *c)
{
	return param(c, BASE_RTT) * 1e-6;
}

/* @return the bytes that @p rate carries in a base round trip. */
static double bytes_of(const struct cc *c, double rate)
{
	return rate * base_rtt(c) / 8;
}

static double clip(const struct cc *c, double w)
{
	double least = bytes_of(c, param(c, MIN_RATE) * 1e6), most = bytes_of(c, c->cfg->line);

	return w > most ? most : w < least ? least : w;
}

/* R = W / T, and W in packets, rounded up because a partly sent packet counts as one. */
static void publish(struct cc *c)
{
	const struct hpcc *h = of(c);
	double packet = mean_packet(&h->mean);

	c->rate = h->w * 8 / base_rtt(c);
	c->window = CC_NO_WINDOW;
	if (packet > 0)
		c->window = (double)(uint64_t)(h->w / packet) + 1;
	c->ack_every = 1;
}

static void hpcc_init(struct cc *c, uint64_t now)
{
	struct hpcc *h = of(c);

	h->w = clip(c, bytes_of(c, c->cfg->line));
	h->wc = h->w;
	h->u = 1;
	publish(c);
}

/* --- records of switches --------------------------------------------------------------------- */

static void record(struct hpcc *h, const struct cc_hops *hops, uint64_t now)
{
	h->links = hops->n < CC_HOPS_MAX ? hops->n : CC_HOPS_MAX;
	for (uint32_t i = 0; i < h->links; i++) {
		const struct cc_hop *hop = &hops->hop[i];

		h->link[i] = (struct link){hop->time, hop->sent, hop->queue, (float)hop->rate};
	}
	h->recorded = now;
}

/* @return whether the previous records are of the same links and recent enough. */
static bool comparable(const struct hpcc *h, const struct cc_hops *hops, uint64_t now)
{
	if (!h->links || h->links != hops->n || now - h->recorded > RECORD_NS)
		return false;
	for (uint32_t i = 0; i < h->links; i++)
		if (h->link[i].rate != (float)hops->hop[i].rate)
			return false;
	return true;
}

/* Computes u' of one link.  @param tau  set to the seconds between its records
 * @return false: the records contradict each other, or exceed the link's speed. */
static bool load_of(
	const struct cc *c, const struct link *was, const struct cc_hop *is, double *u, double *tau)
{
	double seconds = (double)(is->time - was->time) / 256e9;
	double bytes = (double)(is->sent - was->sent) / 32;
	uint32_t queue = is->queue < was->queue ? is->queue : was->queue;

	if (is->rate <= 0 || is->time == was->time || seconds * 1e9 > 2.0 * RECORD_NS ||
		bytes > is->rate * seconds / 8 + LUMP)
		return false;
	*tau = seconds;
	*u = queue / bytes_of(c, is->rate) + bytes * 8 / seconds / is->rate;
	return true;
}

/* MeasureInflight().  @return whether U was updated. */
static bool measure(struct cc *c, const struct cc_hops *hops)
{
	struct hpcc *h = of(c);
	double most = -1, tau = 0, weight;

	for (uint32_t i = 0; i < h->links; i++) {
		double u, seconds;

		if (!load_of(c, &h->link[i], &hops->hop[i], &u, &seconds) || u <= most)
			continue;
		most = u;
		tau = seconds;
	}
	if (most < 0)
		return false;
	weight = tau < base_rtt(c) ? tau / base_rtt(c) : 1;
	h->u = (1 - weight) * h->u + weight * most;
	return true;
}

/* ComputeWind(). */
static void compute(struct cc *c, bool update)
{
	struct hpcc *h = of(c);
	double eta = param(c, ETA) / 1000;
	bool by_load = h->u >= eta || h->stage >= (uint32_t)param(c, MAX_STAGE);

	h->w = clip(c, (by_load ? h->wc / (h->u / eta) : h->wc) + param(c, W_AI));
	if (!update)
		return;
	h->stage = by_load ? 0 : h->stage + 1;
	h->wc = h->w;
	h->update_psn = h->sent_psn;
}

/* --- the contract --------------------------------------------------------------------------- */

static void hpcc_on_sent(struct cc *c, uint32_t bytes, uint32_t psn, bool again, uint64_t now)
{
	struct hpcc *h = of(c);

	h->mean.bytes += again ? 0 : bytes;
	if (!again)
		h->sent_psn = psn;
}

static void hpcc_on_ack(struct cc *c, const struct cc_ack *ack, uint64_t now)
{
	struct hpcc *h = of(c);

	mean_acked(&h->mean, ack->packets);
	if (ack->hops.n) {
		if (!comparable(h, &ack->hops, now))
			h->update_psn = h->sent_psn;
		else if (measure(c, &ack->hops))
			compute(c, seq24_lt(h->update_psn, ack->psn));
		record(h, &ack->hops, now);
	}
	publish(c);
}

/* A loss is ignored: congestion would show in the records, as queues are kept short. */
static void hpcc_on_loss(struct cc *c, enum cc_loss kind, uint64_t now)
{
}

static void hpcc_on_cnp(struct cc *c, enum cc_notice kind, const struct cc_hops *hops, uint64_t now)
{
}

static uint64_t hpcc_on_time(struct cc *c, uint64_t now)
{
	struct hpcc *h = of(c);

	h->w = clip(c, h->w); /* its limits may have been changed */
	h->wc = clip(c, h->wc);
	publish(c);
	return CC_NEVER;
}

/* Records from before the pause do not describe the time after it. */
static void hpcc_on_pause(struct cc *c, uint64_t now)
{
	of(c)->links = 0;
}

static void hpcc_look(const struct cc *c, struct cc_view *v)
{
	const struct hpcc *h = (const struct hpcc *)c->state;

	v->limited = h->w < bytes_of(c, c->cfg->line);
	v->rate = c->rate;
	v->target = h->wc * 8 / base_rtt(c);
	v->alpha = h->u;
	v->window = c->window < CC_NO_WINDOW ? c->window : 0;
	v->rtt = 0;
}

const struct cc_ops cc_hpcc = {
	.name = "hpcc",
	.title = "HPCC: the window follows the load that the busiest switch on the path records",
	.params = params,
	.nparams = PARAMS,
	.profiles = profiles,
	.nprofiles = 1,
	.from_start = true,
	.needs_acks = true,
	.wants_hops = true,
	.init = hpcc_init,
	.on_sent = hpcc_on_sent,
	.on_ack = hpcc_on_ack,
	.on_cnp = hpcc_on_cnp,
	.on_loss = hpcc_on_loss,
	.on_time = hpcc_on_time,
	.on_pause = hpcc_on_pause,
	.look = hpcc_look,
};
