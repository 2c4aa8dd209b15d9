/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file lingering.h
 * A descriptor whose last close takes an hour: a socket that lingers, with bytes that are never
 * read.
 */
#ifndef LINGERING_H
#define LINGERING_H

#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

/** @return the descriptor, or -1.
 *  @param other  receives the other end; closing it ends the hour */
static inline int lingering(int *other)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	static uint8_t bytes[1 << 20];
	socklen_t len = sizeof(in);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*other = -1;
	if (l < 0 || fd < 0 || bind(l, (struct sockaddr *)&in, sizeof(in)) || listen(l, 1) ||
		getsockname(l, (struct sockaddr *)&in, &len) ||
		connect(fd, (struct sockaddr *)&in, sizeof(in)))
		return -1;
	*other = accept(l, NULL, NULL);
	close(l);
	while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		;
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)))
		return -1;
	return fd;
}

#endif
