/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "daemon.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			cmd_open_xrcd__path_only, daemon_setup, daemon_teardown),
		cmocka_unit_test_setup_teardown(
			cmd_open_xrcd__any_way_of_opening, daemon_setup, daemon_teardown),
	};

	return cmocka_run_group_tests_name(
		"cmd_xrcd", tests, daemon_group_setup, daemon_group_teardown);
}
