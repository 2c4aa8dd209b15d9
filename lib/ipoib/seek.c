/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "seek.h"

/* @return a random number below @p n. */
static uint32_t draw(struct seek *s, const struct hash_seed *seed, uint32_t n)
{
	s->drawn++;
	return (uint32_t)((uint64_t)hash_words(seed, &s->drawn, 1) * n >> 32);
}

/* @return the place of @p sender, which may be a new one, or another's. */
static struct seek_entry *place_of(struct seek *s, const struct hash_seed *seed, uint32_t sender)
{
	struct seek_entry *e;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->entry[i].sender == sender)
			return &s->entry[i];
	e = &s->entry[s->n < SEEK_MAX ? s->n++ : draw(s, seed, SEEK_MAX)];
	*e = (struct seek_entry){.sender = sender};
	return e;
}

void seek_add(struct seek *s, const struct hash_seed *seed, uint32_t sender, const uint8_t *ip,
	unsigned ip_len)
{
	struct seek_entry *e = place_of(s, seed, sender);

	if (draw(s, seed, ++e->offers))
		return;
	e->at = (struct station_ip){.len = ip_len};
	memcpy(e->at.ip, ip, ip_len);
}

bool seek_take(struct seek *s, uint64_t now, uint64_t pause, struct station_ip *at)
{
	if (!s->n || now < s->next)
		return false;
	*at = s->entry[0].at;
	s->n--;
	memmove(&s->entry[0], &s->entry[1], s->n * sizeof(s->entry[0]));
	s->next = now + pause;
	return true;
}

uint64_t seek_deadline(const struct seek *s)
{
	return s->n ? s->next : UINT64_MAX;
}
