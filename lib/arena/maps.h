/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file maps.h
 * What the kernel says is mapped: PROCMAP_QUERY (Linux 6.11), else /proc/self/maps. No table of our
 * own could be right, because libc moves and unmaps memory without telling anybody.
 */
#ifndef ARENA_MAPS_H
#define ARENA_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A mapping. */
struct vma {
	uintptr_t start, end;
	uint64_t off; /* in the file */
	uint64_t inode;
	size_t page; /* bytes of one; 0: ordinary */
	bool anonymous;
	uint32_t major, minor;
	int prot;
	bool shared;
	bool stack;	/* the main thread's, which grows */
	bool text_name; /* the kernel names it: [vdso] and the like */
};

/** A look at the mappings. */
struct maps {
	int fd;
	bool text;
	char *buf;
	size_t room, len, pos;
};

#define MAPS_PATH_MAX 4096

/** Opens the process' own file @p name of /proc.  @return a descriptor, or a negative errno. */
int maps_open_file(const char *name);

/** Begins a look.  @return 0 or a negative errno: there is no /proc. */
int maps_open(struct maps *m);

/** Makes a new look of @p m: mappings may have changed.  @return 0 or a negative errno. */
int maps_again(struct maps *m);

/** Finds the mapping of @p addr, or the first above it. Addresses of one look ascend.
 *  @return false if there is none. */
bool maps_find(struct maps *m, uintptr_t addr, struct vma *v);

/** Copies the name of the mapping of @p addr, "" if it has none. Any address; may allocate. */
void maps_name(struct maps *m, uintptr_t addr, char name[MAPS_PATH_MAX]);

void maps_close(struct maps *m);

/** For tests: reads the text although the kernel answers queries. */
extern bool maps_text_only;

#endif
