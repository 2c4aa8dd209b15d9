/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper of a netdev of IP over InfiniBand, and a rocid and a kernel of the test's: what it
 * does in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <libmnl/libmnl.h>
#include "rib_impl.h"

#define LOG	  128u
#define FOUND	  1
#define LOOKS_MAX 100000u /* at the clock: the helper waits for ever */

static struct rib r;
static char log_[LOG];	      /* a letter for each call */
static uint32_t reads, looks; /* of memberships, for peers */
static uint32_t last_look;    /* after so many the session ends */
static uint32_t last_read;
static uint32_t grows_at; /* from that read on the kernel has another group */
static uint32_t fails_at; /* that read of memberships fails */
static int visit;	  /* what rib_visit() returns, from visits_at on */
static uint32_t visits, visits_at;
static bool stays, changed;
static char ah[4];
static uint64_t clock_ms;
static uint32_t read_ms; /* that a read of memberships takes */
static uint32_t wake_ms; /* so often the packet thread wakes the helper; 0: never */
static uint32_t clock_looks;
static uint32_t look_ms;  /* that a look for a peer takes */
static bool refill;	  /* each look makes the packet thread ask for another group */
static int looks_in_vain; /* errno, unless the GID ends with FOUND */
static int changes[2];	  /* sockets: the kernel tells of one; -1: it does not tell */

static void note(char c)
{
	size_t n = strlen(log_);

	if (n < LOG - 1)
		log_[n] = c;
}

static void end(void)
{
	atomic_store(&r.helping, false);
}

uint64_t rib_now_ns(void)
{
	if (++clock_looks == LOOKS_MAX)
		end();
	if (wake_ms) {
		clock_ms += wake_ms;
		rib_wake(r.wake_helper);
	}
	return clock_ms * 1000000u;
}

struct roci_ah *rib_handle(struct rib *rib, const uint8_t gid[16])
{
	note('?');
	clock_ms += look_ms;
	if (++looks == last_look)
		end();
	errno = looks_in_vain;
	if (refill) {
		r.ring[RIB_ANSWERED].n = 0;
		rib_jobs_put(&r.ring[RIB_ASKED_GROUPS],
			&(struct rib_job){.ask = {.gid = {[15] = FOUND}, .group = true}});
	}
	return gid[15] == FOUND ? (struct roci_ah *)(void *)&ah[0] : NULL;
}

int roci_destroy_ah(struct roci_ah *a)
{
	note('d');
	return 0;
}

int roci_attach_mcast(struct roci_qp *qp, const union roci_gid *gid)
{
	note('+');
	return 0;
}

int roci_detach_mcast(struct roci_qp *qp, const union roci_gid *gid)
{
	note('-');
	return 0;
}

const char *roci_last_error(void)
{
	return "";
}

void rib_say(struct rib *rib, const char *text, ...)
{
}

bool rib_port_changed(struct rib *rib)
{
	note('p');
	return changed;
}

int rib_visit(const struct rib *rib)
{
	note('(');
	if (++visits < visits_at)
		return 0;
	end();
	return visit;
}

void rib_end_visit(const struct rib *rib, int settings)
{
	note(')');
}

bool rib_tap_follow(struct rib *rib, int settings)
{
	return stays;
}

struct mnl_socket *rib_memberships_open(void)
{
	struct mnl_socket *nl = changes[0] < 0 ? NULL : mnl_socket_fdopen(changes[0]);

	assert_int_equal(!nl, changes[0] < 0);
	return nl;
}

bool rib_memberships_read(struct rib *rib, struct rib_members *m, uint64_t now)
{
	struct rib_groups *to = &m->now;

	memset(to, 0, sizeof(*to));
	if (changes[1] < 0)
		rib_wake(r.wake_helper); /* at once again */
	else if (write(changes[1], "", 1) != 1)
		return false;
	clock_ms += read_ms;
	if (++reads == last_read)
		end();
	if (reads == fails_at)
		return false;
	to->n = reads < grows_at ? 1 : 2;
	to->mgid[1][0] = 1;
	return true;
}

