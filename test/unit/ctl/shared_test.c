/* SPDX-License-Identifier: BSD-3-Clause */
/* An object that several sessions share is charged to one of them, whoever made it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "config/ctl_parts.h"
#include "daemon.h"
#include "patience.h"
#include "session/session.h"
#include "session/sessions.h"

static const uint8_t mgid[16] = {[10] = 0xFF, [11] = 0xFF, 239, 1, 2, 3};

static uint64_t has(const struct test_daemon *d, const struct client *c, enum ctl_kind kind)
{
	return __atomic_load_n(
		&d->ctl->sessions->session[c->hello.session % SESSION_MAX]->used[kind],
		__ATOMIC_RELAXED);
}

static bool any_charged(const struct test_daemon *d)
{
	for (unsigned k = 0; k < CTL_KINDS; k++)
		if (__atomic_load_n(&d->ctl->sessions->quota.used[k], __ATOMIC_RELAXED))
			return true;
	return false;
}

static struct abi_mcast join(struct client *c)
{
	struct abi_create_qp in = client_qp_request(client_pd(c), client_cq(c, ABI_NO_HANDLE));
	struct abi_modify_qp m = {
		.mask = ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY,
		.attr = {.qp_state = ABI_QPS_INIT, .port = 1}};
	struct abi_create_qp_reply qp;
	struct abi_mcast who;
	struct answer a;

	in.type = ABI_QPT_UD;
	assert_int_equal(client_call(c->sock, ABI_CREATE_QP, &in, sizeof(in), -1, &a), 0);
	memcpy(&qp, a.body, sizeof(qp));
	answer_close(&a);
	who.qp = m.handle = qp.handle;
	memcpy(who.mgid, mgid, sizeof(mgid));
	client_must(c->sock, ABI_MODIFY_QP, &m, sizeof(m), NULL, 0);
	client_must(c->sock, ABI_ATTACH_MCAST, &who, sizeof(who), NULL, 0);
	return who;
}

static void group__is_charged_to_one_that_is_in_it(void **state)
{
	struct test_daemon *d = *state;
	struct client one, two;
	struct abi_mcast first, second;

	client_open(d, &one);
	client_open(d, &two);
	first = join(&one);
	second = join(&one);
	join(&two);
	assert_int_equal(has(d, &one, CTL_GROUPS), 1);
	assert_int_equal(has(d, &one, CTL_ATTACHMENTS), 2);
	assert_int_equal(has(d, &two, CTL_GROUPS), 0);
	client_must(one.sock, ABI_DETACH_MCAST, &first, sizeof(first), NULL, 0);
	assert_int_equal(has(d, &one, CTL_GROUPS), 1); /* it is in it still */
	client_must(one.sock, ABI_DETACH_MCAST, &second, sizeof(second), NULL, 0);
	assert_int_equal(has(d, &one, CTL_GROUPS), 0);
	assert_int_equal(has(d, &two, CTL_GROUPS), 1);
	client_close(&two); /* its end frees the group */
	client_close(&one);
	WAIT_UNTIL(!any_charged(d));
	assert_false(any_charged(d));
}

static uint32_t open_domain(struct client *c, int fd, uint32_t flags)
{
	struct abi_open_xrcd in = {.flags = flags};
	struct abi_handle_reply out;
	struct answer a;

	assert_int_equal(client_call(c->sock, ABI_OPEN_XRCD, &in, sizeof(in), fd, &a), 0);
	memcpy(&out, a.body, sizeof(out));
	return out.handle;
}

static void xrcd__is_charged_to_one_that_has_opened_it(void **state)
{
	struct test_daemon *d = *state;
	struct client one, two;
	uint32_t domain;
	int fd = client_memfd(4096);

	client_open(d, &one);
	client_open(d, &two);
	domain = open_domain(&one, fd, ABI_XRCD_CREATE);
	open_domain(&two, fd, 0);
	assert_int_equal(has(d, &one, CTL_XRCDS), 1);
	assert_int_equal(has(d, &two, CTL_XRCDS), 0);
	client_must(one.sock, ABI_CLOSE_XRCD, &domain, sizeof(domain), NULL, 0);
	assert_int_equal(has(d, &one, CTL_XRCDS), 0);
	assert_int_equal(has(d, &two, CTL_XRCDS), 1);
	open_domain(&one, fd, 0);
	client_close(&two); /* and back again */
	WAIT_UNTIL(has(d, &one, CTL_XRCDS) == 1);
	assert_int_equal(has(d, &one, CTL_XRCDS), 1);
	client_close(&one);
	WAIT_UNTIL(!any_charged(d));
	assert_false(any_charged(d));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			group__is_charged_to_one_that_is_in_it, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			xrcd__is_charged_to_one_that_has_opened_it, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
