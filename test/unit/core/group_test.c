/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams that name no QP of ours: those to a multicast group, and those to QP1. */
#include <pthread.h>
#include <stdatomic.h>
#include "core_command.h"
#include "datagram.h"
#include "frame.h"
#include "headers.h"
#include "inject.h"
#include "mcast.h"
#include "qp.h"
#include "qp_table.h"
#include "trace.h"
#include "txd.h"

/* --- multicast ------------------------------------------------------------------------ */

static union {
	struct mcast_group g;
	uint8_t room[sizeof(struct mcast_group) + 4 * sizeof(struct mcast_member)];
} group;

static struct mcast_table mcasts;

static void lead_to_group(enum host_gid gid)
{
	static const uint8_t group4[16] = {[10] = 0xFF, [11] = 0xFF, 239, 129, 2, 3};
	static const uint8_t group6[16] = {0xFF, 0x15, [12] = 7, [15] = 9};
	const uint8_t *mgid = gid == HOST_GID_IPV4 ? group4 : group6;
	struct path_spec spec = host_path(a.host, b.host, 0, gid);

	memcpy(spec.dgid, mgid, 16);
	mcast_mac(spec.dmac, mgid);
	path_init(&ah.path, &spec);
	memset(&group, 0, sizeof(group));
	memcpy(group.g.mgid, mgid, 16);
	memset(&mcasts, 0, sizeof(mcasts));
	b.host->core.cfg.mcasts = &mcasts;
	a.host->core.cfg.mcasts = &mcasts;
}

static void join(struct app_qp *qp)
{
	if (!group.g.n)
		mcast_replace(&mcasts, NULL, &group.g);
	group.g.member[group.g.n++] = (struct mcast_member){.qp = qp->qp};
}

/* proves MC-07, MC-08: whatever QPN the request names, by each protocol */
static void ud_build__to_a_group(void **state)
{
	static const struct {
		enum host_gid gid;
		const char *mac;
	} row[] = {{HOST_GID_IPV4, "\x01\x00\x5e\x01\x02\x03"},
		{HOST_GID_IPV6, "\x33\x33\x07\x00\x00\x09"},
		{HOST_GID_ROCEV1, "\x33\x33\x07\x00\x00\x09"}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		lead_to_group(row[i].gid);
		post(16);
		assert_true(send_one());
		assert_int_equal(get_be32(bth() + 4), 0xFFFFFF);
		assert_memory_equal(frame, row[i].mac, 6);
		assert_true(sent.group);
		assert_false(core_group_here(&a.host->core, &sent));
		join(a.qp);
		assert_true(core_group_here(&a.host->core, &sent)); /* MC-08 */
	}
}

/* proves MC-04: each QP that can takes a copy, whatever the others do */
static void rx_group__copies_to_all_members(void **state)
{
	struct app_qp *qp[3];

	lead_to_group(HOST_GID_IPV4);
	post(16);
	assert_true(send_one());
	assert_int_equal(deliver(), DROP_DGID); /* VAL-11: nobody has attached */
	for (unsigned i = 0; i < 3; i++) {
		qp[i] = make_qp_of(&b, ABI_QPT_UD);
		climb(qp[i], i == 1 ? QKEY + 1 : QKEY);
		receive_at(&b, qp[i], 50 + i, i * BUFFER, BUFFER);
		join(qp[i]);
	}
	join(b.qp); /* without a receive */
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).qpn, qp[0]->qp->qpn);
	assert_int_equal(take_cqe(&b).qpn, qp[2]->qp->qpn);
	assert_no_cqe(&b);
	assert_int_equal(drops(DROP_QKEY), 1);
	assert_int_equal(drops(DROP_NO_RECV_WQE), 1);
	assert_memory_equal(buffer(0) + AREA, a.mr->mem, 16);
	assert_memory_equal(buffer(2 * BUFFER) + AREA, a.mr->mem, 16);
}

