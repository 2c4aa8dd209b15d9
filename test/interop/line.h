/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file line.h
 * Lines of text over a TCP connection, with a time limit: the control channel of the peers.
 */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stddef.h>

#define LINE_MAX_LEN 512

struct line_conn {
	int fd;
	unsigned wait_s;
	size_t have;
	char buf[LINE_MAX_LEN];
};

/** Connect to @p host, or with a NULL host accept one connection. @return 0, or -1 with the
 *  reason on stderr. */
int line_open(struct line_conn *c, const char *host, const char *port, unsigned wait_s);

/** Send one line; the newline is added. */
__attribute__((format(printf, 2, 3))) int line_send(struct line_conn *c, const char *fmt, ...);

/** Receive one line without its newline. @return 0, or -1 with the reason on stderr. */
int line_recv(struct line_conn *c, char line[static LINE_MAX_LEN]);

/** @return true when the other side has hung up or has something to say. */
bool line_pending(const struct line_conn *c);

void line_close(struct line_conn *c);

#endif
