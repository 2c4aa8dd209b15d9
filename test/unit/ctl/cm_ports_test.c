/* SPDX-License-Identifier: BSD-3-Clause */
/* Port spaces and listeners of several programs of one rocid: addresses, refusals and their errnos,
 * which are those of Linux. */
#include <errno.h>
#include "cm_world.h"
#include "headers.h"
#include "net/net.h"
#include "path.h"

static const uint8_t loopback4[16] = {[10] = 0xFF, 0xFF, 127, [15] = 1};
static const uint8_t loopback6[16] = {[15] = 1};

static uint32_t tcp(struct program *p)
{
	return program_id(p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
}

static struct abi_cm_query query(struct program *p, uint32_t id)
{
	const struct abi_handle in = {.handle = id};
	struct abi_cm_query q;

	assert_int_equal(program_ask(p, ABI_CM_QUERY, &in, sizeof(in), &q, sizeof(q)), 0);
	return q;
}

/* One port of one space at one address is one program's. */
static void bind__one_owner(void **state)
{
	struct program a, b;
	uint32_t id;

	program_open(*state, &a);
	program_open(*state, &b);
	assert_int_equal(program_bind(&a, tcp(&a), gid_own4, 7000), 0);
	assert_int_equal(program_bind(&b, tcp(&b), gid_own4, 7000), -EADDRINUSE);
	assert_int_equal(program_bind(&b, tcp(&b), gid_own4, 7001), 0);
	assert_int_equal(program_bind(&b, tcp(&b), gid_own6, 7000), 0);
	id = program_id(&b, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	assert_int_equal(program_bind(&b, id, gid_own4, 7000), 0);
	id = program_id(&b, ABI_CM_PS_IB, ABI_QPT_RC, 1);
	assert_int_equal(program_bind(&b, id, gid_own4, 7000), 0);
	id = program_id(&b, ABI_CM_PS_IPOIB, ABI_QPT_UD, 1);
	assert_int_equal(program_bind(&b, id, gid_own4, 7000), 0);
	program_die(&a); /* a port is free when its program ends */
	assert_int_equal(program_bind(&b, tcp(&b), gid_own4, 7000), 0);
	program_die(&b);
}

static void bind__wildcard(void **state)
{
	struct program a, b;
	uint32_t six;

	program_open(*state, &a);
	program_open(*state, &b);
	assert_int_equal(program_bind(&a, tcp(&a), gid_any4, 7000), 0);
	assert_int_equal(program_bind(&b, tcp(&b), gid_own4, 7000), -EADDRNOTAVAIL);
	assert_int_equal(program_bind(&b, tcp(&b), gid_any4, 7000), -EADDRNOTAVAIL);
	/* that of IPv6 takes IPv4, too, unless AFONLY */
	assert_int_equal(program_bind(&b, tcp(&b), gid_any6, 7000), -EADDRNOTAVAIL);
	six = tcp(&b);
	assert_int_equal(program_option(&b, six, ABI_CM_OPT_AFONLY, 1), 0);
	assert_int_equal(program_bind(&b, six, gid_any6, 7000), 0);
	/* a specific address first */
	assert_int_equal(program_bind(&a, tcp(&a), gid_own4, 7001), 0);
	assert_int_equal(program_bind(&b, tcp(&b), gid_any4, 7001), -EADDRNOTAVAIL);
	program_die(&a);
	program_die(&b);
}

/* A listener at a loopback address has the requests to all addresses, as in Linux, so its port is
 * nobody else's: another user's program could otherwise take them at the device's address. */
static void bind__loopback(void **state)
{
	struct program a, b;

	program_open(*state, &a);
	program_open(*state, &b);
	assert_int_equal(program_bind(&a, tcp(&a), loopback4, 7000), 0);
	assert_int_equal(program_bind(&b, tcp(&b), gid_own4, 7000), -EADDRNOTAVAIL);
	assert_int_equal(program_bind(&b, tcp(&b), loopback4, 7000), -EADDRNOTAVAIL);
	assert_int_equal(program_bind(&b, tcp(&b), loopback6, 7000), -EADDRNOTAVAIL);
	assert_int_equal(program_bind(&a, tcp(&a), loopback6, 7001), 0);
	assert_int_equal(program_bind(&b, tcp(&b), gid_own4, 7001), -EADDRNOTAVAIL);
	assert_int_equal(program_bind(&b, tcp(&b), gid_own6, 7001), -EADDRNOTAVAIL);
	assert_int_equal(program_bind(&b, tcp(&b), loopback4, 7001), -EADDRNOTAVAIL);
	/* the other order */
	assert_int_equal(program_bind(&a, tcp(&a), gid_own4, 7002), 0);
	assert_int_equal(program_bind(&b, tcp(&b), loopback4, 7002), -EADDRNOTAVAIL);
	assert_int_equal(program_bind(&a, tcp(&a), gid_own6, 7003), 0);
	assert_int_equal(program_bind(&b, tcp(&b), loopback6, 7003), -EADDRNOTAVAIL);
	assert_int_equal(program_bind(&b, tcp(&b), loopback4, 7003), 0); /* not of its family */
	program_die(&a);
	program_die(&b);
}

/* By AFONLY, that of IPv6 leaves IPv4 to others. */
static void listen__both_loopbacks(void **state)
{
	struct world *w = *state;
	struct program p;
	uint32_t four, six;

	program_open(w, &p);
	four = tcp(&p);
	six = tcp(&p);
	assert_int_equal(program_option(&p, six, ABI_CM_OPT_AFONLY, 1), 0);
	assert_int_equal(program_bind(&p, four, loopback4, 7000), 0);
	assert_int_equal(program_bind(&p, six, loopback6, 7000), 0);
	assert_int_equal(program_listen(&p, six, 0), 0);
	assert_int_equal(program_listen(&p, four, 0), 0);
	peer_connect(w, TCP(7000), 1);
	world_run(w);
	assert_int_equal(program_take(&p, ABI_CM_CONNECT_REQUEST).listener, four);
	six = tcp(&p);
	assert_int_equal(program_bind(&p, six, loopback6, 7001), 0);
	assert_int_equal(program_listen(&p, six, 0), 0);
	peer_connect(w, TCP(7001), 2);
	world_run(w);
	assert_int_equal(program_take(&p, ABI_CM_CONNECT_REQUEST).listener, six);
	program_die(&p);
}

/* A program that listens for each family by itself, as tgtd does. */
static void listen__both_families(void **state)
{
	struct program p;
	uint32_t four, six;

	program_open(*state, &p);
	four = tcp(&p);
	six = tcp(&p);
	assert_int_equal(program_option(&p, six, ABI_CM_OPT_AFONLY, 1), 0);
	assert_int_equal(program_bind(&p, four, gid_any4, 7000), 0);
	assert_int_equal(program_bind(&p, six, gid_any6, 7000), 0);
	assert_int_equal(program_listen(&p, four, 0), 0);
	assert_int_equal(program_listen(&p, six, 0), 0);
	program_die(&p);
}

/* REUSEADDR of both shares a port, but only one of them listens. */
static void bind__reuse(void **state)
{
	struct program a, b;
	uint32_t first, second;

	program_open(*state, &a);
	program_open(*state, &b);
	first = tcp(&a);
	second = tcp(&b);
	assert_int_equal(program_option(&a, first, ABI_CM_OPT_REUSEADDR, 1), 0);
	assert_int_equal(program_bind(&a, first, gid_own4, 7000), 0);
	assert_int_equal(program_bind(&b, second, gid_own4, 7000), -EADDRINUSE);
	assert_int_equal(program_option(&b, second, ABI_CM_OPT_REUSEADDR, 1), 0);
	assert_int_equal(program_bind(&b, second, gid_own4, 7000), 0);
	assert_int_equal(program_listen(&a, first, 0), -EADDRINUSE);
	assert_int_equal(program_destroy(&b, second, NULL), 0);
	assert_int_equal(program_listen(&a, first, 0), 0);
	second = tcp(&b);
	assert_int_equal(program_option(&b, second, ABI_CM_OPT_REUSEADDR, 1), 0);
	assert_int_equal(program_bind(&b, second, gid_own4, 7000), -EADDRINUSE);
	program_die(&a);
	program_die(&b);
}

static void bind__refusals(void **state)
{
	struct program p;
	uint32_t id;

	program_open(*state, &p);
	id = tcp(&p);
	assert_int_equal(program_bind(&p, id, gid_peer4, 7000), -EADDRNOTAVAIL);
	p.s->peer.uid = 1000;
	assert_int_equal(program_bind(&p, id, gid_own4, 1023), -EACCES);
	assert_int_equal(program_bind(&p, id, gid_own4, 1024), 0);
	p.s->peer.uid = 0;
	assert_int_equal(program_bind(&p, id, gid_own4, 7000), -EINVAL);
	assert_int_equal(program_bind(&p, tcp(&p), gid_own4, 1023), 0);
	assert_int_equal(program_bind(&p, id + 1000, gid_own4, 7000), -EINVAL);
	program_die(&p);
}

/* As in Linux, only an id without an address can be bound. */
static void bind__states(void **state)
{
	struct world *w = *state;
	struct abi_cm_resolve_addr in = {.timeout_ms = 100, .dst = world_addr(gid_peer4, 7000)};
	struct program p;
	uint32_t id;

	program_open(w, &p);
	id = tcp(&p);
	assert_int_equal(program_bind(&p, id, gid_own4, 7001), 0);
	assert_int_equal(program_bind(&p, id, gid_own4, 7002), -EINVAL); /* bound */
	assert_int_equal(program_listen(&p, id, 8), 0);
	assert_int_equal(program_bind(&p, id, gid_own4, 7002), -EINVAL); /* listening */
	peer_connect(w, TCP(7001), 0x55);
	world_run(w);
	id = program_take(&p, ABI_CM_CONNECT_REQUEST).id;
	assert_int_equal(program_bind(&p, id, gid_own4, 7002), -EINVAL); /* a connection's */
	assert_int_equal(program_bind(&p, tcp(&p), gid_own4, 7002), 0);
	id = program_resolve(&p, 7000);
	assert_int_equal(program_bind(&p, id, gid_own4, 7003), -EINVAL); /* resolved */
	in.id = id;
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), -EINVAL);
	program_die(&p);
	world_run(w);
}

