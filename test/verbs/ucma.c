/* SPDX-License-Identifier: BSD-3-Clause */
/* ucma SOCKET: the device rdma_cm, command by command, as librdmacm writes them and as it would
 * not: what the kernel answers, and which events count to whom. Both ends are ids of this program.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/sa.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fixture.h"
#include "ucma/ucma.h"

#define PORT	7471
#define MESSAGE 512
#define WRITERS 50

struct message {
	struct rdma_ucm_cmd_hdr h;
	uint8_t body[MESSAGE];
};

/* @return 0 or an errno value. */
static int command(int fd, uint32_t cmd, const void *body, size_t len, size_t out)
{
	struct message m = {.h = {.cmd = cmd, .in = (uint16_t)len, .out = (uint16_t)out}};
	ssize_t n;

	CHECK(len <= sizeof(m.body));
	memcpy(m.body, body, len);
	n = ucma_write(fd, &m, sizeof(m.h) + len);
	CHECK(n < 0 || (size_t)n == sizeof(m.h) + len);
	return n < 0 ? errno : 0;
}

#define RUN(fd, cmd, body, out) command(fd, RDMA_USER_CM_CMD_##cmd, body, sizeof(*(body)), out)

static int open_file(void)
{
	int fd = ucma_open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	CHECK(fd >= 0);
	return fd;
}

static uint32_t create(int fd, uint64_t uid, uint16_t ps)
{
	struct rdma_ucm_create_id_resp resp = {0};
	struct rdma_ucm_create_id c = {.uid = uid, .ps = ps, .response = (uintptr_t)&resp};

	CHECK(!RUN(fd, CREATE_ID, &c, sizeof(resp)));
	return resp.id;
}

/* @return the events that were reported. */
static uint32_t destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = {.events_reported = 99};
	struct rdma_ucm_destroy_id d = {.id = id, .response = (uintptr_t)&resp};

	CHECK(!RUN(fd, DESTROY_ID, &d, sizeof(resp)));
	return resp.events_reported;
}

static struct sockaddr_in six_bytes(const char *address, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	CHECK(inet_pton(AF_INET, address, &a.sin_addr) == 1);
	return a;
}

static int bind_to(int fd, uint32_t id, const char *address, uint16_t port)
{
	struct sockaddr_in a = six_bytes(address, port);
	struct rdma_ucm_bind b = {.id = id, .addr_size = sizeof(a)};

	memcpy(&b.addr, &a, sizeof(a));
	return RUN(fd, BIND, &b, 0);
}

static int get(int fd, struct rdma_ucm_event_resp *e)
{
	struct rdma_ucm_get_event g = {.response = (uintptr_t)e};

	return RUN(fd, GET_EVENT, &g, sizeof(*e));
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Waits for the next event, which must be this one. */
static struct rdma_ucm_event_resp expect(int fd, uint32_t event, uint64_t uid)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct rdma_ucm_event_resp e;
	int err;

	do {
		CHECK(poll(&p, 1, -1) == 1);
		err = get(fd, &e);
	} while (err == EAGAIN);
	CHECK(!err);
	if (e.event != event || e.uid != uid)
		fprintf(stderr, "event %u of %llu, status %d\n", e.event, (unsigned long long)e.uid,
			(int)e.status);
	CHECK(e.event == event && e.uid == uid);
	return e;
}

/* --- what is refused -------------------------------------------------------------------------- */

