/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a frame from a port to the core, seen through the counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "cc.h"
#include "eal_test.h"
#include "flow.h"
#include "frame.h"
#include "frames.h"
#include "icrc.h"
#include "ioam.h"
#include "opcode.h"
#include "qp_impl.h"
#include "qp_table.h"
#include "rig.h"
#include "switch_list.h"
#include "timers.h"

static struct rig r;
static unsigned all_buffers;

static int up(void **state)
{
	rig_up(&r, 1);
	all_buffers = rig_free_buffers(r.dp->worker[0]);
	return 0;
}

static int up_two(void **state)
{
	rig_up(&r, 2);
	return 0;
}

static int down(void **state)
{
	rig_down(&r);
	return 0;
}

static struct rte_mbuf *piece(const uint8_t *bytes, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r.dp->worker[0]->pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), bytes, len);
	return m;
}

/* In through port 0, so that it comes out of port 1. */
static void inject(struct rte_mbuf *m)
{
	assert_int_equal(rte_eth_tx_burst(r.ethdev[0], 0, &m, 1), 1);
}

static uint64_t dropped(unsigned worker, enum drop why)
{
	return r.dp->worker[worker]->core.count.drop[why];
}

static struct frame frame_to(uint32_t qpn)
{
	struct frame f = frame_of(NET_IPV4, OPC_RC | 0x04, 16); /* SEND ONLY */

	port_get_mac(&r.dp->ports->port[1], f.b); /* ETH-10 */
	f.b[f.bth + BTH_DESTQP] = (uint8_t)(qpn >> 16);
	f.b[f.bth + BTH_DESTQP + 1] = (uint8_t)(qpn >> 8);
	f.b[f.bth + BTH_DESTQP + 2] = (uint8_t)qpn;
	return f;
}

static void rx_poll__nothing_is_drained(void **state)
{
	bool drained = false;

	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 0);
	assert_true(drained);
}

static void rx_poll__full_burst_is_not_drained(void **state)
{
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	bool drained;

	for (unsigned i = 0; i < BURST + 1; i++)
		inject(piece(arp, sizeof(arp)));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), BURST);
	assert_false(drained);
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_true(drained);
	assert_int_equal(dropped(0, DROP_NOT_ROCE), BURST + 1);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers);
}

static void rx_poll__chained_frame_is_joined(void **state)
{
	struct frame f = frame_to(QPN_MAKE(1, 0, 9));
	struct rte_mbuf *head = piece(f.b, 20);
	bool drained;

	assert_int_equal(rte_pktmbuf_chain(head, piece(f.b + 20, f.len - 20)), 0);
	inject(head);
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(dropped(0, DROP_QPN_UNKNOWN), 1); /* parsed whole, and on port 1 */
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers);
}

static void rx_poll__chain_that_fits_nowhere_is_dropped(void **state)
{
	static const uint8_t zeroes[3000];
	struct rte_mbuf *head = piece(zeroes, sizeof(zeroes));
	bool drained;

	assert_int_equal(rte_pktmbuf_chain(head, piece(zeroes, sizeof(zeroes))), 0);
	inject(head);
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(dropped(0, DROP_FRAME_TOO_LONG), 1);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers);
}

/* As a driver leaves a frame whose tag the device or the kernel has taken off. */
static struct rte_mbuf *stripped(const struct frame *f, uint16_t tci)
{
	struct rte_mbuf *m = piece(f->b, f->len);

	m->vlan_tci = tci;
	m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	return m;
}

/* proves ETH-07, ETH-04: what comes in a VLAN is not for the port's untagged address, but with VLAN
 * 0. */
static void rx_poll__stripped_tag_counts(void **state)
{
	struct frame f = frame_to(QPN_MAKE(1, 0, 9));
	bool drained;

	inject(stripped(&f, 5));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(dropped(0, DROP_DGID), 1);
	inject(stripped(&f, 7 << 13));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(dropped(0, DROP_QPN_UNKNOWN), 1);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers);
}

static void rx_poll__stripped_tag_without_room_is_dropped(void **state)
{
	struct frame f = frame_to(QPN_MAKE(1, 0, 9));
	struct rte_mbuf *m = stripped(&f, 5);
	bool drained;

	m->data_off = VLAN_HLEN - 1;
	inject(m);
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(dropped(0, DROP_FRAME_TOO_LONG), 1);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers);
}