/* The family of an address says how to read it, and is that of the other end. */
static void bind__families(void **state)
{
	struct abi_cm_bind in = {.addr = world_addr(gid_own6, 7001)};
	struct abi_cm_resolve_addr resolve = {.timeout_ms = 100};
	struct abi_cm_join join;
	struct program p;

	program_open(*state, &p);
	in.id = resolve.id = tcp(&p);
	in.addr.family = 4;
	assert_int_equal(program_ask(&p, ABI_CM_BIND, &in, sizeof(in), NULL, 0), -EINVAL);
	in.addr = world_addr(gid_own4, 7001);
	in.addr.family = 6;
	assert_int_equal(program_ask(&p, ABI_CM_BIND, &in, sizeof(in), NULL, 0), -EADDRNOTAVAIL);
	in.addr = world_addr(gid_any4, 7001); /* nor is that any address of IPv6 */
	in.addr.family = 6;
	assert_int_equal(program_ask(&p, ABI_CM_BIND, &in, sizeof(in), NULL, 0), -EADDRNOTAVAIL);
	in.addr.family = 5;
	assert_int_equal(program_ask(&p, ABI_CM_BIND, &in, sizeof(in), NULL, 0), -EINVAL);
	resolve.dst = world_addr(gid_peer4, 7000);
	resolve.dst.family = 6;
	assert_int_equal(program_ask(&p, ABI_CM_RESOLVE_ADDR, &resolve, sizeof(resolve), NULL, 0),
		-ENETUNREACH);
	resolve.dst = world_addr(gid_peer4, 7000);
	resolve.src = world_addr(gid_own6, 7001);
	assert_int_equal(
		program_ask(&p, ABI_CM_RESOLVE_ADDR, &resolve, sizeof(resolve), NULL, 0), -EINVAL);
	assert_int_equal(query(&p, resolve.id).local.family, 6); /* bound all the same, as there */
	assert_int_equal(program_bind(&p, tcp(&p), gid_own4, 7001), 0);
	join = (struct abi_cm_join){.id = program_id(&p, ABI_CM_PS_UDP, ABI_QPT_UD, 1),
		.addr = world_addr(gid_any4, 0)};
	join.addr.ip[12] = 239;
	join.addr.family = 6;
	assert_int_equal(program_bind(&p, join.id, gid_own4, 7001), 0);
	assert_int_equal(program_ask(&p, ABI_CM_JOIN, &join, sizeof(join), NULL, 0), -EINVAL);
	assert_false(program_readable(&p));
	program_die(&p);
}

