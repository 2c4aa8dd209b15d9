/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file maps.h
 * The kernel's list of mappings: from PROCMAP_QUERY (Linux 6.11), else from /proc/self/maps. A
 * table of our own could not be right, because libc moves and unmaps memory without notice.
 */
#ifndef ARENA_MAPS_H
#define ARENA_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A mapping. */
struct vma {
	uintptr_t start, end;
	uint64_t off; /* of `start` in the file */
	uint64_t inode;
	size_t page; /* page size in bytes; 0: ordinary */
	bool anonymous;
	uint32_t major, minor;
	int prot;
	bool shared;
	bool stack;	/* the main thread's, which grows */
	bool heap;	/* brk()'s */
	bool text_name; /* a name of the kernel, such as [vdso] */
};

/** A view of the mappings. */
struct maps {
	int fd;
	bool text;
	char *buf;
	size_t room, len, pos;
};

#define MAPS_PATH_MAX 4096

/** Opens the file @p name of this process in /proc.  @return a descriptor, or a negative errno. */
int maps_open_file(const char *name);

/** Begins a view.  @return 0 or a negative errno: there is no /proc. */
int maps_open(struct maps *m);

/** Refreshes @p m: mappings may have changed.  @return 0 or a negative errno. */
int maps_again(struct maps *m);

/** Finds the mapping that contains @p addr, or the first one above. Within one view, addresses must
 *  ascend.
 *  @return false if there is none. */
bool maps_find(struct maps *m, uintptr_t addr, struct vma *v);

/** Copies the name of the mapping at @p addr, "" if it has none. Addresses may come in any order;
 *  may allocate. */
void maps_name(struct maps *m, uintptr_t addr, char name[MAPS_PATH_MAX]);

void maps_close(struct maps *m);

/** For tests: reads the text even if the kernel supports queries. */
extern bool maps_text_only;

#endif
