/* SPDX-License-Identifier: BSD-3-Clause */
/* Fast CNPs: from which switch, how many, and which QPs of which worker they reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "app.h"
#include "cc.h"
#include "frame.h"
#include "icrc.h"
#include "opcode.h"
#include "packet.h"
#include "rp.h"
#include "flow.h"
#include "switch_list.h"

#define PEER_QPN 0x21u
#define INTERVAL 50000u
#define QPS	 3u
#define IP_AT	 14u

static struct {
	struct sim_host *host, *peer;
	struct core second; /* worker 1 */
	struct app app;
	struct app_cq *cq;
	struct app_qp *qp[QPS];
	struct qp_flow flow[QPS];
	struct switch_list switches;
	struct fast_cnp_spec spec; /* of the next one */
	uint32_t others;
	uint64_t now;
} t;

static struct port *port(void)
{
	return &t.host->ports.port[0];
}

static const struct core_counters *count(void)
{
	return &t.host->core.count;
}

static struct sim_host *make_host(uint8_t id)
{
	struct sim_host *h = aligned_alloc(CACHE_LINE, sizeof(*h));

	assert_non_null(h);
	host_init(h, id, icrc_best(), t.now);
	return h;
}

static void climb_qp(unsigned i, uint32_t dest, enum host_gid gid)
{
	struct abi_qp_attr attr = app_attr(dest, 0, 0);
	struct path_spec path = host_path(t.host, t.peer, 0, gid);

	assert_int_equal(app_to_init(t.qp[i], &attr, t.now), 0);
	assert_int_equal(app_to_rtr(t.qp[i], &attr, &path, t.now), 0);
	assert_int_equal(app_to_rts(t.qp[i], &attr, t.now), 0);
}

/* A QP in RTS, to PEER_QPN of the peer unless @p dest says so. */
static void connect_qp(unsigned i, uint32_t dest, enum host_gid gid)
{
	struct app_qp_spec spec = {
		.sq_depth = 16, .rq_depth = 16, .max_sge = 1, .send_cq = t.cq, .recv_cq = t.cq};

	t.qp[i] = app_qp(&t.app, &spec);
	climb_qp(i, dest, gid);
	if (core_flow(&t.flow[i], t.qp[i]->qp))
		flow_add(&t.host->flows, &t.flow[i]);
}

static void gid_of(uint8_t gid[16], const struct sim_host *h)
{
	memcpy(gid, h->gids[0].entry[HOST_GID_IPV6].gid, 16);
}

static int setup(void **state)
{
	struct core_config cfg;

	memset(&t, 0, sizeof(t));
	t.now = 1000000;
	t.host = make_host(1);
	t.peer = make_host(2);
	app_init(&t.app, t.host);
	t.cq = app_cq(&t.app, 64);
	t.host->core.cfg.workers = 2;
	cfg = t.host->core.cfg;
	cfg.worker = 1;
	core_init(&t.second, &cfg, t.now);
	connect_qp(0, PEER_QPN, HOST_GID_IPV6);
	atomic_store(&port()->rcm, rcm_word(48 << 2, 6, true));
	atomic_store(&port()->cnp_interval, INTERVAL);
	t.switches = (struct switch_list){.type = {0x9E, 0x9F}, .n = 1};
	t.switches.entry[0] =
		(struct switch_entry){.addr = {0xFD, 0, 0, 0x5F, [15] = 7}, .prefix = 128};
	bucket_init(&t.switches.entry[0].bucket, 1000000, 1000);
	bucket_init(&t.switches.all, 1000000, 1000);
	atomic_store(&port()->switches, &t.switches);
	t.spec = (struct fast_cnp_spec){
		.dest_qpn = PEER_QPN, .pkey = 0xFFFF, .hop_limit = 64, .type = 0x9E};
	memcpy(t.spec.dmac, t.host->gids[0].entry[0].mac, 6);
	memcpy(t.spec.smac, "\x02\0\0\0\0\x63", 6);
	memcpy(t.spec.source, t.switches.entry[0].addr, 16);
	gid_of(t.spec.dest, t.host);
	gid_of(t.spec.dip, t.peer);
	return 0;
}

