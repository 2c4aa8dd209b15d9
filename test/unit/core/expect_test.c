/* SPDX-License-Identifier: BSD-3-Clause */
/* When the packets of a QP's peer are expected, and that nothing is expected any more once it has
 * changed. That both ways give the same results: fast_paths_test.c. */
#include "fixture.h"
#include "core_command.h"
#include "drop.h"
#include "expect.h"
#include "frame.h"
#include "guard.h"
#include "headers.h"
#include "opcode.h"
#include "qp.h"

static uint32_t psn;

static int setup(void **state)
{
	psn = RQ_PSN;
	return lone_setup(state);
}

/* A WRITE from the peer, but for what @p s has. @return its verdict. */
static uint16_t shoot(struct shot s)
{
	s.opcode = OP_WRITE_ONLY;
	s.psn = psn;
	s.va = app_va(l.mr, 0);
	s.rkey = l.mr->mr.key;
	s.dma_len = 8;
	s.len = 8;
	lone_rx(&l, &s);
	psn += l.verdict == DROP_NONE;
	return l.verdict;
}

/* The peer's packets are executed, and were expected. */
static void expect_on(void)
{
	assert_int_equal(shoot((struct shot){0}), DROP_NONE);
	assert_true(l.expected);
}

static void expect_drop(struct shot s, enum drop why)
{
	assert_string_equal(drop_name(shoot(s)), drop_name(why));
	assert_false(l.expected);
}

static void core_expect__peer(void **state)
{
	(void)state;
	lone_start(&l);
	expect_on();
	assert_int_equal(shoot((struct shot){.tos = 0x48}), DROP_NONE);
	assert_true(l.expected);
	expect_drop((struct shot){.src_ip = 77}, DROP_QP_ADDRESS);
	expect_drop((struct shot){.pkey = 0x8123}, DROP_PKEY);
	expect_drop((struct shot){.dmac = (const uint8_t[]){2, 0, 0, 9, 9, 9}}, DROP_DMAC);
	assert_int_equal(shoot((struct shot){.pkey = 0x7FFF}), DROP_NONE); /* VAL-08 */
	assert_false(l.expected);
}

/* VAL-01: nothing but the headers is taken for granted. */
static void core_expect__bad_icrc(void **state)
{
	(void)state;
	lone_start(&l);
	assert_int_equal(shoot((struct shot){.bad_icrc = true}), DROP_ICRC);
	assert_true(l.expected);
}

/* proves QPS-20, RSP-47 */
static void core_expect__state(void **state)
{
	(void)state;
	lone_start_in(&l, ABI_QPS_RTR);
	expect_on();
	lone_ack(&l, SQ_PSN, 1);
	assert_int_equal(l.verdict, DROP_QP_STATE);
	assert_true(l.expected);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	assert_int_equal(shoot((struct shot){0}), DROP_QP_STATE);
	assert_true(l.expected);
}

/* proves CNP-01: a mark is noticed */
static void core_expect__congestion(void **state)
{
	(void)state;
	lone_start(&l);
	atomic_store(&l.host->ports.port[0].rcm, rcm_word(48 << 2, 6, true));
	l.cnp_tos = 48 << 2;
	assert_int_equal(shoot((struct shot){.tos = 3}), DROP_NONE);
	assert_true(l.expected);
	assert_int_equal(count()->np_ecn_marked_roce_packets, 1);
	assert_non_null(strstr(lone_tx(&l), "CNP"));
}

/* proves SEC-03: what this daemon's QPs and groups send is known by its source. */
static void core_expect__not_from_the_wire(void **state)
{
	static const uint8_t queues[] = {PKT_LOCAL, PKT_COPY, PKT_LOCAL_NAMED};

	(void)state;
	lone_start(&l);
	for (unsigned i = 0; i < sizeof(queues); i++) {
		shoot((struct shot){.queue = (uint8_t)(queues[i] + 1)});
		assert_false(l.expected);
	}
	assert_int_equal(shoot((struct shot){.queue = 1}), DROP_NONE);
	assert_true(l.expected);
}

/* Another worker's QP is not looked at. */
static void core_expect__other_owner(void **state)
{
	(void)state;
	lone_start(&l);
	l.host->core.cfg.worker = 1;
	assert_int_equal(shoot((struct shot){0}), VERDICT_HANDOFF);
	assert_false(l.expected);
	l.host->core.cfg.worker = 0;
	expect_on();
}

/* Traces and injected faults take single steps. */
static void core_expect__careful(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_TRACING, .tracing = true};

	(void)state;
	lone_start(&l);
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(shoot((struct shot){0}), DROP_NONE);
	assert_false(l.expected);
	cmd.tracing = false;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	expect_on();
	core_fast_paths(&l.host->core, false);
	assert_int_equal(shoot((struct shot){0}), DROP_NONE);
	assert_false(l.expected);
}

/* The first @p len bytes of @p frame, where memory ends, get the verdict of frame_parse().
 * @return whether they are a packet. */
