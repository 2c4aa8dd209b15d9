/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bits.h"
#include "sizes.h"

struct known {
	const char *name;
	unsigned points;
	struct {
		double bytes, percent;
	} point[24];
};

static const struct known known[] = {
	/* Alizadeh et al., SIGCOMM 2010, as in HPCC's simulator */
	{"websearch", 12,
		{{0, 0}, {10e3, 15}, {20e3, 20}, {30e3, 30}, {50e3, 40}, {80e3, 53}, {200e3, 60},
			{1e6, 70}, {2e6, 80}, {5e6, 90}, {10e6, 97}, {30e6, 100}}},
	/* Roy et al., SIGCOMM 2015, as in HPCC's simulator */
	{"hadoop", 20,
		{{0, 0}, {100, 1}, {200, 2}, {300, 5}, {350, 15}, {400, 20}, {500, 30}, {600, 40},
			{700, 50}, {1e3, 60}, {2e3, 67}, {7e3, 70}, {30e3, 72}, {50e3, 82},
			{80e3, 87}, {120e3, 90}, {300e3, 95}, {1e6, 97.5}, {2e6, 99}, {10e6, 100}}},
};

static bool add(struct sizes *s, double bytes, double percent)
{
	unsigned n = s->points;

	if (n == SIZES_POINTS || bytes < 0 || bytes > 1u << 30 || percent < 0 || percent > 100)
		return false;
	if (n && (bytes < s->bytes[n - 1] || percent / 100 < s->part[n - 1]))
		return false;
	s->bytes[n] = bytes;
	s->part[n] = percent / 100;
	s->points++;
	return true;
}

static int read_file(struct sizes *s, const char *name, char *why, size_t size)
{
	FILE *f = fopen(name, "r");
	double bytes, percent;
	int n = 0;
	bool ok = true;

	if (!f) {
		snprintf(why, size,
			"'%s' is neither a size nor a file nor a distribution (websearch, hadoop)",
			name);
		return -EINVAL;
	}
	while (ok && (n = fscanf(f, "%lf %lf", &bytes, &percent)) == 2)
		ok = add(s, bytes, percent);
	fclose(f);
	if (ok && n == EOF && s->points > 1 && s->part[s->points - 1] == 1)
		return 0;
	snprintf(why, size,
		"%s: point %u: each line needs bytes and a percentage, both ascending, the last "
		"one 100",
		name, s->points + 1);
	return -EINVAL;
}

int sizes_read(struct sizes *s, const char *name, char *why, size_t size)
{
	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(name, known[i].name))
			continue;
		for (unsigned k = 0; k < known[i].points; k++)
			add(s, known[i].point[k].bytes, known[i].point[k].percent);
		return 0;
	}
	return read_file(s, name, why, size);
}

double sizes_mean(const struct sizes *s)
{
	double mean = s->points ? s->bytes[0] * s->part[0] : s->bytes[0];

	for (unsigned i = 1; i < s->points; i++)
		mean += (s->bytes[i] + s->bytes[i - 1]) / 2 * (s->part[i] - s->part[i - 1]);
	return mean;
}

uint64_t sizes_most(const struct sizes *s)
{
	return (uint64_t)s->bytes[s->points ? s->points - 1 : 0] + 1;
}

uint64_t sizes_draw(const struct sizes *s, struct random *random)
{
	double part, bytes;
	unsigned i = 1;

	if (!s->points)
		return (uint64_t)s->bytes[0];
	part = draw_part(random);
	while (i + 1 < s->points && s->part[i] <= part)
		i++;
	bytes = s->bytes[i];
	if (part < s->part[0])
		bytes = s->bytes[0];
	else if (s->part[i] > s->part[i - 1])
		bytes = s->bytes[i - 1] + (s->bytes[i] - s->bytes[i - 1]) *
						  (part - s->part[i - 1]) /
						  (s->part[i] - s->part[i - 1]);
	return bytes < 1 ? 1 : (uint64_t)bytes;
}

/* Von Neumann's method: draws falling runs of uniform numbers until one has odd length. Its first
 * number is the fraction; the number of earlier runs is the whole part. */
double draw_exponential(struct random *random)
{
	for (double whole = 0;; whole++) {
		double first = draw_part(random), last = first;
		unsigned length = 1;

		for (;; length++) {
			double next = draw_part(random);

			if (next > last)
				break;
			last = next;
		}
		if (length & 1)
			return whole + first;
	}
}
