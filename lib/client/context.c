/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: open and close. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "client.h"
#include "roci_private.h"

#define END_MS 2000 /* rocid ends a session within milliseconds, unless it is stopped */

static int connect_error(int err, const char *path)
{
	switch (err) {
	case ENOENT:
		return fail(err,
			"no rocid serves %s: start rocid, or set %s to the socket of a running one",
			path, ABI_SOCKET_ENV);
	case ECONNREFUSED:
		return fail(err, "the rocid that served %s has ended: start it again", path);
	case EACCES:
	case EPERM:
		return fail(EACCES,
			"no permission for %s: run as a member of the group that owns the "
			"socket",
			path);
	default:
		return fail(err, "cannot connect to %s: %s", path, strerror(err));
	}
}

static int connect_to(const char *path, int *out)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, rc;

	if (strlen(path) >= sizeof(sa.sun_path))
		return fail(ENAMETOOLONG, "the socket path %s is longer than %zu bytes", path,
			sizeof(sa.sun_path) - 1);
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(errno, "cannot create a socket: %s", strerror(errno));
	do
		rc = connect(fd, (struct sockaddr *)&sa, sizeof(sa));
	while (rc < 0 && errno == EINTR);
	if (rc < 0) {
		int err = connect_error(errno, path);

		close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

static bool hello_fits(const struct abi_hello_reply *r)
{
	uint64_t end = r->doorbell_off + (uint64_t)r->workers * r->doorbell_stride;

	return r->magic == ABI_MAGIC && r->version >= ABI_VERSION_MIN &&
	       r->version <= ABI_VERSION && r->workers > 0 && r->doorbell_off % 8 == 0 &&
	       r->doorbell_stride % 8 == 0 && r->doorbell_stride >= sizeof(struct abi_doorbell) &&
	       r->doorbell_off >= sizeof(struct abi_session) && end <= r->region_size;
}

/* Gets the eventfds that wake sleeping workers. Without one (no descriptors left) a worker notices
 * our doorbells a little later, so that is not a failure. */
static int get_wakes(struct context *ctx, bool sleeps)
{
	ctx->wake = malloc(ctx->workers * sizeof(ctx->wake[0]));
	if (!ctx->wake)
		return fail_const(
			ENOMEM, "out of memory for a context: free some memory and try again");
	for (uint32_t i = 0; i < ctx->workers; i++) {
		struct abi_get_wake body = {.worker = i};

		ctx->wake[i] = -1;
		if (sleeps)
			call_for_fd(ctx, ABI_GET_WAKE, &body, sizeof(body), NULL, 0, &ctx->wake[i]);
	}
	return 0;
}

static int hello(struct context *ctx)
{
	struct abi_hello body = {
		.magic = ABI_MAGIC,
		.version_min = ABI_VERSION_MIN,
		.version_max = ABI_VERSION,
	};
	struct abi_hello_reply r;
	int fds[2];
	int err;

	strncpy(body.name, program_invocation_short_name, sizeof(body.name) - 1);
	err = call(ctx, &(struct call){.type = ABI_HELLO,
				.body = &body,
				.body_len = sizeof(body),
				.fd = -1,
				.reply = &r,
				.reply_len = sizeof(r),
				.fds = fds,
				.nfds = 2});
	if (err)
		return err;
	ctx->pub.async_fd = fds[1];
	if (!hello_fits(&r)) {
		close(fds[0]);
		return fail_const(EPROTO, "rocid's greeting is malformed: use rocid and libroci "
					  "of the same version");
	}
	err = region_map(&ctx->region, fds[0], r.region_size);
	if (err)
		return err;
	ctx->epoch = r.epoch;
	ctx->workers = r.workers;
	ctx->doorbell_off = r.doorbell_off;
	ctx->doorbell_stride = r.doorbell_stride;
	ctx->rocev1 = r.rocev1;
	memcpy(ctx->device, r.device, sizeof(r.device));
	ctx->pub.device = ctx->device;
	return get_wakes(ctx, r.sleeps);
}

static void context_free(struct context *ctx)
{
	context_unlist(ctx);
	memory_free_all(ctx);
	region_unmap(&ctx->region);
	if (ctx->pub.cmd_fd >= 0)
		close(ctx->pub.cmd_fd);
	if (ctx->pub.async_fd >= 0)
		close(ctx->pub.async_fd);
	for (uint32_t i = 0; ctx->wake && i < ctx->workers; i++)
		if (ctx->wake[i] >= 0)
			close(ctx->wake[i]);
	free(ctx->wake);
	map_free(&ctx->cqs);
	map_free(&ctx->qps);
	map_free(&ctx->srqs);
	pthread_cond_destroy(&ctx->acked);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&ctx->call_lock);
	free(ctx);
}

