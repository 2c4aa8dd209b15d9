/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry from the requester by way of a switch and the responder back to the algorithm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "app.h"
#include "headers.h"
#include "icrc.h"
#include "ioam.h"
#include "nic.h"
#include "qp_impl.h"
#include "switch.h"
#include "telemetry.h"
#include "txd.h"

#define HOSTS 2u
#define START 1000000ull
#define SOON  10000000ull
#define LINE  1000000000ull
/* A middle packet over IPv4, with all that it has on the wire. */
#define PACKET 1106u

static struct sim_engine engine;
static struct sim_due heap[64];
static uint32_t place[64 + 1];
static struct buffer_pool pool;
static uint8_t memory[4u << 20] CACHE_ALIGNED;

/* Two hosts on a cable, a QP each. In the middle of it somebody records, and counts. */
static struct end {
	struct sim_host *host;
	struct sim_nic nic;
	struct sim_sink middle; /* of what comes to this host */
	struct app app;
	struct app_cq *cq;
	struct app_qp *qp;
	struct app_mr *mr;
	uint8_t header[FRAME_MAX];
	unsigned cqes, plain, traces, echoes;
} end[HOSTS];

/* --- an algorithm that listens ---------------------------------------------------------- */

static struct cc_hop heard[CC_HOPS_MAX];
static unsigned acks, hops, sent;

static void toy_init(struct cc *c, uint64_t now)
{
	c->ack_every = 1;
}

static void toy_on_sent(struct cc *c, uint32_t bytes, uint32_t psn, bool again, uint64_t now)
{
	sent += bytes;
}

static void toy_on_ack(struct cc *c, const struct cc_ack *ack, uint64_t now)
{
	acks++;
	hops = ack->hops.n;
	if (hops)
		memcpy(heard, ack->hops.hop, hops * sizeof(heard[0]));
}

static void toy_on_cnp(struct cc *c, enum cc_notice kind, const struct cc_hops *h, uint64_t now)
{
}

static void toy_on_loss(struct cc *c, enum cc_loss kind, uint64_t now)
{
}

static uint64_t toy_on_time(struct cc *c, uint64_t now)
{
	return CC_NEVER;
}

static void toy_on_pause(struct cc *c, uint64_t now)
{
}

static void toy_look(const struct cc *c, struct cc_view *v)
{
	*v = (struct cc_view){.rate = LINE, .target = LINE};
}

static const char *const profiles[] = {"plain"};
static const struct cc_ops toy = {
	.name = "toy",
	.profiles = profiles,
	.nprofiles = 1,
	.from_start = true,
	.wants_hops = true,
	.init = toy_init,
	.on_sent = toy_on_sent,
	.on_ack = toy_on_ack,
	.on_cnp = toy_on_cnp,
	.on_loss = toy_on_loss,
	.on_time = toy_on_time,
	.on_pause = toy_on_pause,
	.look = toy_look,
};
static const struct cc_config listens = {.ops = &toy, .line = LINE};

/* --- the hosts and the cable ------------------------------------------------------------- */

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

static void pass(struct sim_sink *to, struct sim_buffer *b, uint64_t now)
{
	struct end *e = container_of(to, struct end, middle);
	uint8_t next = b->bytes[ETH_HLEN + IP6_NXT];
	bool ip6 = get_be16(b->bytes + ETH_TYPE) == ETHERTYPE_IPV6;

	e->traces += ip6 && next == IP6_NXT_HOPOPTS;
	e->echoes += ip6 && next == IP6_NXT_DSTOPTS;
	e->plain += !ip6 || next == IPPROTO_ROCEV2;
	for (uint32_t i = 1; i <= 2; i++)
		ioam_add(b->bytes, b->len,
			&(struct ioam_node){
				.rate = LINE, .time = 100 * i, .sent = 10 * i, .queue = 800 * i});
	e->nic.in.receive(&e->nic.in, b, now);
}