/* With the ICRC of its bytes. */
static void seal(struct frame *f)
{
	const struct icrc_ops *icrc = icrc_by_name("table");
	struct pkt p;

	assert_int_equal(frame_parse(&p, f->b, f->len), DROP_NONE);
	icrc_store((uint8_t *)p.l3 + p.icrc_off, icrc_header(icrc, p.l3, NET_IPV4, p.icrc_off));
}

/* --- expected headers ------------------------------------------------------------------- */

/* At the port that rig frames come to. Its P_Key is changed without a command, so that packets
 * which come by frame_parse() are dropped for theirs, and those whose headers are expected are
 * not. */
static void expecting_qp(struct rig_qp *q)
{
	rig_qp_up(&r, q, 9, 0);
	rig_connect(&r, q, q, 1, false);
	q->qp->pkey = 0x8123;
}

/* An empty WRITE of its peer. */
static struct frame next_frame(const struct rig_qp *q)
{
	struct frame f = frame_to(q->qp->qpn);

	f.b[f.bth + BTH_OPCODE] = OP_WRITE_ONLY;
	put_be32(f.b + f.bth + BTH_ACKREQ, q->qp->resp.epsn);
	memset(f.b + f.bth + BTH_HLEN, 0, RETH_LEN);
	seal(&f);
	return f;
}

/* @return whether @p m, which has the next frame, was executed. */
static bool executes(const struct rig_qp *q, struct rte_mbuf *m)
{
	uint32_t psn = q->qp->resp.epsn;
	bool drained;

	inject(m);
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	return q->qp->resp.epsn != psn;
}

static void rx_poll__plain_frame_is_expected(void **state)
{
	struct worker *w = r.dp->worker[0];
	struct rig_qp q;
	struct frame f;

	expecting_qp(&q);
	f = next_frame(&q);
	assert_true(executes(&q, piece(f.b, f.len)));
	f = next_frame(&q);
	core_fast_paths(&w->core, false);
	assert_false(executes(&q, piece(f.b, f.len)));
	assert_int_equal(dropped(0, DROP_PKEY), 1);
	core_fast_paths(&w->core, true);
	assert_true(executes(&q, piece(f.b, f.len)));
	rig_qp_down(&r, &q, 9);
}

/* proves ETH-07: a frame of a VLAN is not for a QP that has none, although nothing in its bytes
 * tells */
static void rx_poll__stripped_tag_is_not_expected(void **state)
{
	struct rig_qp q;
	struct frame f;

	expecting_qp(&q);
	f = next_frame(&q);
	assert_false(executes(&q, stripped(&f, 5)));
	assert_int_equal(dropped(0, DROP_DGID), 1);
	assert_true(executes(&q, piece(f.b, f.len)));
	rig_qp_down(&r, &q, 9);
}

/* Although its first buffer has all of the packet: only padding follows. */
static void rx_poll__chained_frame_is_not_expected(void **state)
{
	static const uint8_t padding[4];
	struct rte_mbuf *head;
	struct rig_qp q;
	struct frame f;

	expecting_qp(&q);
	f = next_frame(&q);
	for (unsigned i = 0; i < 2; i++) {
		head = piece(f.b, f.len);
		assert_int_equal(rte_pktmbuf_chain(head, piece(padding, sizeof(padding))), 0);
		assert_int_equal(executes(&q, head), i);
		assert_int_equal(dropped(0, DROP_PKEY), 1);
		q.qp->pkey = 0xFFFF;
	}
	rig_qp_down(&r, &q, 9);
}

/* --- other workers' frames -------------------------------------------------------------- */

static uint64_t received(unsigned worker)
{
	struct core_counters sum = {0};

	worker_counters_of(r.dp->worker[worker], &sum);
	return sum.rx_packets;
}

static void rx_poll__other_workers_frame_is_handed_over(void **state)
{
	struct frame f = frame_to(QPN_MAKE(1, 1, 9));
	struct rig_qp q;
	bool drained;

	rig_qp_up(&r, &q, 9, 1);
	inject(piece(f.b, f.len));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(received(0), 0);
	assert_int_equal(rig_rx(r.dp->worker[1], &drained), 1);
	assert_int_equal(received(1), 1);
	assert_int_equal(dropped(1, DROP_ICRC), 1); /* the QPN was patched */
	rig_qp_down(&r, &q, 9);
}