static void malformed(void)
{
	struct rdma_ucm_create_id_resp resp = {.id = 77};
	struct rdma_ucm_create_id c = {.uid = 1, .ps = RDMA_PS_TCP, .response = (uintptr_t)&resp};
	struct rdma_ucm_query q = {.option = 9};
	struct message m = {.h = {.cmd = RDMA_USER_CM_CMD_CREATE_ID, .in = sizeof(c)}};
	int fd = open_file();
	uint32_t id;

	CHECK(ucma_write(fd, &m, 7) < 0 && errno == EINVAL);
	CHECK(ucma_write(fd, &m, sizeof(m.h) + 8) < 0 && errno == EINVAL);
	CHECK(command(fd, RDMA_USER_CM_CMD_JOIN_MCAST + 1, "", 0, 0) == EINVAL);
	CHECK(command(fd, RDMA_USER_CM_CMD_GET_OPTION, "", 0, 0) == ENOSYS);
	for (uint32_t cmd = 0; cmd <= RDMA_USER_CM_CMD_JOIN_MCAST; cmd++)
		CHECK(cmd == RDMA_USER_CM_CMD_GET_OPTION ||
			command(fd, cmd, "", 0, MESSAGE) == EINVAL);
	CHECK(RUN(fd, CREATE_ID, &c, sizeof(resp) - 1) == ENOSPC && resp.id == 77);
	c.ps = 0x777;
	CHECK(RUN(fd, CREATE_ID, &c, sizeof(resp)) == EINVAL);
	id = create(fd, 1, RDMA_PS_TCP);
	q.id = id;
	CHECK(RUN(fd, QUERY, &q, MESSAGE) == ENOSYS);
	CHECK(destroy(fd, id) == 0);
	CHECK(!ucma_close(fd));
}

static void foreign_ids(void)
{
	struct rdma_ucm_listen l = {0};
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id m = {.response = (uintptr_t)&resp};
	struct rdma_ucm_destroy_id d = {.response = (uintptr_t)&resp};
	int a = open_file(), b = open_file();

	m.id = d.id = l.id = create(a, 1, RDMA_PS_TCP);
	CHECK(RUN(b, LISTEN, &l, 0) == EINVAL);
	CHECK(RUN(b, DESTROY_ID, &d, sizeof(resp)) == EINVAL);
	m.fd = (uint32_t)b;
	CHECK(RUN(b, MIGRATE_ID, &m, sizeof(resp)) == ENOENT);
	m.fd = (uint32_t)a;
	CHECK(!RUN(b, MIGRATE_ID, &m, sizeof(resp)) && resp.events_reported == 0);
	CHECK(RUN(a, LISTEN, &l, 0) == EINVAL);
	CHECK(!RUN(b, LISTEN, &l, 0));
	CHECK(destroy(b, l.id) == 0);
	CHECK(RUN(b, LISTEN, &l, 0) == ENOENT);
	CHECK(!ucma_close(a) && !ucma_close(b));
}

/* No RoCE port has addresses of AF_IB: refused by each command as Linux does. */
static void family_ib(int fd, uint32_t id)
{
	struct rdma_ucm_create_id_resp made;
	struct rdma_ucm_resolve_addr r = {
		.id = id, .dst_size = sizeof(struct ucma_address_ib), .dst_addr.ss_family = AF_IB};
	struct rdma_ucm_join_mcast j = {.id = id,
		.response = (uintptr_t)&made,
		.addr_size = sizeof(struct ucma_address_ib),
		.addr.ss_family = AF_IB};

	CHECK(RUN(fd, RESOLVE_ADDR, &r, 0) == ENODEV);
	CHECK(RUN(fd, JOIN_MCAST, &j, sizeof(made)) == ENODEV);
	r.dst_size--;
	CHECK(RUN(fd, RESOLVE_ADDR, &r, 0) == EINVAL);
}

static void resolve(int fd, uint32_t id)
{
	struct sockaddr_in a = six_bytes("192.0.2.2", PORT);
	struct rdma_ucm_resolve_ip r = {.id = id, .timeout_ms = 2000};

	memcpy(&r.dst_addr, &a, sizeof(a));
	CHECK(!RUN(fd, RESOLVE_IP, &r, 0));
}

