/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams between two hosts, frame by frame: UD-*, VAL-14, VAL-16, ENT-10. */
#include <errno.h>
#include "ah.h"
#include "core_command.h"
#include "hole.h"
#include "datagram.h"
#include "qp.h"
#include "txd.h"

/* --- receiving ------------------------------------------------------------------------ */

/* proves UD-05, UD-06, UD-07, UD-08, UD-09, UD-10, VAL-14, V1-06, CQ-09: by each protocol, on one
 * port */
static void ud_rx__places_header_and_payload(void **state)
{
	static const enum host_gid gids[] = {HOST_GID_IPV4, HOST_GID_IPV6, HOST_GID_ROCEV1};

	for (unsigned i = 0; i < ARRAY_SIZE(gids); i++) {
		static const uint8_t zero[20];
		unsigned l3_len = gids[i] == HOST_GID_IPV4 ? 20 : 40;
		struct abi_cqe cqe;

		lead(gids[i]);
		receive_at(&b, b.qp, 90 + i, i * BUFFER, BUFFER);
		make_frame(100);
		assert_int_equal(deliver(), DROP_NONE);
		cqe = take_cqe(&b);
		assert_int_equal(cqe.status, ABI_WC_SUCCESS);
		assert_int_equal(cqe.opcode, ABI_WC_RECV);
		assert_int_equal(cqe.wr_id, 90 + i);
		assert_int_equal(cqe.byte_len, AREA + 100);
		assert_int_equal(cqe.src_qp, a.qp->qp->qpn);
		assert_int_equal(cqe.flags, ABI_WC_GRH);
		assert_int_equal(cqe.net, gids[i]);
		assert_memory_equal(cqe.smac, "\x02\0\0\0\0\x01", 6);
		if (gids[i] == HOST_GID_IPV4)
			assert_memory_equal(buffer(i * BUFFER), zero, 20);
		assert_memory_equal(
			buffer(i * BUFFER) + AREA - l3_len, frame + sent.l3_off, l3_len);
		assert_memory_equal(buffer(i * BUFFER) + AREA, a.mr->mem, 100);
	}
}

/* proves BTH-20, BTH-09, RSP-51 */
static void ud_rx__immediate_and_solicited(void **state)
{
	struct app_send s = {
		.opcode = ABI_WR_SEND_WITH_IMM,
		.flags = ABI_WQE_SIGNALED | ABI_WQE_SOLICITED | ABI_WQE_INLINE,
		.imm = __builtin_bswap32(0xBEEF),
		.remote_addr = (uint64_t)b.qp->qp->qpn << 32 | AH_ID,
		.rkey = QKEY,
		.inline_data = "hello",
		.inline_len = 5,
	};
	struct abi_cqe cqe;

	receive_at(&b, b.qp, 1, 0, BUFFER);
	app_post_send(a.qp, &s);
	assert_true(send_one());
	assert_int_equal(bth()[0], 0x65);
	assert_int_equal(get_be32(bth() + 20), 0xBEEF); /* BTH, DETH, ImmDt */
	assert_int_equal(deliver(), DROP_NONE);
	cqe = take_cqe(&b);
	assert_int_equal(cqe.flags, ABI_WC_GRH | ABI_WC_WITH_IMM | ABI_WC_SOLICITED);
	assert_int_equal(cqe.imm, __builtin_bswap32(0xBEEF));
	assert_int_equal(cqe.byte_len, AREA + 5);
	assert_memory_equal(buffer(AREA), "hello", 5);
}

/* proves UD-05: over SGEs that end within the 40 bytes */
static void ud_rx__scatters_over_sges(void **state)
{
	struct abi_sge sge[3] = {
		app_sge(b.mr, 0, 7), app_sge(b.mr, 100, 50), app_sge(b.mr, 300, 100)};

	app_post_recv(b.qp, 1, sge, 3);
	make_frame(60);
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).byte_len, AREA + 60);
	assert_memory_equal(buffer(100 + AREA - 7), a.mr->mem, 17);
	assert_memory_equal(buffer(300), a.mr->mem + 17, 43);
}