static int teardown(void **state)
{
	app_fini(&t.app);
	free(t.host);
	free(t.peer);
	return 0;
}

/* @return what becomes of the frame at @p c, of which byte @p flip is wrong. */
static enum drop give_to(struct core *c, uint8_t queue, size_t flip)
{
	struct pkt p = {.port = 0, .queue = queue};
	uint8_t b[FAST_CNP_FRAME_MAX];
	size_t len = fast_cnp_write(b, &t.spec, icrc_best());

	if (flip)
		b[flip] ^= 1;
	return core_fast_cnp(c, &p, b, len, t.now, &t.others);
}

static enum drop give(void)
{
	return give_to(&t.host->core, PKT_NO_QUEUE, 0);
}

static void expect(enum drop why)
{
	uint64_t before = count()->drop[why], told = count()->rp_fast_cnp_handled;
	struct qp was = *t.qp[0]->qp;

	assert_string_equal(drop_name(give()), drop_name(why));
	assert_int_equal(count()->drop[why], before + (why != DROP_IP_NEXT_HEADER));
	assert_int_equal(count()->rp_fast_cnp_handled, told);
	assert_memory_equal(&was, t.qp[0]->qp, sizeof(was));
	assert_int_equal(t.others, 0);
}

static void expect_told(unsigned qps)
{
	uint64_t told = count()->rp_fast_cnp_handled;

	assert_string_equal(drop_name(give()), "none");
	assert_int_equal(count()->rp_fast_cnp_handled, told + qps);
}

/* --- which ------------------------------------------------------------------------------------ */

/* proves FCN-01, FCN-08, FCN-16: nothing but the notice changes */
static void fast_cnp__reaches_the_qp(void **state)
{
	struct qp was;
	struct abi_cqe cqe;

	host_turn(t.host, t.now);
	was = *t.qp[0]->qp;
	expect_told(1);
	assert_int_equal(count()->port[0].rx_packets, 1);
	assert_int_equal(count()->rp_cnp_handled, 0);
	assert_true(t.qp[0]->qp->notice.until == t.now + INTERVAL);
	was.notice = t.qp[0]->qp->notice;
	assert_memory_equal(&was, t.qp[0]->qp, sizeof(was));
	assert_false(app_poll(&t.app, t.cq, &cqe));
	assert_int_equal(core_deadline(&t.host->core), WHEEL_NEVER);
}

/* proves FCN-15: if the port's list says so, the path changes, too */
static void fast_cnp__makes_a_detour(void **state)
{
	uint16_t was = path_sport(&t.qp[0]->qp->path);
	uint32_t label = path_flow_label(&t.qp[0]->qp->path);

	expect_told(1);
	assert_int_equal(path_sport(&t.qp[0]->qp->path), was);
	t.switches.detour = true;
	expect_told(1);
	assert_int_not_equal(path_sport(&t.qp[0]->qp->path), was);
	assert_int_not_equal(path_flow_label(&t.qp[0]->qp->path), label);
	assert_int_equal(count()->rp_fast_cnp_detours, 1);
}

/* proves FCN-06: the trace goes no further yet */
static void fast_cnp__with_a_trace(void **state)
{
	static const uint8_t trace[16] = {0, 1};

	t.spec.type = 0x9F;
	t.spec.trace = trace;
	t.spec.trace_len = sizeof(trace);
	expect_told(1);
}

/* proves FCN-01, FCN-14: off, which is the default, it is not ours: not even counted */
static void fast_cnp__is_off(void **state)
{
	atomic_store(&port()->switches, NULL);
	expect(DROP_IP_NEXT_HEADER);
	assert_int_equal(count()->port[0].rx_packets, 0);
}

