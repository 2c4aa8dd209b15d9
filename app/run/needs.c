/* SPDX-License-Identifier: BSD-3-Clause */
#include "needs.h"
#include <elf.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MAX 64
#define ENTRIES_MAX 1024
#define ORIGIN	    "$ORIGIN"
#define ORIGIN_LONG "${ORIGIN}"

struct file {
	int fd;
	size_t nparts;
	ElfW(Phdr) part[HEADERS_MAX];
	ElfW(Addr) strings;
};

static bool read_at(int fd, void *to, size_t size, ElfW(Off) at)
{
	return pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* Reads the string @p name of the dynamic section.  @return whether it fits. */
static bool text_of(const struct file *f, ElfW(Xword) name, char text[PATH_MAX])
{
	ElfW(Addr) at = f->strings + name;

	for (size_t i = 0; i < f->nparts; i++) {
		const ElfW(Phdr) *p = &f->part[i];
		ssize_t n;

		if (p->p_type != PT_LOAD || at < p->p_vaddr || at - p->p_vaddr >= p->p_filesz)
			continue;
		n = pread(f->fd, text, PATH_MAX - 1, (off_t)(p->p_offset + (at - p->p_vaddr)));
		text[n > 0 ? n : 0] = 0;
		return n > 0 && strlen(text) < (size_t)n;
	}
	return false;
}

/* --- folders ------------------------------------------------------------------------------- */

static bool has_verbs(const char *folder)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/libibverbs.so.1", folder) < (int)sizeof(path) &&
	       !access(path, R_OK);
}

/* Replaces the name of the program's folder.  @return whether the result fits. */
static bool expand(const char *folder, int len, const char *program, char out[PATH_MAX])
{
	char copy[PATH_MAX];
	size_t skip = 0;
	const char *own = "";

	if (!strncmp(folder, ORIGIN, strlen(ORIGIN)))
		skip = strlen(ORIGIN);
	else if (!strncmp(folder, ORIGIN_LONG, strlen(ORIGIN_LONG)))
		skip = strlen(ORIGIN_LONG);
	if (skip) {
		if (!realpath(program, copy))
			return false;
		own = dirname(copy);
	}
	return snprintf(out, PATH_MAX, "%s%.*s", own, len - (int)skip, folder + skip) < PATH_MAX;
}

static void find_verbs(const char *rpath, const char *program, char verbs[PATH_MAX])
{
	for (const char *end; *rpath; rpath = end + (*end == ':')) {
		end = strchrnul(rpath, ':');
		if (expand(rpath, (int)(end - rpath), program, verbs) && *verbs && has_verbs(verbs))
			return;
	}
	verbs[0] = 0;
}

/* --- the dynamic section ------------------------------------------------------------------- */

static size_t read_entries(const struct file *f, ElfW(Dyn) entry[ENTRIES_MAX])
{
	for (size_t i = 0; i < f->nparts; i++) {
		size_t size = f->part[i].p_filesz;

		if (f->part[i].p_type != PT_DYNAMIC)
			continue;
		if (size > ENTRIES_MAX * sizeof(entry[0]))
			size = ENTRIES_MAX * sizeof(entry[0]);
		return read_at(f->fd, entry, size, f->part[i].p_offset) ? size / sizeof(entry[0])
									: 0;
	}
	return 0;
}

static bool is_asan(const char *name)
{
	return strstr(name, "libasan.so") || strstr(name, "libclang_rt.asan");
}

void needs_read(const char *path, int fd, const ElfW(Ehdr) * elf, struct needs *n)
{
	static ElfW(Dyn) entry[ENTRIES_MAX];
	struct file f = {.fd = fd};
	char text[PATH_MAX], rpath[PATH_MAX] = "";
	bool runpath = false;
	size_t count;

	*n = (struct needs){0};
	f.nparts = elf->e_phnum < HEADERS_MAX ? elf->e_phnum : HEADERS_MAX;
	if (elf->e_phentsize != sizeof(f.part[0]) ||
		!read_at(fd, f.part, f.nparts * sizeof(f.part[0]), elf->e_phoff))
		return;
	count = read_entries(&f, entry);
	for (size_t i = 0; i < count; i++)
		if (entry[i].d_tag == DT_STRTAB)
			f.strings = entry[i].d_un.d_ptr;
	for (size_t i = 0; i < count && entry[i].d_tag != DT_NULL; i++) {
		if (entry[i].d_tag == DT_NEEDED && text_of(&f, entry[i].d_un.d_val, text))
			n->asan |= is_asan(text);
		if (entry[i].d_tag == DT_RPATH && !text_of(&f, entry[i].d_un.d_val, rpath))
			rpath[0] = 0;
		runpath |= entry[i].d_tag == DT_RUNPATH; /* then DT_RPATH does not count */
	}
	if (!runpath)
		find_verbs(rpath, path, n->verbs);
}
