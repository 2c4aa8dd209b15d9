/* SPDX-License-Identifier: BSD-3-Clause */
/* Priority flow control, and the buffer that the ports of a switch share. */
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
#define LEN   1082u
#define FRAME (LEN + WIRE_FCS)
#define DATA  (OPC_RC | OP_WRITE_MIDDLE)
#define ACK   (OPC_RC | OP_ACKNOWLEDGE)

static struct sim_engine engine;
static struct sim_due heap[64];
static uint32_t place[64 + 1];
static struct buffer_pool pool;
static uint8_t memory[1u << 20] CACHE_ALIGNED;
static struct sim_switch sw;
static struct switch_port port[PORTS];
static struct switch_way way[PORTS + 1];
static uint16_t next_port[PORTS];

/* Frames that left each port. */
static struct out {
	struct sim_sink sink;
	unsigned data, acks, xoffs, xons;
} out[PORTS];

static void come(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	struct out *o = container_of(to, struct out, sink);
	enum pfc_word word = pfc_read(b);

	o->xoffs += word == PFC_XOFF;
	o->xons += word == PFC_XON;
	if (word == PFC_NONE && switch_opcode(b->bytes, b->len) == ACK)
		o->acks++;
	else if (word == PFC_NONE)
		o->data++;
	pool_put(&pool, b);
}

static void start(const struct switch_memory *m)
{
	const struct wire_config wire = {.rate_bps = 40000000000ull, .delay_ns = 1000};

	memset(out, 0, sizeof(out));
	engine_init(&engine, heap, place, 64, 5000);
	pool_init(&pool, memory, sizeof(memory));
	switch_init(&sw, &pool, port, PORTS);
	switch_route(&sw, way, PORTS + 1, next_port);
	sw.memory = *m;
	for (unsigned i = 0; i < PORTS; i++) {
		next_port[i] = (uint16_t)i;
		way[i + 1] = (struct switch_way){i, 1};
		out[i].sink.receive = come;
		switch_plug(&sw, i, &engine, &wire, &(struct aqm_config){0}, i, &out[i].sink);
	}
}

static void send(unsigned from, unsigned to, uint8_t code, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct sim_buffer *b = pool_get(&pool, LEN);

		assert_non_null(b);
		memset(b->bytes, 0, LEN);
		memcpy(b->bytes + ETH_DST, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)to}, 6);
		put_be16(b->bytes + ETH_TYPE, ETHERTYPE_IPV4);
		b->bytes[ETH_HLEN + IP4_HLEN + UDP_HLEN + BTH_OPCODE] = code;
		port[from].in.receive(&port[from].in, b, engine.now);
	}
}

static void tell(unsigned at, enum pfc_word word)
{
	port[at].in.receive(&port[at].in, pfc_frame(&pool, word), engine.now);
}

/* Above xoff an ingress is paused, and at xon it continues; another ingress is not touched. */
static void switch__pauses_an_ingress(void **state)
{
	start(&(struct switch_memory){.pfc = {.xoff = 5 * FRAME, .xon = 3 * FRAME}});
	send(0, 3, DATA, 6); /* one leaves at once, five wait */
	engine_run(&engine, engine.now);
	assert_int_equal(port[0].ingress.pauses, 0);
	send(0, 3, DATA, 1);
	assert_int_equal(port[0].ingress.pauses, 1);
	assert_true(port[0].ingress.paused);
	send(1, 3, DATA, 4);
	engine_run(&engine, engine.now + 1000000);
	assert_int_equal(out[0].xoffs, 1);
	assert_int_equal(out[0].xons, 1);
	assert_int_equal(out[1].xoffs + out[1].xons + out[2].xoffs, 0);
	assert_int_equal(out[2].data, 11);
	assert_false(port[0].ingress.paused);
	/* three more of 222 ns each until three wait */
	assert_in_range(port[0].ingress.paused_ns, 3 * 221, 3 * 222);
	assert_int_equal(sw.used, 0);
	assert_int_equal(pool.held, 0);
}

/* Told to pause, a port keeps data but not ACKs. */
static void switch__holds_data_when_paused(void **state)
{
	start(&(struct switch_memory){0});
	tell(2, PFC_XOFF);
	send(0, 3, DATA, 5);
	send(0, 3, ACK, 2);
	send(0, 2, DATA, 1);
	engine_run(&engine, engine.now + 1000000);
	assert_int_equal(out[2].data, 0);
	assert_int_equal(out[2].acks, 2);
	assert_int_equal(out[1].data, 1);
	tell(2, PFC_XON);
	engine_run(&engine, engine.now + 1000000);
	assert_int_equal(out[2].data, 5);
	assert_int_equal(pool.held, 0);
}

static void switch__drops_above_the_headroom(void **state)
{
	start(&(struct switch_memory){
		.pfc = {.xoff = 5 * FRAME, .xon = FRAME, .headroom = 2 * FRAME}});
	send(0, 3, DATA, 10); /* one leaves at once, seven wait */
	assert_int_equal(port[2].count.dropped, 2);
	engine_run(&engine, engine.now + 1000000);
	assert_int_equal(out[2].data, 8);
}

/* A queue may have as much as is unused: half of the buffer. */
static void switch__shares_its_buffer(void **state)
{
	start(&(struct switch_memory){.size = 10 * FRAME, .alpha = 1});
	send(0, 3, DATA, 11);
	assert_int_equal(port[2].count.dropped, 5);
	assert_int_equal(sw.used, 5 * FRAME);
	send(0, 2, DATA, 11); /* the other has as much as is then unused */
	assert_int_equal(sw.used, 8 * FRAME);
	engine_run(&engine, engine.now + 1000000);
	assert_int_equal(sw.used, 0);
	start(&(struct switch_memory){.size = 10 * FRAME});
	send(0, 3, DATA, 20);
	assert_int_equal(sw.used, 10 * FRAME);
	assert_int_equal(port[2].count.dropped, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switch__pauses_an_ingress),
		cmocka_unit_test(switch__holds_data_when_paused),
		cmocka_unit_test(switch__drops_above_the_headroom),
		cmocka_unit_test(switch__shares_its_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
