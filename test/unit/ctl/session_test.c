/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "caller.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "daemon.h"
#include "mr.h"
#include "patience.h"
#include "qp_table.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/objects.h"

static unsigned published(const struct test_daemon *d)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < QP_MAX; i++)
		n += atomic_load(&d->dp->qps->slot[i]) != NULL;
	for (uint32_t i = 0; i < MR_MAX; i++)
		n += atomic_load(&d->dp->mrs->slot[i]) != NULL;
	return n;
}

/* Waits until the daemon has nothing published any more. */
static void wait_empty(const struct test_daemon *d)
{
	WAIT_UNTIL(!published(d));
	assert_int_equal(published(d), 0);
}

static void populate(struct client *c)
{
	struct abi_handle_reply ch;
	struct answer a;
	uint32_t pd = client_pd(c), cq;
	int fd = client_memfd(8192);

	assert_int_equal(client_call(c->sock, ABI_CREATE_CHANNEL, NULL, 0, -1, &a), 0);
	memcpy(&ch, a.body, sizeof(ch));
	answer_close(&a);
	cq = client_cq(c, ch.handle);
	for (int i = 0; i < 20; i++) {
		client_qp(c, pd, cq);
		client_mr(c, pd, fd, 8192);
	}
	close(fd);
}

static void session_greet__region(void **state)
{
	struct test_daemon *d = *state;
	struct abi_session *head;
	struct client c, other;

	client_open(d, &c);
	client_open(d, &other);
	assert_int_equal(c.hello.magic, ABI_MAGIC);
	assert_int_equal(c.hello.version, ABI_VERSION);
	assert_int_equal(c.hello.workers, TEST_WORKERS);
	assert_int_equal(c.hello.doorbell_stride, sizeof(struct abi_doorbell));
	assert_true(c.hello.doorbell_off + TEST_WORKERS * c.hello.doorbell_stride <=
		    c.hello.region_size);
	head = (struct abi_session *)c.region;
	assert_true(c.hello.epoch != 0);
	assert_true(atomic_load(&head->epoch) == c.hello.epoch);
	assert_true(other.hello.epoch == c.hello.epoch);
	assert_int_not_equal(other.hello.session, c.hello.session);
	client_close(&c);
	client_close(&other);
}

static void session_greet__versions(void **state)
{
	struct abi_hello h = {.magic = ABI_MAGIC, .version_min = 2, .version_max = 9};
	struct answer a;
	int sock = client_connect(*state);

	assert_int_equal(client_call(sock, ABI_HELLO, &h, sizeof(h), -1, &a), -EPROTONOSUPPORT);
	h.version_min = 0;
	h.version_max = 0;
	assert_int_equal(client_call(sock, ABI_HELLO, &h, sizeof(h), -1, &a), -EPROTONOSUPPORT);
	h.version_max = 7;
	h.magic++;
	assert_int_equal(client_call(sock, ABI_HELLO, &h, sizeof(h), -1, &a), -EPROTO);
	h.magic--;
	assert_int_equal(client_call(sock, ABI_HELLO, &h, sizeof(h), -1, &a), 0);
	answer_close(&a);
	assert_int_equal(client_call(sock, ABI_HELLO, &h, sizeof(h), -1, &a), -EPROTO);
	close(sock);
}

static void session_close__end_of_the_socket_frees_all(void **state)
{
	struct test_daemon *d = *state;
	struct client c, other;
	struct answer a;

	client_open(d, &c);
	client_open(d, &other);
	populate(&c);
	assert_int_equal(published(d), 40);
	client_close(&c);
	wait_empty(d);
	assert_int_equal(client_call(other.sock, ABI_QUERY_DEVICE, NULL, 0, -1, &a), 0);
	client_close(&other);
}

/* A session that keeps its own socket open, as the file of an XRC domain, would never end. */
static void session_close__own_socket_as_a_file(void **state)
{
	const struct test_daemon *d = *state;
	struct abi_open_xrcd in = {.flags = ABI_XRCD_CREATE};
	int fds[2], file = client_memfd(4096);
	struct answer a;
	struct client c;

	client_open(d, &c);
	populate(&c);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(client_call(c.sock, ABI_OPEN_XRCD, &in, sizeof(in), fds[0], &a), -EINVAL);
	assert_int_equal(client_call(c.sock, ABI_OPEN_XRCD, &in, sizeof(in), c.sock, &a), -EINVAL);
	assert_int_equal(client_call(c.sock, ABI_OPEN_XRCD, &in, sizeof(in), file, &a), 0);
	close(fds[0]);
	close(fds[1]);
	close(file);
	client_close(&c);
	wait_empty(d);
}

