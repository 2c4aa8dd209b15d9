/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "memory/arena.h"
#include "text/sentence.h"

#define DEVICE "/dev/userfaultfd"

int arena_file(char why[ABI_SENTENCE_MAX])
{
	int fd = memfd_create("roci-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd >= 0 && !ftruncate(fd, (off_t)ABI_ARENA_SIZE) &&
		!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	return refuse(why, -err,
		"rocid cannot create a memory file (%s): raise its limits of open files and of "
		"file sizes (ulimit -n, -f)",
		strerror(err));
}

int arena_userfaultfd(char why[ABI_SENTENCE_MAX])
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	return fd >= 0 ? fd
		       : refuse(why, -EOPNOTSUPP,
				 "rocid cannot open " DEVICE
				 " (%s): let its user read and write it",
				 strerror(errno));
}
