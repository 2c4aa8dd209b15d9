/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions whose sockets always have something to read, so that only the turns decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "list.h"
#include "loop/loop.h"
#include "session/session.h"
#include "session/sessions.h"
#include "session/turn.h"

static struct loop loop;
static struct sessions sessions;
static struct ctl ctl = {.loop = &loop, .sessions = &sessions};
static struct session session[9];
static unsigned served[ARRAY_SIZE(session)];

static void count(struct watch *w)
{
	served[container_of(w, struct session, watch) - session]++;
}

static void end(struct watch *w)
{
	count(w);
	turn_leave(container_of(w, struct session, watch));
}

static void join(unsigned i, uid_t uid, void (*ready)(struct watch *))
{
	session[i] = (struct session){.ctl = &ctl,
		.peer.uid = uid,
		.watch = {.fd = eventfd(1, EFD_CLOEXEC), .ready = ready}};
	assert_true(session[i].watch.fd >= 0);
	assert_int_equal(turn_join(&session[i]), 0);
}

static void leave(unsigned i)
{
	turn_leave(&session[i]);
	close(session[i].watch.fd);
}

/* As the control thread does.  Returns false when nobody wants anything. */
static bool serve_one(void)
{
	return loop_wait(&loop, 0) == 1;
}

static int setup(void **state)
{
	assert_int_equal(loop_open(&loop), 0);
	list_init(&sessions.turns);
	memset(served, 0, sizeof(served));
	return 0;
}

static int teardown(void **state)
{
	assert_true(list_empty(&sessions.turns));
	loop_close(&loop);
	return 0;
}

static void turn_join__users_take_turns(void **state)
{
	const unsigned each = 10;

	for (unsigned i = 0; i < 8; i++)
		join(i, 1001, count);
	join(8, 1002, count);
	for (unsigned i = 0; i < 16 * each; i++)
		assert_true(serve_one());
	assert_int_equal(served[8], 8 * each);
	for (unsigned i = 0; i < 8; i++) /* and then the sessions of each */
		assert_int_equal(served[i], each);
	for (unsigned i = 0; i < 9; i++)
		leave(i);
}

/* The last session of a user takes the turn with it, while that is under way. */
static void turn_leave__while_it_is_served(void **state)
{
	join(0, 1001, end);
	join(1, 1001, end);
	assert_true(serve_one());
	assert_true(serve_one());
	assert_int_equal(served[0] + served[1], 2);
	assert_true(list_empty(&sessions.turns));
	assert_false(serve_one());
	leave(0);
	leave(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(turn_join__users_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(turn_leave__while_it_is_served, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