static struct context *context_new(void)
{
	struct context *ctx = calloc(1, sizeof(*ctx));

	if (!ctx) {
		fail_const(ENOMEM, "out of memory for a context: free some memory and try again");
		return NULL;
	}
	ctx->pub.cmd_fd = -1;
	ctx->pub.async_fd = -1;
	ctx->no_pd = (struct pd){.pub.context = &ctx->pub, .handle = ABI_NO_HANDLE};
	context_list(ctx);
	pthread_mutex_init(&ctx->call_lock, NULL);
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->acked, NULL);
	return ctx;
}

static int context_connect(struct context *ctx, const char *socket_path)
{
	if (!socket_path)
		socket_path = secure_getenv(ABI_SOCKET_ENV);
	if (!socket_path || !*socket_path)
		socket_path = ABI_SOCKET_DEFAULT;
	return connect_to(socket_path, &ctx->pub.cmd_fd);
}

int roci_probe(const char *socket_path, struct roci_device_info *info)
{
	struct context *ctx = context_new();
	struct roci_device_info out = {0};
	struct abi_probe r;
	int err;

	if (!ctx)
		return ENOMEM;
	err = context_connect(ctx, socket_path);
	if (!err)
		err = call_plain(ctx, ABI_PROBE, NULL, 0, &r, sizeof(r));
	context_free(ctx);
	if (err)
		return err;
	memcpy(out.name, r.device, sizeof(out.name) - 1);
	out.node_guid = r.node_guid;
	out.ports = r.ports;
	return opts_write(info, &out, sizeof(out), "roci_device_info");
}

struct roci_context *roci_open(const char *socket_path)
{
	struct context *ctx = context_new();
	int err;

	if (!ctx) {
		errno = ENOMEM;
		return NULL;
	}
	err = context_connect(ctx, socket_path);
	if (!err)
		err = hello(ctx);
	if (err) {
		context_free(ctx);
		errno = err;
		return NULL;
	}
	return &ctx->pub;
}

int roci_close(struct roci_context *c)
{
	struct context *ctx = context_of(c);
	bool busy;

	pthread_mutex_lock(&ctx->lock);
	busy = ctx->pds || ctx->channels || ctx->cqs.count;
	pthread_mutex_unlock(&ctx->lock);
	if (busy)
		return fail(EBUSY,
			"the context still has %u PDs, %u CQs and %u channels: destroy them first",
			ctx->pds, ctx->cqs.count, ctx->channels);
	context_free(ctx);
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* rocid closes the socket after it has destroyed the session's objects, and sends nothing unasked:
 * what else can be read is a reply that another thread was waiting for. */
static void wait_for_end(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t until = now_ms() + END_MS;

	for (int64_t left = END_MS; left > 0; left = until - now_ms()) {
		char byte;
		ssize_t n = poll(&p, 1, (int)left);

		if (n > 0)
			n = recv(fd, &byte, 1, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return;
	}
}

void roci_abandon(struct roci_context *c)
{
	struct context *ctx = context_of(c);

	shutdown(c->cmd_fd, SHUT_WR);
	if (!atomic_load(&ctx->dead)) /* a child of fork() has no socket */
		wait_for_end(c->cmd_fd);
	shutdown(c->cmd_fd, SHUT_RDWR);
	pthread_mutex_lock(&ctx->lock);
	atomic_store(&ctx->dead, true);
	ctx->abandoned = true;
	pthread_cond_broadcast(&ctx->acked);
	pthread_mutex_unlock(&ctx->lock);
}

uint32_t roci_workers(struct roci_context *ctx)
{
	return context_of(ctx)->workers;
}

struct roci_pd *roci_no_pd(struct roci_context *c)
{
	return &context_of(c)->no_pd.pub;
}
