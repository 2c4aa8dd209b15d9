/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of an administrator. The input is what he sends, in pieces: a byte 0x01 ends one, a byte
 * 0x02 has the next come with a descriptor. Each line gets one line of JSON, whatever it was.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "config/ctl_parts.h"
#include "oracle.h"
#include "raw.h"
#include "session/sessions.h"
#include "station.h"
#include "target.h"

#define REPLIES_MAX (16u << 20)

static char *replies;

static void start(void)
{
	station_start();
	replies = malloc(REPLIES_MAX);
	MUST(replies);
}

/* --- an application, so that there is something to show ------------------------------------- */

static void ask(struct raw *s, uint32_t type, const void *body, size_t len, void *out, size_t size)
{
	uint8_t buf[sizeof(struct abi_msg) + ABI_MSG_MAX];
	struct abi_msg msg = {.type = type};

	memcpy(buf, &msg, sizeof(msg));
	if (len)
		memcpy(buf + sizeof(msg), body, len);
	raw_send(s->sock, buf, sizeof(msg) + len, NULL, 0);
	station_turn();
	MUST(raw_receive(s->sock, &msg, out, size, NULL, 0) && !msg.status);
}

static int open_witness(void)
{
	struct abi_hello hello = {.magic = ABI_MAGIC,
		.version_min = 1,
		.version_max = ABI_VERSION,
		.name = "witness"};
	struct abi_create_cq cq = {.depth = 8, .channel = ABI_NO_HANDLE};
	struct raw s = {.sock = raw_connect(station_path())};
	struct abi_create_qp_reply qp;
	struct abi_create_qp in;
	struct raw_cq made = {0};

	ask(&s, ABI_HELLO, &hello, sizeof(hello), &s.hello, sizeof(s.hello));
	ask(&s, ABI_ALLOC_PD, NULL, 0, &s.pd, sizeof(s.pd));
	ask(&s, ABI_CREATE_CQ, &cq, sizeof(cq), &made.r, sizeof(made.r));
	in = raw_qp_request(&s, &made, 8);
	ask(&s, ABI_CREATE_QP, &in, sizeof(in), &qp, sizeof(qp));
	return s.sock;
}

/* --- the administrator --------------------------------------------------------------------- */

static int connect_admin(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s%s", station_path(), ABI_ADMIN_SUFFIX);
	MUST(fd >= 0 && !connect(fd, (struct sockaddr *)&un, sizeof(un)));
	station_turn();
	return fd;
}

/* Takes what has come.  @return false at the end of the connection. */
static bool take(int fd, size_t *len)
{
	ssize_t n;

	do {
		station_turn();
		n = recv(fd, replies + *len, REPLIES_MAX - *len, 0);
		if (n > 0)
			*len += (size_t)n;
	} while (n > 0 && *len < REPLIES_MAX);
	return n != 0;
}

/* Whole lines are documents; a capture's answer is no more than that, for its frames go elsewhere.
 */
static void must_be_json(size_t len)
{
	char *at = replies, *end;

	while ((end = memchr(at, '\n', len - (size_t)(at - replies)))) {
		json_error_t why;
		json_t *doc = json_loadb(at, (size_t)(end - at), JSON_ALLOW_NUL, &why);

		if (!doc)
			fprintf(stderr, "%.*s: %s\n", (int)(end - at), at, why.text);
		MUST(doc);
		json_decref(doc);
		at = end + 1;
	}
}

static void play(int fd, const uint8_t *data, size_t size)
{
	size_t len = 0;
	bool with_fd = false;

	while (size) {
		size_t n = 0;
		int passed[2];

		while (n < size && data[n] > 2)
			n++;
		if (n && with_fd) {
			MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, passed));
			raw_send(fd, data, n, passed, 1);
			close(passed[0]);
			close(passed[1]);
		} else if (n) {
			raw_send(fd, data, n, NULL, 0);
		}
		if (!take(fd, &len))
			break;
		with_fd = n < size && data[n] == 2;
		n += n < size;
		data += n;
		size -= n;
	}
	shutdown(fd, SHUT_WR);
	take(fd, &len);
	must_be_json(len);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ctl_limits limits;
	struct ctl *ctl;
	uint32_t window;
	int witness;

	if (!replies)
		start();
	ctl = station_ctl();
	limits = ctl->sessions->quota.limits;
	window = ctl->window;
	witness = open_witness();
	play(connect_admin(), data, size);
	close(witness);
	station_turn();
	MUST(ctl->sessions->nsessions == 1); /* that of QP1 */
	ctl->sessions->quota.limits = limits;
	ctl->window = window;
	ctl->dp->idle = IDLE_POLL;
	return 0;
}