static bool is_packet(const uint8_t *frame, size_t len)
{
	static struct guard g;
	struct pkt p = {.queue = PKT_NO_QUEUE}, q = p;
	const uint8_t *at;
	enum drop why;

	if (!g.begin)
		g = guard_map(FRAME_MAX);
	at = memcpy(g.end - len, frame, len);
	why = frame_parse(&q, at, len);
	assert_int_equal(host_parse(&l.host->core, &p, at, len), why);
	l.expected = !why && p.expected;
	return !why;
}

/* No frame is read beyond its end, and one of less than 60 bytes is not compared. Those of the
 * shortest packets have 58 without padding, those of an ACK 62. */
static void core_expect__short(void **state)
{
	uint8_t send[FRAME_MAX] = {0}, ack[FRAME_MAX];

	(void)state;
	lone_start(&l);
	assert_int_equal(lone_frame(&l, send, &(struct shot){.opcode = OP_SEND_ONLY}), 58);
	assert_int_equal(lone_frame(&l, ack, &(struct shot){.opcode = OP_ACKNOWLEDGE}), 62);
	for (size_t len = 0; len < 62; len++) {
		assert_int_equal(is_packet(send, len), len >= 58);
		assert_int_equal(l.expected, len >= 60);
		assert_false(is_packet(ack, len));
	}
	assert_true(is_packet(ack, 62));
	assert_true(l.expected);
}

/* Other traffic names no QP, whatever its bytes are. */
static void core_expect__other_traffic(void **state)
{
	uint8_t frame[FRAME_MAX];
	size_t len;

	(void)state;
	lone_start(&l);
	len = lone_frame(&l, frame, &(struct shot){.opcode = OP_ACKNOWLEDGE});
	assert_ptr_equal(core_expect(&l.host->core, frame, len, NULL), &l.qp->qp->expect);
	put_be16(frame + ETH_HLEN + IP4_HLEN + UDP_DPORT, 4790);
	assert_null(core_expect(&l.host->core, frame, len, NULL));
}

/* --- it changes ----------------------------------------------------------------------- */

static void set_pkey(uint16_t pkey)
{
	struct core_cmd cmd = {.type = CORE_CMD_RELOAD_PKEYS, .n = 1, .qps = &l.qp->qp};

	l.host->ports.port[0].pkey[0] = pkey;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
}

/* proves VAL-09: as soon as the port's table has changed */
static void expect_peer__pkey(void **state)
{
	(void)state;
	lone_start(&l);
	expect_on();
	set_pkey(0x8123);
	expect_drop((struct shot){0}, DROP_PKEY);
	assert_int_equal(shoot((struct shot){.pkey = 0x8123}), DROP_NONE);
	assert_true(l.expected);
	set_pkey(0x0123); /* VAL-08: a limited member hears full ones only */
	expect_drop((struct shot){.pkey = 0x0123}, DROP_PKEY);
	assert_int_equal(shoot((struct shot){.pkey = 0x8123}), DROP_NONE);
	set_pkey(0x8000); /* no partition */
	expect_drop((struct shot){.pkey = 0x8000}, DROP_PKEY);
}

/* proves QPS-10, VAL-09: another index */
static void expect_peer__pkey_index(void **state)
{
	struct abi_qp_attr a = {.qp_state = ABI_QPS_SQD, .pkey_index = 1};

	(void)state;
	l.host->ports.port[0].pkeys = 2;
	l.host->ports.port[0].pkey[1] = 0x8123;
	lone_start(&l);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	expect_on();
	assert_int_equal(app_modify(l.qp, ABI_QP_STATE | ABI_QP_PKEY_INDEX, &a, NULL, l.now), 0);
	expect_drop((struct shot){0}, DROP_PKEY);
	assert_int_equal(shoot((struct shot){.pkey = 0x8123}), DROP_NONE);
	assert_true(l.expected);
}

/* Another peer's path, by @p gid. */
static struct path_spec path_to(uint8_t id, enum host_gid gid)
{
	struct path_spec path = host_path(l.host, l.host, l.attr.port - 1u, gid);

	path.dgid[15] = id;
	path.local = false;
	return path;
}

static int repath(uint8_t id, enum host_gid gid)
{
	struct path_spec path = path_to(id, gid);
	struct core_cmd cmd = {.type = CORE_CMD_REPATH_QP, .qp = l.qp->qp, .path = path};

	cmd.sgid = *path.sgid;
	return core_cmd(&l.host->core, &cmd, l.now);
}

