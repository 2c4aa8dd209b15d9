/* SPDX-License-Identifier: BSD-3-Clause */
/* Options, groups, and commands that come when Linux takes them, or does not. */
#include <errno.h>
#include "cm_world.h"
#include "headers.h"
#include "net/net.h"

static uint32_t tcp(struct program *p)
{
	return program_id(p, ABI_CM_PS_TCP, ABI_QPT_RC, 1);
}

static struct cm_id *id_of(struct world *w, uint32_t handle)
{
	struct cm_id *id = handle_get(&w->all->ids, handle);

	assert_non_null(id);
	return id;
}

/* AFONLY decides when the id listens, so it may be set until then. */
static void option__afonly(void **state)
{
	struct program p;
	uint32_t four, six;

	program_open(*state, &p);
	four = tcp(&p);
	six = tcp(&p);
	assert_int_equal(program_bind(&p, six, gid_any6, 7000), 0);
	assert_int_equal(program_bind(&p, four, gid_any4, 7000), -EADDRNOTAVAIL);
	assert_int_equal(program_option(&p, six, ABI_CM_OPT_AFONLY, 1), 0);
	assert_int_equal(program_bind(&p, four, gid_any4, 7000), 0);
	assert_int_equal(program_option(&p, six, ABI_CM_OPT_AFONLY, 0), 0);
	assert_int_equal(program_listen(&p, six, 0), -EADDRNOTAVAIL);
	assert_int_equal(program_option(&p, six, ABI_CM_OPT_AFONLY, 1), 0);
	assert_int_equal(program_listen(&p, six, 0), 0);
	assert_int_equal(program_option(&p, six, ABI_CM_OPT_AFONLY, 0), -EINVAL);
	program_die(&p);
}

static void option__reuse(void **state)
{
	struct program p;
	uint32_t id;

	program_open(*state, &p);
	id = tcp(&p);
	assert_int_equal(program_option(&p, id, ABI_CM_OPT_REUSEADDR, 1), 0);
	assert_int_equal(program_option(&p, id, ABI_CM_OPT_REUSEADDR, 0), 0);
	assert_int_equal(program_bind(&p, id, gid_own4, 7000), 0);
	assert_int_equal(program_option(&p, id, ABI_CM_OPT_REUSEADDR, 1), 0);
	assert_int_equal(program_option(&p, id, ABI_CM_OPT_REUSEADDR, 0), -EINVAL);
	assert_int_equal(program_listen(&p, id, 0), 0);
	assert_int_equal(program_option(&p, id, ABI_CM_OPT_REUSEADDR, 1), -EINVAL);
	program_die(&p);
}