/* A message of no bytes looks like the end, but what came with it is closed. */
static void session_close__descriptor_with_nothing(void **state)
{
	struct pollfd p = {.events = POLLIN};
	struct client c;
	int ends[2];

	client_open(*state, &c);
	assert_int_equal(pipe(ends), 0);
	client_send(c.sock, "", 0, &ends[1], 1);
	close(ends[1]);
	p.fd = ends[0];
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_true(p.revents & POLLHUP);
	close(ends[0]);
	client_close(&c);
}

static struct test_program application;
static int populated[2]; /* a pipe */

static void populate_and_wait(const struct test_daemon *d)
{
	struct client c;

	client_open(d, &c);
	populate(&c);
	assert_int_equal(write(populated[1], "x", 1), 1);
	for (;;)
		pause();
}

static int setup_with_application(void **state)
{
	daemon_config(*state);
	assert_int_equal(pipe(populated), 0);
	program_fork(&application, *state, populate_and_wait);
	daemon_run(*state);
	return 0;
}

static void session_close__killed_application(void **state)
{
	struct test_daemon *d = *state;
	char byte;

	program_go(&application);
	assert_int_equal(read(populated[0], &byte, 1), 1);
	assert_int_equal(published(d), 40);
	kill(application.pid, SIGKILL);
	waitpid(application.pid, NULL, 0);
	wait_empty(d);
	close(populated[0]);
	close(populated[1]);
}

static void session_close__daemon_ends_first(void **state)
{
	struct test_daemon *d = *state;
	struct client c;
	struct answer a;
	char byte;

	client_open(d, &c);
	populate(&c);
	daemon_stop(d);
	assert_int_equal(published(d), 0);
	assert_true(atomic_load(&((struct abi_session *)c.region)->epoch) == 0);
	assert_false(client_receive(c.sock, &a));
	assert_int_equal(recv(c.async, &byte, 1, 0), 0); /* EOF: rocid is gone */
	client_close(&c);
	daemon_config(d);
	daemon_run(d);
}

static void *stop(void *arg)
{
	daemon_stop(arg);
	return NULL;
}

/* When a program sees the end of the socket, no completion comes any more. */
static void session_close__socket_ends_last(void **state)
{
	struct test_daemon *d = *state;
	struct notifier *n = &d->ctl->sessions->notifier;
	struct pollfd end = {.events = POLLIN};
	pthread_t thread;
	struct client c;
	int ended;

	client_open(d, &c);
	populate(&c);
	end.fd = c.sock;
	notifier_lock(n); /* the closing of the session gets stuck here */
	assert_int_equal(pthread_create(&thread, NULL, stop, d), 0);
	ended = poll(&end, 1, 300);
	notifier_unlock(n);
	pthread_join(thread, NULL);
	daemon_config(d);
	daemon_run(d);
	assert_int_equal(ended, 0);
	assert_int_equal(poll(&end, 1, 0), 1);
	assert_true(atomic_load(&((struct abi_session *)c.region)->epoch) == 0);
	client_close(&c);
}

/* A thousand QPs go in steps, between which others are served. */
static void session_end__in_steps(void **state)
{
	struct test_daemon *d = *state;
	unsigned before, steps = 0;
	struct client c;
	uint32_t pd, cq;
	bool more;

	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (int i = 0; i < 1000; i++)
		client_qp(&c, pd, cq);
	ctl_stop(d->ctl); /* this is the control thread now */
	pthread_join(d->thread, NULL);
	before = published(d);
	assert_int_equal(before, 1000);
	session_begin_close(d->ctl->sessions->session[0]);
	do {
		more = sessions_close_some(d->ctl);
		assert_true(before - published(d) <= 64);
		before = published(d);
		steps++;
	} while (more);
	assert_true(steps >= 2 * 1000 / 64); /* forgotten, then freed */
	assert_int_equal(before, 0);
	client_close(&c);
	ctl_destroy(d->ctl);
	rmdir(d->dir);
	daemon_config(d);
	daemon_run(d);
}