/* proves VAL-12: another address, by two commands; and other protocols */
static void expect_peer__path(void **state)
{
	struct path_spec path = path_to(78, HOST_GID_IPV4);
	struct abi_qp_attr a = {.qp_state = ABI_QPS_SQD, .ah = {.port = 1, .is_global = 1}};

	(void)state;
	lone_start(&l);
	assert_int_equal(repath(77, HOST_GID_IPV4), 0);
	expect_drop((struct shot){0}, DROP_QP_ADDRESS);
	assert_int_equal(shoot((struct shot){.src_ip = 77}), DROP_NONE);
	assert_true(l.expected);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	assert_int_equal(app_modify(l.qp, ABI_QP_STATE | ABI_QP_AV, &a, &path, l.now), 0);
	expect_drop((struct shot){.src_ip = 77}, DROP_QP_ADDRESS);
	assert_int_equal(shoot((struct shot){.src_ip = 78}), DROP_NONE);
	assert_true(l.expected);
	assert_int_equal(repath(78, HOST_GID_IPV6), 0);
	expect_drop((struct shot){.src_ip = 78}, DROP_QP_ADDRESS);
	assert_int_equal(l.qp->qp->expect.port, EXPECT_NOTHING);
	assert_int_equal(repath(78, HOST_GID_VLAN), 0); /* ETH-07 */
	expect_drop((struct shot){.src_ip = 78}, DROP_QP_ADDRESS);
	assert_int_equal(l.qp->qp->expect.port, EXPECT_NOTHING);
}

/* proves SEC-03: the peer is a QP of this daemon now, or is not any more */
static void expect_peer__local(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_READDRESS_QPS, .n = 1};

	(void)state;
	lone_start(&l);
	cmd.qps = &l.qp->qp;
	cmd.path.local = true;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	expect_drop((struct shot){0}, DROP_QP_ADDRESS);
	cmd.path.local = false;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	expect_on();
}

/* proves ETH-10: the port's MAC, not that from when the QP was connected */
static void expect_peer__mac(void **state)
{
	static const uint8_t other[6] = {2, 0, 0, 9, 9, 9};

	(void)state;
	lone_start(&l);
	port_set_mac(&l.host->ports.port[0], other);
	expect_drop((struct shot){0}, DROP_DMAC);
	assert_int_equal(shoot((struct shot){.dmac = other}), DROP_NONE);
	assert_true(l.expected);
}

/* Both ports have the same address, so only port and MAC tell their frames apart. proves VAL-12,
 * ETH-10: those of the QP's port */
static void expect_peer__second_port(void **state)
{
	struct gid_entry *first = &l.host->gids[0].entry[HOST_GID_IPV4];
	struct gid_entry *second = &l.host->gids[1].entry[HOST_GID_IPV4];
	struct path_spec path;

	(void)state;
	memcpy(second->gid, first->gid, sizeof(second->gid));
	l.attr.port = 2;
	path = path_to(PEER_ID, HOST_GID_IPV4);
	lone_start_in(&l, ABI_QPS_RESET);
	assert_int_equal(app_to_init(l.qp, &l.attr, l.now), 0);
	assert_int_equal(app_to_rtr(l.qp, &l.attr, &path, l.now), 0);
	assert_int_equal(shoot((struct shot){.port = 1, .dmac = second->mac}), DROP_NONE);
	assert_true(l.expected);
	expect_drop((struct shot){.port = 1, .dmac = first->mac}, DROP_DMAC);
	expect_drop((struct shot){.port = 0, .dmac = first->mac}, DROP_QP_ADDRESS);
	expect_drop((struct shot){.port = 0, .dmac = second->mac}, DROP_DMAC);
}

/* QPS-16 */
static void expect_peer__reset(void **state)
{
	(void)state;
	lone_start_in(&l, ABI_QPS_RESET);
	assert_int_equal(l.qp->qp->expect.port, EXPECT_NOTHING);
	lone_climb(&l, ABI_QPS_INIT);
	assert_int_equal(l.qp->qp->expect.port, EXPECT_NOTHING);
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	lone_climb(&l, ABI_QPS_RTS);
	expect_on();
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RESET, l.now), 0);
	expect_drop((struct shot){0}, DROP_QP_STATE);
	lone_climb(&l, ABI_QPS_INIT); /* which loads a P_Key */
	expect_drop((struct shot){0}, DROP_QP_STATE);
}

/* VAL-04: other services have checks of their own. */
static void expect_peer__other_services(void **state)
{
	static const uint8_t types[] = {ABI_QPT_UC, ABI_QPT_XRC_SEND, ABI_QPT_XRC_RECV};

	(void)state;
	for (unsigned i = 0; i < sizeof(types); i++) {
		if (i) {
			lone_fini(&l);
			lone_init(&l);
		}
		l.spec.type = types[i];
		lone_start(&l);
		assert_int_equal(l.qp->qp->expect.port, EXPECT_NOTHING);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(core_expect__peer),
		TEST(core_expect__bad_icrc),
		TEST(core_expect__state),
		TEST(core_expect__congestion),
		TEST(core_expect__not_from_the_wire),
		TEST(core_expect__other_owner),
		TEST(core_expect__careful),
		TEST(core_expect__short),
		TEST(core_expect__other_traffic),
		TEST(expect_peer__pkey),
		TEST(expect_peer__pkey_index),
		TEST(expect_peer__path),
		TEST(expect_peer__local),
		TEST(expect_peer__mac),
		TEST(expect_peer__second_port),
		TEST(expect_peer__reset),
		TEST(expect_peer__other_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
