/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands in steps, and users in turns. The test is the control thread while the daemon pauses. */
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "config/ctl_parts.h"
#include "daemon.h"
#include "loop/loop.h"
#include "patience.h"
#include "session/job.h"
#include "session/session.h"
#include "session/sessions.h"

static struct session *session_of(const struct test_daemon *d, const struct client *c)
{
	return d->ctl->sessions->session[c->hello.session % SESSION_MAX];
}

/* Sends a request to the daemon, which pauses, and has it begin. */
static void begin(
	struct test_daemon *d, struct client *c, uint32_t type, const void *body, size_t len)
{
	uint8_t bytes[ABI_MSG_MAX] = {0};
	struct abi_msg msg = {.type = type};
	struct session *s = session_of(d, c);

	memcpy(bytes, &msg, sizeof(msg));
	memcpy(bytes + sizeof(msg), body, len);
	client_send(c->sock, bytes, sizeof(msg) + len, NULL, 0);
	s->watch.ready(&s->watch);
}

static void expect(struct client *c, int status)
{
	struct answer a;

	assert_true(client_receive(c->sock, &a));
	assert_int_equal(a.msg.status, status);
	answer_close(&a);
}

static uint32_t make_srq(struct client *c, uint32_t max_wr)
{
	struct abi_create_srq in = {.pd = client_pd(c),
		.max_wr = max_wr,
		.max_sge = SGE_MAX,
		.xrcd = ABI_NO_HANDLE,
		.cq = ABI_NO_HANDLE};
	struct abi_create_srq_reply out;
	struct answer a;

	assert_int_equal(client_call(c->sock, ABI_CREATE_SRQ, &in, sizeof(in), -1, &a), 0);
	memcpy(&out, a.body, sizeof(out));
	answer_close(&a);
	return out.handle;
}

/* 32 MB are copied in many steps, with others' commands in between, and none of its own. */
static void jobs_poll__resize_of_an_srq(void **state)
{
	struct test_daemon *d = *state;
	struct abi_modify_srq in = {
		.mask = ABI_SRQ_MAX_WR | ABI_SRQ_LIMIT, .max_wr = SRQ_WR_MAX, .limit = 7};
	struct abi_srq_attr attr;
	struct pollfd p = {.events = POLLIN};
	struct client c;
	unsigned steps = 1;

	client_open(d, &c);
	in.handle = make_srq(&c, SRQ_WR_MAX);
	daemon_pause(d);
	begin(d, &c, ABI_MODIFY_SRQ, &in, sizeof(in));
	assert_non_null(session_of(d, &c)->job);
	while (jobs_poll(d->ctl))
		steps++;
	assert_true(steps >= SRQ_WR_MAX / RESIZE_STEP - 1);
	assert_null(session_of(d, &c)->job);
	p.fd = c.sock;
	assert_int_equal(poll(&p, 1, 0), 1);
	expect(&c, 0);
	daemon_resume(d);
	client_must(c.sock, ABI_QUERY_SRQ, &in.handle, sizeof(in.handle), &attr, sizeof(attr));
	assert_int_equal(attr.max_wr, SRQ_WR_MAX);
	assert_int_equal(attr.limit, 7);
	client_close(&c);
}

static uint32_t make_ah(struct client *c, uint32_t pd)
{
	struct abi_create_ah in = {.pd = pd, .attr = {.port = 1, .is_global = 1, .hop_limit = 9}};
	struct abi_handle_reply out;

	memcpy(in.attr.dgid, gid_peer4, 16);
	memset(in.attr.dmac, 0xFF, 6);
	client_must(c->sock, ABI_CREATE_AH, &in, sizeof(in), &out, sizeof(out));
	return out.handle;
}

