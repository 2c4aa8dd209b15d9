/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: what is no message, whose message it is not, and who never reads. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"

static struct abi_hello greeting(void)
{
	return (struct abi_hello){.magic = ABI_MAGIC, .version_min = 1, .version_max = ABI_VERSION};
}

/* Sends @p len bytes as one message and takes the answer.  @return its status. */
static int send_bytes(int sock, const void *bytes, size_t len)
{
	struct abi_msg msg;
	uint8_t body[ABI_MSG_MAX];

	if (raw_send(sock, bytes, len, NULL, 0) < 0)
		return RAW_GONE;
	if (!raw_receive(sock, &msg, body, sizeof(body), NULL, 0))
		return RAW_GONE;
	return msg.status;
}

/* Every length from nothing to far too much, every type, before and after hello. */
static void odd_messages(struct arena *a)
{
	static uint8_t bytes[150000];
	struct raw s;
	int sock;

	for (size_t len = 1; len < sizeof(struct abi_msg); len++) {
		sock = raw_connect(a->socket);
		must(send_bytes(sock, bytes, len) < 0, "half a header was taken");
		close(sock);
	}
	raw_open(&s, a->socket);
	for (size_t len = ABI_MSG_MAX + 1; len < sizeof(bytes); len *= 2)
		must(send_bytes(s.sock, bytes, len) < 0, "a message that is too long was taken");
	for (unsigned i = 0; i < 500 * a->effort; i++) {
		struct abi_msg *m = (struct abi_msg *)bytes;
		size_t len = sizeof(*m) + random_below(&a->random, ABI_MSG_MAX - sizeof(*m) + 1);

		random_fill(&a->random, bytes, len);
		m->type = i < 200 ? i / 2 : (uint32_t)random_next(&a->random);
		if (i & 1)
			len = sizeof(*m) + random_below(&a->random, 8);
		must(send_bytes(s.sock, bytes, len) != RAW_GONE, "a session ended over a message");
	}
	raw_close(&s);
	for (unsigned i = 0; i < 40; i++) { /* other things than hello first */
		struct abi_msg m = {.type = i == ABI_HELLO ? 0 : i};

		sock = raw_connect(a->socket);
		must(send_bytes(sock, &m, sizeof(m)) < 0, "a command before hello was taken");
		close(sock);
	}
}

static void versions(struct arena *a)
{
	static const struct {
		uint16_t min, max;
		bool good;
	} v[] = {{0, 0, false}, {2, 2, false}, {2, 65535, false}, {65535, 65535, false},
		{1, 0, false}, {2, 1, false}, {0, 65535, true}, {1, 1, true}, {0, 1, true}};
	uint32_t magics[] = {0, ~ABI_MAGIC, 0x52434F49};

	for (unsigned i = 0; i < ARRAY_SIZE(v) + ARRAY_SIZE(magics); i++) {
		struct {
			struct abi_msg msg;
			struct abi_hello hello;
		} m = {.msg.type = ABI_HELLO, .hello = greeting()};
		bool good = false;
		int sock = raw_connect(a->socket);
		int status;

		if (i < ARRAY_SIZE(v)) {
			m.hello.version_min = v[i].min;
			m.hello.version_max = v[i].max;
			good = v[i].good;
		} else {
			m.hello.magic = magics[i - ARRAY_SIZE(v)];
		}
		memset(m.hello.name, 0xFF, sizeof(m.hello.name)); /* no NUL */
		status = send_bytes(sock, &m, sizeof(m));
		if ((status == 0) != good)
			errx(1, "greeting %u: status %d", i, status);
		close(sock);
	}
}

/* Requests whose answers nobody reads: rocid must neither wait nor grow. */
static void unread_replies(struct arena *a)
{
	for (unsigned i = 0; i < 5 * a->effort; i++) {
		struct abi_msg m = {.type = ABI_QUERY_DEVICE};
		struct raw s;

		raw_open(&s, a->socket);
		for (unsigned k = 0; k < 20000; k++)
			if (raw_send(s.sock, &m, sizeof(m), NULL, 0) < 0)
				break; /* rocid ended the session, as it may */
		raw_close(&s);
	}
}

/* Replies with descriptors pile up in the socket: they are in flight, and rocid's to pay. */
static void unread_descriptors(struct arena *a)
{
	struct {
		struct abi_msg msg;
		struct abi_create_cq cq;
	} m = {.msg.type = ABI_CREATE_CQ, .cq = {.depth = 16, .channel = ABI_NO_HANDLE}};

	for (unsigned i = 0; i < 3 * a->effort; i++) {
		struct raw s;

		raw_open(&s, a->socket);
		for (unsigned k = 0; k < 2000; k++)
			if (raw_send(s.sock, &m, sizeof(m), NULL, 0) < 0)
				break;
		raw_close(&s);
	}
}

/* Connections that never say hello. */
static void silent_connections(struct arena *a)
{
	static int sock[700];

	for (unsigned n = 0; n < 2 * a->effort; n++) {
		for (unsigned i = 0; i < ARRAY_SIZE(sock); i++)
			sock[i] = raw_connect(a->socket);
		for (unsigned i = 0; i < ARRAY_SIZE(sock); i++)
			if (sock[i] >= 0)
				close(sock[i]);
	}
}

