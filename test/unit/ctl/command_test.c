/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "abi_fault.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "daemon.h"
#include "lingering.h"
#include "patience.h"
#include "random.h"
#include "session/notifier.h"
#include "session/sessions.h"
#include "verbs/command.h"

#define FEW 256 /* descriptors */

/* A file system of the application's own can hold up a close() for ever: the closers' do, while
 * this is set. */
static atomic_bool closers_hang;

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	while (!strcmp(name, "roci-reaper") && atomic_load(&closers_hang))
		usleep(1000);
	return __real_close(fd);
}

static void command__hello_comes_first(void **state)
{
	int sock = client_connect(*state);
	struct answer a;

	assert_int_equal(client_call(sock, ABI_ALLOC_PD, NULL, 0, -1, &a), -EPROTO);
	assert_non_null(strstr((char *)a.body, "hello"));
	close(sock);
}

static void command__unknown_types(void **state)
{
	const uint32_t types[] = {0, ABI_MSG_TYPES, ABI_MSG_TYPES + 1, 0x7FFFFFFF, UINT32_MAX};
	struct client c;
	struct answer a;

	client_open(*state, &c);
	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_int_equal(client_call(c.sock, types[i], NULL, 0, -1, &a), -EPROTO);
	client_close(&c);
}

static void command__short_bodies(void **state)
{
	static const struct {
		uint32_t type;
		size_t body;
	} row[] = {
		{ABI_QUERY_PORT, sizeof(struct abi_query_port)},
		{ABI_REG_MR, sizeof(struct abi_reg_mr)},
		{ABI_CREATE_CQ, sizeof(struct abi_create_cq)},
		{ABI_RESIZE_CQ, sizeof(struct abi_resize_cq)},
		{ABI_CREATE_QP, sizeof(struct abi_create_qp)},
		{ABI_MODIFY_QP, sizeof(struct abi_modify_qp)},
		{ABI_DESTROY_QP, sizeof(struct abi_handle)},
	};
	static const uint8_t zeroes[ABI_MSG_MAX];
	struct client c;
	struct answer a;

	client_open(*state, &c);
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		for (size_t len = 0; len < row[i].body; len += 1 + len / 4)
			assert_int_equal(
				client_call(c.sock, row[i].type, zeroes, len, -1, &a), -EINVAL);
	client_close(&c);
}

/* Bodies may grow at the end: a newer client's message is understood (abi_ctl.h). */
static void command__longer_body_is_a_newer_clients(void **state)
{
	uint8_t body[ABI_MSG_MAX - sizeof(struct abi_msg)] = {1};
	struct client c;
	struct answer a;

	client_open(*state, &c);
	assert_int_equal(client_call(c.sock, ABI_QUERY_PORT, body, sizeof(body), -1, &a), 0);
	client_close(&c);
}

static void command__message_beyond_the_limit(void **state)
{
	static const uint8_t zeroes[2 * ABI_MSG_MAX];
	struct client c;
	struct answer a;

	client_open(*state, &c);
	client_send(c.sock, zeroes, ABI_MSG_MAX + 1, NULL, 0);
	assert_true(client_receive(c.sock, &a));
	assert_int_equal(a.msg.status, -EPROTO);
	client_pd(&c); /* the session lives on */
	client_close(&c);
}

static void command__message_shorter_than_its_header(void **state)
{
	struct client c;
	struct answer a;

	client_open(*state, &c);
	for (size_t len = 1; len < sizeof(struct abi_msg); len++) {
		client_send(c.sock, "0123456789012345", len, NULL, 0);
		assert_true(client_receive(c.sock, &a));
		assert_int_equal(a.msg.status, -EPROTO);
	}
	client_pd(&c);
	client_close(&c);
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A session that sends descriptors where none belong, or several, ends with the reply, and all that
 * it sent is closed. */
static void command__unwanted_descriptors(void **state)
{
	struct abi_msg msg = {.type = ABI_ALLOC_PD};
	int fds[16], pair[2];
	struct client c;
	struct answer a;
	unsigned before;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < 16; i++)
		fds[i] = pair[0];
	for (unsigned n = 1; n <= 16; n++) {
		client_open(*state, &c);
		client_pd(&c);
		before = open_descriptors();
		msg.type = n & 1 ? ABI_ALLOC_PD : ABI_REG_MR;
		client_send(c.sock, &msg, sizeof(msg), fds, n);
		/* what it did not read may have the first receive end with ECONNRESET */
		assert_true(client_receive(c.sock, &a) || client_receive(c.sock, &a));
		assert_int_equal(a.msg.status, -EPROTO);
		while (client_receive(c.sock, &a))
			;
		/* a thread of its own closes them; the session's own are the test's, too */
		WAIT_UNTIL(open_descriptors() < before);
		assert_true(open_descriptors() < before);
		client_close(&c);
	}
	close(pair[0]);
	assert_int_equal(recv(pair[1], fds, 1, 0), 0);
	close(pair[1]);
}

/* Closing one that hangs holds nobody up. A child has it open until the daemon alone has: a process
 * that ends does not linger itself. */