/* proves MC-04: QPs of other workers get a copy of their own */
static void rx_group__other_workers_get_copies(void **state)
{
	struct app_qp *other = make_qp_of(&b, ABI_QPT_UD);
	struct pkt p;

	lead_to_group(HOST_GID_IPV4);
	climb(other, QKEY);
	atomic_store(&other->qp->owner, 3);
	join(other);
	join(b.qp);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	post(16);
	assert_true(send_one());
	assert_int_equal(deliver(), VERDICT_SPREAD);
	assert_int_equal(take_cqe(&b).qpn, b.qp->qp->qpn);
	assert_int_equal(frame_parse(&p, frame, frame_len), DROP_NONE);
	p.port = 0;
	assert_int_equal(core_group_workers(&b.host->core, &p), 1u << 3);
	/* who gets a copy spreads it no further */
	receive_at(&b, b.qp, 2, 0, BUFFER);
	assert_int_equal(deliver_by(PKT_COPY), DROP_NONE);
	assert_int_equal(take_cqe(&b).wr_id, 2);
	atomic_store(&other->qp->owner, 0);
}

/* @return the first event of @p t, which must be a packet that came. */
static struct trace_event traced_packet(struct trace *t)
{
	struct trace_event e[16];

	assert_in_range(trace_read(t, e, ARRAY_SIZE(e)), 1, ARRAY_SIZE(e));
	assert_int_equal(e[0].type, TRACE_RECEIVE);
	return e[0];
}

/* A traced QP's trace has the group's packets too; and no datagram comes "again" (UD-04). */
static void rx_group__is_traced(void **state)
{
	struct trace *t = aligned_alloc(CACHE_LINE, sizeof(*t));
	struct core_cmd tracing = {.type = CORE_CMD_TRACING, .tracing = true};
	struct core_cmd cmd = {.type = CORE_CMD_TRACE_QP, .qp = b.qp->qp, .trace = t};

	assert_non_null(t);
	memset(t, 0, sizeof(*t));
	lead_to_group(HOST_GID_IPV4);
	join(b.qp);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	post(16);
	assert_true(send_one());
	assert_int_equal(core_cmd(&b.host->core, &tracing, now), 0);
	assert_int_equal(core_cmd(&b.host->core, &cmd, now), 0);
	put_be32((uint8_t *)bth() + 8, 0x800000); /* before 0 */
	reseal();
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(traced_packet(t).flags & TRACE_AGAIN, 0);
	assert_int_equal(take_cqe(&b).wr_id, 1);
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(traced_packet(t).id >> TRACE_VERDICT_SHIFT, DROP_NO_RECV_WQE);
	cmd.trace = NULL;
	assert_int_equal(core_cmd(&b.host->core, &cmd, now), 0);
	free(t);
}

/* proves ICRC-12, VAL-17 */
static void rx_group__checks_first(void **state)
{
	lead_to_group(HOST_GID_IPV4);
	join(b.qp);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	post(16);
	assert_true(send_one());
	frame[frame_len - 1] ^= 1;
	assert_int_equal(deliver(), DROP_ICRC);
	put_be32((uint8_t *)bth() + 4, b.qp->qp->qpn);
	reseal();
	assert_int_equal(deliver(), DROP_DMAC); /* a group's MAC, one QP */
	memcpy(frame, "\x02\0\0\0\0\x02", 6);
	assert_int_equal(deliver(), DROP_QPN_MCAST);
	assert_no_cqe(&b);
}

/* --- QP1 ------------------------------------------------------------------------------ */

static struct app_qp *open_gsi(struct end *e)
{
	struct app_qp *qp = make_qp_of(e, ABI_QPT_GSI);
	struct abi_qp_attr attr = app_attr(0, 0, 0);

	atomic_store(&e->host->qps.slot[QPN_SLOT(qp->qp->qpn)], NULL);
	atomic_store(&e->host->qps.gsi[0], qp->qp);
	qp->qp->gsi_port = 1;
	qp->qp->attr.port = 1;
	attr.qkey = 5; /* counts for nothing */
	assert_int_equal(app_to_init(qp, &attr, now), 0);
	assert_int_equal(app_to_rtr(qp, &attr, NULL, now), 0);
	assert_int_equal(app_to_rts(qp, &attr, now), 0);
	return qp;
}

