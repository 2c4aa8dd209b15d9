/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs of one core: which may do without frames, the bytes that they copy in a call of core_tx(),
 * and the turns that they have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "ah.h"
#include "app.h"
#include "completer.h"
#include "headers.h"
#include "icrc.h"
#include "opcode.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "txd.h"

#define START  5000000ull
#define PSN    0x100u
#define QKEY   0x1234u
#define TURN   (DIRECT_ROUND / 2)
#define LONG   (1u << 20)
#define POSTED 64u
#define PAIRS  16u
#define KEY    0x7F00u
#define ALL                                                                          \
	(ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ | \
		ABI_ACCESS_REMOTE_ATOMIC | ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_MW_BIND)

/* QPs of one host, in pairs. */
static struct {
	struct sim_host *host;
	struct app app;
	struct app_mr *mr;
	struct app_qp *from[PAIRS], *to[PAIRS];
	struct ah ah[PAIRS];
	uint32_t mtu;
} w;

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.mtu = 1024;
	w.host = aligned_alloc(CACHE_LINE, sizeof(*w.host));
	assert_non_null(w.host);
	host_init(w.host, 1, icrc_best(), START);
	app_init(&w.app, w.host);
	w.mr = app_mr(&w.app, 2 * LONG, ALL);
	core_direct(&w.host->core, true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	app_fini(&w.app);
	free(w.host);
	return 0;
}

static void start(struct app_qp *q, uint32_t peer)
{
	struct path_spec path = host_path(w.host, w.host, 0, HOST_GID_IPV6);
	struct abi_qp_attr attr = app_attr(peer, PSN, PSN);

	path.local = true;
	attr.path_mtu = w.mtu;
	attr.qkey = QKEY;
	assert_int_equal(app_to_init(q, &attr, START), 0);
	assert_int_equal(app_to_rtr(q, &attr, &path, START), 0);
	assert_int_equal(app_to_rts(q, &attr, START), 0);
}

/* The address handle by which pair @p i sends its datagrams. */
static void address(unsigned i)
{
	struct path_spec path = host_path(w.host, w.host, 0, HOST_GID_IPV6);
	struct ah *ah = &w.ah[i];

	path.local = true;
	*ah = (struct ah){.id = i + 1, .pd = APP_PD};
	path_init(&ah->path, &path);
	atomic_store(&w.host->ahs.slot[AH_SLOT(ah->id)], ah);
}

static void pair(unsigned i, uint8_t type, uint32_t session)
{
	struct app_qp_spec spec = {.type = type,
		.sq_depth = POSTED,
		.rq_depth = POSTED,
		.max_sge = 2,
		.session = session};

	spec.send_cq = spec.recv_cq = app_cq(&w.app, 2 * POSTED);
	w.from[i] = app_qp(&w.app, &spec);
	w.to[i] = app_qp(&w.app, &spec);
	w.from[i]->free_ids = w.to[i]->free_ids = true;
	start(w.from[i], w.to[i]->qp->qpn);
	start(w.to[i], w.from[i]->qp->qpn);
	if (type == ABI_QPT_UD)
		address(i);
}

static void post(unsigned i, uint8_t opcode, uint32_t len)
{
	struct app_send s = {.opcode = opcode,
		.flags = ABI_WQE_SIGNALED,
		.remote_addr = app_va(w.mr, LONG),
		.rkey = w.mr->mr.key,
		.num_sge = 1,
		.sge = {app_sge(w.mr, 0, len)}};

	if (w.from[i]->qp->opc == OPC_UD) {
		s.remote_addr = (uint64_t)w.to[i]->qp->qpn << 32 | w.ah[i].id;
		s.rkey = QKEY;
	}
	app_post_send(w.from[i], &s);
}

static void post_recv(unsigned i, uint32_t len)
{
	struct abi_sge into = app_sge(w.mr, LONG, len);

	app_post_recv(w.to[i], 1, &into, 1);
}

