/* SPDX-License-Identifier: BSD-3-Clause */
/* RESOLVE_ADDR while the neighbour does not answer: the test is the kernel that looks for it. */
#include "cm_world.h"
#include <errno.h>
#include <unistd.h>
#include "bits.h"
#include "net/neigh.h"
#include "net/net.h"
#include "session/sessions.h"
#include "verbs/dest.h"

#define MANY 1000u

/* The questions to the kernel. */
static struct neigh_query *asked[SESSION_RESOLVE_MAX + MANY];
static unsigned nasked;

int __real_dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q,
	bool *local, char why[ABI_SENTENCE_MAX]);
int __wrap_dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q,
	bool *local, char why[ABI_SENTENCE_MAX]);

/* Nobody answers for 10.0.0.0/8. */
int __wrap_dest_find(struct ctl *ctl, const struct dest_key *key, struct neigh_query *q,
	bool *local, char why[ABI_SENTENCE_MAX])
{
	if (key->dgid[12] != 10)
		return __real_dest_find(ctl, key, q, local, why);
	list_init(&q->node);
	asked[nasked++ % ARRAY_SIZE(asked)] = q;
	return -EINPROGRESS;
}

static void open_as(struct world *w, struct program *p, uid_t uid)
{
	nasked = 0;
	program_open_as(w, p, uid);
}

/* Resolves 10.x.x.x, a host for each number. */
static int resolve(struct program *p, uint32_t id, unsigned host, uint32_t timeout_ms)
{
	struct abi_cm_resolve_addr in = {
		.id = id, .timeout_ms = timeout_ms, .dst = world_addr(gid_any4, 7000)};

	put_be32(in.dst.ip + 12, 10u << 24 | host);
	return program_ask(p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0);
}

static uint32_t tcp(struct program *p)
{
	return program_id(p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
}

static uint64_t used(const struct world *w)
{
	return w->ctl->sessions->quota.used[CTL_LOOKUPS];
}

static void answer(struct world *w, unsigned i, int err, const char *why)
{
	asked[i]->done(asked[i], err, why);
	world_poll(w);
}

/* Connections to one host have one question asked, and its answer. */
static void lookup__shared(void **state)
{
	struct world *w = *state;
	struct program p;

	open_as(w, &p, 1001);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0);
	assert_int_equal(nasked, 1);
	assert_int_equal(used(w), 1);
	assert_false(program_readable(&p));
	answer(w, 0, 0, NULL);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(program_take(&p, ABI_CM_ADDR_RESOLVED).status, 0);
	assert_int_equal(used(w), 0);
	assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0); /* another question */
	assert_int_equal(nasked, 2);
	answer(w, 1, -EHOSTUNREACH, "nobody is there");
	assert_string_equal(program_take(&p, ABI_CM_ADDR_ERROR).why, "nobody is there");
	program_die(&p);
	world_is_empty(w);
}

/* Another address that comes to the index of a GID has its own question. */
static void lookup__another_source(void **state)
{
	struct world *w = *state;
	struct gid_entry *e = &w->ctl->net->port[0].gids.table.entry[0];
	struct program p;

	open_as(w, &p, 1001);
	assert_memory_equal(e->gid, gid_own4, 16);
	assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0);
	e->gid[15]++;
	assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0);
	assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0);
	e->gid[15]--;
	assert_int_equal(nasked, 2);
	assert_int_equal(used(w), 2);
	program_die(&p);
	world_is_empty(w);
}

/* A program has no more questions asked than one that creates address handles. */
static void lookup__charged(void **state)
{
	struct world *w = *state;
	struct program p, other;
	uint32_t late;

	open_as(w, &p, 1001);
	open_as(w, &other, 1002);
	late = tcp(&p);
	for (unsigned i = 0; i < SESSION_RESOLVE_MAX; i++)
		assert_int_equal(resolve(&p, tcp(&p), i + 1, 1000), 0);
	assert_int_equal(used(w), SESSION_RESOLVE_MAX);
	assert_int_equal(resolve(&p, late, MANY, 1000), -EBUSY);
	assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0); /* one that is asked anyway */
	assert_int_equal(resolve(&other, tcp(&other), MANY, 1000), 0);
	answer(w, 0, 0, NULL);
	program_take(&p, ABI_CM_ADDR_RESOLVED);
	assert_int_equal(resolve(&p, late, MANY, 1000), 0);
	program_die(&other);
	program_die(&p);
	world_is_empty(w);
}

/* Thousands of ids that wait for one answer, or for the end of their time, have it in steps, the
 * ids of others in between. */
