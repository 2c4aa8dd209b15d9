/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file source.h
 * An arena without rocid: the test creates its files. One thread.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arena_impl.h"

#define PAGE 4096ul
#define MB   (1ul << 20)

static int make_file(void *arg, bool huge)
{
	int fd = huge ? -EOPNOTSUPP : memfd_create("arena-test", MFD_CLOEXEC);

	(void)arg;
	return fd >= 0 && ftruncate(fd, 1ll << 62) ? -errno : fd;
}

static int no_device(void *arg)
{
	(void)arg;
	return -EOPNOTSUPP;
}

static const struct arena_source source = {.memfd = make_file, .uffd = no_device};

static inline uint8_t *anon(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		__builtin_trap();
	return p;
}

#endif