/* One call of core_tx(), in which nothing is left to frames. */
static void turn(void)
{
	struct txd t[BURST];

	for (unsigned i = 0; i < BURST; i++)
		t[i].frame = w.host->tx[i];
	app_ring(&w.app, START);
	assert_int_equal(core_tx(&w.host->core, t, BURST, START), 0);
}

/* Packets of pair @p i that have arrived. */
static uint32_t arrived(unsigned i)
{
	return w.from[i]->qp->comp.una - PSN;
}

/* No two of the first @p n pairs are further apart than one turn of @p packets, and the few that
 * distinguish the last turn of a call from the others. */
static void assert_alike(unsigned n, uint32_t packets)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++)
			assert_true(arrived(i) <= arrived(k) * 17 / 16 + packets);
}

static void bulk(unsigned pairs, unsigned sessions)
{
	for (unsigned i = 0; i < pairs; i++) {
		pair(i, ABI_QPT_RC, 1 + i % sessions);
		for (unsigned k = 0; k < 8; k++)
			post(i, ABI_WR_RDMA_WRITE, LONG);
	}
}

/* Those that found no room have it first in the next call. */
static void sessions__share_alike(void **state)
{
	for (unsigned n = 2; n <= PAIRS; n++) {
		bulk(n, n);
		for (unsigned i = 0; i < 24; i++)
			turn();
		assert_alike(n, TURN / w.mtu);
		assert_true(arrived(0) > 0);
		teardown(state);
		setup(state);
	}
}

static void qps_of_a_session__share_alike(void **state)
{
	(void)state;
	bulk(8, 1);
	for (unsigned i = 0; i < 24; i++)
		turn();
	assert_alike(8, TURN / w.mtu);
	assert_true(arrived(0) > 0);
}

/* Of a datagram that is not fetched yet nobody knows whether it needs the room. */
static void datagrams__share_alike(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		pair(i, ABI_QPT_UD, 1 + i);
		for (unsigned k = 0; k < POSTED; k++) {
			post_recv(i, 8192);
			post(i, ABI_WR_SEND, 1024);
		}
	}
	for (unsigned i = 0; i < 6; i++)
		turn();
	assert_alike(4, TURN / (1024 + 2 * DIRECT_PIECE) + 1);
	assert_in_range(arrived(0), 1, POSTED - 1);
}

/* Two turns fit in a call: the last of eight is served in the fourth. */
static void short_message__waits_for_a_turn_of_each_other(void **state)
{
	(void)state;
	bulk(7, 7);
	pair(7, ABI_QPT_RC, 8);
	post(7, ABI_WR_RDMA_WRITE, 64);
	for (unsigned i = 0; i < 4; i++)
		turn();
	assert_int_equal(arrived(7), 1);
}

static void call__copies_no_more_than_its_room(void **state)
{
	struct core *c = &w.host->core;
	uint32_t open;
	unsigned served = 0;

	(void)state;
	bulk(4, 4);
	open = c->open;
	turn();
	for (unsigned i = 0; i < 4; i++)
		served += arrived(i) > 0;
	assert_int_equal(served, 2);
	assert_in_range(c->count.direct_bytes, TURN, DIRECT_ROUND);
	assert_int_equal(c->open, open);
}

/* The first SGE of a receive is filled before the second is refused. */
static void part_that_fails__counts(void **state)
{
	struct core *c = &w.host->core;
	struct txd t[BURST];
	struct abi_sge into[2];

	(void)state;
	for (unsigned i = 0; i < BURST; i++)
		t[i].frame = w.host->tx[i];
	pair(0, ABI_QPT_RC, 1);
	into[0] = app_sge(w.mr, LONG, 32 << 10);
	into[1] = into[0];
	into[1].lkey++;
	app_post_recv(w.to[0], 1, into, 2);
	post(0, ABI_WR_SEND, 64 << 10);
	app_ring(&w.app, START);
	core_tx(c, t, BURST, START);
	assert_int_equal(c->count.direct_messages, 0);
	assert_true(DIRECT_ROUND - c->direct_room >= 64 << 10);
}

