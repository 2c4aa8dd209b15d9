/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "headers.h"
#include "opcode.h"
#include "switch.h"

#define PORTS 3u
#define DATA  (OPC_RC | OP_WRITE_MIDDLE)
#define ACK   (OPC_RC | OP_ACKNOWLEDGE)
#define LEN   1082u

static struct sim_engine engine;
static struct sim_due heap[64];
static uint32_t place[64 + 1];
static struct buffer_pool pool;
static uint8_t memory[1u << 20] CACHE_ALIGNED;
static struct sim_switch sw;
static struct switch_port port[PORTS];
static struct switch_way way[PORTS + 1];
static uint16_t next_port[2 * PORTS];

/* Frames that left each port. */
static struct out {
	struct sim_sink sink;
	unsigned frames;
	uint64_t at[512];
	uint8_t code[512];
	bool ce[512];
} out[PORTS];

static void come(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	struct out *o = container_of(to, struct out, sink);

	o->at[o->frames] = now;
	o->code[o->frames] = (uint8_t)switch_opcode(b->bytes, b->len);
	o->ce[o->frames++] = (b->bytes[ETH_HLEN + IP4_TOS] & ECN_MASK) == ECN_CE;
	pool_put(&pool, b);
}

static void start(const struct aqm_config *aqm)
{
	const struct wire_config wire = {.rate_bps = 40000000000ull, .delay_ns = 1000};

	memset(out, 0, sizeof(out));
	engine_init(&engine, heap, place, 64, 5000);
	pool_init(&pool, memory, sizeof(memory));
	switch_init(&sw, &pool, port, PORTS);
	switch_route(&sw, way, PORTS + 1, next_port);
	way[0] = (struct switch_way){0};
	for (unsigned i = 0; i < PORTS; i++) {
		next_port[i] = (uint16_t)i;
		way[i + 1] = (struct switch_way){i, 1};
		out[i].sink.receive = come;
		switch_plug(&sw, i, &engine, &wire, aqm, i, &out[i].sink);
	}
}

static void send_from(unsigned from, unsigned to, uint8_t code, uint16_t udp_port)
{
	struct sim_buffer *b = pool_get(&pool, LEN);

	assert_non_null(b);
	memset(b->bytes, 0, LEN);
	memcpy(b->bytes + ETH_DST, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)to}, 6);
	put_be16(b->bytes + ETH_TYPE, ETHERTYPE_IPV4);
	b->bytes[ETH_HLEN + IP4_TOS] = ECN_ECT0;
	b->bytes[ETH_HLEN + IP4_HLEN + UDP_HLEN + BTH_OPCODE] = code;
	put_be16(b->bytes + ETH_HLEN + IP4_HLEN, udp_port);
	port[from].in.receive(&port[from].in, b, engine.now);
}

static void send(unsigned from, unsigned to, uint8_t code)
{
	send_from(from, to, code, 0xC000);
}

/* 1,106 bytes at 40 Gb/s take 221.2 ns: after five frames none is missing. */
static void wire__is_back_to_back(void **state)
{
	start(&(struct aqm_config){0});
	for (unsigned i = 0; i < 11; i++)
		send(0, 2, DATA);
	engine_run(&engine, 100000);
	assert_int_equal(out[1].frames, 11);
	for (unsigned i = 0; i < 11; i++)
		assert_int_equal(out[1].at[i], 5000 + 1000 + ((i + 1) * 2212 + 9) / 10);
	assert_int_equal(port[1].out.bytes, 11 * 1106);
	assert_int_equal(pool.held, 0);
}

static void switch__sends_control_first(void **state)
{
	static const uint8_t want[] = {DATA, OPCODE_CNP, ACK, DATA, DATA};

	start(&(struct aqm_config){0});
	for (unsigned i = 0; i < 3; i++)
		send(0, 3, DATA);
	send(0, 3, OPCODE_CNP);
	send(1, 3, ACK);
	engine_run(&engine, 100000);
	assert_int_equal(out[2].frames, sizeof(want));
	assert_memory_equal(out[2].code, want, sizeof(want));
}