/* proves UD-04, UD-14: neither PSNs nor the sender's address say anything */
static void ud_rx__takes_any_psn_and_source(void **state)
{
	make_frame(16);
	for (unsigned i = 0; i < 3; i++) {
		receive_at(&b, b.qp, i, 0, BUFFER);
		put_be32(frame + sent.l3_off + 28 + 8, 0x80000000u | (0x777777 - i)); /* BTH-14 */
		frame[sent.l3_off + 12 + 3] = (uint8_t)(50 + i);
		frame[sent.l3_off + 10] = frame[sent.l3_off + 11] = 0;
		{
			uint32_t sum = 0;

			for (unsigned k = 0; k < 20; k += 2)
				sum += get_be16(frame + sent.l3_off + k);
			sum = (sum & 0xFFFF) + (sum >> 16);
			put_be16(frame + sent.l3_off + 10,
				(uint16_t) ~((sum & 0xFFFF) + (sum >> 16)));
		}
		reseal();
		assert_int_equal(deliver(), DROP_NONE);
		assert_int_equal(take_cqe(&b).status, ABI_WC_SUCCESS);
	}
}

/* proves VAL-16: counted, up to the end of the counter; nothing else moves */
static void ud_rx__drops_another_qkey(void **state)
{
	receive_at(&b, b.qp, 1, 0, BUFFER);
	post_to(b.qp->qp->qpn, QKEY + 1, AH_ID, 16, 0);
	assert_true(send_one());
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(deliver(), DROP_QKEY);
		assert_int_equal(b.host->core.count.bad_qkey[0], i);
	}
	b.host->core.count.bad_qkey[0] = 0xFFFF;
	assert_int_equal(deliver(), DROP_QKEY);
	assert_int_equal(b.host->core.count.bad_qkey[0], 0xFFFF);
	assert_int_equal(drops(DROP_QKEY), 4);
	assert_no_cqe(&b);
	assert_int_equal(b.qp->qp->state, ABI_QPS_RTS);
}

/* proves UD-13 */
static void ud_rx__without_receive_is_dropped(void **state)
{
	make_frame(16);
	assert_int_equal(deliver(), DROP_NO_RECV_WQE);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).wr_id, 1);
}

/* proves SRQ-03: the SRQ of a datagram QP is empty; that is nobody's failure. */
static void ud_rx__empty_srq(void **state)
{
	struct app_srq *srq = app_srq(&b.app, 8, 3);
	struct abi_sge sge = app_sge(b.mr, 0, BUFFER);

	b.qp->qp->srq = &srq->srq;
	b.qp->qp->rq.depth = 0;
	b.qp->free_ids = true;
	make_frame(16);
	assert_int_equal(deliver(), DROP_NO_RECV_WQE);
	assert_int_equal(b.qp->qp->state, ABI_QPS_RTS);
	assert_no_cqe(&b);
	app_post_srq(srq, 1, &sge, 1);
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).wr_id, 1);
}

/* proves UD-12: 40 bytes more than the payload are needed; the QP continues */
static void ud_rx__too_long_for_its_receive(void **state)
{
	uint8_t before[AREA + 16];
	struct abi_cqe cqe;

	make_frame(16);
	receive_at(&b, b.qp, 1, 0, AREA + 15);
	receive_at(&b, b.qp, 2, BUFFER, AREA + 16);
	memcpy(before, buffer(0), sizeof(before));
	assert_int_equal(deliver(), DROP_NONE);
	cqe = take_cqe(&b);
	assert_int_equal(cqe.wr_id, 1);
	assert_int_equal(cqe.status, ABI_WC_LOC_LEN_ERR);
	assert_memory_equal(buffer(0), before, sizeof(before));
	assert_int_equal(b.qp->qp->state, ABI_QPS_RTS);
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).status, ABI_WC_SUCCESS);
}