/* proves FCN-08: by address and number; and for the port and the GID that the packets left by */
static void fast_cnp__of_no_qp(void **state)
{
	t.spec.dest_qpn++;
	expect(DROP_FAST_CNP_NO_QP);
	t.spec.dest_qpn = t.qp[0]->qp->qpn; /* ours: that would be a CNP's */
	expect(DROP_FAST_CNP_NO_QP);
	t.spec.dest_qpn = PEER_QPN;
	t.spec.dip[15]++;
	expect(DROP_FAST_CNP_NO_QP);
	t.spec.dip[15]--;
	t.flow[0].key.port = 1;
	expect(DROP_FAST_CNP_NO_QP);
	t.flow[0].key.port = 0;
	t.flow[0].key.sgid[15]++;
	expect(DROP_FAST_CNP_NO_QP);
	t.flow[0].key.sgid[15]--;
	expect_told(1);
	flow_remove(&t.host->flows, &t.flow[0]);
	expect(DROP_FAST_CNP_NO_QP);
}

/* proves FCN-02: packets over IPv4 and RoCEv1 have no flow */
static void core_flow__is_over_ipv6(void **state)
{
	struct app_qp_spec spec = {
		.sq_depth = 16, .rq_depth = 16, .max_sge = 1, .send_cq = t.cq, .recv_cq = t.cq};
	struct app_qp *fresh = app_qp(&t.app, &spec);
	struct qp_flow f;

	assert_false(core_flow(&f, fresh->qp));
	connect_qp(1, PEER_QPN, HOST_GID_IPV4);
	assert_false(t.flow[1].added);
	connect_qp(2, PEER_QPN, HOST_GID_ROCEV1);
	assert_false(t.flow[2].added);
}

/* proves FCN-09: all QPs that send there */
static void fast_cnp__reaches_all(void **state)
{
	connect_qp(1, PEER_QPN, HOST_GID_IPV6);
	connect_qp(2, PEER_QPN + 1, HOST_GID_IPV6);
	expect_told(2);
	assert_true(t.qp[0]->qp->notice.until && t.qp[1]->qp->notice.until);
	assert_false(t.qp[2]->qp->notice.until);
}

/* proves FCN-09: a bounded number of them */
static void fast_cnp__is_bounded(void **state)
{
	static struct qp_flow more[FAST_CNP_QPS + 1];

	for (unsigned i = 0; i < ARRAY_SIZE(more); i++) {
		more[i] = t.flow[0];
		flow_add(&t.host->flows, &more[i]);
	}
	expect_told(FAST_CNP_QPS);
}

/* proves FCN-09: the owner of each QP tells it, once */
static void fast_cnp__of_other_workers(void **state)
{
	connect_qp(1, PEER_QPN, HOST_GID_IPV6);
	atomic_store(&t.qp[1]->qp->owner, 1);
	rp_take(&t.second, t.qp[1]->qp);
	expect_told(1);
	assert_int_equal(t.others, 1u << 1);
	assert_false(t.qp[1]->qp->notice.until);
	/* The copy is checked and counted by the receiver only. */
	bucket_init(&t.switches.all, 1, 1);
	assert_true(bucket_take(&t.switches.all, t.now));
	assert_int_equal(give_to(&t.second, PKT_COPY, 0), DROP_NONE);
	assert_int_equal(t.others, 0);
	assert_int_equal(t.second.count.rp_fast_cnp_handled, 1);
	assert_int_equal(t.second.count.port[0].rx_packets, 0);
	assert_true(t.qp[1]->qp->notice.until == t.now + INTERVAL);
	/* It came late: the QP has moved on, and no copy is passed further. */
	atomic_store(&t.qp[1]->qp->owner, 0);
	assert_int_equal(give_to(&t.second, PKT_COPY, 0), DROP_NONE);
	assert_int_equal(t.others, 0);
	assert_int_equal(t.second.count.rp_fast_cnp_handled, 1);
	/* All are elsewhere. */
	atomic_store(&t.qp[0]->qp->owner, 1);
	atomic_store(&t.qp[1]->qp->owner, 1);
	bucket_init(&t.switches.all, 1, 1);
	expect_told(0);
	assert_int_equal(t.others, 1u << 1);
	atomic_store(&t.qp[0]->qp->owner, 0);
	atomic_store(&t.qp[1]->qp->owner, 0);
}

/* --- from whom -------------------------------------------------------------------------------- */

