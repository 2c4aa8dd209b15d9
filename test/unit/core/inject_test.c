/* SPDX-License-Identifier: BSD-3-Clause */
/* Each fault changes the packets that it is for, sent or received, and nothing else. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "core_command.h"
#include "fixture.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "inject.h"
#include "opcode.h"
#include "pair.h"
#include "qp.h"
#include "seq24.h"
#include "trace.h"
#include "trace_text.h"
#include "txd.h"
#include "window.h"

static struct inject *in;
static char said[4096];

static int command(enum core_cmd_type type, struct inject *inject)
{
	struct core_cmd cmd = {.type = type, .qp = l.qp->qp, .tracing = true, .inject = inject};

	return core_cmd(&l.host->core, &cmd, l.now);
}

static int setup(void **state)
{
	lone_setup(state);
	in = aligned_alloc(CACHE_LINE, (sizeof(*in) + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
	assert_non_null(in);
	memset(in, 0, sizeof(*in));
	lone_start(&l);
	assert_int_equal(command(CORE_CMD_INJECTING, NULL), 0);
	assert_int_equal(command(CORE_CMD_INJECT_QP, in), 0);
	return 0;
}

static int teardown(void **state)
{
	lone_fini(&l);
	free(in);
	return 0;
}

/* The defaults: every packet, always. */
static uint32_t arm(struct abi_fault f)
{
	struct core_cmd cmd = {.type = CORE_CMD_ARM_FAULT, .qp = l.qp->qp, .fault = &f};

	f.nth = f.nth ? f.nth : 1;
	f.every = f.every ? f.every : 1;
	f.chance = f.chance ? f.chance : ABI_FAULT_ALWAYS;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	return cmd.n;
}

static const struct inject_rule *rule(uint32_t id)
{
	for (unsigned i = 0; i < INJECT_RULES; i++)
		if (in->rule[i].id == id)
			return &in->rule[i];
	return NULL;
}

static void say(const char *fmt, ...)
{
	size_t used = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + used, sizeof(said) - used, fmt, ap);
	va_end(ap);
}

/* Opcode@PSN, and what else is remarkable. */
static void tell(const uint8_t *frame, uint16_t len)
{
	struct pkt p;

	if (said[0])
		say(" ");
	if (frame_parse(&p, frame, len)) {
		say("?");
		return;
	}
	say("%02x@%x", p.op->code, p.psn);
	if (!icrc_check(icrc_by_name("table"), &p))
		say(" bad");
	if (p.pkey != 0xFFFF)
		say(" pkey=%x", p.pkey);
	if (p.dest_qp != PEER_QPN)
		say(" qp=%x", p.dest_qp);
	if (p.tclass)
		say(" tclass=%x", p.tclass);
	if (p.op->aeth)
		say(" %02x/%u", p.syndrome, p.msn);
}

/* All that the host sends now. */
static const char *sent(void)
{
	struct txd t[BURST];
	unsigned n;

	app_ring(&l.app, l.now);
	said[0] = '\0';
	do {
		for (unsigned i = 0; i < BURST; i++)
			t[i].frame = l.host->tx[i];
		n = core_tx(&l.host->core, t, BURST, l.now);
		for (unsigned i = 0; i < n; i++) {
			uint16_t len = core_seal(&l.host->core, &t[i]);

			if (len)
				tell(t[i].frame, len);
		}
	} while (n == BURST);
	return said;
}

/* Three WRITEs of one packet, PSNs 200 to 202. */
static const char *three_writes(void)
{
	for (uint64_t i = 0; i < 3; i++)
		lone_post(&l, ABI_WR_RDMA_WRITE, i, 64, 0);
	return sent();
}

static void receive(uint32_t psn)
{
	lone_rx(&l, &(struct shot){OPC_RC | OP_SEND_ONLY, psn, .len = 8, .ackreq = true});
}

/* --- which packets ---------------------------------------------------------------------- */

