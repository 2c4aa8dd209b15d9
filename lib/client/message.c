/* SPDX-License-Identifier: BSD-3-Clause */
/* Control calls: one packet out, one packet back, with file descriptors (abi_ctl.h). */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "client.h"
#include "roci_private.h"

#define FDS_MAX 4 /* more descriptors than any reply carries */

struct packet {
	struct abi_msg msg;
	uint8_t body[ABI_MSG_MAX - sizeof(struct abi_msg)];
};

static int gone(struct context *ctx)
{
	atomic_store(&ctx->dead, true);
	return fail_const(EIO, "rocid is gone: start it again, then open a new session");
}

static int send_request(struct context *ctx, const struct call *c, uint32_t seq)
{
	struct abi_msg msg = {.type = c->type, .seq = seq};
	struct iovec iov[2] = {{&msg, sizeof(msg)}, {(void *)c->body, c->body_len}};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} ctl = {0};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = c->body_len ? 2 : 1};
	ssize_t n;

	if (c->fd >= 0) {
		struct cmsghdr *cm;

		mh.msg_control = ctl.buf;
		mh.msg_controllen = sizeof(ctl.buf);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &c->fd, sizeof(int));
	}
	do
		n = sendmsg(ctx->pub.cmd_fd, &mh, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
		return c->type == ABI_HELLO ? 0 : gone(ctx); /* the reason may be there to read */
	return fail(errno, "cannot send the request to rocid: %s", strerror(errno));
}

static unsigned take_fds(struct msghdr *mh, int fds[FDS_MAX])
{
	unsigned n = 0;

	for (struct cmsghdr *cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		unsigned got;

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		got = (unsigned)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		if (got > FDS_MAX - n)
			got = FDS_MAX - n;
		memcpy(fds + n, CMSG_DATA(cm), got * sizeof(int));
		n += got;
	}
	return n;
}

static void close_fds(const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

/* Receives one packet.  @return its length, or a negative errno. */
static ssize_t receive(
	struct context *ctx, struct packet *p, int fds[FDS_MAX], unsigned *nfds, int *flags)
{
	struct iovec iov = {p, sizeof(*p)};
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} ctl;
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = ctl.buf,
		.msg_controllen = sizeof(ctl.buf),
	};
	bool reset = false;
	ssize_t n;

	*nfds = 0;
	*flags = 0;
	for (;;) {
		n = recvmsg(ctx->pub.cmd_fd, &mh, MSG_CMSG_CLOEXEC);
		if (n >= 0 || (errno != EINTR && (errno != ECONNRESET || reset)))
			break;
		/* The kernel reports a reset before it delivers packets that arrived earlier. */
		reset = errno == ECONNRESET;
	}
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return -gone(ctx);
	if (n < 0)
		return -fail(errno, "cannot receive rocid's reply: %s", strerror(errno));
	*nfds = take_fds(&mh, fds);
	*flags = mh.msg_flags;
	return n;
}

/* Processes the reply to our request, with its descriptors. */
static int digest(const struct call *c, const struct packet *p, size_t len, int flags,
	const int *fds, unsigned nfds)
{
	size_t body = len - sizeof(p->msg);

	if (flags & MSG_CTRUNC) {
		close_fds(fds, nfds);
		return fail_const(EMFILE, "the process has no file descriptors left: raise its "
					  "limit (ulimit -n)");
	}
	if (p->msg.status < 0) {
		close_fds(fds, nfds);
		if (body == 0)
			return fail(-p->msg.status, "rocid refused: %s", strerror(-p->msg.status));
		return fail(-p->msg.status, "%.*s", (int)body, (const char *)p->body);
	}
	if (p->msg.status > 0 || nfds != c->nfds || flags & MSG_TRUNC) {
		close_fds(fds, nfds);
		return fail(EPROTO,
			"this libroci does not understand rocid's reply to request %u: "
			"use rocid and libroci of the same version",
			c->type);
	}
	if (c->reply_len) {
		memset(c->reply, 0, c->reply_len);
		memcpy(c->reply, p->body, body < c->reply_len ? body : c->reply_len);
	}
	if (nfds)
		memcpy(c->fds, fds, nfds * sizeof(*fds));
	return 0;
}

/* A session may be refused before our first request, so with seq 0. */
static bool is_reply(const struct call *c, uint32_t seq, const struct abi_msg *msg)
{
	return msg->type == c->type &&
	       (msg->seq == seq || (c->type == ABI_HELLO && msg->seq == 0 && msg->status < 0));
}

