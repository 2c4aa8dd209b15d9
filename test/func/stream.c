/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream SOCKET_A PORT_A GID_A SOCKET_B PORT_B GID_B [PATH_MTU]: one connection between two
 * daemons, both ends in this program, and RDMA WRITEs in both directions for as long as it runs;
 * what arrives is compared. Whoever tests what happens to traffic in the meantime talks to it by
 * lines:
 *
 *     more N          waits for N more WRITEs in each direction, prints "done"
 *     port A|B        prints "port A ACTIVE 1024", the state and the largest path MTU
 *     gid A|B TEXT    prints "gid A 3", the index of the address, or "gid A none"
 *     pause, resume   posts no more, until resumed; both print "done"
 *     quit
 *
 * and is told of async events as they come: "event A 1 port is down", 1 being the port. A WRITE
 * that fails ends the program.
 */
#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pair.h"

#define SLOTS	8u
#define SLOT	4096u
#define MEMORY	(2 * SLOTS * SLOT) /* a part to write from, a part to write to, for either end */
#define TIMEOUT 19		   /* 2.1 s, seven times */

static const char name[2] = {'A', 'B'};
static struct end e[2];
static struct place at[2];
static unsigned posted[2], done[2], target[2];
static bool paused, asked;

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

/* WRITE number n of end i lies in the same place at both. */
static size_t offset_of(unsigned i, unsigned n)
{
	return ((size_t)i * SLOTS + n % SLOTS) * SLOT;
}

static void post(unsigned i)
{
	size_t off = offset_of(i, posted[i]);

	memset((uint8_t *)e[i].mr->addr + off, (int)(posted[i] * 7 + i), SLOT);
	pair_post(&e[i], &e[!i], ROCI_WR_RDMA_WRITE, off, SLOT);
	posted[i]++;
}

static void take(unsigned i)
{
	size_t off = offset_of(i, done[i]);
	struct roci_wc wc;
	int n = roci_poll_cq(e[i].cq, 1, &wc);

	must(n >= 0, "poll");
	if (!n)
		return;
	if (wc.status != ROCI_WC_SUCCESS)
		errx(1, "WRITE %u of %c failed: %s", done[i], name[i],
			roci_wc_status_str(wc.status));
	if (memcmp((uint8_t *)e[i].mr->addr + off, (uint8_t *)e[!i].mr->addr + off, SLOT))
		errx(1, "WRITE %u of %c arrived wrong", done[i], name[i]);
	done[i]++;
}

/* --- what is told and asked --------------------------------------------------------------- */

static void tell_events(unsigned i)
{
	struct pollfd p = {.fd = e[i].ctx->async_fd, .events = POLLIN};
	struct roci_async_event ev = {.size = sizeof(ev)};
	uint32_t port = 0;

	if (poll(&p, 1, 0) != 1)
		return;
	must(!roci_get_async_event(e[i].ctx, &ev), "event");
	if (ev.event_type >= ROCI_EVENT_PORT_ACTIVE)
		port = ev.element.port_num;
	printf("event %c %u %s\n", name[i], port, roci_event_type_str(ev.event_type));
	roci_ack_async_event(&ev);
}

static void tell_port(unsigned i)
{
	struct roci_port_attr attr = {.size = sizeof(attr)};

	must(!roci_query_port(e[i].ctx, at[i].port, &attr), "port");
	printf("port %c %s %u\n", name[i], roci_port_state_str(attr.state),
		roci_mtu_bytes(attr.active_mtu));
}

static void tell_gid(unsigned i, const char *text)
{
	uint8_t gid[16] = {[10] = 0xFF, [11] = 0xFF};
	struct roci_gid_entry entry = {.size = sizeof(entry)};
	struct roci_port_attr attr = {.size = sizeof(attr)};

	if (inet_pton(AF_INET, text, gid + 12) != 1 && inet_pton(AF_INET6, text, gid) != 1)
		errx(2, "%s is no address", text);
	must(!roci_query_port(e[i].ctx, at[i].port, &attr), "port");
	for (uint32_t k = 0; k < (uint32_t)attr.gid_tbl_len; k++) {
		if (roci_query_gid(e[i].ctx, at[i].port, k, &entry) ||
			memcmp(entry.gid.raw, gid, 16))
			continue;
		printf("gid %c %u\n", name[i], k);
		return;
	}
	printf("gid %c none\n", name[i]);
}

static void obey(const char *line)
{
	unsigned end = line[strcspn(line, " ")] && line[strcspn(line, " ") + 1] == 'B';
	char text[64];
	unsigned n;

	if (sscanf(line, "more %u", &n) == 1) {
		target[0] = done[0] + n;
		target[1] = done[1] + n;
		asked = true;
	} else if (!strncmp(line, "port ", 5)) {
		tell_port(end);
	} else if (sscanf(line, "gid %*c %63s", text) == 1) {
		tell_gid(end, text);
	} else if (!strcmp(line, "pause") || !strcmp(line, "resume")) {
		paused = *line == 'p';
		printf("done\n");
	} else if (!strcmp(line, "quit")) {
		exit(0);
	} else {
		errx(2, "'%s' is no command", line);
	}
}

/* Commands come one at a time: who asks waits for the answer. */
static void read_command(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[128];
	ssize_t n;

	if (poll(&p, 1, 0) != 1)
		return;
	n = read(STDIN_FILENO, line, sizeof(line) - 1);
	if (n <= 0)
		exit(0);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	obey(line);
}

static struct place place_of(char **argv)
{
	return (struct place){argv[0], (uint8_t)atoi(argv[1]), (uint32_t)atoi(argv[2])};
}

int main(int argc, char **argv)
{
	if (argc != 7 && argc != 8)
		errx(2, "use: stream SOCKET_A PORT_A GID_A SOCKET_B PORT_B GID_B [PATH_MTU]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	at[0] = place_of(argv + 1);
	at[1] = place_of(argv + 4);
	pair_open_at(e, at, MEMORY,
		(enum roci_mtu)roci_mtu_of_bytes(argc == 8 ? (unsigned)atoi(argv[7]) : 1024),
		TIMEOUT);
	printf("ready\n");
	for (unsigned round = 0;; round++) {
		for (unsigned i = 0; i < 2; i++) {
			while (!paused && posted[i] - done[i] < SLOTS / 2)
				post(i);
			take(i);
			if (round % 64 == 0)
				tell_events(i);
		}
		if (round % 64 == 0)
			read_command();
		if (asked && done[0] >= target[0] && done[1] >= target[1]) {
			asked = false;
			printf("done\n");
		}
		sched_yield();
	}
}
