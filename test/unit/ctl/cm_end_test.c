/* SPDX-License-Identifier: BSD-3-Clause */
/* Work for many ids is done in steps, with other work in between: the end of a session, CLOSE,
 * DESTROY_ID of a listener, timers, changed addresses. */
#include "cm_world.h"
#include <sys/socket.h>
#include <unistd.h>
#include "net/net.h"
#include "session/job.h"
#include "session/sessions.h"

#define MANY 150u /* two full steps, and a third */

static uint32_t ids(const struct world *w)
{
	return w->all->ids.used;
}

/* A program with MANY connections, whose peer has accepted them. */
static void connect_many(struct world *w, struct program *p)
{
	struct cm_param param = {.qpn = 0x77, .psn = 1, .responder_resources = 4};
	uint32_t listener;

	assert_int_equal(cm_listen(w->peer, TCP(7000), NULL, MANY, 0, &listener), 0);
	program_open(w, p);
	for (unsigned i = 0; i < MANY; i++) {
		uint32_t id = program_resolve(p, 7000);

		program_qp(p);
		param.qpn++;
		assert_int_equal(program_connect(p, id), 0);
		world_run(w);
		assert_int_equal(
			cm_accept(w->peer, peer_take(w, CM_EV_REQ)->id, &param, 0, w->now), 0);
		world_run(w);
		program_take(p, ABI_CM_CONNECT_RESPONSE);
		assert_int_equal(program_accept(p, id, 0), 0);
		world_run(w);
		peer_take(w, CM_EV_ESTABLISHED);
	}
}

/* A listener with MANY requests that its program has not read. */
static uint32_t serve_many(struct world *w, struct program *p)
{
	unsigned before = ids(w);
	uint32_t id = program_serve(p, 7001, MANY);

	for (unsigned i = 0; i < MANY; i++)
		peer_connect(w, TCP(7001), 0x100 + i);
	world_run(w);
	assert_int_equal(ids(w), before + 1 + MANY);
	return id;
}

static unsigned unread(struct program *p)
{
	struct abi_cm_event e;
	unsigned n = 0;

	while (program_event(p, &e))
		n++;
	return n;
}

/* Ends it as far as its ids; step by step. @return the steps that found ids */
static unsigned end_ids(struct world *w, struct program *p)
{
	unsigned steps = 0;

	for (; ids(w); steps++) {
		uint32_t before = ids(w);

		sessions_close_some(w->ctl);
		assert_in_range(before - ids(w), 1, CM_STEP);
	}
	while (sessions_close_some(w->ctl))
		;
	close(p->sock);
	close(p->fd);
	return steps;
}

/* Each step sends DREQs to the peers of its ids, and gives back their charges. */
static void end__connections(void **state)
{
	struct world *w = *state;
	struct program p;

	connect_many(w, &p);
	session_begin_close(p.s);
	assert_int_equal(ids(w), MANY);
	assert_true(sessions_close_some(w->ctl));
	assert_int_equal(w->ctl->sessions->quota.used[CTL_CONNECTIONS], MANY - CM_STEP);
	assert_int_equal(w->ctl->sessions->quota.used[CTL_CM_IDS], MANY - CM_STEP);
	assert_int_equal(world_sent(w, CM_DREQ), CM_STEP);
	assert_int_equal(end_ids(w, &p), 2);
	assert_int_equal(world_sent(w, CM_DREQ), MANY);
	world_run(w);
	for (unsigned i = 0; i < MANY; i++)
		peer_take(w, CM_EV_DISCONNECTED);
	world_is_empty(w);
}

/* Nobody hears what happens to a session that is ending; its peers end all the same. */
static void end__no_events(void **state)
{
	struct world *w = *state;
	struct cm_channel *ch;
	struct program p;

	connect_many(w, &p);
	ch = handle_get(&w->all->channels, p.channel);
	session_begin_close(p.s);
	for (unsigned i = 0; i < w->nevents; i++)
		if (w->event[i].type == CM_EV_ESTABLISHED)
			cm_disconnect(w->peer, w->event[i].id, NULL, 0, w->now);
	world_run(w);
	w->ctl->net->port[0].gids.table.entry[0].valid = false;
	connections_addresses_changed(w->ctl, 0);
	world_poll(w);
	assert_true(list_empty(&ch->events));
	assert_false(program_readable(&p));
	w->ctl->net->port[0].gids.table.entry[0].valid = true;
	end_ids(w, &p);
	world_run(w);
	for (unsigned i = 0; i < MANY; i++)
		peer_take(w, CM_EV_DISCONNECTED);
	world_is_empty(w);
}

