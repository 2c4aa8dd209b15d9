/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth and message rate. A QP gets as many new requests as its own completed, so that rociperf
 * favours none.
 */
#include "side.h"

static void refill(struct side *s, struct flow *f)
{
	const struct shape *shape = &s->end.shape;

	while (f->under_way + shape->list <= shape->depth)
		side_post(s, f, shape->list, false);
}

static bool begin(struct side *s)
{
	for (uint32_t i = 0; i < s->end.flows; i++)
		refill(s, &s->end.flow[i]);
	return true;
}

bool stream_step(struct side *s, uint64_t now)
{
	struct measure *m = &s->measure;
	struct roci_wc wc[POLL_MAX];
	bool sends = measure_sends(m);
	uint32_t completed = 0;
	int n;

	if (sends && !s->under_way)
		return begin(s);
	n = side_poll(s, wc);
	for (int i = 0; i < n; i++) {
		struct flow *f = side_flow(s, &wc[i]);

		if (wc[i].opcode & ROCI_WC_RECV) {
			side_received(s, f, &wc[i]);
			continue;
		}
		completed += side_completed(s, f, &wc[i]);
		if (sends)
			refill(s, f);
	}
	measure_count(m, completed, now);
	return n > 0;
}
