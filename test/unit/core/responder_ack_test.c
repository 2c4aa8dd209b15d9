/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's answers: when they are sent, MSN, headers, order of effects. */
#include "fixture.h"
#include "headers.h"
#include "hole.h"
#include "icrc.h"
#include "opcode.h"
#include "opcodes.h"
#include "responder.h"
#include "txd.h"

static struct shot shot_at(uint8_t opcode, uint32_t psn, uint64_t off, uint32_t len)
{
	return (struct shot){.opcode = opcode,
		.psn = psn,
		.va = app_va(l.mr, off),
		.rkey = l.mr->mr.key,
		.dma_len = len,
		.len = opcode == READ_REQ ? 0 : len};
}

static void rx(uint8_t opcode, uint32_t psn, bool ackreq, uint32_t len)
{
	struct shot s = shot_at(opcode, psn, 0, len);

	s.ackreq = ackreq;
	lone_rx(&l, &s);
}

static void assert_untouched(uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(l.mr->mem[off + i], 0x11);
}

/* --- when ------------------------------------------------------------------------------- */

/* proves RSP-23: only when asked for, at the next opportunity, once for all that was accepted till
 * then.
 */
static void responder_next__acknowledges_what_was_asked(void **state)
{
	struct shot s[3];

	lone_start(&l);
	rx(WRITE_ONLY, 0x100, false, 4);
	rx(WRITE_ONLY, 0x101, false, 4);
	assert_string_equal(lone_tx(&l), "");
	rx(WRITE_ONLY, 0x102, true, 4);
	assert_string_equal(lone_tx(&l), "ACK@1021f/3");
	for (unsigned i = 0; i < 3; i++) {
		s[i] = shot_at(WRITE_ONLY, 0x103 + i, 0, 4);
		s[i].ackreq = i == 0; /* the last two ride along */
	}
	lone_rx_burst(&l, s, 3);
	assert_string_equal(lone_tx(&l), "ACK@1051f/6");
	assert_string_equal(lone_tx(&l), "");
	for (unsigned i = 0; i < 3; i++) {
		s[i].psn += 3;
		s[i].ackreq = true;
	}
	lone_rx_burst(&l, s, 3);
	assert_string_equal(lone_tx(&l), "ACK@1081f/9");
	s[0] = shot_at(WRITE_FIRST, 0x109, 0, 512); /* in the middle of a message too */
	s[0].len = 256;
	s[0].ackreq = true;
	lone_rx(&l, &s[0]);
	assert_string_equal(lone_tx(&l), "ACK@1091f/9");
}

/* proves RSP-24: the data are there before an ACK can be built, and no ACK is for data that could
 * not be placed. */
static void responder_rx__data_lie_in_memory_before_the_ack(void **state)
{
	struct shot s[2];
	struct mr *mr;

	lone_start(&l);
	lone_recv(&l, 1, 1000, 64);
	s[0] = shot_at(WRITE_ONLY, 0x100, 2000, 64);
	s[1] = shot_at(SEND_ONLY, 0x101, 0, 64);
	s[0].ackreq = s[1].ackreq = true;
	lone_rx_burst(&l, s, 2);
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(l.mr->mem[1000 + i], i);
		assert_int_equal(l.mr->mem[2000 + i], i);
	}
	assert_string_equal(lone_tx(&l), "ACK@1011f/2");
	mr = hole_open(l.host, APP_PD);
	s[0].psn = 0x102;
	s[1] = (struct shot){.opcode = WRITE_ONLY,
		.psn = 0x103,
		.ackreq = true,
		.va = mr->iova + HOLE_PAGE,
		.rkey = mr->key,
		.dma_len = 8,
		.len = 8};
	lone_rx_burst(&l, s, 2);
	assert_string_equal(lone_tx(&l), "ACK@10363/3");
	hole_close(l.host);
}

/* proves RSP-24: the same for a SEND whose receive faults, the very first request: it is not
 * acknowledged, and does not establish anything (EVT-01). */
