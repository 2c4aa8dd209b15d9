/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loaded by roci-run before the libraries of a program: allocators that return memory to the kernel
 * by madvise() must find it cleared, also where it has been moved (lib/arena/discard.c).
 */
#include <errno.h>
#include <sys/mman.h>
#include "roci_private.h"

__attribute__((visibility("default"))) int madvise(void *addr, size_t len, int advice)
{
	int err = roci_madvise(addr, len, advice);

	if (err)
		errno = err;
	return err ? -1 : 0;
}
