/* SPDX-License-Identifier: BSD-3-Clause */
/* When QPs move, and what the control thread keeps of it. The test is the control thread. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "config/ctl_parts.h"
#include "core.h"
#include "daemon.h"
#include "qp.h"
#include "session/handles.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/cq_obj.h"
#include "migrate/migrate.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker_impl.h"

#define QPS   20u
#define MANY  2500u
#define LOOKS 1024u /* of many QPs, one turn looks at so many */
#define MOVES 64u   /* and moves so many */

static struct test_daemon *d;
static struct client c;
static struct abi_create_qp_reply reply[QPS];
static struct qp_obj *obj[QPS];

static struct session *session_of(struct ctl *ctl)
{
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->sessions->session[i])
			return ctl->sessions->session[i];
	return NULL;
}

/* QPS QPs, half of them on each worker. */
static int setup(void **state)
{
	uint32_t pd, cq;

	d = *state;
	daemon_config(d);
	daemon_run(d);
	client_open(d, &c);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (unsigned i = 0; i < QPS; i++)
		reply[i] = client_qp(&c, pd, cq);
	daemon_pause(d);
	for (unsigned i = 0; i < QPS; i++)
		obj[i] = handle_get(&session_of(d->ctl)->qps, reply[i].handle);
	return 0;
}

static int teardown(void **state)
{
	migrate_init(d->ctl->objects->migration, false, 0, 1);
	for (unsigned i = 0; i < TEST_WORKERS; i++)
		memset(&d->dp->worker[i]->stats, 0, sizeof(d->dp->worker[i]->stats));
	daemon_resume(d);
	client_close(&c);
	daemon_stop(d);
	return 0;
}

static unsigned on_worker(uint32_t worker)
{
	unsigned n = 0;

	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(qp_owner(obj[i]->qp), obj[i]->worker);
		n += obj[i]->worker == worker;
	}
	assert_int_equal(d->ctl->objects->worker_qps[worker], n);
	return n;
}

/* --- one move --------------------------------------------------------------------------- */

static void migrate_qp__is_known_everywhere(void **state)
{
	struct qp_obj *o = obj[0];
	uint32_t from = o->worker;

	assert_int_equal(on_worker(0), QPS / 2);
	assert_int_equal(migrate_qp(d->ctl, o, !from), 0);
	assert_int_equal(o->worker, !from);
	assert_int_equal(on_worker(from), QPS / 2 - 1);
	assert_int_equal(on_worker(!from), QPS / 2 + 1);
	assert_int_equal(o->qp->sq.shared->bell, 1 + !from);
	assert_ptr_equal(o->qp->send_lane, &o->send_cq->cq.lane[!from]);
	assert_ptr_equal(o->qp->recv_lane, &o->recv_cq->cq.lane[!from]);
	assert_int_equal(migrate_qp(d->ctl, o, !from), 0); /* it is there */
	assert_int_equal(migrate_qp(d->ctl, o, TEST_WORKERS), -EINVAL);
	assert_int_equal(o->worker, !from);
	assert_int_equal(migrate_qp(d->ctl, o, from), 0);
	assert_int_equal(on_worker(from), QPS / 2);
	assert_int_equal(o->qp->sq.shared->bell, 1 + from);
}

/* proves MC-04: copies of a group's packet may wait in both inboxes */
static void migrate_qp__not_of_a_group_nor_qp1(void **state)
{
	uint32_t from = obj[2]->worker;

	obj[2]->nmembers = 1;
	assert_int_equal(migrate_qp(d->ctl, obj[2], !from), -EOPNOTSUPP);
	assert_int_equal(qp_owner(obj[2]->qp), from);
	obj[2]->nmembers = 0;
	obj[2]->qp->gsi_port = 1; /* its bells could not be passed on */
	assert_int_equal(migrate_qp(d->ctl, obj[2], !from), -EOPNOTSUPP);
	obj[2]->qp->gsi_port = 0;
	assert_int_equal(migrate_qp(d->ctl, obj[2], !from), 0);
}

