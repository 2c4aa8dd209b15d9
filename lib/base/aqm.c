/* SPDX-License-Identifier: BSD-3-Clause */
#include "aqm.h"

void aqm_init(struct aqm *q, const struct aqm_config *cfg, uint64_t seed)
{
	q->cfg = *cfg;
	q->bytes = 0;
	q->random.state = (seed + 1) * 0x9E3779B97F4A7C15ull | 1; /* not 0 */
	for (unsigned i = 0; i < 8; i++)
		random_next(&q->random);
}

/* Draws one random number per decision between kmin and kmax, none outside. */
static enum aqm_fate red(struct aqm *q)
{
	const struct aqm_config *c = &q->cfg;
	double p;

	if (!c->kmax || q->bytes <= c->kmin)
		return AQM_PASS;
	if (q->bytes > c->kmax)
		return AQM_MARK;
	p = c->pmax * (double)(q->bytes - c->kmin) / (double)(c->kmax - c->kmin);
	return (double)(random_next(&q->random) >> 11) * 0x1p-53 < p ? AQM_MARK : AQM_PASS;
}

enum aqm_fate aqm_enter(struct aqm *q, uint32_t len)
{
	enum aqm_fate fate = AQM_PASS;

	if (q->cfg.limit && q->bytes + len > q->cfg.limit)
		return AQM_DROP;
	if (q->cfg.ingress)
		fate = red(q);
	q->bytes += len;
	return fate;
}

enum aqm_fate aqm_leave(struct aqm *q, uint32_t len)
{
	q->bytes -= len;
	return q->cfg.ingress ? AQM_PASS : red(q);
}
