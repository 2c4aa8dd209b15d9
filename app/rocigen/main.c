/* SPDX-License-Identifier: BSD-3-Clause */
/* rocigen [EAL arguments] -- [options]: RoCE packets for tests of receivers. */
#include <err.h>
#include <string.h>
#include "capture.h"
#include "plan.h"
#include "send.h"

#define EXIT_USAGE 2

int main(int argc, char *argv[])
{
	static struct plan plan;
	char why[PLAN_WHY];
	int own = 1;
	int code;

	while (own < argc && strcmp(argv[own], "--"))
		own++;
	if (argc == 2 && !strcmp(argv[1], "--help"))
		own = 0;
	if (plan_parse(&plan, argc - own, argv + own, why))
		errx(EXIT_USAGE, "%s", why);
	if (plan.help) {
		plan_help();
		return 0;
	}
	if (plan_ready(&plan, why))
		errx(EXIT_USAGE, "%s", why);
	if (!plan.pcap) {
		send_plan(&plan, own, argv);
		return 0;
	}
	if (!plan.count)
		errx(EXIT_USAGE, "--pcap needs --count");
	code = capture_write(&plan);
	if (code)
		errx(1, "cannot write %s: %s", plan.pcap, strerror(-code));
	return 0;
}