static int begin(void **state)
{
	memset(&r, 0, sizeof(r));
	memset(log_, 0, sizeof(log_));
	reads = looks = last_look = last_read = fails_at = visits = 0;
	looks_in_vain = EHOSTUNREACH;
	clock_ms = 1000000;
	look_ms = wake_ms = clock_looks = 0;
	read_ms = 1000;
	grows_at = visits_at = UINT32_MAX;
	visit = 0;
	stays = true;
	refill = false;
	changed = false;
	changes[0] = changes[1] = -1;
	pthread_mutex_init(&r.lock, NULL);
	for (unsigned i = 0; i < RIB_RINGS; i++)
		rib_jobs_init(&r.ring[i]);
	r.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r.wake_helper = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	atomic_store(&r.helping, true);
	return 0;
}

static int finish(void **state)
{
	close(r.wake);
	close(r.wake_helper);
	pthread_mutex_destroy(&r.lock);
	for (unsigned i = 0; i < RIB_RINGS; i++)
		rib_jobs_destroy(&r.ring[i]);
	return 0;
}

static void ask(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		rib_jobs_put(&r.ring[RIB_ASKED], &(struct rib_job){.ask.dest = i});
}

static void ask_for(uint8_t last, struct rib_jobs *in)
{
	rib_jobs_put(in, &(struct rib_job){.ask = {.dest = 77, .gid = {[15] = last}}});
}

/* A flood of peers that nobody finds: a group that the kernel joins does not wait for them. */
static void rib_help__groups_between_questions(void **state)
{
	ask(RIB_JOBS);
	looks_in_vain = EAGAIN;
	look_ms = 100;
	grows_at = 2;
	last_look = 100;
	rib_help(&r);
	assert_non_null(strstr(log_ + 3, "()+"));
	assert_true(r.ring[RIB_ASKED].n > 0);
	assert_int_equal(r.ngroups, 2);
}

/* @return ms until its next turn */
static int turn(struct rib_asking *a, uint32_t ms)
{
	clock_ms += ms;
	return rib_make_handles(&r, a, 1000);
}

static void rib_make_handles__asks_again(void **state)
{
	struct rib_asking a = {.n = 0};
	struct rib_job job;

	looks_in_vain = EAGAIN;
	ask_for(2, &r.ring[RIB_ASKED]);
	assert_int_equal(turn(&a, 0), 1);
	assert_int_equal(turn(&a, 1), 2);
	assert_int_equal(turn(&a, 1), 1); /* woken for something else */
	assert_int_equal(looks, 2);
	assert_int_equal(a.n, 1);
	a.wanted[0].job.ask.gid[15] = FOUND;
	turn(&a, 1);
	assert_int_equal(a.n, 0);
	assert_true(rib_jobs_take(&r.ring[RIB_ANSWERED], &job));
	assert_non_null(job.ah);
	assert_int_equal(job.ask.dest, 77);
}

/* Not for ever, and with longer and longer pauses. */
static void rib_make_handles__gives_up(void **state)
{
	struct rib_asking a = {.n = 0};
	struct rib_job job;

	looks_in_vain = EAGAIN;
	ask_for(2, &r.ring[RIB_ASKED]);
	for (int ms = 0; !r.ring[RIB_ANSWERED].n; ms = turn(&a, (uint32_t)ms))
		assert_true(looks < 30);
	assert_in_range(looks, 10, 25);
	assert_in_range(clock_ms, 1003000, 1003300);
	assert_true(rib_jobs_take(&r.ring[RIB_ANSWERED], &job));
	assert_null(job.ah);
}