/* A queue that is mostly empty has an empty median, and no quantile is above the most. */
static void meter__knows_empty_from_short(void **state)
{
	static struct sim_meter m;

	meter_begin(&m, 0, 0);
	meter_change(&m, 100, 980);
	meter_change(&m, 0, 1000);
	assert_float_equal(meter_quantile(&m, 0.5), 0, 0);
	assert_float_equal(meter_quantile(&m, 0.98), 0, 0);
	assert_float_equal(meter_quantile(&m, 0.99), 100, 0);
	meter_begin(&m, 8 * METER_STEP, 0); /* as if all of a step were in use */
	meter_change(&m, 20 * METER_STEP, 1000);
	meter_change(&m, 0, 2000);
	assert_float_equal(meter_quantile(&m, 0.25), 7.5 * METER_STEP, 1e-9);
	assert_float_equal(meter_quantile(&m, 0.75), 19.5 * METER_STEP, 1e-9);
	meter_begin(&m, 2ull * METER_STEP * METER_STEPS, 0); /* beyond the last step */
	meter_change(&m, 0, 1000);
	assert_float_equal(meter_quantile(&m, 0.5), 2.0 * METER_STEP * METER_STEPS, 0);
}

/* At egress the mark is of now: the frames that are left, as it leaves. At ingress it is of then.
 */
static void switch__marks_at_egress_or_ingress(void **state)
{
	for (unsigned ingress = 0; ingress < 2; ingress++) {
		start(&(struct aqm_config){
			.kmin = 4 * 1086, .kmax = 4 * 1086 + 1, .ingress = ingress});
		for (unsigned i = 0; i < 10; i++)
			send(0, 2, DATA);
		engine_run(&engine, 100000);
		assert_int_equal(out[1].frames, 10);
		/* The first leaves at once. Of the others, 9 wait: those that leave 5 or more
		 * others are marked, or those that found as many. */
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(out[1].ce[i], ingress ? i >= 6 : i >= 1 && i <= 4);
		assert_int_equal(port[1].count.marked, 4);
	}
}

/* CNPs and ACKs wait elsewhere: they do not count, and are not marked. */
static void switch__does_not_mark_control(void **state)
{
	start(&(struct aqm_config){.kmin = 1, .kmax = 2});
	send(0, 2, DATA);
	for (unsigned i = 0; i < 20; i++)
		send(0, 2, i % 2 ? ACK : OPCODE_CNP);
	engine_run(&engine, 100000);
	assert_int_equal(out[1].frames, 21);
	assert_int_equal(port[1].count.marked, 0);
}

static void switch__drops_what_does_not_fit(void **state)
{
	start(&(struct aqm_config){.limit = 3 * 1086});
	for (unsigned i = 0; i < 10; i++) /* one leaves at once, three wait */
		send(0, 1, DATA);
	send(0, 1, ACK);
	engine_run(&engine, 100000);
	assert_int_equal(out[0].frames, 5);
	assert_int_equal(port[0].count.dropped, 6);
	assert_int_equal(pool.held, 0);
}

static void switch__forwards(void **state)
{
	start(&(struct aqm_config){0});
	send(0, 0, DATA);	  /* nobody */
	send(0, PORTS + 1, DATA); /* nobody */
	send(0, 2, DATA);
	engine_run(&engine, 100000);
	assert_int_equal(sw.lost, 2);
	assert_int_equal(out[0].frames + out[2].frames, 0);
	assert_int_equal(out[1].frames, 1);
}

/* To a group: a copy to each port but that of the sender. */
static void switch__floods(void **state)
{
	struct sim_buffer *b;

	start(&(struct aqm_config){0});
	b = pool_get(&pool, LEN);
	memset(b->bytes, 0xFF, LEN);
	port[1].in.receive(&port[1].in, b, engine.now);
	engine_run(&engine, 100000);
	assert_int_equal(out[0].frames, 1);
	assert_int_equal(out[1].frames, 0);
	assert_int_equal(out[2].frames, 1);
	assert_int_equal(pool.held, 0);
}