static void make(struct end *e, uint16_t id)
{
	struct app_qp_spec spec = {.sq_depth = 8, .rq_depth = 8, .max_sge = 1};

	memset(e, 0, sizeof(*e));
	e->host = aligned_alloc(CACHE_LINE, sizeof(*e->host));
	assert_non_null(e->host);
	host_init(e->host, id, icrc_best(), START);
	atomic_store(&e->host->ports.port[0].cc, &listens);
	nic_init(&e->nic, e->host, &pool, e->header);
	e->nic.news = news;
	e->middle.receive = pass;
	app_init(&e->app, e->host);
	e->cq = app_cq(&e->app, 64);
	spec.send_cq = spec.recv_cq = e->cq;
	e->qp = app_qp(&e->app, &spec);
	e->mr = app_mr(&e->app, 1u << 20,
		ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_WRITE | ABI_ACCESS_REMOTE_READ);
}

static void connect(enum host_gid gid)
{
	const struct wire_config wire = {.rate_bps = LINE, .delay_ns = 1000};

	for (unsigned i = 0; i < HOSTS; i++) {
		struct end *e = &end[i], *peer = &end[!i];
		struct path_spec path = host_path(e->host, peer->host, 0, gid);
		struct abi_qp_attr attr = app_attr(peer->qp->qp->qpn, 0x1000, 0x1000);

		nic_plug(&e->nic, &engine, &wire, &peer->middle);
		assert_int_equal(app_to_init(e->qp, &attr, START), 0);
		assert_int_equal(app_to_rtr(e->qp, &attr, &path, START), 0);
		assert_int_equal(app_to_rts(e->qp, &attr, START), 0);
	}
}

