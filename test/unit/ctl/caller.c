/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/socket.h>
#include "caller.h"

uid_t caller;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int err = __real_getsockopt(fd, level, name, value, len);

	if (!err && caller && level == SOL_SOCKET && name == SO_PEERCRED)
		((struct ucred *)value)->uid = caller;
	return err;
}
