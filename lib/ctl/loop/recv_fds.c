/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "bits.h"
#include "loop/recv_fds.h"

#define PARTS_MAX 2u /* of a message */

bool recv_fds_waits(int sock)
{
	struct msghdr mh = {0};

	/* Without a control buffer the kernel only reports that there were control data. */
	return recvmsg(sock, &mh, MSG_PEEK | MSG_DONTWAIT) >= 0 && (mh.msg_flags & MSG_CTRUNC);
}

static int first_fd(struct msghdr *mh)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(mh);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		c->cmsg_len < CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Consumes the @p n bytes that were peeked at. A stream may have more by now. */
static bool consume(int sock, const struct iovec iov[], size_t niov, size_t n)
{
	struct iovec cut[PARTS_MAX];
	struct msghdr mh = {.msg_iov = cut, .msg_iovlen = niov};
	size_t left = n;

	for (size_t i = 0; i < niov; i++) {
		size_t len = left < iov[i].iov_len ? left : iov[i].iov_len;

		cut[i] = (struct iovec){.iov_base = iov[i].iov_base, .iov_len = len};
		left -= len;
	}
	return recvmsg(sock, &mh, MSG_DONTWAIT) == (ssize_t)n;
}

ssize_t recv_fds(int sock, const struct iovec iov[], size_t niov, struct recv_fds *p)
{
	union {
		char buf[CMSG_LEN(sizeof(int))]; /* not CMSG_SPACE(), which has room for two */
		struct cmsghdr align;
	} control;
	struct msghdr mh = {
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = niov,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(sock, &mh, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*p = (struct recv_fds){.fd = -1};
	if (n < 0)
		return n;
	p->fd = first_fd(&mh);
	p->cut = mh.msg_flags & MSG_TRUNC;
	p->excess = (mh.msg_flags & MSG_CTRUNC) && p->fd >= 0;
	p->no_room = (mh.msg_flags & MSG_CTRUNC) && p->fd < 0;
	if (p->excess || p->no_room || (n == 0 && !p->cut) || consume(sock, iov, niov, (size_t)n))
		return n;
	errno = EPROTO;
	return -1;
}