static int up(void **state)
{
	acks = hops = sent = 0;
	engine_init(&engine, heap, place, 64, START);
	pool_init(&pool, memory, sizeof(memory));
	for (unsigned i = 0; i < HOSTS; i++)
		make(&end[i], (uint16_t)(0x0301 + i));
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

static void move(uint32_t opcode, uint32_t kib)
{
	app_post_send(end[0].qp, &(struct app_send){.opcode = opcode,
					 .flags = ABI_WQE_SIGNALED,
					 .remote_addr = app_va(end[1].mr, 0),
					 .rkey = end[1].mr->mr.key,
					 .num_sge = 1,
					 .sge = {app_sge(end[0].mr, 0, kib << 10)}});
	app_ring(&end[0].app, engine.now);
	nic_wake(&end[0].nic, engine.now);
	engine_run(&engine, engine.now + SOON);
}

/* --- what is seen ------------------------------------------------------------------------ */

/* Requests carry traces, ACKs return the newest; the units are those of struct cc_hop. */
static void ack__brings_the_hops(void **state)
{
	connect(HOST_GID_IPV6);
	move(ABI_WR_RDMA_WRITE, 10);
	assert_int_equal(end[0].cqes, 1);
	assert_int_equal(end[1].traces, 10);
	assert_int_equal(end[1].plain, 0);
	assert_int_equal(end[0].echoes, 10);
	assert_int_equal(end[0].plain + end[0].traces, 0);
	assert_int_equal(acks, 10);
	assert_int_equal(sent, 10 * (PACKET + IP6_HLEN - IP4_HLEN + IOAM_LEN) + RETH_LEN);
	assert_int_equal(hops, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(heard[i].rate == LINE);
		assert_int_equal(heard[i].time, 100 * (i + 1) * 256);
		assert_int_equal(heard[i].sent, 10 * (i + 1) * 128 * 32);
		assert_int_equal(heard[i].queue, 800 * (i + 1));
	}
	assert_int_equal(pool.held, 0);
}

/* READ responses have no ACK that could return a trace, so they carry none. Their request does. */
static void read__only_the_request(void **state)
{
	connect(HOST_GID_IPV6);
	move(ABI_WR_RDMA_READ, 10);
	assert_int_equal(end[0].cqes, 1);
	assert_int_equal(end[1].traces, 1);
	assert_int_equal(end[0].traces, 0);
	assert_int_equal(end[0].plain, 10);
	assert_int_equal(end[0].echoes, 0);
	assert_int_equal(hops, 0);
}

static void ipv4__has_none(void **state)
{
	connect(HOST_GID_IPV4);
	move(ABI_WR_RDMA_WRITE, 10);
	assert_int_equal(end[0].cqes, 1);
	assert_int_equal(end[1].plain, 10);
	assert_int_equal(hops, 0);
	assert_int_equal(sent, 10 * PACKET + RETH_LEN);
}

/* CA17-16: a port without such an algorithm drops it. */
static void port__takes_none_unasked(void **state)
{
	connect(HOST_GID_IPV6);
	atomic_store(&end[1].host->ports.port[0].cc, NULL);
	move(ABI_WR_RDMA_WRITE, 10);
	assert_int_equal(end[0].cqes, 0);
	assert_true(end[1].traces > 0);
	assert_int_equal(end[1].host->core.count.drop[DROP_IP_NEXT_HEADER], end[1].traces);
	assert_int_equal(end[0].echoes + end[0].plain, 0);
}

/* The port's MTU is less than when the QP was connected. */
static void mtu__leaves_no_room(void **state)
{
	connect(HOST_GID_IPV6);
	atomic_store(&end[0].host->ports.port[0].active_mtu, 512);
	move(ABI_WR_RDMA_WRITE, 10);
	assert_int_equal(end[0].cqes, 1);
	assert_int_equal(end[1].traces, 0);
	assert_int_equal(end[1].plain, 10);
	assert_int_equal(hops, 0);
}

/* An ACK that acknowledges nothing new says nothing, whatever it carries. */
static void ack__that_is_old_is_not_believed(void **state)
{
	uint8_t room[IOAM_LEN + 128], *frame = room + IOAM_LEN;
	struct ioam echo = {.nodes = 1};
	struct txd t = {.frame = frame};
	unsigned before;
	uint16_t len;

	connect(HOST_GID_IPV6);
	move(ABI_WR_RDMA_WRITE, 2);
	before = acks;
	end[1].qp->qp->resp.owed = OWE_ACK;
	qp_make_urgent(&end[1].host->core, end[1].qp->qp);
	assert_int_equal(core_tx(&end[1].host->core, &t, 1, engine.now), 1);
	len = core_seal(&end[1].host->core, &t);
	frame = ioam_push(icrc_best(), frame, len, &echo);
	assert_non_null(frame);
	host_frame(end[0].host, frame, len + IOAM_LEN, 0, engine.now);
	assert_int_equal(acks, before);
	assert_int_equal(hops, 2);
	/* nor is there anything left of it for the next */
	assert_null(end[0].host->core.hops);
}

/* Members of a group would need the frame after it is gone. */
static void group__has_none(void **state)
{
	const struct ioam trace = {.kind = IOAM_TRACE};
	const struct pkt pkt = {.dest_qp = QPN_MULTICAST};
	uint16_t verdict = 0;

	core_telemetry_rx(&end[0].host->core, &pkt, &trace, engine.now, &verdict);
	assert_int_equal(verdict, DROP_IP_NEXT_HEADER);
	assert_int_equal(end[0].host->core.count.drop[DROP_IP_NEXT_HEADER], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ack__brings_the_hops, up, down),
		cmocka_unit_test_setup_teardown(read__only_the_request, up, down),
		cmocka_unit_test_setup_teardown(ipv4__has_none, up, down),
		cmocka_unit_test_setup_teardown(port__takes_none_unasked, up, down),
		cmocka_unit_test_setup_teardown(mtu__leaves_no_room, up, down),
		cmocka_unit_test_setup_teardown(group__has_none, up, down),
		cmocka_unit_test_setup_teardown(ack__that_is_old_is_not_believed, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
