/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of programs from both sides, events and how they count, and programs that die in each
 * state: the peer hears of it, and nothing of them is left. */
#include <errno.h>
#include "cm_world.h"
#include "net/net.h"
#include "session/account.h"
#include "session/failures.h"

/* --- how far a connection comes ------------------------------------------------------- */

enum stage {
	NEW,
	RESOLVED,
	REQ_SENT,
	REP_RCVD,
	ACTIVE,
	ACTIVE_LEAVING, /* DREQ sent */
	ACTIVE_LEFT,	/* the peer sent DREQ */
	LISTENING,
	REQ_UNREAD,
	REQ_READ,
	REP_SENT,
	PASSIVE,
	PASSIVE_LEAVING,
	PASSIVE_LEFT,
	REJECTED,
	STAGES,
};

struct life {
	struct world *w;
	struct program p;
	uint32_t id;	/* of the connection */
	uint32_t other; /* the peer's */
};

static void peer_accepts(struct life *l)
{
	const struct cm_param p = {.qpn = 0x77, .psn = 0x424242, .responder_resources = 4};

	l->other = peer_take(l->w, CM_EV_REQ)->id;
	assert_int_equal(cm_accept(l->w->peer, l->other, &p, 0, l->w->now), 0);
	world_run(l->w);
	program_take(&l->p, ABI_CM_CONNECT_RESPONSE);
}

static void active(struct life *l, enum stage to)
{
	uint32_t listener;

	assert_int_equal(cm_listen(l->w->peer, TCP(7000), NULL, 8, 0, &listener), 0);
	l->id = program_resolve(&l->p, 7000);
	if (to == RESOLVED)
		return;
	assert_int_equal(program_connect(&l->p, l->id), 0);
	world_run(l->w);
	if (to == REQ_SENT)
		return;
	peer_accepts(l);
	if (to == REP_RCVD)
		return;
	assert_int_equal(program_accept(&l->p, l->id, 0), 0); /* RTU */
	world_run(l->w);
	peer_take(l->w, CM_EV_ESTABLISHED);
	if (to == ACTIVE_LEAVING) {
		assert_int_equal(program_simple(&l->p, ABI_CM_DISCONNECT, l->id), 0);
		world_run(l->w);
		peer_take(l->w, CM_EV_DISCONNECTED);
	} else if (to == ACTIVE_LEFT) {
		assert_int_equal(cm_disconnect(l->w->peer, l->other, NULL, 0, l->w->now), 0);
		world_run(l->w);
		program_take(&l->p, ABI_CM_DISCONNECTED);
	}
}

static void passive(struct life *l, enum stage to)
{
	struct abi_cm_reject reject = {.private_len = 2, .private_data = "no"};

	program_serve(&l->p, 7001, 0);
	if (to == LISTENING)
		return;
	l->other = peer_connect(l->w, TCP(7001), 0x55);
	world_run(l->w);
	if (to == REQ_UNREAD)
		return;
	l->id = program_take(&l->p, ABI_CM_CONNECT_REQUEST).id;
	if (to == REJECTED) {
		reject.id = l->id;
		assert_int_equal(
			program_ask(&l->p, ABI_CM_REJECT, &reject, sizeof(reject), NULL, 0), 0);
		world_run(l->w);
		assert_memory_equal(peer_take(l->w, CM_EV_REJECTED)->private_data, "no", 2);
	}
	if (to == REQ_READ || to == REJECTED)
		return;
	assert_int_equal(program_accept(&l->p, l->id, 3), 0);
	world_run(l->w);
	peer_take(l->w, CM_EV_REP);
	if (to == REP_SENT)
		return;
	assert_int_equal(cm_rtu(l->w->peer, l->other, NULL, 0, l->w->now), 0);
	world_run(l->w);
	assert_int_equal(program_take(&l->p, ABI_CM_ESTABLISHED).uid, 3);
	if (to == PASSIVE_LEAVING) {
		assert_int_equal(program_simple(&l->p, ABI_CM_DISCONNECT, l->id), 0);
		world_run(l->w);
		peer_take(l->w, CM_EV_DISCONNECTED);
	} else if (to == PASSIVE_LEFT) {
		assert_int_equal(cm_disconnect(l->w->peer, l->other, NULL, 0, l->w->now), 0);
		world_run(l->w);
		program_take(&l->p, ABI_CM_DISCONNECTED);
	}
}