static void command__lingering_descriptor(void **state)
{
	struct abi_create_cq cq = {.depth = 1, .channel = ABI_NO_HANDLE};
	struct {
		struct abi_msg msg;
		struct abi_create_cq cq;
	} first = {.msg.type = ABI_CREATE_CQ, .cq = cq};
	struct abi_msg second = {.type = ABI_ALLOC_PD};
	struct test_daemon *d = *state;
	int other, slow = lingering(&other);
	struct client c;
	struct answer a;
	pid_t pid;

	assert_true(slow >= 0);
	client_open(d, &c);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	notifier_lock(&d->ctl->sessions->notifier); /* the daemon waits here in CREATE_CQ */
	client_send(c.sock, &first, sizeof(first), NULL, 0);
	client_send(c.sock, &second, sizeof(second), &slow, 1);
	close(slow);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	notifier_unlock(&d->ctl->sessions->notifier);
	for (int i = 0; i < 2; i++) {
		assert_true(client_receive(c.sock, &a));
		assert_int_equal(a.msg.status, i ? -EPROTO : 0);
		answer_close(&a);
	}
	client_close(&c);
	client_open(d, &c);
	client_pd(&c);
	client_close(&c);
	close(other);
}

/* No room for the one that REG_MR needs: an error, and the session continues. */
static void command__out_of_descriptors(void **state)
{
	int fd = client_memfd(4096), filling[FEW], n = 0;
	struct abi_reg_mr in = {.length = 4096};
	struct rlimit old, tight;
	struct client c;
	struct answer a;

	client_open(*state, &c);
	in.pd = client_pd(&c);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	tight = (struct rlimit){.rlim_cur = FEW, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	while (n < FEW && (filling[n] = dup(fd)) >= 0)
		n++;
	assert_true(n > 0 && n < FEW);
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &in, sizeof(in), fd, &a), -EMFILE);
	assert_non_null(strstr((char *)a.body, "ulimit"));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	while (n)
		close(filling[--n]);
	assert_int_equal(client_call(c.sock, ABI_REG_MR, &in, sizeof(in), fd, &a), 0);
	close(fd);
	client_close(&c);
}

/* The descriptors that a user's programs passed hang when they are closed: no more is taken until
 * that ends, but messages without descriptors are. */
static void command__waits_for_what_hangs(void **state)
{
	struct test_daemon *d = *state;
	struct abi_reg_mr in = {.length = 4096};
	struct {
		struct abi_msg msg;
		struct abi_reg_mr mr;
	} m = {.msg.type = ABI_REG_MR};
	int fd = client_memfd(4096);
	struct client c, other;
	struct pollfd p;
	struct answer a;

	client_open(d, &c);
	client_open(d, &other);
	in.pd = client_pd(&c);
	m.mr = in;
	atomic_store(&closers_hang, true);
	for (unsigned i = 0; i < CLOSING_USER_MAX; i++)
		assert_int_equal(client_call(c.sock, ABI_REG_MR, &in, sizeof(in), fd, &a), 0);
	client_send(c.sock, &m, sizeof(m), &fd, 1);
	client_pd(&other);
	p = (struct pollfd){.fd = c.sock, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 50), 0);
	client_pd(&other);
	atomic_store(&closers_hang, false);
	assert_true(client_receive(c.sock, &a));
	assert_int_equal(a.msg.status, 0);
	close(fd);
	client_close(&c);
	client_close(&other);
}

static void command__random_bytes(void **state)
{
	struct random rnd = {20261};
	uint8_t buf[ABI_MSG_MAX];
	struct client c;
	struct answer a;

	client_open(*state, &c);
	for (int i = 0; i < 20000; i++) {
		size_t len = 1 + random_below(&rnd, sizeof(buf));
		uint32_t type = (uint32_t)random_below(&rnd, ABI_MSG_TYPES + 1);
		int fd = c.async;
		bool with = random_below(&rnd, 4) == 0;

		for (size_t k = 0; k < len; k++) /* small numbers get past more checks */
			buf[k] = random_below(&rnd, 3) ? 0 : (uint8_t)random_below(&rnd, 256);
		memcpy(buf, &type, len < 4 ? len : 4);
		client_send(c.sock, buf, len, &fd, with);
		assert_true(client_receive(c.sock, &a));
		answer_close(&a);
		if (!with || (len >= sizeof(struct abi_msg) && command_ops.takes_descriptor(type)))
			continue;
		assert_int_equal(a.msg.status, -EPROTO);
		client_close(&c);
		client_open(*state, &c);
	}
	client_close(&c);
}

/* Programs may inject faults only into rocids that were started for it. */
static void command__faults_need_an_option(void **state)
{
	static const uint16_t types[] = {ABI_INJECT_FAULT, ABI_QUERY_FAULT, ABI_CLEAR_FAULT};
	struct client c;
	struct answer a;

	client_open(*state, &c);
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		struct abi_inject_fault in = {.qp = 1};

		assert_int_equal(client_call(c.sock, types[i], &in, sizeof(in), -1, &a), -EPERM);
	}
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			command__hello_comes_first, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__unknown_types, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__short_bodies, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__longer_body_is_a_newer_clients, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__message_beyond_the_limit, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__message_shorter_than_its_header, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__unwanted_descriptors, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__lingering_descriptor, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__waits_for_what_hangs, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__out_of_descriptors, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__faults_need_an_option, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			command__random_bytes, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"command", tests, daemon_group_setup, daemon_group_teardown);
}
