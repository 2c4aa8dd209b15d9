/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "raw.h"
#include "thread.h"

#define NAME_MAX_LEN 32

/* Linux 5.16, 6.7. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef FUTEX2_PRIVATE
#define FUTEX2_PRIVATE FUTEX_PRIVATE_FLAG
#endif

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
		return errno == EMFILE || errno == ENFILE ? THREAD_COMING : THREAD_ENDED;
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

#define CALL_ARGS 6

/* Parses "202 0x7f... 0x80 ...".  @return the system call's number, -1: none. */
static long parse_call(const char *s, uint64_t arg[CALL_ARGS])
{
	long call = *s == '-' ? -1 : (long)number(s);

	for (unsigned i = 0; i < CALL_ARGS; i++) {
		arg[i] = 0;
		while (*s && *s != ' ')
			s++;
		for (s += *s ? 3 : 0; *s && *s != ' '; s++) /* after " 0x" */
			arg[i] = arg[i] << 4 | (uint64_t)(*s <= '9' ? *s - '0' : *s - 'a' + 10);
	}
	return call;
}

/* The kernel finds a futex that is not process-private by its page, which may be replaced. A
 * futex_waitv() has a list of futexes, which is not examined. */
enum thread_wait thread_waits(int dir, pid_t tid, uintptr_t s, uintptr_t e)
{
	uint64_t arg[CALL_ARGS];
	bool is_private;
	char call[256];

	if (!read_file(dir, tid, "syscall", call, sizeof(call)))
		return THREAD_WAITS; /* assume so, to be safe */
	if (call[0] == 'r')
		return THREAD_RUNS;
	switch (parse_call(call, arg)) {
	case SYS_futex:
		is_private = arg[1] & FUTEX_PRIVATE_FLAG;
		break;
	case SYS_futex_wait:
		is_private = arg[3] & FUTEX2_PRIVATE;
		break;
	case SYS_futex_waitv:
	case SYS_restart_syscall: /* of one that was stopped; its arguments are not shown */
		return THREAD_WAITS;
	default:
		return THREAD_ELSEWHERE;
	}
	/* FUTEX_WAIT_REQUEUE_PI has a second futex, its fifth argument. */
	return !is_private && ((arg[0] >= s && arg[0] < e) || (arg[4] >= s && arg[4] < e))
		       ? THREAD_WAITS
		       : THREAD_ELSEWHERE;
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