/* proves ETH-10: broadcasts, and MACs of other groups */
static void rx_group__by_its_own_mac(void **state)
{
	lead_to_group(HOST_GID_IPV4);
	join(b.qp);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	post(16);
	assert_true(send_one());
	frame[5]++;
	assert_int_equal(deliver(), DROP_DMAC);
	memset(frame, 0xFF, 6);
	assert_int_equal(deliver(), DROP_DMAC);
	assert_no_cqe(&b);
	memcpy(frame, "\x01\x00\x5e\x01\x02\x03", 6);
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).wr_id, 1);
}

/* proves ETH-07: a group has no address, but its port's VLANs are those of its GIDs */
static void rx_group__of_the_ports_vlans(void **state)
{
	struct gid_table *gids = (struct gid_table *)atomic_load(&b.host->ports.port[0].gids);
	uint16_t was = gids->entry[0].vid;

	lead_to_group(HOST_GID_IPV4);
	join(b.qp);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	post(16);
	assert_true(send_one());
	assert_int_equal(deliver_tagged(5), DROP_DGID);
	assert_no_cqe(&b);
	gids->entry[0].vid = 5;
	assert_int_equal(deliver_tagged(5), DROP_NONE);
	assert_int_equal(take_cqe(&b).vid, 5);
	assert_int_equal(deliver_tagged(6), DROP_DGID);
	gids->entry[0].vid = was;
}

/* From a's QP1 to b's, with the P_Key at @p pkey_index. */
static void post_gsi(uint16_t pkey_index)
{
	struct abi_wqe w = {.ctl = ABI_WQE_CTL(ABI_WR_SEND, 1, ABI_WQE_SIGNALED),
		.ud = {.ah = AH_ID,
			.remote_qpn = 1,
			.remote_qkey = 0x80010000,
			.pkey_index = pkey_index},
		.sge = {app_sge(a.mr, 0, 256)}};

	a.qp->sq_wr[0] = (struct app_wr){0, true};
	app_post_raw(a.qp, &w, sizeof(w));
}

/* proves VAL-09, VAL-16, UD-03, UD-09 */
static void ud_rx__qp1(void **state)
{
	struct app_qp *gsi = open_gsi(&b), *from = open_gsi(&a);
	struct abi_cqe cqe;

	b.host->ports.port[0].pkeys = 3;
	b.host->ports.port[0].pkey[2] = 0x8007;
	a.host->ports.port[0].pkeys = 2;
	a.host->ports.port[0].pkey[1] = 0x0007;
	a.qp = from;
	receive_at(&b, gsi, 1, 0, BUFFER);
	post_gsi(1);
	assert_true(send_one());
	assert_int_equal(get_be16(bth() - 8), flow_label_to_sport(1)); /* ENT-02: of the wire */
	assert_int_equal(get_be32(bth() + 4), 1);
	assert_int_equal(get_be16(bth() + 2), 0x0007); /* BTH-11 */
	assert_int_equal(get_be32(bth() + 12), 0x80010000);
	assert_int_equal(get_be32(bth() + 16), 1);
	assert_int_equal(deliver(), DROP_NONE);
	cqe = take_cqe(&b);
	assert_int_equal(cqe.qpn, gsi->qp->qpn);
	assert_int_equal(cqe.src_qp, 1);
	assert_int_equal(cqe.pkey_index, 2);
	put_be32((uint8_t *)bth() + 12, 5);
	reseal();
	assert_int_equal(deliver(), DROP_QKEY);
	put_be16((uint8_t *)bth() + 2, 0x0008);
	reseal();
	assert_int_equal(deliver(), DROP_PKEY);
	assert_int_equal(b.host->core.count.bad_pkey[0], 1); /* VAL-10 */
}

