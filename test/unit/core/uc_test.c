/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connected: the responder that never answers, the requester that waits for nothing,
 * and the state SQE. */
#include <errno.h>
#include "cause.h"
#include "fixture.h"
#include "hole.h"
#include "opcode.h"
#include "qp.h"
#include "txd.h"

#define MTU 1024u

/* UC opcodes, as the specification numbers them (IBA 9.2.1 Table 35). */
enum {
	SEND_FIRST = 0x20,
	SEND_MIDDLE,
	SEND_LAST,
	SEND_LAST_IMM,
	SEND_ONLY,
	SEND_ONLY_IMM,
	WRITE_FIRST,
	WRITE_MIDDLE,
	WRITE_LAST,
	WRITE_LAST_IMM,
	WRITE_ONLY,
	WRITE_ONLY_IMM,
};

static int setup(void **state)
{
	lone_setup(state);
	l.spec.type = ABI_QPT_UC;
	return 0;
}

static void start(void)
{
	lone_start(&l);
	memset(l.mr->mem, 0, LONE_MEM);
}

/* A packet of @p len bytes, which are 0, 1, 2, ... */
static struct shot shot(uint8_t opcode, uint32_t psn, uint32_t len)
{
	return (struct shot){.opcode = opcode,
		.psn = psn,
		.len = len,
		.ackreq = true, /* BTH-14 */
		.imm = 0xCAFE,
		.va = app_va(l.mr, 0x8000),
		.rkey = l.mr->mr.key,
		.dma_len = len};
}

/* Gives the packet.  Nothing is ever sent in return (UC-02).  @return its verdict. */
static enum drop rx(struct shot s)
{
	enum drop why = (enum drop)lone_rx(&l, &s);

	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	return why;
}

static enum drop send(uint8_t opcode, uint32_t psn, uint32_t len)
{
	return rx(shot(opcode, psn, len));
}

/* The first packet of a WRITE of @p total bytes. */
static enum drop write_first(uint32_t psn, uint32_t len, uint32_t total)
{
	struct shot s = shot(WRITE_FIRST, psn, len);

	s.dma_len = total;
	return rx(s);
}

static bool written(uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (l.mr->mem[off + i] != (uint8_t)i)
			return false;
	return true;
}

static bool untouched(uint64_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (l.mr->mem[off + i])
			return false;
	return true;
}

/* --- the responder ------------------------------------------------------------------------ */

