/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dcqcn_replay PROFILE LINE [NAME=VALUE...]
 *
 * Plays what happens to a QP, a line each on its standard input, to DCQCN, and prints rate, target
 * (bit/s) and alpha after each: "cnp NS", "sent NS BYTES" or "look NS". dcqcn_model.py compares.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cc.h"

static struct cc_config cfg;
static struct cc cc;

static void fail(const char *what, const char *word)
{
	fprintf(stderr, "dcqcn_replay: %s: %s\n", word, what);
	exit(2);
}

static void configure(int argc, char *argv[])
{
	int profile = argc > 2 ? cc_find_profile(&cc_dcqcn, argv[1]) : -1;

	if (profile < 0)
		fail("give a profile of dcqcn and the line's rate in bit/s", argv[0]);
	cc_config_init(&cfg, &cc_dcqcn, (unsigned)profile, strtod(argv[2], NULL));
	for (int i = 3; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		int param;

		if (!value)
			fail("give NAME=VALUE", argv[i]);
		*value++ = '\0';
		param = cc_find_param(&cc_dcqcn, argv[i]);
		if (param < 0 || !cc_config_set(&cfg, (unsigned)param, strtod(value, NULL)))
			fail("no parameter, or none of its values", argv[i]);
	}
}

static void play(const char *line)
{
	struct cc_hops none = {0};
	struct cc_view v;
	char what[8];
	uint64_t now;
	uint32_t bytes;
	int n = sscanf(line, "%7s %" SCNu64 " %" SCNu32, what, &now, &bytes);

	if (n == 2 && !strcmp(what, "cnp"))
		cc_dcqcn.on_cnp(&cc, CC_CNP_PLAIN, &none, now);
	else if (n == 3 && !strcmp(what, "sent"))
		cc_dcqcn.on_sent(&cc, bytes, 0, false, now);
	else if (n != 2 || strcmp(what, "look"))
		fail("give cnp NS, sent NS BYTES or look NS", line);
	cc_dcqcn.on_time(&cc, now);
	cc_dcqcn.look(&cc, &v);
	printf("%.17g %.17g %.17g\n", v.rate, v.target, v.alpha);
}

int main(int argc, char *argv[])
{
	char line[128];

	configure(argc, argv);
	cc_init(&cc, &cfg, 0);
	while (fgets(line, sizeof(line), stdin))
		play(line);
	return 0;
}