/* Each page may be absent: of a SEND, those of both ends. */
static void sges_of_both_ends__take_room(void **state)
{
	struct abi_sge into[2] = {app_sge(w.mr, LONG, 700), app_sge(w.mr, LONG + 4096, 700)};
	struct app_send s = {
		.opcode = ABI_WR_SEND,
		.num_sge = 2,
		.sge = {app_sge(w.mr, 0, 500), app_sge(w.mr, 4096, 500)},
	};

	(void)state;
	pair(0, ABI_QPT_RC, 1);
	app_post_recv(w.to[0], 1, into, 2);
	app_post_send(w.from[0], &s);
	turn();
	assert_int_equal(arrived(0), 1);
	assert_int_equal(w.host->core.direct_room, DIRECT_ROUND - 1000 - 3 * DIRECT_PIECE);
}

/* As if so many packets of a READ had been copied. */
static void pass(uint32_t packets)
{
	requester_delivered(w.from[0]->qp, packets, false);
	responder_delivered(&w.host->core, w.to[0]->qp, KIND_READ, packets, false);
	completer_delivered(&w.host->core, w.from[0]->qp, false, START);
}

/* REQ-39, RSP-25: of two requests, and each counts, though the first ends in the midst of what a
 * round copies. */
static void read_counts_its_requests(uint32_t packets)
{
	const struct core_counters *n = &w.host->core.count;
	const uint32_t len = packets * 256;
	uint32_t passed;
	struct mr mr = {.key = KEY, .pd = APP_PD, .access = ALL, .iova = 1 << 20, .length = len};
	struct app_send s = {.opcode = ABI_WR_RDMA_READ,
		.flags = ABI_WQE_SIGNALED,
		.remote_addr = mr.iova,
		.rkey = KEY,
		.num_sge = 1,
		.sge = {{mr.iova, len, KEY}}};

	mr.base = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(mr.base, MAP_FAILED);
	atomic_store(&w.host->mrs.slot[KEY >> 8], &mr);
	w.mtu = 256;
	pair(0, ABI_QPT_RC, 1);
	app_post_send(w.from[0], &s);
	turn();
	passed = READ_PSNS_MAX - 100 - arrived(0);
	pass(passed);
	assert_int_equal(w.to[0]->qp->resp.msn, 0);
	while (arrived(0) < packets)
		turn();
	assert_int_equal(arrived(0), packets);
	assert_int_equal(w.to[0]->qp->resp.msn, 2);
	assert_int_equal(n->rx_read_requests, 2);
	assert_int_equal(n->direct_messages, 1);
	assert_int_equal(n->direct_bytes, len - passed * 256);
	munmap(mr.base, len);
}

static void long_read__counts_its_requests(void **state)
{
	(void)state;
	read_counts_its_requests(READ_PSNS_MAX + 3 * (DIRECT_ROUND / 256));
}

/* The second one is shorter than a part. */
static void long_read__counts_a_short_request(void **state)
{
	(void)state;
	read_counts_its_requests(READ_PSNS_MAX + 1);
}

/* --- runs ------------------------------------------------------------------------------- */

/* Pair @p i, ready for runs: its receiver has received before. */
static void acquainted(unsigned i)
{
	pair(i, ABI_QPT_RC, 1 + i);
	post(i, ABI_WR_RDMA_WRITE, 8);
	turn();
	assert_int_equal(arrived(i), 1);
	assert_true(w.to[i]->qp->comm_est && w.host->core.fast_paths);
}

