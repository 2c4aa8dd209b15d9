/* SPDX-License-Identifier: BSD-3-Clause */
/* Users who take all that they get, in as many sessions as they get: one more user must still have
 * a session, and one of each kind of object in it. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attack.h"
#include "bits.h"
#include "raw_cm.h"

#define USER_SECOND   64003u
#define USER_NEWCOMER 64004u
#define SESSIONS      512u /* more than rocid serves */
#define GIGABYTE      (1ull << 30)
#define TERABYTE      (1ull << 40)

/* The objects that requests of a session name. */
struct parts {
	uint32_t pd, cq, ud; /* ud: a datagram QP in INIT */
	int fd;		     /* a memfd */
	uint64_t length;     /* of it */
	uint32_t cqes, wrs;  /* of a CQ, of a QP */
	struct raw_cm cm;
};

/* --- requests ------------------------------------------------------------------------- */

static int call(struct raw *s, uint32_t type, const void *body, size_t len, int fd, void *out,
	size_t out_len)
{
	uint8_t reply[ABI_MSG_MAX];
	int fds[2];
	int status = raw_call(s, type, body, len, fd, reply, sizeof(reply), fds, 2);

	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (!status && out_len)
		memcpy(out, reply, out_len);
	return status;
}

static int make_pd(struct raw *s, struct parts *p)
{
	uint32_t pd;

	return call(s, ABI_ALLOC_PD, NULL, 0, -1, &pd, sizeof(pd));
}

static int make_channel(struct raw *s, struct parts *p)
{
	return call(s, ABI_CREATE_CHANNEL, NULL, 0, -1, NULL, 0);
}

static int make_region(struct raw *s, struct parts *p)
{
	struct abi_reg_mr in = {.pd = p->pd, .access = 1, .length = p->length};

	return call(s, ABI_REG_MR, &in, sizeof(in), p->fd, NULL, 0);
}

static int make_window(struct raw *s, struct parts *p)
{
	struct abi_alloc_mw in = {.pd = p->pd, .type = 1};

	return call(s, ABI_ALLOC_MW, &in, sizeof(in), -1, NULL, 0);
}

static int make_srq(struct raw *s, struct parts *p)
{
	struct abi_create_srq in = {.pd = p->pd, .max_wr = 1, .max_sge = 1, .xrcd = ABI_NO_HANDLE};

	return call(s, ABI_CREATE_SRQ, &in, sizeof(in), -1, NULL, 0);
}

static int make_domain(struct raw *s, struct parts *p)
{
	struct abi_open_xrcd in = {.flags = ABI_XRCD_CREATE};

	return call(s, ABI_OPEN_XRCD, &in, sizeof(in), -1, NULL, 0);
}

static int make_cq(struct raw *s, struct parts *p)
{
	struct abi_create_cq in = {.depth = p->cqes, .channel = ABI_NO_HANDLE};

	return call(s, ABI_CREATE_CQ, &in, sizeof(in), -1, &p->cq, sizeof(p->cq));
}

static int make_qp_of(
	struct raw *s, const struct parts *p, uint32_t type, struct abi_create_qp_reply *out)
{
	struct abi_create_qp in = {.pd = p->pd,
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.srq = ABI_NO_HANDLE,
		.type = type,
		.max_send_wr = p->wrs,
		.max_send_sge = 1,
		.max_recv_sge = 1};

	return call(s, ABI_CREATE_QP, &in, sizeof(in), -1, out, sizeof(*out));
}

static int make_qp(struct raw *s, struct parts *p)
{
	struct abi_create_qp_reply r;

	return make_qp_of(s, p, ABI_QPT_RC, &r);
}

static int make_ah(struct raw *s, struct parts *p)
{
	struct abi_create_ah in = {.pd = p->pd, .attr = {.port = 1, .is_global = 1}};

	memcpy(in.attr.dgid, p->cm.gid, sizeof(in.attr.dgid));
	memset(in.attr.dmac, 0xFF, sizeof(in.attr.dmac));
	return call(s, ABI_CREATE_AH, &in, sizeof(in), -1, NULL, 0);
}

static int attach(struct raw *s, struct parts *p)
{
	static uint32_t attached; /* another group each time */
	struct abi_mcast in = {.qp = p->ud};
	uint32_t group = (uint32_t)getpid() << 14 | attached++;

	memcpy(in.mgid, (uint8_t[12]){[10] = 0xFF, [11] = 0xFF}, 12);
	memcpy(in.mgid + 12,
		(uint8_t[4]){230, (uint8_t)(group >> 16), (uint8_t)(group >> 8), (uint8_t)group},
		4);
	return call(s, ABI_ATTACH_MCAST, &in, sizeof(in), -1, NULL, 0);
}