/* A refused bind leaves nothing: the next address decides the device. */
static void bind__again_after_a_refusal(void **state)
{
	struct program p;
	uint32_t id;

	program_open(*state, &p);
	assert_int_equal(program_bind(&p, tcp(&p), gid_own4, 7000), 0);
	id = tcp(&p);
	assert_int_equal(program_bind(&p, id, gid_own4, 7000), -EADDRINUSE);
	assert_int_equal(query(&p, id).port, 0);
	assert_int_equal(query(&p, id).local.family, 0);
	assert_int_equal(program_bind(&p, id, gid_any4, 7001), 0);
	assert_int_equal(query(&p, id).port, 0); /* of a wildcard: none yet */
	program_die(&p);
}

/* Datagrams are of UDP and IPoIB, connections of TCP; IB has both. */
static void create__types(void **state)
{
	static const struct {
		uint16_t ps;
		uint8_t type;
		int err;
	} rows[] = {{ABI_CM_PS_TCP, ABI_QPT_UD, -EINVAL}, {ABI_CM_PS_UDP, ABI_QPT_RC, -EINVAL},
		{ABI_CM_PS_IPOIB, ABI_QPT_RC, -EINVAL}, {ABI_CM_PS_IB, ABI_QPT_UD, 0},
		{ABI_CM_PS_IB, ABI_QPT_UC, 0}, {0x777, ABI_QPT_RC, -EINVAL}};
	struct program p;

	program_open(*state, &p);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct abi_cm_create_id in = {
			.channel = p.channel, .ps = rows[i].ps, .qp_type = rows[i].type};
		struct abi_handle_reply out;

		assert_int_equal(
			program_ask(&p, ABI_CM_CREATE_ID, &in, sizeof(in), &out, sizeof(out)),
			rows[i].err);
	}
	program_die(&p);
}

