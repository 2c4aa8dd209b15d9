/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "chaos.h"

#define RARE_RUNS 1000u /* after so many, what is rare must have happened too */

uint64_t chaos_actions[CHAOS_ACTIONS];

static const char *const action_name[CHAOS_ACTIONS] = {"sqd", "err", "reset", "destroy",
	"dereg_local", "dereg_target", "dereg_recv", "access", "min_rnr", "pause", "stall",
	"impair", "starve", "refused", "query", "repath", "pkey", "notice", "rtr_hold",
	"too_many_reads", "small_cq", "loopback", "same_qp", "new_qp"};

static struct core_counters cores;
static struct link_counters links;
static uint64_t runs, time_ms;
static const char *const flag_name[] = {"signaled", "solicited", "fence", "inline"};

/* Both are structs of uint64_t only. */
static void add(void *sum, const void *add, size_t size)
{
	for (size_t i = 0; i < size / 8; i++)
		((uint64_t *)sum)[i] += ((const uint64_t *)add)[i];
}

void report_run(const struct chaos_world *w)
{
	_Static_assert(sizeof(cores) % 8 == 0 && sizeof(links) % 8 == 0, "nothing but uint64_t");
	for (unsigned f = 0; f < CHAOS_HOSTS; f++) {
		add(&cores, &w->host[f]->core.count, sizeof(cores));
		for (unsigned t = 0; t < CHAOS_HOSTS; t++)
			add(&links, &w->link[f][t].count, sizeof(links));
	}
	runs++;
	time_ms += now_of(w) / MSEC;
}

/* --- printing ------------------------------------------------------------------------- */

static unsigned column;

static void word(const char *name, uint64_t n)
{
	column += (unsigned)printf("%s%s %llu", column ? "  " : "\t", name, (unsigned long long)n);
	if (column > 90) {
		printf("\n");
		column = 0;
	}
}

static void heading(const char *what)
{
	printf("%s%s:\n", column ? "\n" : "", what);
	column = 0;
}

static void per_op(const char *what, const uint64_t n[TRAFFIC_OPS])
{
	heading(what);
	for (unsigned o = 0; o < TRAFFIC_OPS; o++)
		word(traffic_op_name[o], n[o]);
}