/* proves FCN-10, FCN-12, CNP-16 */
static void fast_cnp__from_listed_switches(void **state)
{
	t.spec.source[15]++;
	expect(DROP_FAST_CNP_SOURCE);
	gid_of(t.spec.source, t.peer); /* nor from the peer, unless it is listed */
	expect(DROP_FAST_CNP_SOURCE);
	gid_of(t.spec.source, t.host);
	expect(DROP_MARTIAN);
	t.spec.source[0] = 0xFF;
	expect(DROP_SGID);
}

/* proves VAL-11, ETH-10, ICRC-11: it is checked as any packet */
static void fast_cnp__for_our_addresses(void **state)
{
	t.spec.dest[15]++;
	expect(DROP_DGID);
	t.spec.dest[15]--;
	t.spec.vid = 5;
	expect(DROP_DGID);
	t.spec.vid = 0;
	t.spec.dmac[5]++;
	expect(DROP_DMAC);
	memset(t.spec.dmac, 0xFF, 6);
	expect(DROP_DMAC);
	memcpy(t.spec.dmac, t.host->gids[0].entry[0].mac, 6);
	assert_int_equal(
		give_to(&t.host->core, PKT_NO_QUEUE, IP_AT + IP6_HLEN + 24 + 5), DROP_UDP_LENGTH);
	assert_int_equal(give_to(&t.host->core, PKT_NO_QUEUE, IP_AT + IP6_HLEN + 23), DROP_ICRC);
	assert_int_equal(count()->drop[DROP_ICRC], 1);
	assert_int_equal(count()->drop[DROP_UDP_LENGTH], 1);
	expect_told(1);
}

/* proves FCN-11: of each switch, and of all; one that is broken takes no token */
static void fast_cnp__over_the_bucket(void **state)
{
	struct switch_entry *e = t.switches.entry;

	bucket_init(&e[0].bucket, 1000, 2);
	for (unsigned i = 0; i < 5; i++)
		give_to(&t.host->core, PKT_NO_QUEUE, IP_AT + IP6_HLEN + 23);
	expect_told(1);
	expect_told(1);
	expect(DROP_FAST_CNP_RATE);
	e[1] = e[0];
	e[1].addr[15]++;
	t.switches.n = 2;
	t.spec.source[15]++;
	bucket_init(&e[1].bucket, 1000, 2);
	expect_told(1);
	bucket_init(&t.switches.all, 1000, 1);
	bucket_init(&e[0].bucket, 1000, 2);
	expect_told(1);
	t.spec.source[15]--;
	expect(DROP_FAST_CNP_RATE);
	t.now += 1000000;
	expect_told(1);
}

/* --- for which QPs ---------------------------------------------------------------------------- */

static void expect_ignored(enum drop why)
{
	uint64_t ignored = count()->rp_fast_cnp_ignored, drops = count()->drop[why];
	uint64_t told = count()->rp_fast_cnp_handled;

	assert_int_equal(give(), DROP_NONE); /* the packet as a whole found its QP */
	assert_int_equal(count()->rp_fast_cnp_ignored, ignored + 1);
	assert_int_equal(count()->rp_fast_cnp_handled, told);
	assert_int_equal(count()->drop[why], drops + 1);
	assert_false(t.qp[0]->qp->notice.until);
}

/* proves CNP-11, CNP-14: state, P_Key, and congestion management of the port */
static void rp_fast_cnp__as_a_cnp(void **state)
{
	struct abi_qp_attr attr = app_attr(PEER_QPN, 0, 0);

	t.spec.pkey = 0x8123;
	expect_ignored(DROP_PKEY);
	assert_int_equal(count()->bad_pkey[0], 1);
	t.spec.pkey = 0xFFFF;
	atomic_store(&port()->rcm, 0);
	expect_ignored(DROP_CNP_IGNORED);
	atomic_store(&port()->rcm, rcm_word(0, 0, false));
	assert_int_equal(app_to_state(t.qp[0], ABI_QPS_ERR, t.now), 0);
	expect_ignored(DROP_QP_STATE);
	assert_int_equal(app_to_state(t.qp[0], ABI_QPS_RESET, t.now), 0);
	expect_ignored(DROP_QP_STATE);
	assert_int_equal(app_to_init(t.qp[0], &attr, t.now), 0);
	expect_ignored(DROP_QP_STATE);
}