static void responder_rx__no_ack_for_what_was_not_placed(void **state)
{
	for (int send = 0; send < 2; send++) {
		struct abi_sge sge;
		struct shot s = {.opcode = send ? SEND_ONLY : WRITE_ONLY, .psn = 0x100, .len = 8};
		struct mr *mr;

		if (send) {
			lone_fini(&l);
			lone_setup_256(NULL);
		}
		lone_start_in(&l, ABI_QPS_RTR);
		mr = hole_open(l.host, APP_PD);
		sge = (struct abi_sge){mr->iova + HOLE_PAGE, 64, mr->key};
		app_post_recv(l.qp, 1, &sge, 1);
		s.ackreq = true;
		s.va = mr->iova + HOLE_PAGE;
		s.rkey = mr->key;
		s.dma_len = 8;
		lone_rx(&l, &s);
		assert_string_equal(lone_tx(&l), "ACK@10063/0");
		assert_string_equal(lone_tx(&l), "");
		assert_string_equal(lone_cqes(&l), send ? "R1:LOC_PROT" : "R1:FLUSH");
		assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 0);
		hole_close(l.host);
	}
}

/* proves RSP-39, RSP-44: a duplicate that asks for nothing gets nothing; RSP-44: one of a WRITE
 * does not touch the WRITE that is open. */
static void responder_rx__duplicates_of_an_open_write(void **state)
{
	struct shot first, middle, last;

	lone_start(&l);
	first = shot_at(WRITE_FIRST, 0x100, 0, 600);
	middle = shot_at(WRITE_MIDDLE, 0x101, 0, 256);
	last = shot_at(WRITE_LAST, 0x102, 0, 88);
	first.len = 256;
	lone_rx(&l, &first);
	lone_rx(&l, &first);
	assert_string_equal(lone_tx(&l), "");
	lone_rx(&l, &middle);
	memset(l.mr->mem, 0x11, 600);
	lone_rx(&l, &middle);
	first.va += 5000; /* not that a peer does so: nothing of it is looked at */
	lone_rx(&l, &first);
	assert_untouched(0, 6000);
	first.ackreq = true;
	lone_rx(&l, &first);
	assert_string_equal(lone_tx(&l), "ACK@1011f/0");
	lone_rx(&l, &last);
	assert_int_equal(l.mr->mem[512 + 87], 87);
	assert_untouched(600, 100);
	middle.ackreq = true;
	lone_rx(&l, &middle);
	assert_string_equal(lone_tx(&l), "ACK@1021f/1");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.host->core.count.rx_write_requests, 1);
}

/* proves RSP-04: nor does a duplicate that asks for an ACK take the place of a NAK that waits to be
 * sent.
 */
static void responder_rx__duplicate_leaves_the_owed_nak(void **state)
{
	struct shot s[3];

	lone_start(&l);
	rx(WRITE_ONLY, 0x100, true, 4);
	lone_tx(&l);
	s[0] = shot_at(WRITE_ONLY, 0x102, 0, 4);
	s[1] = shot_at(WRITE_ONLY, 0x100, 0, 4);
	s[2] = shot_at(WRITE_ONLY, 0x103, 0, 4);
	s[1].ackreq = true;
	lone_rx_burst(&l, s, 3);
	assert_string_equal(lone_tx(&l), "ACK@10160/1");
	assert_string_equal(lone_tx(&l), "");
	rx(SEND_ONLY, 0x101, true, 4); /* no receive: the same with an RNR NAK */
	lone_rx(&l, &s[1]);
	assert_string_equal(lone_tx(&l), "ACK@10121/1");
}

/* --- MSN -------------------------------------------------------------------------------- */

/* proves RSP-25, RSP-26: from 0, one a message, at its end; READ at its acceptance; duplicates do
 * not count. RSP-26: NAKs tell the present one. */
