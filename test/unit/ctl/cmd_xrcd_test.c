/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "config/ctl_parts.h"
#include "daemon.h"
#include "session/session.h"
#include "session/sessions.h"

static const struct abi_open_xrcd create = {.flags = ABI_XRCD_CREATE};

static int open_xrcd(struct client *c, const struct abi_open_xrcd *in, int fd)
{
	struct answer a;

	return client_call(c->sock, ABI_OPEN_XRCD, in, sizeof(*in), fd, &a);
}

/* An O_PATH descriptor needs no permission for the file: it opens nobody's domain. */
static void cmd_open_xrcd__path_only(void **state)
{
	const struct abi_open_xrcd existing = {0};
	char path[] = "/tmp/cmd_xrcd_test.XXXXXX";
	int file = mkstemp(path), name;
	struct client owner, other;

	assert_true(file >= 0);
	assert_int_equal(fchmod(file, 0), 0);
	name = open(path, O_PATH | O_CLOEXEC);
	assert_true(name >= 0);
	client_open(*state, &owner);
	client_open(*state, &other);
	assert_int_equal(open_xrcd(&owner, &create, file), 0);
	assert_int_equal(open_xrcd(&other, &existing, name), -EBADF);
	assert_int_equal(open_xrcd(&other, &create, name), -EBADF);
	assert_int_equal(open_xrcd(&other, &existing, file), 0);
	client_close(&owner);
	client_close(&other);
	close(name);
	close(file);
	unlink(path);
}

/* Whichever way the file was opened, as with ib_uverbs_open_xrcd(). */
static void cmd_open_xrcd__any_way_of_opening(void **state)
{
	char path[] = "/tmp/cmd_xrcd_test.XXXXXX";
	int file = mkstemp(path);
	int fds[] = {open(path, O_RDONLY | O_CLOEXEC), open(path, O_WRONLY | O_CLOEXEC),
		open("/tmp", O_DIRECTORY | O_RDONLY | O_CLOEXEC)};
	struct client c;

	assert_true(file >= 0);
	client_open(*state, &c);
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		assert_true(fds[i] >= 0);
		assert_int_equal(open_xrcd(&c, &create, fds[i]), 0);
		close(fds[i]);
	}
	client_close(&c);
	close(file);
	unlink(path);
}

static uint32_t open_domain(struct client *c, int file)
{
	struct abi_handle_reply out;
	struct answer a;

	assert_int_equal(client_call(c->sock, ABI_OPEN_XRCD, &create, sizeof(create), file, &a), 0);
	memcpy(&out, a.body, sizeof(out));
	return out.handle;
}

static void close_domain(struct client *c, uint32_t handle)
{
	client_must(c->sock, ABI_CLOSE_XRCD, &handle, sizeof(handle), NULL, 0);
}

/* @return the domains that the session of @p c pays for. */
static unsigned pays(const struct test_daemon *d, const struct client *c)
{
	return (unsigned)d->ctl->sessions->session[c->hello.session % SESSION_MAX]->used[CTL_XRCDS];
}

/* The session that made a domain pays for it while it has any reference; then one that has. */
static void cmd_close_xrcd__payer(void **state)
{
	const struct test_daemon *d = *state;
	int file = client_memfd(4096);
	uint32_t first, second, third;
	struct client owner, other;

	client_open(d, &owner);
	client_open(d, &other);
	first = open_domain(&owner, file);
	third = open_domain(&other, file);
	second = open_domain(&owner, file);
	close_domain(&owner, first);
	assert_int_equal(pays(d, &owner), 1);
	assert_int_equal(pays(d, &other), 0);
	close_domain(&owner, second);
	assert_int_equal(pays(d, &owner), 0);
	assert_int_equal(pays(d, &other), 1);
	assert_int_equal(d->ctl->sessions->quota.used[CTL_XRCDS], 1);
	close_domain(&other, third);
	assert_int_equal(d->ctl->sessions->quota.used[CTL_XRCDS], 0);
	client_close(&owner);
	client_close(&other);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			cmd_open_xrcd__path_only, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			cmd_open_xrcd__any_way_of_opening, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			cmd_close_xrcd__payer, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_xrcd", tests, daemon_group_setup, daemon_group_teardown);
}