/* proves UC-01, UC-02, BTH-14: each operation, in all its parts, and no answer. */
static void uc_rx__every_opcode(void **state)
{
	start();
	for (uint64_t i = 1; i <= 6; i++)
		lone_recv(&l, i, 0x1000 * i, 4096);
	assert_int_equal(send(SEND_ONLY, 0x100, 5), DROP_NONE);
	assert_int_equal(send(SEND_ONLY_IMM, 0x101, 6), DROP_NONE);
	assert_int_equal(send(SEND_FIRST, 0x102, MTU), DROP_NONE);
	assert_int_equal(send(SEND_MIDDLE, 0x103, MTU), DROP_NONE);
	assert_int_equal(send(SEND_LAST, 0x104, 7), DROP_NONE);
	assert_int_equal(send(SEND_FIRST, 0x105, MTU), DROP_NONE);
	assert_int_equal(send(SEND_LAST_IMM, 0x106, MTU), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+5 R2:OK+6#cafe R3:OK+2055 R4:OK+2048#cafe");
	assert_true(written(0x1000, 5) && written(0x2000, 6) && written(0x3000, MTU) &&
		    written(0x3000 + 2 * MTU, 7) && written(0x4000 + MTU, MTU));
	assert_int_equal(send(WRITE_ONLY, 0x107, 8), DROP_NONE);
	assert_true(written(0x8000, 8));
	assert_int_equal(send(WRITE_ONLY_IMM, 0x108, 9), DROP_NONE);
	assert_int_equal(write_first(0x109, MTU, 2 * MTU + 3), DROP_NONE);
	assert_int_equal(send(WRITE_MIDDLE, 0x10A, MTU), DROP_NONE);
	assert_int_equal(send(WRITE_LAST, 0x10B, 3), DROP_NONE);
	assert_true(written(0x8000 + MTU, MTU) && written(0x8000 + 2 * MTU, 3));
	assert_int_equal(write_first(0x10C, MTU, MTU + 3), DROP_NONE);
	assert_int_equal(send(WRITE_LAST_IMM, 0x10D, 3), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R5:OK+9#cafe R6:OK+1027#cafe");
	assert_int_equal(l.qp->qp->resp.epsn, 0x10E);
	assert_int_equal(l.host->core.count.rx_send_requests, 4);
	assert_int_equal(l.host->core.count.rx_write_requests, 4);
	assert_int_equal(l.host->core.count.out_of_sequence, 0);
}

/* proves VAL-04, VAL-05: other services' packets, and opcodes that UC has not, also in a message.
 */
static void uc_rx__other_opcodes(void **state)
{
	start();
	lone_recv(&l, 1, 0, 4096);
	for (unsigned op = 0; op < 0x15; op++)
		assert_int_equal(send((uint8_t)op, 0x100, opcode_row((uint8_t)op)->payload ? 8 : 0),
			DROP_QP_TYPE);
	for (unsigned op = 0x2C; op < 0x40; op++)
		assert_int_equal(send((uint8_t)op, 0x100, 8), DROP_OPCODE_UNSUPPORTED);
	assert_int_equal(send(SEND_FIRST, 0x100, MTU), DROP_NONE);
	assert_int_equal(send(0x2C, 0x101, 8), DROP_OPCODE_UNSUPPORTED);
	assert_int_equal(send(SEND_LAST, 0x102, 8), DROP_MESSAGE_TORN);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(send(SEND_ONLY, 0x103, 8), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+8");
}

/* proves UC-02, UC-04, UC-05, UC-06: the rest of a message that lost a packet goes too, without a
 * NAK, the next one has its receive, whatever its PSN. */
static void uc_rx__loss_in_a_message(void **state)
{
	static const uint32_t next[] = {0x104, 0x105, 0x9000, 0x102, 0x101, 0xFFFFFF, 0x100};

	for (unsigned i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
		start();
		lone_recv(&l, 1, 0, 4096);
		assert_int_equal(send(SEND_FIRST, 0x100, MTU), DROP_NONE);
		assert_int_equal(send(SEND_MIDDLE, 0x102, MTU), DROP_MESSAGE_TORN);
		assert_int_equal(send(SEND_LAST, 0x103, 4), DROP_MESSAGE_TORN);
		assert_int_equal(l.host->core.count.out_of_sequence, 2);
		assert_string_equal(lone_cqes(&l), "");
		assert_int_equal(send(SEND_ONLY, next[i], 9), DROP_NONE);
		assert_string_equal(lone_cqes(&l), "R1:OK+9");
		assert_true(written(0, 9));
		assert_int_equal(l.qp->qp->resp.epsn, (next[i] + 1) & 0xFFFFFF);
		lone_teardown(NULL);
		setup(NULL);
	}
	start();
}

/* proves UC-05: not even a LAST with the right PSN, once the message is given up. */
static void uc_rx__nothing_until_a_first(void **state)
{
	start();
	lone_recv(&l, 1, 0, 4096);
	assert_int_equal(send(SEND_LAST, 0x100, 4), DROP_MESSAGE_TORN);
	assert_int_equal(send(SEND_FIRST, 0x100, MTU), DROP_NONE);
	assert_int_equal(send(SEND_MIDDLE, 0x102, MTU), DROP_MESSAGE_TORN);
	assert_int_equal(send(SEND_MIDDLE, 0x101, MTU), DROP_MESSAGE_TORN);
	assert_int_equal(send(WRITE_LAST, 0x101, 4), DROP_MESSAGE_TORN);
	assert_int_equal(send(SEND_LAST, 0x101, 4), DROP_MESSAGE_TORN);
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(send(SEND_FIRST, 0x101, MTU), DROP_NONE);
	assert_int_equal(send(SEND_LAST, 0x102, 4), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+1028");
}

/* proves UC-07: a message that begins ends the one that is open, with the right PSN too. Packets of
 * one kind do not continue a message of another. */
static void uc_rx__new_message_aborts_the_old(void **state)
{
	start();
	lone_recv(&l, 1, 0, 4096);
	lone_recv(&l, 2, 0x1000, 4096);
	assert_int_equal(send(SEND_FIRST, 0x100, MTU), DROP_NONE);
	assert_int_equal(send(SEND_FIRST, 0x101, MTU), DROP_NONE);
	assert_int_equal(send(SEND_LAST, 0x102, 4), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+1028");
	assert_int_equal(send(SEND_FIRST, 0x103, MTU), DROP_NONE);
	assert_int_equal(send(WRITE_LAST, 0x104, 4), DROP_MESSAGE_TORN);
	assert_int_equal(send(SEND_LAST, 0x104, 4), DROP_MESSAGE_TORN);
	assert_int_equal(write_first(0x105, MTU, MTU + 4), DROP_NONE);
	assert_int_equal(send(SEND_LAST, 0x106, 4), DROP_MESSAGE_TORN);
	assert_int_equal(send(SEND_ONLY, 0x107, 4), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R2:OK+4");
}

/* proves UC-08, UC-06: what was written of it stays; a WRITE with immediate takes the WQE of a SEND
 * that was given up, and does not begin where that stopped. */
static void uc_rx__aborted_messages_leave_data(void **state)
{
	start();
	lone_recv(&l, 1, 0x1000, 4096);
	assert_int_equal(write_first(0x100, MTU, 3 * MTU), DROP_NONE);
	assert_int_equal(send(WRITE_LAST, 0x102, MTU), DROP_MESSAGE_TORN);
	assert_true(written(0x8000, MTU));
	assert_true(untouched(0x8000 + MTU, 2 * MTU));
	assert_int_equal(send(SEND_FIRST, 0x103, MTU), DROP_NONE);
	assert_int_equal(send(WRITE_ONLY_IMM, 0x109, 5), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+5#cafe");
	lone_recv(&l, 2, 0x2000, 4096);
	assert_int_equal(send(SEND_FIRST, 0x10A, MTU), DROP_NONE);
	assert_int_equal(send(SEND_ONLY, 0x10C, 5), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R2:OK+5");
}

/* proves UC-02, UC-09, UC-12: no receive, no message and no NAK; a WRITE with immediate places
 * nothing of its last packet.
 */
static void uc_rx__no_receive_wqe(void **state)
{
	start();
	assert_int_equal(send(SEND_ONLY, 0x100, 5), DROP_NO_RECV_WQE);
	assert_int_equal(send(SEND_FIRST, 0x101, MTU), DROP_NO_RECV_WQE);
	lone_recv(&l, 1, 0, 4096);
	assert_int_equal(send(SEND_LAST, 0x102, 5), DROP_MESSAGE_TORN);
	assert_int_equal(send(SEND_ONLY, 0x103, 5), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+5");
	assert_int_equal(send(WRITE_ONLY_IMM, 0x104, 5), DROP_NO_RECV_WQE);
	assert_int_equal(write_first(0x105, MTU, MTU + 5), DROP_NONE);
	assert_int_equal(send(WRITE_LAST_IMM, 0x106, 5), DROP_NO_RECV_WQE);
	assert_true(untouched(0x8000 + MTU, 5));
	assert_int_equal(l.host->core.count.out_of_buffer, 4);
	assert_int_equal(l.host->core.count.rnr_nak_sent, 0);
	assert_int_equal(send(WRITE_ONLY, 0x107, 5), DROP_NONE); /* which needs none */
	assert_true(written(0x8000, 5));
}

/* proves UC-10, RSP-08 (RSP-12, RSP-14): what the peer may not write. */
static void uc_rx__bad_keys(void **state)
{
	struct app_mr *ro;
	struct shot s;

	start();
	ro = app_mr(&l.app, 4096, ABI_ACCESS_LOCAL_WRITE | ABI_ACCESS_REMOTE_READ);
	lone_recv(&l, 1, 0, 4096);
	s = shot(WRITE_ONLY, 0x100, 16);
	s.rkey ^= 1; /* RSP-14 */
	assert_int_equal(rx(s), DROP_REQUEST_ACCESS);
	s = shot(WRITE_ONLY_IMM, 0x101, 16);
	s.va = app_va(l.mr, LONE_MEM - 15);
	assert_int_equal(rx(s), DROP_REQUEST_ACCESS);
	s.va = app_va(ro, 0);
	s.rkey = ro->mr.key;
	assert_int_equal(rx(s), DROP_REQUEST_ACCESS);
	assert_int_equal(l.host->core.count.resp_remote_access_errors, 3);
	s = shot(WRITE_ONLY, 0x102, 0); /* RSP-12 */
	s.rkey = 0;
	assert_int_equal(rx(s), DROP_NONE);
	l.qp->qp->attr.access_flags = 0; /* RSP-08 */
	assert_int_equal(send(WRITE_ONLY, 0x103, 16), DROP_REQUEST_ACCESS);
	assert_true(untouched(0, LONE_MEM));
	assert_int_equal(l.app.events, 0);
	assert_int_equal(send(SEND_ONLY, 0x104, 16), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+16"); /* none of them took it */
}

/* proves UC-10 (RSP-15): the region goes in the midst of a message. */
static void uc_rx__key_goes_in_a_message(void **state)
{
	start();
	assert_int_equal(write_first(0x100, MTU, 3 * MTU), DROP_NONE);
	app_mr_dereg(&l.app, l.mr);
	assert_int_equal(send(WRITE_MIDDLE, 0x101, MTU), DROP_REQUEST_ACCESS);
	app_mr_again(&l.app, l.mr);
	assert_int_equal(send(WRITE_LAST, 0x102, MTU), DROP_MESSAGE_TORN);
	assert_true(untouched(0x8000 + MTU, 2 * MTU));
}

/* proves UC-10, UC-13 (RSP-09, RSP-10, RSP-11): lengths as of RC. */
static void uc_rx__bad_lengths(void **state)
{
	struct shot s;

	start();
	lone_recv(&l, 1, 0, 2000);
	assert_int_equal(send(SEND_ONLY, 0x100, MTU + 4), DROP_REQUEST_LENGTH);
	assert_int_equal(send(SEND_FIRST, 0x101, MTU - 4), DROP_REQUEST_LENGTH);
	assert_int_equal(send(SEND_FIRST, 0x102, MTU), DROP_NONE);
	assert_int_equal(send(SEND_MIDDLE, 0x103, MTU - 4), DROP_REQUEST_LENGTH);
	assert_int_equal(send(SEND_LAST, 0x104, 4), DROP_MESSAGE_TORN);
	assert_int_equal(send(SEND_FIRST, 0x105, MTU), DROP_NONE);
	assert_int_equal(send(SEND_LAST, 0x106, 0), DROP_REQUEST_LENGTH);
	assert_int_equal(write_first(0x107, MTU, MTU - 1), DROP_REQUEST_LENGTH);
	assert_int_equal(write_first(0x108, MTU, 2 * MTU), DROP_NONE);
	assert_int_equal(send(WRITE_LAST, 0x109, 8), DROP_REQUEST_LENGTH);
	s = shot(WRITE_ONLY, 0x10A, 8);
	s.dma_len = 12;
	assert_int_equal(rx(s), DROP_REQUEST_LENGTH);
	s = shot(WRITE_FIRST, 0x10B, MTU);
	s.dma_len = (1u << 31) + 1;
	assert_int_equal(rx(s), DROP_REQUEST_LENGTH);
	assert_string_equal(lone_cqes(&l), "");
	/* More than the receive takes: its next message may be shorter. */
	assert_int_equal(send(SEND_FIRST, 0x10C, MTU), DROP_NONE);
	assert_int_equal(send(SEND_LAST, 0x10D, 977), DROP_REQUEST_LENGTH);
	assert_int_equal(l.host->core.count.resp_local_length_error, 1);
	assert_int_equal(send(SEND_FIRST, 0x10E, MTU), DROP_NONE);
	assert_int_equal(send(SEND_LAST, 0x10F, 976), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+2000");
	assert_true(untouched(2000, 64));
}

/* A receive WQE that its own program made wrong is not the peer's fault: IBA 9.9.3 class A. */
static void uc_rx__bad_receive_wqe(void **state)
{
	struct abi_sge sge;
	struct shot s;

	start();
	sge = app_sge(l.mr, 0, 64);
	sge.lkey ^= 1;
	app_post_recv(l.qp, 1, &sge, 1);
	lone_recv(&l, 2, 0, 64);
	s = shot(SEND_ONLY, 0x100, 8);
	assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	assert_int_equal(l.qp->qp->state, ABI_QPS_ERR);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "R1:LOC_PROT R2:FLUSH");
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_RECV_KEY);
}

/* proves EVT-01 (RSP-46): told in RTR, once, of what is not dropped. */
static void uc_rx__communication_established(void **state)
{
	struct shot s;

	lone_start_in(&l, ABI_QPS_RTR);
	s = shot(SEND_LAST, 0x100, 8);
	assert_int_equal(lone_rx(&l, &s), DROP_MESSAGE_TORN);
	app_events(&l.app);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 0);
	s.opcode = SEND_ONLY;
	assert_int_equal(lone_rx(&l, &s), DROP_NO_RECV_WQE);
	app_events(&l.app);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 0);
	lone_recv(&l, 1, 0, 64);
	lone_recv(&l, 2, 0, 64);
	assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	app_events(&l.app);
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_COMM_EST), 1);
	assert_string_equal(lone_cqes(&l), "R1:OK+8 R2:OK+8");
}

/* --- the requester ------------------------------------------------------------------------ */

/* proves UC-01, UC-02, UC-03: whole messages leave without an ACK, none asks for one, and each is
 * complete at the visit after its last packet. */
static void requester__waits_for_nothing(void **state)
{
	start();
	lone_post(&l, ABI_WR_SEND, 1, 5, 0);
	lone_post(&l, ABI_WR_RDMA_WRITE, 2, 2 * MTU + 1, 0);
	lone_post(&l, ABI_WR_SEND_WITH_IMM, 3, MTU + 1, ABI_WQE_SOLICITED);
	lone_post(&l, ABI_WR_RDMA_WRITE_WITH_IMM, 4, 0, 0);
	assert_string_equal(lone_tx_max(&l, 3),
		"SEND_ONLY@200+5 WRITE_FIRST@201+1024(0,2049) WRITE_MIDDLE@202+1024");
	assert_string_equal(lone_cqes(&l), "");
	assert_string_equal(lone_tx_max(&l, 2), "WRITE_LAST@203+1 SEND_FIRST@204+1024");
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_string_equal(lone_tx(&l), "SEND_LAST_IMM@205+1*#beef WRITE_ONLY_IMM@206(0,0)#beef");
	assert_string_equal(lone_cqes(&l), "S2:OK");
	assert_int_equal(core_deadline(&l.host->core), 0); /* it is to be visited again */
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S3:OK S4:OK");
	assert_int_equal(core_deadline(&l.host->core), WHEEL_NEVER);
	assert_int_equal(l.qp->qp->req.psn, 0x207);
}

/* proves UC-03: nothing limits what is under way but the send queue and the turns: no window, no
 * timer. */
static void requester__no_window(void **state)
{
	l.spec.window = 4;
	start();
	for (uint64_t i = 1; i <= 16; i++)
		lone_post(&l, ABI_WR_SEND, i, 4 * MTU, ABI_WQE_SOLICITED);
	while (*lone_tx_max(&l, 32))
		;
	assert_int_equal(l.packets, 64);
	assert_string_equal(lone_cqes(&l),
		"S1:OK S2:OK S3:OK S4:OK S5:OK S6:OK S7:OK S8:OK S9:OK S10:OK S11:OK S12:OK S13:OK "
		"S14:OK S15:OK S16:OK");
	/* Nothing is left that a PSN half the space ahead could be mistaken for. */
	assert_int_equal(l.qp->qp->comp.una, l.qp->qp->req.psn);
	lone_wait(&l, 1000000000000ull);
	assert_string_equal(lone_tx(&l), "");
}

/* proves UC-03: a slot with inline data is not taken again while a packet of it is not sealed. The
 * sixteen slots are full of them, and the application has posted the next. */
static void requester__inline_data_until_sealed(void **state)
{
	struct txd t[BURST];
	uint8_t data[100];
	unsigned n;

	start();
	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t i = 1; i <= 16; i++) {
			memset(data, (int)(round * 16 + i), sizeof(data));
			app_post_send(l.qp, &(struct app_send){.opcode = ABI_WR_SEND,
						    .flags = ABI_WQE_SIGNALED | ABI_WQE_INLINE,
						    .wr_id = i,
						    .inline_data = data,
						    .inline_len = sizeof(data)});
		}
		if (!round)
			app_ring(&l.app, l.now);
		for (unsigned i = 0; i < BURST; i++)
			t[i].frame = l.host->tx[i];
		n = core_tx(&l.host->core, t, BURST, l.now);
		assert_int_equal(n, 16);
		for (unsigned i = 0; i < n; i++)
			for (unsigned k = 0; k < sizeof(data); k++)
				assert_int_equal(t[i].seg[0].addr[k], round * 16 + i + 1);
		while (n)
			assert_true(core_seal(&l.host->core, &t[--n]));
	}
}

/* --- SQE -------------------------------------------------------------------------------- */

/* proves UC-11, VAL-06, REQ-17 (QPS-01): the failure completes in its turn, later ones are flushed,
 * receives go on. */
static void sqe__local_error(void **state)
{
	struct shot s;

	start();
	lone_recv(&l, 9, 0, 64);
	lone_post(&l, ABI_WR_SEND, 1, 8, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 8, 0); /* REQ-17 */
	lone_post(&l, ABI_WR_SEND, 3, 8, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+8");
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:OK S2:LOC_QP_OP S3:FLUSH");
	assert_int_equal(l.qp->qp->state, ABI_QPS_SQE);
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_POST_OPCODE);
	lone_post(&l, ABI_WR_SEND, 4, 8, 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S4:FLUSH");
	s = shot(SEND_ONLY, 0x100, 8); /* VAL-06 */
	assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R9:OK+8");
	assert_int_equal(l.app.events, 0);
}

/* proves QPS-11: back to RTS it continues with the PSN after its last one, and forgets why it
 * failed. WQEs posted in SQE and not fetched yet are flushed, as it would have been. */
static void sqe__back_to_rts(void **state)
{
	struct abi_qp_attr attr = {.qp_state = ABI_QPS_RTS, .cur_qp_state = ABI_QPS_SQE};

	start();
	lone_post(&l, ABI_WR_SEND, 1, 8, 0);
	lone_post(&l, ABI_WR_ATOMIC_FETCH_AND_ADD, 2, 8, 0);
	lone_post(&l, ABI_WR_SEND, 3, 8, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_ONLY@200+8");
	assert_string_equal(lone_tx_max(&l, 1), "");
	assert_int_equal(l.qp->qp->state, ABI_QPS_SQE);
	lone_post(&l, ABI_WR_SEND, 4, 3000, 0);
	assert_int_equal(app_modify(l.qp, ABI_QP_STATE | ABI_QP_CUR_STATE, &attr, NULL, l.now), 0);
	assert_int_equal(l.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_NONE);
	assert_false(l.qp->qp->why.error.known);
	lone_post(&l, ABI_WR_SEND, 5, 8, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@201+8");
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:OK S2:LOC_QP_OP S3:FLUSH S4:FLUSH S5:OK");
}

/* proves REQ-18, UC-11: a region that goes in the midst of a message cuts it off. */
static void sqe__key_goes_in_a_message(void **state)
{
	start();
	lone_post(&l, ABI_WR_SEND, 1, 4 * MTU, 0);
	lone_post(&l, ABI_WR_SEND, 2, 8, 0);
	assert_string_equal(lone_tx_max(&l, 2), "SEND_FIRST@200+1024 SEND_MIDDLE@201+1024");
	app_mr_dereg(&l.app, l.mr);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:LOC_PROT S2:FLUSH");
	assert_int_equal(l.qp->qp->state, ABI_QPS_SQE);
	app_mr_again(&l.app, l.mr);
	assert_int_equal(app_to_rts(l.qp, &l.attr, l.now), -EINVAL); /* with an SQ_PSN: QPS-11 */
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RTS, l.now), 0);
	lone_post(&l, ABI_WR_SEND, 3, 8, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@202+8");
}

/* proves UC-11, REQ-18: memory that faults while a packet is sealed. Earlier requests are complete,
 * later packets of the same burst leave and are flushed, receives continue. */
static void sqe__memory_faults_in_a_message(void **state)
{
	struct app_send s = {
		.opcode = ABI_WR_SEND, .wr_id = 2, .flags = ABI_WQE_SIGNALED, .num_sge = 1};
	struct shot in;
	struct mr *mr;

	start();
	mr = hole_open(l.host, APP_PD);
	s.sge[0] = (struct abi_sge){mr->iova + HOLE_PAGE - MTU, 3000, mr->key};
	lone_recv(&l, 9, 0, 64);
	lone_post(&l, ABI_WR_SEND, 1, 8, 0);
	app_post_send(l.qp, &s);
	lone_post(&l, ABI_WR_SEND, 3, 8, 0);
	assert_string_equal(lone_tx(&l),
		"SEND_ONLY@200+8 SEND_FIRST@201+1024 SEND_LAST@203+952 SEND_ONLY@204+8");
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:OK S2:LOC_PROT S3:FLUSH");
	assert_int_equal(l.qp->qp->state, ABI_QPS_SQE);
	assert_int_equal(l.qp->qp->why.error.cause, CAUSE_SOURCE_FAULT);
	assert_int_equal(l.app.events, 0);
	in = shot(SEND_ONLY, 0x100, 8); /* VAL-06 */
	assert_int_equal(lone_rx(&l, &in), DROP_NONE);
	assert_string_equal(lone_cqes(&l), "R9:OK+8");
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RTS, l.now), 0);
	lone_post(&l, ABI_WR_SEND, 4, 8, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@205+8");
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S4:OK");
	hole_close(l.host);
}

/* proves QPS-20: from SQE to ERR, where the receives are flushed as well. */
static void sqe__to_err(void **state)
{
	start();
	lone_recv(&l, 9, 0, 64);
	lone_post(&l, ABI_WR_RDMA_READ, 1, 8, 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "S1:LOC_QP_OP");
	assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "R9:FLUSH");
}

/* proves QPS-19, EVT-02: in SQD a message that was begun ends, and is complete before the event. */
static void sqd__drains(void **state)
{
	struct abi_qp_attr attr = {.qp_state = ABI_QPS_SQD, .en_sqd_async_notify = 1};

	start();
	lone_post(&l, ABI_WR_SEND, 1, 3 * MTU, 0);
	lone_post(&l, ABI_WR_SEND, 2, 8, 0);
	assert_string_equal(lone_tx_max(&l, 1), "SEND_FIRST@200+1024");
	assert_int_equal(
		app_modify(l.qp, ABI_QP_STATE | ABI_QP_EN_SQD_ASYNC_NOTIFY, &attr, NULL, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_MIDDLE@201+1024 SEND_LAST@202+1024");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 0);
	assert_string_equal(lone_tx(&l), "");
	assert_int_equal(app_event_count(&l.app, ABI_EVENT_SQ_DRAINED), 1);
	assert_string_equal(lone_cqes(&l), "S1:OK");
	assert_int_equal(app_to_state(l.qp, ABI_QPS_RTS, l.now), 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@203+8");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, lone_teardown)
	const struct CMUnitTest tests[] = {
		T(uc_rx__every_opcode),
		T(uc_rx__other_opcodes),
		T(uc_rx__loss_in_a_message),
		T(uc_rx__nothing_until_a_first),
		T(uc_rx__new_message_aborts_the_old),
		T(uc_rx__aborted_messages_leave_data),
		T(uc_rx__no_receive_wqe),
		T(uc_rx__bad_keys),
		T(uc_rx__key_goes_in_a_message),
		T(uc_rx__bad_lengths),
		T(uc_rx__bad_receive_wqe),
		T(uc_rx__communication_established),
		T(requester__waits_for_nothing),
		T(requester__no_window),
		T(requester__inline_data_until_sealed),
		T(sqe__local_error),
		T(sqe__back_to_rts),
		T(sqe__key_goes_in_a_message),
		T(sqe__memory_faults_in_a_message),
		T(sqe__to_err),
		T(sqd__drains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