static void lookup__steps(void **state)
{
	struct world *w = *state;
	struct abi_cm_event e;
	struct program p, other;
	unsigned n = 0;

	open_as(w, &p, 1001);
	open_as(w, &other, 1002);
	for (unsigned i = 0; i < 3 * CM_STEP; i++)
		assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0);
	assert_int_equal(resolve(&other, tcp(&other), 1, 1000), 0);
	asked[0]->done(asked[0], 0, NULL);
	asked[1]->done(asked[1], 0, NULL);
	assert_true(lookups_poll(w->ctl));
	program_take(&other, ABI_CM_ADDR_RESOLVED);
	while (program_event(&p, &e))
		n++;
	assert_int_equal(n, CM_STEP - 1);
	assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0); /* asks anew */
	assert_int_equal(nasked, 3);
	world_poll(w);
	for (; n < 3 * CM_STEP; n++)
		program_take(&p, ABI_CM_ADDR_RESOLVED);
	assert_false(program_readable(&p));
	for (unsigned i = 1; i < 3 * CM_STEP; i++)
		assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0);
	w->now += 1100 * MS;
	assert_int_equal(connections_poll(w->ctl), 0);
	for (n = 0; program_event(&p, &e); n++)
		;
	assert_int_equal(n, CM_STEP);
	world_poll(w);
	for (; n < 3 * CM_STEP; n++)
		program_take(&p, ABI_CM_ADDR_ERROR);
	assert_false(program_readable(&p));
	program_die(&other);
	program_die(&p);
	world_is_empty(w);
}

/* Ids that go before they have heard the answer, which came */
static void lookup__answered_and_gone(void **state)
{
	struct world *w = *state;
	struct program p, next;
	uint32_t id;

	open_as(w, &p, 1001);
	id = tcp(&p);
	assert_int_equal(resolve(&p, id, 1, 1000), 0);
	asked[0]->done(asked[0], 0, NULL);
	assert_int_equal(program_destroy(&p, id, NULL), 0);
	assert_false(lookups_poll(w->ctl));
	assert_int_equal(used(w), 0);
	/* nor does a session take over a question of that which had its slot */
	assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0);
	session_begin_close(p.s);
	open_as(w, &next, 1001);
	assert_int_equal(next.s->slot, p.s->slot);
	assert_int_equal(resolve(&next, tcp(&next), 1, 1000), 0);
	assert_int_equal(nasked, 1); /* counted since the program began */
	while (sessions_close_some(w->ctl))
		;
	answer(w, 0, 0, NULL);
	program_take(&next, ABI_CM_ADDR_RESOLVED);
	close(p.sock);
	close(p.fd);
	program_die(&next);
	world_is_empty(w);
}

/* Each id has the time that its program gives it, whatever others give and the kernel takes. */
static void lookup__timeouts(void **state)
{
	static const struct {
		uint32_t asked_ms, ms;
	} rows[] = {{50, 50}, {0, 2000}, {10000, 10000}, {UINT32_MAX, 120000}};
	struct world *w = *state;
	uint64_t passed = 0;
	struct program p;

	open_as(w, &p, 1001);
	for (unsigned i = ARRAY_SIZE(rows); i--;)
		assert_int_equal(resolve(&p, tcp(&p), 1, rows[i].asked_ms), 0);
	assert_true(asked[0]->deadline_ms == UINT64_MAX);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct abi_cm_event e;

		world_pass(w, rows[i].ms - passed - 1);
		assert_false(program_readable(&p));
		assert_int_equal(used(w), 1);
		world_pass(w, 4);
		passed = rows[i].ms + 3;
		e = program_take(&p, ABI_CM_ADDR_ERROR);
		assert_int_equal(e.status, -ETIMEDOUT);
		assert_true(e.why[0]);
	}
	assert_int_equal(used(w), 0);
	program_die(&p);
	world_is_empty(w);
}

/* An id that goes takes its question with it if no other waits for the answer. */
static void lookup__destroy(void **state)
{
	struct world *w = *state;
	uint32_t id, other;
	struct program p;

	open_as(w, &p, 1001);
	id = tcp(&p);
	other = tcp(&p);
	assert_int_equal(resolve(&p, id, 1, 1000), 0);
	assert_int_equal(resolve(&p, other, 1, 1000), 0);
	assert_int_equal(program_destroy(&p, id, NULL), 0);
	assert_int_equal(used(w), 1);
	assert_int_equal(program_destroy(&p, other, NULL), 0);
	assert_int_equal(used(w), 0);
	assert_int_equal(resolve(&p, tcp(&p), 1, 1000), 0);
	program_die(&p);
	world_is_empty(w);
}

/* The event comes to the channel that the id has moved to. */
static void lookup__migrate(void **state)
{
	struct world *w = *state;
	struct abi_cm_migrate move;
	struct abi_cm_destroyed out;
	struct abi_handle_reply made;
	struct abi_cm_event e;
	struct program p;

	open_as(w, &p, 1001);
	move.id = tcp(&p);
	assert_int_equal(program_ask(&p, ABI_CM_OPEN, NULL, 0, &made, sizeof(made)), 0);
	assert_int_equal(resolve(&p, move.id, 1, 1000), 0);
	move.channel = made.handle;
	assert_int_equal(
		program_ask(&p, ABI_CM_MIGRATE_ID, &move, sizeof(move), &out, sizeof(out)), 0);
	assert_false(program_event(&p, &e));
	p.channel = made.handle;
	assert_false(program_event(&p, &e));
	answer(w, 0, 0, NULL);
	assert_true(program_event(&p, &e));
	assert_int_equal(e.event, ABI_CM_ADDR_RESOLVED);
	program_die(&p);
	world_is_empty(w);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		T(lookup__shared),
		T(lookup__another_source),
		T(lookup__charged),
		T(lookup__steps),
		T(lookup__answered_and_gone),
		T(lookup__timeouts),
		T(lookup__destroy),
		T(lookup__migrate),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
