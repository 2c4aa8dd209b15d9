/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loaded by roci-run before the libraries of a program: allocators that return memory to the kernel
 * by madvise() must find it cleared, and programs what mremap() adds, also where memory has been
 * moved (lib/arena/discard.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include "roci_private.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int madvise(void *addr, size_t len, int advice)
{
	int err = roci_madvise(addr, len, advice);

	if (err)
		errno = err;
	return err ? -1 : 0;
}

PUBLIC void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
	va_list rest;
	void *to;

	va_start(rest, flags);
	to = va_arg(rest, void *); /* the kernel reads it only if a flag says so */
	va_end(rest);
	return roci_mremap(old, old_len, new_len, flags, to);
}