static void bind__ephemeral(void **state)
{
	static bool seen[65536];
	struct program p;

	memset(seen, 0, sizeof(seen));
	program_open(*state, &p);
	for (unsigned i = 0; i < 3000; i++) {
		uint32_t id = tcp(&p);
		uint16_t port;

		assert_int_equal(program_bind(&p, id, gid_own4, 0), 0);
		port = query(&p, id).local.port;
		assert_in_range(port, 32768, 60999);
		assert_false(seen[port]);
		seen[port] = true;
	}
	program_die(&p);
}

/* CM-12: the listener of just this address goes before that of all; nobody else hears. */
static void listen__who_hears(void **state)
{
	struct world *w = *state;
	struct program all, one;
	uint32_t id, other;

	program_open(w, &all);
	program_open(w, &one);
	id = tcp(&one);
	assert_int_equal(program_bind(&one, id, gid_own4, 7000), 0);
	assert_int_equal(program_listen(&one, id, 0), 0);
	other = tcp(&one);
	assert_int_equal(program_bind(&one, other, gid_own6, 7002), 0);
	assert_int_equal(program_listen(&one, other, 0), 0);
	program_serve(&all, 7001, 0);
	peer_connect(w, TCP(7000), 1);
	peer_connect(w, TCP(7001), 2);
	peer_connect(w, TCP(7002), 3); /* at another address of ours */
	peer_connect(w, UDP(7000), 4);
	world_run(w);
	assert_int_equal(program_take(&one, ABI_CM_CONNECT_REQUEST).listener, id);
	assert_false(program_readable(&one));
	program_take(&all, ABI_CM_CONNECT_REQUEST);
	assert_false(program_readable(&all));
	assert_int_equal(world_refused(w, CM_REJ_INVALID_SERVICE_ID), 2);
	program_die(&one);
	program_die(&all);
}

/* An id that was not bound gets a port of its own, at all IPv4 addresses, as in Linux. */
static void listen__unbound(void **state)
{
	struct world *w = *state;
	struct abi_cm_query q;
	struct program p;
	uint32_t id;

	program_open(w, &p);
	id = tcp(&p);
	assert_int_equal(program_listen(&p, id, 0), 0);
	q = query(&p, id);
	assert_int_equal(q.local.family, 4);
	peer_connect(w, TCP(q.local.port), 1);
	world_run(w);
	program_take(&p, ABI_CM_CONNECT_REQUEST);
	assert_int_equal(program_listen(&p, id, 0), -EINVAL);
	program_die(&p);
}

