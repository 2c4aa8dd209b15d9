/* SPDX-License-Identifier: BSD-3-Clause */
/* A huge page that cannot be split for a while, or for good: the kernel has locked it, or somebody
 * has pinned it. */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include "fixture.h"
#include "hold.h"

#define MOVE 0x05 /* UFFDIO_MOVE; not in headers before Linux 6.8 */
/* Attempts to move a page. */
#define A_WHILE	   150000u
#define FOR_LONGER 750000u

static unsigned moves, until;

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	bool move = _IOC_TYPE(request) == UFFDIO && _IOC_NR(request) == MOVE;

	if (!move || moves++ >= until)
		return __real_ioctl(fd, request, arg);
	errno = EAGAIN;
	return -1;
}

static uint8_t *locked_until(unsigned attempts)
{
	uint8_t *p = anon(MB);

	memset(p, 5, MB);
	moves = 0;
	until = attempts;
	return p;
}

static void arena_take__waits_for_locked_pages(void **state)
{
	uint8_t *p = locked_until(A_WHILE);
	struct arena_hold *h = take(p, MB);

	(void)state;
	same(h, p, MB);
	if (!moves)
		skip(); /* this kernel cannot move pages */
	assert_true(moves > A_WHILE);
	for (size_t i = 0; i < MB; i++)
		assert_int_equal(p[i], 5);
	arena_release(h);
	munmap(p, MB);
}

static void arena_take__does_not_wait_forever(void **state)
{
	uint8_t *p = locked_until(FOR_LONGER);
	int err = refusal(p, MB, true);

	(void)state;
	if (!moves)
		skip(); /* this kernel cannot move pages */
	assert_int_equal(err, EBUSY);
	assert_non_null(strstr(why, "huge page"));
	for (size_t i = 0; i < MB; i++)
		assert_int_equal(p[i], 5);
	munmap(p, MB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_take__waits_for_locked_pages),
		cmocka_unit_test(arena_take__does_not_wait_forever),
	};

	if (getenv("MESON_EXE_WRAPPER"))
		return 77; /* an emulator's addresses are not the kernel's */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