/* Later commands go to the new worker; a destroyed QP is taken from there. */
static void migrate_qp__commands_follow(void **state)
{
	struct abi_handle h = {.handle = reply[1].handle};
	struct abi_qp_attr attr;
	uint32_t pd, cq;

	assert_int_equal(migrate_qp(d->ctl, obj[1], !obj[1]->worker), 0);
	daemon_resume(d);
	client_must(c.sock, ABI_QUERY_QP, &h, sizeof(h), &attr, sizeof(attr));
	assert_int_equal(attr.qp_state, ABI_QPS_RESET);
	client_must(c.sock, ABI_DESTROY_QP, &h, sizeof(h), NULL, 0);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (unsigned i = 0; i < 3; i++) /* the emptier one first */
		client_qp(&c, pd, cq);
	daemon_pause(d);
	assert_int_equal(d->ctl->objects->worker_qps[0], QPS / 2 + 1);
	assert_int_equal(d->ctl->objects->worker_qps[1], QPS / 2 + 1);
}

/* --- following packets ------------------------------------------------------------------ */

/* As workers would: `run` packets in a row on worker `queue`'s queue. */
static void observe(unsigned i, uint8_t queue, uint32_t run)
{
	obj[i]->qp->queue = queue;
	obj[i]->qp->queue_run = run;
	d->dp->worker[0]->stats.handoffs += run;
}

/* Looks a number of times: whether a QP moves is also a matter of chance. */
static void look(unsigned times)
{
	static uint64_t now = 1000;

	while (times--) {
		int wait = migrate_poll(d->ctl, now);

		assert_in_range(wait, 1, 100);
		now += 100;
	}
}

static void setup_following(bool follow)
{
	migrate_init(d->ctl->objects->migration, follow, 0, 1);
}

static void migrate_poll__follows_a_run(void **state)
{
	bool moves[QPS];

	for (unsigned i = 0; i < QPS; i++)
		moves[i] = obj[i]->worker == 0;
	setup_following(true);
	look(30);
	assert_int_equal(on_worker(0), QPS / 2); /* nothing to follow */
	for (unsigned i = 0; i < QPS; i++)
		observe(i, 1, 256);
	for (unsigned i = 0; i < 30; i++) {
		d->dp->worker[1]->stats.handoffs += 256;
		look(1);
	}
	assert_int_equal(on_worker(1), QPS);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(obj[i]->qp->queue_run, moves[i] ? 0 : 256); /* it begins anew */
}

/* Not at once: two that chase each other must get out of step. */
static void migrate_poll__tosses_a_coin(void **state)
{
	unsigned moved;

	setup_following(true);
	for (unsigned i = 0; i < QPS; i++)
		observe(i, !obj[i]->worker, 1000);
	look(1);
	moved = (unsigned)(d->dp->worker[0]->stats.qps_given + d->dp->worker[1]->stats.qps_given);
	assert_in_range(moved, 1, QPS - 1);
}

static void migrate_poll__stays_without_a_reason(void **state)
{
	setup_following(true);
	for (unsigned i = 0; i < QPS; i += 4) {
		observe(i, !obj[i]->worker, 255);	  /* too short */
		observe(i + 1, obj[i + 1]->worker, 9999); /* where it is */
		observe(i + 2, PKT_NO_QUEUE, 9999);	  /* local */
		observe(i + 3, TEST_WORKERS, 9999);	  /* nobody */
	}
	for (unsigned i = 0; i < 30; i++) {
		d->dp->worker[1]->stats.handoffs += 256;
		look(1);
	}
	assert_int_equal(d->dp->worker[0]->stats.qps_given, 0);
	assert_int_equal(d->dp->worker[1]->stats.qps_given, 0);
}

