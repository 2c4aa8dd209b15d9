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
#include "lingering.h"
#include "loop/reaper.h"
#include "patience.h"

#define PAGE 4096u

enum {
	ALICE = 1,
	BOB = 2
};

static const struct reaper_config one = {.threads = 1, .owner_threads = 1};
static const struct reaper_config two = {.threads = 2, .owner_threads = 2};
static const struct reaper_config fair = {.threads = 8, .owner_threads = 2};
static const struct reaper_config brisk = {.threads = 1, .owner_threads = 1, .interrupts = true};

static void reap_fd__closes(void **state)
{
	struct reaper *d = reaper_create(&two);
	int pair[100][2];
	char byte;

	assert_non_null(d);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]), 0);
		reap_fd(d, ALICE, pair[i][0]);
	}
	for (int i = 0; i < 100; i++) {
		assert_int_equal(read(pair[i][1], &byte, 1), 0); /* waits for the end */
		close(pair[i][1]);
	}
	reaper_destroy(d);
}

static void reap_memory__unmaps_all_pieces(void **state)
{
	struct reaper *d = reaper_create(&one);
	size_t size = (150u << 20) + PAGE;
	struct reaped done = {0};
	unsigned char in_core;
	uint8_t *p =
		mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(p != MAP_FAILED);
	reap_memory(d, p, size, size, &done);
	reaper_destroy(d); /* waits */
	assert_int_equal(done.mappings, 1);
	assert_int_equal(done.bytes, size);
	assert_int_equal(mincore(p, PAGE, &in_core), -1);
	assert_int_equal(mincore(p + size - PAGE, PAGE, &in_core), -1);
	assert_int_equal(mincore(p + (64u << 20), PAGE, &in_core), -1);
}

/* One that hangs holds up neither the caller nor the next, nor the end. */
static void reap_fd__hanging(void **state)
{
	struct reaper *d = reaper_create(&two);
	int pair[2], other, slow = lingering(&other);
	char byte;

	assert_true(slow >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	reap_fd(d, ALICE, slow);
	reap_fd(d, ALICE, pair[0]);
	assert_int_equal(read(pair[1], &byte, 1), 0);
	reaper_destroy(d);
	close(pair[1]);
	close(other); /* and it ends */
}

/* Descriptors of one owner hang; those of another are closed. */
static void reap_fd__hanging_of_one_owner(void **state)
{
	struct reaper *d = reaper_create(&fair);
	int pair[2], other[6];
	char byte;

	for (int i = 0; i < 6; i++) {
		int slow = lingering(&other[i]);

		assert_true(slow >= 0);
		reap_fd(d, ALICE, slow);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	reap_fd(d, BOB, pair[0]);
	assert_int_equal(read(pair[1], &byte, 1), 0);
	assert_int_equal(reaper_load(d, ALICE), 6);
	for (int i = 0; i < 6; i++)
		close(other[i]); /* those that wait are closed then */
	WAIT_UNTIL(!reaper_load(d, ALICE) && !reaper_load(d, BOB));
	assert_int_equal(reaper_load(d, ALICE) + reaper_load(d, BOB), 0);
	reaper_destroy(d);
	close(pair[1]);
}

/* Sockets that linger are left to the kernel after a moment, also all that lie unread in another.
 */
static void reap_fd__interrupts_lingering(void **state)
{
	struct reaper *d = reaper_create(&brisk);
	struct msghdr mh = {0};
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	int pair[2], other[40];
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	for (int i = 0; i < 40; i++) {
		int slow = lingering(&other[i]);

		assert_true(slow >= 0);
		if (i < 8) {
			struct cmsghdr *c = (struct cmsghdr *)control;

			mh.msg_control = control;
			mh.msg_controllen = sizeof(control);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(c), &slow, sizeof(slow));
			assert_int_equal(sendmsg(pair[1], &mh, 0), 0);
			close(slow);
		} else {
			reap_fd(d, ALICE, slow);
		}
	}
	reap_fd(d, ALICE, pair[0]);
	close(pair[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	reap_fd(d, ALICE, pair[0]);
	assert_int_equal(read(pair[1], &byte, 1), 0); /* after all of those */
	reaper_destroy(d);
	close(pair[1]);
	for (int i = 0; i < 40; i++)
		close(other[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reap_fd__closes),
		cmocka_unit_test(reap_memory__unmaps_all_pieces),
		cmocka_unit_test(reap_fd__hanging),
		cmocka_unit_test(reap_fd__hanging_of_one_owner),
		cmocka_unit_test(reap_fd__interrupts_lingering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
