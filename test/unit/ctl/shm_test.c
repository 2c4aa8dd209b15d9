/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
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
#include "memory/shm.h"

#define PAGE 4096u

static char why[ABI_SENTENCE_MAX];

static int make_memfd(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void shm_create__sealed_and_shared(void **state)
{
	struct shm m;
	uint8_t *p;
	int fd;

	assert_int_equal(shm_create(&m, "t", 5000, &fd, why), 0);
	assert_int_equal(m.size, 2 * PAGE);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 3 * PAGE), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	p = mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	for (size_t i = 0; i < m.size; i++)
		assert_int_equal(p[i], 0);
	p[4999] = 7;
	assert_int_equal(m.base[4999], 7);
	munmap(p, m.size);
	close(fd);
	shm_unmap(&m);
	shm_unmap(&m); /* harmless */
}

static void shm_client_extent__range_outside_file(void **state)
{
	static const uint64_t range[][2] = {{0, 2 * PAGE + 1}, {2 * PAGE, 1}, {UINT64_MAX, 1},
		{1, UINT64_MAX}, {PAGE, UINT64_MAX - PAGE}, {UINT64_MAX, UINT64_MAX}};
	int fd = make_memfd(2 * PAGE, F_SEAL_SHRINK);
	struct shm_extent e;

	for (unsigned i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		assert_int_equal(
			shm_client_extent(fd, range[i][0], range[i][1], true, &e, why), -EINVAL);
		assert_non_null(strstr(why, "ftruncate"));
	}
	assert_int_equal(shm_client_extent(fd, 2 * PAGE, 0, true, &e, why), 0);
	assert_int_equal(e.mapped, 0);
	assert_int_equal(shm_client_extent(fd, 2 * PAGE - 1, 1, true, &e, why), 0);
	assert_int_equal(e.mapped, PAGE);
	assert_int_equal(e.file, 0); /* nothing has been written */
	close(fd);
}

/* decision 0003 survives a file that shrinks: those of /dev/shm cannot be sealed. */
static void shm_check_client__may_shrink(void **state)
{
	int fd = make_memfd(PAGE, 0);
	struct shm m;

	assert_int_equal(shm_check_client(&m, fd, true, why), 0);
	assert_int_equal(m.page, PAGE);
	close(fd);
}

static void shm_check_client__no_memfd(void **state)
{
	FILE *file = tmpfile();
	int pair[2];
	int fds[4];
	struct shm m;

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), PAGE), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fds[0] = fileno(file);
	fds[1] = pair[0];
	fds[2] = open("/dev/zero", O_RDWR);
	fds[3] = open("/dev", O_RDONLY);
	for (int i = 0; i < 4; i++)
		assert_int_equal(shm_check_client(&m, fds[i], false, why), -EPERM);
	close(fds[2]);
	close(fds[3]);
	close(pair[0]);
	close(pair[1]);
	fclose(file);
}

static void shm_check_client__read_only(void **state)
{
	int fd = make_memfd(PAGE, F_SEAL_SHRINK | F_SEAL_WRITE);
	struct shm m;

	assert_int_equal(shm_check_client(&m, fd, true, why), -EACCES);
	assert_int_equal(shm_check_client(&m, fd, false, why), 0);
	close(fd);
}

static void shm_client_extent__hugetlb(void **state)
{
	const size_t huge = 2u << 20;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	struct shm_extent e;
	struct shm m;

	if (fd < 0 || ftruncate(fd, (off_t)(2 * huge)) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		skip(); /* this kernel has no hugetlbfs */
	assert_int_equal(shm_client_extent(fd, huge - 10, 20, true, &e, why), 0);
	assert_int_equal(e.mapped, 2 * huge);
	assert_int_equal(e.page, huge);
	assert_int_equal(shm_check_client(&m, fd, true, why), 0);
	assert_int_equal(m.page, huge);
	assert_false(m.whole);
	close(fd);
}

/* Clearing a larger page takes too long. */
static void shm_check_client__too_large_pages(void **state)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_1GB);
	struct shm m;

	if (fd < 0 || ftruncate(fd, 1 << 30) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		skip(); /* this kernel has no such pages */
	assert_int_equal(shm_check_client(&m, fd, true, why), -EINVAL);
	assert_non_null(strstr(why, "MFD_HUGE_2MB"));
	close(fd);
}

/* The kernel reports holes only to processes that may write. */
static void shm_check_client__hugetlb_must_be_held(void **state)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_2MB);
	char path[32];
	struct shm m;
	int reader;

	if (fd < 0 || ftruncate(fd, 2 << 20) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		skip();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(shm_check_client(&m, reader, false, why), -EACCES);
	assert_non_null(strstr(why, "F_SEAL_WRITE"));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_int_not_equal(shm_check_client(&m, reader, false, why), -EACCES);
	assert_true(m.whole);
	close(reader);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shm_create__sealed_and_shared),
		cmocka_unit_test(shm_client_extent__range_outside_file),
		cmocka_unit_test(shm_check_client__may_shrink),
		cmocka_unit_test(shm_check_client__no_memfd),
		cmocka_unit_test(shm_check_client__read_only),
		cmocka_unit_test(shm_client_extent__hugetlb),
		cmocka_unit_test(shm_check_client__too_large_pages),
		cmocka_unit_test(shm_check_client__hugetlb_must_be_held),
	};

	return cmocka_run_group_tests_name("shm", tests, NULL, NULL);
}
