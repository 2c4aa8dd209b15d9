/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plays what happens to one queue pair to an algorithm of lib/cc. A word per line on standard
 * input:
 *
 *     qp ALGORITHM PROFILE LINE [PARAMETER VALUE]...
 *     sent NOW BYTES PSN
 *     ack NOW PSN PACKETS RTT [RATE TIME SENT QUEUE]...    the units of struct cc_ack and cc_hop
 *     cnp NOW
 *     loss NOW timeout|sequence
 *     look NOW          prints rate, target, alpha and window
 *
 * test/model/vectors_test.py compares what it prints with models that were written from the papers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cc.h"

static struct cc_config cfg;
static struct cc cc;
static char *rest; /* of the line */

static const char *word(void)
{
	return strtok_r(NULL, " \n", &rest);
}

static double number(void)
{
	const char *w = word();

	if (!w) {
		fprintf(stderr, "a number is missing\n");
		exit(2);
	}
	return strtod(w, NULL);
}

static uint32_t whole(void)
{
	return (uint32_t)number();
}

static void refuse(const char *what)
{
	fprintf(stderr, "'%s' is not known\n", what ? what : "");
	exit(2);
}

static void qp(void)
{
	const char *name = word(), *profile = word(), *param;
	const struct cc_ops *ops = name ? cc_find(name) : NULL;
	int p = ops && profile ? cc_find_profile(ops, profile) : -1;

	if (p < 0)
		refuse(name);
	cc_config_init(&cfg, ops, (unsigned)p, number());
	while ((param = word())) {
		int i = cc_find_param(ops, param);

		if (i < 0 || !cc_config_set(&cfg, (unsigned)i, number()))
			refuse(param);
	}
	cc_init(&cc, &cfg, 0);
}

static void ack(uint64_t now)
{
	struct cc_hop hop[CC_HOPS_MAX];
	struct cc_ack a = {0};
	const char *w;

	a.psn = whole();
	a.packets = whole();
	a.rtt = (uint64_t)number();
	while (a.hops.n < CC_HOPS_MAX && (w = word())) {
		struct cc_hop *h = &hop[a.hops.n++];

		h->rate = strtod(w, NULL);
		h->time = whole();
		h->sent = whole();
		h->queue = whole();
	}
	a.hops.hop = hop;
	if (cfg.ops->on_ack)
		cfg.ops->on_ack(&cc, &a, now);
}

static void loss(uint64_t now)
{
	const char *kind = word();
	bool timeout = kind && !strcmp(kind, "timeout");

	cfg.ops->on_loss(&cc, timeout ? CC_LOSS_TIMEOUT : CC_LOSS_SEQUENCE, now);
}

static void look(uint64_t now)
{
	struct cc_view v = {0};

	cfg.ops->on_time(&cc, now);
	cfg.ops->look(&cc, &v);
	printf("%.17g %.17g %.17g %.17g\n", v.rate, v.target, v.alpha, v.window);
}

static void happens(const char *what)
{
	uint64_t now = (uint64_t)number();

	if (!strcmp(what, "sent")) {
		uint32_t bytes = whole();

		cfg.ops->on_sent(&cc, bytes, whole(), false, now);
	} else if (!strcmp(what, "ack")) {
		ack(now);
	} else if (!strcmp(what, "cnp")) {
		cfg.ops->on_cnp(&cc, CC_CNP_PLAIN, &(struct cc_hops){0}, now);
	} else if (!strcmp(what, "loss")) {
		loss(now);
	} else if (!strcmp(what, "look")) {
		look(now);
	} else {
		refuse(what);
	}
}

int main(void)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin)) {
		const char *what = strtok_r(line, " \n", &rest);

		if (what && !strcmp(what, "qp"))
			qp();
		else if (what && cfg.ops)
			happens(what);
	}
	return 0;
}