static uint32_t sessions(const struct test_daemon *d)
{
	return __atomic_load_n(&d->ctl->sessions->nsessions, __ATOMIC_RELAXED);
}

/* Connections that say nothing give way to those that do. */
static void session_open__silent_ones_give_way(void **state)
{
	struct test_daemon *d = *state;
	static int sock[SESSION_MAX];
	struct client c;

	for (unsigned i = 0; i < SESSION_MAX; i++)
		sock[i] = client_connect(d);
	WAIT_UNTIL(sessions(d) == SESSION_MAX);
	assert_int_equal(sessions(d), SESSION_MAX);
	usleep((HELLO_PATIENCE_MS + 100) * 1000);
	client_open(d, &c);
	client_close(&c);
	for (unsigned i = 0; i < SESSION_MAX; i++)
		close(sock[i]);
}

/* A connection of @p uid to a daemon that is paused.  @return as session_open(), its end in @p sock
 * when it was taken. */
static int connect_as(struct ctl *ctl, uid_t uid, int *sock)
{
	int pair[2], err;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	caller = uid;
	err = session_open(ctl, pair[0]);
	caller = 0;
	if (err)
		close(pair[1]);
	else
		*sock = pair[1];
	return err;
}

/* @return the sessions of @p uid, none of which says anything for a while. */
static unsigned silent(struct ctl *ctl, uid_t uid)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SESSION_MAX; i++) {
		struct session *s = ctl->sessions->session[i];

		if (!s || s->peer.uid != uid)
			continue;
		s->since_ms = 0;
		n++;
	}
	return n;
}