static void inject_tx__drops_a_psn(void **state)
{
	uint32_t id = arm((struct abi_fault){.kind = ABI_FAULT_DROP,
		.flags = ABI_FAULT_PSNS,
		.psn_first = SQ_PSN + 1,
		.psn_last = SQ_PSN + 1,
		.count = 1});

	assert_string_equal(three_writes(), "0a@200 0a@202");
	assert_int_equal(rule(id)->hits, 1);
	assert_true(inject_is_spent(rule(id)));
	assert_int_equal(l.host->core.count.injected_faults, 1);
	/* what was lost is sent again, and this time it comes through */
	lone_nak(&l, NAK_PSN_SEQUENCE, SQ_PSN + 1, 1);
	assert_string_equal(sent(), "0a@201 0a@202");
}

static void inject_tx__counts_only_what_is_sent(void **state)
{
	arm((struct abi_fault){.kind = ABI_FAULT_DROP, .count = 1});
	three_writes();
	assert_int_equal(l.host->core.count.port[0].tx_packets, 2);
}

static void inject_tx__counts_from_the_nth_each_so_many(void **state)
{
	uint32_t id =
		arm((struct abi_fault){.kind = ABI_FAULT_DROP, .nth = 2, .every = 3, .count = 2});

	three_writes();
	three_writes();
	assert_string_equal(
		three_writes(), "0a@206 0a@207 0a@208"); /* the 8th would be the third */
	assert_int_equal(rule(id)->matched, 9);
	assert_int_equal(rule(id)->hits, 2);
	assert_int_equal(l.host->core.count.port[0].tx_packets, 7);
}

static void inject_tx__looks_at_what_a_packet_is(void **state)
{
	arm((struct abi_fault){.kind = ABI_FAULT_DROP, .packets = ABI_FAULT_SEND | ABI_FAULT_LAST});
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 2000, 0);
	lone_post(&l, ABI_WR_SEND, 2, 2000, 0);
	lone_post(&l, ABI_WR_SEND, 3, 8, 0);
	assert_string_equal(sent(), "06@200 08@201 00@202 04@204");
}

static void inject_tx__leaves_the_other_direction_alone(void **state)
{
	uint32_t id = arm((struct abi_fault){.kind = ABI_FAULT_DROP, .direction = ABI_FAULT_RX});

	assert_string_equal(three_writes(), "0a@200 0a@201 0a@202");
	assert_int_equal(rule(id)->matched, 0);
}

static void happens__goes_by_its_seed(void **state)
{
	char first[sizeof(said)];
	uint32_t id = arm((struct abi_fault){
		.kind = ABI_FAULT_DROP, .chance = ABI_FAULT_ALWAYS / 2, .seed = 7});

	for (unsigned i = 0; i < 10; i++)
		three_writes();
	assert_in_range(rule(id)->hits, 5, 25);
	strcpy(first, said);
	/* the same packets again */
	lone_nak(&l, NAK_PSN_SEQUENCE, SQ_PSN, 0);
	l.host->core.careful = 0;
	sent();
	l.host->core.careful = CORE_INJECTING;
	*(struct inject_rule *)rule(id) = (struct inject_rule){0};
	arm((struct abi_fault){.kind = ABI_FAULT_DROP, .chance = ABI_FAULT_ALWAYS / 2, .seed = 7});
	lone_nak(&l, NAK_PSN_SEQUENCE, SQ_PSN, 0);
	sent();
	assert_non_null(strstr(said, first));
}

/* --- what is changed -------------------------------------------------------------------- */

static const char *one_write(struct abi_fault f)
{
	f.count = 1;
	arm(f);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 64, 0);
	return sent();
}

static void inject_tx__breaks_the_icrc(void **state)
{
	assert_string_equal(
		one_write((struct abi_fault){.kind = ABI_FAULT_ICRC, .mask = 1}), "0a@200 bad");
}

static void inject_tx__corrupts_behind_a_good_icrc(void **state)
{
	uint8_t *payload = l.host->tx[0] + 14 + 20 + 8 + 12 + 16;

	memset(l.mr->mem, 0x55, 64);
	assert_string_equal(one_write((struct abi_fault){.kind = ABI_FAULT_CORRUPT,
				    .flags = ABI_FAULT_IN_PAYLOAD,
				    .offset = 3,
				    .mask = 0x80}),
		"0a@200");
	assert_int_equal(payload[2], 0x55);
	assert_int_equal(payload[3], 0xD5);
	assert_int_equal(payload[4], 0x55);
}