static void responder_rx__msn_counts_messages(void **state)
{
	struct shot s;

	lone_start(&l);
	lone_recv(&l, 1, 0, 600);
	rx(SEND_FIRST, 0x100, true, 256);
	assert_string_equal(lone_tx(&l), "ACK@1001f/0");
	rx(SEND_MIDDLE, 0x101, true, 256);
	assert_string_equal(lone_tx(&l), "ACK@1011f/0");
	rx(SEND_LAST, 0x102, true, 4);
	assert_string_equal(lone_tx(&l), "ACK@1021f/1");
	s = shot_at(WRITE_FIRST, 0x103, 0, 260);
	s.len = 256;
	lone_rx(&l, &s);
	rx(WRITE_LAST, 0x104, true, 4);
	assert_string_equal(lone_tx(&l), "ACK@1041f/2");
	rx(WRITE_LAST, 0x104, true, 4);
	assert_string_equal(lone_tx(&l), "ACK@1041f/2");
	rx(READ_REQ, 0x105, true, 700);
	rx(WRITE_ONLY, 0x109, true, 4); /* too early, and it hears of the READ */
	assert_string_equal(lone_tx(&l), "RESP_FIRST@105+2561f/3 RESP_MIDDLE@106+256 "
					 "RESP_LAST@107+1881f/3 ACK@10860/3");
	rx(READ_REQ, 0x105, true, 700);
	lone_tx(&l);
	rx(SEND_ONLY, 0x108, true, 4); /* no receive */
	assert_string_equal(lone_tx(&l), "ACK@10821/3");
	rx(WRITE_MIDDLE, 0x108, true, 256);
	assert_string_equal(lone_tx(&l), "ACK@10861/3");
}

/* proves RSP-25: 24 bits. */
static void responder_rx__msn_wraps(void **state)
{
	lone_start(&l);
	l.qp->qp->resp.msn = 0xFFFFFE;
	rx(WRITE_ONLY, 0x100, true, 4);
	assert_string_equal(lone_tx(&l), "ACK@1001f/16777215");
	rx(WRITE_ONLY, 0x101, true, 4);
	assert_string_equal(lone_tx(&l), "ACK@1011f/0");
	rx(WRITE_ONLY, 0x104, true, 4); /* a 25th bit would make it another NAK */
	assert_string_equal(lone_tx(&l), "ACK@10260/0");
	l.qp->qp->resp.msn = 0xFFFFFF;
	rx(READ_REQ, 0x102, true, 4);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@102+41f/0");
	l.qp->qp->resp.msn = 0xFFFFFF;
	rx(WRITE_ONLY, 0x103, true, 4);
	rx(READ_REQ, 0x104, true, 4); /* the ACK before it tells the number before its own */
	assert_string_equal(lone_tx(&l), "ACK@1031f/0 RESP_ONLY@104+41f/1");
	assert_int_equal(l.qp->qp->resp.msn, 1);
}

/* --- where to --------------------------------------------------------------------------- */

static uint8_t out[4][FRAME_MAX];

/* Takes what the host sends; lone_tx() expects the usual headers. */
static unsigned take(void)
{
	struct txd t[4];
	unsigned n;

	for (unsigned i = 0; i < 4; i++)
		t[i].frame = out[i];
	app_ring(&l.app, l.now);
	n = core_tx(&l.host->core, t, 4, l.now);
	for (unsigned i = 0; i < n; i++)
		assert_true(core_seal(&l.host->core, &t[i]));
	return n;
}

/* Ethernet to UDP and BTH as the AV and the QP say; the packet that is answered says otherwise. */
static void assert_by_av(const uint8_t *f, const uint8_t *request)
{
	const uint8_t *ip = f + 14, *bth = f + 42;

	assert_memory_equal(f, "\x02\0\0\0\0\x99\x02\0\0\0\0\x01\x08\x00", 14);
	assert_int_equal(ip[1], 0xB8);
	assert_int_equal(ip[8], 33);
	assert_memory_equal(ip + 12, ((uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}), 8);
	assert_memory_equal(f + 34, request + 34, 4); /* ports */
	assert_int_equal(get_be16(bth + 2), 0x8123);
	assert_int_equal(get_be32(bth + 4), PEER_QPN);
	assert_int_equal(bth[1] & 0x80, 0); /* SE */
	assert_int_equal(bth[8] & 0x80, 0); /* AckReq */
}

