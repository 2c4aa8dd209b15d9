/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "line.h"

static int connect_once(const struct addrinfo *list)
{
	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);

		if (fd < 0)
			continue;
		if (!connect(fd, a->ai_addr, a->ai_addrlen))
			return fd;
		close(fd);
	}
	return -1;
}

/* The server may still be starting: try until the time is over. */
static int dial(const struct addrinfo *list, unsigned wait_s)
{
	time_t end = time(NULL) + wait_s;
	int fd;

	while ((fd = connect_once(list)) < 0 && time(NULL) < end)
		usleep(100 * 1000);
	return fd;
}

static int accept_one(const struct addrinfo *list, unsigned wait_s)
{
	int one = 1, fd = -1, s = socket(list->ai_family, list->ai_socktype, list->ai_protocol);

	if (s < 0)
		return -1;
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(s, list->ai_addr, list->ai_addrlen) && !listen(s, 1)) {
		struct pollfd p = {.fd = s, .events = POLLIN};

		if (poll(&p, 1, (int)wait_s * 1000) == 1)
			fd = accept(s, NULL, NULL);
		else
			errno = ETIMEDOUT;
	}
	close(s);
	return fd;
}

int line_open(struct line_conn *c, const char *host, const char *port, unsigned wait_s)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	int rc;

	if (!host) {
		hints.ai_flags = AI_PASSIVE;
		hints.ai_family = AF_INET6; /* takes IPv4 too */
	}
	rc = getaddrinfo(host, port, &hints, &list);
	if (rc) {
		fprintf(stderr, "cannot resolve %s port %s: %s\n", host ? host : "*", port,
			gai_strerror(rc));
		return -1;
	}
	*c = (struct line_conn){.wait_s = wait_s};
	c->fd = host ? dial(list, wait_s) : accept_one(list, wait_s);
	if (c->fd < 0)
		fprintf(stderr, "cannot %s %s port %s: %s\n", host ? "connect to" : "serve on",
			host ? host : "*", port, strerror(errno));
	freeaddrinfo(list);
	return c->fd < 0 ? -1 : 0;
}

int line_send(struct line_conn *c, const char *fmt, ...)
{
	char line[LINE_MAX_LEN];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	for (int sent = 0; sent < n;) {
		ssize_t w = send(c->fd, line + sent, (size_t)(n - sent), MSG_NOSIGNAL);

		if (w < 0) {
			fprintf(stderr, "cannot send to the peer: %s\n", strerror(errno));
			return -1;
		}
		sent += (int)w;
	}
	return 0;
}

int line_recv(struct line_conn *c, char line[static LINE_MAX_LEN])
{
	for (;;) {
		struct pollfd p = {.fd = c->fd, .events = POLLIN};
		char *nl = memchr(c->buf, '\n', c->have);
		ssize_t n;

		if (nl) {
			size_t len = (size_t)(nl - c->buf);

			memcpy(line, c->buf, len);
			line[len] = 0;
			c->have -= len + 1;
			memmove(c->buf, nl + 1, c->have);
			return 0;
		}
		if (c->have == sizeof(c->buf)) {
			fprintf(stderr, "the peer sent a line of more than %d bytes\n",
				LINE_MAX_LEN);
			return -1;
		}
		if (poll(&p, 1, (int)c->wait_s * 1000) != 1) {
			fprintf(stderr, "the peer said nothing for %u s\n", c->wait_s);
			return -1;
		}
		n = recv(c->fd, c->buf + c->have, sizeof(c->buf) - c->have, 0);
		if (n <= 0) {
			fprintf(stderr, "the peer hung up%s%s\n", n < 0 ? ": " : "",
				n < 0 ? strerror(errno) : "");
			return -1;
		}
		c->have += (size_t)n;
	}
}

bool line_pending(const struct line_conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	return c->have || poll(&p, 1, 0) != 0;
}

void line_close(struct line_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
