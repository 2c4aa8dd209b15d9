/* SPDX-License-Identifier: BSD-3-Clause */
/* A network that means harm: floods of requests are bounded, and MADs that another host forges move
 * no connection of a program. */
#include <errno.h>
#include "bits.h"
#include "cm_world.h"
#include "headers.h"
#include "net/pkeys.h"
#include "path.h"
#include "worker.h"

#define FLOODED 32u /* listeners */

static uint8_t template[MAD_LEN]; /* a REQ to TCP port 7001 */

static void take_template(struct world *w)
{
	peer_connect(w, TCP(7001), 0x55);
	memcpy(template, w->in[0].mad, MAD_LEN);
	w->nin = 0;
}

/* The path of a MAD from host @p n. */
static struct cm_path host(unsigned n)
{
	struct cm_path p = {.pkey = 0xFFFF, .net = NET_IPV4, .hop_limit = 64};

	memcpy(p.local, gid_own4, 16);
	memcpy(p.remote, gid_peer4, 16);
	p.remote[13] = (uint8_t)(n >> 8);
	p.remote[14] = (uint8_t)n;
	return p;
}

/* REQ number @p i of a host, for a QP of its own. */
static void flood_to(struct world *w, unsigned from, unsigned i, uint64_t service)
{
	const struct cm_path path = host(from);
	struct cma_hdr h = {.family = 4, .src_port = 40000};
	uint8_t mad[MAD_LEN];

	memcpy(mad, template, MAD_LEN);
	memcpy(h.src, path.remote, 16);
	memcpy(h.dst, path.local, 16);
	cma_write((uint8_t *)cm_bytes(mad, CM_F_REQ_PRIVATE, NULL), &h);
	cm_put(mad, CM_F_REQ_LOCAL_ID, i + 1);
	cm_put(mad, CM_F_REQ_QPN, 0x1000 + i);
	cm_put(mad, CM_F_REQ_GUID, 0x1000000ull + from);
	cm_put(mad, CM_F_REQ_SERVICE_ID, service);
	world_give(w, &path, mad);
	w->nout = 0;
}

static void flood(struct world *w, unsigned from, unsigned i, uint16_t port)
{
	flood_to(w, from, i, TCP(port));
}

/* The backlog bounds requests of which the program has not heard, as in Linux: with each that it
 * takes there is room for another. */
static void flood__backlog(void **state)
{
	struct world *w = *state;
	struct program p;
	struct abi_cm_event e;

	take_template(w);
	program_open(w, &p);
	program_serve(&p, 7001, 100);
	for (unsigned i = 0; i < 150; i++)
		flood(w, 0, i, 7001);
	assert_int_equal(cm_half_open(w->all->cm), 100);
	assert_int_equal(world_refused(w, CM_REJ_NO_RESOURCES), 50);
	for (unsigned i = 0; i < 10; i++)
		program_take(&p, ABI_CM_CONNECT_REQUEST);
	for (unsigned i = 200; i < 250; i++)
		flood(w, 0, i, 7001);
	assert_int_equal(cm_half_open(w->all->cm), 110);
	for (unsigned i = 0; i < 100; i++)
		program_take(&p, ABI_CM_CONNECT_REQUEST);
	assert_false(program_event(&p, &e));
	program_die(&p);
	assert_int_equal(cm_half_open(w->all->cm), 0);
	assert_int_equal(world_refused(w, CM_REJ_CONSUMER), 110);
	w->nout = 0;
}

/* proves CM-23: a REQ in a partition that this port is not in is refused, as by Linux; the QP of
 * one that is accepted is in that of the REQ. */
