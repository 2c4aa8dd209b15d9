/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "meter.h"

void meter_begin(struct sim_meter *m, uint64_t bytes, uint64_t now)
{
	memset(m, 0, sizeof(*m));
	m->from = m->since = now;
	m->bytes = m->most = bytes;
}

/* @return the counter for time with the present queue length. */
static uint64_t *slot_of(struct sim_meter *m)
{
	uint64_t step = (m->bytes - 1) / METER_STEP;

	return !m->bytes ? &m->empty : &m->ns[step < METER_STEPS ? step : METER_STEPS - 1];
}

void meter_change(struct sim_meter *m, uint64_t bytes, uint64_t now)
{
	uint64_t ns = now - m->since;

	m->area += (double)m->bytes * (double)ns;
	*slot_of(m) += ns;
	m->since = now;
	m->bytes = bytes;
	if (bytes > m->most)
		m->most = bytes;
}

double meter_mean(const struct sim_meter *m)
{
	return m->since > m->from ? m->area / (double)(m->since - m->from) : (double)m->bytes;
}

double meter_quantile(const struct sim_meter *m, double part)
{
	double want = part * (double)(m->since - m->from);
	double sum = (double)m->empty;
	double most = (double)m->most;

	if (sum >= want)
		return 0;
	for (uint32_t i = 0; i < METER_STEPS - 1; i++) {
		double ns = (double)m->ns[i];

		if (ns > 0 && sum + ns >= want) {
			double at = ((double)i + (want - sum) / ns) * METER_STEP;

			return at < most ? at : most;
		}
		sum += ns;
	}
	return most;
}
