/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "raw.h"
#include "thread.h"

#define NAME_MAX_LEN 32

/* Reads the file @p what of thread @p tid in @p dir into @p buf as a string. Uses no libc functions
 * and no heap, as a parked thread may hold any lock.  @return whether it could be read. */
static bool read_file(int dir, pid_t tid, const char *what, char *buf, size_t size)
{
	char name[NAME_MAX_LEN];
	char *s = name + sizeof(name);
	long n = 0, got = 0;
	size_t len = 0;
	int fd;

	while (what[len])
		len++;
	for (size_t i = len + 1; i > 0; i--)
		*--s = what[i - 1];
	*--s = '/';
	for (; tid; tid /= 10)
		*--s = (char)('0' + tid % 10);
	fd = (int)syscall(SYS_openat, dir, s, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (n < (long)size - 1 &&
		(got = syscall(SYS_read, fd, buf + n, size - 1 - (size_t)n)) > 0)
		n += got;
	syscall(SYS_close, fd);
	buf[n] = 0;
	return n > 0 && got >= 0;
}

/* @return the text after "\nNAME:" and blanks in @p status, or an empty string. */
static const char *field(const char *status, const char *name)
{
	for (const char *s = status; *s; s++) {
		size_t k = 0;

		if (*s != '\n')
			continue;
		while (name[k] && s[1 + k] == name[k])
			k++;
		if (name[k])
			continue;
		for (s += 1 + k; *s == ':' || *s == '\t' || *s == ' ';)
			s++;
		return s;
	}
	return "";
}

enum thread_absence thread_absence(int dir, pid_t tid, int sig)
{
	char status[4096];
	uint64_t mask = 0;
	char state;

	if (!read_file(dir, tid, "status", status, sizeof(status)))
		return THREAD_ENDED;
	state = *field(status, "State");
	if (state == 'Z' || state == 'X')
		return THREAD_ENDED;
	for (const char *s = field(status, "SigBlk"); *s && *s != '\n'; s++)
		mask = mask << 4 | (uint64_t)(*s <= '9' ? *s - '0' : *s - 'a' + 10);
	/* libc blocks all signals for short moments, in which a thread runs or waits for a CPU. */
	if ((mask >> (sig - 1) & 1 && state == 'S') || state == 't' || state == 'T')
		return THREAD_BLOCKS;
	return THREAD_COMING;
}

static uint64_t number(const char *s)
{
	uint64_t n = 0;

	while (*s >= '0' && *s <= '9')
		n = n * 10 + (uint64_t)(*s++ - '0');
	return n;
}

static bool count_switches(int dir, pid_t tid, uint64_t *n)
{
	char status[4096];

	if (!read_file(dir, tid, "status", status, sizeof(status)))
		return false;
	*n = number(field(status, "voluntary_ctxt_switches")) +
	     number(field(status, "nonvoluntary_ctxt_switches"));
	return *n > 0;
}

/* The state in "status" is not enough: a thread already shows it on its way to sleep, and may turn
 * back. The kernel shows the system call only of a thread that is not on a CPU. */
bool thread_sleeps(int dir, pid_t tid, uint64_t *switches)
{
	char call[256];
	uint64_t after;

	return count_switches(dir, tid, switches) &&
	       read_file(dir, tid, "syscall", call, sizeof(call)) && call[0] != 'r' &&
	       count_switches(dir, tid, &after) && after == *switches;
}

/* x86-64: a control block begins with its own address, which is repeated in the third word
 * (tcbhead_t). */
RAW_UNCHECKED bool thread_block_in(const uint8_t *page, uintptr_t at, size_t size)
{
	const uintptr_t *w = (const uintptr_t *)page;

	for (size_t i = 0; i + 2 < size / sizeof(*w); i += 2)
		if (w[i] == at + i * sizeof(*w) && w[i + 2] == w[i])
			return true;
	return false;
}