/* A receive of its own program's making that cannot be used: the QP fails */
static void ud_rx__bad_receive_key(void **state)
{
	struct abi_sge sge = {.addr = 0, .length = BUFFER, .lkey = 0x123};

	make_frame(16);
	app_post_recv(b.qp, 1, &sge, 1);
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).status, ABI_WC_LOC_PROT_ERR);
	assert_int_equal(b.qp->qp->state, ABI_QPS_ERR);
	assert_int_equal(deliver(), DROP_QP_STATE);
}

/* proves VAL-04, VAL-05 */
static void ud_rx__only_send_only(void **state)
{
	receive_at(&b, b.qp, 1, 0, BUFFER);
	make_frame(16);
	((uint8_t *)bth())[0] = 0x66; /* reserved */
	reseal();
	assert_int_equal(deliver(), DROP_OPCODE_UNSUPPORTED);
	((uint8_t *)bth())[0] = 0x04; /* RC */
	reseal();
	assert_int_equal(deliver(), DROP_QP_TYPE);
	assert_no_cqe(&b);
}

/* proves VAL-06, QPS-17 */
static void ud_rx__needs_rtr(void **state)
{
	receive_at(&b, b.qp, 1, 0, BUFFER);
	make_frame(16);
	b.qp->qp->state = ABI_QPS_INIT;
	assert_int_equal(deliver(), DROP_QP_STATE);
	b.qp->qp->state = ABI_QPS_SQE;
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).status, ABI_WC_SUCCESS);
}

/* proves VAL-09 */
static void ud_rx__pkey_of_the_index(void **state)
{
	receive_at(&b, b.qp, 1, 0, BUFFER);
	make_frame(16);
	put_be16((uint8_t *)bth() + 2, 0x8001);
	reseal();
	assert_int_equal(deliver(), DROP_PKEY);
	assert_int_equal(b.host->core.count.bad_pkey[0], 1);
	b.qp->qp->pkey = 0x0001;
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).pkey_index, 0);
}

/* --- sending -------------------------------------------------------------------------- */

/* proves UD-01, UD-03, UD-04, BTH-12, BTH-14, BTH-24 */
static void ud_build__headers(void **state)
{
	post(100);
	post_to(0x123456, 0x87654321, AH_ID, 0, 0); /* its own Q_Key */
	assert_true(send_one());
	assert_int_equal(bth()[0], 0x64);
	assert_int_equal(get_be32(bth() + 4), b.qp->qp->qpn);
	assert_int_equal(get_be32(bth() + 8), 0x200);
	assert_int_equal(get_be32(bth() + 12), QKEY);
	assert_int_equal(get_be32(bth() + 16), a.qp->qp->qpn);
	assert_true(send_one());
	assert_int_equal(get_be32(bth() + 4), 0x123456);
	assert_int_equal(get_be32(bth() + 8), 0x201);
	assert_int_equal(get_be32(bth() + 12), QKEY);
	assert_int_equal(frame_len, 14 + 20 + 8 + 12 + 8 + 4);
}

/* proves UD-03: a Q_Key without bit 31 goes as it is */
static void ud_build__qkey_of_the_request(void **state)
{
	post_to(0x22, 0x7654321, AH_ID, 0, 0);
	assert_true(send_one());
	assert_int_equal(get_be32(bth() + 12), 0x7654321);
}

/* Complete only when the packet has left: its buffer is not read before */
static void ud_build__completes_when_sent(void **state)
{
	post(16);
	assert_true(send_one());
	assert_no_cqe(&a);
	assert_false(send_one());
	assert_int_equal(take_cqe(&a).status, ABI_WC_SUCCESS);
}

/* Posted before the QP is destroyed: it leaves, although the worker had not seen the doorbell. */
static void core_cmd__detach_sends_what_was_posted(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QP, .qp = a.qp->qp};

	assert_false(send_one());
	post(16);
	post(16);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(core_cmd(&a.host->core, &cmd, now), -EAGAIN);
		sent.frame = frame;
		assert_int_equal(core_tx(&a.host->core, &sent, 1, now), 1);
	}
	assert_int_equal(core_cmd(&a.host->core, &cmd, now), 0);
	assert_int_equal(core_tx(&a.host->core, &sent, 1, now), 0);
}

