/* SPDX-License-Identifier: BSD-3-Clause */
/* Fast CNPs of a switch: who gets one, how often, and what becomes of the packet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "frame.h"
#include "icrc.h"
#include "opcode.h"
#include "switch.h"

#define PORTS	 2u
#define LEN	 1102u
#define INTERVAL 50000u
#define CE	 3u

static struct sim_engine engine;
static struct sim_due heap[16];
static uint32_t place[16 + 1];
static struct buffer_pool pool;
static uint8_t memory[1u << 20] CACHE_ALIGNED;
static struct sim_notify notify;
static struct sim_switch sw;
static struct switch_port port[PORTS];
static const struct switch_way way[PORTS + 1] = {{0}, {0, 1}, {1, 1}};
static const uint16_t next_port[PORTS] = {0, 1};
static const uint8_t types[FAST_CNP_OPTIONS] = {NOTIFY_OPTION, NOTIFY_OPTION + 1};

/* Frames that left each port. */
static struct out {
	struct sim_sink sink;
	unsigned data, cnps, marked;
} out[PORTS];

static void come(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	struct out *o = container_of(to, struct out, sink);
	bool cnp = switch_opcode(b->bytes, b->len) == OPCODE_CNP;

	o->cnps += cnp;
	o->data += !cnp;
	o->marked += (b->bytes[ETH_HLEN + 1] >> 4 & CE) == CE;
	pool_put(&pool, b);
}

static int setup(void **state)
{
	memset(out, 0, sizeof(out));
	engine_init(&engine, heap, place, 16, 1000);
	pool_init(&pool, memory, sizeof(memory));
	notify_init(&notify, INTERVAL, icrc_best(), 7);
	return 0;
}

/* A WRITE of host 1 to QP @p qpn of host 2, ECN-capable. */
static struct sim_buffer *packet(uint32_t qpn)
{
	struct sim_buffer *b = pool_get(&pool, LEN);
	uint8_t *ip = b->bytes + ETH_HLEN, *udp = ip + IP6_HLEN, *bth = udp + UDP_HLEN;

	memset(b->bytes, 0, LEN);
	b->bytes[ETH_DST] = b->bytes[ETH_SRC] = 2;
	b->bytes[ETH_DST + 5] = 2;
	b->bytes[ETH_SRC + 5] = 1;
	put_be16(b->bytes + ETH_TYPE, ETHERTYPE_IPV6);
	put_be32(ip, 6u << 28 | 2u << 20 | 0x12345);
	put_be16(ip + IP6_PLEN, LEN - ETH_HLEN - IP6_HLEN);
	ip[IP6_NXT] = IPPROTO_ROCEV2;
	ip[IP6_SRC + 15] = 1;
	ip[IP6_DST + 15] = 2;
	put_be16(udp + UDP_SPORT, 0xC123);
	put_be16(udp + UDP_DPORT, UDP_PORT_ROCEV2);
	put_be16(udp + UDP_LEN, LEN - ETH_HLEN - IP6_HLEN);
	bth[BTH_OPCODE] = OPC_RC | OP_WRITE_MIDDLE;
	put_be16(bth + BTH_PKEY, 0x8001);
	put_be32(bth + BTH_RESV8A, qpn);
	return b;
}

static uint8_t to_host = 2;

/* @return the answer to a packet that is to be marked, parsed, in @p f; false: there is none. */
static bool answer(uint32_t qpn, uint64_t now, struct pkt *p, struct fast_cnp *f)
{
	static uint8_t frame[FAST_CNP_FRAME_MAX];
	struct sim_buffer *b = packet(qpn), *a;
	size_t len;

	b->bytes[ETH_HLEN + IP6_DST + 15] = to_host;
	assert_true(notify_marked(&notify, &pool, b, now, &a));
	pool_put(&pool, b);
	if (!a)
		return false;
	len = a->len;
	memcpy(frame, a->bytes, len);
	pool_put(&pool, a);
	assert_int_equal(fast_cnp_parse(p, f, frame, len, types), DROP_NONE);
	assert_true(fast_cnp_icrc_check(icrc_best(), p));
	return true;
}

