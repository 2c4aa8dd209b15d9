/* SPDX-License-Identifier: BSD-3-Clause */
/* rocid [EAL arguments] -- [own arguments], or own arguments alone */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "arguments.h"
#include "check.h"
#include "complain.h"
#include "daemon.h"
#include "eal.h"
#include "loop/lock.h"
#include "signals.h"

#define EXIT_USAGE 2

/* rocid's own arguments follow "--". Without it all are EAL's, unless the first is one of ours. */
static int split(int argc, char *argv[])
{
	int i = 1;

	while (i < argc && strcmp(argv[i], "--"))
		i++;
	return i == argc && argc > 1 && options_is_own(argv[1]) ? 0 : i;
}

static int serve(struct options *opt, char why[VALUE_MAX * 2])
{
	static struct daemon daemon;
	int err = daemon_up(&daemon, opt, why);

	if (!err)
		err = daemon_run(&daemon, why);
	signals_stopping("standard output, to print statistics", 0);
	if (!err)
		stats_print(&daemon, stdout);
	daemon_down(&daemon);
	signals_stopping("DPDK to release its resources", 0);
	return err;
}

static int start_eal_and_serve(int argc, char *argv[], struct options *opt, char why[VALUE_MAX * 2])
{
	int err = eal_start(argc, argv, opt, why);

	if (err)
		return err;
	err = serve(opt, why);
	eal_stop();
	return err;
}

/* The lock is taken first and released last: it also protects EAL's files. */
static int run(int argc, char *argv[], struct options *opt)
{
	char why[VALUE_MAX * 2] = "out of memory or descriptors: end another program";
	int lock;
	int err = signals_start();

	if (err)
		return complain("rocid", "cannot create a thread: raise the limit of threads", 1);
	lock = lock_take(opt->socket, why);
	if (lock < 0)
		return complain("rocid", why, 1);
	err = start_eal_and_serve(argc, argv, opt, why);
	lock_release(lock, opt->socket);
	if (err && err != -EINTR) /* a signal while it started: rocid ended as requested */
		return complain("rocid", why, err == -EINVAL ? EXIT_USAGE : 1);
	return 0;
}

int main(int argc, char *argv[])
{
	static struct options opt;
	char why[VALUE_MAX * 2];
	int own = split(argc, argv);

	options_init(&opt);
	if (own < argc && options_parse(&opt, argc - own, argv + own, why))
		return complain("rocid", why, EXIT_USAGE);
	if (!own)
		own = 1; /* EAL's arguments are only the program's name */
	if (opt.help) {
		options_help();
		return 0;
	}
	if (opt.version) {
		printf("rocid %s\n", ROCINANTE_VERSION);
		return 0;
	}
	if (opt.check)
		return check_config(&opt, own, argv) ? EXIT_USAGE : 0;
	return run(own, argv, &opt);
}