static void run__counts_what_it_copied(void **state)
{
	const struct core_counters *n = &w.host->core.count;
	struct core_counters before;

	(void)state;
	acquainted(0);
	before = *n;
	for (unsigned k = 1; k <= 12; k++)
		post(0, k % 3 ? ABI_WR_RDMA_WRITE : ABI_WR_RDMA_READ, 100 * k);
	turn();
	assert_int_equal(arrived(0), 1 + 10 + 2 * 2); /* of more than 1024 bytes: two packets */
	assert_int_equal(n->direct_messages - before.direct_messages, 12);
	assert_int_equal(n->direct_bytes - before.direct_bytes, 100 * (12 * 13 / 2));
	assert_int_equal(n->rx_write_requests - before.rx_write_requests, 8);
	assert_int_equal(n->rx_read_requests - before.rx_read_requests, 4);
}

/* Runs use up the room of a call as other messages do. */
static void runs__share_alike(void **state)
{
	const uint32_t len = DIRECT_PIECE, room = DIRECT_ROUND;
	struct core *c = &w.host->core;
	uint64_t before;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		acquainted(i);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < POSTED; k++)
			post(i, ABI_WR_RDMA_WRITE, len);
	for (unsigned left = 4 * POSTED * len; left;
		left -= (uint32_t)(c->count.direct_bytes - before)) {
		before = c->count.direct_bytes;
		turn();
		assert_in_range(c->count.direct_bytes - before, 1, room / 2 + 2 * len);
		assert_true(c->direct_room < room);
		assert_alike(4, TURN / 2 / w.mtu);
	}
}

/* --- who may do without frames ---------------------------------------------------------- */

/* One message of each kind. */
static void every_kind__needs_no_frames(void **state)
{
	static const uint8_t opcodes[] = {ABI_WR_SEND, ABI_WR_SEND_WITH_IMM, ABI_WR_RDMA_WRITE,
		ABI_WR_RDMA_WRITE_WITH_IMM, ABI_WR_RDMA_READ, ABI_WR_ATOMIC_CMP_AND_SWP,
		ABI_WR_ATOMIC_FETCH_AND_ADD, ABI_WR_ATOMIC_WRITE, ABI_WR_FLUSH};
	struct core *c = &w.host->core;

	(void)state;
	pair(0, ABI_QPT_RC, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct app_send s = {.opcode = opcodes[i],
			.flags = ABI_WQE_SIGNALED,
			.remote_addr = app_va(w.mr, LONG),
			.rkey = w.mr->mr.key,
			.num_sge = opcodes[i] != ABI_WR_FLUSH,
			.sge = {app_sge(w.mr, 0, 8)}};

		if (opcodes[i] == ABI_WR_FLUSH) {
			s.imm = FETH_PLT_GLOBAL;
			s.flush_len = 8;
		}
		post_recv(0, 8);
		app_post_send(w.from[0], &s);
		turn();
		assert_int_equal(arrived(0), i + 1);
		assert_int_equal(c->count.direct_messages, i + 1);
	}
}

/* Why a message may not be copied to the memory of its peer. */
static void other_generation(struct qp *from, struct qp *to)
{
	from->attr.dest_qpn ^= 1u << 23;
}

static void other_worker(struct qp *from, struct qp *to)
{
	atomic_store(&to->owner, 1);
}

static void other_psn(struct qp *from, struct qp *to)
{
	to->resp.epsn++;
}

static void owes_an_ack(struct qp *from, struct qp *to)
{
	to->resp.owed = OWE_ACK;
}

static void sent_a_nak(struct qp *from, struct qp *to)
{
	to->resp.nak_sent = true;
}

static void is_not_ready(struct qp *from, struct qp *to)
{
	to->resp.rnr_sent = true;
}

static void cannot_receive(struct qp *from, struct qp *to)
{
	to->state = ABI_QPS_INIT;
}

static void has_another_peer(struct qp *from, struct qp *to)
{
	to->attr.dest_qpn++;
}

static void is_not_local(struct qp *from, struct qp *to)
{
	to->path.local = false;
}

static void other_mtu(struct qp *from, struct qp *to)
{
	to->mtu_shift++;
}

static void other_partition(struct qp *from, struct qp *to)
{
	to->pkey = 0x8123;
}

static void other_service(struct qp *from, struct qp *to)
{
	to->opc = OPC_UC;
}