static unsigned receive_many(const struct frame *f, unsigned many)
{
	unsigned n = 0;
	bool drained;

	for (unsigned i = 0; i < many; i++) {
		inject(piece(f->b, f->len));
		n += rig_rx(r.dp->worker[0], &drained);
	}
	return n;
}

/* Of what comes to the wrong worker, what has a wrong ICRC finds half of the room at the right one,
 * good frames find the rest; then they are lost, and counted. */
static void rx_poll__broken_frames_take_half_an_inbox(void **state)
{
	struct frame f = frame_to(QPN_MAKE(1, 1, 9)); /* its QPN was patched */
	unsigned room = rte_ring_get_capacity(r.dp->worker[1]->inbox.ring[INBOX_HANDED][0]);
	unsigned half = (room + 1) / 2;
	struct rig_qp q;
	bool drained;
	unsigned n = 0;

	rig_qp_up(&r, &q, 9, 1);
	assert_int_equal(receive_many(&f, room + 100), room + 100);
	assert_int_equal(dropped(0, DROP_ICRC), room + 100 - half);
	assert_int_equal(dropped(0, DROP_HANDOFF_FULL), 0);
	seal(&f);
	assert_int_equal(receive_many(&f, room), room);
	assert_int_equal(dropped(0, DROP_HANDOFF_FULL), half);
	do
		n += rig_rx(r.dp->worker[1], &drained);
	while (!drained);
	assert_int_equal(n, room);
	assert_int_equal(dropped(1, DROP_ICRC), half);
	rig_qp_down(&r, &q, 9);
}

/* proves CNP-11: the same holds for CNPs, however good they are. */
static void rx_poll__cnps_take_half_an_inbox(void **state)
{
	struct frame cnp = frame_to(QPN_MAKE(1, 1, 9)), f = cnp;
	unsigned room = rte_ring_get_capacity(r.dp->worker[1]->inbox.ring[INBOX_HANDED][0]);
	unsigned half = (room + 1) / 2;
	struct rig_qp q;

	rig_qp_up(&r, &q, 9, 1);
	cnp.b[cnp.bth + BTH_OPCODE] = OPCODE_CNP; /* 16 bytes follow it as well */
	seal(&cnp);
	seal(&f);
	assert_int_equal(receive_many(&cnp, room), room);
	assert_int_equal(dropped(0, DROP_HANDOFF_FULL), room - half);
	assert_int_equal(receive_many(&f, room - half), room - half);
	assert_int_equal(dropped(0, DROP_HANDOFF_FULL), room - half);
	rig_qp_down(&r, &q, 9);
}

/* The port that rig frames come to accepts telemetry. */
static void accept_telemetry(void)
{
	static struct cc_config cfg[2];

	cc_config_init(&cfg[0], &cc_hpcc, 0, 25e9);
	cc_config_unacked(&cfg[0], &cfg[1]);
	atomic_store(&r.dp->ports->port[1].cc, cfg);
}

/* A packet with telemetry for QP @p qpn. */
static struct frame traced_to(uint32_t qpn, uint8_t opcode)
{
	struct frame plain = frame_of(NET_IPV6, opcode, 16), f = plain;
	uint8_t *bth = plain.b + plain.bth;

	port_get_mac(&r.dp->ports->port[1], plain.b);
	bth[BTH_DESTQP] = (uint8_t)(qpn >> 16);
	bth[BTH_DESTQP + 1] = (uint8_t)(qpn >> 8);
	bth[BTH_DESTQP + 2] = (uint8_t)qpn;
	memcpy(f.b + IOAM_LEN, plain.b, plain.len);
	assert_ptr_equal(ioam_push(icrc_best(), f.b + IOAM_LEN, plain.len, NULL), f.b);
	f.len = plain.len + IOAM_LEN;
	return f;
}

/* Of slot 9 of worker 1. */
static struct frame traced(uint8_t opcode)
{
	return traced_to(QPN_MAKE(1, 1, 9), opcode);
}

/* proves REQ-38: an ACK with telemetry does not overtake READ responses of its burst, which have
 * none. */
