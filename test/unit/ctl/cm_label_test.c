/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow labels of connections: in the REQ, in each MAD, in the attributes of the QP at both ends. */
#include "cm_world.h"
#include "mad.h"

#define OURS   40001u
#define THEIRS 40000u /* peer_connect() */
#define PORT   7000u

/* An id bound to @p from, resolved to port PORT of the peer. */
static uint32_t resolved(
	struct program *p, const uint8_t ip[16], const uint8_t to[16], uint32_t label)
{
	uint32_t id = program_id(p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
	struct abi_cm_resolve_addr in = {.id = id,
		.timeout_ms = 1000,
		.src = world_addr(ip, OURS),
		.dst = world_addr(to, PORT)};
	const struct abi_cm_resolve_route route = {.id = id};

	in.src.flow_label = label;
	assert_int_equal(program_ask(p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0), 0);
	program_take(p, ABI_CM_ADDR_RESOLVED);
	assert_int_equal(program_ask(p, ABI_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0), 0);
	program_take(p, ABI_CM_ROUTE_RESOLVED);
	return id;
}

static uint32_t label_of_qp(struct program *p, uint32_t id)
{
	const struct abi_cm_init_qp_attr in = {.id = id, .state = ABI_QPS_RTR};
	struct abi_cm_qp_attr out;

	assert_int_equal(
		program_ask(p, ABI_CM_INIT_QP_ATTR, &in, sizeof(in), &out, sizeof(out)), 0);
	return out.attr.ah.flow_label;
}

static uint32_t label_of_path(struct program *p, uint32_t id)
{
	const struct abi_handle in = {.handle = id};
	struct abi_cm_query out;

	assert_int_equal(program_ask(p, ABI_CM_QUERY, &in, sizeof(in), &out, sizeof(out)), 0);
	return out.flow_label;
}

/* proves ENT-06, ENT-07, ENT-08 */
static void active__of_both_ports(void **state)
{
	struct world *w = *state;
	struct program p;

	program_open(w, &p);
	for (unsigned as_linux = 0; as_linux < 2; as_linux++) {
		uint32_t want = cm_flow_label(PORT, OURS, as_linux);
		uint32_t id;

		w->ctl->plain_label = as_linux;
		id = resolved(&p, gid_own4, gid_peer4, 0);
		assert_int_equal(label_of_path(&p, id), want);
		assert_int_equal(program_connect(&p, id), 0);
		assert_int_equal(w->nout, 1);
		assert_int_equal(cm_get(w->out[0].mad, CM_F_REQ_FLOW_LABEL), want);
		assert_int_equal(w->out[0].path.flow_label, want);
		assert_int_equal(program_destroy(&p, id, NULL), 0);
		world_run(w);
		program_qp(&p);
	}
	program_die(&p);
}

/* proves ENT-09 */
static void active__of_the_source_address(void **state)
{
	struct world *w = *state;
	struct program p;
	uint32_t id;

	program_open(w, &p);
	id = resolved(&p, gid_own6, gid_own6, 0xFFF12345); /* a traffic class is no part of it */
	assert_int_equal(label_of_path(&p, id), 0x12345);
	program_die(&p);
}

/* proves ENT-07, ENT-08: that of the REQ, or one of both ports if the peer has none */
static void passive__of_the_request(void **state)
{
	struct world *w = *state;
	struct program p;

	program_open(w, &p);
	program_serve(&p, PORT, 8);
	for (unsigned has = 0; has < 2; has++) {
		uint32_t want = has ? 0x777 : cm_flow_label(PORT, THEIRS, false);
		uint32_t id;

		w->to.flow_label = has ? 0x777 : 0;
		peer_connect(w, TCP(PORT), 0x55 + has);
		world_run(w);
		id = program_take(&p, ABI_CM_CONNECT_REQUEST).id;
		assert_int_equal(label_of_qp(&p, id), want);
		assert_int_equal(program_accept(&p, id, 0), 0);
		assert_int_equal(mad_attr(w->out[0].mad), CM_REP);
		assert_int_equal(w->out[0].path.flow_label, want);
		world_run(w);
		program_qp(&p);
	}
	program_die(&p);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {T(active__of_both_ports),
		T(active__of_the_source_address), T(passive__of_the_request)};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
