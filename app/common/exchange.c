/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "exchange.h"
#include "oob.h"

/* An address travels as text of this form, its NUL included. */
#define FORMAT "%04x:%06x:%06x:%08x%08x%08x%08x"
#define LENGTH sizeof("0000:000000:000000:00000000000000000000000000000000")

int exchange_open(const char *host, const char *port)
{
	return host ? oob_connect(host, port, 0) : oob_accept(oob_listen(port));
}

void exchange_tell(int fd, const struct address *a)
{
	char text[LENGTH];
	uint32_t g[4];

	memcpy(g, a->gid.raw, sizeof(g));
	snprintf(text, sizeof(text), FORMAT, a->lid & 0xffff, a->qpn & 0xffffff, a->psn & 0xffffff,
		ntohl(g[0]), ntohl(g[1]), ntohl(g[2]), ntohl(g[3]));
	oob_send(fd, text, sizeof(text));
}

void exchange_hear(int fd, struct address *a)
{
	char text[LENGTH + 1] = "";
	uint32_t g[4];

	oob_receive(fd, text, LENGTH);
	if (sscanf(text, "%x:%x:%x:%8x%8x%8x%8x", &a->lid, &a->qpn, &a->psn, &g[0], &g[1], &g[2],
		    &g[3]) != 7)
		errx(1, "the peer sent no address");
	for (int i = 0; i < 4; i++)
		g[i] = htonl(g[i]);
	memcpy(a->gid.raw, g, sizeof(g));
}

void exchange_end(int fd, int client)
{
	char word[LENGTH] = "done";

	if (client ? write(fd, word, sizeof("done")) <= 0 : read(fd, word, sizeof(word)) <= 0)
		errx(1, "the peer has disconnected");
	close(fd);
}

void exchange_print(const char *whose, const struct address *a)
{
	char gid[INET6_ADDRSTRLEN];

	printf("  %s address: LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", whose, a->lid, a->qpn,
		a->psn, inet_ntop(AF_INET6, a->gid.raw, gid, sizeof(gid)));
	fflush(stdout);
}
