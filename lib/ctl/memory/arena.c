/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "memory/arena.h"
#include "refuse.h"

#define DEVICE "/dev/userfaultfd"

#define HUGE_PAGE (2u << 20)
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif

int arena_file(uint32_t page, char why[ABI_SENTENCE_MAX])
{
	unsigned huge = page == HUGE_PAGE ? MFD_HUGETLB | MFD_HUGE_2MB : 0;
	int fd, err;

	if (page && !huge)
		return refuse(why, -EOPNOTSUPP,
			"a memory file can have pages of 2 MiB, not of %u bytes", page);
	fd = memfd_create("roci-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING | huge);
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
				 " (%s): give rocid's user read and write access",
				 strerror(errno));
}
