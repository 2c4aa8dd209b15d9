/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"
#include <stdlib.h>
#include <string.h>

#define PSN_MASK 0xFFFFFFu

static uint32_t number(const json_t *row, const char *name)
{
	return (uint32_t)json_integer_value(json_object_get(row, name));
}

static void text(char *to, size_t size, const json_t *row, const char *name)
{
	const char *s = json_string_value(json_object_get(row, name));

	snprintf(to, size, "%s", s ? s : "");
}

static const struct top_qp *find(const struct top *t, uint32_t qpn, uint32_t session)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->qp[i].qpn == qpn && t->qp[i].session == session)
			return &t->qp[i];
	return NULL;
}

/* After a RESET the PSNs are new ones: an advance of half of all PSNs or more is not progress. */
static double passed(uint32_t before, uint32_t now)
{
	uint32_t n = (now - before) & PSN_MASK;

	return n <= PSN_MASK / 2 ? n : 0;
}

static void take(struct top_qp *q, const json_t *row, const struct top_qp *old, double seconds)
{
	memset(q, 0, sizeof(*q));
	q->qpn = number(row, "qpn");
	q->session = number(row, "session");
	q->port = number(row, "port");
	q->peer_qpn = number(row, "peer_qpn");
	q->sent_psn = number(row, "sent_psn");
	q->expected_psn = number(row, "expected_psn");
	q->limit_mbps = number(row, "limit_mbps");
	q->cnps = (uint64_t)json_integer_value(json_object_get(row, "cnps_handled"));
	text(q->program, sizeof(q->program), row, "program");
	text(q->peer, sizeof(q->peer), row, "peer");
	text(q->state, sizeof(q->state), row, "state");
	if (!old || seconds <= 0)
		return;
	q->tx = passed(old->sent_psn, q->sent_psn) / seconds;
	q->rx = passed(old->expected_psn, q->expected_psn) / seconds;
	q->cnps_s = q->cnps > old->cnps ? (double)(q->cnps - old->cnps) / seconds : 0;
	memcpy(q->past, old->past + 1, sizeof(q->past) - sizeof(q->past[0]));
	q->past[TOP_HISTORY - 1] = q->tx + q->rx;
	q->looks = old->looks + 1;
}

static int by_rate(const void *a, const void *b)
{
	const struct top_qp *x = a, *y = b;
	double dx = x->tx + x->rx, dy = y->tx + y->rx;

	if (dx != dy)
		return dx < dy ? 1 : -1;
	return (x->qpn > y->qpn) - (x->qpn < y->qpn);
}

bool top_look(struct top *t, const json_t *document, double now)
{
	const json_t *rows = json_object_get(document, "traffic");
	size_t n = json_array_size(rows);
	struct top_qp *qp = calloc(n ? n : 1, sizeof(*qp));

	if (!qp)
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(rows, i);

		take(&qp[i], row, find(t, number(row, "qpn"), number(row, "session")), now - t->at);
	}
	qsort(qp, n, sizeof(*qp), by_rate);
	free(t->qp);
	*t = (struct top){.qp = qp, .n = n, .at = now};
	return true;
}

void top_free(struct top *t)
{
	free(t->qp);
	*t = (struct top){0};
}

void top_sparkline(const struct top_qp *q, unsigned looks, bool utf8, char out[TOP_HISTORY * 3 + 1])
{
	unsigned first = TOP_HISTORY - looks;
	double most = 0;
	char *p = out;

	for (unsigned i = first; i < TOP_HISTORY; i++)
		most = q->past[i] > most ? q->past[i] : most;
	for (unsigned i = first; i < TOP_HISTORY; i++) {
		/* U+2581 to U+2588: one to eight eighths of a block */
		unsigned eighths = most > 0 ? (unsigned)(q->past[i] / most * 8 + 0.5) : 0;

		if (eighths && !utf8) {
			*p++ = (char)('0' + eighths);
		} else if (eighths) {
			memcpy(p, "\xE2\x96", 2);
			p[2] = (char)(0x80 + eighths);
			p += 3;
		} else {
			*p++ = ' ';
		}
	}
	*p = '\0';
}