static void other_net(struct qp *from, struct qp *to)
{
	to->path.net = NET_ROCEV1;
}

static void other_vlan(struct qp *from, struct qp *to)
{
	to->path.vid = 5;
}

static void other_port(struct qp *from, struct qp *to)
{
	to->path.port ^= 1;
}

static void other_source(struct qp *from, struct qp *to)
{
	from->path.hdr[from->path.l3_off + IP6_SRC + 15] ^= 1;
}

static void other_destination(struct qp *from, struct qp *to)
{
	to->path.hdr[to->path.l3_off + IP6_SRC + 15] ^= 1;
}

/* Each of these leaves the message to frames. */
static void peer_that_is_not_ready__gets_frames(void **state)
{
	static void (*const spoil[])(struct qp *, struct qp *) = {other_generation, other_worker,
		other_psn, owes_an_ack, sent_a_nak, is_not_ready, cannot_receive, has_another_peer,
		is_not_local, other_mtu, other_partition, other_service, other_net, other_vlan,
		other_port, other_source, other_destination};
	struct txd t[BURST];

	for (unsigned i = 0; i < ARRAY_SIZE(spoil); i++) {
		for (unsigned k = 0; k < BURST; k++)
			t[k].frame = w.host->tx[k];
		acquainted(0);
		spoil[i](w.from[0]->qp, w.to[0]->qp);
		post(0, ABI_WR_RDMA_WRITE, 8);
		app_ring(&w.app, START);
		assert_true(core_tx(&w.host->core, t, BURST, START) > 0);
		assert_int_equal(w.host->core.count.direct_messages, 1);
		teardown(state);
		setup(state);
	}
}

/* Accesses through the former binding of a window end before what is posted after the new one. */
static void request_after_another_binding__waits(void **state)
{
	struct core *c = &w.host->core;
	struct app_mw *mw = app_mw(&w.app, MW_TYPE_1);
	struct app_send bind = {.opcode = ABI_WR_BIND_MW,
		.rkey = app_mw_key(mw),
		.lkey = w.mr->mr.key,
		.access = ABI_ACCESS_REMOTE_WRITE,
		.remote_addr = app_va(w.mr, 0),
		.bind_len = LONG};

	(void)state;
	acquainted(0);
	for (unsigned i = 0; i < 2; i++) {
		bind.mw = bind.rkey;
		bind.rkey = (bind.mw & ~0xFFu) | ((bind.mw + 1) & 0xFF);
		app_post_send(w.from[0], &bind);
		post(0, ABI_WR_RDMA_WRITE, 8);
		turn();
		turn();
		assert_int_equal(arrived(0), 2);
	}
	assert_int_not_equal(core_grace_wanted(c), 0);
	core_grace_end(c, core_grace_wanted(c));
	turn();
	assert_int_equal(arrived(0), 3);
	assert_int_equal(c->count.direct_messages, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sessions__share_alike, setup, teardown),
		cmocka_unit_test_setup_teardown(qps_of_a_session__share_alike, setup, teardown),
		cmocka_unit_test_setup_teardown(datagrams__share_alike, setup, teardown),
		cmocka_unit_test_setup_teardown(
			short_message__waits_for_a_turn_of_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(
			call__copies_no_more_than_its_room, setup, teardown),
		cmocka_unit_test_setup_teardown(part_that_fails__counts, setup, teardown),
		cmocka_unit_test_setup_teardown(sges_of_both_ends__take_room, setup, teardown),
		cmocka_unit_test_setup_teardown(long_read__counts_its_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(long_read__counts_a_short_request, setup, teardown),
		cmocka_unit_test_setup_teardown(run__counts_what_it_copied, setup, teardown),
		cmocka_unit_test_setup_teardown(runs__share_alike, setup, teardown),
		cmocka_unit_test_setup_teardown(every_kind__needs_no_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(
			peer_that_is_not_ready__gets_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(
			request_after_another_binding__waits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