static void end_all(struct ctl *ctl, int sock[], unsigned n)
{
	for (unsigned i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			session_close(ctl->sessions->session[i]);
	while (n)
		close(sock[--n]);
}

/* Other users' silent connections stay where the caller's own limits keep it out, whichever. */
static void session_open__own_limits_cost_nobody_else(void **state)
{
	static int sock[16];
	struct test_daemon *d = *state;
	struct ctl_limits *limits;
	struct ctl *ctl = d->ctl;
	unsigned n = 0, own;

	daemon_pause(d);
	limits = &ctl->sessions->quota.limits;
	assert_int_equal(connect_as(ctl, 8, &sock[n++]), 0);
	assert_int_equal(silent(ctl, 8), 1);
	limits->user[CTL_DESCRIPTORS] = 4 * (2 + TEST_WORKERS);
	while (!connect_as(ctl, 7, &sock[n]))
		n++;
	own = silent(ctl, 7);
	assert_int_equal(own, 4);
	assert_int_equal(connect_as(ctl, 7, &sock[n++]), 0); /* in the place of one of its own */
	assert_int_equal(silent(ctl, 7), own);
	for (unsigned i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i] && ctl->sessions->session[i]->peer.uid == 7)
			ctl->sessions->session[i]->greeted = true; /* of no use: it speaks */
	assert_int_equal(connect_as(ctl, 7, &sock[n]), -EUSERS);
	assert_int_equal(silent(ctl, 8), 1);
	for (unsigned i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			ctl->sessions->session[i]->greeted = false;
	end_all(ctl, sock, n);
	daemon_resume(d);
}

/* Where all places are taken, they stay for one who has many, and go for one who has few. */
static void session_open__the_last_place(void **state)
{
	static int sock[SESSION_MAX + 2];
	struct test_daemon *d = *state;
	struct ctl *ctl = d->ctl;
	unsigned n = 0;

	daemon_pause(d);
	ctl->sessions->quota.limits.user[CTL_SESSIONS] = SESSION_MAX;
	ctl->sessions->quota.limits.user[CTL_DESCRIPTORS] = UINT32_MAX - 1;
	while (n < SESSION_MAX / 4 * 3) /* beyond which the reserve begins */
		assert_int_equal(connect_as(ctl, 7, &sock[n++]), 0);
	for (uid_t user = 100; n < SESSION_MAX; n++)
		assert_int_equal(connect_as(ctl, user + n / 8, &sock[n]), 0);
	for (unsigned i = 0; i < SESSION_MAX; i++)
		ctl->sessions->session[i]->greeted = ctl->sessions->session[i]->peer.uid == 7;
	assert_int_equal(silent(ctl, 100 + n / 8 - 1), 8);
	assert_int_equal(connect_as(ctl, 7, &sock[n]), -EUSERS);
	assert_int_equal(silent(ctl, 100 + n / 8 - 1), 8);
	assert_int_equal(connect_as(ctl, 9, &sock[n++]), 0);
	assert_int_equal(silent(ctl, 100 + (n - 1) / 8 - 1), 7);
	for (unsigned i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			ctl->sessions->session[i]->greeted = false;
	end_all(ctl, sock, n);
	daemon_resume(d);
}

/* A connection that is refused is charged to nobody, however often. */
static void session_open__refused_and_not_charged(void **state)
{
	struct test_daemon *d = *state;
	struct ctl *ctl = d->ctl;
	int sock, fd_max;

	daemon_pause(d);
	fd_max = ctl->sessions->fd_max;
	ctl->sessions->fd_max = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(connect_as(ctl, 7, &sock), -EMFILE);
	assert_int_equal(ctl->sessions->quota.used[CTL_SESSIONS], 0);
	assert_int_equal(ctl->sessions->quota.used[CTL_DESCRIPTORS], 0);
	ctl->sessions->fd_max = fd_max;
	daemon_resume(d);
}

/* A client that sends and never reads is disconnected, and nobody else notices. */
static void session_reply__unread_replies(void **state)
{
	struct abi_msg msg = {.type = ABI_QUERY_DEVICE};
	struct test_daemon *d = *state;
	struct client c, other;
	int i;

	client_open(d, &c);
	client_open(d, &other);
	for (i = 0; i < 100000; i++)
		if (send(c.sock, &msg, sizeof(msg), MSG_NOSIGNAL) < 0)
			break;
	assert_true(i < 100000);
	client_pd(&other);
	client_close(&c);
	client_close(&other);
}

/* Descriptors in replies that nobody reads count against rocid's limit of open files. */
static void session_reply__unread_descriptors(void **state)
{
	struct abi_msg msg = {.type = ABI_CREATE_CHANNEL};
	struct test_daemon *d = *state;
	unsigned replies = 0;
	struct client c;
	struct answer a;

	client_open(d, &c);
	for (unsigned i = 0; i < 1000; i++)
		if (send(c.sock, &msg, sizeof(msg), MSG_NOSIGNAL) < 0)
			break;
	while (client_receive(c.sock, &a)) {
		answer_close(&a);
		replies++;
	}
	assert_in_range(replies, 1, 100);
	client_close(&c);
}

static void objects_event_source__stale_session(void **state)
{
	struct test_daemon *d = *state;
	struct core_event ev = {.type = ABI_EVENT_QP_FATAL};
	struct abi_create_qp_reply qp;
	struct client c;
	uint32_t pd;

	client_open(d, &c);
	pd = client_pd(&c);
	qp = client_qp(&c, pd, client_cq(&c, ABI_NO_HANDLE));
	ev.session = c.hello.session;
	ev.handle = qp.handle;
	assert_non_null(objects_event_source(d->ctl, &ev));
	ev.session += SESSION_MAX; /* the same slot, a later session */
	assert_null(objects_event_source(d->ctl, &ev));
	ev.session = c.hello.session + 1;
	assert_null(objects_event_source(d->ctl, &ev));
	ev.session = c.hello.session;
	ev.handle = qp.handle + 0x10000;
	assert_null(objects_event_source(d->ctl, &ev));
	ev.handle = qp.handle;
	ev.type = ABI_EVENT_COMPLETION; /* not a CQ's handle, unless by number */
	ev.handle = qp.handle + 77;
	assert_null(objects_event_source(d->ctl, &ev));
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			session_greet__region, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_greet__versions, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_close__end_of_the_socket_frees_all, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_close__own_socket_as_a_file, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_close__descriptor_with_nothing, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_close__killed_application, setup_with_application, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_close__daemon_ends_first, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_close__socket_ends_last, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_end__in_steps, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_open__silent_ones_give_way, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_open__own_limits_cost_nobody_else, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_open__the_last_place, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_open__refused_and_not_charged, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_reply__unread_replies, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			session_reply__unread_descriptors, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			objects_event_source__stale_session, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"session", tests, daemon_group_setup, daemon_group_teardown);
}