/* proves RSP-48, RSP-49, RSP-50, BTH-10, BTH-11, BTH-12, BTH-13: the peer's packet comes through
 * another router, from another port, with another TOS, TTL and a limited member's P_Key. */
static void responder_next__answers_go_by_the_av(void **state)
{
	static struct sim_host peer;
	static uint8_t request[FRAME_MAX];
	struct path_spec path;
	struct shot s;

	host_init(&peer, 2, icrc_best(), 0);
	l.host->ports.port[0].pkeys = 2;
	l.host->ports.port[0].pkey[1] = 0x8123;
	l.attr.pkey_index = 1;
	lone_start_in(&l, ABI_QPS_INIT);
	path = host_path(l.host, &peer, 0, HOST_GID_IPV4);
	path.traffic_class = 0xB8;
	path.hop_limit = 33;
	path.dmac[5] = 0x99;
	assert_int_equal(app_to_rtr(l.qp, &l.attr, &path, l.now), 0);
	assert_int_equal(app_to_rts(l.qp, &l.attr, l.now), 0);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	assert_int_equal(take(), 1);
	memcpy(request, out[0], sizeof(request));
	assert_int_not_equal(get_be16(request + 34), 0xC001); /* the shots' source port */
	s = shot_at(WRITE_ONLY, 0x100, 0, 5);
	s.pkey = 0x0123;
	s.se = s.ackreq = true;
	lone_rx(&l, &s);
	s.opcode = READ_REQ;
	s.psn++;
	s.len = 0;
	lone_rx(&l, &s);
	s.psn += 2; /* ahead: a NAK */
	lone_rx(&l, &s);
	assert_int_equal(take(), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_by_av(out[i], request);
	assert_int_equal(out[0][42], 0x11);
	assert_int_equal(out[1][42], 0x10);
	assert_int_equal(out[2][54], 0x60);
	assert_int_equal(out[0][43], 0x40); /* MigReq; no pad, TVer 0 */
	assert_int_equal(out[2][43], 0x40);
}

/* proves RSP-49: of an ACK, a READ response and a NAK, over each protocol. */
static void responder_next__answers_have_the_traffic_class(void **state)
{
	static struct sim_host peer;

	host_init(&peer, 2, icrc_best(), 0);
	for (unsigned net = HOST_GID_IPV4; net < HOST_GIDS; net++) {
		struct pkt pkt = {.op = opcode_row(WRITE_ONLY), .psn = 0x100, .ackreq = true};
		struct path_spec path = host_path(l.host, &peer, 0, (enum host_gid)net);

		path.traffic_class = 0x68;
		lone_start_in(&l, ABI_QPS_INIT);
		assert_int_equal(app_to_rtr(l.qp, &l.attr, &path, l.now), 0);
		responder_rx(&l.host->core, l.qp->qp, &pkt, l.now);
		pkt.op = opcode_row(READ_REQ);
		pkt.psn++;
		responder_rx(&l.host->core, l.qp->qp, &pkt, l.now);
		pkt.psn += 2; /* ahead: a NAK */
		responder_rx(&l.host->core, l.qp->qp, &pkt, l.now);
		assert_int_equal(take(), 3);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(net == HOST_GID_IPV4 ? out[i][15]
							      : get_be16(out[i] + 14) >> 4 & 0xFF,
				0x68);
		if (net + 1 < HOST_GIDS) {
			lone_fini(&l);
			lone_setup_256(NULL);
		}
	}
}

/* --- order of effects ------------------------------------------------------------------- */

/* proves RSP-52: what comes early is not written; what is written twice is as the later PSN left
 * it. */
static void responder_rx__writes_in_psn_order(void **state)
{
	uint8_t bytes[3][256];
	struct shot s[3];

	lone_start(&l);
	for (unsigned i = 0; i < 3; i++) {
		memset(bytes[i], 0xA0 + (int)i, sizeof(bytes[i]));
		s[i] = shot_at(WRITE_ONLY, 0x100 + i, 64 * i, 128);
		s[i].payload = bytes[i];
	}
	lone_rx(&l, &s[2]);
	lone_rx(&l, &s[1]);
	assert_untouched(0, 512);
	lone_rx_burst(&l, s, 3);
	for (unsigned b = 0; b < 256; b++)
		assert_int_equal(l.mr->mem[b], b < 64 ? 0xA0 : b < 128 ? 0xA1 : 0xA2);
	assert_int_equal(l.mr->mem[256], 0x11);
}

/* proves RSP-53: a READ after WRITEs, all in one burst, before anything is answered; and a READ
 * that has overtaken them. */
static void responder_next__read_sees_the_writes_before_it(void **state)
{
	struct shot s[4];
	uint8_t late[300];

	lone_start(&l);
	memset(late, 0xEE, sizeof(late));
	s[0] = shot_at(WRITE_FIRST, 0x100, 0, 300);
	s[0].len = 256;
	s[1] = shot_at(WRITE_LAST, 0x101, 0, 44);
	s[1].payload = late;
	s[2] = shot_at(READ_REQ, 0x102, 200, 100);
	lone_rx(&l, &s[2]);
	assert_string_equal(lone_tx(&l), "ACK@10060/0");
	lone_rx_burst(&l, s, 3);
	assert_string_equal(lone_tx(&l), "RESP_ONLY@102+1001f/2");
	for (unsigned b = 0; b < 100; b++)
		assert_int_equal(l.frame[58 + b], b < 56 ? 200 + b : 0xEE);
}

/* --- states ----------------------------------------------------------------------------- */

/* proves RSP-47: SEND, WRITE and READ are served in RTR, RTS and SQD. */
static void responder_rx__serves_in_rtr_rts_and_sqd(void **state)
{
	static const unsigned states[] = {ABI_QPS_RTR, ABI_QPS_RTS, ABI_QPS_SQD};

	for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
		if (i)
			lone_init(&l);
		l.attr.path_mtu = 256;
		lone_start_in(&l, states[i] == ABI_QPS_RTR ? ABI_QPS_RTR : ABI_QPS_RTS);
		if (states[i] == ABI_QPS_SQD)
			assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
		lone_recv(&l, 1, 1000, 64);
		rx(WRITE_ONLY, 0x100, true, 16);
		rx(READ_REQ, 0x101, true, 16);
		rx(SEND_ONLY, 0x102, true, 16);
		assert_string_equal(lone_tx(&l), "ACK@1001f/1 RESP_ONLY@101+161f/2 ACK@1021f/3");
		assert_string_equal(lone_cqes(&l), "R1:OK+16");
		assert_int_equal(l.qp->qp->state, states[i]);
		if (i + 1 < ARRAY_SIZE(states))
			lone_fini(&l);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup_256, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(responder_next__acknowledges_what_was_asked),
		T(responder_rx__data_lie_in_memory_before_the_ack),
		T(responder_rx__no_ack_for_what_was_not_placed),
		T(responder_rx__duplicates_of_an_open_write),
		T(responder_rx__duplicate_leaves_the_owed_nak),
		T(responder_rx__msn_counts_messages),
		T(responder_rx__msn_wraps),
		T(responder_next__answers_go_by_the_av),
		T(responder_next__answers_have_the_traffic_class),
		T(responder_rx__writes_in_psn_order),
		T(responder_next__read_sees_the_writes_before_it),
		T(responder_rx__serves_in_rtr_rts_and_sqd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