/* ... but no command waits for a queue that does not get away, be it one of many. */
static void core_cmd__detach_ends(void **state)
{
	struct qp *qps[] = {a.qp->qp};
	struct core_cmd cmd = {.type = CORE_CMD_DETACH_QPS, .qps = qps, .n = 1};
	unsigned rounds = 0;

	post(16);
	while (core_cmd(&a.host->core, &cmd, now) == -EAGAIN)
		assert_true(++rounds < 1000);
	assert_true(rounds > 1);
	assert_int_equal(core_tx(&a.host->core, &sent, 1, now), 0);
}

/* proves REQ-18: memory that faults under a datagram. */
static void ud_build__memory_faults(void **state)
{
	struct mr *mr = hole_open(a.host, APP_PD);
	struct app_send s = {.opcode = ABI_WR_SEND,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = 7,
		.remote_addr = (uint64_t)b.qp->qp->qpn << 32 | AH_ID,
		.rkey = QKEY,
		.num_sge = 1,
		.sge = {{mr->iova + HOLE_PAGE, 16, mr->key}}};

	app_post_send(a.qp, &s);
	assert_true(send_one());
	assert_int_equal(frame_len, 0); /* nothing leaves */
	assert_int_equal(take_cqe(&a).status, ABI_WC_LOC_PROT_ERR);
	assert_int_equal(a.qp->qp->state, ABI_QPS_SQE);
	hole_close(a.host);
}

static uint16_t sport(void)
{
	return get_be16(bth() - 8);
}

/* proves ENT-10, ENT-05 */
static void ud_address__entropy_of_handle_and_qpn(void **state)
{
	uint16_t first;

	post_to(0x1111, QKEY, AH_ID, 4, 0);
	post_to(0x1111, QKEY, AH_ID, 4, 0);
	post_to(0x2222, QKEY, AH_ID, 4, 0);
	assert_true(send_one());
	first = sport();
	assert_int_equal(first, flow_label_to_sport(flow_label_of_qpns(a.qp->qp->qpn, 0x1111)));
	assert_true(send_one());
	assert_int_equal(sport(), first);
	assert_true(send_one());
	assert_int_not_equal(sport(), first);
	ah.hashed = false;
	post_to(0x2222, QKEY, AH_ID, 4, 0);
	assert_true(send_one());
	assert_int_equal(sport(), get_be16(ah.path.hdr + ah.path.hdr_len - 8));
}

/* proves ENT-07: of each MAD */
static void ud_address__label_of_a_mad(void **state)
{
	struct app_send s = {.opcode = ABI_WR_SEND,
		.imm = 0x12345, /* abi_wqe.flow_label */
		.remote_addr = (uint64_t)1 << 32 | AH_ID,
		.rkey = QKEY,
		.flags = ABI_WQE_SIGNALED | ABI_WQE_INLINE | ABI_WQE_LABEL,
		.inline_data = "hello",
		.inline_len = 5};

	app_post_send(a.qp, &s);
	assert_true(send_one());
	assert_int_equal(sport(), flow_label_to_sport(flow_label_of_qpns(a.qp->qp->qpn, 1)));
	a.qp->qp->type = ABI_QPT_GSI;
	app_post_send(a.qp, &s);
	assert_true(send_one());
	assert_int_equal(sport(), flow_label_to_sport(0x12345));
	s.flags &= ~ABI_WQE_LABEL; /* what a program left there */
	app_post_send(a.qp, &s);
	assert_true(send_one());
	assert_int_equal(sport(), flow_label_to_sport(flow_label_of_qpns(1, 1)));
}

