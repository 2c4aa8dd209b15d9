/* SPDX-License-Identifier: BSD-3-Clause */
#include "dcqcn_model.h"
#include <string.h>

#define USEC 1000ull

void model_init(struct model *m, enum model_law law, double line)
{
	memset(m, 0, sizeof(*m));
	m->law = law;
	m->line = line;
	m->rc = m->rt = line;
	m->clamp_ati = true;
	m->alpha_ns = 1 * USEC;
	m->time_ns = 300 * USEC;
	m->monitor_ns = 4 * USEC;
	m->f = 1;
	switch (law) {
	case MODEL_PAPER:
		m->g = 1 / 256.0;
		m->initial_alpha = 1;
		m->ai = 40e6;
		m->hai = 200e6;
		m->min = 10e6;
		m->alpha_ns = m->time_ns = 55 * USEC;
		m->monitor_ns = 0;
		m->bytes_reset = 10000000;
		m->f = 5;
		m->clamp = true;
		m->clamp_ati = false;
		break;
	case MODEL_CONNECTX:
		m->g = 5 / 1024.0;
		m->initial_alpha = 1023 / 1024.0;
		m->ai = 5e6;
		m->hai = 50e6;
		m->min = 1e6;
		m->min_dec = 0.5;
		m->bytes_reset = 64 * 32767;
		break;
	case MODEL_NS3HPCC:
		m->g = 1 / 256.0;
		m->initial_alpha = 1;
		m->ai = 5e6 * line / 25e9;
		m->hai = 50e6 * line / 25e9;
		m->min = 100e6;
		break;
	}
}

static void increase(struct model *m)
{
	unsigned most = m->t > m->b ? m->t : m->b;
	unsigned least = m->t > m->b ? m->b : m->t;

	if (m->law == MODEL_NS3HPCC) {
		if (m->t == m->f + 1)
			m->rt += m->ai;
		else if (m->t > m->f + 1)
			m->rt += m->hai;
	} else if (least > m->f) {
		m->rt += (least - m->f) * m->hai;
	} else if (most > m->f) {
		m->rt += m->ai;
	}
	if (m->rt > m->line)
		m->rt = m->line;
	m->rc = (m->rc + m->rt) / 2;
}

static void decrease(struct model *m, uint64_t now)
{
	double factor = 1 - m->alpha / 2;

	if (m->clamp || m->b || (m->t && m->clamp_ati))
		m->rt = m->rc;
	if (factor < m->min_dec)
		factor = m->min_dec;
	m->rc *= factor;
	if (m->rc < m->min)
		m->rc = m->min;
	m->t = m->b = 0;
	m->bytes = 0;
	m->next_time = now + m->time_ns;
	if (m->law == MODEL_PAPER) {
		m->alpha = (1 - m->g) * m->alpha + m->g;
		m->next_alpha = now + m->alpha_ns;
	}
}

void model_run(struct model *m, uint64_t now)
{
	if (!m->known)
		return;
	for (;;) {
		uint64_t at = m->next_alpha;

		if (m->next_time < at)
			at = m->next_time;
		if (m->monitor_ns && m->next_monitor < at)
			at = m->next_monitor;
		if (at > now)
			return;
		if (at == m->next_alpha) {
			m->alpha = (1 - m->g) * m->alpha + (m->cnp_alpha ? m->g : 0);
			m->cnp_alpha = false;
			m->next_alpha += m->alpha_ns;
		}
		if (at == m->next_time) {
			m->t++;
			increase(m);
			m->next_time += m->time_ns;
		}
		if (m->monitor_ns && at == m->next_monitor) {
			if (m->cnp_monitor)
				decrease(m, at);
			m->cnp_monitor = false;
			m->next_monitor += m->monitor_ns;
		}
	}
}

void model_cnp(struct model *m, uint64_t now)
{
	model_run(m, now);
	if (!m->known) {
		m->known = true;
		m->alpha = m->initial_alpha;
		m->next_alpha = now + m->alpha_ns;
		m->next_time = now + m->time_ns;
		m->next_monitor = now + m->monitor_ns;
	} else if (m->law != MODEL_PAPER) {
		m->cnp_alpha = true;
	}
	if (m->monitor_ns)
		m->cnp_monitor = true;
	else
		decrease(m, now);
}

void model_sent(struct model *m, uint32_t bytes, uint64_t now)
{
	model_run(m, now);
	if (!m->known || !m->bytes_reset)
		return;
	for (m->bytes += bytes; m->bytes >= m->bytes_reset; m->bytes -= m->bytes_reset) {
		m->b++;
		increase(m);
	}
}
