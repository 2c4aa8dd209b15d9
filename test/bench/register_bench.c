/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Costs of registering memory, as a program of rocid: pages that are fresh, have been moved, are
 * rocid's own; and a long range, whose pages are there or not, beside copies into fresh pages.
 *
 *   register_bench SOCKET [--quick]
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "bench.h"
#include "roci.h"

#define PAGE  4096ul
#define LONG  (1ul << 30)
#define QUICK (64ul << 20)
#define SMALL 200u /* registrations of a page per sample */
#define LONGS 5u
#define GIB   ((double)(1ul << 30))
#define ALL   (ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ)

static struct roci_pd *pd;

static uint8_t *anon(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("no memory");
	return p;
}

static struct roci_mr *reg(void *p, size_t len)
{
	struct roci_mr *mr = roci_reg_mr(pd, p, len, ALL);

	if (!mr)
		bench_die("%s", roci_last_error());
	return mr;
}

static void dereg(struct roci_mr *mr)
{
	if (roci_dereg_mr(mr))
		bench_die("%s", roci_last_error());
}

static void line(const char *what, size_t size, const char *unit, const struct samples *s)
{
	line_begin("register");
	line_text("what", what);
	line_number("size", (double)size);
	line_samples(unit, s);
	line_end();
}

/* Pages of @p base, a page apart so that each is moved by itself. */
static double page_ns(uint8_t *base, unsigned n)
{
	static struct roci_mr *mr[SMALL];
	double begin = bench_ns(), ns;

	for (unsigned i = 0; i < n; i++)
		mr[i] = reg(base + 2 * i * PAGE, PAGE);
	ns = (bench_ns() - begin) / n;
	for (unsigned i = 0; i < n; i++)
		dereg(mr[i]);
	return ns;
}

static void pages(struct roci_context *ctx)
{
	struct samples fresh = {0}, again = {0}, own = {0};
	uint8_t *ours = roci_alloc_mem(ctx, 2 * SMALL * PAGE);

	if (!ours)
		bench_die("%s", roci_last_error());
	memset(ours, 1, 2 * SMALL * PAGE);
	for (unsigned i = 0; i < SAMPLES; i++) {
		uint8_t *p = anon(2 * SMALL * PAGE);

		memset(p, 1, 2 * SMALL * PAGE);
		fresh.v[fresh.n++] = page_ns(p, SMALL) / 1e3;
		again.v[again.n++] = page_ns(p, SMALL) / 1e3;
		own.v[own.n++] = page_ns(ours, SMALL) / 1e3;
		munmap(p, 2 * SMALL * PAGE);
	}
	line("fresh", PAGE, "us", &fresh);
	line("moved before", PAGE, "us", &again);
	line("roci_alloc_mem()", PAGE, "us", &own);
}

static double long_ms(size_t len, bool present)
{
	uint8_t *p = anon(len);
	struct roci_mr *mr;
	double begin, ns;

	madvise(p, len, MADV_NOHUGEPAGE);
	if (present)
		memset(p, 1, len);
	begin = bench_ns();
	mr = reg(p, len);
	ns = bench_ns() - begin;
	dereg(mr);
	munmap(p, len);
	return ns / 1e6 * GIB / (double)len;
}

static double copy_ms(size_t len)
{
	uint8_t *from = anon(len), *to = anon(len);
	double begin, ns;

	madvise(to, len, MADV_NOHUGEPAGE);
	memset(from, 1, len);
	begin = bench_ns();
	memcpy(to, from, len);
	ns = bench_ns() - begin;
	munmap(from, len);
	munmap(to, len);
	return ns / 1e6 * GIB / (double)len;
}

static void ranges(size_t len)
{
	struct samples copy = {0}, present = {0}, absent = {0};

	for (unsigned i = 0; i < LONGS; i++) {
		copy.v[copy.n++] = copy_ms(len);
		present.v[present.n++] = long_ms(len, true);
		absent.v[absent.n++] = long_ms(len, false);
	}
	line("memcpy() to fresh pages", len, "ms/GiB", &copy);
	line("present", len, "ms/GiB", &present);
	line("absent", len, "ms/GiB", &absent);
}

/* Programs have threads, whose writes must be held. */
static void *second(void *arg)
{
	pause();
	return arg;
}

int main(int argc, char *argv[])
{
	struct roci_context *ctx;
	pthread_t t;

	if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "--quick")))
		bench_die("usage: register_bench SOCKET [--quick]");
	ctx = roci_open(argv[1]);
	pd = ctx ? roci_alloc_pd(ctx) : NULL;
	if (!pd || pthread_create(&t, NULL, second, NULL))
		bench_die("%s", roci_last_error());
	pages(ctx);
	ranges(argc == 3 ? QUICK : LONG);
	return 0;
}