/* Two ports lead to host 3: flows are spread over both, and the frames of one stay together. */
static void switch__spreads_flows(void **state)
{
	const unsigned flows = 200;
	unsigned first;

	start(&(struct aqm_config){0});
	next_port[PORTS] = 1;
	next_port[PORTS + 1] = 2;
	way[3] = (struct switch_way){PORTS, 2};
	for (unsigned i = 0; i < flows; i++)
		send_from(0, 3, DATA, (uint16_t)(0xC000 + i));
	engine_run(&engine, 1000000);
	assert_int_equal(out[1].frames + out[2].frames, flows);
	assert_in_range(out[1].frames, flows * 3 / 8, flows * 5 / 8);
	first = out[1].frames;
	for (unsigned i = 0; i < 20; i++)
		send_from(0, 3, DATA, 0xC007);
	engine_run(&engine, 2000000);
	assert_true(out[1].frames == first || out[1].frames == first + 20);
}

/* Switches in a row do not decide alike. */
static void switch__hashes_with_its_own_salt(void **state)
{
	uint8_t b[100] = {0};
	unsigned alike = 0;

	put_be16(b + ETH_TYPE, ETHERTYPE_IPV4);
	for (unsigned i = 0; i < 200; i++) {
		put_be16(b + ETH_HLEN + IP4_HLEN, (uint16_t)(0xC000 + i));
		alike += (switch_hash(b, 100, 1) ^ switch_hash(b, 100, 2)) >> 31 == 0;
	}
	assert_in_range(alike, 75, 125);
}

/* The last packet of a message may be short: it must not overtake those before it. */
static void switch__hashes_short_frames_of_a_flow_alike(void **state)
{
	const size_t least[] = {ETH_HLEN + IP4_HLEN + UDP_HLEN, ETH_HLEN + IP6_HLEN + UDP_HLEN};
	const uint16_t type[] = {ETHERTYPE_IPV4, ETHERTYPE_IPV6};

	for (unsigned v = 0; v < 2; v++) {
		uint8_t b[1100];

		memset(b, 0x5A, sizeof(b));
		put_be16(b + ETH_TYPE, type[v]);
		for (size_t len = least[v]; len < sizeof(b); len++)
			assert_int_equal(switch_hash(b, len, 1), switch_hash(b, sizeof(b), 1));
		assert_int_not_equal(switch_hash(b, least[v] - 1, 1), switch_hash(b, sizeof(b), 1));
	}
}

static void meter__weighs_by_time(void **state)
{
	static struct sim_meter m;

	meter_begin(&m, 0, 1000);
	meter_change(&m, 10 * METER_STEP, 1100); /* 100 ns of nothing */
	meter_change(&m, 100 * METER_STEP, 1900);
	meter_change(&m, 0, 2000);
	assert_float_equal(meter_mean(&m), 18.0 * METER_STEP, 1e-9);
	assert_in_range(meter_quantile(&m, 0.5), 9 * METER_STEP, 10 * METER_STEP);
	assert_in_range(meter_quantile(&m, 0.95), 99 * METER_STEP, 100 * METER_STEP);
	assert_float_equal(meter_quantile(&m, 0.05), 0, 0);
	assert_int_equal(m.most, 100 * METER_STEP);
}

/* Memory is used again, by length class, and a shortage is a loss. */
static void pool__uses_memory_again(void **state)
{
	struct sim_buffer *first, *b;
	unsigned n = 0;

	pool_init(&pool, memory, sizeof(memory));
	first = pool_get(&pool, 60);
	pool_put(&pool, first);
	b = pool_get(&pool, 1000);
	assert_ptr_not_equal(b, first);
	assert_ptr_equal(pool_get(&pool, 100), first);
	while (pool_get(&pool, FRAME_MAX))
		n++;
	assert_in_range(
		n, sizeof(memory) / (FRAME_MAX + 2 * CACHE_LINE), sizeof(memory) / FRAME_MAX);
	assert_int_equal(pool.refused, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wire__is_back_to_back),
		cmocka_unit_test(switch__sends_control_first),
		cmocka_unit_test(switch__marks_at_egress_or_ingress),
		cmocka_unit_test(switch__does_not_mark_control),
		cmocka_unit_test(switch__drops_what_does_not_fit),
		cmocka_unit_test(switch__forwards),
		cmocka_unit_test(switch__floods),
		cmocka_unit_test(switch__spreads_flows),
		cmocka_unit_test(switch__hashes_with_its_own_salt),
		cmocka_unit_test(switch__hashes_short_frames_of_a_flow_alike),
		cmocka_unit_test(meter__weighs_by_time),
		cmocka_unit_test(meter__knows_empty_from_short),
		cmocka_unit_test(pool__uses_memory_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