/* proves UD-15: unknown, of another generation, of another protection domain, of another port */
static void ud_address__refuses_other_handles(void **state)
{
	post_to(1, QKEY, AH_ID + 1, 4, 0);
	assert_refused(ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_AH);
	recover();
	post_to(1, QKEY, AH_ID + AH_MAX * 2, 4, 0);
	assert_refused(ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_AH);
	recover();
	ah.pd++;
	post_to(1, QKEY, AH_ID, 4, 0);
	assert_refused(ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_AH);
	ah.pd--;
	recover();
	ah.path.port = 1;
	post_to(1, QKEY, AH_ID, 4, 0);
	assert_refused(ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_AH_PORT);
	ah.path.port = 0;
	recover();
}

/* proves UD-02: the QP is in SQE and receives on */
static void ud_address__refuses_what_one_packet_cannot_hold(void **state)
{
	port_set_mac(&a.host->ports.port[0], (const uint8_t *)"\x02\0\0\0\0\x01");
	a.host->ports.port[0].active_mtu = 1024;
	post(1024);
	assert_true(send_one());
	assert_false(send_one());
	assert_int_equal(take_cqe(&a).status, ABI_WC_SUCCESS);
	post(1025);
	assert_refused(ABI_WC_LOC_LEN_ERR, CAUSE_POST_DATAGRAM);
	recover();
}

/* proves UD-01 */
static void requester_fetch__datagrams_are_sends(void **state)
{
	struct app_send s = {.opcode = ABI_WR_RDMA_WRITE,
		.flags = ABI_WQE_SIGNALED,
		.remote_addr = AH_ID,
		.rkey = QKEY};

	app_post_send(a.qp, &s);
	assert_refused(ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_OPCODE);
}

/* proves UD-16: what is posted goes where the handle led, although it is gone and its memory
 * another's */
static void ud_snapshot__keeps_the_way(void **state)
{
	struct core_cmd cmd = {
		.type = CORE_CMD_SNAPSHOT_QPS, .n = 1, .qps = (struct qp *const[]){a.qp->qp}};
	struct abi_qp_attr attr = {.qp_state = ABI_QPS_SQD};

	assert_int_equal(app_modify(a.qp, ABI_QP_STATE, &attr, NULL, now), 0);
	for (unsigned i = 0; i < 8; i++)
		post(4);
	assert_int_equal(core_cmd(&a.host->core, &cmd, now), 0);
	atomic_store(&a.host->ahs.slot[AH_SLOT(AH_ID)], NULL);
	memset(&ah, 0xEE, sizeof(ah));
	assert_false(send_one());
	attr.qp_state = ABI_QPS_RTS;
	assert_int_equal(app_modify(a.qp, ABI_QP_STATE, &attr, NULL, now), 0);
	for (unsigned i = 0; i < 8; i++) {
		receive_at(&b, b.qp, i, 0, BUFFER);
		assert_true(send_one());
		assert_int_equal(deliver(), DROP_NONE);
		assert_int_equal(take_cqe(&b).status, ABI_WC_SUCCESS);
	}
	assert_false(send_one());
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(take_cqe(&a).status, ABI_WC_SUCCESS);
	post(4);
	assert_refused(ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_AH);
}

/* Queues of many requests take several steps */
static void ud_snapshot__in_steps(void **state)
{
	struct app_qp_spec spec = a.qp->spec;
	struct core_cmd cmd = {.type = CORE_CMD_SNAPSHOT_QPS, .n = 2};
	struct app_qp *big = a.qp, *qp[2];
	unsigned steps = 1;

	spec.sq_depth = 1024;
	qp[0] = a.qp;
	qp[1] = big = app_qp(&a.app, &spec);
	climb(big, QKEY);
	cmd.qps = (struct qp *const[]){qp[0]->qp, qp[1]->qp};
	a.qp = big;
	for (unsigned i = 0; i < 1024; i++)
		post(4);
	while (core_cmd(&a.host->core, &cmd, now))
		steps++;
	assert_true(steps > 2 && steps < 10);
	assert_int_equal(big->qp->req.fetched, 1024);
	a.qp = qp[0];
}

