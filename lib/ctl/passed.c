/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/socket.h>
#include "disposer.h"
#include "passed.h"

/* Descriptors of one message: as many as the kernel lets through. */
#define FDS_MAX 253

/* Keeps the first descriptor of @p mh and has the others closed. */
static void take_fds(struct msghdr *mh, struct disposer *closer, struct passed *p)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (p->count++ == 0)
				p->fd = fd;
			else
				dispose_fd(closer, fd);
		}
	}
}

ssize_t passed_receive(
	int sock, struct iovec iov[], size_t niov, struct disposer *closer, struct passed *p)
{
	union {
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr mh = {
		.msg_iov = iov,
		.msg_iovlen = niov,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*p = (struct passed){.fd = -1, .flags = mh.msg_flags};
	if (n >= 0)
		take_fds(&mh, closer, p);
	return n;
}
