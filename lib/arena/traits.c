/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The properties of a mapping besides its bytes. The kernel shows such flags only in smaps, which
 * takes milliseconds in a large process. So each advice is tried on one page: it changes nothing if
 * the mapping has it already, otherwise it splits the mapping.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "arena_impl.h"
#include "raw.h"

#define MPOL_F_ADDR 2
#define FLAGS_LINE  512 /* bytes, more than the kernel's flags need */

/* The flags' names in smaps. */
#define NO_FORK " dc"
#define NO_DUMP " dd"

/* Reads the line "VmFlags:" of the mapping at @p at. */
static bool flags_of(uintptr_t at, char *line, size_t size)
{
	FILE *f = fopen("/proc/thread-self/smaps", "re");
	unsigned long start, end;
	bool here = false;

	while (f && fgets(line, (int)size, f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = at >= start && at < end;
		else if (here && !strncmp(line, "VmFlags:", 8)) {
			fclose(f);
			return true;
		}
	}
	if (f)
		fclose(f);
	return false;
}

/* @return whether advice @p off changed the page at @p at, which means that the mapping had @p on,
 * called @p flag; that is restored. If instead another thread changed the mapping's bounds by
 * mapping or unmapping next to it, the flags of the page's neighbour, which are those of the whole
 * mapping, tell the difference. */
static bool had(const struct vma *v, uintptr_t at, int off, int on, const char *flag)
{
	uintptr_t beside = at + page_of(v) < v->end ? at + page_of(v) : at - page_of(v);
	char line[FLAGS_LINE];
	struct vma now;

	if (raw_madvise((void *)at, page_of(v), off))
		return false;
	if (v->end - v->start == page_of(v) || maps_again(&arena.maps) ||
		!maps_find(&arena.maps, at, &now))
		return false;
	if (now.start == v->start && now.end == v->end)
		return false;
	if (!flags_of(beside, line, sizeof(line)) || !strstr(line, flag))
		return false;
	raw_madvise((void *)at, page_of(v), on);
	return true;
}

/* MS_INVALIDATE fails for locked pages, and has no other effect on private memory. */
static bool is_locked(const struct vma *v, uintptr_t at)
{
	return syscall(SYS_msync, at, page_of(v), MS_INVALIDATE) && errno == EBUSY;
}

/* A mapping of a single page cannot be split, so its flags are read. */
static bool look_up(const struct vma *v, uintptr_t at, struct traits *t)
{
	char line[FLAGS_LINE];

	if (v->end - v->start != page_of(v) || !flags_of(at, line, sizeof(line)))
		return false;
	t->no_fork = strstr(line, NO_FORK);
	t->no_dump = strstr(line, NO_DUMP);
	return true;
}

int traits_of(const struct vma *v, uintptr_t at, struct traits *t)
{
	memset(t, 0, sizeof(*t));
	t->locked = is_locked(v, at);
	/* The kernel refuses the advice for memory without pages of its own. */
	if (!look_up(v, at, t)) {
		t->no_dump = had(v, at, MADV_DODUMP, MADV_DONTDUMP, NO_DUMP);
		t->no_fork = had(v, at, MADV_DOFORK, MADV_DONTFORK, NO_FORK);
	}
	if (syscall(SYS_get_mempolicy, &t->policy, t->nodes, sizeof(t->nodes) * 8, at, MPOL_F_ADDR))
		t->policy = 0;
	return 0;
}

void traits_keep(const struct traits *t, void *at, size_t len)
{
	if (t->policy)
		syscall(SYS_mbind, at, len, t->policy, t->nodes, sizeof(t->nodes) * 8, 0);
	if (t->no_fork)
		raw_madvise(at, len, MADV_DONTFORK);
	if (t->no_dump)
		raw_madvise(at, len, MADV_DONTDUMP);
	if (t->huge)
		raw_madvise(at, len, MADV_HUGEPAGE); /* a hint: shared memory may not allow it */
}