/* proves CM-25: the peer waits as long as this side: it hears of the path in the REQ */
static void option__ack_timeout(void **state)
{
	struct world *w = *state;
	struct abi_handle in;
	struct abi_cm_query q;
	struct program p;
	uint32_t udp;

	program_open(w, &p);
	udp = program_id(&p, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	assert_int_equal(program_option(&p, udp, ABI_CM_OPT_ACK_TIMEOUT, 20), -EINVAL);
	in.handle = program_resolve(&p, 7000);
	assert_int_equal(program_option(&p, in.handle, ABI_CM_OPT_ACK_TIMEOUT, 32), -EINVAL);
	assert_int_equal(program_option(&p, in.handle, ABI_CM_OPT_ACK_TIMEOUT, 21), 0);
	assert_int_equal(program_ask(&p, ABI_CM_QUERY, &in, sizeof(in), &q, sizeof(q)), 0);
	assert_int_equal(q.packet_life, 20);
	assert_int_equal(program_connect(&p, in.handle), 0);
	assert_int_equal(w->nout, 1);
	assert_int_equal(cm_get(w->out[0].mad, CM_F_REQ_ACK_TIMEOUT), 21);
	program_die(&p);
}

/* --- groups ----------------------------------------------------------------------------------- */

static int join(struct program *p, uint32_t id, const uint8_t ip[16])
{
	const struct abi_cm_join in = {.id = id, .uid = 9, .addr = world_addr(ip, 0)};
	struct abi_handle_reply out;

	return program_ask(p, ABI_CM_JOIN, &in, sizeof(in), &out, sizeof(out));
}

/* The MGID is what Linux makes of the address, for each protocol. proves MC-09: and the Q_Key is
 * that of Linux */
static void join__mgid(void **state)
{
	static const uint8_t four[16] = {[10] = 0xFF, [11] = 0xFF, 239, 1, 2, 3},
			     six[16] = {0xFF, 0x0E, [15] = 9},
			     rocev1[16] = {0xFF, 0x0E, [10] = 0xFF, [11] = 0xFF, 239, 1, 2, 3};
	struct abi_cm_event e;
	struct program p;
	uint32_t id, stream;

	program_open(*state, &p);
	stream = tcp(&p);
	assert_int_equal(program_bind(&p, stream, gid_own4, 0), 0);
	assert_int_equal(join(&p, stream, four), -EINVAL);
	id = program_id(&p, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	assert_int_equal(program_bind(&p, id, gid_own4, 0), 0);
	assert_int_equal(join(&p, id, four), 0);
	e = program_take(&p, ABI_CM_MULTICAST_JOIN);
	assert_memory_equal(e.ah.dgid, four, 16);
	assert_int_equal(e.param.qkey, 0x01234567);
	id_of(*state, id)->path.net = NET_ROCEV1;
	assert_int_equal(join(&p, id, four), 0);
	assert_memory_equal(program_take(&p, ABI_CM_MULTICAST_JOIN).ah.dgid, rocev1, 16);
	assert_int_equal(join(&p, id, six), 0);
	assert_memory_equal(program_take(&p, ABI_CM_MULTICAST_JOIN).ah.dgid, six, 16);
	program_die(&p);
}

/* --- resolving again -------------------------------------------------------------------------- */

static int resolve(struct program *p, uint32_t id, const uint8_t ip[16])
{
	const struct abi_cm_resolve_addr in = {
		.id = id, .timeout_ms = 700, .dst = world_addr(ip, 7000)};

	return program_ask(p, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0);
}

/* An address that could not be resolved leaves neither its source nor its device to the next one,
 * unless the program chose it. */
static void resolve__another_source(void **state)
{
	struct program p;
	struct cm_id *id;
	uint32_t handle;

	program_open(*state, &p);
	handle = tcp(&p);
	id = id_of(*state, handle);
	assert_int_equal(resolve(&p, handle, gid_unknown4), 0);
	program_take(&p, ABI_CM_ADDR_ERROR);
	assert_false(id->has_path);
	assert_memory_equal(id->local.ip, gid_any4, 16);
	assert_int_equal(resolve(&p, handle, gid_peer4), 0);
	program_take(&p, ABI_CM_ADDR_RESOLVED);
	assert_memory_equal(id->local.ip, gid_own4, 16);
	handle = tcp(&p);
	id = id_of(*state, handle);
	assert_int_equal(program_bind(&p, handle, gid_own4, 0), 0);
	assert_int_equal(resolve(&p, handle, gid_unknown4), 0);
	program_take(&p, ABI_CM_ADDR_ERROR);
	assert_true(id->has_path);
	assert_memory_equal(id->local.ip, gid_own4, 16);
	program_die(&p);
}

/* As in Linux, the wildcard as a destination is the device's own address: programs that were given
 * none connect to 0.0.0.0. */
static void resolve__wildcard(void **state)
{
	static const uint8_t loopback4[16] = {[10] = 0xFF, 0xFF, 127, [15] = 1};
	static const uint8_t loopback6[16] = {[15] = 1};
	struct program p;
	const struct cm_id *id;
	uint32_t handle;

	program_open(*state, &p);
	for (unsigned six = 0; six < 2; six++) {
		handle = tcp(&p);
		id = id_of(*state, handle);
		assert_int_equal(resolve(&p, handle, six ? gid_any6 : gid_any4), 0);
		program_take(&p, ABI_CM_ADDR_RESOLVED);
		assert_memory_equal(id->local.ip, six ? loopback6 : loopback4, 16);
		assert_memory_equal(id->path.remote, six ? gid_own6 : gid_own4, 16);
		assert_memory_equal(id->path.local, six ? gid_own6 : gid_own4, 16);
	}
	handle = tcp(&p);
	id = id_of(*state, handle);
	assert_int_equal(program_bind(&p, handle, gid_own4, 0), 0);
	assert_int_equal(resolve(&p, handle, gid_any4), 0);
	program_take(&p, ABI_CM_ADDR_RESOLVED);
	assert_memory_equal(id->path.remote, gid_own4, 16);
	program_die(&p);
}

/* An address that is neither a host's nor a group's is unreachable, and nobody joins it. */
static void resolve__no_address(void **state)
{
	static const uint8_t group[16] = {[10] = 0xFF, 0xFF, 239, 1, 2, 3};
	static const uint8_t none[][16] = {{[10] = 0xFF, 0xFF, 240, [15] = 1},
		{[10] = 0xFF, 0xFF, 255, 255, 255, 255}, {[10] = 0xFF, 0xFF, 0, 1, 2, 3}};
	struct program p;
	uint32_t id, joins;

	program_open(*state, &p);
	id = program_id(&p, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	joins = program_id(&p, ABI_CM_PS_UDP, ABI_QPT_UD, 1);
	assert_int_equal(program_bind(&p, joins, gid_own4, 0), 0);
	for (unsigned i = 0; i < sizeof(none) / sizeof(*none); i++) {
		assert_int_equal(resolve(&p, id, none[i]), -ENETUNREACH);
		assert_int_equal(join(&p, joins, none[i]), -EINVAL);
	}
	assert_false(program_readable(&p));
	assert_int_equal(resolve(&p, id, group), 0);
	program_take(&p, ABI_CM_ADDR_RESOLVED);
	program_die(&p);
}

/* --- ends ------------------------------------------------------------------------------------- */

/* A program that answers DISCONNECTED, or disconnects once more, gets no error, as by Linux.
 */
static void disconnect__twice(void **state)
{
	struct world *w = *state;
	struct program p;
	uint32_t id, peer;

	program_open(w, &p);
	program_serve(&p, 7000, 0);
	peer = peer_connect(w, TCP(7000), 0x55);
	world_run(w);
	id = program_take(&p, ABI_CM_CONNECT_REQUEST).id;
	assert_int_equal(program_accept(&p, id, 3), 0);
	world_run(w);
	peer_take(w, CM_EV_REP);
	assert_int_equal(cm_rtu(w->peer, peer, NULL, 0, w->now), 0);
	world_run(w);
	program_take(&p, ABI_CM_ESTABLISHED);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(program_simple(&p, ABI_CM_DISCONNECT, id), 0);
	assert_int_equal(world_sent(w, CM_DREQ), 1);
	world_run(w);
	peer_take(w, CM_EV_DISCONNECTED);
	assert_int_equal(cm_disconnect(w->peer, peer, NULL, 0, w->now), 0);
	world_run(w);
	program_take(&p, ABI_CM_DISCONNECTED);
	assert_int_equal(program_simple(&p, ABI_CM_DISCONNECT, id), 0);
	assert_int_equal(world_sent(w, CM_DREQ) + world_sent(w, CM_REJ), 1);
	program_die(&p);
}

/* proves CM-08: whatever a program asks for */
static void reject__reasons(void **state)
{
	static const uint8_t refused[] = {13, 19, 10, 34, 36, 255};
	struct abi_cm_reject in = {0};
	struct world *w = *state;
	struct program p;

	program_open(w, &p);
	program_serve(&p, 7000, 0);
	peer_connect(w, TCP(7000), 0x55);
	world_run(w);
	in.id = program_take(&p, ABI_CM_CONNECT_REQUEST).id;
	for (unsigned i = 0; i < sizeof(refused); i++) {
		in.reason = refused[i];
		assert_int_equal(program_ask(&p, ABI_CM_REJECT, &in, sizeof(in), NULL, 0), -EINVAL);
	}
	assert_int_equal(world_sent(w, CM_REJ), 0);
	in.reason = CM_REJ_VENDOR_OPTION;
	assert_int_equal(program_ask(&p, ABI_CM_REJECT, &in, sizeof(in), NULL, 0), 0);
	assert_int_equal(world_refused(w, CM_REJ_VENDOR_OPTION), 1);
	program_die(&p);
}

/* A peer's REQ chooses the DSCP of the path, and not what congestion its packets have met. */
static void request__no_ecn(void **state)
{
	struct cm_param param = {.qpn = 0x55, .mtu = 3};
	uint8_t hdr[CMA_HDR_LEN];
	struct cma_hdr h = {.family = 4, .src_port = 9};
	struct world *w = *state;
	struct program p;
	uint32_t id;

	program_open(w, &p);
	program_serve(&p, 7000, 0);
	memcpy(h.src, gid_peer4, 16);
	memcpy(h.dst, gid_own4, 16);
	cma_write(hdr, &h);
	param.private_data = hdr;
	param.private_len = sizeof(hdr);
	w->to.tclass = 0x6B;
	assert_int_equal(cm_connect(w->peer, &w->to, TCP(7000), &param, 0, &id, w->now), 0);
	world_run(w);
	id = program_take(&p, ABI_CM_CONNECT_REQUEST).id;
	assert_int_equal(id_of(w, id)->path.tclass, 0x68);
	program_die(&p);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		T(option__afonly),
		T(option__reuse),
		T(option__ack_timeout),
		T(join__mgid),
		T(resolve__another_source),
		T(resolve__wildcard),
		T(resolve__no_address),
		T(disconnect__twice),
		T(reject__reasons),
		T(request__no_ecn),
	};

	return cmocka_run_group_tests(tests, daemon_group_setup, daemon_group_teardown);
}