/* Each datagram goes its own way: one that must wait for its port waits, and is sent then; one for
 * this daemon does not wait for a port. */
static void ud_build__waits_for_its_egress(void **state)
{
	core_open_egress(&a.host->core, ~(1u << EGRESS_PORT(0)));
	post(16);
	assert_false(send_one());
	assert_false(send_one());
	core_open_egress(&a.host->core, UINT32_MAX);
	assert_true(send_one());
	assert_false(sent.local);
	ah.path.local = true;
	core_open_egress(&a.host->core, ~(1u << EGRESS_PORT(0)));
	post(16);
	assert_true(send_one());
	assert_true(sent.local);
	core_open_egress(&a.host->core, ~(1u << EGRESS_LOCAL(0)));
	post(16);
	assert_false(send_one());
	core_open_egress(&a.host->core, UINT32_MAX);
	assert_true(send_one());
	send_one();
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take_cqe(&a).status, ABI_WC_SUCCESS);
	assert_no_cqe(&a);
}

/* One that waits for its port keeps no completion from those that left by another one. */
static void ud_build__waiting_holds_no_completion_up(void **state)
{
	static uint8_t room[4][FRAME_MAX];
	struct txd t[4];
	struct ah away = ah;

	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		t[i].frame = room[i];
	away.id++;
	atomic_store(&a.host->ahs.slot[AH_SLOT(AH_ID + 1)], &away);
	ah.path.local = true;
	core_open_egress(&a.host->core, ~(1u << EGRESS_PORT(0)));
	post(16);
	post_to(b.qp->qp->qpn, QKEY, AH_ID + 1, 16, 0);
	app_ring(&a.app, now);
	assert_int_equal(core_tx(&a.host->core, t, ARRAY_SIZE(t), now), 1);
	assert_true(core_seal(&a.host->core, &t[0]));
	assert_int_equal(core_tx(&a.host->core, t, ARRAY_SIZE(t), now), 0);
	assert_int_equal(take_cqe(&a).status, ABI_WC_SUCCESS);
	assert_int_equal(core_tx(&a.host->core, t, ARRAY_SIZE(t), now), 0);
	assert_no_cqe(&a);
	core_open_egress(&a.host->core, UINT32_MAX);
	assert_int_equal(core_tx(&a.host->core, t, ARRAY_SIZE(t), now), 1);
	assert_true(core_seal(&a.host->core, &t[0]));
	assert_int_equal(core_tx(&a.host->core, t, ARRAY_SIZE(t), now), 0);
	assert_int_equal(take_cqe(&a).status, ABI_WC_SUCCESS);
}

#define T(f) cmocka_unit_test_setup_teardown(f, datagram_setup, datagram_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(ud_rx__places_header_and_payload),
		T(ud_rx__immediate_and_solicited),
		T(ud_rx__scatters_over_sges),
		T(ud_rx__takes_any_psn_and_source),
		T(ud_rx__drops_another_qkey),
		T(ud_rx__without_receive_is_dropped),
		T(ud_rx__empty_srq),
		T(ud_rx__too_long_for_its_receive),
		T(ud_rx__bad_receive_key),
		T(ud_rx__only_send_only),
		T(ud_rx__needs_rtr),
		T(ud_rx__pkey_of_the_index),
		T(ud_build__headers),
		T(ud_build__qkey_of_the_request),
		T(ud_build__completes_when_sent),
		T(core_cmd__detach_sends_what_was_posted),
		T(core_cmd__detach_ends),
		T(ud_build__waits_for_its_egress),
		T(ud_build__waiting_holds_no_completion_up),
		T(ud_build__memory_faults),
		T(ud_address__entropy_of_handle_and_qpn),
		T(ud_address__label_of_a_mad),
		T(ud_address__refuses_other_handles),
		T(ud_address__refuses_what_one_packet_cannot_hold),
		T(requester_fetch__datagrams_are_sends),
		T(ud_snapshot__keeps_the_way),
		T(ud_snapshot__in_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