/* While others only connect, who says hello gets in. */
static void room_for_the_polite(struct arena *a)
{
	static int sock[600];
	struct raw s;
	bool in = false;

	for (unsigned i = 0; i < ARRAY_SIZE(sock); i++)
		sock[i] = raw_connect(a->socket);
	for (unsigned i = 0; i < 10 * RAW_PATIENCE_S && !in; i++) {
		in = raw_try_open(&s, a->socket);
		if (!in)
			usleep(100000);
	}
	must(in, "silent connections keep everybody else out");
	raw_close(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(sock); i++)
		close(sock[i]);
}

/* Many sessions that send commands as fast as they are taken. */
static void command_flood(struct arena *a)
{
	enum {
		SESSIONS = 200
	};
	static struct raw s[SESSIONS];
	struct abi_msg m = {.type = ABI_ALLOC_PD};
	struct abi_msg reply;
	uint8_t body[64];
	unsigned open = 0;

	while (open < SESSIONS && raw_try_open(&s[open], a->socket))
		open++;
	must(open > SESSIONS / 2, "too few sessions for a flood");
	for (unsigned n = 0; n < 40 * a->effort; n++) {
		for (unsigned i = 0; i < open; i++)
			for (unsigned k = 0; k < 8; k++) {
				m.type = k & 1 ? ABI_QUERY_DEVICE : ABI_ALLOC_PD;
				raw_send(s[i].sock, &m, sizeof(m), NULL, 0);
			}
		for (unsigned i = 0; i < open; i++)
			for (unsigned k = 0; k < 8; k++)
				raw_receive(s[i].sock, &reply, body, sizeof(body), NULL, 0);
	}
	for (unsigned i = 0; i < open; i++)
		raw_close(&s[i]);
}

/* Large queues are the dearest command; many sessions want them at once. */
static void dear_commands(struct arena *a)
{
	enum {
		SESSIONS = 40
	};
	static struct raw s[SESSIONS];
	static struct raw_cq cq[SESSIONS];
	uint8_t body[64];

	for (unsigned i = 0; i < SESSIONS; i++) {
		raw_open(&s[i], a->socket);
		raw_cq(&s[i], &cq[i], 64, ABI_NO_HANDLE);
	}
	for (unsigned n = 0; n < 4 * a->effort; n++) {
		for (unsigned i = 0; i < SESSIONS; i++) {
			struct {
				struct abi_msg msg;
				struct abi_create_qp qp;
			} m = {.msg.type = ABI_CREATE_QP,
				.qp = raw_qp_request(&s[i], &cq[i], 16384)};

			m.qp.max_send_sge = m.qp.max_recv_sge = 16;
			m.qp.max_inline = 512;
			raw_send(s[i].sock, &m, sizeof(m), NULL, 0);
		}
		for (unsigned i = 0; i < SESSIONS; i++) {
			struct abi_msg reply;
			int fd = -1;

			raw_receive(s[i].sock, &reply, body, sizeof(body), &fd, 1);
			if (fd >= 0)
				close(fd);
		}
	}
	for (unsigned i = 0; i < SESSIONS; i++)
		raw_close(&s[i]);
}

/* The end comes while requests, replies and descriptors are under way. */
static void early_end(struct arena *a)
{
	struct {
		struct abi_msg msg;
		uint8_t body[sizeof(struct abi_create_qp)];
	} m;

	for (unsigned i = 0; i < 300 * a->effort; i++) {
		struct abi_hello h = greeting();
		int sock = raw_connect(a->socket);
		unsigned n = (unsigned)random_below(&a->random, 20);

		m.msg = (struct abi_msg){.type = ABI_HELLO};
		memcpy(m.body, &h, sizeof(h));
		raw_send(sock, &m, sizeof(m), NULL, 0);
		for (unsigned k = 0; k < n; k++) {
			m.msg.type = 2 + (uint32_t)random_below(&a->random, ABI_MSG_TYPES);
			random_fill(&a->random, m.body, sizeof(m.body));
			for (unsigned b = 0; b < sizeof(m.body); b += 4) /* small numbers */
				if (random_next(&a->random) & 1)
					memset(m.body + b + 1, 0, 3);
			raw_send(sock, &m, sizeof(m), NULL, 0);
		}
		if (i & 1)
			shutdown(sock, i & 2 ? SHUT_WR : SHUT_RD);
		close(sock);
	}
}

const struct attack attacks_socket[] = {
	{"odd messages", odd_messages},
	{"versions old and new", versions},
	{"replies that nobody reads", unread_replies},
	{"descriptors that nobody takes", unread_descriptors},
	{"connections that say nothing", silent_connections},
	{"no room after silent connections", room_for_the_polite},
	{"a flood of commands", command_flood},
	{"dear commands of many", dear_commands},
	{"the end in mid-message", early_end},
	{NULL, NULL},
};
