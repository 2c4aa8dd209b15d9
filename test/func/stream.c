/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream SOCKET_A PORT_A GID_A SOCKET_B PORT_B GID_B [PATH_MTU]: one connection between two
 * daemons, both ends in this program, and RDMA WRITEs in both directions for as long as it runs;
 * what arrives is compared. A test that needs traffic in the meantime talks to it by
 * lines:
 *
 *     more N          waits for N more WRITEs in each direction, prints "done"
 *     port A|B        prints "port A ACTIVE 1024", the state and the largest path MTU
 *     gid A|B TEXT    prints "gid A 3", the index of the address, or "gid A none"
 *     pause, resume   posts no more, until resumed; both print "done", pause once nothing is
 *                     under way
 *     quit
 *
 * and reads async events as they come: "event A 1 port is down", 1 being the port. A WRITE
 * that fails ends the program.
 *
 * The ACK timeout is far above any pause of the machine, and retries end long after the longest
 * time for which a test takes the link away. So that nobody waits for it whenever something was
 * lost, who asks for more has each direction post a WRITE beyond those that are under way, and
 * again while it stands still: the first that comes through brings a NAK, as with a program that
 * keeps posting.
 */
#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "pair.h"

#define SLOTS	8u
#define SLOT	4096u
#define MEMORY	(2 * SLOTS * SLOT) /* a part to write from, a part to write to, for either end */
#define TIMEOUT 21		   /* 8.6 s, and seven times again */
#define NUDGE_S 1.0		   /* from a WRITE beyond the others to the next; then twice that */

static const char name[2] = {'A', 'B'};
static struct end e[2];
static struct place at[2];
static unsigned posted[2], done[2], target[2];
static bool paused, asked;
static double moved[2];	       /* when something completed last */
static double nudge, interval; /* when directions that stand still post one more, and then again */
static double longest;	       /* time between two rounds */

static void must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* @return the time at which another round begins. */
static double begin_round(void)
{
	static double last;
	double t = now();

	if (last && t - last > longest)
		longest = t - last;
	return last = t;
}

/* WRITE number n of end i lies in the same place at both. */
static size_t offset_of(unsigned i, unsigned n)
{
	return ((size_t)i * SLOTS + n % SLOTS) * SLOT;
}

static void post(unsigned i)
{
	size_t off = offset_of(i, posted[i]);

	if (posted[i] == done[i])
		moved[i] = now();
	memset((uint8_t *)e[i].mr->addr + off, (int)(posted[i] * 7 + i), SLOT);
	pair_post(&e[i], &e[!i], ROCI_WR_RDMA_WRITE, off, SLOT);
	posted[i]++;
}

/* One more in each direction: what is under way may be lost. */
static void post_beyond(double t)
{
	if (!asked || t < nudge)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (posted[i] != done[i] && posted[i] - done[i] < SLOTS)
			post(i);
	nudge = t + interval;
	interval *= 2;
}

static void ask(void)
{
	asked = true;
	nudge = now();
	interval = NUDGE_S;
}

/* --- orders and answers ------------------------------------------------------------------- */

/* One, if there is any. */
static bool tell_event(unsigned i, FILE *to)
{
	struct pollfd p = {.fd = e[i].ctx->async_fd, .events = POLLIN};
	struct roci_async_event ev = {.size = sizeof(ev)};
	uint32_t port = 0;

	if (poll(&p, 1, 0) != 1)
		return false;
	must(!roci_get_async_event(e[i].ctx, &ev), "event");
	if (ev.event_type >= ROCI_EVENT_PORT_ACTIVE)
		port = ev.element.port_num;
	fprintf(to, "event %c %u %s\n", name[i], port, roci_event_type_str(ev.event_type));
	roci_ack_async_event(&ev);
	return true;
}

/* Why it may have come to that: the events that nobody has read yet, and how long nobody ran. */
static void give_up(unsigned i, enum roci_wc_status status)
{
	for (unsigned k = 0; k < 2; k++)
		while (tell_event(k, stderr))
			;
	fprintf(stderr, "no completion for %.1f s; at most %.1f s from one round to the next\n",
		now() - moved[i], longest);
	errx(1, "WRITE %u of %c failed: %s", done[i], name[i], roci_wc_status_str(status));
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
		give_up(i, wc.status);
	if (memcmp((uint8_t *)e[i].mr->addr + off, (uint8_t *)e[!i].mr->addr + off, SLOT))
		errx(1, "WRITE %u of %c arrived wrong", done[i], name[i]);
	done[i]++;
	moved[i] = now();
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
		ask();
	} else if (!strcmp(line, "pause")) {
		paused = true;
		ask();
	} else if (!strncmp(line, "port ", 5)) {
		tell_port(end);
	} else if (sscanf(line, "gid %*c %63s", text) == 1) {
		tell_gid(end, text);
	} else if (!strcmp(line, "resume")) {
		paused = false;
		printf("done\n");
	} else if (!strcmp(line, "quit")) {
		exit(0);
	} else {
		errx(2, "'%s' is no command", line);
	}
}

/* The requested event has happened. */
static bool answers(void)
{
	if (paused)
		return posted[0] == done[0] && posted[1] == done[1];
	return done[0] >= target[0] && done[1] >= target[1];
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
		post_beyond(begin_round());
		for (unsigned i = 0; i < 2; i++) {
			while (!paused && posted[i] - done[i] < SLOTS / 2)
				post(i);
			take(i);
			if (round % 64 == 0)
				tell_event(i, stdout);
		}
		if (round % 64 == 0)
			read_command();
		if (asked && answers()) {
			asked = false;
			printf("done\n");
		}
		sched_yield();
	}
}