/* A path of the program's, as of ibacm, is as good as RESOLVE_ROUTE. */
static void own_path(int fd)
{
	struct ibv_path_data path[2] = {{.flags = IB_PATH_GMP}};
	struct rdma_ucm_query_addr_resp gids;
	struct rdma_ucm_query q = {.option = RDMA_USER_CM_QUERY_GID, .response = (uintptr_t)&gids};
	struct rdma_ucm_set_option o = {.level = RDMA_OPTION_IB,
		.optname = RDMA_OPTION_IB_PATH,
		.optval = (uintptr_t)path,
		.optlen = sizeof(path)};
	struct rdma_ucm_query_path_resp *resp = calloc(1, sizeof(*resp) + sizeof(path));
	const struct ucma_address_ib *gid;

	CHECK(resp);
	o.id = q.id = create(fd, 8, RDMA_PS_TCP);
	path[1].flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	path[1].path.tclass = 0x48;
	CHECK(RUN(fd, SET_OPTION, &o, 0) == EINVAL); /* not resolved */
	resolve(fd, q.id);
	expect(fd, ABI_CM_ADDR_RESOLVED, 8);
	CHECK(!RUN(fd, QUERY, &q, sizeof(gids)));
	CHECK(RUN(fd, SET_OPTION, &o, 0) == EINVAL); /* to nowhere */
	gid = (const struct ucma_address_ib *)&gids.src_addr;
	memcpy(&path[1].path.sgid, gid->gid, 16);
	gid = (const struct ucma_address_ib *)&gids.dst_addr;
	memcpy(&path[1].path.dgid, gid->gid, 16);
	o.optlen--;
	CHECK(RUN(fd, SET_OPTION, &o, 0) == EINVAL);
	o.optlen = sizeof(*path); /* of one that is not for both directions */
	CHECK(RUN(fd, SET_OPTION, &o, 0) == EINVAL);
	o.optlen = sizeof(path);
	CHECK(!RUN(fd, SET_OPTION, &o, 0));
	expect(fd, ABI_CM_ROUTE_RESOLVED, 8);
	CHECK(RUN(fd, SET_OPTION, &o, 0) == EINVAL); /* it has one */
	q.option = RDMA_USER_CM_QUERY_PATH;
	q.response = (uintptr_t)resp;
	CHECK(!RUN(fd, QUERY, &q, sizeof(*resp) + sizeof(path)));
	memcpy(path, resp->path_data, sizeof(*path));
	CHECK(resp->num_paths == 1 && path[0].path.tclass == 0x48);
	CHECK(destroy(fd, q.id) == 2);
	free(resp);
}

static void addresses(void)
{
	struct rdma_ucm_bind ib = {
		.addr_size = sizeof(struct ucma_address_ib), .addr.ss_family = AF_IB};
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_query q = {.response = (uintptr_t)&resp};
	struct sockaddr_in a;
	int fd = open_file();

	ib.id = q.id = create(fd, 1, RDMA_PS_TCP);
	CHECK(RUN(fd, BIND, &ib, 0) == ENODEV);
	family_ib(fd, ib.id);
	ib.addr_size = sizeof(ib.addr) + 1;
	CHECK(RUN(fd, BIND, &ib, 0) == EINVAL);
	ib.addr_size = sizeof(ib.addr);
	CHECK(RUN(fd, BIND, &ib, 0) == EINVAL);
	ib.addr.ss_family = 77;
	CHECK(RUN(fd, BIND, &ib, 0) == EINVAL);
	CHECK(bind_to(fd, q.id, "192.0.2.77", PORT) == EADDRNOTAVAIL);
	CHECK(!bind_to(fd, q.id, "192.0.2.2", PORT));
	CHECK(RUN(fd, QUERY, &q, 16) == ENOSPC);
	CHECK(!RUN(fd, QUERY, &q, sizeof(resp)));
	memcpy(&a, &resp.src_addr, sizeof(a));
	CHECK(resp.src_size == sizeof(a) && a.sin_port == htons(PORT) && resp.port_num == 2);
	CHECK(a.sin_addr.s_addr == six_bytes("192.0.2.2", 0).sin_addr.s_addr && !resp.dst_size);
	CHECK(resp.node_guid && resp.pkey == 0xFFFF);
	destroy(fd, q.id);
	/* A loopback address is as good as any, and has no device: libfabric's way to a list of
	 * all. */
	q.id = create(fd, 2, RDMA_PS_TCP);
	CHECK(!bind_to(fd, q.id, "127.0.0.1", 0));
	CHECK(!RUN(fd, QUERY, &q, sizeof(resp)));
	memcpy(&a, &resp.src_addr, sizeof(a));
	CHECK(a.sin_addr.s_addr == htonl(INADDR_LOOPBACK) && a.sin_port);
	CHECK(!resp.node_guid && !resp.port_num);
	destroy(fd, q.id);
	own_path(fd);
	CHECK(!ucma_close(fd));
}