static const char *status_name(unsigned s)
{
	static const char *const name[32] = {
		[ABI_WC_SUCCESS] = "SUCCESS",
		[ABI_WC_LOC_LEN_ERR] = "LOC_LEN",
		[ABI_WC_LOC_QP_OP_ERR] = "LOC_QP_OP",
		[ABI_WC_LOC_PROT_ERR] = "LOC_PROT",
		[ABI_WC_WR_FLUSH_ERR] = "FLUSH",
		[ABI_WC_REM_INV_REQ_ERR] = "REM_INV_REQ",
		[ABI_WC_REM_ACCESS_ERR] = "REM_ACCESS",
		[ABI_WC_REM_OP_ERR] = "REM_OP",
		[ABI_WC_RETRY_EXC_ERR] = "RETRY_EXC",
		[ABI_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC",
	};

	return name[s] ? name[s] : "other";
}

static void per_status(const char *what, const uint64_t n[32])
{
	heading(what);
	for (unsigned s = 0; s < 32; s++)
		if (n[s])
			word(status_name(s), n[s]);
}

static void named(const char *what, const char *const name[], const uint64_t n[], unsigned size)
{
	heading(what);
	for (unsigned i = 0; i < size; i++)
		word(name[i], n[i]);
}

static void report_flows(void)
{
	const struct flow_totals *t = &flow_totals;

	named("flows: sent", flow_service_name, t->sent, FLOW_SERVICES);
	named("failed or flushed", flow_service_name, t->failed, FLOW_SERVICES);
	named("received", flow_service_name, t->received, FLOW_SERVICES);
	named("receives failed or flushed", flow_service_name, t->recv_failed, FLOW_SERVICES);
	per_status("their send completions", t->status);
	per_status("their receive completions", t->recv_status);
	named("their mistakes", flow_mistake_name, t->mistake, FLOW_MISTAKES);
	named("their mid-flight", flow_act_name, t->act, FLOW_ACTS);
	heading("their events");
	word("SRQ_LIMIT_REACHED", t->event[ABI_EVENT_SRQ_LIMIT_REACHED]);
	word("SRQ_ERR", t->event[ABI_EVENT_SRQ_ERR]);
	word("LAST_WQE", t->event[ABI_EVENT_QP_LAST_WQE]);
	word("by group", t->grouped);
	word("recovered", t->recovered);
	word("made again", t->again);
	word("runs in which no datagram may be missing", t->sure);
}

void report_print(void)
{
	const struct traffic_totals *t = &traffic_totals;

	core_sum_ports(&cores);
	printf("%llu runs, %llu packets, %llu bytes in messages, %llu s of virtual time\n",
		(unsigned long long)runs, (unsigned long long)cores.tx_packets,
		(unsigned long long)t->bytes, (unsigned long long)(time_ms / 1000));
	per_op("posted", t->posted);
	per_op("completed", t->completed);
	per_op("failed or flushed", t->failed);
	per_op("discarded by RESET or destroy", t->discarded);
	per_status("send completions", t->status);
	per_status("receive completions", t->recv_status);
	heading("posted with");
	for (unsigned i = 0; i < ARRAY_SIZE(flag_name); i++)
		word(flag_name[i], t->flags[i]);
	heading("completed with bytes");
	for (unsigned i = 0; i < TRAFFIC_SIZES; i++)
		word(traffic_size_name[i], t->size[i]);
	heading("mistakes");
	for (unsigned m = MISTAKE_NONE + 1; m < TRAFFIC_MISTAKES; m++)
		word(traffic_mistake_name[m], t->mistake[m]);
	heading("in mid-flight");
	for (unsigned a = 0; a < CHAOS_ACTIONS; a++)
		word(action_name[a], chaos_actions[a]);
	heading("links");
	word("frames", links.frames);
	word("lost", links.lost);
	word("duplicated", links.duplicated);
	word("reordered", links.reordered);
	word("corrupted", links.corrupted);
	word("truncated", links.truncated);
	word("marked", links.marked);
	word("paused", links.paused);
	heading("UC messages");
	word("sent", uc_totals.sent);
	word("failed", uc_totals.failed);
	word("received", uc_totals.received);
	word("lost", uc_totals.lost);
	word("recovered", uc_totals.recovered);
	report_flows();
	heading("counters");
	for (unsigned i = 0; core_counter_name(i); i++)
		word(core_counter_name(i), ((const uint64_t *)&cores)[i]);
	heading("drops");
	for (unsigned d = 1; d < DROP_MAX; d++)
		if (cores.drop[d])
			word(drop_name((enum drop)d), cores.drop[d]);
	printf("\n");
}

/* --- nothing was left out ------------------------------------------------------------- */

static void hit(const char *what, uint64_t n)
{
	if (!n)
		fail_msg("in all these runs there was no %s", what);
}

static void hit_statuses(void)
{
	static const uint8_t send[] = {ABI_WC_SUCCESS, ABI_WC_LOC_QP_OP_ERR, ABI_WC_LOC_PROT_ERR,
		ABI_WC_WR_FLUSH_ERR, ABI_WC_REM_INV_REQ_ERR, ABI_WC_REM_ACCESS_ERR,
		ABI_WC_REM_OP_ERR, ABI_WC_RETRY_EXC_ERR, ABI_WC_RNR_RETRY_EXC_ERR};
	static const uint8_t recv[] = {ABI_WC_SUCCESS, ABI_WC_LOC_LEN_ERR, ABI_WC_LOC_QP_OP_ERR,
		ABI_WC_LOC_PROT_ERR, ABI_WC_WR_FLUSH_ERR};

	for (unsigned i = 0; i < ARRAY_SIZE(send); i++)
		hit(status_name(send[i]), traffic_totals.status[send[i]]);
	for (unsigned i = 0; i < ARRAY_SIZE(recv); i++)
		hit(status_name(recv[i]), traffic_totals.recv_status[recv[i]]);
}

static void hit_counters(void)
{
	static const enum drop common[] = {DROP_ETH_SHORT, DROP_IP_LENGTH, DROP_ICRC,
		DROP_QPN_UNKNOWN, DROP_QP_STATE, DROP_PSN_AHEAD, DROP_RNR_PENDING, DROP_GHOST_ACK,
		DROP_READ_RESP_UNEXPECTED, DROP_MESSAGE_TORN, DROP_NO_RECV_WQE};
	static const enum drop rare[] = {
		DROP_NOT_ROCE, DROP_IP4_CHECKSUM, DROP_DMAC, DROP_DGID, DROP_DUP_NO_RESOURCE};

	core_sum_ports(&cores);
	for (unsigned i = 0; core_counter_name(i); i++) {
		const uint64_t *n = &((const uint64_t *)&cores)[i];

		/* Memory does not fault here, nobody injects faults. */
		if (n == &cores.access_faults || n == &cores.injected_faults)
			assert_int_equal(*n, 0);
		else
			hit(core_counter_name(i), *n);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(common); i++)
		hit(drop_name(common[i]), cores.drop[common[i]]);
	for (unsigned i = 0; runs >= RARE_RUNS && i < ARRAY_SIZE(rare); i++)
		hit(drop_name(rare[i]), cores.drop[rare[i]]);
}

static void hit_flows(void)
{
	static const uint8_t send[] = {ABI_WC_SUCCESS, ABI_WC_LOC_LEN_ERR, ABI_WC_LOC_QP_OP_ERR,
		ABI_WC_LOC_PROT_ERR, ABI_WC_WR_FLUSH_ERR, ABI_WC_RETRY_EXC_ERR};
	static const uint8_t send_rare[] = {
		ABI_WC_REM_INV_REQ_ERR, ABI_WC_REM_OP_ERR, ABI_WC_RNR_RETRY_EXC_ERR};
	static const uint8_t recv[] = {ABI_WC_SUCCESS, ABI_WC_LOC_LEN_ERR, ABI_WC_LOC_QP_OP_ERR,
		ABI_WC_LOC_PROT_ERR, ABI_WC_WR_FLUSH_ERR, ABI_WC_REM_INV_REQ_ERR};
	const struct flow_totals *t = &flow_totals;

	for (unsigned i = 0; i < FLOW_SERVICES; i++) {
		hit("message of a flow received", t->received[i]);
		hit("message of a flow failed", t->failed[i]);
		hit("receive of a flow failed", t->recv_failed[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(send); i++)
		hit("message of a flow with such a status", t->status[send[i]]);
	for (unsigned i = 0; runs >= RARE_RUNS && i < ARRAY_SIZE(send_rare); i++)
		hit("message of a flow with such a rare status", t->status[send_rare[i]]);
	for (unsigned i = 0; i < ARRAY_SIZE(recv); i++)
		hit("receive of a flow with such a status", t->recv_status[recv[i]]);
	for (unsigned i = 0; i < FLOW_MISTAKES; i++)
		hit(flow_mistake_name[i], t->mistake[i]);
	for (unsigned i = 0; i < FLOW_ACTS; i++)
		hit(flow_act_name[i], t->act[i]);
	hit("SRQ limit reached", t->event[ABI_EVENT_SRQ_LIMIT_REACHED]);
	hit("SRQ error", t->event[ABI_EVENT_SRQ_ERR]);
	hit("last WQE reached", t->event[ABI_EVENT_QP_LAST_WQE]);
	hit("datagram to a group", t->grouped);
	hit("flow's way back from SQE", t->recovered);
	hit("flow made again", t->again);
	hit("run in which no datagram may be missing", t->sure);
}

void report_nothing_is_zero(void)
{
	for (unsigned o = 0; o < TRAFFIC_OPS; o++) {
		hit(traffic_op_name[o], traffic_totals.completed[o]);
		hit(traffic_op_name[o], traffic_totals.failed[o]);
		if (o != TRAFFIC_LOCAL_INV || runs >= RARE_RUNS) /* its peer must be idle */
			hit(traffic_op_name[o], traffic_totals.discarded[o]);
	}
	hit_statuses();
	for (unsigned i = 0; i < ARRAY_SIZE(flag_name); i++)
		hit(flag_name[i], traffic_totals.flags[i]);
	for (unsigned i = 0; i < TRAFFIC_SIZES; i++)
		hit(traffic_size_name[i], traffic_totals.size[i]);
	for (unsigned m = MISTAKE_NONE + 1; m < TRAFFIC_MISTAKES; m++)
		hit(traffic_mistake_name[m], traffic_totals.mistake[m]);
	for (unsigned a = 0; a < CHAOS_ACTIONS; a++)
		hit(action_name[a], chaos_actions[a]);
	hit("frame lost", links.lost);
	hit("frame duplicated", links.duplicated);
	hit("frame reordered", links.reordered);
	hit("frame corrupted", links.corrupted);
	hit("frame truncated", links.truncated);
	hit("frame marked", links.marked);
	hit("frame kept waiting", links.paused);
	hit("UC message sent", uc_totals.sent);
	hit("UC message failed", uc_totals.failed);
	hit("UC message received", uc_totals.received);
	hit("UC message lost", uc_totals.lost);
	hit("way back from SQE", uc_totals.recovered);
	hit_flows();
	hit_counters();
}
