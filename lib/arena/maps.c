/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "maps.h"
#include "raw.h"

/* linux/fs.h of Linux 6.11. */
struct query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t start, end, vma_flags, page_size, off, inode;
	uint32_t major, minor;
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};
#define PROCMAP_QUERY _IOWR('f', 17, struct query)
#define Q_READABLE    0x01u
#define Q_WRITABLE    0x02u
#define Q_EXECUTABLE  0x04u
#define Q_SHARED      0x08u
#define Q_OR_NEXT     0x10u
/* Room for the kernel's own names, all of which begin with a bracket. */
#define NAME_SHORT 128
#define HUGE_PAGE  (2ul << 20)
#define HUGE_NAME  "/anon_hugepage"

bool maps_text_only;

static int ask(const struct maps *m, uintptr_t addr, uint64_t flags, struct query *q, char *name,
	uint32_t name_size)
{
	*q = (struct query){.size = sizeof(*q), .flags = flags, .addr = addr};
	q->name = (uintptr_t)name;
	q->name_size = name_size;
	return ioctl(m->fd, PROCMAP_QUERY, q) ? -errno : 0;
}

static void mark_name(struct vma *v, const char *name)
{
	v->stack = !strcmp(name, "[stack]");
	v->heap = !strcmp(name, "[heap]");
	v->text_name = !v->stack && !v->heap && name[0] == '[' && strncmp(name, "[anon", 5);
	/* The kernel backs huge pages with a file even if they are anonymous. */
	v->anonymous = !v->inode || !strncmp(name, HUGE_NAME, strlen(HUGE_NAME));
}

static bool find_by_query(const struct maps *m, uintptr_t addr, struct vma *v)
{
	char name[NAME_SHORT] = "";
	struct query q;
	int err = ask(m, addr, Q_OR_NEXT, &q, name, sizeof(name));

	if (err == -ENAMETOOLONG) { /* a path, so none of the kernel's names */
		name[0] = 0;
		err = ask(m, addr, Q_OR_NEXT, &q, NULL, 0);
	}
	if (err)
		return false;
	*v = (struct vma){
		.start = q.start,
		.end = q.end,
		.off = q.off,
		.inode = q.inode,
		.page = q.page_size,
		.major = q.major,
		.minor = q.minor,
		.prot = (q.vma_flags & Q_READABLE ? PROT_READ : 0) |
			(q.vma_flags & Q_WRITABLE ? PROT_WRITE : 0) |
			(q.vma_flags & Q_EXECUTABLE ? PROT_EXEC : 0),
		.shared = q.vma_flags & Q_SHARED,
	};
	mark_name(v, q.name_size ? name : "");
	return true;
}

/* --- as text ---------------------------------------------------------------------------- */

/* Not from malloc(): after fork() its memory may still be shared with the parent. */
static bool grow(struct maps *m)
{
	size_t room = m->room ? 2 * m->room : 65536;
	void *p = raw_mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	if (m->buf) {
		memcpy(p, m->buf, m->len);
		raw_munmap(m->buf, m->room);
	}
	m->buf = p;
	m->room = room;
	return true;
}

static int read_all(struct maps *m)
{
	ssize_t n;

	m->len = m->pos = 0;
	if (lseek(m->fd, 0, SEEK_SET) < 0)
		return -errno;
	do {
		if (m->room - m->len < 8192 && !grow(m))
			return -ENOMEM;
		n = read(m->fd, m->buf + m->len, m->room - m->len - 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		m->len += n > 0 ? (size_t)n : 0;
	} while (n);
	m->buf[m->len] = 0;
	return 0;
}

/* Parses the line at @p s.  @return the next one, NULL at the end. */
static char *parse(char *s, struct vma *v, char *name, size_t name_size)
{
	unsigned long start, end, off, inode;
	unsigned major, minor;
	char p[5];
	int at = 0;
	char *eol = strchr(s, '\n');

	if (!eol || sscanf(s, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, p, &off, &major, &minor,
			    &inode, &at) < 7)
		return NULL;
	*v = (struct vma){.start = start,
		.end = end,
		.off = off,
		.inode = inode,
		.major = major,
		.minor = minor,
		.prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
			(p[2] == 'x' ? PROT_EXEC : 0),
		.shared = p[3] == 's'};
	name[0] = 0;
	if (at && s + at < eol) {
		size_t len = (size_t)(eol - (s + at));

		if (len >= name_size)
			len = name_size - 1;
		memcpy(name, s + at, len);
		name[len] = 0;
	}
	mark_name(v, name);
	v->page = v->inode && v->anonymous ? HUGE_PAGE : 0;
	return eol + 1;
}

static bool find_by_text(struct maps *m, uintptr_t addr, struct vma *v)
{
	char name[NAME_SHORT];
	char *s = m->buf + m->pos, *next;

	while ((next = parse(s, v, name, sizeof(name)))) {
		m->pos = (size_t)(s - m->buf);
		if (v->end > addr)
			return true;
		s = next;
	}
	return false;
}

/* ---------------------------------------------------------------------------------------- */

bool maps_find(struct maps *m, uintptr_t addr, struct vma *v)
{
	return m->text ? find_by_text(m, addr, v) : find_by_query(m, addr, v);
}

void maps_name(struct maps *m, uintptr_t addr, char name[MAPS_PATH_MAX])
{
	struct query q;
	struct vma v;
	char *s, *next;

	name[0] = 0;
	if (!m->text) {
		if (ask(m, addr, 0, &q, name, MAPS_PATH_MAX) || !q.name_size)
			name[0] = 0;
		return;
	}
	for (s = m->buf; (next = parse(s, &v, name, MAPS_PATH_MAX)); s = next)
		if (v.end > addr)
			return;
	name[0] = 0;
}

/* /proc/self refers to the first thread, which has no memory after pthread_exit(); a descriptor
 * from /proc/thread-self is useless after the thread has ended. */
int maps_open_file(const char *name)
{
	char path[64], c[sizeof(uint64_t)];
	int fd;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%s/%s", i ? "thread-self" : "self", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno != ESRCH)
			return -errno;
		if (fd >= 0 && read(fd, c, sizeof(c)) == sizeof(c))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ESRCH;
}

int maps_open(struct maps *m)
{
	struct query q;
	int err;

	*m = (struct maps){.fd = maps_open_file("maps")};
	if (m->fd < 0)
		return m->fd;
	m->text = maps_text_only || ask(m, (uintptr_t)m, Q_OR_NEXT, &q, NULL, 0);
	err = maps_again(m);
	if (err)
		maps_close(m);
	return err;
}

int maps_again(struct maps *m)
{
	int err = m->text ? read_all(m) : 0;

	if (err != -ESRCH)
		return err;
	close(m->fd); /* the thread that opened it has ended */
	m->fd = maps_open_file("maps");
	return m->fd < 0 ? m->fd : read_all(m);
}

void maps_close(struct maps *m)
{
	if (m->buf)
		raw_munmap(m->buf, m->room);
	m->buf = NULL;
	m->room = 0;
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}