static void rx_poll__telemetry_overtakes_nothing(void **state)
{
	struct frame f[] = {frame_to(QPN_MAKE(1, 1, 9)), traced(OPC_RC | 0x04)};
	struct rte_mbuf *m[BURST];
	struct rig_qp q;
	bool drained;

	rig_qp_up(&r, &q, 9, 1);
	accept_telemetry();
	for (unsigned i = 0; i < 4; i++)
		inject(piece(f[i % 2].b, f[i % 2].len));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 4);
	assert_int_equal(inbox_take(&r.dp->worker[1]->inbox, m), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(rte_pktmbuf_data_len(m[i]), f[i % 2].len);
		rte_pktmbuf_free(m[i]);
	}
	rig_qp_down(&r, &q, 9);
}

/* proves CNP-11, ICRC-11: neither broken frames nor CNPs take more of an inbox with telemetry than
 * without. */
static void rx_poll__telemetry_takes_half_an_inbox(void **state)
{
	struct frame good = traced(OPC_RC | 0x04), cnp = traced(OPCODE_CNP), broken = good;
	unsigned room = rte_ring_get_capacity(r.dp->worker[1]->inbox.ring[INBOX_HANDED][0]);
	unsigned half = (room + 1) / 2;
	struct rig_qp q;

	rig_qp_up(&r, &q, 9, 1);
	accept_telemetry();
	broken.b[broken.len - 1] ^= 1;
	assert_int_equal(receive_many(&broken, half + 3), half + 3);
	assert_int_equal(dropped(0, DROP_ICRC), 3);
	assert_int_equal(receive_many(&cnp, 5), 5);
	assert_int_equal(dropped(0, DROP_HANDOFF_FULL), 5);
	assert_int_equal(receive_many(&good, room - half), room - half);
	assert_int_equal(dropped(0, DROP_HANDOFF_FULL), 5);
	rig_qp_down(&r, &q, 9);
}

/* A MAD with telemetry reaches QP1, which may belong to any worker. */
static void rx_poll__telemetry_for_qp1(void **state)
{
	const struct frame f = traced_to(QPN_GSI, OPC_UD | 0x04);
	struct rte_mbuf *m[BURST];
	struct rig_qp q;
	bool drained;

	rig_qp_up(&r, &q, 9, 1);
	atomic_store(&r.dp->qps->gsi[1], q.qp);
	accept_telemetry();
	inject(piece(f.b, f.len));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(inbox_take(&r.dp->worker[1]->inbox, m), 1);
	assert_int_equal(rte_pktmbuf_data_len(m[0]), f.len - IOAM_LEN);
	rte_pktmbuf_free(m[0]);
	atomic_store(&r.dp->qps->gsi[1], NULL);
	rig_qp_down(&r, &q, 9);
}

/* The port that rig frames come to accepts Fast CNPs of one switch, about packets from `ours` to
 * `theirs`. */
static const uint8_t ours[16] = {0xFD, [15] = 1}, theirs[16] = {0xFD, [15] = 2};
static const uint8_t a_switch[16] = {0xFD, 5};

static size_t fast_cnp(uint8_t frame[FAST_CNP_FRAME_MAX])
{
	struct fast_cnp_spec s = {.dest_qpn = 0x21, .pkey = 0xFFFF, .type = FAST_CNP_TYPE_PLAIN};

	port_get_mac(&r.dp->ports->port[1], s.dmac);
	memcpy(s.source, a_switch, sizeof(s.source));
	memcpy(s.dest, ours, sizeof(s.dest));
	memcpy(s.dip, theirs, sizeof(s.dip));
	return fast_cnp_write(frame, &s, icrc_best());
}

static void accept_fast_cnps(struct switch_list *l)
{
	struct gid_table *gids = &r.gids[1];

	gids->entry[gids->count] = (struct gid_entry){.net = NET_IPV6, .valid = true};
	memcpy(gids->entry[gids->count++].gid, ours, sizeof(ours));
	*l = (struct switch_list){.type = {FAST_CNP_TYPE_PLAIN, FAST_CNP_TYPE_TRACE}, .n = 1};
	memcpy(l->entry[0].addr, a_switch, sizeof(a_switch));
	l->entry[0].prefix = 128;
	bucket_init(&l->entry[0].bucket, 1000000, 100);
	bucket_init(&l->all, 1000000, 100);
	atomic_store(&r.dp->ports->port[1].rcm, rcm_word(0, 0, false));
	atomic_store(&r.dp->ports->port[1].switches, l);
}

