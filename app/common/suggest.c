/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "suggest.h"

#define NAME_MAX_LEN 64u

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Letters to add, to remove, to replace or to exchange with their neighbours: optimal string
 * alignment. Both are shorter than NAME_MAX_LEN. */
static unsigned distance(const char *a, const char *b)
{
	unsigned line[3][NAME_MAX_LEN + 1];
	unsigned *before = line[0], *last = line[1], *now = line[2];
	unsigned n = (unsigned)strlen(b);

	for (unsigned j = 0; j <= n; j++)
		last[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned *oldest = before;

		now[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			now[j] = least(
				last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		before = last;
		last = now;
		now = oldest;
	}
	return last[n];
}

void suggest_begin(struct suggestion *s, const char *wrong)
{
	size_t len = strlen(wrong);

	s->wrong = wrong;
	s->best = NULL;
	/* A word farther away is a different one. */
	s->distance = len < NAME_MAX_LEN ? (unsigned)len / 3 + 1 : 0;
}

void suggest_try(struct suggestion *s, const char *known)
{
	unsigned d;

	if (!s->distance || strlen(known) >= NAME_MAX_LEN)
		return;
	d = distance(s->wrong, known);
	if (d >= s->distance && (s->best || d > s->distance))
		return;
	s->best = known;
	s->distance = d;
}