static int open_cm(struct raw *s, struct parts *p)
{
	return call(s, ABI_CM_OPEN, NULL, 0, -1, NULL, 0);
}

static int make_cm_id(struct raw *s, struct parts *p)
{
	uint32_t id;

	return raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id);
}

static int bind_id(struct raw *s, struct parts *p)
{
	uint32_t id;
	int status = raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id);

	return status ? status : raw_cm_bind(&p->cm, id, 0);
}

static int listen_at(struct raw *s, struct parts *p)
{
	uint32_t id;
	int status = raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id);

	return status ? status : raw_cm_listen(&p->cm, id, 0);
}

static int connect_id(struct raw *s, struct parts *p)
{
	uint32_t id;
	int status = raw_cm_id(&p->cm, ABI_CM_PS_TCP, ABI_QPT_RC, &id);

	if (!status)
		status = raw_cm_resolve_own(&p->cm, id, 9);
	return status ? status : raw_cm_connect(&p->cm, id);
}

/* If you add a kind of object to the ABI, it needs a row here. */
static const struct {
	const char *name;
	int (*make)(struct raw *s, struct parts *p);
} kinds[] = {
	{"protection domain", make_pd},
	{"memory region", make_region},
	{"memory window", make_window},
	{"XRC domain", make_domain},
	{"SRQ", make_srq},
	{"CQ", make_cq},
	{"QP", make_qp},
	{"address handle", make_ah},
	{"multicast group", attach},
	{"completion channel", make_channel},
	{"CM channel", open_cm},
	{"CM id", make_cm_id},
	{"bound CM id", bind_id},
	{"CM listener", listen_at},
	{"connection", connect_id},
};

/* --- sessions ------------------------------------------------------------------------- */

/* The objects that the other requests name. @return 0 or the status of the refusal. */
static int prepare(struct raw *s, struct parts *p, const char **what)
{
	struct abi_create_qp_reply r = {0};
	struct abi_modify_qp m = {
		.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY,
		.attr = {.qp_state = ABI_QPS_INIT, .port = 1}};
	int status;

	p->pd = s->pd;
	p->cqes = p->wrs = 1;
	*what = "CQ";
	status = make_cq(s, p);
	if (status)
		return status;
	*what = "datagram QP";
	status = make_qp_of(s, p, ABI_QPT_UD, &r);
	m.handle = p->ud = r.handle;
	if (!status)
		status = call(s, ABI_MODIFY_QP, &m, sizeof(m), -1, NULL, 0);
	if (status)
		return status;
	*what = "CM channel";
	status = raw_cm_open(&p->cm, s, r.qpn);
	if (!status)
		close(p->cm.fd);
	return status;
}

/* As many sessions as there are. */
static unsigned open_all(
	const struct arena *a, struct raw *s, struct parts *p, int fd, uint64_t length)
{
	const char *what;
	unsigned n = 0;

	while (n < SESSIONS && raw_try_open(&s[n], a->socket)) {
		p[n] = (struct parts){.fd = fd, .length = length};
		if (prepare(&s[n], &p[n], &what))
			break;
		n++;
	}
	must(n, "the first user has no session");
	return n;
}

/* One kind in all sessions, each until it is refused. */
static unsigned take_all(
	struct raw *s, struct parts *p, unsigned n, int (*make)(struct raw *s, struct parts *p))
{
	unsigned got = 0, before;

	for (unsigned i = 0; i < n; i++) {
		before = got;
		while (!make(&s[i], &p[i]))
			got++;
		if (i && got == before) /* no session gets any */
			break;
	}
	return got;
}

/* --- users ---------------------------------------------------------------------------- */

typedef void (*hoard)(struct arena *a);

/* In another order each time: some kinds are made of others' scarce parts. */
static void hoard_objects(struct arena *a)
{
	static struct raw s[SESSIONS];
	static struct parts p[SESSIONS];
	unsigned n = open_all(a, s, p, raw_memfd(4096, F_SEAL_SHRINK), 4096);
	unsigned first = (unsigned)random_below(&a->random, ARRAY_SIZE(kinds));

	printf("    user %u: %u sessions", getuid(), n);
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		unsigned k = (first + i) % ARRAY_SIZE(kinds);

		printf(", %u %ss", take_all(s, p, n, kinds[k].make), kinds[k].name);
	}
	puts("");
}

