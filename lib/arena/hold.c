/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include "hold.h"
#include "raw.h"

/* linux/userfaultfd.h of Linux 5.19, 6.1. */
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
/* Linux 6.8. */
#ifndef UFFD_FEATURE_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
struct uffdio_move {
	uint64_t dst, src, len, mode;
	int64_t move;
};
#define UFFDIO_MOVE			 _IOWR(0xAA, 0x05, struct uffdio_move)
#define UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES (1ull << 1)
#endif
#define USEFUL \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_MOVE)
#define AGAIN_MAX 100u /* attempts while a page is temporarily locked */

unsigned arena_means = ~0u;

static struct {
	int fd; /* userfaultfd; -1: none */
	enum arena_writers by;
	uint64_t features;
} uffd = {.fd = -1};

/* --- userfaultfd ------------------------------------------------------------------------ */

static int make(enum arena_writers by, int device)
{
	const int flags = O_CLOEXEC | O_NONBLOCK;

	if (!(arena_means & 1u << by))
		return -1;
	if (by == ARENA_WRITERS_UFFD_ROCID)
		return device < 0 ? -1 : ioctl(device, USERFAULTFD_IOC_NEW, flags);
	return (int)syscall(
		SYS_userfaultfd, by == ARENA_WRITERS_UFFD ? flags : flags | UFFD_USER_MODE_ONLY);
}

/* A descriptor reports its features only once: one is queried, another one is used. */
static bool try(enum arena_writers by, int device)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = make(by, device);
	int probe = fd < 0 ? -1 : make(by, device);
	bool ok = probe >= 0 && !ioctl(probe, UFFDIO_API, &api) &&
		  api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP;

	if (probe >= 0)
		close(probe);
	api = (struct uffdio_api){.api = UFFD_API, .features = api.features & USEFUL};
	if (ok && !ioctl(fd, UFFDIO_API, &api)) {
		uffd.fd = fd;
		uffd.by = by;
		uffd.features = api.features & USEFUL;
		return true;
	}
	if (fd >= 0)
		close(fd);
	return false;
}

/* ROCI_WRITERS restricts the means to one, plus signals for memory that it cannot protect. */
static void obey(const char *only)
{
	static const char *const name[] = {
		[ARENA_WRITERS_UFFD_ROCID] = "rocid",
		[ARENA_WRITERS_UFFD] = "userfaultfd",
		[ARENA_WRITERS_UFFD_USER] = "user",
		[ARENA_WRITERS_SIGNALS] = "signals",
	};

	for (unsigned by = ARENA_WRITERS_UFFD_ROCID; only && by <= ARENA_WRITERS_SIGNALS; by++)
		if (!strcmp(only, name[by]))
			arena_means = 1u << by | 1u << ARENA_WRITERS_SIGNALS;
}

void hold_open(int device)
{
	obey(secure_getenv("ROCI_WRITERS"));
	for (enum arena_writers by = ARENA_WRITERS_UFFD_ROCID; by <= ARENA_WRITERS_UFFD_USER; by++)
		if (try(by, device))
			break;
	if (device >= 0)
		close(device);
}

void hold_close(void)
{
	if (uffd.fd >= 0)
		close(uffd.fd);
	uffd.fd = -1;
}

enum arena_writers hold_best(void)
{
	if (uffd.fd >= 0)
		return uffd.by;
	return park_possible() ? ARENA_WRITERS_SIGNALS : ARENA_WRITERS_NONE;
}