static void come(struct life *l, struct world *w, enum stage to)
{
	l->w = w;
	program_open(w, &l->p);
	if (to == NEW)
		l->id = program_id(&l->p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	else if (to < LISTENING)
		active(l, to);
	else
		passive(l, to);
}

static int state_of(const struct life *l)
{
	const struct cm_id *id = handle_get(&l->w->all->ids, l->id);

	assert_non_null(id);
	return cm_state_of(l->w->all->cm, id->conn);
}

/* --- death ---------------------------------------------------------------------------- */

/* The message that the peer gets, at once. */
static void heard(struct life *l, enum stage at)
{
	switch (at) {
	case REQ_SENT: /* our REJ 4: its user has not answered yet */
		peer_take(l->w, CM_EV_REQ);
		assert_int_equal(peer_take(l->w, CM_EV_REJECTED)->reason, CM_REJ_TIMEOUT);
		break;
	case REP_RCVD:
	case REQ_UNREAD:
	case REQ_READ:
	case REP_SENT:
		assert_int_equal(peer_take(l->w, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
		break;
	case ACTIVE:
	case PASSIVE:
	case ACTIVE_LEFT: /* the DREP that it waits for */
	case PASSIVE_LEFT:
		peer_take(l->w, CM_EV_DISCONNECTED);
		break;
	default:
		break;
	}
	assert_int_equal(l->w->taken, l->w->nevents);
}

static void die__in_each_state(void **state)
{
	struct test_daemon *d = ((struct world *)*state)->d;

	for (enum stage at = NEW; at < STAGES; at++) {
		struct life l;

		come(&l, *state, at);
		program_die(&l.p);
		world_run(l.w);
		heard(&l, at);
		world_is_empty(l.w);
		world_teardown(state);
		*state = d;
		world_setup(state);
	}
}

/* The same where the program lives and destroys the id. */
static void destroy__in_each_state(void **state)
{
	struct test_daemon *d = ((struct world *)*state)->d;

	for (enum stage at = NEW; at < STAGES; at++) {
		struct life l;

		come(&l, *state, at);
		if (at != LISTENING && at != REQ_UNREAD) {
			assert_int_equal(program_destroy(&l.p, l.id, NULL), 0);
			world_run(l.w);
			heard(&l, at);
		}
		program_die(&l.p);
		world_run(l.w);
		world_is_empty(l.w);
		world_teardown(state);
		*state = d;
		world_setup(state);
	}
}

/* A listener that goes rejects connections not yet reported. Accepted ones are the program's, as in
 * Linux: it may accept without the listener. */
static void unlisten__what_waits(void **state)
{
	struct world *w = *state;
	uint32_t listener, id, reported;
	struct program p;

	program_open(w, &p);
	listener = program_serve(&p, 7001, 0);
	peer_connect(w, TCP(7001), 0x55);
	peer_connect(w, TCP(7001), 0x56);
	world_run(w);
	id = program_take(&p, ABI_CM_CONNECT_REQUEST).id;
	assert_int_equal(program_destroy(&p, listener, &reported), 0);
	assert_int_equal(reported, 1);
	assert_int_equal(w->all->ids.used, 1);
	assert_false(program_readable(&p));
	world_run(w);
	assert_int_equal(peer_take(w, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
	assert_int_equal(w->taken, w->nevents);
	assert_int_equal(program_accept(&p, id, 3), 0);
	world_run(w);
	peer_take(w, CM_EV_REP);
	program_die(&p);
	world_run(w);
	world_is_empty(w);
}

/* The peer gives up before the program has answered: to accept fails then. */
static void request__withdrawn(void **state)
{
	struct abi_cm_event e;
	struct life l;

	come(&l, *state, REQ_READ);
	assert_int_equal(cm_destroy(l.w->peer, l.other, l.w->now), 0);
	world_run(l.w);
	e = program_take(&l.p, ABI_CM_REJECTED);
	assert_int_equal(e.id, l.id);
	assert_int_equal(e.status, CM_REJ_TIMEOUT);
	assert_int_equal(program_accept(&l.p, l.id, 3), -EINVAL);
	program_die(&l.p);
	world_is_empty(l.w);
}

/* Before the program has read it, it leaves nothing: no event, and nothing that counts. */
static void request__withdrawn_unread(void **state)
{
	struct abi_cm_event e;
	struct life l;

	come(&l, *state, REQ_UNREAD);
	assert_int_equal(cm_destroy(l.w->peer, l.other, l.w->now), 0);
	world_run(l.w);
	for (unsigned i = 0; i < 3; i++) {
		l.other = peer_connect(l.w, TCP(7001), 0x55);
		world_run(l.w);
		assert_true(program_readable(&l.p));
		assert_int_equal(cm_destroy(l.w->peer, l.other, l.w->now), 0);
		world_run(l.w);
	}
	assert_false(program_event(&l.p, &e));
	assert_false(program_readable(&l.p));
	assert_int_equal(l.p.s->account->used[CTL_CONNECTIONS], 0);
	assert_int_equal(l.p.s->account->used[CTL_CM_IDS], 1); /* the listener */
	program_die(&l.p);
	world_is_empty(l.w);
}

/* The peer takes its REP back: that is a refusal, as in Linux. */
static void rejected__after_the_rep(void **state)
{
	struct abi_cm_event e;
	struct life l;

	come(&l, *state, REP_RCVD);
	assert_int_equal(cm_reject(l.w->peer, l.other, CM_REJ_CONSUMER, "no", 2, l.w->now), 0);
	world_run(l.w);
	e = program_take(&l.p, ABI_CM_REJECTED);
	assert_int_equal(e.status, CM_REJ_CONSUMER);
	assert_memory_equal(e.param.private_data, "no", 2);
	assert_int_equal(program_accept(&l.p, l.id, 0), -EINVAL);
	program_die(&l.p);
	world_is_empty(l.w);
}

/* A REJ ends an established connection, too, and the program hears its reason, as by Linux. There,
 * no TIMEWAIT_EXIT follows a rejection. */
static void rejected__established(void **state)
{
	struct abi_cm_event e;
	uint8_t mad[MAD_LEN];
	const struct cm_id *id;
	struct life l;

	come(&l, *state, ACTIVE);
	id = handle_get(&l.w->all->ids, l.id);
	mad_begin(mad, CM_REJ, 1);
	cm_put(mad, CM_F_REJ_LOCAL_ID, l.other);
	cm_put(mad, CM_F_REJ_REMOTE_ID, id->conn);
	cm_put(mad, CM_F_REJ_REASON, CM_REJ_CONSUMER);
	cm_put_bytes(mad, CM_F_REJ_PRIVATE, "no", 2);
	world_give(l.w, &id->path, mad);
	e = program_take(&l.p, ABI_CM_REJECTED);
	assert_int_equal(e.status, CM_REJ_CONSUMER);
	assert_memory_equal(e.param.private_data, "no", 2);
	assert_int_equal(state_of(&l), CM_TIMEWAIT);
	world_pass(l.w, 10 * 1000);
	assert_int_equal(state_of(&l), CM_IDLE);
	assert_false(program_readable(&l.p));
	program_die(&l.p);
}

/* The same of a REQ that the peer refuses as stale, after which the QPN rests. */
static void rejected__stale(void **state)
{
	struct life l;

	come(&l, *state, REQ_SENT);
	l.other = peer_take(l.w, CM_EV_REQ)->id;
	assert_int_equal(cm_reject(l.w->peer, l.other, CM_REJ_STALE_CONN, NULL, 0, l.w->now), 0);
	world_run(l.w);
	assert_int_equal(program_take(&l.p, ABI_CM_REJECTED).status, CM_REJ_STALE_CONN);
	assert_int_equal(state_of(&l), CM_TIMEWAIT);
	world_pass(l.w, 10 * 1000);
	assert_int_equal(state_of(&l), CM_IDLE);
	assert_false(program_readable(&l.p));
	program_die(&l.p);
}

/* DISCONNECTED says whether the peer answered, and TIMEWAIT_EXIT follows it. */
static void disconnected__status(void **state)
{
	struct world *w = *state;
	struct life l;

	come(&l, w, ACTIVE_LEFT);
	assert_int_equal(program_simple(&l.p, ABI_CM_DISCONNECT, l.id), 0);
	world_pass(w, 10 * 1000);
	program_take(&l.p, ABI_CM_TIMEWAIT_EXIT);
	program_die(&l.p);
	w->taken = w->nevents;
	come(&l, w, PASSIVE);
	assert_int_equal(program_simple(&l.p, ABI_CM_DISCONNECT, l.id), 0);
	w->deaf = true;
	world_pass(w, 100 * 1000);
	assert_int_equal(program_take(&l.p, ABI_CM_DISCONNECTED).status, -ETIMEDOUT);
	program_take(&l.p, ABI_CM_TIMEWAIT_EXIT);
	program_die(&l.p);
}

/* A program that disconnects before the RTU has come waits for the event of it. */
static void disconnected__before_the_rtu(void **state)
{
	struct life l;

	come(&l, *state, REP_SENT);
	assert_int_equal(program_simple(&l.p, ABI_CM_DISCONNECT, l.id), 0);
	assert_int_equal(program_take(&l.p, ABI_CM_DISCONNECTED).status, 0);
	world_run(l.w);
	assert_int_equal(peer_take(l.w, CM_EV_REJECTED)->reason, CM_REJ_CONSUMER);
	assert_int_equal(program_simple(&l.p, ABI_CM_DISCONNECT, l.id), 0);
	assert_false(program_readable(&l.p));
	program_die(&l.p);
	world_is_empty(l.w);
}

/* --- events --------------------------------------------------------------------------- */

/* A CONNECT_REQUEST counts to the listener, the others to their id. */
static void events__count(void **state)
{
	struct world *w = *state;
	struct abi_cm_event e;
	uint32_t listener, reported;
	struct program p;

	program_open(w, &p);
	listener = program_serve(&p, 7001, 0);
	for (unsigned i = 0; i < 3; i++)
		peer_connect(w, TCP(7001), 0x55 + i);
	world_run(w);
	for (unsigned i = 0; i < 2; i++) {
		e = program_take(&p, ABI_CM_CONNECT_REQUEST);
		assert_int_equal(e.listener, listener);
		assert_int_equal(e.uid, 1);
		assert_int_equal(e.param.qpn, 0x55 + i);
		assert_int_equal(program_destroy(&p, e.id, &reported), 0);
		assert_int_equal(reported, 0);
	}
	assert_true(program_readable(&p));
	assert_int_equal(program_destroy(&p, listener, &reported), 0);
	assert_int_equal(reported, 2);
	assert_false(program_readable(&p));
	program_die(&p);
}

/* Unread events move with their id, and requests with their listener. */
static void events__migrate(void **state)
{
	struct world *w = *state;
	struct abi_cm_migrate in;
	struct abi_cm_destroyed out;
	struct abi_cm_event e;
	struct program p, q;

	program_open(w, &p);
	program_open(w, &q);
	in.id = program_serve(&p, 7001, 0);
	peer_connect(w, TCP(7001), 0x55);
	peer_connect(w, TCP(7001), 0x56);
	world_run(w);
	in.channel = q.channel; /* of another session */
	assert_int_equal(
		program_ask(&p, ABI_CM_MIGRATE_ID, &in, sizeof(in), &out, sizeof(out)), -EINVAL);
	{
		const uint32_t first = p.channel;
		const int fd = p.fd;
		struct abi_handle_reply made;

		assert_int_equal(program_ask(&p, ABI_CM_OPEN, NULL, 0, &made, sizeof(made)), 0);
		in.channel = made.handle;
		assert_int_equal(
			program_ask(&p, ABI_CM_MIGRATE_ID, &in, sizeof(in), &out, sizeof(out)), 0);
		assert_false(program_readable(&p));
		p.channel = in.channel;
		for (unsigned i = 0; i < 2; i++) {
			assert_true(program_event(&p, &e));
			assert_int_equal(e.event, ABI_CM_CONNECT_REQUEST);
			assert_int_equal(e.param.qpn, 0x55 + i);
		}
		/* the first channel has nothing to do with them any more */
		p.channel = first;
		p.fd = fd;
		assert_int_equal(program_simple(&p, ABI_CM_CLOSE, first), 0);
		assert_int_equal(program_accept(&p, e.id, 9), 0);
	}
	world_run(w);
	peer_take(w, CM_EV_REP);
	program_die(&p);
	program_die(&q);
	world_run(w);
	world_is_empty(w);
}

/* A program that does not read cannot fill our memory. */
static void events__unread(void **state)
{
	struct world *w = *state;
	struct abi_cm_resolve_addr in = {.timeout_ms = 100, .dst = world_addr(gid_unknown4, 1)};
	struct abi_cm_join join = {.addr = world_addr(gid_any4, 0)};
	struct abi_handle_reply made;
	struct program p;
	int err = 0;

	program_open(w, &p);
	in.id = program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	for (unsigned i = 0; i < CM_UNREAD_MAX; i++)
		assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), -ENOBUFS);
	assert_int_equal(program_take(&p, ABI_CM_ADDR_ERROR).status, -ETIMEDOUT);
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), 0);
	join.id = program_id(&p, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	assert_int_equal(program_bind(&p, join.id, gid_own4, 0), 0);
	join.addr.ip[12] = 239;
	for (unsigned i = 0; !err && i < 2 * CM_UNREAD_MAX; i++)
		err = program_ask(&p, ABI_CM_JOIN, &join, sizeof(join), &made, sizeof(made));
	assert_int_equal(err, -ENOBUFS);
	program_die(&p);
	world_is_empty(w);
}

/* Ten thousand idle connections cost no timer work. */
static void idle__no_timer(void **state)
{
	struct life active_one, passive_one;

	come(&active_one, *state, ACTIVE);
	come(&passive_one, *state, PASSIVE);
	assert_int_equal(connections_poll(active_one.w->ctl), -1);
	assert_int_equal(program_simple(&passive_one.p, ABI_CM_DISCONNECT, passive_one.id), 0);
	assert_in_range(connections_poll(active_one.w->ctl), 1, 60000);
	program_die(&active_one.p);
	program_die(&passive_one.p);
	world_run(active_one.w);
}

static void changed(struct world *w, uint32_t port)
{
	connections_addresses_changed(w->ctl, port);
	world_poll(w);
}

/* An address that goes: its ids hear of it, once, and no others. */
static void address__gone(void **state)
{
	struct world *w = *state;
	bool *valid = &w->ctl->net->port[0].gids.table.entry[0].valid;
	struct program p;
	uint32_t six, four;

	program_open(w, &p);
	program_serve(&p, 7001, 0);
	four = program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 4);
	six = program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 6);
	assert_int_equal(program_bind(&p, four, gid_own4, 7002), 0);
	assert_int_equal(program_bind(&p, six, gid_own6, 7002), 0);
	assert_memory_equal(w->ctl->net->port[0].gids.table.entry[0].gid, gid_own4, 16);
	changed(w, 0);
	assert_false(program_readable(&p));
	*valid = false;
	changed(w, 1); /* another port */
	assert_false(program_readable(&p));
	for (unsigned i = 0; i < 2; i++)
		changed(w, 0);
	{
		struct abi_cm_event e = program_take(&p, ABI_CM_ADDR_CHANGE);

		assert_int_equal(e.uid, 4);
		assert_int_equal(e.status, 0);
		assert_non_null(strstr(e.why, "10.0.0.1"));
	}
	assert_false(program_readable(&p));
	*valid = true; /* it comes and goes again */
	changed(w, 0);
	*valid = false;
	changed(w, 0);
	program_take(&p, ABI_CM_ADDR_CHANGE);
	program_die(&p);
	world_is_empty(w);
}