/* Large ones first, then what fits between them. */
static unsigned take_pieces(struct raw *s, struct parts *p, unsigned n, int fd)
{
	unsigned got = 0;

	for (uint64_t length = GIGABYTE; length >= 4096; length /= 16) {
		for (unsigned i = 0; i < n; i++) {
			p[i].fd = fd;
			p[i].length = length;
		}
		got += take_all(s, p, n, make_region);
	}
	return got;
}

/* Address space, which sparse memfds take, and memory of queues. */
static void hoard_bytes(struct arena *a)
{
	static struct raw s[SESSIONS];
	static struct parts p[SESSIONS];
	unsigned n = open_all(a, s, p, raw_memfd(2 * TERABYTE, F_SEAL_SHRINK), 2 * TERABYTE);
	unsigned regions = take_all(s, p, n, make_region), cqs;

	regions += take_pieces(s, p, n, p[0].fd); /* of a file that is too long */
	regions += take_pieces(s, p, n, raw_memfd(GIGABYTE, F_SEAL_SHRINK));
	for (unsigned i = 0; i < n; i++) {
		p[i].cqes = 1 << 20;
		p[i].wrs = 16384;
	}
	cqs = take_all(s, p, n, make_cq);
	printf("    user %u: %u sessions, %u large regions, %u large CQs, %u large QPs\n", getuid(),
		n, regions, cqs, take_all(s, p, n, make_qp));
}

/* Runs @p take as @p uid; what it took is held until @p hold ends. */
static pid_t start_hoard(struct arena *a, uid_t uid, hoard take, const int hold[2])
{
	int ready[2];
	char byte;
	pid_t pid;

	must(!pipe2(ready, O_CLOEXEC), "pipe");
	fflush(stdout);
	pid = fork();
	must(pid >= 0, "no process");
	if (!pid) {
		close(hold[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raw_become(uid);
		take(a);
		fflush(stdout);
		must(write(ready[1], "x", 1) == 1, "pipe");
		_exit(read(hold[0], &byte, 1) != 0);
	}
	close(ready[1]);
	must(read(ready[0], &byte, 1) == 1, "who takes all has ended");
	close(ready[0]);
	return pid;
}

static void newcomer(const struct arena *a)
{
	struct parts p = {.fd = raw_memfd(4096, F_SEAL_SHRINK), .length = 4096};
	const char *what = "session";
	struct raw s;

	raw_become(USER_NEWCOMER);
	if (!raw_try_open(&s, a->socket))
		errx(1, "another user gets no session: %s", s.why);
	if (prepare(&s, &p, &what))
		errx(1, "another user gets no %s: %s", what, s.why);
	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++)
		if (kinds[k].make(&s, &p))
			errx(1, "another user gets no %s: %s", kinds[k].name, s.why);
	raw_close(&s);
}

static void must_succeed(pid_t pid, const char *what)
{
	int status;

	waitpid(pid, &status, 0);
	must(WIFEXITED(status) && !WEXITSTATUS(status), what);
}

static void others_get_some(struct arena *a, hoard take)
{
	static const uid_t users[] = {USER_ATTACKER, USER_SECOND};
	pid_t hoards[ARRAY_SIZE(users)], other;
	int hold[2];

	if (getuid())
		return; /* it takes several users */
	must(!pipe2(hold, O_CLOEXEC), "pipe");
	for (unsigned i = 0; i < ARRAY_SIZE(users); i++) {
		hoards[i] = start_hoard(a, users[i], take, hold);
		other = fork();
		must(other >= 0, "no process");
		if (!other) {
			newcomer(a);
			_exit(0);
		}
		must_succeed(other, "one user keeps another out");
	}
	close(hold[0]);
	close(hold[1]);
	for (unsigned i = 0; i < ARRAY_SIZE(users); i++)
		must_succeed(hoards[i], "who took all has failed");
}

static void objects(struct arena *a)
{
	others_get_some(a, hoard_objects);
}

static void bytes(struct arena *a)
{
	others_get_some(a, hoard_bytes);
}

const struct attack attacks_quota[] = {
	{"two users take all objects", objects},
	{"two users take all memory", bytes},
	{NULL, NULL},
};
