/* SPDX-License-Identifier: BSD-3-Clause */
/* Huge pages: clearing one takes long, and there may be none left. Most of it needs some
 * (with_rocid --huge) and does nothing where there are none. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "attack.h"

#define HUGE  (2u << 20)
#define PAGES 8u
#define PAGE  4096u
#define IOVA  0x10000u

/* @return a sealed memfd, -1 when the kernel has no such pages. */
static int huge_memfd(size_t size, unsigned kind)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | kind);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		err(1, "memfd");
	return fd;
}

static int register_fd(struct raw *s, int fd, uint64_t len, struct abi_reg_mr_reply *out)
{
	struct abi_reg_mr in = {.pd = s->pd, .access = DUO_ACCESS, .iova = IOVA, .length = len};

	return raw_call(s, ABI_REG_MR, &in, sizeof(in), fd, out, sizeof(*out), NULL, 0);
}

static void gigabyte_pages(struct arena *a)
{
	int fd = huge_memfd(4ull << 30, MFD_HUGE_1GB);
	struct abi_reg_mr_reply out;
	struct raw s;

	if (fd < 0)
		return;
	raw_open(&s, a->socket);
	must(register_fd(&s, fd, 4ull << 30, &out) == -EINVAL, "pages of a gigabyte");
	raw_close(&s);
	close(fd);
}

static void punch(int fd, unsigned page)
{
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)page * HUGE, HUGE))
		err(1, "fallocate");
}

/* How many of its pages are there. */
static unsigned pages(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		err(1, "fstat");
	return (unsigned)(st.st_blocks * 512 / HUGE);
}

/* All pages are there when the keys are; one that is missing later is not cleared by a worker, and
 * costs its owner the region. */
static void holes_in_huge_pages(struct arena *a)
{
	static const unsigned op[] = {ABI_WR_RDMA_WRITE, ABI_WR_RDMA_READ};
	int fd = huge_memfd(PAGES * HUGE, MFD_HUGE_2MB);
	struct abi_reg_mr_reply out;
	struct duo d;

	duo_open(&d, a);
	for (unsigned i = 0; fd >= 0 && i < 50 * a->effort; i++) {
		unsigned page = i % PAGES;

		punch(fd, page);
		if (register_fd(&d.s, fd, PAGES * HUGE, &out))
			break; /* there are no pages: nothing to attack */
		must(pages(fd) == PAGES, "a region whose pages are not there");
		punch(fd, page);
		raw_request(&d.qp[0], op[i & 1], i, duo_sge(&d, 0, 8),
			IOVA + (uint64_t)page * HUGE + PAGE, out.rkey);
		must(duo_status(&d, &d.qp[0]) > 0, "a worker filled a hole in huge pages");
		must(pages(fd) == PAGES - 1, "a worker cleared a huge page");
		duo_reset(&d);
		raw_request(&d.qp[0], op[i & 1], i, duo_sge(&d, 0, 8),
			IOVA + (uint64_t)((page + 1) % PAGES) * HUGE, out.rkey);
		must(duo_status(&d, &d.qp[0]) > 0, "a region that faulted is still there");
		duo_reset(&d);
		raw_must(&d.s, ABI_DEREG_MR, &out.handle, 4, NULL, 0);
	}
	duo_close(&d);
	if (fd >= 0)
		close(fd);
}

/* Faults when rocid has as many mappings as one program, or two, can have it make. */
static void holes_without_mappings(struct arena *a)
{
	int fd = huge_memfd(HUGE, MFD_HUGE_2MB), small = raw_memfd(PAGE, F_SEAL_SHRINK);
	struct abi_reg_mr_reply out, huge;
	struct raw more;
	struct duo d;

	duo_open(&d, a);
	raw_open(&more, a->socket);
	if (fd >= 0 && !register_fd(&d.s, fd, HUGE, &huge)) {
		unsigned n = 0;

		while (!register_fd(&d.s, small, PAGE, &out) ||
			!register_fd(&more, small, PAGE, &out))
			n++;
		printf("    %u regions\n", n);
		punch(fd, 0);
		raw_request(&d.qp[0], ABI_WR_RDMA_WRITE, 1, duo_sge(&d, 0, 8), IOVA, huge.rkey);
		must(duo_status(&d, &d.qp[0]) > 0, "a worker filled a hole in huge pages");
	}
	raw_close(&more);
	duo_close(&d);
	close(small);
	if (fd >= 0)
		close(fd);
}

const struct attack attacks_huge[] = {
	{"pages of a gigabyte", gigabyte_pages},
	{"holes in huge pages", holes_in_huge_pages},
	{"holes in huge pages, and no mappings left", holes_without_mappings},
	{NULL, NULL},
};