static void migrate_poll__off(void **state)
{
	setup_following(false);
	for (unsigned i = 0; i < QPS; i++)
		observe(i, !obj[i]->worker, 1000);
	assert_int_equal(migrate_poll(d->ctl, 1), -1); /* and wakes nobody up */
	assert_int_equal(on_worker(0), QPS / 2);
	assert_int_equal(d->dp->worker[0]->stats.qps_given, 0);
}

/* --- many QPs: the rest waits for the next turn ----------------------------------------- */

static int setup_many(void **state)
{
	uint32_t pd, cq;

	setup(state);
	daemon_resume(d);
	pd = client_pd(&c);
	cq = client_cq(&c, ABI_NO_HANDLE);
	for (unsigned i = QPS; i < MANY; i++)
		client_qp(&c, pd, cq);
	daemon_pause(d);
	setup_following(true);
	d->dp->worker[0]->stats.handoffs += 1000;
	return 0;
}

static uint64_t moved(void)
{
	return d->dp->worker[0]->stats.qps_given + d->dp->worker[1]->stats.qps_given;
}

/* Every QP has a reason to move. */
static void migrate_poll__moves_in_turns(void **state)
{
	uint32_t cursor = 0;
	struct qp_obj *o;
	uint64_t now = 1000;

	while ((o = handle_next(&session_of(d->ctl)->qps, &cursor))) {
		o->qp->queue = (uint8_t)!o->worker;
		o->qp->queue_run = 1000;
	}
	for (uint64_t n = MOVES; n <= 10 * MOVES; n += MOVES) {
		assert_int_equal(migrate_poll(d->ctl, now++), 1);
		assert_int_equal(moved(), n);
	}
	while (migrate_poll(d->ctl, now++) == 1)
		;
	assert_in_range(moved(), MANY / 3, MANY - 1); /* one look tosses once for each */
}

/* None has. */
static void migrate_poll__looks_in_turns(void **state)
{
	uint64_t now = 1000;

	for (unsigned seen = LOOKS; seen < MANY; seen += LOOKS)
		assert_int_equal(migrate_poll(d->ctl, now++), 1);
	assert_int_equal(migrate_poll(d->ctl, now), 100);
	assert_int_equal(migrate_poll(d->ctl, now + 100), 100); /* no hand-off since */
	assert_int_equal(moved(), 0);
}

/* --- shaking ---------------------------------------------------------------------------- */

static void migrate_poll__shakes_all(void **state)
{
	uint32_t first[QPS];

	migrate_init(d->ctl->objects->migration, false, 7, 1);
	for (unsigned i = 0; i < QPS; i++)
		first[i] = obj[i]->worker;
	assert_int_equal(migrate_poll(d->ctl, 1000), 7);
	/* 64 moves of 20 QPs: three times round, and 4 QPs once more */
	assert_int_equal(d->dp->worker[0]->stats.qps_given + d->dp->worker[1]->stats.qps_given, 64);
	for (unsigned i = 0; i < QPS; i++)
		assert_int_equal(obj[i]->worker, i < 4 ? first[i] : !first[i]);
	assert_int_equal(migrate_poll(d->ctl, 1003), 4); /* not due */
	assert_int_equal(d->dp->worker[0]->stats.qps_given + d->dp->worker[1]->stats.qps_given, 64);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(migrate_qp__is_known_everywhere),
		T(migrate_qp__not_of_a_group_nor_qp1),
		T(migrate_qp__commands_follow),
		T(migrate_poll__follows_a_run),
		T(migrate_poll__tosses_a_coin),
		T(migrate_poll__stays_without_a_reason),
		T(migrate_poll__off),
		cmocka_unit_test_setup_teardown(migrate_poll__moves_in_turns, setup_many, teardown),
		cmocka_unit_test_setup_teardown(migrate_poll__looks_in_turns, setup_many, teardown),
		T(migrate_poll__shakes_all),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