/* proves BTH-11: an index without a P_Key sends none */
static void ud_address__qp1_needs_a_pkey(void **state)
{
	struct app_qp *from = open_gsi(&a);

	a.host->ports.port[0].pkeys = 3;
	a.host->ports.port[0].pkey[2] = 0x8000; /* empty: no partition has the number 0 */
	a.qp = from;
	for (uint16_t index = 1; index < 4; index++) {
		post_gsi(index);
		assert_refused(ABI_WC_LOC_QP_OP_ERR, CAUSE_POST_PKEY);
		recover();
	}
}

static atomic_bool done;

/* The control thread, of an administrator who cannot make up his mind. */
static void *change_pkey(void *arg)
{
	_Atomic uint16_t *pkey = arg;

	while (!atomic_load(&done)) {
		atomic_store(pkey, 0x0007);
		atomic_store(pkey, 0);
	}
	return NULL;
}

/* proves UD-09: what QP1 tells is what matched, although the table changes meanwhile */
static void ud_rx__qp1_while_pkeys_change(void **state)
{
	struct app_qp *gsi = open_gsi(&b);
	unsigned wrong = 0;
	pthread_t thread;

	b.host->ports.port[0].pkeys = 2;
	make_frame(16);
	put_be32((uint8_t *)bth() + 4, 1);
	put_be32((uint8_t *)bth() + 12, 0x80010000);
	put_be16((uint8_t *)bth() + 2, 0x8007);
	reseal();
	receive_at(&b, gsi, 1, 0, BUFFER);
	atomic_store(&done, false);
	assert_int_equal(
		pthread_create(&thread, NULL, change_pkey, &b.host->ports.port[0].pkey[1]), 0);
	for (unsigned i = 0; i < 2000000; i++) {
		if (deliver() == DROP_PKEY)
			continue;
		wrong += take_cqe(&b).pkey_index != 1;
		receive_at(&b, gsi, 1, 0, BUFFER);
	}
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
}

/* proves VAL-03: without QP1 its packets are nobody's */
static void gsi_lookup__none(void **state)
{
	make_frame(16);
	put_be32((uint8_t *)bth() + 4, 1);
	reseal();
	assert_int_equal(deliver(), DROP_NO_GSI);
}

static struct abi_fault fault_at_b = {.kind = ABI_FAULT_DELAY,
	.direction = ABI_FAULT_RX,
	.nth = 1,
	.every = 1,
	.chance = ABI_FAULT_ALWAYS,
	.time = 500};

static int inject_at_b(enum core_cmd_type type, struct app_qp *qp, struct inject *in)
{
	struct core_cmd cmd = {
		.type = type, .qp = qp->qp, .tracing = true, .inject = in, .fault = &fault_at_b};

	return core_cmd(&b.host->core, &cmd, now);
}

/* A fault of one member is none of the others. */
static void inject_rx__of_a_group(void **state)
{
	static const enum abi_fault_kind kinds[] = {
		ABI_FAULT_DROP, ABI_FAULT_ICRC, ABI_FAULT_DELAY};
	struct app_qp *other = make_qp_of(&b, ABI_QPT_UD);
	struct inject *in = calloc(1, sizeof(*in));
	struct txd none;

	assert_non_null(in);
	lead_to_group(HOST_GID_IPV4);
	climb(other, QKEY);
	join(b.qp);
	join(other);
	assert_int_equal(inject_at_b(CORE_CMD_INJECTING, b.qp, NULL), 0);
	assert_int_equal(inject_at_b(CORE_CMD_INJECT_QP, b.qp, in), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		fault_at_b.kind = kinds[i];
		fault_at_b.count = 1;
		fault_at_b.mask = 1;
		assert_int_equal(inject_at_b(CORE_CMD_ARM_FAULT, b.qp, NULL), 0);
		receive_at(&b, b.qp, 1, 0, BUFFER);
		receive_at(&b, other, 2, BUFFER, BUFFER);
		post(16);
		assert_true(send_one());
		assert_int_equal(deliver(), DROP_NONE);
		assert_int_equal(take_cqe(&b).wr_id, 2);
		assert_no_cqe(&b);
		assert_int_equal(b.host->core.count.port[0].rx_packets, i + 1);
	}
	assert_int_equal(drops(DROP_INJECTED), 1);
	assert_int_equal(drops(DROP_ICRC), 1);
	now += 1000;
	core_tx(&b.host->core, &none, 1, now); /* what was late comes */
	assert_int_equal(take_cqe(&b).wr_id, 1);
	assert_no_cqe(&b);
	assert_int_equal(inject_at_b(CORE_CMD_INJECT_QP, b.qp, NULL), 0);
	free(in);
}

