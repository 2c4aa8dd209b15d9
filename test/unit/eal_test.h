/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file eal_test.h
 * DPDK for a unit test: no hugepages, no PCI, one lcore, nothing shared with other processes and
 * nothing left behind.
 */
#ifndef EAL_TEST_H
#define EAL_TEST_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <rte_eal.h>

static char eal_test_dir[256];

static inline int eal_test_remove(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	return remove(path);
}

static inline void eal_test_stop(void)
{
	rte_eal_cleanup();
	nftw(eal_test_dir, eal_test_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Call it once per program; ends the program if DPDK does not start. */
static inline void eal_test_start(void)
{
	char prefix[64];
	char *args[] = {(char *)"unit", (char *)"--no-huge", (char *)"--no-pci", (char *)"-m",
		(char *)"64", (char *)"--no-telemetry", (char *)"--no-shconf",
		(char *)"--log-level=error", prefix, NULL};

	snprintf(prefix, sizeof(prefix), "--file-prefix=unit%d", (int)getpid());
	if (rte_eal_init(9, args) < 0) {
		fprintf(stderr, "DPDK does not start\n");
		exit(1);
	}
	snprintf(eal_test_dir, sizeof(eal_test_dir), "%s", rte_eal_get_runtime_dir());
	atexit(eal_test_stop);
}

#endif
