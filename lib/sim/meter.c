/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "meter.h"

void meter_begin(struct sim_meter *m, uint64_t bytes, uint64_t now)
{
	memset(m, 0, sizeof(*m));
	m->from = m->since = now;
	m->bytes = m->most = bytes;
}

void meter_change(struct sim_meter *m, uint64_t bytes, uint64_t now)
{
	uint64_t step = m->bytes / METER_STEP;
	uint64_t ns = now - m->since;

	m->area += (double)m->bytes * (double)ns;
	m->ns[step < METER_STEPS ? step : METER_STEPS - 1] += ns;
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
	double sum = 0;

	for (uint32_t i = 0; i < METER_STEPS; i++) {
		double ns = (double)m->ns[i];

		if (ns > 0 && sum + ns >= want)
			return ((double)i + (want - sum) / ns) * METER_STEP;
		sum += ns;
	}
	return (double)m->most;
}