static int call_locked(struct context *ctx, const struct call *c)
{
	uint32_t seq = ++ctx->seq;
	struct packet p;
	int fds[FDS_MAX];
	unsigned nfds;
	ssize_t n;
	int flags, err;

	if (atomic_load(&ctx->dead))
		return gone(ctx);
	err = send_request(ctx, c, seq);
	if (err)
		return err;
	for (;;) {
		n = receive(ctx, &p, fds, &nfds, &flags);
		if (n < 0)
			return (int)-n;
		if (n >= (ssize_t)sizeof(p.msg) && is_reply(c, seq, &p.msg))
			return digest(c, &p, (size_t)n, flags, fds, nfds);
		close_fds(fds, nfds); /* not a reply to this request */
	}
}

/* No cancellation point, as with the ioctl() of other drivers: a cancelled thread would leave the
 * lock held, and its reply to the next one. */
int call(struct context *ctx, const struct call *c)
{
	int err, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&ctx->call_lock);
	err = call_locked(ctx, c);
	pthread_mutex_unlock(&ctx->call_lock);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int call_plain(struct context *ctx, uint32_t type, const void *body, size_t body_len, void *reply,
	size_t reply_len)
{
	const struct call c = {.type = type,
		.body = body,
		.body_len = body_len,
		.fd = -1,
		.reply = reply,
		.reply_len = reply_len};

	return call(ctx, &c);
}

int call_for_fd(struct context *ctx, uint32_t type, const void *body, size_t body_len, void *reply,
	size_t reply_len, int *fd)
{
	const struct call c = {.type = type,
		.body = body,
		.body_len = body_len,
		.fd = -1,
		.reply = reply,
		.reply_len = reply_len,
		.fds = fd,
		.nfds = 1};

	return call(ctx, &c);
}

int roci_cm_call(struct roci_context *ctx, uint32_t type, const void *body, size_t body_len,
	void *reply, size_t reply_len, int *fd)
{
	const struct call c = {.type = type,
		.body = body,
		.body_len = body_len,
		.fd = -1,
		.reply = reply,
		.reply_len = reply_len,
		.fds = fd,
		.nfds = fd != NULL};

	return call(context_of(ctx), &c);
}

int call_destroy(struct context *ctx, uint32_t type, uint32_t handle)
{
	struct abi_handle body = {.handle = handle};
	int err = call_plain(ctx, type, &body, sizeof(body), NULL, 0);

	/* When rocid is gone, so are all objects of the session. */
	return atomic_load(&ctx->dead) ? 0 : err;
}

int region_map(struct region *r, int fd, uint32_t size)
{
	struct stat st;
	void *base;
	int err = 0;

	if (fstat(fd, &st) < 0 || size == 0 || st.st_size < (off_t)size)
		err = fail_const(EPROTO,
			"rocid sent a memory region that is smaller than announced: use rocid and "
			"libroci of the same version");
	if (!err) {
		base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (base == MAP_FAILED)
			err = fail(errno, "cannot map rocid's memory region: %s", strerror(errno));
	}
	close(fd);
	if (!err)
		*r = (struct region){.base = base, .size = size};
	return err;
}

void region_unmap(struct region *r)
{
	if (r->base)
		munmap(r->base, r->size);
	r->base = NULL;
}

bool region_has(const struct region *r, uint64_t off, uint64_t len, uint32_t align)
{
	return off % align == 0 && len <= r->size && off <= r->size - len;
}

bool context_dead(struct context *ctx, bool look)
{
	const struct abi_session *s = (const struct abi_session *)ctx->region.base;
	char byte;

	if (atomic_load_explicit(&ctx->dead, memory_order_relaxed))
		return true;
	if (atomic_load_explicit(&s->epoch, memory_order_acquire) != ctx->epoch) {
		atomic_store(&ctx->dead, true);
		return true;
	}
	/* rocid sends nothing unasked, and MSG_PEEK does not consume a reply that another thread
	 * waits for. Not recv(), a cancellation point: the caller holds a lock. */
	if (look) {
		long n = syscall(SYS_recvfrom, ctx->pub.cmd_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT,
			NULL, NULL);

		if (n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE)))
			atomic_store(&ctx->dead, true);
	}
	return atomic_load_explicit(&ctx->dead, memory_order_relaxed);
}
