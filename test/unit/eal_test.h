/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file eal_test.h
 * DPDK for a unit test: no hugepages, no PCI, one lcore on any CPU, nothing shared with other
 * processes and nothing left behind.
 */
#ifndef EAL_TEST_H
#define EAL_TEST_H

#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <rte_eal.h>

static char eal_test_dir[256];
static pid_t eal_test_pid;

static inline int eal_test_remove(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	return remove(path);
}

static inline void eal_test_stop(void)
{
	if (getpid() != eal_test_pid)
		return; /* a child */
	rte_eal_cleanup();
	nftw(eal_test_dir, eal_test_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* The CPUs of this process; by default EAL pins its first thread to one of them. */
static inline void eal_test_lcores(char *text, size_t size)
{
	size_t len = (size_t)snprintf(text, size, "--lcores=0@(");
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus)) {
		perror("sched_getaffinity");
		exit(1);
	}
	for (int i = 0; i < CPU_SETSIZE && len < size; i++)
		if (CPU_ISSET(i, &cpus))
			len += (size_t)snprintf(text + len, size - len, "%d,", i);
	text[len - 1] = ')';
}

/* Call it once per program; ends the program if DPDK does not start. */
static inline void eal_test_start(void)
{
	char prefix[64], lcores[8192];
	char *args[] = {(char *)"unit", (char *)"--no-huge", (char *)"--no-pci", (char *)"-m",
		(char *)"96", (char *)"--no-telemetry", (char *)"--no-shconf",
		(char *)"--log-level=error", prefix, lcores, NULL};

	snprintf(prefix, sizeof(prefix), "--file-prefix=unit%d", (int)getpid());
	eal_test_lcores(lcores, sizeof(lcores));
	if (rte_eal_init(10, args) < 0) {
		fprintf(stderr, "DPDK does not start\n");
		exit(1);
	}
	snprintf(eal_test_dir, sizeof(eal_test_dir), "%s", rte_eal_get_runtime_dir());
	eal_test_pid = getpid();
	atexit(eal_test_stop);
}

#endif
