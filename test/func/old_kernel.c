/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into rocid: while the file $OLD_KERNEL exists, its kernel is older than 4.20, whose packet
 * sockets lack an option that --gso needs. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_packet.h>

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	const char *path = getenv("OLD_KERNEL");

	if (level == SOL_PACKET && name == PACKET_IGNORE_OUTGOING && path && !access(path, F_OK)) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return __real_setsockopt(fd, level, name, value, size);
}