static void inject_tx__corrupts_a_header(void **state)
{
	assert_string_equal(
		one_write((struct abi_fault){.kind = ABI_FAULT_CORRUPT, .offset = 3, .mask = 0x0F}),
		"0a@200 pkey=fff0");
}

static void inject_tx__marks_ce(void **state)
{
	assert_string_equal(one_write((struct abi_fault){.kind = ABI_FAULT_ECN, .value = 3}),
		"0a@200 tclass=3");
}

static void inject_tx__changes_fields(void **state)
{
	assert_string_equal(
		one_write((struct abi_fault){.kind = ABI_FAULT_PSN, .value = 5}), "0a@5");
	assert_string_equal(
		one_write((struct abi_fault){
			.kind = ABI_FAULT_PSN, .flags = ABI_FAULT_ADD, .value = SEQ24_MASK}),
		"0a@200");
	assert_string_equal(
		one_write((struct abi_fault){.kind = ABI_FAULT_OPCODE, .value = 0x08}), "08@202");
	assert_string_equal(one_write((struct abi_fault){.kind = ABI_FAULT_PKEY, .value = 0x1234}),
		"0a@203 pkey=1234");
	assert_string_equal(one_write((struct abi_fault){.kind = ABI_FAULT_QPN, .value = 0x77}),
		"0a@204 qp=77");
}

static void inject_tx__keeps_the_ackreq_beside_a_psn(void **state)
{
	one_write((struct abi_fault){.kind = ABI_FAULT_PSN, .value = 5});
	assert_int_equal(l.host->tx[0][14 + 20 + 8 + 8], 0x80);
}

static void inject_tx__changes_the_aeth(void **state)
{
	lone_recv(&l, 1, 0, 64);
	lone_recv(&l, 2, 0, 64);
	arm((struct abi_fault){.kind = ABI_FAULT_SYNDROME, .value = NAK_REMOTE_OP, .count = 1});
	arm((struct abi_fault){
		.kind = ABI_FAULT_MSN, .flags = ABI_FAULT_ADD, .value = 7, .count = 1});
	receive(RQ_PSN);
	assert_string_equal(sent(), "11@100 63/8");
	receive(RQ_PSN + 1);
	assert_string_equal(sent(), "11@101 1f/2");
}

/* Packets without an AETH are not affected, and not counted. */
static void inject_tx__waits_for_what_it_can_change(void **state)
{
	uint32_t id =
		arm((struct abi_fault){.kind = ABI_FAULT_SYNDROME, .value = 0x60, .count = 1});

	three_writes();
	assert_int_equal(rule(id)->matched, 0);
}

/* --- what is held back ------------------------------------------------------------------ */

static void inject_tx__sends_twice(void **state)
{
	arm((struct abi_fault){.kind = ABI_FAULT_DUPLICATE, .nth = 2, .count = 1});
	assert_string_equal(three_writes(), "0a@200 0a@201 0a@201 0a@202");
	assert_int_equal(in->nheld, 0);
}

static void inject_tx__swaps_with_the_next(void **state)
{
	arm((struct abi_fault){.kind = ABI_FAULT_REORDER, .value = 1, .time = 1000000, .count = 1});
	assert_string_equal(three_writes(), "0a@201 0a@200 0a@202");
}

static void inject_tx__lets_several_overtake(void **state)
{
	arm((struct abi_fault){.kind = ABI_FAULT_REORDER, .value = 2, .time = 1000000, .count = 1});
	assert_string_equal(three_writes(), "0a@201 0a@202 0a@200");
}

/* The last of a message has no successor: it goes when its time is over. */
static void inject_tx__does_not_wait_for_ever(void **state)
{
	arm((struct abi_fault){
		.kind = ABI_FAULT_REORDER, .value = 1, .time = 5000, .nth = 3, .count = 1});
	assert_string_equal(three_writes(), "0a@200 0a@201");
	assert_int_equal(core_deadline(&l.host->core), l.now + 5000);
	l.now += 4999;
	assert_string_equal(sent(), "");
	l.now += 1;
	assert_string_equal(sent(), "0a@202");
}