/* However many are asked for in vain, one that the kernel knows is found in the same turn. */
static void rib_make_handles__in_vain_delays_nobody(void **state)
{
	struct rib_asking a = {.n = 0};
	struct rib_job job;

	looks_in_vain = EAGAIN;
	for (uint32_t i = 0; i < 3 * RIB_ASKING; i++) {
		rib_jobs_put(&r.ring[RIB_ASKED], &(struct rib_job){.ask.dest = i});
		turn(&a, 10);
	}
	assert_int_equal(a.n, RIB_ASKING);
	for (uint32_t i = 0; i < 2 * RIB_ASKING; i++) { /* those who were asked for longest */
		assert_true(rib_jobs_take(&r.ring[RIB_ANSWERED], &job));
		assert_null(job.ah);
		assert_int_equal(job.ask.dest, i);
	}
	ask_for(FOUND, &r.ring[RIB_ASKED]);
	turn(&a, 10);
	assert_int_equal(r.ring[RIB_ANSWERED].n, 2); /* it took another's place */
	assert_true(rib_jobs_take_youngest(&r.ring[RIB_ANSWERED], &job));
	assert_non_null(job.ah);
	assert_int_equal(a.n, RIB_ASKING - 1);
}

/* The kernel's table of neighbours is small: a flood does not fill it. Groups need none of it. */
static void rib_make_handles__asks_the_kernel_for_few(void **state)
{
	struct rib_asking a = {.n = 0};

	looks_in_vain = EHOSTUNREACH;
	ask(RIB_JOBS);
	assert_int_equal(turn(&a, 0), 10);
	assert_in_range(looks, 30, 34);
	looks = 0;
	for (unsigned i = 0; i < 100; i++)
		turn(&a, 10);
	assert_in_range(looks, 99, 101);
	r.ring[RIB_ANSWERED].n = 0;
	ask_for(FOUND, &r.ring[RIB_ASKED_GROUPS]);
	turn(&a, 0);
	assert_int_equal(r.ring[RIB_ANSWERED].n, 1);
}

/* The packet thread asks for another group with each answer: peers, memberships and handles that
 * are not used have their turn. */
static void rib_help__flood_of_groups(void **state)
{
	refill = true;
	ask_for(FOUND, &r.ring[RIB_ASKED_GROUPS]);
	ask(1);
	rib_jobs_put(
		&r.ring[RIB_UNUSED], &(struct rib_job){.ah = (struct roci_ah *)(void *)&ah[0]});
	grows_at = 2;
	last_look = 1000;
	last_read = 3;
	rib_help(&r);
	assert_int_equal(reads, 3);
	assert_int_equal(r.ngroups, 2);
	assert_true(looks < 200);
	assert_int_equal(rib_jobs_count(&r.ring[RIB_ASKED]), 0);
	assert_int_equal(rib_jobs_count(&r.ring[RIB_UNUSED]), 0);
}

static void rib_help__youngest_question_first(void **state)
{
	struct rib_job job;

	ask(3);
	last_look = 3;
	rib_help(&r);
	for (uint32_t i = 3; i-- > 0;) {
		assert_true(rib_jobs_take(&r.ring[RIB_ANSWERED], &job));
		assert_int_equal(job.ask.dest, i);
	}
}

static void rib_help__handles_go_before_the_next_question(void **state)
{
	ask(2);
	for (unsigned i = 0; i < sizeof(ah); i++)
		rib_jobs_put(&r.ring[RIB_UNUSED],
			&(struct rib_job){.ah = (struct roci_ah *)(void *)&ah[i]});
	last_look = 2;
	rib_help(&r);
	assert_string_equal(log_, "()+dddd??");
}

static void rib_help__no_question_after_the_end(void **state)
{
	ask(5);
	last_read = 1;
	rib_help(&r);
	assert_int_equal(looks, 0);
	assert_int_equal(r.ring[RIB_ASKED].n, 5);
}

static void rib_help__groups_stay_when_they_cannot_be_read(void **state)
{
	fails_at = 2;
	last_read = 3;
	rib_help(&r);
	assert_string_equal(log_, "()+()()");
	assert_int_equal(r.ngroups, 1);
}

/* A program without privileges can make each packet one of another host of a bridge, and each look
 * one for another peer: the port joins and leaves groups once per second. */