/* No address can be resolved from one that the id is bound to and that is gone: it is an event. */
static void resolve_addr__gone(void **state)
{
	struct world *w = *state;
	bool *valid = &w->ctl->net->port[0].gids.table.entry[0].valid;
	struct abi_cm_resolve_addr in = {.timeout_ms = 100, .dst = world_addr(gid_peer4, 1)};
	struct abi_cm_event e;
	struct program p;

	program_open(w, &p);
	in.id = program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	assert_int_equal(program_bind(&p, in.id, gid_own4, 7003), 0);
	*valid = false;
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), 0);
	e = program_take(&p, ABI_CM_ADDR_ERROR);
	assert_int_equal(e.status, -ENODEV);
	assert_non_null(strstr(e.why, "no longer has the address 10.0.0.1"));
	*valid = true;
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), 0);
	program_take(&p, ABI_CM_ADDR_RESOLVED);
	program_die(&p);
}

/* An address that comes and goes does not fill the memory with what nobody reads. */
static void address__flaps(void **state)
{
	struct world *w = *state;
	bool *valid = &w->ctl->net->port[0].gids.table.entry[0].valid;
	struct program p;

	program_open(w, &p);
	assert_int_equal(
		program_bind(&p, program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 1), gid_own4, 7004), 0);
	for (unsigned i = 0; i < 4 * CM_UNREAD_MAX; i++) {
		*valid = !*valid;
		changed(w, 0);
	}
	for (unsigned i = 0; i < CM_UNREAD_MAX; i++)
		program_take(&p, ABI_CM_ADDR_CHANGE);
	assert_false(program_readable(&p));
	program_die(&p);
}

