/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "message.h"
#include "oob.h"

/* "rociperf", version 3 of the protocol. */
#define MAGIC	 0x726f6370u
#define VERSION	 3u
#define TEXT_MAX 256
#define WORDS	 512 /* sent at a time */

struct header {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint32_t count; /* of words; of bytes in MESSAGE_REFUSE */
};

static void send_header(int fd, enum message kind, uint32_t count)
{
	const struct header h = {
		htobe32(MAGIC), htobe16(VERSION), htobe16((uint16_t)kind), htobe32(count)};

	oob_send(fd, &h, sizeof(h));
}

static void check_header(const struct header *h)
{
	if (be32toh(h->magic) != MAGIC)
		errx(1, "the other end of the TCP connection is not rociperf");
	if (be16toh(h->version) != VERSION)
		errx(1,
			"the other rociperf has protocol version %u, this one %u: use the same on "
			"both ends",
			be16toh(h->version), VERSION);
}

void message_send(int fd, enum message kind, const uint64_t word[], uint32_t count)
{
	uint64_t big[WORDS];

	send_header(fd, kind, count);
	while (count) {
		uint32_t n = count < WORDS ? count : WORDS;

		for (uint32_t i = 0; i < n; i++)
			big[i] = htobe64(word[i]);
		oob_send(fd, big, n * sizeof(big[0]));
		word += n;
		count -= n;
	}
}

void message_refuse(int fd, const char *why)
{
	size_t length = strlen(why);

	if (length >= TEXT_MAX)
		length = TEXT_MAX - 1;
	send_header(fd, MESSAGE_REFUSE, (uint32_t)length);
	oob_send(fd, why, length);
}

static _Noreturn void refused(int fd, uint32_t length)
{
	char why[TEXT_MAX] = "";

	if (length < TEXT_MAX)
		oob_receive(fd, why, length);
	for (char *c = why; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = '?';
	errx(1, "the server refuses: %s", why);
}

void message_receive(int fd, enum message kind, uint64_t word[], uint32_t count)
{
	struct header h;

	oob_receive(fd, &h, sizeof(h));
	check_header(&h);
	if (be16toh(h.kind) == MESSAGE_REFUSE)
		refused(fd, be32toh(h.count));
	if (be16toh(h.kind) != kind || be32toh(h.count) != count)
		errx(1, "the other rociperf sent an unexpected message: use the same version on "
			"both ends");
	oob_receive(fd, word, count * sizeof(word[0]));
	for (uint32_t i = 0; i < count; i++)
		word[i] = be64toh(word[i]);
}

enum message message_next(int fd)
{
	struct header h;
	ssize_t n;

	do
		n = recv(fd, &h, sizeof(h), MSG_PEEK | MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(h))
		errx(1, "the peer has disconnected: see its own message for the reason");
	check_header(&h);
	return (enum message)be16toh(h.kind);
}

bool message_over(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}
