/* SPDX-License-Identifier: BSD-3-Clause */
/* The mappings of this very process, by the kernel's answers and as text: both must agree. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "maps.h"
#include "source.h"

static void open_text(struct maps *m)
{
	maps_text_only = true;
	assert_int_equal(maps_open(m), 0);
	maps_text_only = false;
	assert_true(m->text);
}

static struct vma look(struct maps *m, const void *p)
{
	struct vma v;

	assert_int_equal(maps_again(m), 0);
	assert_true(maps_find(m, (uintptr_t)p, &v));
	return v;
}

static void find__protection_and_bounds(void **state)
{
	uint8_t *p = anon(5 * PAGE);
	struct maps m;

	(void)state;
	munmap(p, PAGE);
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	munmap(p + 3 * PAGE, PAGE);
	open_text(&m);
	struct vma v = look(&m, p + 2 * PAGE + 17);

	assert_true(v.start == (uintptr_t)p + 2 * PAGE && v.end == (uintptr_t)p + 3 * PAGE);
	assert_int_equal(v.prot, PROT_READ);
	assert_false(v.shared);
	assert_true(v.anonymous);
	assert_false(v.text_name);
	v = look(&m, p + 3 * PAGE); /* nothing: the next one */
	assert_true(v.start == (uintptr_t)p + 4 * PAGE);
	assert_int_equal(v.prot, PROT_READ | PROT_WRITE);
	assert_false(maps_find(&m, UINTPTR_MAX - 1, &v));
	maps_close(&m);
	munmap(p, 5 * PAGE);
}

static void find__a_file_and_its_offset(void **state)
{
	int fd = memfd_create("maps test (deleted)", 0);
	uint8_t *p;
	struct maps m;
	struct vma v;
	char name[MAPS_PATH_MAX];

	(void)state;
	assert_int_equal(ftruncate(fd, 1ll << 62), 0);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (1ll << 61) + (long)PAGE);
	assert_ptr_not_equal(p, MAP_FAILED);
	open_text(&m);
	v = look(&m, p);
	assert_true(v.shared);
	assert_false(v.anonymous);
	assert_true(v.off == (1ull << 61) + PAGE);
	assert_true(v.inode != 0);
	maps_name(&m, (uintptr_t)p, name);
	assert_string_equal(name, "/memfd:maps test (deleted) (deleted)");
	maps_name(&m, (uintptr_t)&m, name);
	assert_string_equal(name, "[stack]");
	maps_close(&m);
	munmap(p, PAGE);
	close(fd);
}

static void find__names_of_the_kernel(void **state)
{
	struct maps m;
	struct vma v, kernels = {0};
	int stacks = 0;

	(void)state;
	if (getenv("MESON_EXE_WRAPPER"))
		skip(); /* an emulator's maps do not name its vdso */
	open_text(&m);
	for (bool more = maps_find(&m, 0, &v); more; more = maps_find(&m, v.end, &v)) {
		stacks += v.stack;
		if (v.text_name)
			kernels = v;
	}
	assert_int_equal(stacks, 1);
	assert_true(kernels.start != 0); /* [vdso] */
	v = look(&m, &m);
	assert_true(v.stack);
	assert_false(v.text_name);
	v = look(&m, (uint8_t *)sbrk(0) - 1);
	assert_false(v.text_name);
	maps_close(&m);
}

/* More mappings than the first buffer has room for. */
static void find__many(void **state)
{
	const unsigned n = 3000;
	uint8_t *p = anon(n * 2 * PAGE);
	struct maps m;
	unsigned found = 0;
	struct vma v;

	(void)state;
	for (unsigned i = 0; i < n; i++)
		mprotect(p + 2 * i * PAGE, PAGE, PROT_READ);
	open_text(&m);
	for (bool more = maps_find(&m, (uintptr_t)p, &v);
		more && v.start < (uintptr_t)p + 2 * n * PAGE; more = maps_find(&m, v.end, &v))
		found++;
	assert_in_range(found, 2 * n - 1, 2 * n + 1);
	maps_close(&m);
	munmap(p, n * 2 * PAGE);
}

static void find__both_ways_agree(void **state)
{
	struct maps text, query;
	struct vma a, b;
	unsigned n = 0;

	(void)state;
	assert_int_equal(maps_open(&query), 0);
	if (query.text) {
		maps_close(&query);
		skip(); /* a kernel before 6.11 */
	}
	open_text(&text);
	for (bool more = maps_find(&text, 0, &a); more; more = maps_find(&text, a.end, &a)) {
		if (a.start >> 63) /* [vsyscall]: not of the process */
			break;
		assert_true(maps_find(&query, a.start, &b));
		if (b.page == PAGE)
			b.page = 0;
		assert_true(a.start == b.start && a.end == b.end && a.off == b.off &&
			    a.inode == b.inode && a.major == b.major && a.minor == b.minor);
		assert_true(a.prot == b.prot && a.shared == b.shared && a.stack == b.stack &&
			    a.text_name == b.text_name && a.anonymous == b.anonymous &&
			    a.page == b.page);
		n++;
	}
	assert_in_range(n, 10, 100000);
	maps_close(&text);
	maps_close(&query);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__protection_and_bounds),
		cmocka_unit_test(find__a_file_and_its_offset),
		cmocka_unit_test(find__names_of_the_kernel),
		cmocka_unit_test(find__many),
		cmocka_unit_test(find__both_ways_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
