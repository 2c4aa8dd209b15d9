/* SPDX-License-Identifier: BSD-3-Clause */
/* Refusals that libraries report: what is kept of them, and of whom. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "config/ctl_parts.h"
#include "daemon.h"
#include "diagnose/diagnose.h"
#include "session/failures.h"
#include "session/session.h"
#include "session/sessions.h"

static struct test_daemon *d;
static struct client c;

static int setup(void **state)
{
	daemon_setup(state);
	d = *state;
	client_open(d, &c);
	return 0;
}

static int teardown(void **state)
{
	client_close(&c);
	return daemon_teardown(state);
}

static int report(uint32_t qpn, const char *sentence)
{
	struct abi_report r = {.qpn = qpn};
	struct answer a;
	int status;

	snprintf(r.sentence, sizeof(r.sentence), "%s", sentence);
	status = client_call(c.sock, ABI_REPORT, &r, sizeof(r), -1, &a);
	answer_close(&a);
	return status;
}

/* Words, since sentences that differ only in numbers are the same. */
static void report_word(unsigned i)
{
	char word[] = "aa";

	word[0] = (char)('a' + i / 26);
	word[1] = (char)('a' + i % 26);
	assert_int_equal(report(0, word), 0);
}

static uint32_t kept(const char *text)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < FAILURES_MAX; i++)
		n += d->ctl->failures->error[i].id &&
		     (!text || !strcmp(d->ctl->failures->error[i].text, text));
	return n;
}

static void report__the_sentence_and_its_qp(void **state)
{
	uint32_t qpn = client_qp(&c, client_pd(&c), client_cq(&c, ABI_NO_HANDLE)).qpn;
	const struct failure *e;

	assert_int_equal(report(qpn, "ibv_modify_qp: \033[2Jno \xC3\xA4\n"), 0);
	daemon_pause(d);
	e = failure_before(d->ctl, UINT32_MAX);
	assert_string_equal(e->text, "ibv_modify_qp: ?[2Jno ???");
	assert_string_equal(e->cause, "refused");
	assert_int_equal(e->qpn, qpn);
	assert_int_equal(e->count, 1);
	daemon_resume(d);
}

static void report__again(void **state)
{
	const struct failure *e;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(report(0, i ? "12 entries" : "11 entries"), 0);
	daemon_pause(d);
	e = failure_before(d->ctl, UINT32_MAX);
	assert_string_equal(e->text, "12 entries");
	assert_int_equal(e->count, 3);
	assert_int_equal(kept(NULL), 1);
	daemon_resume(d);
}

/* Nothing is recorded under another program's QP. */
static void report__refused(void **state)
{
	struct abi_report r;
	struct answer a;
	struct client other;
	uint32_t qpn;

	client_open(d, &other);
	qpn = client_qp(&other, client_pd(&other), client_cq(&other, ABI_NO_HANDLE)).qpn;
	assert_int_equal(report(qpn, "forged"), -EINVAL);
	assert_int_equal(report(0xFFFFFF, "forged"), -EINVAL);
	assert_int_equal(report(0, ""), -EINVAL);
	memset(&r, 'x', sizeof(r));
	r.qpn = 0;
	assert_int_equal(client_call(c.sock, ABI_REPORT, &r, sizeof(r), -1, &a), -EINVAL);
	assert_int_equal(client_call(c.sock, ABI_REPORT, &r, sizeof(r) - 1, -1, &a), -EINVAL);
	daemon_pause(d);
	assert_int_equal(kept(NULL), 0);
	daemon_resume(d);
	client_close(&other);
}

static void set_user(uid_t uid)
{
	daemon_pause(d);
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (d->ctl->sessions->session[i])
			d->ctl->sessions->session[i]->peer.uid = uid;
	daemon_resume(d);
}

/* A user who makes up refusals, in one session or in many, evicts only that user's own. */
static void report__flood(void **state)
{
	set_user(getuid() + 1);
	assert_int_equal(report(0, "of another user"), 0);
	set_user(getuid());
	for (unsigned i = 0; i < 2 * FAILURES_MAX; i++) {
		if (i == FAILURES_MAX) {
			client_close(&c);
			client_open(d, &c);
		}
		report_word(i);
	}
	daemon_pause(d);
	assert_int_equal(kept("of another user"), 1);
	assert_int_equal(kept("tr"), 1); /* the last: 19 * 26 + 17 */
	assert_int_equal(kept(NULL), 1 + FAILED_REQUESTS_MAX);
	daemon_resume(d);
}

/* In a full log, they evict failures of queue pairs until they have their part of it. */
static void report__of_many_users(void **state)
{
	daemon_pause(d);
	for (unsigned i = 0; i < FAILURES_MAX; i++) {
		d->ctl->failures->error[i].id = ++d->ctl->failures->next_id;
		strcpy(d->ctl->failures->error[i].text, "a QP");
	}
	daemon_resume(d);
	for (unsigned i = 0; i < FAILURES_MAX; i++) {
		if (i % FAILED_REQUESTS_MAX == 0)
			set_user(getuid() + 1 + i);
		report_word(i);
	}
	daemon_pause(d);
	assert_int_equal(kept("a QP"), FAILURES_MAX - REQUESTS_OF_ALL_MAX);
	assert_int_equal(kept(NULL), FAILURES_MAX);
	daemon_resume(d);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(report__the_sentence_and_its_qp),
		T(report__again),
		T(report__refused),
		T(report__flood),
		T(report__of_many_users),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
