/* SPDX-License-Identifier: BSD-3-Clause */
/* Several programs of one user take of RDMA CM all that they get, end, and begin again: the
 * programs of another user must still connect. */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"
#include "raw_cm.h"

#define USER_OTHER 64005u
#define PROGRAMS   4u
#define PORT	   7500u
#define NOBODYS	   7499u
#define HONEST	   20u /* connections of the other user, times the effort */

/* A program that can connect. */
struct party {
	struct raw s;
	struct raw_cq cq;
	struct raw_qp qp[2]; /* active and passive: a QP is not connected with itself */
	struct raw_cm cm;
	bool listens;
};

static void come(struct party *p, const struct arena *a)
{
	struct abi_create_qp in;

	p->listens = false;
	raw_open(&p->s, a->socket);
	raw_cq(&p->s, &p->cq, 16, ABI_NO_HANDLE);
	in = raw_qp_request(&p->s, &p->cq, 16);
	for (unsigned i = 0; i < ARRAY_SIZE(p->qp); i++)
		raw_qp(&p->s, &p->qp[i], &p->cq, &in);
	if (raw_cm_open(&p->cm, &p->s, p->qp[0].r.qpn))
		errx(1, "no CM channel: %s", p->s.why);
	p->cm.passive_qpn = p->qp[1].r.qpn;
}

/* All that it has ends with its session. */
static void go(struct party *p)
{
	for (unsigned i = 0; i < ARRAY_SIZE(p->qp); i++)
		raw_qp_unmap(&p->qp[i]);
	raw_cq_unmap(&p->cq);
	close(p->cm.fd);
	raw_close(&p->s);
}

/* --- the honest user -------------------------------------------------------------------------- */

static void must_be(struct party *p, int status, const char *what)
{
	if (status)
		errx(1, "another user's %s: %d %s", what, status, p->s.why);
}

static void expect(struct party *p, const char *what, uint32_t type, uint32_t *id)
{
	struct abi_cm_event e = raw_cm_wait(&p->cm);

	if (e.event != type)
		errx(1, "another user's %s: event %u, %d %s", what, e.event, e.status, e.why);
	if (id)
		*id = e.id;
}

/* To itself, from the first message to the last. */
static void connect_once(struct party *p)
{
	uint32_t id, accepted;

	must_be(p, raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id), "id");
	must_be(p, raw_cm_resolve_own(&p->cm, id, PORT), "address");
	expect(p, "address", ABI_CM_ADDR_RESOLVED, NULL);
	expect(p, "route", ABI_CM_ROUTE_RESOLVED, NULL);
	must_be(p, raw_cm_connect(&p->cm, id), "connection");
	expect(p, "request", ABI_CM_CONNECT_REQUEST, &accepted);
	must_be(p, raw_cm_accept(&p->cm, accepted), "answer");
	expect(p, "response", ABI_CM_CONNECT_RESPONSE, NULL);
	must_be(p, raw_cm_accept(&p->cm, id), "confirmation");
	expect(p, "connection", ABI_CM_ESTABLISHED, NULL);
	must_be(p, raw_cm_simple(&p->cm, ABI_CM_DISCONNECT, id), "end");
	expect(p, "end", ABI_CM_DISCONNECTED, NULL);
	must_be(p, raw_cm_simple(&p->cm, ABI_CM_DESTROY_ID, accepted), "end");
	must_be(p, raw_cm_simple(&p->cm, ABI_CM_DESTROY_ID, id), "end");
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void honest(const struct arena *a)
{
	double longest = 0;
	struct party p;
	uint32_t id;

	raw_become(USER_OTHER);
	come(&p, a);
	must_be(&p, raw_cm_id(&p.cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id), "id");
	must_be(&p, raw_cm_listen(&p.cm, id, PORT), "listener");
	for (unsigned i = 0; i < HONEST * a->effort; i++) {
		double since = now_ms();

		connect_once(&p);
		longest = now_ms() - since > longest ? now_ms() - since : longest;
	}
	printf("    connections of another user: longest %.1f ms\n", longest);
	fflush(stdout);
	go(&p);
}

/* --- the greedy user -------------------------------------------------------------------------- */

/* @return whether it got something. */
typedef bool (*take)(struct party *p);

static bool ids(struct party *p)
{
	uint32_t id;

	return !raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id);
}

static bool ports(struct party *p)
{
	uint32_t id;

	return !raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id) && !raw_cm_bind(&p->cm, id, 0);
}

static bool listeners(struct party *p)
{
	uint32_t id;

	return !raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id) && !raw_cm_listen(&p->cm, id, 0);
}