/* A route cannot be resolved from an address that is gone. */
static void resolve_route__gone(void **state)
{
	struct world *w = *state;
	bool *valid = &w->ctl->net->port[0].gids.table.entry[0].valid;
	struct abi_cm_resolve_addr in = {.timeout_ms = 100, .dst = world_addr(gid_peer4, 1)};
	struct abi_cm_resolve_route route = {0};
	struct program p;

	program_open(w, &p);
	in.id = route.id = program_id(&p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), 0);
	*valid = false;
	assert_int_equal(
		program_ask(&p, ABI_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0), -ENODEV);
	*valid = true;
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0), 0);
	program_die(&p);
}

/* --- attributes, by which the QP is moved --------------------------------------------- */

static struct abi_cm_qp_attr attr_of(struct life *l, uint32_t state)
{
	const struct abi_cm_init_qp_attr in = {.id = l->id, .state = state};
	struct abi_cm_qp_attr out;

	assert_int_equal(
		program_ask(&l->p, ABI_CM_INIT_QP_ATTR, &in, sizeof(in), &out, sizeof(out)), 0);
	return out;
}

static int attr_refused(struct life *l, uint32_t state)
{
	const struct abi_cm_init_qp_attr in = {.id = l->id, .state = state};

	return program_ask(&l->p, ABI_CM_INIT_QP_ATTR, &in, sizeof(in), NULL, 0);
}

