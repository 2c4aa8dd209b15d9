/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>
#include "json_line.h"
#include "measure.h"
#include "oob.h"
#include "row.h"

#define RUN_S 0.3
/* Maximum bytes in flight, so that the end of a slow run does not take long. */
#define BYTES_MAX	(8u << 20)
#define ROUND_TRIPS_MAX 20000

static unsigned depth_for(uint32_t len)
{
	unsigned depth = BYTES_MAX / len;

	return depth < QUEUE_DEPTH ? depth : QUEUE_DEPTH;
}

void measure_bandwidth(
	struct endpoint *e, enum roci_wr_opcode opcode, const char *name, uint32_t len)
{
	struct roci_wc wc[QUEUE_DEPTH];
	double start = seconds();
	unsigned depth = depth_for(len);
	unsigned long messages = 0;
	unsigned flying = 0;
	double took;
	struct row r;

	do {
		while (flying < depth && seconds() - start < RUN_S) {
			endpoint_post(e, opcode, 0, len);
			flying++;
			messages++;
		}
		if (flying)
			flying -= (unsigned)endpoint_wait(e, wc, QUEUE_DEPTH);
		took = seconds() - start;
	} while (flying || took < RUN_S);
	row_begin(&r);
	put_text(&r, "measure", name);
	put_int(&r, "bytes", len);
	put_int(&r, "messages", (int64_t)messages);
	put_real(&r, "seconds", took);
	json_line(row_end(&r));
}

/* SENDs that were received and not answered, and sent and not acknowledged. */
struct traffic {
	unsigned arrived;
	unsigned flying;
	bool imm; /* the last that came had immediate data */
};

static void take(struct endpoint *e, struct traffic *t)
{
	struct roci_wc wc[4];
	int n = endpoint_wait(e, wc, 4);

	for (int i = 0; i < n; i++) {
		if (wc[i].opcode == ROCI_WC_RECV) {
			t->arrived++;
			t->imm = wc[i].wc_flags & ROCI_WC_WITH_IMM;
		} else {
			t->flying--;
		}
	}
}

static void await(struct endpoint *e, struct traffic *t)
{
	while (!t->arrived || t->flying == QUEUE_DEPTH)
		take(e, t);
	t->arrived--;
}

static void pass(struct endpoint *e, struct traffic *t, enum roci_wr_opcode opcode, uint32_t len)
{
	endpoint_post(e, opcode, 0, len);
	t->flying++;
}

static void drain(struct endpoint *e, struct traffic *t)
{
	while (t->flying)
		take(e, t);
}

static int compare(const void *a, const void *b)
{
	const double *x = a;
	const double *y = b;

	return (*x > *y) - (*x < *y);
}

void measure_latency(struct endpoint *e, uint32_t len)
{
	static double trip[ROUND_TRIPS_MAX];
	struct traffic t = {0};
	double start = seconds();
	unsigned n = 0;
	struct row r;
	bool last;

	do {
		double sent = seconds();

		last = n + 1 == ROUND_TRIPS_MAX || sent - start > RUN_S;
		endpoint_receive(e, 0, len);
		pass(e, &t, last ? ROCI_WR_SEND_WITH_IMM : ROCI_WR_SEND, len);
		await(e, &t);
		trip[n++] = (seconds() - sent) / 2;
	} while (!last);
	drain(e, &t);
	qsort(trip, n, sizeof(trip[0]), compare);
	row_begin(&r);
	put_text(&r, "measure", "send_latency");
	put_int(&r, "bytes", len);
	put_int(&r, "round_trips", n);
	put_real(&r, "median_us", trip[n / 2] * 1e6);
	put_real(&r, "p99_us", trip[n - 1 - n / 100] * 1e6);
	json_line(row_end(&r));
}

void measure_echo(struct endpoint *e, int fd, uint32_t len)
{
	struct traffic t = {0};
	uint64_t nothing = 0;
	bool last;

	endpoint_receive(e, 0, len);
	oob_send(fd, &nothing, sizeof(nothing));
	do {
		await(e, &t);
		last = t.imm;
		if (!last)
			endpoint_receive(e, 0, len);
		pass(e, &t, ROCI_WR_SEND, len);
	} while (!last);
	drain(e, &t);
	oob_send(fd, &nothing, sizeof(nothing));
}
