/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "oob.h"

/* A machine that dies does not close the connection: probe after 5 s of silence, give up after 10
 * more. */
#define KEEPALIVE_IDLE_S     5
#define KEEPALIVE_INTERVAL_S 2
#define KEEPALIVE_COUNT	     5

/* Attempts to connect without an answer: 15 s; the kernel's default takes two minutes.
 */
#define SYN_COUNT 3

typedef int (*prepare)(int fd, const struct sockaddr *addr, socklen_t len);

static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *list;
	int rc = getaddrinfo(host, port, &hints, &list);

	if (rc)
		errx(1, "%s port %s: %s", host ? host : "any", port, gai_strerror(rc));
	return list;
}

/* The first of @list's addresses with which @prepare succeeds; -1: none. */
static int first_that(const struct addrinfo *list, prepare prepare)
{
	int on = 1;

	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (prepare(fd, a->ai_addr, a->ai_addrlen) == 0)
			return fd;
		close(fd);
	}
	return -1;
}

static int listen_on(int fd, const struct sockaddr *addr, socklen_t len)
{
	return bind(fd, addr, len) || listen(fd, 1);
}

/* TCP_NODELAY, because the other side waits for each small message; keepalive, because the peer may
 * be switched off. */
static int tune(int fd)
{
	int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S,
	    count = KEEPALIVE_COUNT;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	return fd;
}

int oob_listen(const char *port)
{
	struct addrinfo *list = resolve(NULL, port);
	int fd = first_that(list, listen_on);

	if (fd < 0)
		err(1, "cannot listen on TCP port %s", port);
	freeaddrinfo(list);
	return fd;
}

int oob_accept(int fd)
{
	int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	if (peer < 0)
		err(1, "nobody connects");
	close(fd);
	return tune(peer);
}

static int connect_to(int fd, const struct sockaddr *addr, socklen_t len)
{
	int count = SYN_COUNT;

	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &count, sizeof(count));
	return connect(fd, addr, len);
}

int oob_connect(const char *host, const char *port, int patience_s)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	struct addrinfo *list = resolve(host, port);
	time_t until = time(NULL) + patience_s;
	int fd;

	while ((fd = first_that(list, connect_to)) < 0) {
		if (errno != ECONNREFUSED)
			err(1,
				"cannot reach TCP port %s of %s: check with `ip route get` and "
				"`ping`",
				port, host);
		if (time(NULL) >= until)
			err(1, "TCP port %s of %s: start the other side first", port, host);
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(list);
	return tune(fd);
}

void oob_send(int fd, const void *data, size_t size)
{
	const char *from = data;

	while (size) {
		ssize_t n = send(fd, from, size, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			errx(1, "the peer has disconnected: see its own message for the reason");
		if (n > 0) {
			from += n;
			size -= (size_t)n;
		}
	}
}

void oob_receive(int fd, void *data, size_t size)
{
	char *to = data;

	while (size) {
		ssize_t n = recv(fd, to, size, MSG_WAITALL);

		if (n == 0 || (n < 0 && errno != EINTR))
			errx(1, "the peer has disconnected: see its own message for the reason");
		if (n > 0) {
			to += n;
			size -= (size_t)n;
		}
	}
}
