/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "chaos.h"

#define RARE_RUNS 1000u /* after so many, what is rare must have happened too */

uint64_t chaos_actions[CHAOS_ACTIONS];

static const char *const action_name[CHAOS_ACTIONS] = {"sqd", "err", "reset", "destroy",
	"dereg_local", "dereg_target", "dereg_recv", "access", "min_rnr", "pause", "stall",
	"faults", "starve", "refused", "query", "rtr_hold", "too_many_reads", "small_cq",
	"loopback", "same_qp", "new_qp"};

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

void report_print(void)
{
	const struct traffic_totals *t = &traffic_totals;

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
	word("paused", links.paused);
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
		DROP_READ_RESP_UNEXPECTED};
	static const enum drop rare[] = {
		DROP_NOT_ROCE, DROP_IP4_CHECKSUM, DROP_DMAC, DROP_DGID, DROP_DUP_NO_RESOURCE};

	for (unsigned i = 0; core_counter_name(i); i++) {
		const uint64_t *n = &((const uint64_t *)&cores)[i];

		/* Memory does not fault here, and events are taken at once. */
		if (n == &cores.access_faults || n == &cores.events_lost)
			assert_int_equal(*n, 0);
		else
			hit(core_counter_name(i), *n);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(common); i++)
		hit(drop_name(common[i]), cores.drop[common[i]]);
	for (unsigned i = 0; runs >= RARE_RUNS && i < ARRAY_SIZE(rare); i++)
		hit(drop_name(rare[i]), cores.drop[rare[i]]);
}

void report_nothing_is_zero(void)
{
	for (unsigned o = 0; o < TRAFFIC_OPS; o++) {
		hit(traffic_op_name[o], traffic_totals.completed[o]);
		hit(traffic_op_name[o], traffic_totals.failed[o]);
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
	hit("frame kept waiting", links.paused);
	hit_counters();
}
