/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a program needs to make any memory registrable (doc/abi.md, "Memory regions").
 * rocid keeps nothing of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "config/parts.h"
#include "session/session.h"
#include "text/sentence.h"
#include "verbs/command.h"

#define DEVICE "/dev/userfaultfd"

int cmd_get_arena(struct session *s, const struct request *q, struct reply *r)
{
	int fd = memfd_create("roci-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = 0;

	(void)s;
	(void)q;
	/* The program could not make it under a limit of file sizes (ulimit -f). */
	if (fd < 0 || ftruncate(fd, (off_t)ABI_ARENA_SIZE) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		err = -errno;
	if (!err) {
		reply_fd(r, fd);
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return refuse(r->why, err,
		"rocid cannot create a memory file (%s): raise its limits of open files and of "
		"file sizes (ulimit -n, -f)",
		strerror(-err));
}

int cmd_get_userfaultfd(struct session *s, const struct request *q, struct reply *r)
{
	int fd;

	(void)q;
	if (s->ctl->no_userfaultfd)
		return refuse(r->why, -EOPNOTSUPP,
			"this rocid gives programs no userfaultfd (--userfaultfd no)");
	fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return refuse(r->why, -EOPNOTSUPP,
			"rocid cannot open " DEVICE " (%s): let its user read and write it",
			strerror(errno));
	reply_fd(r, fd);
	return 0;
}