/* A program's ids, channels and QPs are its own. */
static void ids__of_others(void **state)
{
	struct program a, b;
	uint32_t id, qpn;

	program_open(*state, &a);
	program_open(*state, &b);
	id = tcp(&a);
	assert_int_equal(program_bind(&b, id, gid_own4, 7000), -EINVAL);
	assert_int_equal(program_listen(&b, id, 0), -EINVAL);
	assert_int_equal(program_destroy(&b, id, NULL), -EINVAL);
	assert_int_equal(program_simple(&b, ABI_CM_GET_EVENT, a.channel), -EINVAL);
	assert_int_equal(program_simple(&b, ABI_CM_CLOSE, a.channel), -EINVAL);
	id = program_resolve(&a, 7000);
	qpn = a.qpn;
	b.s->peer.pid++;
	a.qpn = b.qpn;
	assert_int_equal(program_connect(&a, id), -EINVAL); /* another process' QP */
	a.qpn = 0;
	assert_int_equal(program_connect(&a, id), -EINVAL);
	a.qpn = qpn;
	assert_int_equal(program_connect(&a, id), 0);
	program_die(&a);
	program_die(&b);
}

static int resolve(struct program *p, uint32_t id, const uint8_t ip[16])
{
	const struct abi_cm_resolve_addr in = {
		.id = id, .timeout_ms = 700, .dst = world_addr(ip, 7000)};

	return program_ask(p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0);
}

/* ADDR_ERROR and refusals have the errnos of Linux. */
static void resolve__errors(void **state)
{
	struct abi_cm_event e;
	struct program p;
	uint32_t id;

	program_open(*state, &p);
	id = tcp(&p);
	assert_int_equal(program_bind(&p, id, gid_own4, 0), 0);
	assert_int_equal(resolve(&p, id, gid_peer6), -EINVAL); /* another family */
	assert_int_equal(resolve(&p, id, gid_unknown4), 0);
	e = program_take(&p, ABI_CM_ADDR_ERROR);
	assert_int_equal(e.status, -ETIMEDOUT);
	assert_true(e.why[0]);
	assert_int_equal(resolve(&p, id, gid_peer4), 0); /* and again */
	program_take(&p, ABI_CM_ADDR_RESOLVED);
	assert_int_equal(resolve(&p, id, gid_peer4), -EINVAL);
	assert_int_equal(program_connect(&p, id), -EINVAL); /* the route comes first */
	program_die(&p);
}

/* An address counts if the port has it by the protocol of connections that begin here. */
static void bind__rocev1(void **state)
{
	struct world *w = *state;
	struct gid_table *t = &w->ctl->net->port[0].gids.table;
	struct program p;

	program_open(w, &p);
	w->ctl->cm_rocev1 = true;
	assert_int_equal(program_bind(&p, tcp(&p), gid_own4, 7000), -EADDRNOTAVAIL);
	t->entry[t->count] = t->entry[0];
	t->entry[t->count].net = NET_ROCEV1;
	t->count++;
	assert_int_equal(program_bind(&p, tcp(&p), gid_own4, 7000), 0);
	assert_int_equal(program_bind(&p, tcp(&p), gid_own6, 7000), -EADDRNOTAVAIL);
	w->ctl->cm_rocev1 = false;
	t->entry[0].valid = false;
	assert_int_equal(program_bind(&p, tcp(&p), gid_own4, 7001), -EADDRNOTAVAIL);
	program_die(&p);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		T(create__types),
		T(bind__one_owner),
		T(bind__wildcard),
		T(bind__loopback),
		T(listen__both_loopbacks),
		T(bind__rocev1),
		T(listen__both_families),
		T(bind__reuse),
		T(bind__refusals),
		T(bind__states),
		T(bind__families),
		T(bind__again_after_a_refusal),
		T(bind__ephemeral),
		T(listen__who_hears),
		T(listen__unbound),
		T(ids__of_others),
		T(resolve__errors),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
