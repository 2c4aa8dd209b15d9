/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "netns.h"

static pid_t peer;

static void skip_all(const char *why)
{
	fprintf(stderr, "SKIP: %s\n", why);
	if (peer > 0)
		kill(peer, SIGKILL);
	exit(77);
}

static int run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void netns_run(const char *command)
{
	if (run(command)) {
		fprintf(stderr, "failed: %s\n", command);
		fail();
	}
}

void netns_run_peer(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "nsenter -t %d -n sh -c '%s'", peer, command);
	netns_run(line);
}

static void start_peer(void)
{
	int ready[2];
	char byte = 0;

	if (pipe(ready))
		skip_all("no pipe");
	peer = fork();
	if (!peer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = unshare(CLONE_NEWNET) ? 'n' : 'y';
		if (write(ready[1], &byte, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	if (peer < 0 || read(ready[0], &byte, 1) != 1 || byte != 'y')
		skip_all("no second network namespace");
	close(ready[0]);
	close(ready[1]);
}

int netns_setup(void **state)
{
	char line[128];

	if (unshare(CLONE_NEWNET))
		skip_all("needs root to make a network namespace");
	start_peer();
	if (run("ip link add " NETNS_OURS " type veth peer name " NETNS_PEER))
		skip_all("this kernel has no veth, or iproute2 is missing");
	snprintf(line, sizeof(line), "ip link set " NETNS_PEER " netns %d", peer);
	netns_run(line);
	netns_run("ip link set " NETNS_OURS " up && ip addr add 10.9.0.1/24 dev " NETNS_OURS
		  " && ip addr add 2001:db8:9::1/64 dev " NETNS_OURS " nodad");
	netns_run_peer("ip link set " NETNS_PEER " address 02:00:00:00:00:99 up && "
		       "ip addr add 10.9.0.2/24 dev " NETNS_PEER " && "
		       "ip addr add 2001:db8:9::2/64 dev " NETNS_PEER " nodad");
	return 0;
}

int netns_teardown(void **state)
{
	if (peer > 0) {
		kill(peer, SIGKILL);
		waitpid(peer, NULL, 0);
	}
	return 0;
}