/* For captures by QP. */
static void core_is_receiver__by_number_group_and_qp1(void **state)
{
	struct app_qp *other = make_qp_of(&b, ABI_QPT_UD), *gsi = open_gsi(&b);
	struct pkt p;

	lead_to_group(HOST_GID_IPV4);
	join(b.qp);
	post(16);
	assert_true(send_one());
	assert_int_equal(frame_parse(&p, frame, frame_len), DROP_NONE);
	p.port = 0;
	assert_true(core_is_receiver(&b.host->core, &p, b.qp->qp->qpn));
	assert_false(core_is_receiver(&b.host->core, &p, other->qp->qpn));
	p.dest_qp = other->qp->qpn;
	assert_true(core_is_receiver(&b.host->core, &p, other->qp->qpn));
	assert_false(core_is_receiver(&b.host->core, &p, b.qp->qp->qpn));
	p.dest_qp = QPN_GSI;
	assert_true(core_is_receiver(&b.host->core, &p, gsi->qp->qpn));
	assert_false(core_is_receiver(&b.host->core, &p, b.qp->qp->qpn));
}

/* The number that packets of QP1 name is not the QP's. */
static void inject_rx__qp1(void **state)
{
	struct inject *in = calloc(1, sizeof(*in));
	struct app_qp *gsi = open_gsi(&b);
	struct txd none;

	assert_non_null(in);
	assert_int_equal(inject_at_b(CORE_CMD_INJECTING, gsi, NULL), 0);
	assert_int_equal(inject_at_b(CORE_CMD_INJECT_QP, gsi, in), 0);
	assert_int_equal(inject_at_b(CORE_CMD_ARM_FAULT, gsi, NULL), 0);
	assert_int_equal(core_tx(&b.host->core, &none, 1, now), 0);
	receive_at(&b, gsi, 1, 0, BUFFER);
	make_frame(16);
	put_be32((uint8_t *)bth() + 4, 1);
	put_be32((uint8_t *)bth() + 12, 0x80010000);
	reseal();
	assert_int_equal(deliver(), DROP_NONE);
	assert_no_cqe(&b);
	assert_int_equal(core_deadline(&b.host->core), now + 500);
	now += 500;
	assert_int_equal(core_tx(&b.host->core, &none, 1, now), 0);
	assert_int_equal(take_cqe(&b).qpn, gsi->qp->qpn);
	free(in);
}

/* Has @p in let one fault of @p kind happen to what the QP of b receives. */
static void arm_at_b(struct inject *in, enum abi_fault_kind kind, uint32_t value)
{
	fault_at_b.kind = kind;
	fault_at_b.value = value;
	fault_at_b.count = 1;
	fault_at_b.mask = 1;
	if (!b.qp->qp->inject) {
		assert_int_equal(inject_at_b(CORE_CMD_INJECTING, b.qp, NULL), 0);
		assert_int_equal(inject_at_b(CORE_CMD_INJECT_QP, b.qp, in), 0);
	}
	assert_int_equal(inject_at_b(CORE_CMD_ARM_FAULT, b.qp, NULL), 0);
}

