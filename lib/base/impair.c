/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair.h"
#include "random.h"

/* Two numbers per kind: one decides whether, the other the details. */
static uint64_t draw(const struct impair *i, uint64_t frame, unsigned kind, unsigned detail)
{
	return random_at(i->seed, (frame * IMPAIR_KINDS + kind) * 2 + detail);
}

static int is_lost(const struct impair *i, uint64_t frame)
{
	return (i->nth && (frame + 1) % i->nth == 0) || (frame < 64 && (i->mask >> frame & 1));
}

unsigned impair_choose(const struct impair *i, uint64_t frame)
{
	unsigned chosen = is_lost(i, frame) ? 1u << IMPAIR_LOSE : 0;

	for (unsigned k = 0; k < IMPAIR_KINDS; k++)
		if (i->rate[k] > 0 && random_part(draw(i, frame, k, 0)) < i->rate[k])
			chosen |= 1u << k;
	return chosen;
}

uint64_t impair_random(const struct impair *i, uint64_t frame, enum impair_kind kind)
{
	return draw(i, frame, kind, 1);
}

void impair_flip(uint8_t *bytes, size_t len, uint64_t random)
{
	uint64_t bit = random % (len * 8);

	bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}