/* --- files ------------------------------------------------------------------------------------ */

static void *wait_for_resolution(void *arg)
{
	struct rdma_ucm_event_resp e;

	CHECK(!get(*(int *)arg, &e));
	CHECK(e.event == ABI_CM_ADDR_RESOLVED);
	return NULL;
}

static void files(void)
{
	struct rdma_ucm_event_resp e;
	int fd = open_file(), other = dup(fd);
	uint32_t id = create(other, 5, RDMA_PS_TCP);
	pthread_t thread;
	struct stat st;
	int status;
	pid_t child;

	CHECK(!ucma_fstat(fd, &st) && S_ISCHR(st.st_mode));
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(!readable(fd) && get(fd, &e) == EAGAIN);
	CHECK(!fcntl(fd, F_SETFL, 0)); /* a thread waits, and rocid does not */
	CHECK(!pthread_create(&thread, NULL, wait_for_resolution, &fd));
	resolve(fd, id);
	CHECK(!pthread_join(thread, NULL));
	child = fork();
	if (!child) { /* has channels of its own, and none of ours */
		int own = open_file();
		uint32_t mine = create(own, 6, RDMA_PS_UDP);
		struct rdma_ucm_listen l = {.id = id};

		CHECK(RUN(fd, LISTEN, &l, 0) == EBADF);
		CHECK(destroy(own, mine) == 0 && !ucma_close(own) && !ucma_close(fd));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(destroy(fd, id) == 1);
	CHECK(!ucma_close(fd) && !close(other));
	CHECK(ucma_close(fd) < 0 && errno == EBADF);
}

/* A thread that writes one command to a file that ends. */
struct writer {
	pthread_t thread;
	int fd, other;
	uint32_t cmd;
	_Atomic pid_t tid;  /* 0: not at its command yet */
	_Atomic int failed; /* errno; -1: none */
};

static void *write_command(void *arg)
{
	struct writer *w = arg;
	struct rdma_ucm_event_resp e;
	struct rdma_ucm_get_event g = {.response = (uintptr_t)&e};
	int err;

	w->tid = gettid();
	err = command(w->fd, w->cmd, &g, sizeof(g), sizeof(e));
	w->failed = err ? err : -1;
	return NULL;
}

/* @return the letter of the thread's state in /proc. */
static char state_of(pid_t tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
	fclose(f);
	return state;
}

/* The thread has begun its command when the file is closed, and its number is another file's. */
static void close_under(struct writer *w, uint32_t cmd, int flags)
{
	w->cmd = cmd;
	w->fd = open_file();
	CHECK(!fcntl(w->fd, F_SETFL, flags));
	ucma_lock(); /* as another thread's command does */
	CHECK(!pthread_create(&w->thread, NULL, write_command, w));
	while (!w->tid || state_of(w->tid) != 'S')
		sched_yield();
	ucma_unlock();
	CHECK(!ucma_close(w->fd));
	w->other = open_file(); /* has that number, unless the pipe of a waiting reader took it */
}

/* It waits forever, as the kernel's callers do, and its program ends without it (rping: "Bad file
 * descriptor" and status 255). */
static void closed_under_a_reader(void)
{
	static struct writer writers[WRITERS];

	for (struct writer *w = writers; w < writers + WRITERS; w++) {
		close_under(w, RDMA_USER_CM_CMD_GET_EVENT, 0);
		usleep(1000);
		CHECK(!w->failed);
		CHECK(!pthread_detach(w->thread));
		CHECK(!ucma_close(w->other));
	}
}

/* A command that does not wait for an event comes back: one thread of rsockets reads the events of
 * all sockets. */
static void closed_under_others(void)
{
	static const struct {
		uint32_t cmd;
		int flags, err; /* either the command was first, or the close */
		int first;
	} table[] = {{RDMA_USER_CM_CMD_GET_EVENT, O_NONBLOCK, EAGAIN, EAGAIN},
		{RDMA_USER_CM_CMD_CONNECT, 0, EBADF, EINVAL}};

	for (unsigned i = 0; i < WRITERS * 2; i++) {
		struct writer w = {0};

		close_under(&w, table[i % 2].cmd, table[i % 2].flags);
		CHECK(!pthread_join(w.thread, NULL));
		CHECK(w.failed == table[i % 2].err || w.failed == table[i % 2].first);
		CHECK(!ucma_close(w.other));
	}
}

/* --- signals ---------------------------------------------------------------------------------- */

#define SIGNALS 20

struct waiter {
	pthread_t thread;
	int fd;
	int err;
	atomic_int tid;
	atomic_bool done;
};

static atomic_int handled;

static void handle(int sig)
{
	(void)sig;
	atomic_fetch_add(&handled, 1);
}

static void *wait_interrupted(void *arg)
{
	struct rdma_ucm_event_resp e;
	struct waiter *w = arg;

	atomic_store(&w->tid, gettid());
	w->err = get(w->fd, &e);
	atomic_store(&w->done, true);
	return NULL;
}

/* Sends signals, at most @p most, to a thread that waits for an event, until it returns. */
static void interrupt(struct waiter *w, int flags, int most)
{
	const struct sigaction a = {.sa_handler = handle, .sa_flags = flags};

	CHECK(!sigaction(SIGUSR1, &a, NULL));
	atomic_store(&handled, 0);
	CHECK(!pthread_create(&w->thread, NULL, wait_interrupted, w));
	while (!atomic_load(&w->tid) || state_of(atomic_load(&w->tid)) != 'S')
		usleep(1000);
	for (int i = 1; i <= most && !atomic_load(&w->done); i++) {
		CHECK(!pthread_kill(w->thread, SIGUSR1));
		while (atomic_load(&handled) < i && !atomic_load(&w->done))
			usleep(1000);
		usleep(1000);
	}
}

/* As in the kernel, a wait continues after a signal whose handler has SA_RESTART. */
static void signals(void)
{
	struct waiter w = {.fd = open_file()};
	uint32_t id;

	CHECK(!fcntl(w.fd, F_SETFL, 0));
	interrupt(&w, 0, INT_MAX);
	CHECK(!pthread_join(w.thread, NULL));
	CHECK(w.err == EINTR);
	w = (struct waiter){.fd = w.fd};
	interrupt(&w, SA_RESTART, SIGNALS);
	CHECK(!atomic_load(&w.done) && atomic_load(&handled) == SIGNALS);
	id = create(w.fd, 1, RDMA_PS_TCP);
	resolve(w.fd, id);
	CHECK(!pthread_join(w.thread, NULL));
	CHECK(!w.err);
	CHECK(destroy(w.fd, id) == 1);
	CHECK(!ucma_close(w.fd));
}

/* --- events ----------------------------------------------------------------------------------- */

struct ends {
	int listening, connecting;
	uint32_t listener, client;
	struct end verbs;
};

#define UID_LISTENER 0x1000u
#define UID_CLIENT   0x2000u

static void set_up(struct ends *x)
{
	struct rdma_ucm_listen l = {.backlog = 8};
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	x->verbs.context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	CHECK(x->verbs.context);
	x->verbs.pd = ibv_alloc_pd(x->verbs.context);
	x->verbs.cq = ibv_create_cq(x->verbs.context, 4, NULL, NULL, 0);
	init.send_cq = init.recv_cq = x->verbs.cq;
	x->verbs.qp = ibv_create_qp(x->verbs.pd, &init);
	CHECK(x->verbs.qp);
	x->listening = open_file();
	x->connecting = open_file();
	l.id = x->listener = create(x->listening, UID_LISTENER, RDMA_PS_TCP);
	CHECK(!bind_to(x->listening, x->listener, "192.0.2.2", PORT));
	CHECK(!RUN(x->listening, LISTEN, &l, 0));
}

static void connect_to(struct ends *x)
{
	struct rdma_ucm_resolve_route r = {.timeout_ms = 2000};
	struct rdma_ucm_connect c = {0};

	r.id = c.id = x->client = create(x->connecting, UID_CLIENT, RDMA_PS_TCP);
	CHECK(RUN(x->connecting, RESOLVE_ROUTE, &r, 0) == EINVAL);
	resolve(x->connecting, x->client);
	expect(x->connecting, ABI_CM_ADDR_RESOLVED, UID_CLIENT);
	CHECK(!RUN(x->connecting, RESOLVE_ROUTE, &r, 0));
	expect(x->connecting, ABI_CM_ROUTE_RESOLVED, UID_CLIENT);
	CHECK(RUN(x->connecting, CONNECT, &c, 0) == EINVAL); /* not valid */
	c.conn_param.valid = 1;
	c.conn_param.private_data_len = 57;
	c.conn_param.qp_num = x->verbs.qp->qp_num;
	CHECK(RUN(x->connecting, CONNECT, &c, 0) == EINVAL);
	c.conn_param.private_data_len = 5;
	memcpy(c.conn_param.private_data, "hello", 5);
	/* without what was added for ECE, as an old librdmacm */
	CHECK(!command(x->connecting, RDMA_USER_CM_CMD_CONNECT, &c,
		offsetof(struct rdma_ucm_connect, ece), 0));
}

static void tear_down(struct ends *x)
{
	CHECK(!ucma_close(x->listening) && !ucma_close(x->connecting));
	CHECK(!ibv_destroy_qp(x->verbs.qp) && !ibv_destroy_cq(x->verbs.cq));
	CHECK(!ibv_dealloc_pd(x->verbs.pd) && !ibv_close_device(x->verbs.context));
}

/* A request counts to its listener, and is refused. */
static void counting(void)
{
	struct rdma_ucm_reject reject = {.private_data_len = 3, .private_data = "no"};
	struct rdma_ucm_event_resp e;
	struct ends x;

	set_up(&x);
	connect_to(&x);
	e = expect(x.listening, ABI_CM_CONNECT_REQUEST, UID_LISTENER);
	CHECK(e.param.conn.private_data_len == 56);
	CHECK(!memcmp(e.param.conn.private_data, "hello", 6));
	reject.id = e.id;
	reject.reason = 10; /* none of a program's */
	CHECK(RUN(x.listening, REJECT, &reject, 0) == EINVAL);
	reject.reason = 0;
	CHECK(!RUN(x.listening, REJECT, &reject, 0));
	CHECK(destroy(x.listening, e.id) == 0);
	e = expect(x.connecting, ABI_CM_REJECTED, UID_CLIENT);
	CHECK(e.status == 28 && !memcmp(e.param.conn.private_data, "no", 3));
	CHECK(destroy(x.connecting, x.client) == 3);
	CHECK(destroy(x.listening, x.listener) == 1);
	tear_down(&x);
}

/* A request that nobody has read goes with the listener to another file, and outlives the first. */
static void migration(void)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id m = {.response = (uintptr_t)&resp};
	struct rdma_ucm_event_resp e;
	struct pollfd p;
	struct ends x;
	int to;

	set_up(&x);
	connect_to(&x);
	p = (struct pollfd){.fd = x.listening, .events = POLLIN};
	CHECK(poll(&p, 1, -1) == 1);
	to = open_file();
	m.id = x.listener;
	m.fd = (uint32_t)x.listening;
	CHECK(!RUN(to, MIGRATE_ID, &m, sizeof(resp)) && resp.events_reported == 0);
	CHECK(!readable(x.listening) && readable(to));
	CHECK(!ucma_close(x.listening));
	x.listening = to;
	e = expect(to, ABI_CM_CONNECT_REQUEST, UID_LISTENER);
	CHECK(destroy(to, e.id) == 0);
	CHECK(destroy(to, x.listener) == 1);
	expect(x.connecting, ABI_CM_REJECTED, UID_CLIENT);
	tear_down(&x);
}