/* The port of a listener is free as soon as its session ends, and no new request reaches it. */
static void end__listener(void **state)
{
	struct world *w = *state;
	struct program p, other;

	program_open(w, &p);
	program_open(w, &other);
	program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 1); /* before it in the list */
	program_serve(&p, 7003, MANY);
	assert_int_equal(
		program_destroy(&p, program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 1), NULL), 0);
	for (unsigned i = 0; i < MANY; i++)
		peer_connect(w, TCP(7003), 0x100 + i);
	world_run(w);
	assert_int_equal(cm_half_open(w->all->cm), MANY);
	session_begin_close(p.s);
	peer_connect(w, TCP(7003), 0x99);
	world_run(w);
	assert_int_equal(peer_take(w, CM_EV_REJECTED)->reason, CM_REJ_INVALID_SERVICE_ID);
	program_serve(&other, 7003, 0);
	peer_connect(w, TCP(7003), 0x9A);
	world_run(w);
	program_take(&other, ABI_CM_CONNECT_REQUEST);
	session_close(other.s);
	close(other.sock);
	close(other.fd);
	world_run(w);
	assert_int_equal(peer_take(w, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
	assert_int_equal(end_ids(w, &p), 3);
	world_run(w);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(peer_take(w, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
	world_is_empty(w);
}

/* A session that has the place of one that is ending has nothing to do with it. */
static void end__same_slot(void **state)
{
	struct world *w = *state;
	uint32_t slot, id;
	struct program p, next;

	connect_many(w, &p);
	slot = p.s->slot;
	session_begin_close(p.s);
	program_open(w, &next);
	assert_int_equal(next.s->slot, slot);
	id = program_id(&next, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	assert_true(sessions_close_some(w->ctl));
	while (sessions_close_some(w->ctl))
		;
	assert_int_equal(ids(w), 1);
	assert_int_equal(program_destroy(&next, id, NULL), 0);
	close(p.sock);
	close(p.fd);
	program_die(&next);
	world_run(w);
}

/* --- commands --------------------------------------------------------------------------------- */

static int begin(struct program *p, uint32_t type, uint32_t handle, struct reply *r)
{
	const struct abi_handle in = {.handle = handle};
	struct request q = {.msg = {.type = type}, .body_len = sizeof(in), .fd = -1};

	*r = (struct reply){0};
	memcpy(q.body, &in, sizeof(in));
	return p->w->ctl->sessions->ops->run(p->s, &q, r);
}

/* Reads the reply to a command that was deferred. */
static void replied(struct program *p, void *body, size_t len)
{
	uint8_t bytes[ABI_MSG_MAX];
	struct abi_msg msg;
	ssize_t n = recv(p->sock, bytes, sizeof(bytes), MSG_DONTWAIT);

	assert_int_equal(n, sizeof(msg) + len);
	memcpy(&msg, bytes, sizeof(msg));
	assert_int_equal(msg.status, 0);
	if (len)
		memcpy(body, bytes + sizeof(msg), len);
}

/* Others connect while the requests of a listener are rejected. */
static void destroy__listener(void **state)
{
	struct world *w = *state;
	struct abi_cm_destroyed out;
	struct program p, other;
	struct reply r;
	uint32_t id;

	program_open(w, &p);
	program_open(w, &other);
	id = serve_many(w, &p);
	program_take(&p, ABI_CM_CONNECT_REQUEST);
	assert_int_equal(begin(&p, ABI_CM_DESTROY_ID, id, &r), DEFERRED);
	assert_int_equal(ids(w), 1 + MANY - CM_STEP);
	assert_int_equal(w->ctl->sessions->quota.used[CTL_LISTENERS], 1);
	peer_connect(w, TCP(7001), 0x99);
	world_run(w);
	for (unsigned i = 0; i < CM_STEP; i++)
		assert_int_equal(peer_take(w, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
	assert_int_equal(peer_take(w, CM_EV_REJECTED)->reason, CM_REJ_INVALID_SERVICE_ID);
	assert_true(jobs_poll(w->ctl));
	assert_int_equal(ids(w), 1 + MANY - 2 * CM_STEP);
	assert_false(jobs_poll(w->ctl));
	assert_int_equal(ids(w), 1); /* that which was read */
	replied(&p, &out, sizeof(out));
	assert_int_equal(out.events_reported, 1);
	assert_int_equal(unread(&p), 0);
	program_die(&p);
	program_die(&other);
	world_run(w);
	world_is_empty(w);
}

static void close__many(void **state)
{
	struct world *w = *state;
	struct program p;
	struct reply r;

	connect_many(w, &p);
	assert_int_equal(begin(&p, ABI_CM_CLOSE, p.channel, &r), DEFERRED);
	assert_int_equal(world_sent(w, CM_DREQ), CM_STEP);
	assert_true(jobs_poll(w->ctl));
	assert_int_equal(world_sent(w, CM_DREQ), 2 * CM_STEP);
	assert_false(jobs_poll(w->ctl));
	assert_int_equal(w->all->channels.used, 0);
	replied(&p, NULL, 0);
	program_die(&p);
	world_run(w);
	world_is_empty(w);
}

/* Listeners whose turn has not come take no requests either. */
static void close__listeners(void **state)
{
	struct world *w = *state;
	struct program p;
	struct reply r;

	program_open(w, &p);
	program_serve(&p, 7002, 10);
	serve_many(w, &p); /* the newest ends first */
	assert_int_equal(begin(&p, ABI_CM_CLOSE, p.channel, &r), DEFERRED);
	peer_connect(w, TCP(7002), 0x99);
	world_run(w);
	for (unsigned i = 0; i < CM_STEP; i++)
		assert_int_equal(peer_take(w, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
	assert_int_equal(peer_take(w, CM_EV_REJECTED)->reason, CM_REJ_INVALID_SERVICE_ID);
	while (jobs_poll(w->ctl))
		;
	replied(&p, NULL, 0);
	program_die(&p);
	world_run(w);
	world_is_empty(w);
}

/* A program that ends meanwhile */
static void close__ends(void **state)
{
	struct world *w = *state;
	struct program p;
	struct reply r;

	connect_many(w, &p);
	assert_int_equal(begin(&p, ABI_CM_CLOSE, p.channel, &r), DEFERRED);
	program_die(&p);
	assert_false(jobs_poll(w->ctl));
	assert_int_equal(world_sent(w, CM_DREQ), MANY);
	world_run(w);
	world_is_empty(w);
}

/* --- what is due ------------------------------------------------------------------------------ */

/* Requests to a host that does not answer end at the same time. */
static void expire__requests(void **state)
{
	struct world *w = *state;
	struct program p;

	program_open(w, &p);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(program_connect(&p, program_resolve(&p, 7000)), 0);
	assert_int_equal(world_sent(w, CM_REQ), MANY);
	w->now += 10000 * MS;
	assert_int_equal(connections_poll(w->ctl), 0);
	assert_int_equal(world_sent(w, CM_REQ), MANY + CM_STEP);
	assert_int_equal(connections_poll(w->ctl), 0);
	assert_int_equal(world_sent(w, CM_REQ), MANY + 2 * CM_STEP);
	assert_true(connections_poll(w->ctl) > 0);
	assert_int_equal(world_sent(w, CM_REQ), 2 * MANY);
	w->nout = 0;
	program_die(&p);
	w->nout = 0;
	world_is_empty(w);
}

static void set_valid(struct world *w, bool valid)
{
	w->ctl->net->port[0].gids.table.entry[0].valid = valid;
	connections_addresses_changed(w->ctl, 0);
}

/* An address that changes during a round has another round. */
static void addresses__steps(void **state)
{
	struct world *w = *state;
	struct program p;

	program_open(w, &p);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(
			program_bind(&p, program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, i), gid_own4, 0),
			0);
	set_valid(w, false);
	assert_int_equal(unread(&p), 0);
	assert_int_equal(connections_poll(w->ctl), 0);
	assert_int_equal(unread(&p), CM_STEP);
	set_valid(w, true);
	set_valid(w, false);
	set_valid(w, true);
	while (!connections_poll(w->ctl))
		;
	assert_int_equal(unread(&p), 0);
	set_valid(w, false);
	world_poll(w);
	assert_int_equal(unread(&p), MANY); /* all had been found to be there again */
	program_die(&p);
	world_is_empty(w);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		T(end__connections),
		T(end__no_events),
		T(end__listener),
		T(end__same_slot),
		T(destroy__listener),
		T(close__many),
		T(close__listeners),
		T(close__ends),
		T(expire__requests),
		T(addresses__steps),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
