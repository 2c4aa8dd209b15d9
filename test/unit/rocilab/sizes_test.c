/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "arrivals.h"
#include "sizes.h"

#define DRAWS 200000u

static struct sizes s;
static char why[256];

/* The mean of what is drawn is that of the distribution, and so is the part below each point. */
static void sizes_draw__follows_the_distribution(void **state)
{
	static const char *const names[] = {"websearch", "hadoop"};

	for (unsigned i = 0; i < 2; i++) {
		struct random random = {.state = 7};
		unsigned below[SIZES_POINTS] = {0};
		double sum = 0;

		assert_int_equal(sizes_read(&s, names[i], why, sizeof(why)), 0);
		for (unsigned n = 0; n < DRAWS; n++) {
			uint64_t size = sizes_draw(&s, &random);

			assert_in_range(size, 1, sizes_most(&s));
			sum += (double)size;
			for (unsigned k = 0; k < s.points; k++)
				below[k] += (double)size < s.bytes[k];
		}
		assert_float_equal(sum / DRAWS / sizes_mean(&s), 1, 0.03);
		for (unsigned k = 1; k < s.points; k++)
			assert_float_equal((double)below[k] / DRAWS, s.part[k], 0.01);
	}
}

/* 30 points by hand: 15 % of 5 KB, 5 % of 15 KB and so on. */
static void sizes_mean__of_websearch(void **state)
{
	assert_int_equal(sizes_read(&s, "websearch", why, sizeof(why)), 0);
	assert_float_equal(sizes_mean(&s),
		0.15 * 5e3 + 0.05 * 15e3 + 0.10 * 25e3 + 0.10 * 40e3 + 0.13 * 65e3 + 0.07 * 140e3 +
			0.10 * 600e3 + 0.10 * 1.5e6 + 0.10 * 3.5e6 + 0.07 * 7.5e6 + 0.03 * 20e6,
		1);
}

static int read_text(const char *text)
{
	char path[] = "/tmp/roci-sizes-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = sizes_read(&s, path, why, sizeof(why));
	unlink(path);
	return err;
}

static void sizes_read__files(void **state)
{
	static const char *const bad[] = {"", "100\n", "0 0\n100 50\n", "0 0\n100 90\n50 100\n",
		"0 10\n100 5\n200 100\n", "0 0\nx 100\n", "0 0\n1e12 100\n", "0 0\n5 101\n"};

	assert_int_equal(read_text("0 0\n1000 50\n3000 100\n"), 0);
	assert_float_equal(sizes_mean(&s), 0.5 * 500 + 0.5 * 2000, 1e-9);
	assert_int_equal(sizes_most(&s), 3001);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(read_text(bad[i]) < 0);
		assert_non_null(strstr(why, "each line needs bytes and a percentage"));
	}
	assert_true(sizes_read(&s, "websurch", why, sizeof(why)) < 0);
	assert_non_null(strstr(why, "(websearch, hadoop)"));
}

/* Mean 1, and the tail of e^-x. */
static void draw_exponential__is_exponential(void **state)
{
	struct random random = {.state = 3};
	unsigned above[4] = {0};
	double sum = 0;

	for (unsigned n = 0; n < DRAWS; n++) {
		double v = draw_exponential(&random);

		assert_true(v >= 0);
		sum += v;
		for (unsigned k = 0; k < 4; k++)
			above[k] += v > k;
	}
	assert_float_equal(sum / DRAWS, 1, 0.01);
	assert_float_equal((double)above[1] / DRAWS, 0.36788, 0.005);
	assert_float_equal((double)above[2] / DRAWS, 0.13534, 0.005);
	assert_float_equal((double)above[3] / DRAWS, 0.04979, 0.005);
}

/* The ring grows, and keeps what has come in its order. */
static void arrivals_push__keeps_order(void **state)
{
	struct arrivals a = {0};

	for (uint64_t i = 0; i < 1000; i++) {
		assert_true(arrivals_push(&a, (struct arrival){.at = i, .size = 2 * i}));
		if (i % 3 == 0)
			a.gone++;
		for (uint64_t k = a.gone; k < a.came; k++)
			assert_int_equal(arrivals_at(&a, k)->size, 2 * k);
	}
	free(a.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_draw__follows_the_distribution),
		cmocka_unit_test(sizes_mean__of_websearch),
		cmocka_unit_test(sizes_read__files),
		cmocka_unit_test(draw_exponential__is_exponential),
		cmocka_unit_test(arrivals_push__keeps_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