static void inject_tx__delays_by_the_nanosecond(void **state)
{
	arm((struct abi_fault){.kind = ABI_FAULT_DELAY, .time = 777, .nth = 2, .count = 1});
	assert_string_equal(three_writes(), "0a@200 0a@202");
	l.now += 776;
	assert_string_equal(sent(), "");
	l.now += 1;
	assert_string_equal(sent(), "0a@201");
	assert_true(list_empty(&l.host->core.held));
}

static void hold__says_what_found_no_room(void **state)
{
	uint32_t id = arm((struct abi_fault){.kind = ABI_FAULT_DELAY, .time = 1000000});

	l.qp->qp->window_max = 1000;
	window_init(&l.qp->qp->win, 1000);
	for (unsigned i = 0; i < INJECT_HELD / 3 + 1; i++) {
		three_writes();
		lone_ack(&l, SQ_PSN + 3 * i + 2, 3 * i + 3);
		lone_cqes(&l);
	}
	assert_int_equal(in->nheld, INJECT_HELD);
	assert_int_equal(rule(id)->missed, rule(id)->hits - INJECT_HELD);
	assert_int_not_equal(rule(id)->missed, 0);
}

/* --- received --------------------------------------------------------------------------- */

static void inject_rx__drops(void **state)
{
	lone_recv(&l, 1, 0, 64);
	arm((struct abi_fault){.kind = ABI_FAULT_DROP, .direction = ABI_FAULT_RX, .count = 1});
	receive(RQ_PSN);
	assert_int_equal(l.verdict, DROP_INJECTED);
	assert_int_equal(l.host->core.count.drop[DROP_INJECTED], 1);
	assert_int_equal(core_rx_fault(&l.host->core, 0), ABI_FAULT_DROP);
	assert_string_equal(sent(), "");
	receive(RQ_PSN);
	assert_int_equal(core_rx_fault(&l.host->core, 0), ABI_FAULT_NONE);
	assert_string_equal(lone_cqes(&l), "R1:OK+8");
	assert_int_equal(l.host->core.count.port[0].rx_packets, 2);
}

static void inject_rx__sees_a_bad_icrc(void **state)
{
	lone_recv(&l, 1, 0, 64);
	arm((struct abi_fault){
		.kind = ABI_FAULT_ICRC, .direction = ABI_FAULT_RX, .mask = 0x80, .count = 1});
	receive(RQ_PSN);
	assert_int_equal(l.verdict, DROP_ICRC);
}

static void inject_rx__sees_another_psn(void **state)
{
	lone_recv(&l, 1, 0, 64);
	arm((struct abi_fault){.kind = ABI_FAULT_PSN,
		.direction = ABI_FAULT_RX,
		.flags = ABI_FAULT_ADD,
		.value = 1,
		.count = 1});
	receive(RQ_PSN);
	assert_string_equal(sent(), "11@100 60/0");
	assert_int_equal(l.host->core.count.out_of_sequence, 1);
}

/* Another QP that could take what was sent to the first. */
static struct app_qp *add_qp(void)
{
	struct app_qp *first = l.qp, *other;

	l.qp = app_qp(&l.app, &l.spec);
	lone_climb(&l, ABI_QPS_RTS);
	lone_recv(&l, 9, 0, 64);
	other = l.qp;
	l.qp = first;
	return other;
}

/* Nobody else gets what is made of a QP's packet, whose ICRC is right. */
static void inject_rx__keeps_to_its_qp(void **state)
{
	uint32_t change = l.qp->qp->qpn ^ add_qp()->qp->qpn;

	assert_in_range(change, 1, UINT8_MAX);
	lone_recv(&l, 1, 0, 64);
	arm((struct abi_fault){.kind = ABI_FAULT_CORRUPT,
		.direction = ABI_FAULT_RX,
		.offset = 7,
		.mask = (uint8_t)change,
		.count = 1});
	receive(RQ_PSN);
	assert_int_equal(l.verdict, DROP_QPN_UNKNOWN);
	assert_string_equal(lone_cqes(&l), "");
}

static void inject_rx__receives_twice(void **state)
{
	lone_recv(&l, 1, 0, 64);
	arm((struct abi_fault){.kind = ABI_FAULT_DUPLICATE, .direction = ABI_FAULT_RX, .count = 1});
	receive(RQ_PSN);
	assert_string_equal(lone_cqes(&l), "R1:OK+8");
	assert_int_equal(l.host->core.count.duplicate_request, 1);
}