/* A QP of which such packets come. */
static void send_flow(struct rig_qp *q, struct qp_flow *f)
{
	q->qp->state = ABI_QPS_RTS;
	q->qp->pkey = 0xFFFF;
	q->qp->req.sent =
		q->qp->comp.acked + 1; /* in flight: it is not idle, however long this takes */
	*f = (struct qp_flow){.key = {.dest_qpn = 0x21, .port = 1}, .qp = q->qp};
	memcpy(f->key.sgid, ours, sizeof(ours));
	memcpy(f->key.dgid, theirs, sizeof(theirs));
	flow_add(r.dp->flows, f);
}

static uint64_t told(unsigned worker)
{
	return r.dp->worker[worker]->core.count.rp_fast_cnp_handled;
}

/* proves FCN-09: each worker tells its own QPs, once, whoever received the frame */
static void rx_poll__fast_cnp_reaches_all_owners(void **state)
{
	uint8_t frame[FAST_CNP_FRAME_MAX];
	size_t len = fast_cnp(frame);
	struct switch_list l;
	struct qp_flow f[2];
	struct rig_qp q[2];
	bool drained;

	for (unsigned i = 0; i < 2; i++) {
		rig_qp_up(&r, &q[i], 8 + i, i);
		send_flow(&q[i], &f[i]);
	}
	accept_fast_cnps(&l);
	for (unsigned n = 1; n <= 3; n++) {
		inject(piece(frame, len));
		assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
		assert_int_equal(told(0), n);
		assert_int_equal(told(1), n - 1);
		assert_int_equal(rig_rx(r.dp->worker[1], &drained), 1);
		assert_int_equal(told(1), n);
		assert_int_equal(rig_rx(r.dp->worker[0], &drained), 0); /* and no further */
		assert_int_equal(received(0), n);
		assert_int_equal(received(1), 0);
	}
	atomic_store(&r.dp->ports->port[1].switches, NULL);
	for (unsigned i = 0; i < 2; i++)
		rig_qp_down(&r, &q[i], 8 + i);
}

/* proves FCN-01, FCN-14: a port without switches takes it for any IPv6 packet; its buffer is not
 * lost either way */
static void rx_poll__fast_cnp_is_not_ours(void **state)
{
	uint8_t frame[FAST_CNP_FRAME_MAX];
	size_t len = fast_cnp(frame);
	struct switch_list l;
	bool drained;

	inject(piece(frame, len));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(dropped(0, DROP_IP_NEXT_HEADER), 1);
	accept_fast_cnps(&l);
	inject(piece(frame, len));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(dropped(0, DROP_IP_NEXT_HEADER), 1);
	assert_int_equal(dropped(0, DROP_FAST_CNP_NO_QP), 1);
	frame[len - 1] ^= 1;
	inject(piece(frame, len));
	assert_int_equal(rig_rx(r.dp->worker[0], &drained), 1);
	assert_int_equal(dropped(0, DROP_ICRC), 1);
	atomic_store(&r.dp->ports->port[1].switches, NULL);
	assert_int_equal(rig_free_buffers(r.dp->worker[0]), all_buffers);
}

/* Fills the inbox of worker 1 with @p n frames, and clears those of worker 0. */
static void fill_inbox(const struct frame *f, unsigned n)
{
	bool drained;

	for (unsigned i = 0; i < n; i++) {
		inject(piece(f->b, f->len));
		rig_rx(r.dp->worker[0], &drained);
	}
}

/* A round that is late as soon as it has received a burst. */
static void begin_before_the_clock(struct worker *w)
{
	w->now = (uint64_t)(-2 * ROUND_LONG_NS);
	w->burst_at = w->now;
}

/* A round that has taken long already takes one burst; the rest waits for the next, which begins
 * with the sources that this one did not come to. */
static void rx_poll__late_round_takes_one_burst(void **state)
{
	struct frame f = frame_to(QPN_MAKE(1, 1, 9));
	struct worker *w = r.dp->worker[1];
	uint32_t inbox = w->nports + 1;
	struct rig_qp q;
	bool drained;

	rig_qp_up(&r, &q, 9, 1);
	fill_inbox(&f, 3 * BURST);
	begin_before_the_clock(w);
	assert_int_equal(rx_poll(w, &drained), BURST);
	assert_false(drained);
	w->now = INT64_MAX; /* it begins */
	assert_int_equal(rx_poll(w, &drained), 2 * BURST);
	assert_true(drained);
	fill_inbox(&f, 3 * BURST);
	begin_before_the_clock(w);
	w->first_source = inbox;
	assert_int_equal(rx_poll(w, &drained), BURST);
	assert_false(drained);
	assert_int_equal(w->first_source, 0); /* the others had no turn */
	w->now = INT64_MAX;
	rx_poll(w, &drained);
	rig_qp_down(&r, &q, 9);
}

