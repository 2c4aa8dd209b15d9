/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs of one user together have limits of what they take of RDMA CM: others get the rest.
 */
#include "cm_world.h"
#include <errno.h>
#include "bits.h"
#include "session/failures.h"
#include "session/sessions.h"

#define FEW 3u

/* --- one object of each kind ---------------------------------------------------------- */

static int create(struct program *p, uint16_t ps, uint8_t type, uint32_t *id)
{
	const struct abi_cm_create_id in = {.channel = p->channel, .ps = ps, .qp_type = type};
	struct abi_handle_reply out = {0};
	int err = program_ask(p, ABI_CM_CREATE_ID, &in, sizeof(in), &out, sizeof(out));

	*id = out.handle;
	return err;
}

static int make_id(struct program *p, uint32_t *id)
{
	return create(p, ABI_CM_PS_TCP, ABI_QPT_RC, id);
}

static int make_port(struct program *p, uint32_t *id)
{
	*id = program_id(p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	return program_bind(p, *id, gid_any4, 0);
}

static int make_listener(struct program *p, uint32_t *id)
{
	*id = program_id(p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	return program_listen(p, *id, 8);
}

static int make_connection(struct program *p, uint32_t *id)
{
	*id = program_resolve(p, 7000);
	return program_connect(p, *id);
}

static int make_event(struct program *p, uint32_t *id)
{
	struct abi_cm_join in = {.addr = world_addr(gid_any4, 0)};
	struct abi_handle_reply out;

	in.id = *id = program_id(p, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	assert_int_equal(program_bind(p, in.id, gid_own4, 0), 0);
	in.addr.ip[12] = 239;
	return program_ask(p, ABI_CM_JOIN, &in, sizeof(in), &out, sizeof(out));
}

static const struct {
	enum ctl_kind kind;
	int (*make)(struct program *p, uint32_t *id);
	int refusal;
} kinds[] = {
	{CTL_CM_IDS, make_id, -EDQUOT},
	{CTL_CM_PORTS, make_port, -EDQUOT},
	{CTL_LISTENERS, make_listener, -EDQUOT},
	{CTL_CONNECTIONS, make_connection, -EDQUOT},
	{CTL_CM_EVENTS, make_event, -ENOBUFS},
};

/* Two sessions of one user, and one of another. */
static void of_a_user(struct world *w, unsigned k)
{
	struct ctl_limits *l = &w->ctl->sessions->quota.limits;
	struct program one, two, other;
	uint32_t id, first;

	program_open_as(w, &one, 1001);
	program_open_as(w, &two, 1001);
	program_open_as(w, &other, 1002);
	l->user[kinds[k].kind] = FEW;
	assert_int_equal(kinds[k].make(&one, &first), 0);
	for (unsigned i = 1; i < FEW; i++)
		assert_int_equal(kinds[k].make(&one, &id), 0);
	assert_int_equal(kinds[k].make(&two, &id), kinds[k].refusal);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(kinds[k].make(&other, &id), 0);
	assert_int_equal(program_destroy(&one, first, NULL), 0);
	assert_int_equal(kinds[k].make(&two, &id), 0);
	assert_int_equal(kinds[k].make(&two, &id), kinds[k].refusal);
	l->session[kinds[k].kind] = FEW; /* root has the limit of its session only */
	program_open_as(w, &one, 0);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(kinds[k].make(&one, &id), 0);
	assert_int_equal(kinds[k].make(&one, &id), kinds[k].refusal);
}

static void quota__of_a_user(void **state)
{
	struct test_daemon *d = ((struct world *)*state)->d;

	for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
		of_a_user(*state, k);
		world_teardown(state); /* the sessions end with rocid */
		*state = d;
		world_setup(state);
	}
}

/* A command that is refused for another reason costs nothing. */
static void quota__of_refusals(void **state)
{
	struct world *w = *state;
	const uint64_t *used = w->ctl->sessions->quota.used;
	struct program p;
	uint32_t qpn, id;

	program_open_as(w, &p, 1001);
	id = program_serve(&p, 7001, 1);
	assert_int_equal(program_listen(&p, id, 1), -EINVAL);
	id = program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	assert_int_equal(program_bind(&p, id, gid_any4, 7001), -EADDRNOTAVAIL);
	assert_int_equal(used[CTL_CM_PORTS], 1);
	assert_int_equal(used[CTL_LISTENERS], 1);
	id = program_resolve(&p, 7000);
	assert_int_equal(used[CTL_CM_EVENTS], 0); /* it was read */
	qpn = p.qpn;
	p.qpn = 0x123;
	assert_int_equal(program_connect(&p, id), -EINVAL);
	assert_int_equal(used[CTL_CONNECTIONS], 0);
	p.qpn = qpn;
	assert_int_equal(program_connect(&p, id), 0);
	assert_int_equal(used[CTL_CONNECTIONS], 1);
	w->nout = 0;
	program_die(&p);
	w->nout = 0;
	world_is_empty(w);
}

/* A listener whose user has all that he may have refuses, and those of others do not. */
static void requests(struct world *w, enum ctl_kind kind, unsigned taken)
{
	struct program p, other;

	program_open_as(w, &p, 1001);
	program_open_as(w, &other, 1002);
	program_serve(&p, 7001, 100);
	program_serve(&other, 7002, 100);
	w->ctl->sessions->quota.limits.user[kind] = FEW + taken;
	for (uint32_t i = 0; i < 2 * FEW; i++)
		peer_connect(w, TCP(7001), 0x100 + i);
	peer_connect(w, TCP(7002), 0x55);
	world_run(w);
	assert_int_equal(world_refused(w, CM_REJ_NO_RESOURCES), FEW);
	for (unsigned i = 0; i < FEW; i++)
		program_take(&p, ABI_CM_CONNECT_REQUEST);
	program_take(&other, ABI_CM_CONNECT_REQUEST);
	assert_false(program_readable(&p));
	program_die(&p);
	program_die(&other);
	world_run(w);
	world_is_empty(w);
}

static void quota__ids_of_requests(void **state)
{
	requests(*state, CTL_CM_IDS, 1);
}

static void quota__connections_of_requests(void **state)
{
	requests(*state, CTL_CONNECTIONS, 0);
}

static void quota__unanswered_requests(void **state)
{
	requests(*state, CTL_CM_REQUESTS, 0);
}

static uint64_t unanswered(const struct world *w)
{
	return w->ctl->sessions->quota.used[CTL_CM_REQUESTS];
}

/* The listener's program has an unanswered request, which it has read. */
static uint32_t asked(struct world *w, struct program *p, uint32_t qpn, uint32_t *peers)
{
	*peers = peer_connect(w, TCP(7001), qpn);
	world_run(w);
	assert_int_equal(unanswered(w), 1);
	return program_take(p, ABI_CM_CONNECT_REQUEST).id;
}

/* A request is charged as long as it waits for an answer, whatever that is. */
static void quota__answers(void **state)
{
	struct world *w = *state;
	struct abi_cm_reject no = {.reason = 0};
	struct program p;
	uint32_t id, peers;

	program_open_as(w, &p, 1001);
	program_serve(&p, 7001, 8);
	id = asked(w, &p, 0x100, &peers);
	assert_int_equal(program_accept(&p, id, 1), 0);
	assert_int_equal(unanswered(w), 0);
	no.id = asked(w, &p, 0x101, &peers);
	assert_int_equal(program_ask(&p, ABI_CM_REJECT, &no, sizeof(no), NULL, 0), 0);
	assert_int_equal(unanswered(w), 0);
	assert_int_equal(program_simple(&p, ABI_CM_DISCONNECT, asked(w, &p, 0x102, &peers)), 0);
	assert_int_equal(unanswered(w), 0);
	assert_int_equal(program_destroy(&p, asked(w, &p, 0x103, &peers), NULL), 0);
	assert_int_equal(unanswered(w), 0);
	id = asked(w, &p, 0x104, &peers);
	assert_int_equal(program_accept(&p, id + 1000, 1), -EINVAL);
	assert_int_equal(unanswered(w), 1);
	world_run(w);
	w->taken = w->nevents;
	assert_int_equal(cm_destroy(w->peer, peers, w->now), 0); /* the peer takes it back */
	world_run(w);
	assert_int_equal(unanswered(w), 0);
	program_take(&p, ABI_CM_REJECTED);
	program_die(&p);
	world_run(w);
	w->nout = 0;
}

/* A request that is refused for a limit is counted, and rocid says so to the listener's side, once
 * for all. */
static void quota__refused_requests(void **state)
{
	struct world *w = *state;
	const struct failure *f = w->ctl->failures->error;
	unsigned seen = 0;
	struct program p;
	struct cm_id *l;

	program_open_as(w, &p, 1001);
	l = handle_get(&w->all->ids, program_serve(&p, 7001, 100));
	w->ctl->sessions->quota.limits.user[CTL_CM_REQUESTS] = 1;
	for (uint32_t i = 0; i < 1 + FEW; i++)
		peer_connect(w, TCP(7001), 0x100 + i);
	world_run(w);
	assert_int_equal(cm_listener_refused(w->all->cm, l->listener), FEW);
	for (unsigned i = 0; i < FAILURES_MAX; i++)
		if (f[i].id) {
			assert_int_equal(f[i].uid, 1001);
			assert_int_equal(f[i].count, FEW);
			assert_string_equal(f[i].cause, "refused");
			assert_non_null(strstr(f[i].text, "unanswered CM requests"));
			assert_null(strstr(f[i].text, "10.0.0.2")); /* or each peer has a record */
			seen++;
		}
	assert_int_equal(seen, 1);
	program_die(&p);
	w->nout = 0;
}

/* MADs of a user's connections, on both sides, wait in that user's queue. */
static void quota__senders(void **state)
{
	struct world *w = *state;
	struct program p;
	uint32_t peers;

	program_open_as(w, &p, 1001);
	assert_int_equal(program_connect(&p, program_resolve(&p, 7000)), 0);
	assert_int_equal(w->out[0].path.sender, 1002);
	w->nout = 0;
	program_serve(&p, 7001, 8);
	assert_int_equal(program_accept(&p, asked(w, &p, 0x100, &peers), 1), 0);
	assert_int_equal(w->out[0].path.sender, 1002);
	w->nout = 0;
	program_die(&p);
	w->nout = 0;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		T(quota__of_a_user),
		T(quota__of_refusals),
		T(quota__ids_of_requests),
		T(quota__connections_of_requests),
		T(quota__unanswered_requests),
		T(quota__answers),
		T(quota__refused_requests),
		T(quota__senders),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