static void inject_rx__swaps_with_the_next(void **state)
{
	lone_recv(&l, 1, 0, 64);
	lone_recv(&l, 2, 0, 64);
	arm((struct abi_fault){.kind = ABI_FAULT_REORDER,
		.direction = ABI_FAULT_RX,
		.value = 1,
		.time = 1000000,
		.count = 1});
	receive(RQ_PSN);
	assert_string_equal(lone_cqes(&l), "");
	receive(RQ_PSN + 1);
	/* the second was too early, and is asked for again */
	assert_string_equal(lone_cqes(&l), "R1:OK+8");
	assert_int_equal(l.host->core.count.out_of_sequence, 1);
}

static void inject_rx__delays(void **state)
{
	lone_recv(&l, 1, 0, 64);
	arm((struct abi_fault){
		.kind = ABI_FAULT_DELAY, .direction = ABI_FAULT_RX, .time = 500, .count = 1});
	receive(RQ_PSN);
	assert_int_equal(l.verdict, DROP_NONE);
	l.now += 499;
	sent();
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(core_deadline(&l.host->core), l.now + 1);
	l.now += 1;
	assert_string_equal(sent(), "11@100 1f/1");
	assert_string_equal(lone_cqes(&l), "R1:OK+8");
}

static void inject_rx__is_not_ready(void **state)
{
	uint32_t id = arm((struct abi_fault){
		.kind = ABI_FAULT_RNR, .direction = ABI_FAULT_RX, .value = 14, .count = 2});

	lone_recv(&l, 1, 0, 64);
	receive(RQ_PSN);
	assert_string_equal(sent(), "11@100 2e/0");
	receive(RQ_PSN + 1); /* after it: not counted, not executed */
	assert_int_equal(l.verdict, DROP_RNR_PENDING);
	receive(RQ_PSN);
	assert_string_equal(sent(), "11@100 2e/0");
	receive(RQ_PSN);
	assert_string_equal(sent(), "11@100 1f/1");
	assert_string_equal(lone_cqes(&l), "R1:OK+8");
	assert_int_equal(rule(id)->matched, 3);
	assert_int_equal(l.host->core.count.rnr_nak_sent, 2);
	assert_int_equal(l.host->core.count.out_of_buffer, 0);
}

/* A request of another service, which the QP would not execute, is dropped as ever. */
static void inject_rx__is_not_ready_for_its_own_service_only(void **state)
{
	uint32_t id = arm((struct abi_fault){
		.kind = ABI_FAULT_RNR, .direction = ABI_FAULT_RX, .value = 14, .count = 2});

	lone_rx(&l, &(struct shot){OPC_XRC | OP_SEND_ONLY, RQ_PSN, .len = 8, .ackreq = true});
	assert_int_equal(l.verdict, DROP_QP_TYPE);
	assert_string_equal(sent(), "");
	assert_int_equal(rule(id)->matched, 0);
}

static void inject_rx__takes_the_qps_own_timer(void **state)
{
	arm((struct abi_fault){.kind = ABI_FAULT_RNR,
		.direction = ABI_FAULT_RX,
		.flags = ABI_FAULT_QP_TIMER,
		.count = 1});
	receive(RQ_PSN);
	sent();
	assert_int_equal(
		l.host->tx[0][14 + 20 + 8 + 12], AETH_RNR_NAK | l.qp->qp->attr.min_rnr_timer);
}

/* A forged answer is the completer's. */
static void inject_rx__forges_an_answer(void **state)
{
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 64, 0);
	sent();
	arm((struct abi_fault){.kind = ABI_FAULT_SYNDROME,
		.direction = ABI_FAULT_RX,
		.value = NAK_REMOTE_ACCESS,
		.count = 1});
	lone_ack(&l, SQ_PSN, 1);
	assert_string_equal(lone_cqes(&l), "S1:REM_ACCESS");
}

/* --- begin and end ---------------------------------------------------------------------- */