/* Protects present pages from writes and, depending on @p mode, absent pages from any access. */
static int protect(uintptr_t at, size_t len, uint64_t mode)
{
	struct uffdio_register r = {.range = {.start = at, .len = len}, .mode = mode};
	struct uffdio_writeprotect wp = {
		.range = r.range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	if (ioctl(uffd.fd, UFFDIO_REGISTER, &r))
		return -errno;
	if (!ioctl(uffd.fd, UFFDIO_WRITEPROTECT, &wp))
		return 0;
	ioctl(uffd.fd, UFFDIO_UNREGISTER, &r.range);
	return -EINVAL;
}

static void unprotect(uintptr_t at, size_t len)
{
	struct uffdio_range range = {.start = at, .len = len};
	struct uffdio_writeprotect wp = {.range = range};

	ioctl(uffd.fd, UFFDIO_WRITEPROTECT, &wp);
	ioctl(uffd.fd, UFFDIO_UNREGISTER, &range);
}

static void wake(uintptr_t at, size_t len)
{
	struct uffdio_range range = {.start = at, .len = len};

	ioctl(uffd.fd, UFFDIO_WAKE, &range);
}

/* ---------------------------------------------------------------------------------------- */

bool hold_alone(unsigned own)
{
	struct stat st;

	/* two links, and one per thread */
	return !stat("/proc/self/task", &st) && st.st_nlink == 2 + own;
}

/* Reads of absent pages must wait, too. UFFD_FEATURE_WP_UNPOPULATED would instead mark absent pages
 * as protected, but a marked page looks like one that is swapped out. */
static uint64_t mode_of(const struct hold *h)
{
	return UFFDIO_REGISTER_MODE_WP | (h->whole ? 0 : UFFDIO_REGISTER_MODE_MISSING);
}

int hold_begin(struct hold *h)
{
	bool fails = h->blocks && uffd.by == ARENA_WRITERS_UFFD_USER && park_possible();

	h->by = ARENA_WRITERS_NONE;
	if (h->alone)
		return 0;
	if (uffd.fd >= 0 && !fails && !protect(h->at, h->len, mode_of(h))) {
		h->by = uffd.by;
		return 0;
	}
	if (!park_possible())
		return -EOPNOTSUPP;
	h->by = ARENA_WRITERS_SIGNALS;
	return park(h->waiter, h->anyway);
}

void hold_end(const struct hold *h, bool moved)
{
	if (h->by == ARENA_WRITERS_NONE)
		return;
	if (h->by == ARENA_WRITERS_SIGNALS) {
		unpark();
		return;
	}
	if (!moved)
		unprotect(h->at, h->len);
	wake(h->at, h->len);
}

/* --- pinned pages ----------------------------------------------------------------------- */

/* With a userfaultfd for user mode, system calls that read the memory meanwhile would fail. */
bool hold_can_take(void)
{
	return uffd.fd >= 0 && uffd.features & UFFD_FEATURE_MOVE &&
	       uffd.by != ARENA_WRITERS_UFFD_USER;
}

int hold_place(uintptr_t at, size_t len)
{
	struct uffdio_register r = {
		.range = {.start = at, .len = len}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	return ioctl(uffd.fd, UFFDIO_REGISTER, &r) ? -errno : 0;
}

static int move_pages(uintptr_t to, uintptr_t from, size_t len, size_t *done)
{
	unsigned again = 0;

	for (*done = 0; *done < len;) {
		struct uffdio_move m = {.dst = to + *done,
			.src = from + *done,
			.len = len - *done,
			.mode = UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES};

		if (!ioctl(uffd.fd, UFFDIO_MOVE, &m))
			m.move = (int64_t)m.len;
		else if (m.move <= 0 && (errno != EAGAIN || ++again == AGAIN_MAX))
			return -errno;
		if (m.move > 0) {
			*done += (size_t)m.move;
			again = 0;
		}
	}
	return 0;
}

int hold_take(const struct hold *h, uintptr_t to)
{
	size_t done;
	int err = move_pages(to, h->at, h->len, &done);

	if (err)
		hold_give_back(h, to, done);
	return err;
}

/* The program cannot continue without its bytes. Only write() is safe: stopped threads may hold
 * libc's locks. */
static void lose(void)
{
	static const char why[] = "libroci: memory that was being registered cannot be restored\n";

	if (write(STDERR_FILENO, why, sizeof(why) - 1) < 0) { /* then without the sentence */
	}
	abort();
}

void hold_give_back(const struct hold *h, uintptr_t from, size_t len)
{
	struct uffdio_range range = {.start = h->at, .len = h->len};
	size_t done;

	if (h->by != uffd.by)
		hold_place(h->at, h->len);
	for (size_t at = 0; at < len; at += done)
		if (move_pages(h->at + at, from + at, len - at, &done) && errno != EAGAIN)
			lose();
	if (h->by != uffd.by)
		ioctl(uffd.fd, UFFDIO_UNREGISTER, &range);
}

/* ---------------------------------------------------------------------------------------- */

static bool protects_shared(void)
{
	return uffd.fd >= 0 && uffd.features & UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
}

bool hold_can_share(void)
{
	return hold_descriptor() >= 0 && protects_shared();
}

int hold_shared(uintptr_t at, size_t len)
{
	if (!protects_shared())
		return -EOPNOTSUPP;
	return protect(at, len, UFFDIO_REGISTER_MODE_WP);
}

void hold_page_end(uintptr_t at, size_t len)
{
	struct uffdio_writeprotect wp = {.range = {.start = at, .len = len}};

	ioctl(uffd.fd, UFFDIO_WRITEPROTECT, &wp);
}

void hold_shared_end(uintptr_t at, size_t len)
{
	unprotect(at, len);
	wake(at, len);
}

int hold_descriptor(void)
{
	return uffd.fd;
}

bool hold_waiter(uintptr_t *addr)
{
	struct uffd_msg m;

	while (read(uffd.fd, &m, sizeof(m)) == sizeof(m))
		if (m.event == UFFD_EVENT_PAGEFAULT) {
			*addr = m.arg.pagefault.address;
			return true;
		}
	return false;
}