/* A flood that comes to a port which is set down is work like any other: what it leaves in the
 * queue is fetched before the worker rests, and it puts off no timer of the other ports' QPs. */
static void rx_poll__port_that_is_down_is_emptied(void **state)
{
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	struct worker *w = r.dp->worker[0];
	bool drained;

	port_set_down(r.dp, 1, true);
	for (unsigned i = 0; i < BURST + 1; i++)
		inject(piece(arp, sizeof(arp)));
	assert_int_equal(rig_rx(w, &drained), BURST);
	assert_false(drained);
	assert_int_equal(rig_rx(w, &drained), 1);
	assert_true(drained);
	assert_int_equal(w->stats.port_down, BURST + 1);
	assert_int_equal(dropped(0, DROP_NOT_ROCE), 0);
	assert_int_equal(rig_free_buffers(w), all_buffers);
}

static void timers_poll__goes_on_while_a_port_is_down(void **state)
{
	static struct qp qp;
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	struct worker *w = r.dp->worker[0];
	bool drained;

	list_init(&qp.ready);
	wheel_timer_init(&qp.timer);
	timers_rnr_nak(&w->core, &qp, 1, w->now);
	w->now += 1000000;
	port_set_down(r.dp, 1, true);
	for (unsigned i = 0; i < 100000 / BURST && qp.comp.rnr_wait; i++) {
		unsigned n;

		for (unsigned k = 0; k < BURST; k++)
			inject(piece(arp, sizeof(arp)));
		n = rig_rx(w, &drained);
		assert_false(drained);
		timers_poll(w, n, drained);
	}
	assert_false(qp.comp.rnr_wait);
	qp_make_idle(&w->core, &qp);
}

/* A frame that is held may be of another worker's pool, which was destroyed before. */
static void worker_destroy__leaves_what_is_held_to_its_pool(void **state)
{
	static struct rte_mbuf gone = {.refcnt = 1, .nb_segs = 1};

	rig_up(&r, 2);
	r.dp->worker[1]->held[3] = &gone;
	rig_down(&r);
	assert_int_equal(gone.refcnt, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rx_poll__fast_cnp_reaches_all_owners, up_two, down),
		cmocka_unit_test_setup_teardown(rx_poll__fast_cnp_is_not_ours, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__nothing_is_drained, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__full_burst_is_not_drained, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__chained_frame_is_joined, up, down),
		cmocka_unit_test_setup_teardown(
			rx_poll__chain_that_fits_nowhere_is_dropped, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__stripped_tag_counts, up, down),
		cmocka_unit_test_setup_teardown(
			rx_poll__stripped_tag_without_room_is_dropped, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__plain_frame_is_expected, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__stripped_tag_is_not_expected, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__chained_frame_is_not_expected, up, down),
		cmocka_unit_test_setup_teardown(rx_poll__port_that_is_down_is_emptied, up, down),
		cmocka_unit_test_setup_teardown(
			timers_poll__goes_on_while_a_port_is_down, up, down),
		cmocka_unit_test_setup_teardown(
			rx_poll__other_workers_frame_is_handed_over, up_two, down),
		cmocka_unit_test_setup_teardown(
			rx_poll__broken_frames_take_half_an_inbox, up_two, down),
		cmocka_unit_test_setup_teardown(rx_poll__cnps_take_half_an_inbox, up_two, down),
		cmocka_unit_test_setup_teardown(rx_poll__telemetry_overtakes_nothing, up_two, down),
		cmocka_unit_test_setup_teardown(
			rx_poll__telemetry_takes_half_an_inbox, up_two, down),
		cmocka_unit_test_setup_teardown(rx_poll__telemetry_for_qp1, up_two, down),
		cmocka_unit_test_setup_teardown(rx_poll__late_round_takes_one_burst, up_two, down),
		cmocka_unit_test(worker_destroy__leaves_what_is_held_to_its_pool),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