/* proves VAL-17: a fault makes no packet a group's, and none of a group's one QP's */
static void inject_rx__another_number(void **state)
{
	struct inject *in = calloc(1, sizeof(*in));

	assert_non_null(in);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	arm_at_b(in, ABI_FAULT_QPN, QPN_MULTICAST);
	make_frame(16);
	assert_int_equal(deliver(), DROP_QPN_UNKNOWN);
	assert_no_cqe(&b);
	assert_int_equal(b.host->core.count.port[0].rx_packets, 1);
	lead_to_group(HOST_GID_IPV4);
	join(b.qp);
	arm_at_b(in, ABI_FAULT_QPN, b.qp->qp->qpn);
	post(16);
	assert_true(send_one());
	assert_int_equal(deliver(), DROP_NONE); /* as a whole */
	assert_no_cqe(&b);
	assert_int_equal(drops(DROP_QPN_UNKNOWN), 2);
	assert_int_equal(b.host->core.count.port[0].rx_packets, 2);
	assert_int_equal(deliver(), DROP_NONE);
	assert_int_equal(take_cqe(&b).wr_id, 1);
	assert_int_equal(inject_at_b(CORE_CMD_INJECT_QP, b.qp, NULL), 0);
	free(in);
}

/* proves MC-04: what is late comes to members only */
static void inject_rx__of_a_group_that_was_left(void **state)
{
	struct inject *in = calloc(1, sizeof(*in));
	struct txd none;

	assert_non_null(in);
	lead_to_group(HOST_GID_IPV4);
	join(b.qp);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	arm_at_b(in, ABI_FAULT_DELAY, 0);
	post(16);
	assert_true(send_one());
	assert_int_equal(deliver(), DROP_NONE);
	mcast_replace(&mcasts, &group.g, NULL);
	now += 1000;
	core_tx(&b.host->core, &none, 1, now);
	assert_no_cqe(&b);
	assert_int_equal(drops(DROP_QPN_UNKNOWN), 1);
	assert_int_equal(b.host->core.count.port[0].rx_packets, 1);
	assert_int_equal(inject_at_b(CORE_CMD_INJECT_QP, b.qp, NULL), 0);
	free(in);
}

/* A trace has what a fault made of the group's packet. */
static void inject_rx__of_a_traced_member(void **state)
{
	struct trace *t = aligned_alloc(CACHE_LINE, sizeof(*t));
	struct core_cmd tracing = {.type = CORE_CMD_TRACING, .tracing = true};
	struct core_cmd cmd = {.type = CORE_CMD_TRACE_QP, .qp = b.qp->qp, .trace = t};
	struct inject *in = calloc(1, sizeof(*in));
	struct trace_event e[16];
	unsigned n;

	assert_non_null(t);
	assert_non_null(in);
	memset(t, 0, sizeof(*t));
	assert_int_equal(core_cmd(&b.host->core, &tracing, now), 0);
	assert_int_equal(core_cmd(&b.host->core, &cmd, now), 0);
	lead_to_group(HOST_GID_IPV4);
	join(b.qp);
	arm_at_b(in, ABI_FAULT_ICRC, 0);
	post(16);
	assert_true(send_one());
	assert_int_equal(deliver(), DROP_NONE);
	n = (unsigned)trace_read(t, e, ARRAY_SIZE(e));
	assert_in_range(n, 2, ARRAY_SIZE(e));
	assert_int_equal(e[n - 1].type, TRACE_RECEIVE);
	assert_int_equal(e[n - 1].id >> TRACE_VERDICT_SHIFT, DROP_ICRC);
	cmd.trace = NULL;
	assert_int_equal(core_cmd(&b.host->core, &cmd, now), 0);
	assert_int_equal(inject_at_b(CORE_CMD_INJECT_QP, b.qp, NULL), 0);
	free(in);
	free(t);
}

#define T(f) cmocka_unit_test_setup_teardown(f, datagram_setup, datagram_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(ud_build__to_a_group),
		T(rx_group__copies_to_all_members),
		T(rx_group__other_workers_get_copies),
		T(rx_group__is_traced),
		T(rx_group__checks_first),
		T(ud_rx__qp1),
		T(ud_address__qp1_needs_a_pkey),
		T(ud_rx__qp1_while_pkeys_change),
		T(gsi_lookup__none),
		T(inject_rx__qp1),
		T(inject_rx__of_a_group),
		T(inject_rx__another_number),
		T(inject_rx__of_a_group_that_was_left),
		T(inject_rx__of_a_traced_member),
		T(core_is_receiver__by_number_group_and_qp1),
		T(rx_group__of_the_ports_vlans),
		T(rx_group__by_its_own_mac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
