/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nanoseconds for the CRC, the fused copy and the masked header of each implementation, at the
 * payload sizes of the project's table of floors. Implementations take turns in the order ABBA
 * and medians are shown, because a shared machine's speed drifts.
 *
 *   icrc_bench [milliseconds for the whole, default 3000]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bits.h"
#include "headers.h"
#include "icrc.h"
#include "frame.h"

#define HEADER	 48u /* what the table's rows have in front of the payload */
#define IMPL_MAX 8u
#define ROUNDS	 62u /* passes over all implementations, alternately forth and back */

static const size_t payloads[] = {0, 64, 256, 1024, 4096};

/* In L1, at the alignments of an mbuf after its Ethernet header and of a buffer. Several
 * frames take turns: a header that was just written around would wait for those stores. */
#define FRAMES 4u
static uint8_t frames[FRAMES][4352] CACHE_ALIGNED;
static uint8_t app[4352] CACHE_ALIGNED;

static uint8_t *next_l3(void)
{
	static unsigned n;

	return frames[n++ % FRAMES] + ETH_HLEN;
}

/* One measured call. Calls do not depend on each other: neither do the packets of a burst. */
typedef uint32_t (*work_fn)(const struct icrc_ops *ops, size_t payload);

static uint32_t one_pass(const struct icrc_ops *ops, size_t payload)
{
	return ops->crc(ICRC_SEED, next_l3(), HEADER + payload);
}

static uint32_t header_then_payload(const struct icrc_ops *ops, size_t payload)
{
	uint8_t *l3 = next_l3();
	uint32_t state = icrc_header(ops, l3, NET_IPV4, HEADER);

	return ops->crc(state, l3 + HEADER, payload);
}

static uint32_t header_then_copy(const struct icrc_ops *ops, size_t payload)
{
	uint8_t *l3 = next_l3();
	uint32_t state = icrc_header(ops, l3, NET_IPV4, HEADER);

	return ops->copy(state, l3 + HEADER, app, payload);
}

static uint32_t copy_only(const struct icrc_ops *ops, size_t payload)
{
	return ops->copy(ICRC_SEED, next_l3() + HEADER, app, payload);
}

static uint32_t check_received(const struct icrc_ops *ops, size_t payload)
{
	static struct pkt p = {.net = NET_IPV4};

	p.l3 = next_l3();
	p.icrc_off = (uint32_t)(HEADER + payload);
	return icrc_check(ops, &p);
}

static const struct {
	const char *name;
	work_fn fn;
} works[] = {
	{"crc of 48 + payload in one pass", one_pass},
	{"masked header, then crc of payload", header_then_payload},
	{"masked header, then fused copy", header_then_copy},
	{"fused copy alone", copy_only},
	{"icrc_check of a received packet", check_received},
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static volatile uint32_t sink;

static double measure(work_fn fn, const struct icrc_ops *ops, size_t payload, unsigned calls)
{
	uint32_t sum = 0;
	double start = now_ns();

	for (unsigned i = 0; i < calls; i++)
		sum += fn(ops, payload);
	sink = sum;
	return (now_ns() - start) / calls;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

/* As many calls as fill `ns`, from one short try. */
static unsigned calls_for(work_fn fn, const struct icrc_ops *ops, size_t payload, double ns)
{
	double each = measure(fn, ops, payload, 200);

	return (unsigned)(ns / (each > 1 ? each : 1)) + 1;
}

static void bench(unsigned work, size_t payload, unsigned impls, double ns, double result[])
{
	static double samples[IMPL_MAX][ROUNDS];
	unsigned calls[IMPL_MAX];

	for (unsigned i = 0; i < impls; i++)
		calls[i] = calls_for(works[work].fn, icrc_nth(i), payload, ns / ROUNDS);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned n = 0; n < impls; n++) {
			unsigned i = round % 2 ? impls - 1 - n : n;

			samples[i][round] = measure(works[work].fn, icrc_nth(i), payload, calls[i]);
		}
	for (unsigned i = 0; i < impls; i++)
		result[i] = median(samples[i], ROUNDS);
}

static void run(unsigned work, unsigned impls, double ns)
{
	double result[ARRAY_SIZE(payloads)][IMPL_MAX];

	for (unsigned s = 0; s < ARRAY_SIZE(payloads); s++)
		bench(work, payloads[s], impls, ns, result[s]);
	printf("\n%-36s", works[work].name);
	for (unsigned s = 0; s < ARRAY_SIZE(payloads); s++)
		printf("%9zu", payloads[s]);
	for (unsigned i = 0; i < impls; i++) {
		printf("\n  %-34s", icrc_nth(i)->name);
		for (unsigned s = 0; s < ARRAY_SIZE(payloads); s++)
			printf("%9.1f", result[s][i]);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	double ms = argc > 1 ? atof(argv[1]) : 3000;
	unsigned impls = 0;

	if (argc > 2 || ms <= 0) {
		fprintf(stderr, "usage: icrc_bench [milliseconds, more than 0]\n");
		return 2;
	}
	while (impls < IMPL_MAX && icrc_nth(impls))
		impls++;
	for (size_t i = 0; i < sizeof(app); i++)
		app[i] = (uint8_t)(i * 167);
	for (unsigned f = 0; f < FRAMES; f++)
		memcpy(frames[f], app, sizeof(app));
	printf("ns a call, medians of %u\n", ROUNDS);
	for (unsigned w = 0; w < ARRAY_SIZE(works); w++)
		run(w, impls, ms * 1e6 / (ARRAY_SIZE(works) * ARRAY_SIZE(payloads) * impls));
	return 0;
}
