/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file exchange.h
 * How two programs exchange their QPs' addresses before these can communicate: by TCP, in the
 * format of ibv_rc_pingpong.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <roci.h>

/** The data that one side sends to the other. */
struct address {
	unsigned lid; /* 0 on RoCE */
	unsigned qpn;
	unsigned psn; /* the first that it will send */
	union roci_gid gid;
};

/** Connects to @p host, or waits for a connection if that is NULL. Exits when it fails. */
int exchange_open(const char *host, const char *port);

/** Sends and receives an address; exits if the peer does not follow the protocol. */
void exchange_tell(int fd, const struct address *a);
void exchange_hear(int fd, struct address *a);

/** Ends the exchange: the client, whose QP is connected or about to be, tells the server, which
 *  waits for that. */
void exchange_end(int fd, int client);

void exchange_print(const char *whose, const struct address *a);

#endif