static void inject_arm__takes_the_place_of_what_is_spent(void **state)
{
	struct abi_fault f = {.kind = ABI_FAULT_DROP,
		.nth = 1,
		.every = 1,
		.chance = ABI_FAULT_ALWAYS,
		.count = 1};
	struct core_cmd cmd = {.type = CORE_CMD_ARM_FAULT, .qp = l.qp->qp, .fault = &f};

	for (unsigned i = 0; i < INJECT_RULES; i++)
		arm((struct abi_fault){.kind = ABI_FAULT_DROP, .count = 1, .nth = i + 1});
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), -ENOSPC);
	lone_post(&l, ABI_WR_RDMA_WRITE, 1, 64, 0);
	assert_string_equal(sent(), "");
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(cmd.n, INJECT_RULES + 1);
	assert_null(rule(1));
}

static void inject_clear__ends_one(void **state)
{
	uint32_t id = arm((struct abi_fault){.kind = ABI_FAULT_DROP});
	struct core_cmd cmd = {.type = CORE_CMD_CLEAR_FAULT, .qp = l.qp->qp, .n = id};

	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), -ENOENT);
	cmd.n = 0;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), -ENOENT);
	assert_string_equal(three_writes(), "0a@200 0a@201 0a@202");
}

static void inject_qp__is_one_at_a_time(void **state)
{
	assert_int_equal(command(CORE_CMD_INJECT_QP, in), -EBUSY);
	assert_int_equal(command(CORE_CMD_INJECT_QP, NULL), 0);
	assert_null(l.qp->qp->inject);
}

static void detach__lets_go(void **state)
{
	arm((struct abi_fault){.kind = ABI_FAULT_DELAY, .time = 1000});
	three_writes();
	assert_int_equal(in->nheld, 3);
	assert_int_equal(command(CORE_CMD_DETACH_QP, NULL), 0);
	assert_null(l.qp->qp->inject);
	assert_true(list_empty(&l.host->core.held));
	l.now += 1000;
	assert_string_equal(sent(), "");
}

static void trace__tells_of_faults(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_TRACE_QP, .qp = l.qp->qp};
	struct trace *t = aligned_alloc(CACHE_LINE, sizeof(*t));
	struct trace_event e[32];
	char line[TRACE_LINE + 1];
	unsigned n, told = 0;

	memset(t, 0, sizeof(*t));
	cmd.trace = t;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(command(CORE_CMD_TRACING, NULL), 0);
	arm((struct abi_fault){.kind = ABI_FAULT_DUPLICATE, .nth = 2, .count = 1});
	three_writes();
	n = trace_read(t, e, ARRAY_SIZE(e));
	for (unsigned i = 0; i < n; i++) {
		line[trace_text(line, &e[i], e[i].time)] = '\0';
		if (strstr(line, "inject fault duplicate direction tx psn 513 id 1"))
			told |= 1;
		if (strstr(line, "released fault duplicate psn 513"))
			told |= 2;
	}
	assert_int_equal(told, 3);
	cmd.trace = NULL;
	core_cmd(&l.host->core, &cmd, l.now);
	free(t);
}

/* A QP moves with what it holds back. */
static void inject_give__takes_it_along(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_GIVE_QP, .qp = l.qp->qp, .worker = 1};
	struct list *held = &l.host->core.held;

	arm((struct abi_fault){.kind = ABI_FAULT_DELAY, .time = 1000, .count = 1});
	assert_string_equal(three_writes(), "0a@201 0a@202");
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_true(list_empty(held));
	assert_int_equal(inject_deadline(&l.host->core), UINT64_MAX);
	/* there and back again */
	atomic_store(&l.qp->qp->owner, 0);
	cmd.type = CORE_CMD_TAKE_QP;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_false(list_empty(held));
	l.now += 1000;
	assert_string_equal(sent(), "0a@200");
}

/* --- under virtual time ----------------------------------------------------------------- */

