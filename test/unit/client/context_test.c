/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "harness.h"

static void open__nobody_there(void **state)
{
	assert_null(roci_open("/nonexistent/rocid.sock"));
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(roci_last_error(), "/nonexistent/rocid.sock"));
	assert_non_null(strstr(roci_last_error(), "start rocid"));
}

static void open__path_too_long(void **state)
{
	char path[300];

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_null(roci_open(path));
	assert_int_equal(errno, ENAMETOOLONG);
}

static void open__rocid_has_ended(void **state)
{
	struct harness *h = harness_start();

	harness_die(h); /* the socket's file stays */
	assert_null(roci_open(h->path));
	assert_int_equal(errno, ECONNREFUSED);
	harness_stop(h);
}

static void open__by_environment(void **state)
{
	struct harness *h = harness_start();
	struct roci_context *ctx;

	setenv(ABI_SOCKET_ENV, h->path, 1);
	ctx = roci_open(NULL);
	assert_non_null(ctx);
	assert_string_equal(ctx->device, "roci0");
	assert_true(ctx->cmd_fd >= 0 && ctx->async_fd >= 0);
	assert_int_equal(roci_close(ctx), 0);
	unsetenv(ABI_SOCKET_ENV);
	harness_stop(h);
}

/* The refusal comes before, while or after the client says hello, and then the socket ends. */
static void open__refused(void **state)
{
	for (int i = 0; i < 50; i++) {
		struct harness *h = harness_start();

		h->full = true;
		assert_null(roci_open(h->path));
		assert_int_equal(errno, EUSERS);
		assert_string_equal(roci_last_error(), "full: come back");
		harness_stop(h);
	}
}

static struct abi_hello greeted;

static bool keep_hello(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	if (msg->type == ABI_HELLO && len == sizeof(greeted))
		memcpy(&greeted, body, len);
	return false;
}

static void open__greets(void **state)
{
	struct harness *h = harness_start();
	struct roci_context *ctx;

	atomic_store(&h->hook, keep_hello);
	ctx = roci_open(h->path);
	assert_int_equal(greeted.magic, ABI_MAGIC);
	assert_int_equal(greeted.version_min, ABI_VERSION_MIN);
	assert_int_equal(greeted.version_max, ABI_VERSION);
	assert_true(strncmp(program_invocation_short_name, greeted.name, 31) == 0);
	roci_close(ctx);
	harness_stop(h);
}

static struct abi_hello_reply lie;

static bool greet_wrongly(struct harness *h, const struct abi_msg *msg, const void *b, size_t len)
{
	int fds[2] = {h->listener, h->listener};

	if (msg->type != ABI_HELLO)
		return false;
	harness_reply(h, msg, 0, &lie, sizeof(lie), fds, 2);
	return true;
}

static void refuse(const struct abi_hello_reply *r)
{
	struct harness *h = harness_start();

	lie = *r;
	atomic_store(&h->hook, greet_wrongly);
	assert_null(roci_open(h->path));
	assert_int_equal(errno, EPROTO);
	harness_stop(h);
}

static void open__senseless_greetings(void **state)
{
	struct abi_hello_reply good = {
		.magic = ABI_MAGIC,
		.version = ABI_VERSION,
		.workers = 2,
		.region_size = 128 + 2 * sizeof(struct abi_doorbell),
		.doorbell_off = 128,
		.doorbell_stride = sizeof(struct abi_doorbell),
	};
	struct abi_hello_reply r = good;

	refuse(&r); /* the region itself is no region: a socket */
	r.magic++;
	refuse(&r);
	r = good;
	r.version = ABI_VERSION + 1;
	refuse(&r);
	r = good;
	r.workers = 0;
	refuse(&r);
	r = good;
	r.workers = 3;
	refuse(&r);
	r = good;
	r.doorbell_stride = 64;
	refuse(&r);
	r = good;
	r.doorbell_off = 0;
	refuse(&r);
	r = good;
	r.doorbell_off = UINT32_MAX - 7;
	refuse(&r);
}

static void close__with_objects(void **state)
{
	struct rig r;

	rig_make(&r, 4);
	assert_int_equal(roci_close(r.ctx), EBUSY);
	rig_drop(&r);
}

static void close__after_death(void **state)
{
	struct rig r;

	rig_make(&r, 4);
	harness_die(r.h);
	rig_drop(&r); /* every destroy must succeed, or nobody could clean up */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__nobody_there),
		cmocka_unit_test(open__path_too_long),
		cmocka_unit_test(open__rocid_has_ended),
		cmocka_unit_test(open__by_environment),
		cmocka_unit_test(open__refused),
		cmocka_unit_test(open__greets),
		cmocka_unit_test(open__senseless_greetings),
		cmocka_unit_test(close__with_objects),
		cmocka_unit_test(close__after_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