static void request__partition(void **state)
{
	struct world *w = *state;
	struct program p;
	struct abi_cm_event e;
	struct abi_cm_init_qp_attr in = {.state = ABI_QPS_INIT};
	struct abi_cm_qp_attr out;
	struct port *port = &w->ctl->dp->ports->port[0];

	take_template(w);
	program_open(w, &p);
	program_serve(&p, 7001, 100);
	cm_put(template, CM_F_REQ_PKEY, 0x8005);
	flood(w, 0, 0, 7001);
	assert_int_equal(world_refused(w, CM_REJ_INVALID_GID), 1);
	assert_false(program_event(&p, &e));
	assert_true(pkeys_set(port, 2, 0x8005));
	flood(w, 0, 1, 7001);
	in.id = program_take(&p, ABI_CM_CONNECT_REQUEST).id;
	assert_int_equal(
		program_ask(&p, ABI_CM_INIT_QP_ATTR, &in, sizeof(in), &out, sizeof(out)), 0);
	assert_int_equal(out.attr.pkey_index, 2);
	program_die(&p);
	w->nout = 0;
}

/* A listener has one type of QP: a program that accepted with another would never hear from it. */
static void request__qp_type(void **state)
{
	static const struct {
		uint16_t space;
		uint8_t transport;
	} rows[] = {{ABI_CM_PS_TCP, CM_TRANSPORT_UC}, {ABI_CM_PS_TCP, CM_TRANSPORT_EXTENDED},
		{ABI_CM_PS_UDP, CM_TRANSPORT_RC}};
	struct world *w = *state;
	struct program p;
	struct abi_cm_event e;
	uint32_t datagrams;

	take_template(w);
	program_open(w, &p);
	program_serve(&p, 7001, 100);
	datagrams = program_id(&p, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	assert_int_equal(program_bind(&p, datagrams, gid_any4, 7001), 0);
	assert_int_equal(program_listen(&p, datagrams, 8), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		cm_put(template, CM_F_REQ_TRANSPORT, rows[i].transport);
		cm_put(template, CM_F_REQ_EXTENDED, rows[i].transport == CM_TRANSPORT_EXTENDED);
		flood_to(w, 0, i, (uint64_t)rows[i].space << 16 | 7001);
		assert_int_equal(world_refused(w, CM_REJ_CONSUMER), i + 1);
		assert_false(program_event(&p, &e));
	}
	program_die(&p);
	w->nout = 0;
}

/* Requests that arrive together are not refused because the program had no chance to run. */
static void flood__short_backlog(void **state)
{
	struct world *w = *state;
	struct program p;

	take_template(w);
	program_open(w, &p);
	program_serve(&p, 7001, 1);
	for (unsigned i = 0; i < CM_BACKLOG_MIN; i++)
		flood(w, 0, i, 7001);
	assert_int_equal(world_refused(w, CM_REJ_NO_RESOURCES), 0);
	flood(w, 0, CM_BACKLOG_MIN, 7001);
	assert_int_equal(world_refused(w, CM_REJ_NO_RESOURCES), 1);
	program_die(&p);
	w->nout = 0;
}

/* Hosts @p first to @p last send @p each requests in turn, to all listeners.  @return how many
 * requests wait after that */
static unsigned accepted(struct world *w, unsigned first, unsigned last, unsigned each)
{
	for (unsigned i = 0; i < each; i++)
		for (unsigned h = first; h <= last; h++)
			flood(w, h, i, (uint16_t)(7001 + (i + h) % FLOODED));
	return cm_half_open(w->all->cm);
}

/* A host takes at most as much as it leaves to the others, a hundred together no more than each of
 * them finds left, and all of them leave connections to programs that connect themselves. */
static void flood__half_open(void **state)
{
	struct world *w = *state;
	struct program p[2], q;
	unsigned before, other = 2;
	uint32_t id;

	take_template(w);
	program_open(w, &p[0]);
	program_open(w, &p[1]);
	program_open(w, &q);
	for (unsigned i = 0; i < FLOODED; i++)
		program_serve(&p[i % 2], (uint16_t)(7001 + i), 0);
	assert_int_equal(accepted(w, 1, 1, 12000), CM_REQUEST_MAX / 2);
	/* Hosts are counted by a hash with a random seed: the next one that is not counted as the
	 * first. */
	while (accepted(w, other, other, 1) == CM_REQUEST_MAX / 2)
		other++;
	assert_int_equal(accepted(w, other, other, 6000), CM_REQUEST_MAX / 4 * 3);
	before = accepted(w, other + 1, other + 100, 60);
	assert_true(before < CM_REQUEST_MAX);
	/* Of twenty others, two are counted as one of these on average. */
	assert_true(accepted(w, other + 101, other + 120, 1) >= before + 10);
	assert_true(accepted(w, other + 121, 250, 60) <= CM_REQUEST_MAX);
	/* another program connects all the same */
	id = program_resolve(&q, 7000);
	assert_int_equal(program_connect(&q, id), 0);
	program_die(&q);
	program_die(&p[0]);
	w->nout = 0;
	program_die(&p[1]);
	w->nout = 0;
	assert_int_equal(cm_half_open(w->all->cm), 0);
}

/* All programs of a machine are one peer to each other: two users who leave requests to each other
 * unanswered leave room for those of others. */
static void flood__users(void **state)
{
	const unsigned half = CM_REQUEST_MAX / 2, few = CM_REQUEST_MAX / USER_SMALL;
	struct world *w = *state;
	struct program p[2], other;

	take_template(w);
	for (unsigned i = 0; i < 2; i++) {
		program_open_as(w, &p[i], 1001 + i);
		program_serve(&p[i], (uint16_t)(7001 + i), 0);
	}
	program_open_as(w, &other, 1003);
	program_serve(&other, 7003, 0);
	for (unsigned i = 0; i < half; i++)
		for (unsigned k = 0; k < 2; k++)
			flood(w, 1, 2 * i + k, (uint16_t)(7001 + k));
	assert_int_equal(cm_half_open(w->all->cm), half);
	for (unsigned i = 0; i < 2 * few; i++)
		flood(w, 1, 2 * half + i, 7003);
	assert_int_equal(cm_half_open(w->all->cm), half + few);
	for (unsigned i = 0; i < few; i++)
		program_take(&other, ABI_CM_CONNECT_REQUEST);
	assert_false(program_readable(&other));
	program_die(&other);
	program_die(&p[0]);
	program_die(&p[1]);
	w->nout = 0;
	assert_int_equal(cm_half_open(w->all->cm), 0);
}

/* Answers that are kept for duplicates give way to new connections. */
static void flood__rejected(void **state)
{
	struct world *w = *state;
	struct abi_cm_event e;
	struct program p;

	take_template(w);
	program_open(w, &p);
	program_serve(&p, 7001, 0);
	for (unsigned i = 0; i < 2 * CONNECTIONS_MAX; i++) {
		flood(w, i % 7, i, 7001);
		assert_true(program_event(&p, &e));
		assert_int_equal(program_destroy(&p, e.id, NULL), 0);
		w->nout = 0;
	}
	assert_int_equal(world_refused(w, CM_REJ_CONSUMER), 2 * CONNECTIONS_MAX);
	assert_int_equal(world_refused(w, CM_REJ_NO_RESOURCES), 0);
	assert_int_equal(cm_used(w->all->cm), CONNECTIONS_MAX);
	program_die(&p);
	world_pass(w, 20 * 1000);
	assert_int_equal(cm_used(w->all->cm), 0);
}

/* CM-12: of a request that nobody waits for nothing is kept, and the answers are limited. */
static void flood__nobody_listens(void **state)
{
	struct world *w = *state;

	take_template(w);
	for (unsigned i = 0; i < 5000; i++)
		flood(w, i, i, 7001);
	assert_int_equal(cm_used(w->all->cm), 0);
	assert_int_equal(world_refused(w, CM_REJ_INVALID_SERVICE_ID), cm_defaults().strangers);
}

/* The end of many listeners with many connections is not a walk over all connections for each:
 * what is left to do is bounded by what waits. */
static void unlisten__many(void **state)
{
	struct world *w = *state;
	struct program p, q;

	take_template(w);
	program_open(w, &p);
	program_open(w, &q);
	for (unsigned i = 0; i < 2000; i++)
		program_serve(&p, (uint16_t)(10000 + i), 0);
	program_serve(&q, 7001, 0);
	for (unsigned i = 0; i < 500; i++)
		flood(w, 0, i, 7001);
	program_die(&p);
	assert_int_equal(cm_half_open(w->all->cm), 500); /* of the other's nothing changes */
	for (unsigned i = 0; i < 500; i++)
		program_take(&q, ABI_CM_CONNECT_REQUEST);
	program_die(&q);
	w->nout = 0;
}

/* --- forged MADs ---------------------------------------------------------------------- */

/* A message that would move the connection of @p id if it were the peer's. */
static void forge(
	uint8_t mad[MAD_LEN], enum cm_attr attr, uint32_t ours, uint32_t theirs, uint32_t qpn)
{
	static const struct {
		enum cm_attr attr;
		enum cm_field local, remote;
	} ids[] = {{CM_MRA, CM_F_MRA_LOCAL_ID, CM_F_MRA_REMOTE_ID},
		{CM_REJ, CM_F_REJ_LOCAL_ID, CM_F_REJ_REMOTE_ID},
		{CM_REP, CM_F_REP_LOCAL_ID, CM_F_REP_REMOTE_ID},
		{CM_RTU, CM_F_RTU_LOCAL_ID, CM_F_RTU_REMOTE_ID},
		{CM_DREQ, CM_F_DREQ_LOCAL_ID, CM_F_DREQ_REMOTE_ID},
		{CM_DREP, CM_F_DREP_LOCAL_ID, CM_F_DREP_REMOTE_ID},
		{CM_LAP, CM_F_LAP_LOCAL_ID, CM_F_LAP_REMOTE_ID},
		{CM_APR, CM_F_APR_LOCAL_ID, CM_F_APR_REMOTE_ID}};

	mad_begin(mad, attr, 0x1234);
	for (unsigned i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		if (ids[i].attr != attr)
			continue;
		cm_put(mad, ids[i].local, theirs);
		cm_put(mad, ids[i].remote, ours);
	}
	if (attr == CM_DREQ)
		cm_put(mad, CM_F_DREQ_QPN, qpn);
	if (attr == CM_REJ)
		cm_put(mad, CM_F_REJ_REASON, CM_REJ_CONSUMER);
	if (attr == CM_REP)
		cm_put(mad, CM_F_REP_QPN, 0x77);
	if (attr == CM_SIDR_REP)
		cm_put(mad, CM_F_SIDR_REP_ID, ours);
}

struct victim {
	struct program p;
	uint32_t id;
	uint32_t ours, theirs;
};

/* All messages, from another host with the right ids, and from the peer with wrong ones. */
static void attack(struct world *w, struct victim *v)
{
	const struct cm_path wrong = host(9);
	struct cm_path right = host(0), vlan;
	const int before = cm_state_of(w->all->cm, v->ours);
	uint8_t mad[MAD_LEN];

	memcpy(right.remote, gid_peer4, 16);
	vlan = right;
	vlan.vid = 7;
	assert_true(before >= 0);
	for (enum cm_attr a = CM_MRA; a < CM_ATTR_END; a++) {
		forge(mad, a, v->ours, v->theirs, v->p.qpn);
		if (a == CM_SIDR_REQ)
			continue;
		world_give(w, &wrong, mad);
		world_give(w, &vlan, mad);
		forge(mad, a, v->ours ^ 1, v->theirs, v->p.qpn);
		world_give(w, &right, mad);
		if (v->theirs) { /* not known yet otherwise */
			forge(mad, a, v->ours, v->theirs ^ 1, v->p.qpn);
			world_give(w, &right, mad);
		}
		if (a == CM_DREQ || a == CM_LAP) {
			forge(mad, a, v->ours, v->theirs, v->p.qpn ^ 1);
			world_give(w, &right, mad);
		}
		assert_int_equal(cm_state_of(w->all->cm, v->ours), before);
		assert_false(program_readable(&v->p));
	}
	w->nout = 0; /* answers to strangers */
}

/* The connection's ids, of the last message of ours. */
static void learn(struct world *w, struct victim *v, enum cm_field theirs)
{
	const struct cm_id *id = handle_get(&w->all->ids, v->id);

	v->ours = id->conn;
	v->theirs = theirs == CM_FIELD_END ? 0 : (uint32_t)cm_get(w->out[w->nout - 1].mad, theirs);
}

/* proves CM-11, CM-20: rocid as the passive side */
static void forged__passive(void **state)
{
	struct world *w = *state;
	struct victim v;
	uint32_t other;

	program_open(w, &v.p);
	program_serve(&v.p, 7001, 0);
	other = peer_connect(w, TCP(7001), 0x55);
	world_run(w);
	v.id = program_take(&v.p, ABI_CM_CONNECT_REQUEST).id;
	v.ours = ((struct cm_id *)handle_get(&w->all->ids, v.id))->conn;
	v.theirs = other;
	attack(w, &v);
	assert_int_equal(program_accept(&v.p, v.id, 3), 0);
	world_run(w);
	attack(w, &v);
	peer_take(w, CM_EV_REP);
	assert_int_equal(cm_rtu(w->peer, other, NULL, 0, w->now), 0);
	world_run(w);
	program_take(&v.p, ABI_CM_ESTABLISHED);
	attack(w, &v);
	w->deaf = true;
	assert_int_equal(program_simple(&v.p, ABI_CM_DISCONNECT, v.id), 0);
	assert_int_equal(cm_state_of(w->all->cm, v.ours), CM_DREQ_SENT);
	attack(w, &v);
	program_die(&v.p);
	w->nout = 0;
}

/* proves CM-11: rocid as the active side */
static void forged__active(void **state)
{
	const struct cm_param accept = {.qpn = 0x77, .psn = 1};
	struct world *w = *state;
	uint32_t listener, other;
	struct victim v;

	program_open(w, &v.p);
	assert_int_equal(cm_listen(w->peer, TCP(7000), NULL, 8, 0, &listener), 0);
	v.id = program_resolve(&v.p, 7000);
	assert_int_equal(program_connect(&v.p, v.id), 0);
	learn(w, &v, CM_FIELD_END);
	world_run(w);
	attack(w, &v);
	other = peer_take(w, CM_EV_REQ)->id;
	assert_int_equal(cm_accept(w->peer, other, &accept, 0, w->now), 0);
	world_run(w);
	program_take(&v.p, ABI_CM_CONNECT_RESPONSE);
	v.theirs = other;
	attack(w, &v);
	assert_int_equal(program_accept(&v.p, v.id, 0), 0);
	learn(w, &v, CM_F_RTU_REMOTE_ID);
	assert_int_equal(v.theirs, other);
	world_run(w);
	attack(w, &v);
	assert_int_equal(cm_disconnect(w->peer, other, NULL, 0, w->now), 0);
	world_run(w);
	program_take(&v.p, ABI_CM_DISCONNECTED);
	attack(w, &v);
	program_die(&v.p);
	w->nout = 0;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		T(request__partition),
		T(request__qp_type),
		T(flood__backlog),
		T(flood__short_backlog),
		T(flood__half_open),
		T(flood__users),
		T(flood__rejected),
		T(flood__nobody_listens),
		T(unlisten__many),
		T(forged__passive),
		T(forged__active),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
