/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "bits.h"
#include "limits.h"
#include "loop/reaper.h"
#include "memory/shm.h"
#include "refuse.h"
#include "sigbus.h"

#define BLOCK 512u /* of stat.st_blocks */

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

size_t shm_rounded(size_t size)
{
	return round_up(size, (size_t)sysconf(_SC_PAGESIZE));
}

int shm_create(struct shm *m, const char *name, size_t size, int *fd, char why[ABI_SENTENCE_MAX])
{
	int err = 0;

	m->page = (size_t)sysconf(_SC_PAGESIZE);
	m->size = shm_rounded(size);
	m->base = NULL;
	m->guard = 0;
	m->whole = false;
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return refuse(why, -errno,
			"rocid cannot create shared memory (%s): raise its limit of "
			"open files (ulimit -n) or free memory",
			strerror(errno));
	if (ftruncate(*fd, (off_t)m->size) ||
		fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = -errno;
	} else {
		void *p = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);

		if (p == MAP_FAILED)
			err = -errno;
		else
			m->base = p;
	}
	if (!err)
		return 0;
	close(*fd);
	*fd = -1;
	return refuse(why, err,
		"rocid cannot map %zu bytes of shared memory (%s): request smaller queues, or "
		"raise its memory limit or vm.max_map_count",
		m->size, strerror(-err));
}

/* The page size of @p fd, or 0 if it is not a memory file. */
static size_t page_size_of(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return 0;
	if (fs.f_type == HUGETLBFS_MAGIC)
		return (size_t)fs.f_bsize;
	return fs.f_type == TMPFS_MAGIC ? (size_t)sysconf(_SC_PAGESIZE) : 0;
}

#define NO_WRITES (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

/* Holes in huge pages must be detected (memory/huge.h), which the kernel does only for a process
 * that could fill them; if writing is sealed, nobody can punch one. */
static int check_huge(size_t page, int seals, int mode, char why[ABI_SENTENCE_MAX])
{
	if (page > HUGE_PAGE_MAX)
		return refuse(why, -EINVAL,
			"the memfd has pages of %zu KB, and clearing one takes too long: create it "
			"with pages of at most %u KB (MFD_HUGE_2MB)",
			page >> 10, HUGE_PAGE_MAX >> 10);
	if (page > (size_t)sysconf(_SC_PAGESIZE) && !(seals & NO_WRITES) &&
		(mode & O_ACCMODE) != O_RDWR)
		return refuse(why, -EACCES,
			"a memfd of huge pages must be open for reading and writing, or sealed "
			"against writing (F_SEAL_WRITE): reopen or seal it; your own mapping may "
			"still be read-only");
	return 0;
}

int shm_check_client(struct shm *m, int fd, bool writable, char why[ABI_SENTENCE_MAX])
{
	int seals = fcntl(fd, F_GET_SEALS);
	int mode = fcntl(fd, F_GETFL);

	*m = (struct shm){.page = seals < 0 ? 0 : page_size_of(fd)};
	if (!m->page)
		return refuse(why, -EPERM,
			"registered memory must be a file in memory (memfd_create, /dev/shm, "
			"hugetlbfs), but this descriptor is something else: send one of these");
	if ((mode & O_ACCMODE) == O_WRONLY ||
		(writable && ((mode & O_ACCMODE) != O_RDWR || (seals & NO_WRITES))))
		return refuse(why, -EACCES,
			"the memfd cannot be mapped for the requested access: open it read-write "
			"and unsealed for writing, or register it without write access");
	m->whole = seals & NO_WRITES;
	return check_huge(m->page, seals, mode, why);
}

int shm_client_extent(int fd, uint64_t off, uint64_t len, bool writable, struct shm_extent *out,
	char why[ABI_SENTENCE_MAX])
{
	struct shm m;
	int err = shm_check_client(&m, fd, writable, why);
	struct stat st;

	if (err)
		return err;
	if (fstat(fd, &st))
		return refuse(why, -errno, "the memfd cannot be examined: %s", strerror(errno));
	if (!range_inside(off, len, (uint64_t)st.st_size))
		return refuse(why, -EINVAL,
			"bytes %llu to %llu are outside the memfd, which has %llu: extend it with "
			"ftruncate or register less",
			(unsigned long long)off, (unsigned long long)(off + len),
			(unsigned long long)st.st_size);
	*out = (struct shm_extent){.mapped = len ? round_up(off % m.page + len, m.page) : 0,
		.file = (uint64_t)st.st_blocks * BLOCK,
		.page = m.page};
	return 0;
}

bool shm_is_huge(const struct shm *m)
{
	return m->base && m->page > (size_t)sysconf(_SC_PAGESIZE);
}

int shm_guard(struct shm *m, const struct sigbus_area *who, char why[ABI_SENTENCE_MAX])
{
	struct sigbus_area a = *who;
	int id;

	if (!m->base)
		return 0;
	a.base = m->base;
	a.size = m->size;
	a.page = m->page;
	id = sigbus_guard(&a);
	if (id < 0)
		return refuse(why, id,
			"rocid is out of memory or at its limit of mappings: register larger "
			"regions, or raise vm.max_map_count");
	m->guard = id;
	return 0;
}

void shm_retire(struct shm *m, uint64_t charge, struct reaper *d, struct reaped *done)
{
	sigbus_unguard(m->guard);
	m->guard = 0;
	if (m->base)
		reap_memory(d, m->base, m->size, charge, done);
	m->base = NULL;
}

void shm_unmap(struct shm *m)
{
	sigbus_unguard(m->guard);
	m->guard = 0;
	if (m->base)
		munmap(m->base, m->size);
	m->base = NULL;
}