/* --- one event -------------------------------------------------------------------------------- */

/* A plain CNP of the peer. */
static void give_cnp(void)
{
	struct path_spec s = host_path(t.peer, t.host, 0, HOST_GID_IPV6);
	struct pkt p = {.port = 0, .queue = PKT_NO_QUEUE};
	uint8_t b[128] = {0}, *bth;
	struct path path;
	uint16_t verdict;

	path_init(&path, &s);
	bth = path_write(&path, b, BTH_HLEN + CNP_RESERVED + ICRC_LEN, 0);
	bth[BTH_OPCODE] = OPCODE_CNP;
	put_be16(bth + BTH_PKEY, 0xFFFF);
	put_be32(bth + BTH_RESV8A, t.qp[0]->qp->qpn);
	memset(bth + 8, 0, 4 + CNP_RESERVED);
	icrc_store(bth + BTH_HLEN + CNP_RESERVED,
		icrc_header(icrc_best(), b + path.l3_off, NET_IPV6,
			UDP_HLEN + IP6_HLEN + BTH_HLEN + CNP_RESERVED));
	assert_int_equal(frame_parse(&p, b, (size_t)(bth - b) + BTH_HLEN + CNP_RESERVED + ICRC_LEN),
		DROP_NONE);
	core_rx(&t.host->core, &p, 1, t.now, &verdict);
	assert_int_equal(verdict, DROP_NONE);
}

/* proves FCN-13: of both kinds within the interval one counts, whichever came first */
static void notice__of_both_kinds_is_one(void **state)
{
	give_cnp();
	expect_told(1);
	assert_int_equal(count()->rp_cnp_repeated, 1);
	t.now += INTERVAL - 1;
	expect_told(1);
	assert_int_equal(count()->rp_cnp_repeated, 2);
	t.now++;
	expect_told(1); /* another event, and the first to tell of it */
	assert_int_equal(count()->rp_cnp_repeated, 2);
	give_cnp();
	assert_int_equal(count()->rp_cnp_repeated, 3);
	assert_int_equal(count()->rp_cnp_handled, 2);
	assert_int_equal(count()->rp_fast_cnp_handled, 3);
}

/* proves FCN-13: of one kind each counts, as the sender made them */
static void notice__of_one_kind_counts(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		give_cnp();
	t.now += INTERVAL;
	for (unsigned i = 0; i < 3; i++)
		expect_told(1);
	assert_int_equal(count()->rp_cnp_repeated, 0);
	assert_int_equal(app_to_state(t.qp[0], ABI_QPS_RESET, t.now), 0);
	climb_qp(0, PEER_QPN, HOST_GID_IPV6);
	assert_false(t.qp[0]->qp->notice.until); /* anew */
}

/* proves FCN-16: nor is a QP told that sends nothing */
static void notice__for_an_idle_qp(void **state)
{
	t.now += 30000000;
	expect_ignored(DROP_CNP_IDLE);
	assert_int_equal(count()->rp_fast_cnp_handled, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fast_cnp__reaches_the_qp),
		TEST(fast_cnp__with_a_trace),
		TEST(fast_cnp__makes_a_detour),
		TEST(fast_cnp__is_off),
		TEST(fast_cnp__of_no_qp),
		TEST(core_flow__is_over_ipv6),
		TEST(fast_cnp__reaches_all),
		TEST(fast_cnp__is_bounded),
		TEST(fast_cnp__of_other_workers),
		TEST(fast_cnp__from_listed_switches),
		TEST(fast_cnp__for_our_addresses),
		TEST(fast_cnp__over_the_bucket),
		TEST(rp_fast_cnp__as_a_cnp),
		TEST(notice__of_both_kinds_is_one),
		TEST(notice__of_one_kind_counts),
		TEST(notice__for_an_idle_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