static void rib_help__reads_once_per_second(void **state)
{
	read_ms = 0;
	wake_ms = 50;
	last_read = 3;
	rib_help(&r);
	assert_string_equal(log_, "()+()()");
	assert_true(clock_ms >= 1000000 + 2000);
}

/* A container that changes its netdevs without a pause: so many looks take so long at least. */
static void rib_help__looks_at_changes_together(void **state)
{
	struct timespec begin, end;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, changes), 0);
	last_read = 12;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	rib_help(&r); /* closes the end that it reads */
	clock_gettime(CLOCK_MONOTONIC, &end);
	close(changes[1]);
	assert_int_equal(reads, 12);
	assert_true((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 >=
		    100);
}

static void rib_help__port_is_compared_after_events(void **state)
{
	last_read = 2;
	atomic_store(&r.asked_port, true);
	rib_help(&r);
	assert_string_equal(log_, "()+p()");
	assert_false(r.outdated);
}

static void rib_help__port_changed(void **state)
{
	last_read = 1;
	changed = true;
	atomic_store(&r.asked_port, true);
	rib_help(&r);
	assert_true(r.outdated);
}

static void rib_help__netdev_was_moved(void **state)
{
	stays = false;
	visits_at = 1;
	rib_help(&r);
	assert_int_equal(reads, 0); /* of another netdev with its index, perhaps */
	assert_true(r.outdated);
}

static void rib_help__netdev_is_where_rocid_may_not_go(void **state)
{
	visits_at = 2;
	visit = -EXDEV;
	rib_help(&r);
	assert_string_equal(log_, "()+(");
	assert_true(r.outdated);
}

static void rib_help__visit_that_fails_changes_nothing(void **state)
{
	visits_at = 2;
	visit = -EMFILE;
	rib_help(&r);
	assert_string_equal(log_, "()+(");
	assert_false(r.outdated);
	assert_int_equal(r.ngroups, 1);
}

static void rib_next_pause__doubles_while_in_vain(void **state)
{
	int ms = RIB_PAUSE_MIN_MS;

	assert_int_equal(rib_next_pause(ms, false), RIB_PAUSE_MIN_MS);
	assert_int_equal(rib_next_pause(ms, true), 2 * RIB_PAUSE_MIN_MS);
	for (unsigned i = 0; i < 10; i++)
		ms = rib_next_pause(ms, true);
	assert_int_equal(ms, RIB_PAUSE_MAX_MS);
	assert_int_equal(rib_next_pause(ms, false), RIB_PAUSE_MIN_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rib_help__groups_between_questions, begin, finish),
		cmocka_unit_test_setup_teardown(rib_make_handles__asks_again, begin, finish),
		cmocka_unit_test_setup_teardown(rib_make_handles__gives_up, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_make_handles__in_vain_delays_nobody, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_make_handles__asks_the_kernel_for_few, begin, finish),
		cmocka_unit_test_setup_teardown(rib_help__flood_of_groups, begin, finish),
		cmocka_unit_test_setup_teardown(rib_help__youngest_question_first, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_help__handles_go_before_the_next_question, begin, finish),
		cmocka_unit_test_setup_teardown(rib_help__no_question_after_the_end, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_help__groups_stay_when_they_cannot_be_read, begin, finish),
		cmocka_unit_test_setup_teardown(rib_help__reads_once_per_second, begin, finish),
		cmocka_unit_test_setup_teardown(rib_help__looks_at_changes_together, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_help__port_is_compared_after_events, begin, finish),
		cmocka_unit_test_setup_teardown(rib_help__port_changed, begin, finish),
		cmocka_unit_test_setup_teardown(rib_help__netdev_was_moved, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_help__netdev_is_where_rocid_may_not_go, begin, finish),
		cmocka_unit_test_setup_teardown(
			rib_help__visit_that_fails_changes_nothing, begin, finish),
		cmocka_unit_test(rib_next_pause__doubles_while_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
