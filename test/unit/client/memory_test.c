/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arena.h"
#include "fixture.h"

static void alloc_mem__whole_pages_of_zeroes(void **state)
{
	struct rig *r = *state;
	uint8_t *m = roci_alloc_mem(r->ctx, 5000);

	assert_non_null(m);
	assert_int_equal((uintptr_t)m % 4096, 0);
	for (int i = 0; i < 8192; i++)
		assert_int_equal(m[i], 0);
	m[8191] = 1;
	assert_int_equal(roci_free_mem(r->ctx, m), 0);
}

static void alloc_mem__large_is_aligned_for_huge_pages(void **state)
{
	struct rig *r = *state;

	for (size_t n = 2u << 20; n <= 16u << 20; n = n * 2 + 4096) {
		uint8_t *m = roci_alloc_mem(r->ctx, n);

		assert_int_equal((uintptr_t)m % (2u << 20), 0);
		m[0] = m[n - 1] = 1;
		assert_int_equal(roci_free_mem(r->ctx, m), 0);
	}
}

static void alloc_mem__no_length(void **state)
{
	struct rig *r = *state;

	assert_null(roci_alloc_mem(r->ctx, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(roci_alloc_mem(r->ctx, SIZE_MAX));
	assert_int_equal(errno, EINVAL);
}

static void free_mem__what_it_is_not(void **state)
{
	struct rig *r = *state;
	uint8_t *m = roci_alloc_mem(r->ctx, 8192);
	int local;

	assert_int_equal(roci_free_mem(r->ctx, &local), EINVAL);
	assert_int_equal(roci_free_mem(r->ctx, m + 4096), EINVAL);
	assert_int_equal(roci_free_mem(r->ctx, m), 0);
	assert_int_equal(roci_free_mem(r->ctx, m), EINVAL);
}

static void reg_mr__shares_the_memory(void **state)
{
	struct rig *r = *state;
	uint8_t *m = roci_alloc_mem(r->ctx, 16384);
	struct roci_mr *mr = roci_reg_mr(
		r->pd, m + 5000, 1000, ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE);

	assert_non_null(mr);
	assert_ptr_equal(mr->addr, m + 5000);
	assert_int_equal(mr->length, 1000);
	assert_int_equal(mr->lkey, 0x1100);
	assert_int_equal(mr->rkey, 0x2200);
	assert_true(r->h->reg.iova == (uintptr_t)m + 5000);
	assert_int_equal(r->h->reg.length, 1000);
	assert_int_equal(r->h->reg.fd_off, 5000);
	assert_int_equal(r->h->reg.access, ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE);
	strcpy((char *)m + 5000, "from the program");
	assert_string_equal((char *)r->h->reg_base + 5000, "from the program");
	strcpy((char *)r->h->reg_base + 5000, "from the wire");
	assert_string_equal((char *)m + 5000, "from the wire");
	assert_int_equal(roci_free_mem(r->ctx, m), EBUSY);
	assert_int_equal(roci_dereg_mr(mr), 0);
	assert_int_equal(roci_free_mem(r->ctx, m), 0);
}

static void reg_mr__overlapping(void **state)
{
	struct rig *r = *state;
	uint8_t *m = roci_alloc_mem(r->ctx, 8192);
	struct roci_mr *a = roci_reg_mr(r->pd, m, 8192, ROCI_ACCESS_REMOTE_READ);
	struct roci_mr *b = roci_reg_mr(r->pd, m + 8191, 1, 0);

	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(roci_dereg_mr(a), 0);
	assert_int_equal(roci_free_mem(r->ctx, m), EBUSY);
	assert_int_equal(roci_dereg_mr(b), 0);
	assert_int_equal(roci_free_mem(r->ctx, m), 0);
}

/* Memory that is not of roci_alloc_mem() moves to the arena. */
static void reg_mr__any_memory(void **state)
{
	struct rig *r = *state;
	uint8_t *p = malloc(20000);
	struct roci_mr *mr;

	if (getenv("MESON_EXE_WRAPPER")) { /* an emulator's addresses are not the kernel's */
		free(p);
		skip();
	}
	memset(p, 7, 20000);
	mr = roci_reg_mr(r->pd, p + 1, 10000, ROCI_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(r->h->calls[ABI_GET_ARENA], 1);
	assert_int_equal(r->h->reg.npieces, 0);
	assert_int_equal(r->h->reg.fd_off % (1ull << 47), (uintptr_t)p + 1);
	assert_int_equal(r->h->reg.length, 10000);
	assert_int_equal(p[1], 7);
	assert_int_equal(roci_dereg_mr(mr), 0);
	mr = roci_reg_mr(r->pd, p + 1, 10000, 0); /* it is there */
	assert_non_null(mr);
	assert_int_equal(r->h->calls[ABI_GET_ARENA], 1);
	assert_int_equal(roci_rereg_mr(mr, ROCI_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 ROCI_ACCESS_REMOTE_READ),
		0);
	assert_int_equal(r->h->reg.access, ROCI_ACCESS_REMOTE_READ);
	assert_int_equal(r->h->reg.length, 10000);
	assert_int_equal(
		roci_rereg_mr(mr, ROCI_REREG_MR_CHANGE_TRANSLATION, NULL, p + 5, 100, 0), 0);
	assert_ptr_equal(mr->addr, p + 5);
	assert_int_equal(r->h->reg.iova, (uintptr_t)p + 5);
	assert_int_equal(roci_rereg_mr(mr, 8, NULL, NULL, 0, 0), EINVAL);
	assert_int_equal(roci_dereg_mr(mr), 0);
	free(p);
}

static void reg_mr__nothing_there(void **state)
{
	struct rig *r = *state;
	uint8_t *m = roci_alloc_mem(r->ctx, 4096);
	uint32_t before = r->h->calls[ABI_REG_MR];

	assert_null(roci_reg_mr(r->pd, m + 1, SIZE_MAX, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(roci_reg_mr(r->pd, NULL, 4096, 0));
	assert_int_equal(errno, EFAULT);
	assert_non_null(strstr(roci_last_error(), "nothing is mapped"));
	assert_int_equal(r->h->calls[ABI_REG_MR], before);
	assert_int_equal(roci_free_mem(r->ctx, m), 0);
}

/* proves MR-03, MR-04 */
static void reg_mr__iova(void **state)
{
	struct rig *r = *state;
	uint8_t *m = roci_alloc_mem(r->ctx, 4096);
	struct roci_mr *mr = roci_reg_mr_iova(r->pd, m, 4096, 0xdead000, 0);

	assert_true(r->h->reg.iova == 0xdead000); /* MR-04 */
	assert_int_equal(roci_dereg_mr(mr), 0);
	mr = roci_reg_mr(r->pd, m, 4096, ROCI_ACCESS_ZERO_BASED);
	assert_true(r->h->reg.iova == 0); /* MR-03 */
	assert_int_equal(r->h->reg.access, ABI_ACCESS_ZERO_BASED);
	assert_int_equal(roci_dereg_mr(mr), 0);
	assert_int_equal(roci_free_mem(r->ctx, m), 0);
}

static bool refuse_once(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	if (msg->type != ABI_REG_MR)
		return false;
	atomic_store(&h->hook, NULL);
	harness_reply(h, msg, -EDQUOT, "full", 5, NULL, 0);
	return true;
}

/* The arena may exceed a quota only because of memory that the program has freed. */
static void reg_mr__quota_of_freed_memory(void **state)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	struct rig *r = *state;
	struct roci_mr *mr;

	if (getenv("MESON_EXE_WRAPPER")) /* an emulator's addresses are not the kernel's */
		skip();
	arena_reclaim();
	for (int freed = 0; freed < 2; freed++) {
		uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, flags, -1, 0);

		memset(p, 1, 8192);
		atomic_store(&r->h->hook, refuse_once);
		mr = roci_reg_mr(r->pd, p, 8192, ROCI_ACCESS_LOCAL_WRITE);
		if (freed) {
			assert_non_null(mr);
			assert_int_equal(roci_dereg_mr(mr), 0);
		} else { /* nothing was freed */
			assert_null(mr);
			assert_int_equal(errno, EDQUOT);
		}
		munmap(p, 8192);
	}
}

static bool refuse_reg(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	if (msg->type != ABI_REG_MR)
		return false;
	harness_reply(h, msg, -EINVAL, "no", 3, NULL, 0);
	return true;
}

static void alloc_mr__refused_frees_the_memory(void **state)
{
	struct rig *r = *state;
	int before = open("/dev/null", O_RDONLY), after;

	close(before);
	atomic_store(&r->h->hook, refuse_reg);
	assert_null(roci_alloc_mr(r->pd, 4096, ROCI_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_string_equal(roci_last_error(), "no");
	after = open("/dev/null", O_RDONLY);
	close(after);
	assert_int_equal(before, after);
}

static void dereg_mr__others_lie_in_its_memory(void **state)
{
	struct rig *r = *state;
	struct roci_mr *own = roci_alloc_mr(r->pd, 8192, 0);
	struct roci_mr *part = roci_reg_mr(r->pd, own->addr, 100, 0);

	assert_non_null(part);
	assert_int_equal(roci_dereg_mr(own), EBUSY);
	assert_int_equal(roci_dereg_mr(part), 0);
	assert_int_equal(roci_dereg_mr(own), 0);
}

static void alloc_mem__is_sealed(void **state)
{
	struct rig *r = *state;
	uint8_t *m = roci_alloc_mem(r->ctx, 4096);
	char link[64], path[64];
	int seals = -1;

	for (int fd = 0; fd < 256; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		if (strncmp(link, "/memfd:roci ", 12) == 0)
			seals = fcntl(fd, F_GET_SEALS);
	}
	assert_int_equal(seals, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_int_equal(roci_free_mem(r->ctx, m), 0);
}

static void alloc_mr__many(void **state)
{
	struct rig *r = *state;
	struct roci_mr *mr[300];

	for (int i = 0; i < 300; i++)
		assert_non_null(mr[i] = roci_alloc_mr(r->pd, 4096, 0));
	for (int i = 0; i < 300; i++)
		assert_int_equal(roci_dereg_mr(mr[(i * 7) % 300]), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(alloc_mem__whole_pages_of_zeroes),
		T(alloc_mem__large_is_aligned_for_huge_pages),
		T(alloc_mem__no_length),
		T(alloc_mem__is_sealed),
		T(free_mem__what_it_is_not),
		T(reg_mr__shares_the_memory),
		T(reg_mr__overlapping),
		T(reg_mr__any_memory),
		T(reg_mr__nothing_there),
		T(reg_mr__iova),
		T(reg_mr__quota_of_freed_memory),
		T(alloc_mr__refused_frees_the_memory),
		T(alloc_mr__many),
		T(dereg_mr__others_lie_in_its_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
