/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "disposer.h"
#include "lingering.h"

#define PAGE 4096u

static void dispose_fd__closes(void **state)
{
	struct disposer *d = disposer_create(2);
	int pair[100][2];
	char byte;

	assert_non_null(d);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
		dispose_fd(d, pair[i][0]);
	}
	for (int i = 0; i < 100; i++) {
		assert_int_equal(read(pair[i][1], &byte, 1), 0); /* waits for the end */
		close(pair[i][1]);
	}
	disposer_destroy(d);
}

static void dispose_memory__unmaps_all_pieces(void **state)
{
	struct disposer *d = disposer_create(1);
	size_t size = (150u << 20) + PAGE;
	struct disposed done = {0};
	unsigned char in_core;
	uint8_t *p =
		mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(p != MAP_FAILED);
	dispose_memory(d, p, size, &done);
	disposer_destroy(d); /* waits */
	assert_int_equal(done.mappings, 1);
	assert_int_equal(done.bytes, size);
	assert_int_equal(mincore(p, PAGE, &in_core), -1);
	assert_int_equal(mincore(p + size - PAGE, PAGE, &in_core), -1);
	assert_int_equal(mincore(p + (64u << 20), PAGE, &in_core), -1);
}

/* One that hangs holds up neither the caller nor the next, nor the end. */
static void dispose_fd__hanging(void **state)
{
	struct disposer *d = disposer_create(2);
	int pair[2], other, slow = lingering(&other);
	char byte;

	assert_true(slow >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	dispose_fd(d, slow);
	dispose_fd(d, pair[0]);
	assert_int_equal(read(pair[1], &byte, 1), 0);
	disposer_destroy(d);
	close(pair[1]);
	close(other); /* and it ends */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dispose_fd__closes),
		cmocka_unit_test(dispose_memory__unmaps_all_pieces),
		cmocka_unit_test(dispose_fd__hanging),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
