/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HEAD_MAX     256 /* of a script's first line, as in Linux */
#define HEADERS_MAX  64
#define SCRIPTS_MAX  4 /* a script may interpret another */
#define PATH_DEFAULT "/bin:/usr/bin"
#define RIGHTS	     "security.capability"

#define WITHOUT "It runs but finds no device of Rocinante: "

/* --- finding it ------------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static bool find(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	const char *end;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && is_program(path);
	for (folders = folders ? folders : PATH_DEFAULT;; folders = end + 1) {
		end = strchrnul(folders, ':');
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - folders), folders,
			    end > folders ? "/" : "", name) < PATH_MAX &&
			is_program(path))
			return true;
		if (!*end)
			return false;
	}
}

/* @return whether it is a script, whose interpreter is then in @p path. */
static bool interpreter(char head[HEAD_MAX + 1], char path[PATH_MAX])
{
	char *word = head + 2;

	if (strncmp(head, "#!", 2))
		return false;
	word += strspn(word, " \t");
	word[strcspn(word, " \t\n")] = 0;
	snprintf(path, PATH_MAX, "%s", word);
	return *word;
}

/* --- what it is ------------------------------------------------------------------------------- */

/* Writes the dynamic linker's name.  @return whether there is one. */
static bool linker(int fd, const ElfW(Ehdr) * elf, char name[PATH_MAX])
{
	ElfW(Phdr) part[HEADERS_MAX];
	size_t n = elf->e_phnum < HEADERS_MAX ? elf->e_phnum : HEADERS_MAX;

	if (elf->e_phentsize != sizeof(*part) ||
		pread(fd, part, n * sizeof(*part), (off_t)elf->e_phoff) !=
			(ssize_t)(n * sizeof(*part)))
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t len = part[i].p_filesz < PATH_MAX ? part[i].p_filesz : PATH_MAX - 1;

		if (part[i].p_type != PT_INTERP)
			continue;
		if (pread(fd, name, len, (off_t)part[i].p_offset) != (ssize_t)len)
			return false;
		name[len] = 0;
		return true;
	}
	return false;
}

static bool own_header(ElfW(Ehdr) * elf)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool ok = fd >= 0 && pread(fd, elf, sizeof(*elf), 0) == sizeof(*elf);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* The dynamic linker ignores the environment of programs with more rights than their caller. */
static bool has_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	       (st.st_mode & S_ISGID && st.st_gid != getegid()) ||
	       (geteuid() && getxattr(path, RIGHTS, NULL, 0) > 0);
}

static void check_needs(const char *path, int fd, const ElfW(Ehdr) * elf, struct needs *n)
{
	needs_read(path, fd, elf, n);
	if (n->asan)
		warnx("%s has AddressSanitizer's shared runtime, which must be loaded first. It "
		      "runs without libroci-preload.so, so madvise() and mremap() do not clear "
		      "registered memory%s%s",
			path,
			*n->verbs ? ", and finds no device of Rocinante, as it has its own "
				    "libibverbs.so.1 (DT_RPATH) in "
				  : "",
			n->verbs);
}

static void check_elf(const char *path, int fd, const ElfW(Ehdr) * elf, struct needs *n)
{
	char name[PATH_MAX], copy[PATH_MAX];
	ElfW(Ehdr) own;

	if (own_header(&own) && (elf->e_ident[EI_CLASS] != own.e_ident[EI_CLASS] ||
					elf->e_machine != own.e_machine)) {
		warnx("%s is for another kind of CPU. " WITHOUT "build Rocinante for that CPU, too",
			path);
		return;
	}
	if (!linker(fd, elf, name)) {
		snprintf(copy, sizeof(copy), "%s", path);
		if (fnmatch("ld*.so*", basename(copy), 0)) /* itself */
			warnx("%s is linked statically. " WITHOUT
			      "link it with the shared libibverbs",
				path);
	} else if (strstr(name, "musl")) {
		warnx("%s is for another C library (%s). " WITHOUT
		      "build Rocinante with that library",
			path, name);
	} else if (has_rights(path)) {
		warnx("%s has rights that you do not have (setuid, setgid or capabilities). It may "
		      "run without them, or find no device of Rocinante: run it as its owner, "
		      "or choose the library for all programs (roci-run(1))",
			path);
	} else {
		check_needs(path, fd, elf, n);
	}
}

void program_check(const char *program, struct needs *needs)
{
	char path[PATH_MAX], head[HEAD_MAX + 1];
	bool script = find(program, path);

	*needs = (struct needs){0};
	for (int i = 0; script && i < SCRIPTS_MAX; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : pread(fd, head, HEAD_MAX, 0);

		script = false;
		if (n >= (ssize_t)sizeof(ElfW(Ehdr)) && !memcmp(head, ELFMAG, SELFMAG)) {
			ElfW(Ehdr) elf;

			memcpy(&elf, head, sizeof(elf));
			check_elf(path, fd, &elf, needs);
		} else if (n > 0) {
			head[n] = 0;
			script = interpreter(head, path);
		}
		if (fd >= 0)
			close(fd);
	}
}
