/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <numa.h>
#include <numaif.h>
#include <cmocka.h>
#include "memory/numa.h"

#define SIZE 65536

static int fd;
static uint8_t *base;

static int setup(void **state)
{
	fd = memfd_create("place", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	base = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(base != MAP_FAILED);
	return 0;
}

static int teardown(void **state)
{
	munmap(base, SIZE);
	close(fd);
	return 0;
}

static int policy_of(const uint8_t *at, struct bitmask *nodes)
{
	int mode = -1;

	assert_int_equal(
		get_mempolicy(&mode, nodes->maskp, nodes->size + 1, (void *)at, MPOL_F_ADDR), 0);
	return mode;
}

/* Every page of the file, in this mapping and in another. */
static void place_memory__on_a_node(void **state)
{
	struct bitmask *nodes = numa_allocate_nodemask();
	uint8_t *other = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int node = numa_max_node();

	assert_true(other != MAP_FAILED);
	assert_int_equal(policy_of(base, nodes), MPOL_DEFAULT);
	place_memory(base, SIZE, node);
	for (unsigned at = 0; at < SIZE; at += 4096) {
		assert_int_equal(policy_of(base + at, nodes), MPOL_PREFERRED);
		assert_true(numa_bitmask_isbitset(nodes, (unsigned)node));
		assert_int_equal(numa_bitmask_weight(nodes), 1);
		assert_int_equal(policy_of(other + at, nodes), MPOL_PREFERRED);
		other[at] = 1;
		assert_int_equal(base[at], 1);
	}
	munmap(other, SIZE);
	numa_free_nodemask(nodes);
}

static void place_memory__anywhere(void **state)
{
	struct bitmask *nodes = numa_allocate_nodemask();

	place_memory(base, SIZE, -1);
	place_memory(base, SIZE, numa_max_node() + 1);
	assert_int_equal(policy_of(base, nodes), MPOL_DEFAULT);
	numa_free_nodemask(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(place_memory__on_a_node, setup, teardown),
		cmocka_unit_test_setup_teardown(place_memory__anywhere, setup, teardown),
	};

	if (numa_available() < 0) {
		fprintf(stderr, "numa_test: this kernel has no NUMA policies\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