/* proves CM-24: the active side has what RTR and RTS need with the REP, before its RTU */
static void attributes__active(void **state)
{
	struct abi_cm_qp_attr a;
	struct life l;

	come(&l, *state, REQ_SENT);
	a = attr_of(&l, ABI_QPS_INIT);
	assert_int_equal(
		a.mask, ABI_QP_STATE | ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS);
	assert_int_equal(attr_refused(&l, ABI_QPS_RTR), -EINVAL);
	assert_int_equal(attr_refused(&l, ABI_QPS_RTS), -EINVAL);
	peer_accepts(&l);
	assert_int_equal(state_of(&l), CM_REP_RCVD);
	a = attr_of(&l, ABI_QPS_RTR);
	assert_int_equal(a.attr.dest_qpn, 0x77);
	assert_memory_equal(a.attr.ah.dgid, gid_peer4, 16);
	a = attr_of(&l, ABI_QPS_RTS);
	assert_int_equal(a.attr.sq_psn, 0x424242);
	assert_int_equal(world_sent(l.w, CM_RTU), 0); /* the program says when */
	assert_int_equal(program_accept(&l.p, l.id, 0), 0);
	assert_int_equal(world_sent(l.w, CM_RTU), 1);
	assert_int_equal(state_of(&l), CM_ESTABLISHED);
	program_die(&l.p);
}

