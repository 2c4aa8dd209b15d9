/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <string.h>
#include "verify.h"
#include "end.h"
#include "plan.h"

/* splitmix64's steps: words of messages with neighbouring numbers have nothing in common. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t key(const struct end *e, const struct flow *f, uint64_t number)
{
	/* A group has one sender. */
	uint64_t sender = plan_mcast(e->plan) ? 0 : (uint64_t)(f - e->flow);

	return mix(sender << 40 ^ number) | 1;
}

static void write_pattern(uint8_t *to, uint32_t size, uint64_t key)
{
	uint64_t word = key;

	for (uint32_t at = 0; at < size; at += 8, word += key)
		memcpy(to + at, &word, size - at < 8 ? size - at : 8);
}

/* @return where the first byte differs; @p size: nowhere. */
static uint32_t compare(const uint8_t *data, uint32_t size, uint64_t key)
{
	uint64_t word = key;

	for (uint32_t at = 0; at < size; at += 8, word += key) {
		uint32_t n = size - at < 8 ? size - at : 8;
		const uint8_t *want = (const uint8_t *)&word;

		if (!memcmp(data + at, want, n))
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (data[at + i] != want[i])
				return at + i;
	}
	return size;
}

static void must_equal(const struct end *e, const struct flow *f, uint64_t offset, uint32_t size,
	uint64_t seq, uint64_t key)
{
	uint32_t at = compare(e->rx + offset, size, key);

	if (at < size)
		errx(1,
			"wrong data: message %llu of QP %u, a %s of %u bytes, differs from "
			"byte %u "
			"on",
			(unsigned long long)seq, f->qp->qp_num, e->op->title, e->shape.size, at);
}

void verify_fill(struct end *e, const struct flow *f)
{
	write_pattern(e->tx + cursor_tx(e, f, &f->sent), e->shape.size, key(e, f, f->sent.seq));
}

/* Messages that may be lost in a row before a received one counts as wrong. */
#define LOST_MAX 1000000u

/* A message of an unreliable service: earlier ones may be lost, but it must be a later one,
 * complete. */
static void skip_lost(const struct end *e, struct flow *f, uint32_t length)
{
	const uint8_t *data = e->rx + cursor_rx(e, f, &f->taken);

	for (uint32_t lost = 0; lost < LOST_MAX; lost++)
		if (compare(data, length, key(e, f, f->taken.seq + lost)) == length) {
			f->taken.seq += lost;
			return;
		}
}

bool verify_is_late(const struct end *e, uint32_t length)
{
	return !plan_reliable(e->plan) && e->plan->value[PARAM_ALL] && length < e->shape.size;
}

void verify_arrived(struct end *e, struct flow *f, uint32_t length, uint32_t skip)
{
	if (length != e->shape.size)
		errx(1, "wrong data: message %llu of QP %u has %u bytes, but %u were sent",
			(unsigned long long)f->taken.seq, f->qp->qp_num, length, e->shape.size);
	if (!plan_reliable(e->plan))
		skip_lost(e, f, length - skip);
	must_equal(e, f, cursor_rx(e, f, &f->taken), length - skip, f->taken.seq,
		key(e, f, f->taken.seq));
}

void verify_offer(struct end *e)
{
	for (uint32_t i = 0; i < e->flows; i++) {
		const struct flow *f = &e->flow[i];
		struct cursor c = {0};

		for (; c.round == 0; cursor_next(&c, e->shape.tx_slots))
			write_pattern(
				e->tx + cursor_tx(e, f, &c), e->shape.size, key(e, f, c.slot));
	}
}

void verify_fetched(struct end *e, struct flow *f, uint32_t count)
{
	for (; count; count--, cursor_next(&f->done, e->shape.rx_slots)) {
		uint64_t offset = cursor_rx(e, f, &f->done);

		must_equal(e, f, offset, e->shape.size, f->done.seq, key(e, f, f->done.slot));
		memset(e->rx + offset, 0, e->shape.size);
	}
}

void verify_left(struct end *e, const uint64_t sent[])
{
	for (uint32_t i = 0; i < e->flows; i++) {
		const struct flow *f = &e->flow[i];
		uint64_t left = sent[i] < e->shape.rx_slots ? sent[i] : e->shape.rx_slots;

		for (uint64_t seq = sent[i] - left; seq < sent[i]; seq++)
			must_equal(e, f, f->area + seq % e->shape.rx_slots * e->shape.rx_stride,
				e->shape.size, seq, key(e, f, seq));
	}
}
