/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "arena_impl.h"
#include "hold.h"

struct arena arena = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.file = {[ORDINARY] = {.fd = -1}, [HUGE] = {.fd = -1, .page = HUGE_PAGE}},
	.pagemap = -1,
	.maps = {.fd = -1},
};

bool look_at(uintptr_t addr, struct vma *v)
{
	return !maps_again(&arena.maps) && maps_find(&arena.maps, addr, v);
}

int arena_lock(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&arena.lock);
	return cancel;
}

void arena_unlock(int cancel)
{
	pthread_mutex_unlock(&arena.lock);
	pthread_setcancelstate(cancel, NULL);
}

/* --- set-up ----------------------------------------------------------------------------- */

static int open_maps(char why[ARENA_WHY_MAX])
{
	int err;

	if (arena.maps.fd >= 0)
		return 0;
	arena.page = arena.file[ORDINARY].page = (size_t)sysconf(_SC_PAGESIZE);
	err = maps_open(&arena.maps);
	if (!err) {
		arena.pagemap = maps_open_file("pagemap");
		err = arena.pagemap < 0 ? arena.pagemap : 0;
	}
	if (err)
		maps_close(&arena.maps);
	return err ? refuse(why, EOPNOTSUPP,
			     "/proc/self/maps and pagemap cannot be read (%s): mount /proc, or use "
			     "memory of roci_alloc_mem()",
			     strerror(-err))
		   : 0;
}

/* rocid creates the file, because a file size limit of this process (RLIMIT_FSIZE) would prevent
 * it. */
static int open_file(const struct arena_source *src, struct arena_file *f, char why[ARENA_WHY_MAX])
{
	bool first = !is_open();
	struct stat st;
	int fd;

	if (f->fd >= 0)
		return 0;
	if (first)
		hold_open(src->uffd(src->arg));
	fd = src->memfd(src->arg, f->page > arena.page);
	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		if (first)
			hold_close();
		return refuse(why, fd < 0 ? -fd : EIO,
			"rocid did not create a memory file for this program (%s): use memory of "
			"roci_alloc_mem()",
			strerror(fd < 0 ? -fd : EIO));
	}
	f->inode = st.st_ino;
	f->major = major(st.st_dev);
	f->minor = minor(st.st_dev);
	f->fd = fd;
	fork_reserve();
	return 0;
}

enum arena_writers arena_writers(void)
{
	return is_open() ? hold_best() : ARENA_WRITERS_NONE;
}

struct arena_stats arena_stats(void)
{
	return arena.stats;
}

/* --- one registration ------------------------------------------------------------------- */

/* A range being registered. */
struct taking {
	const struct arena_source *src;
	uintptr_t s, e; /* whole pages */
	bool write;
	bool swaps; /* some of it is private, so it is swapped */
	char *why;
};

static int check_vma(const struct taking *t, const struct vma *v, uintptr_t at)
{
	if (v->start > at)
		return refuse(t->why, EFAULT, "nothing is mapped at %#lx", (unsigned long)at);
	if (!(v->prot & PROT_READ))
		return refuse(t->why, EFAULT,
			"memory at %#lx is not readable (PROT_NONE): make it readable first",
			(unsigned long)at);
	if (t->write && !(v->prot & PROT_WRITE))
		return refuse(t->why, EFAULT,
			"memory at %#lx is not writable: make it writable, or register it without "
			"local write",
			(unsigned long)at);
	if (v->text_name)
		return refuse(t->why, EFAULT, "memory at %#lx belongs to the kernel: copy it",
			(unsigned long)at);
	if (!v->shared && v->page > arena.page && v->page != HUGE_PAGE)
		return refuse(t->why, EOPNOTSUPP,
			"memory at %#lx is in private huge pages of %zu bytes, which rocid cannot "
			"access: use huge pages of 2 MiB",
			(unsigned long)at, v->page);
	return 0;
}

/* Checks the whole range before anything is swapped. */
static int check_range(struct taking *t)
{
	uintptr_t at = t->s;
	struct vma v;
	int err = 0;

	if (maps_again(&arena.maps))
		return refuse(t->why, ENOMEM, "out of memory while reading /proc/self/maps");
	while (at < t->e && !err) {
		if (!maps_find(&arena.maps, at, &v))
			return refuse(
				t->why, EFAULT, "nothing is mapped at %#lx", (unsigned long)at);
		err = check_vma(t, &v, at);
		t->swaps |= !v.shared;
		at = v.end;
	}
	return err;
}

/* Swaps [@p s, @p e) of @p v, in whole pages. */
static int swap_vma(struct taking *t, const struct vma *v, uintptr_t s, uintptr_t e)
{
	struct arena_file *f = &arena.file[v->page > arena.page ? HUGE : ORDINARY];
	struct fresh m = {.after = s > t->s, .before = e < t->e, .alone = hold_alone(1)};
	int err = open_file(t->src, f, t->why);
	uint64_t off;

	if (err)
		return err;
	m.s = s & ~(f->page - 1);
	m.e = (e + f->page - 1) & ~(f->page - 1);
	off = choose_offset(f, v, &m);
	if (off == UINT64_MAX)
		return refuse(t->why, ENOMEM,
			"the arena has no place known to be free: either %u blocks are registered, "
			"or a thread that runs all the time with signals blocked keeps libroci "
			"from finding freed places",
			BLOCKS_MAX);
	return swap_range(f, v, &m, off, t->why);
}