/* From the switch to the source, about the flow. */
static void answer__names_the_flow(void **state)
{
	struct fast_cnp f;
	struct pkt p;

	assert_true(answer(0x11, 1000, &p, &f));
	assert_memory_equal(p.l3 + IP6_SRC, notify_prefix, 8);
	assert_int_equal(p.l3[IP6_SRC + 15], 7);
	assert_int_equal(p.l3[IP6_DST + 15], 1);
	assert_int_equal(f.dip[15], 2);
	assert_int_equal(p.dest_qp, 0x11);
	assert_int_equal(p.pkey, 0x8001);
	assert_int_equal(p.dmac[ETH_DST + 5], 1);
}

static void answer__is_one_per_flow_and_interval(void **state)
{
	struct fast_cnp f;
	struct pkt p;

	assert_true(answer(0x11, 1000, &p, &f));
	assert_false(answer(0x11, 1000 + INTERVAL - 1, &p, &f));
	assert_true(answer(0x12, 1000 + INTERVAL - 1, &p, &f));
	assert_true(answer(0x11, 1000 + INTERVAL, &p, &f));
	to_host = 3; /* which may have a QP of the same number */
	assert_true(answer(0x11, 1000 + INTERVAL, &p, &f));
	to_host = 2;
	assert_int_equal(notify.sent, 4);
}

/* IPv4 (FCN-02), a frame that is no RoCE, and a switch that makes none: marks. */
static void others__are_marked(void **state)
{
	struct sim_buffer *b = packet(0x11), *a;

	put_be16(b->bytes + ETH_TYPE, ETHERTYPE_IPV4);
	assert_false(notify_marked(&notify, &pool, b, 1000, &a));
	assert_null(a);
	put_be16(b->bytes + ETH_TYPE, ETHERTYPE_IPV6);
	b->bytes[ETH_HLEN + IP6_NXT] = 6;
	assert_false(notify_marked(&notify, &pool, b, 1000, &a));
	b->bytes[ETH_HLEN + IP6_NXT] = IPPROTO_ROCEV2;
	notify.interval = 0;
	assert_false(notify_marked(&notify, &pool, b, 1000, &a));
	notify.interval = INTERVAL;
	assert_true(notify_marked(&notify, &pool, b, 1000, &a));
	assert_non_null(a);
}

/* All that find a queue would be marked: nine of ten packets. */
static void run(struct sim_notify *n)
{
	const struct wire_config wire = {.rate_bps = 40000000000ull, .delay_ns = 1000};
	const struct aqm_config aqm = {.kmin = 1, .kmax = 2, .pmax = 1};

	switch_init(&sw, &pool, port, PORTS);
	switch_route(&sw, way, PORTS + 1, next_port);
	sw.notify = n;
	for (unsigned i = 0; i < PORTS; i++) {
		out[i].sink.receive = come;
		switch_plug(&sw, i, &engine, &wire, &aqm, i, &out[i].sink);
	}
	for (unsigned i = 0; i < 10; i++)
		port[0].in.receive(&port[0].in, packet(0x11), engine.now);
	engine_run(&engine, engine.now + 100000);
	assert_int_equal(out[1].data, 10);
	assert_int_equal(out[1].cnps, 0);
	assert_int_equal(out[0].data, 0);
	assert_int_equal(pool.held, 0);
}

static void switch__answers_instead_of_marking(void **state)
{
	run(&notify);
	assert_int_equal(out[1].marked, 0);
	assert_int_equal(port[1].count.marked, 0);
	assert_int_equal(out[0].cnps, 1);
	assert_int_equal(notify.sent, 1);
	setup(NULL);
	run(NULL);
	assert_in_range(out[1].marked, 8, 9);
	assert_int_equal(out[0].cnps, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(answer__names_the_flow, setup),
		cmocka_unit_test_setup(answer__is_one_per_flow_and_interval, setup),
		cmocka_unit_test_setup(others__are_marked, setup),
		cmocka_unit_test_setup(switch__answers_instead_of_marking, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