/* Unread joins, and answers for a host that does not exist, of the same id. */
static bool events(struct party *p)
{
	uint32_t group, host; /* ids */
	bool more = false;

	if (!raw_cm_id(&p->cm, ABI_CM_PS_UDP, ABI_QPT_UD, &group) &&
		!raw_cm_resolve_own(&p->cm, group, NOBODYS))
		while (!raw_cm_join(&p->cm, group))
			more = true;
	if (!raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &host))
		while (!raw_cm_resolve(&p->cm, host, 77, NOBODYS))
			more = true;
	return more;
}

/* Requests that nobody answers, to a listener of the same program: of datagrams, which any number
 * of connections of one QP may send. */
static bool connections(struct party *p)
{
	const uint16_t port = (uint16_t)(20000 + getpid() % 10000);
	uint32_t id;

	if (!p->listens) {
		p->listens = true;
		if (raw_cm_id(&p->cm, ABI_CM_PS_UDP, ABI_QPT_UD, &id) ||
			raw_cm_listen(&p->cm, id, port))
			return false;
	}
	return !raw_cm_id(&p->cm, ABI_CM_PS_UDP, ABI_QPT_UD, &id) &&
	       !raw_cm_resolve_own(&p->cm, id, port) && !raw_cm_connect(&p->cm, id);
}

static bool told_to_end(int hold)
{
	struct pollfd p = {.fd = hold, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

/* Takes until it is refused, says so by @p full, asks a thousand times more, and ends. */
static unsigned take_all(struct party *p, take some, int hold, int full)
{
	unsigned n = 0;

	while (!told_to_end(hold) && some(p))
		n++;
	(void)!write(full, "x", 1); /* nobody reads all of them */
	for (unsigned i = 0; !told_to_end(hold) && i < 1000; i++)
		n += some(p);
	return n;
}

static void greedy(const struct arena *a, take some, int hold, int full)
{
	unsigned most = 0;

	raw_become(USER_ATTACKER);
	while (!told_to_end(hold)) {
		struct party p;
		unsigned n;

		come(&p, a);
		n = take_all(&p, some, hold, full);
		most = n > most ? n : most;
		go(&p);
	}
	printf("    a greedy program: %u at most\n", most);
	fflush(stdout);
}

static pid_t start(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	must(pid >= 0, "no process");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void must_succeed(pid_t pid, const char *what)
{
	int status;

	waitpid(pid, &status, 0);
	must(WIFEXITED(status) && !WEXITSTATUS(status), what);
}

/* Closed at all its ends but the parent's writing one, @p hold tells them to end. */
static void storm(const struct arena *a, unsigned n, take some)
{
	pid_t pids[PROGRAMS], other;
	int hold[2], full[2];
	char byte;

	if (getuid())
		return; /* it takes several users */
	must(!pipe(hold) && !pipe2(full, O_NONBLOCK), "pipe");
	for (unsigned i = 0; i < n; i++) {
		pids[i] = start();
		if (pids[i])
			continue;
		close(hold[1]);
		greedy(a, some, hold[0], full[1]);
		_exit(0);
	}
	for (unsigned i = 0; i < n; i++)
		must(poll(&(struct pollfd){.fd = full[0], .events = POLLIN}, 1,
			     1000 * RAW_PATIENCE_S) == 1 &&
				read(full[0], &byte, 1) == 1,
			"a greedy program is not refused");
	other = start();
	if (!other) {
		close(hold[1]);
		honest(a);
		_exit(0);
	}
	must_succeed(other, "one user keeps another from connecting");
	close(hold[1]);
	for (unsigned i = 0; i < n; i++)
		must_succeed(pids[i], "a greedy program has failed");
	close(hold[0]);
	close(full[0]);
	close(full[1]);
}

static void storm_ids(struct arena *a)
{
	storm(a, PROGRAMS, ids);
}

static void storm_ports(struct arena *a)
{
	storm(a, PROGRAMS, ports);
}

static void storm_listeners(struct arena *a)
{
	storm(a, PROGRAMS, listeners);
}

static void storm_events(struct arena *a)
{
	storm(a, PROGRAMS, events);
}

static void storm_connections(struct arena *a)
{
	storm(a, PROGRAMS, connections);
}

/* Its end is the longest. */
static void storm_alone(struct arena *a)
{
	storm(a, 1, connections);
}

const struct attack attacks_cm[] = {
	{"CM ids of one user's programs", storm_ids},
	{"CM ports of one user's programs", storm_ports},
	{"CM listeners of one user's programs", storm_listeners},
	{"CM events that one user's programs do not read", storm_events},
	{"CM requests that one user's programs do not answer", storm_connections},
	{"CM requests that one program does not answer", storm_alone},
	{NULL, NULL},
};
