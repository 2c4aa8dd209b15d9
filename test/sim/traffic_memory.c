/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "traffic_impl.h"

/* One more byte than the longest: MISTAKE_TOO_LONG. */
static uint8_t got[TRAFFIC_MAX + 8], want[TRAFFIC_MAX + 8];

/* The bytes of the message with @p key: any key gives others, at any offset. */
static void bytes_of(uint64_t key, uint8_t *to, uint32_t len)
{
	for (uint32_t i = 0; i < len; i += 8) {
		uint64_t x = key + i * 0x9E3779B97F4A7C15ull;

		x = (x ^ x >> 32) * 0xD6E8FEB86659FD93ull;
		x ^= x >> 29;
		memcpy(to + i, &x, 8);
	}
}

static bool all_fill(const uint8_t *p, size_t len)
{
	return !len || (p[0] == TRAFFIC_FILL && !memcmp(p, p + 1, len - 1));
}

/* --- areas ---------------------------------------------------------------------------- */

void area_init(struct traffic_area *a, struct app *app, uint32_t size, uint32_t access)
{
	*a = (struct traffic_area){.mr = app_mr(app, size, access), .size = size};
	memset(a->mr->mem, TRAFFIC_FILL, size);
}

void area_fini(struct traffic_area *a)
{
	/* No write came late: the region has been the application's since DEREG_MR (decision
	 * 0000.4).
	 */
	if (a->shadow)
		assert_memory_equal(a->shadow, a->mr->mem, a->size);
	free(a->shadow);
}

void area_dereg(struct traffic_area *a, struct app *app)
{
	if (a->shadow)
		return;
	app_mr_dereg(app, a->mr);
	a->shadow = malloc(a->size);
	assert_non_null(a->shadow);
	memcpy(a->shadow, a->mr->mem, a->size);
}

void area_again(struct traffic_area *a, struct app *app)
{
	if (!a->shadow)
		return;
	assert_memory_equal(a->shadow, a->mr->mem, a->size);
	free(a->shadow);
	a->shadow = NULL;
	app_mr_again(app, a->mr);
}

void area_clear(struct traffic_area *a)
{
	assert_true(all_fill(a->mr->mem, a->size));
	a->head = a->tail = 0;
}

uint32_t area_need(uint32_t len)
{
	return (len + (SGE_MAX + 1) * TRAFFIC_GAP + 7) & ~7u;
}

bool area_take(struct traffic_area *a, uint32_t len, struct traffic_place *p)
{
	uint32_t n = area_need(len);
	uint64_t begin;

	if (a->head == a->tail)
		a->head = a->tail = 0;
	begin = a->tail;
	if (begin % a->size + n > a->size)
		begin += a->size - begin % a->size;
	if (begin + n - a->head > a->size)
		return false;
	*p = (struct traffic_place){begin, begin + n};
	a->tail = p->end;
	return true;
}

void area_give(struct traffic_area *a, const struct traffic_place *p)
{
	a->head = p->end;
}

uint32_t place_offset(const struct traffic_area *a, const struct traffic_place *p)
{
	return (uint32_t)(p->begin % a->size);
}

uint8_t *place_mem(const struct traffic_area *a, const struct traffic_place *p)
{
	return a->mr->mem + place_offset(a, p);
}

/* --- pieces --------------------------------------------------------------------------- */

struct traffic_pieces pieces_cut(struct random *r, uint32_t len, unsigned max)
{
	struct traffic_pieces p = {.n = 1, .len = {len}};
	uint32_t off;

	if (!max)
		return p;
	p.n = (unsigned)(len ? 1 + random_below(r, max) : random_below(r, max + 1));
	off = (uint32_t)random_below(r, TRAFFIC_GAP);
	for (unsigned i = 0; i < p.n; i++) {
		bool empty = random_below(r, 100) < 15;

		p.off[i] = off;
		p.len[i] = i == p.n - 1 ? len : empty ? 0 : (uint32_t)random_below(r, len + 1);
		off += p.len[i] + (uint32_t)random_below(r, TRAFFIC_GAP);
		len -= p.len[i];
	}
	return p;
}

/* The application writes. */
static void store(const struct traffic_area *a, uint64_t off, const uint8_t *from, uint32_t len)
{
	memcpy(a->mr->mem + off, from, len);
	if (a->shadow)
		memcpy(a->shadow + off, from, len);
}

static void fill(const struct traffic_area *a, uint64_t off, uint32_t len)
{
	memset(a->mr->mem + off, TRAFFIC_FILL, len);
	if (a->shadow)
		memset(a->shadow + off, TRAFFIC_FILL, len);
}

void pieces_wipe(const struct traffic_area *a, const struct traffic_place *place, uint32_t len)
{
	fill(a, place_offset(a, place), len);
}

void pieces_put(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len, uint64_t key)
{
	const uint8_t *from = want;

	bytes_of(key, want, len);
	for (unsigned i = 0; i < p->n; i++) {
		store(a, (uint64_t)place_offset(a, place) + p->off[i], from, p->len[i]);
		from += p->len[i];
	}
}

/* Moves the first @p len bytes of the pieces to `got`; the rest of the place must be FILL. */
static void take_bytes(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len)
{
	uint8_t *mem = place_mem(a, place);
	uint8_t *to = got;

	for (unsigned i = 0; i < p->n; i++) {
		uint32_t part = p->len[i] < len ? p->len[i] : len;

		memcpy(to, mem + p->off[i], part);
		fill(a, (uint64_t)place_offset(a, place) + p->off[i], part);
		to += part;
		len -= part;
	}
	assert_int_equal(len, 0);
	assert_true(all_fill(mem, place->end - place->begin));
}

void pieces_check(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len, uint64_t key)
{
	bytes_of(key, want, len);
	take_bytes(a, place, p, len);
	assert_memory_equal(got, want, len);
}

uint64_t word_of(uint64_t key)
{
	uint64_t v;

	bytes_of(key, want, sizeof(v));
	memcpy(&v, want, sizeof(v));
	return v;
}

void word_check(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint64_t v, uint64_t or)
{
	uint64_t is;

	take_bytes(a, place, p, sizeof(is));
	memcpy(&is, got, sizeof(is));
	if (is != v && is != or)
		fail_msg("the word is %llx, not %llx", (unsigned long long)is,
			(unsigned long long)v);
}

void pieces_check_begun(const struct traffic_area *a, const struct traffic_place *place,
	const struct traffic_pieces *p, uint32_t len, uint64_t key)
{
	uint32_t n = 0;

	bytes_of(key, want, len);
	take_bytes(a, place, p, len);
	while (n < len && got[n] == want[n])
		n++;
	assert_true(all_fill(got + n, len - n));
}