/* A program hears nothing of a request that ended before it was accepted. */
static void given_up(void)
{
	struct rdma_ucm_accept a = {.uid = 0x3000};
	struct rdma_ucm_event_resp e;
	struct ends x;

	set_up(&x);
	connect_to(&x);
	e = expect(x.listening, ABI_CM_CONNECT_REQUEST, UID_LISTENER);
	CHECK(destroy(x.connecting, x.client) == 2);
	a.id = e.id;
	a.conn_param.valid = 1;
	a.conn_param.qp_num = x.verbs.qp->qp_num;
	/* the peer's REJ may still be on its way */
	while (!readable(x.listening))
		;
	CHECK(get(x.listening, &e) == EAGAIN);
	CHECK(RUN(x.listening, ACCEPT, &a, 0) == EINVAL);
	CHECK(destroy(x.listening, a.id) == 0 && destroy(x.listening, x.listener) == 1);
	tear_down(&x);
}

/* Events of a membership count to it alone. */
static void groups(void)
{
	struct sockaddr_in group = six_bytes("239.1.2.3", 0);
	struct rdma_ucm_create_id_resp joined;
	struct rdma_ucm_join_ip_mcast j = {.uid = 0x77, .response = (uintptr_t)&joined};
	struct rdma_ucm_destroy_id_resp left;
	struct rdma_ucm_destroy_id leave = {.response = (uintptr_t)&left};
	struct rdma_ucm_event_resp e;
	int fd = open_file();

	j.id = create(fd, 0x66, RDMA_PS_UDP);
	memcpy(&j.addr, &group, sizeof(group));
	CHECK(RUN(fd, JOIN_IP_MCAST, &j, sizeof(joined)) == EINVAL); /* no device yet */
	CHECK(!bind_to(fd, j.id, "192.0.2.1", 0));
	CHECK(!RUN(fd, JOIN_IP_MCAST, &j, sizeof(joined)));
	leave.id = joined.id;
	e = expect(fd, ABI_CM_MULTICAST_JOIN, 0x77);
	CHECK(e.param.ud.qp_num == 0xFFFFFF && e.param.ud.ah_attr.grh.dgid[12] == 239);
	CHECK(!RUN(fd, JOIN_IP_MCAST, &j, sizeof(joined)));
	CHECK(joined.id != leave.id);
	CHECK(!RUN(fd, LEAVE_MCAST, &leave, sizeof(left)) && left.events_reported == 1);
	CHECK(RUN(fd, LEAVE_MCAST, &leave, sizeof(left)) == ENOENT);
	leave.id = joined.id; /* nobody has read its event, and nobody will */
	CHECK(!RUN(fd, LEAVE_MCAST, &leave, sizeof(left)) && left.events_reported == 0);
	CHECK(get(fd, &e) == EAGAIN);
	CHECK(destroy(fd, j.id) == 0);
	CHECK(!ucma_close(fd));
}

int main(int argc, char **argv)
{
	CHECK(argc == 2 && !setenv("ROCI_SOCKET", argv[1], 1));
	malformed();
	foreign_ids();
	addresses();
	files();
	closed_under_a_reader();
	closed_under_others();
	signals();
	counting();
	migration();
	given_up();
	groups();
	return 0;
}