static int swap_private(struct taking *t)
{
	uintptr_t at = t->s;
	int err = 0;

	while (at < t->e && !err) {
		uintptr_t end;
		struct vma v;

		if (!look_at(at, &v) || v.start > at)
			return refuse(t->why, EFAULT, "memory at %#lx was unmapped meanwhile",
				(unsigned long)at);
		end = v.end < t->e ? v.end : t->e;
		if (!v.shared)
			err = swap_vma(t, &v, at, end);
		at = end;
	}
	return err;
}

/* --- pieces of files -------------------------------------------------------------------- */

static bool same_file(const struct vma *a, const struct vma *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static struct arena_hold *add_piece(struct arena_hold *h, uint64_t off, uint64_t len)
{
	struct arena_piece *last = h->npieces ? &h->piece[h->npieces - 1] : NULL;
	struct arena_hold *more;

	if (last && last->off + last->len == off) {
		last->len += len;
		return h;
	}
	if (h->npieces & (h->npieces - 1) || !h->npieces) {
		h->piece[h->npieces++] = (struct arena_piece){off, len};
		return h;
	}
	more = realloc(h, sizeof(*h) + 2 * h->npieces * sizeof(h->piece[0]));
	if (!more) {
		free(h);
		return NULL;
	}
	more->piece[more->npieces++] = (struct arena_piece){off, len};
	return more;
}

/* Lists the pieces from the kernel's maps. *first: a mapping of the hold's file. */
static int collect(const struct taking *t, struct arena_hold **h, struct vma *first)
{
	uintptr_t at = t->s;
	struct vma v;

	for (bool more = look_at(at, &v); at < t->e; more = maps_find(&arena.maps, at, &v)) {
		uintptr_t end;

		if (!more || v.start > at || !v.shared)
			return refuse(t->why, EAGAIN, "memory at %#lx was remapped meanwhile",
				(unsigned long)at);
		if (at == t->s)
			*first = v;
		if (!same_file(first, &v))
			return refuse(t->why, EOPNOTSUPP,
				"the range mixes memory of several kinds, some of it "
				"shared (MAP_SHARED): register each part separately");
		end = v.end < t->e ? v.end : t->e;
		*h = add_piece(*h, v.off + (at - v.start), end - at);
		if (!*h)
			return refuse(t->why, ENOMEM, "out of memory for a memory region");
		at = end;
	}
	return 0;
}

static int take(struct taking *t, struct arena_hold **out)
{
	struct arena_hold *h = calloc(1, sizeof(*h) + sizeof(h->piece[0]));
	struct vma first;
	int err;

	if (!h)
		return refuse(t->why, ENOMEM, "out of memory for a memory region");
	err = collect(t, &h, &first);
	if (!h)
		return err;
	h->file = err ? NULL : file_of(&first);
	h->epoch = arena.epoch;
	if (h->file) {
		h->fd = h->file->fd;
	} else if (!err) {
		h->fd = open_shared(t->src, &first, t->write, t->why);
		err = h->fd < 0 ? -h->fd : 0;
	}
	if (err) {
		free(h);
		return err;
	}
	*out = h;
	return 0;
}

static void keep(struct arena_hold *h)
{
	if (!h->file)
		return;
	h->next = arena.holds;
	if (h->next)
		h->next->prev = h;
	arena.holds = h;
}

static int take_locked(struct taking *t, struct arena_hold **out)
{
	int err = open_maps(t->why);

	if (!err)
		err = check_range(t);
	if (!err && t->swaps)
		err = swap_private(t);
	if (!err)
		err = take(t, out);
	if (!err)
		keep(*out);
	return err;
}

int arena_take(const struct arena_source *src, uintptr_t addr, size_t len, bool write,
	struct arena_hold **out, char why[ARENA_WHY_MAX])
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct taking t = {.src = src, .write = write, .why = why};
	uint64_t head = addr % page;
	int err, cancel;

	if (!len || len > SIZE_MAX - page || addr > UINTPTR_MAX - len - page)
		return refuse(why, EINVAL, "%zu bytes at %#lx are not a valid range: check both",
			len, (unsigned long)addr);
	t.s = addr - head;
	t.e = (addr + len + page - 1) & ~(page - 1);
	cancel = arena_lock();
	err = take_locked(&t, out);
	if (!err && t.swaps)
		sweep_if_due(false);
	arena_unlock(cancel);
	if (err)
		return err;
	/* Narrow the pages to the requested bytes. */
	(*out)->piece[0].off += head;
	(*out)->piece[0].len -= head;
	(*out)->piece[(*out)->npieces - 1].len -= t.e - (addr + len);
	return 0;
}

void arena_sent(struct arena_hold *h)
{
	if (!h->file && h->fd >= 0)
		close(h->fd);
	h->fd = -1;
}

void arena_release(struct arena_hold *h)
{
	int cancel = arena_lock();

	arena_sent(h);
	if (h->file && h->epoch == arena.epoch) {
		if (h->prev)
			h->prev->next = h->next;
		else
			arena.holds = h->next;
		if (h->next)
			h->next->prev = h->prev;
		sweep_if_due(true);
	}
	arena_unlock(cancel);
	free(h);
}

bool arena_reclaim(void)
{
	int cancel = arena_lock();
	uint64_t before = arena.stats.swept, after;

	for (struct arena_file *f = arena.file; f < arena.file + ARENA_FILES; f++)
		if (f->fd >= 0)
			sweep_now(f);
	after = arena.stats.swept;
	arena_unlock(cancel);
	return after > before;
}