/* The queues of datagram QPs are emptied a few at a time. */
static void jobs_poll__end_of_an_address_handle(void **state)
{
	enum {
		LONG = 5,
		SHORT = 130
	};
	struct test_daemon *d = *state;
	struct abi_create_qp qp;
	struct client c;
	struct answer a;
	uint32_t pd, ah;
	unsigned steps = 1;

	client_open(d, &c);
	pd = client_pd(&c);
	qp = client_qp_request(pd, client_cq(&c, ABI_NO_HANDLE));
	qp.type = ABI_QPT_UD;
	for (unsigned i = 0; i < LONG + SHORT; i++) {
		qp.max_send_wr = i < LONG ? WR_MAX : 16;
		assert_int_equal(client_call(c.sock, ABI_CREATE_QP, &qp, sizeof(qp), -1, &a), 0);
		answer_close(&a);
	}
	ah = make_ah(&c, pd);
	daemon_pause(d);
	begin(d, &c, ABI_DESTROY_AH, &ah, sizeof(ah));
	assert_non_null(session_of(d, &c)->job);
	while (jobs_poll(d->ctl))
		steps++;
	assert_in_range(steps, LONG, LONG + 4); /* 64 short ones at once */
	expect(&c, 0);
	daemon_resume(d);
	client_close(&c);
}

/* The session's end comes while its command is under way. */
static void job_cancel__session_ends(void **state)
{
	struct test_daemon *d = *state;
	struct abi_modify_srq in = {.mask = ABI_SRQ_MAX_WR, .max_wr = SRQ_WR_MAX};
	struct client c, other;

	client_open(d, &c);
	client_open(d, &other);
	in.handle = make_srq(&c, 16);
	daemon_pause(d);
	begin(d, &c, ABI_MODIFY_SRQ, &in, sizeof(in));
	assert_true(jobs_poll(d->ctl));
	daemon_resume(d);
	client_close(&c);
	client_pd(&other);
	client_close(&other);
	WAIT_UNTIL(!d->ctl->sessions->nsessions && !d->ctl->sessions->nclosing);
	assert_true(list_empty(&d->ctl->sessions->jobs));
}

/* --- turns ---------------------------------------------------------------------------- */

enum {
	CROWD = 40
};

/* SO_PEERCRED tells whom the connecting thread was. */
static void open_as(const struct test_daemon *d, struct client *c, uid_t uid)
{
	assert_int_equal(syscall(SYS_setresuid, -1, uid, -1), 0);
	client_open(d, c);
	assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
}

static void one_event(struct ctl *ctl)
{
	assert_int_equal(loop_wait(ctl->loop, PATIENCE_MS), 1);
}

/* However many sessions of one user have sent commands before, another's is among the next. */
static void turn__of_another_user(void **state)
{
	struct test_daemon *d = *state;
	struct abi_msg msg = {.type = ABI_QUERY_DEVICE};
	struct client crowd[CROWD], one;
	struct pollfd p = {.events = POLLIN};

	if (geteuid())
		skip();
	assert_int_equal(chmod(d->dir, 0755), 0);
	assert_int_equal(chmod(d->path, 0666), 0);
	for (unsigned i = 0; i < CROWD; i++)
		open_as(d, &crowd[i], 64002);
	open_as(d, &one, 64001);
	daemon_pause(d);
	for (unsigned i = 0; i < CROWD; i++)
		client_send(crowd[i].sock, &msg, sizeof(msg), NULL, 0);
	client_send(one.sock, &msg, sizeof(msg), NULL, 0);
	for (unsigned i = 0; i < 4; i++) /* the daemon's own ones may be among them */
		one_event(d->ctl);
	p.fd = one.sock;
	assert_int_equal(poll(&p, 1, 0), 1);
	expect(&one, 0);
	daemon_resume(d);
	for (unsigned i = 0; i < CROWD; i++) {
		expect(&crowd[i], 0);
		client_close(&crowd[i]);
	}
	client_close(&one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			jobs_poll__resize_of_an_srq, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			jobs_poll__end_of_an_address_handle, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			job_cancel__session_ends, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			turn__of_another_user, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name("job", tests, daemon_group_setup, daemon_group_teardown);
}