/* One SEND from A to B, with @p f at end @p end.  Returns how long it takes. */
static uint64_t time_of_a_send(unsigned end, struct abi_fault f)
{
	struct pair_spec s = pair_defaults();
	static struct pair p;
	struct core_cmd cmd = {.tracing = true, .inject = in, .fault = &f};
	static const enum core_cmd_type steps[] = {
		CORE_CMD_INJECTING, CORE_CMD_INJECT_QP, CORE_CMD_ARM_FAULT};
	struct abi_sge sge;
	uint64_t start;

	s.link[A] = (struct link_config){.delay_ns = 7000};
	s.link[B] = (struct link_config){.delay_ns = 9000};
	pair_init(&p, &s);
	pair_memory(&p, 4096);
	pair_run(&p, MSEC);
	memset(in, 0, sizeof(*in));
	f.nth = 1;
	f.every = 1;
	f.count = 3;
	f.chance = ABI_FAULT_ALWAYS;
	cmd.qp = p.end[end].qp->qp;
	for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
		cmd.type = steps[i];
		assert_int_equal(core_cmd(&p.end[end].host->core, &cmd, p.fabric.now), 0);
	}
	start = p.fabric.now;
	sge = app_sge(p.end[B].mr, 0, 64);
	app_post_recv(p.end[B].qp, 2, &sge, 1);
	app_post_send(p.end[A].qp, &(struct app_send){.opcode = ABI_WR_SEND,
					   .flags = ABI_WQE_SIGNALED,
					   .num_sge = 1,
					   .sge = {app_sge(p.end[A].mr, 0, 64)}});
	pair_until_cqes(&p, A, 1, SEC);
	assert_int_equal(p.end[A].cqe[0].status, ABI_WC_SUCCESS);
	start = p.fabric.now - start;
	pair_fini(&p);
	return start;
}

static void inject__delays_in_virtual_time(void **state)
{
	assert_int_equal(
		time_of_a_send(A, (struct abi_fault){.kind = ABI_FAULT_DELAY, .time = 5001}),
		16000 + 5001);
	assert_int_equal(time_of_a_send(B, (struct abi_fault){.kind = ABI_FAULT_DELAY,
						   .direction = ABI_FAULT_RX,
						   .time = 123}),
		16000 + 123);
}

/* Three times the way there and back, and the timer's 320 us in between. */
static void inject__is_not_ready_in_virtual_time(void **state)
{
	uint64_t took = time_of_a_send(B,
		(struct abi_fault){.kind = ABI_FAULT_RNR, .direction = ABI_FAULT_RX, .value = 10});

	assert_in_range(took, 4 * 16000 + 3 * 320000, 4 * 16000 + 3 * 340000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(inject_tx__drops_a_psn),
		TEST(inject_tx__counts_only_what_is_sent),
		TEST(inject_tx__counts_from_the_nth_each_so_many),
		TEST(inject_tx__looks_at_what_a_packet_is),
		TEST(inject_tx__leaves_the_other_direction_alone),
		TEST(happens__goes_by_its_seed),
		TEST(inject_tx__breaks_the_icrc),
		TEST(inject_tx__corrupts_behind_a_good_icrc),
		TEST(inject_tx__corrupts_a_header),
		TEST(inject_tx__marks_ce),
		TEST(inject_tx__changes_fields),
		TEST(inject_tx__keeps_the_ackreq_beside_a_psn),
		TEST(inject_tx__changes_the_aeth),
		TEST(inject_tx__waits_for_what_it_can_change),
		TEST(inject_tx__sends_twice),
		TEST(inject_tx__swaps_with_the_next),
		TEST(inject_tx__lets_several_overtake),
		TEST(inject_tx__does_not_wait_for_ever),
		TEST(inject_tx__delays_by_the_nanosecond),
		TEST(hold__says_what_found_no_room),
		TEST(inject_rx__drops),
		TEST(inject_rx__sees_a_bad_icrc),
		TEST(inject_rx__sees_another_psn),
		TEST(inject_rx__keeps_to_its_qp),
		TEST(inject_rx__receives_twice),
		TEST(inject_rx__swaps_with_the_next),
		TEST(inject_rx__delays),
		TEST(inject_rx__is_not_ready),
		TEST(inject_rx__is_not_ready_for_its_own_service_only),
		TEST(inject_rx__takes_the_qps_own_timer),
		TEST(inject_rx__forges_an_answer),
		TEST(inject_arm__takes_the_place_of_what_is_spent),
		TEST(inject_clear__ends_one),
		TEST(inject_qp__is_one_at_a_time),
		TEST(detach__lets_go),
		TEST(trace__tells_of_faults),
		TEST(inject_give__takes_it_along),
		TEST(inject__delays_in_virtual_time),
		TEST(inject__is_not_ready_in_virtual_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
