/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "app.h"
#include "icrc.h"
#include "nic.h"
#include "pfc.h"
#include "qp.h"

#define HOSTS 2u
#define START 1000000ull

static struct sim_engine engine;
static struct sim_due heap[64];
static uint32_t place[64 + 1];
static struct buffer_pool pool;
static uint8_t memory[4u << 20] CACHE_ALIGNED;

/* Two hosts on a cable, a QP each; at 1 Gb/s a full packet takes 8,848 ns. */
static struct end {
	struct sim_host *host;
	struct sim_nic nic;
	struct app app;
	struct app_cq *cq;
	struct app_qp *qp;
	struct app_mr *mr;
	uint8_t header[FRAME_MAX];
	unsigned cqes;
} end[HOSTS];

static void news(struct sim_nic *n, uint64_t now)
{
	struct end *e = container_of(n, struct end, nic);
	struct abi_cqe cqe;

	app_events(&e->app);
	while (app_poll(&e->app, e->cq, &cqe)) {
		assert_int_equal(cqe.status, ABI_WC_SUCCESS);
		e->cqes++;
	}
}

static void make(struct end *e, uint16_t id)
{
	struct app_qp_spec spec = {.sq_depth = 8, .rq_depth = 8, .max_sge = 1};

	memset(e, 0, sizeof(*e));
	e->host = aligned_alloc(CACHE_LINE, sizeof(*e->host));
	assert_non_null(e->host);
	host_init(e->host, id, icrc_best(), START);
	nic_init(&e->nic, e->host, &pool, e->header);
	e->nic.news = news;
	app_init(&e->app, e->host);
	e->cq = app_cq(&e->app, 64);
	spec.send_cq = spec.recv_cq = e->cq;
	e->qp = app_qp(&e->app, &spec);
	e->mr = app_mr(&e->app, 1u << 20,
		ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ);
}

static int up(void **state)
{
	const struct wire_config wire = {.rate_bps = 1000000000, .delay_ns = 1000};

	engine_init(&engine, heap, place, 64, START);
	pool_init(&pool, memory, sizeof(memory));
	for (unsigned i = 0; i < HOSTS; i++)
		make(&end[i], (uint16_t)(0x0301 + i));
	for (unsigned i = 0; i < HOSTS; i++) {
		struct end *e = &end[i], *peer = &end[!i];
		struct path_spec path = host_path(e->host, peer->host, 0, HOST_GID_IPV4);
		struct abi_qp_attr attr = app_attr(peer->qp->qp->qpn, 0x1000, 0x1000);

		nic_plug(&e->nic, &engine, &wire, &peer->nic.in);
		assert_int_equal(app_to_init(e->qp, &attr, START), 0);
		assert_int_equal(app_to_rtr(e->qp, &attr, &path, START), 0);
		assert_int_equal(app_to_rts(e->qp, &attr, START), 0);
	}
	return 0;
}

static int down(void **state)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		app_fini(&end[i].app);
		free(end[i].host);
	}
	return 0;
}

static void write_kib(struct end *e, uint32_t kib)
{
	struct end *peer = &end[e == end];

	app_post_send(e->qp, &(struct app_send){.opcode = ABI_WR_RDMA_WRITE,
				     .flags = ABI_WQE_SIGNALED,
				     .remote_addr = app_va(peer->mr, 0),
				     .rkey = peer->mr->mr.key,
				     .num_sge = 1,
				     .sge = {app_sge(e->mr, 0, kib << 10)}});
	app_ring(&e->app, engine.now);
	nic_wake(&e->nic, engine.now);
}

/* Nothing is built before the wire can take it. */
static void nic__asks_for_one_packet_at_a_time(void **state)
{
	const uint64_t packet = 8848;

	write_kib(&end[0], 100);
	assert_int_equal(end[0].host->sent, 1);
	for (unsigned i = 1; i < 20; i++) {
		/* the first has a RETH, 128 ns */
		engine_run(&engine, START + 128 + i * packet - 1);
		assert_int_equal(end[0].host->sent, i);
		engine_run(&engine, START + 128 + i * packet);
		assert_int_equal(end[0].host->sent, i + 1);
	}
	engine_run(&engine, START + 10000000);
	assert_int_equal(end[0].cqes, 1);
	assert_int_equal(end[0].host->sent, 100);
	assert_int_equal(end[0].host->core.count.retransmits, 0);
	assert_int_equal(pool.held, 0);
}

static void tell(struct end *e, enum pfc_word word)
{
	e->nic.in.receive(&e->nic.in, pfc_frame(&pool, word), engine.now);
}

/* Paused, it acknowledges what it receives, and sends no data of its own. */
static void nic__is_paused(void **state)
{
	tell(&end[0], PFC_XOFF);
	write_kib(&end[0], 100);
	write_kib(&end[1], 100);
	engine_run(&engine, START + 10000000);
	assert_int_equal(end[1].cqes, 1);
	assert_int_equal(end[0].cqes, 0);
	assert_int_equal(end[1].host->core.count.retransmits, 0);
	tell(&end[0], PFC_XON);
	engine_run(&engine, START + 20000000);
	assert_int_equal(end[0].cqes, 1);
	assert_int_equal(end[0].host->core.count.retransmits, 0);
	assert_int_equal(pool.held, 0);
}

static void swallow(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	pool_put(&pool, b);
}

/* Time alone makes it send again. */
static void nic__has_timers(void **state)
{
	struct sim_sink nowhere = {.receive = swallow};

	end[1].nic.out.to = &nowhere; /* ACKs go astray */
	write_kib(&end[0], 1);
	engine_run(&engine, START + 50000000);
	assert_int_equal(end[0].cqes, 0);
	end[1].nic.out.to = &end[0].nic.in;
	engine_run(&engine, START + 200000000);
	assert_int_equal(end[0].cqes, 1);
	assert_int_equal(end[0].host->core.count.local_ack_timeout_err, 1);
	assert_int_equal(pool.held, 0);
}

/* Without memory for its frame a packet is lost, and sent again. */
static void nic__survives_a_shortage(void **state)
{
	struct buffer_pool empty;

	pool_init(&empty, memory, 0);
	end[0].nic.pool = &empty;
	write_kib(&end[0], 3);
	engine_run(&engine, START + 1000000);
	assert_int_equal(end[0].nic.lost, 3);
	end[0].nic.pool = &pool;
	engine_run(&engine, START + 300000000);
	assert_int_equal(end[0].cqes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nic__asks_for_one_packet_at_a_time, up, down),
		cmocka_unit_test_setup_teardown(nic__is_paused, up, down),
		cmocka_unit_test_setup_teardown(nic__has_timers, up, down),
		cmocka_unit_test_setup_teardown(nic__survives_a_shortage, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