/* proves CM-24: the passive side has them with the REQ, before its REP */
static void attributes__passive(void **state)
{
	struct abi_cm_qp_attr a;
	struct life l;

	come(&l, *state, REQ_READ);
	a = attr_of(&l, ABI_QPS_RTR);
	assert_int_equal(a.attr.dest_qpn, 0x55);
	a = attr_of(&l, ABI_QPS_RTS);
	assert_int_equal(a.attr.sq_psn, 0x654321);
	assert_int_equal(world_sent(l.w, CM_REP), 0);
	assert_int_equal(state_of(&l), CM_REQ_RCVD);
	program_die(&l.p);
}

/* As in Linux, what exceeds the 3 bits of a retry count is 7, which for RNR means for ever. */
static void retry_counts__active(void **state)
{
	struct abi_cm_connect in = {.param = {.retry_count = 8, .rnr_retry_count = 255}};
	struct abi_cm_qp_attr a;
	struct life l;
	uint32_t listener;

	come(&l, *state, NEW);
	assert_int_equal(cm_listen(l.w->peer, TCP(7000), NULL, 8, 0, &listener), 0);
	in.id = l.id = program_resolve(&l.p, 7000);
	in.param.qpn = l.p.qpn;
	assert_int_equal(program_ask(&l.p, ABI_CM_CONNECT, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(cm_get(l.w->out[0].mad, CM_F_REQ_RETRY), 7);
	assert_int_equal(cm_get(l.w->out[0].mad, CM_F_REQ_RNR_RETRY), 7);
	world_run(l.w);
	peer_accepts(&l);
	a = attr_of(&l, ABI_QPS_RTS);
	assert_int_equal(a.attr.retry_cnt, 7);
	program_die(&l.p);
}

static void retry_counts__passive(void **state)
{
	struct abi_cm_accept in = {.param = {.rnr_retry_count = 9}};
	struct life l;

	come(&l, *state, REQ_READ);
	in.id = l.id;
	in.param.qpn = l.p.qpn;
	assert_int_equal(program_ask(&l.p, ABI_CM_ACCEPT, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(cm_get(l.w->out[0].mad, CM_F_REP_RNR_RETRY), 7);
	program_die(&l.p);
}

/* --- what a person reads -------------------------------------------------------------- */

static const struct failure *logged(struct world *w, const char *cause)
{
	for (unsigned i = 0; i < FAILURES_MAX; i++) {
		const struct failure *f = &w->ctl->failures->error[i];

		if (f->id && !strcmp(f->cause, cause))
			return f;
	}
	return NULL;
}

/* proves CM-26: the REJ with its reason; `show errors` says what to do, once */
static void why__nobody_listens(void **state)
{
	struct world *w = *state;
	struct abi_cm_event e;
	struct program p;

	program_open(w, &p);
	for (unsigned i = 1; i < 4; i++) {
		uint32_t id = program_resolve(&p, 7999);

		assert_int_equal(program_connect(&p, id), 0);
		world_run(w);
		e = program_take(&p, ABI_CM_REJECTED);
		assert_int_equal(e.status, CM_REJ_INVALID_SERVICE_ID);
		assert_string_equal(e.why,
			"nobody listens on TCP port 7999 at 10.0.0.2: start the server, or check "
			"its port");
		assert_string_equal(logged(w, "rejected")->text, e.why);
		assert_int_equal(logged(w, "rejected")->count, i);
	}
	program_die(&p);
}

static void why__unreachable(void **state)
{
	struct world *w = *state;
	struct abi_cm_event e;
	struct program p;
	uint32_t id;

	program_open(w, &p);
	id = program_resolve(&p, 7999);
	assert_int_equal(program_connect(&p, id), 0);
	w->deaf = true;
	world_pass(w, 100 * 1000);
	e = program_take(&p, ABI_CM_UNREACHABLE);
	assert_int_equal(e.status, -ETIMEDOUT);
	assert_non_null(strstr(e.why, "10.0.0.2 did not answer the REQ on TCP port 7999"));
	assert_string_equal(logged(w, "unreachable")->text, e.why);
	program_die(&p);
}

static void why__no_service(void **state)
{
	struct world *w = *state;
	struct abi_cm_resolve_addr in = {.timeout_ms = 100, .dst = world_addr(gid_peer4, 7999)};
	struct abi_cm_resolve_route route;
	struct abi_cm_event e;
	struct program p;

	program_open(w, &p);
	in.id = route.id = program_id(&p, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0), 0);
	assert_int_equal(program_connect(&p, in.id), 0);
	world_run(w);
	program_take(&p, ABI_CM_ADDR_RESOLVED);
	program_take(&p, ABI_CM_ROUTE_RESOLVED);
	e = program_take(&p, ABI_CM_UNREACHABLE);
	assert_int_equal(e.status, CM_SIDR_UNSUPPORTED);
	assert_non_null(strstr(e.why, "nobody listens on UDP port 7999"));
	assert_non_null(logged(w, "rejected"));
	program_die(&p);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		T(die__in_each_state),
		T(destroy__in_each_state),
		T(unlisten__what_waits),
		T(request__withdrawn),
		T(request__withdrawn_unread),
		T(rejected__after_the_rep),
		T(rejected__established),
		T(rejected__stale),
		T(disconnected__status),
		T(disconnected__before_the_rtu),
		T(events__count),
		T(events__migrate),
		T(events__unread),
		T(idle__no_timer),
		T(address__gone),
		T(address__flaps),
		T(resolve_addr__gone),
		T(resolve_route__gone),
		T(attributes__active),
		T(attributes__passive),
		T(retry_counts__active),
		T(retry_counts__passive),
		T(why__nobody_listens),
		T(why__unreachable),
		T(why__no_service),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
