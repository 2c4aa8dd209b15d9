/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as lines of text and as JSON; one table describes both. */
#include "trace_text.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <jansson.h>
#include "abi_ctl.h"
#include "abi_names.h"
#include "abi_wqe.h"
#include "drop.h"
#include "inject.h"
#include "opcode.h"
#include "trace.h"

/* --- names ------------------------------------------------------------------------------ */

static const char *const requests[] = {
	[ABI_WR_RDMA_WRITE] = "WRITE",
	[ABI_WR_RDMA_WRITE_WITH_IMM] = "WRITE_WITH_IMM",
	[ABI_WR_SEND] = "SEND",
	[ABI_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
	[ABI_WR_RDMA_READ] = "READ",
	[ABI_WR_ATOMIC_CMP_AND_SWP] = "CMP_AND_SWP",
	[ABI_WR_ATOMIC_FETCH_AND_ADD] = "FETCH_AND_ADD",
	[ABI_WR_LOCAL_INV] = "LOCAL_INV",
	[ABI_WR_BIND_MW] = "BIND_MW",
	[ABI_WR_SEND_WITH_INV] = "SEND_WITH_INV",
	[ABI_WR_FLUSH] = "FLUSH",
	[ABI_WR_ATOMIC_WRITE] = "ATOMIC_WRITE",
};

static const char *const completions[] = {
	[ABI_WC_SEND] = "SEND",
	[ABI_WC_RDMA_WRITE] = "WRITE",
	[ABI_WC_RDMA_READ] = "READ",
	[ABI_WC_COMP_SWAP] = "CMP_AND_SWP",
	[ABI_WC_FETCH_ADD] = "FETCH_AND_ADD",
	[ABI_WC_BIND_MW] = "BIND_MW",
	[ABI_WC_LOCAL_INV] = "LOCAL_INV",
	[ABI_WC_FLUSH] = "FLUSH",
	[ABI_WC_ATOMIC_WRITE] = "ATOMIC_WRITE",
	[ABI_WC_RECV] = "RECV",
	[ABI_WC_RECV_RDMA_WITH_IMM] = "RECV_RDMA_WITH_IMM",
};

static const char *const statuses[] = {
	[ABI_WC_SUCCESS] = "SUCCESS",
	[ABI_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
	[ABI_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
	[ABI_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
	[ABI_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
	[ABI_WC_MW_BIND_ERR] = "MW_BIND_ERR",
	[ABI_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
	[ABI_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
	[ABI_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
	[ABI_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
	[ABI_WC_REM_OP_ERR] = "REM_OP_ERR",
	[ABI_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
	[ABI_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
	[ABI_WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
	[ABI_WC_FATAL_ERR] = "FATAL_ERR",
	[ABI_WC_GENERAL_ERR] = "GENERAL_ERR",
};

static const char *const asyncs[] = {
	[ABI_EVENT_CQ_ERR] = "CQ_ERR",
	[ABI_EVENT_QP_FATAL] = "QP_FATAL",
	[ABI_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
	[ABI_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR",
	[ABI_EVENT_COMM_EST] = "COMM_EST",
	[ABI_EVENT_SQ_DRAINED] = "SQ_DRAINED",
	[ABI_EVENT_QP_LAST_WQE] = "QP_LAST_WQE",
};

#define NAME_OF(names, i) ((i) < ARRAY_SIZE(names) && (names)[i] ? (names)[i] : "?")

/* NAK codes as the specification names them; an ACK or RNR NAK has a number instead. */
static const char *syndrome_name(uint8_t syndrome)
{
	static const char *const naks[] = {"NAK_PSN_SEQUENCE", "NAK_INVALID_REQUEST",
		"NAK_REMOTE_ACCESS", "NAK_REMOTE_OPERATION", "NAK_INVALID_RD_REQUEST"};

	switch (syndrome & 0x60) {
	case 0x00:
		return "ACK";
	case 0x20:
		return "RNR_NAK";
	case 0x60:
		return NAME_OF(naks, syndrome & 0x1Fu);
	default:
		return "?";
	}
}

/* --- the table -------------------------------------------------------------------------- */

enum what {
	NOTHING,
	ID_HEX,
	ID,
	PSN,
	OTHER_PSN,
	VALUE,
	OTHER,
	OPCODE,	   /* code: BTH */
	REQUEST,   /* code: ABI_WR_* */
	COMPLETED, /* other: ABI_WC_* opcode */
	STATUS,
	STATE,
	OTHER_STATE,
	ASYNC,
	TIMER,
	ACKREQ,
	AGAIN,
	REFUSED,
	SYNDROME, /* with an AETH only */
	MSN,	  /* likewise */
	FAULT,	  /* code: ABI_FAULT_* */
	DIRECTION,
	DROPPED,
	RATE,	/* the upper half of id */
	TARGET, /* the lower */
	ALPHA,	/* in thousandths */
	ALLOWED,
};

#define FIELDS 8

static const struct {
	const char *name;
	struct {
		const char *name;
		enum what what;
	} field[FIELDS];
} rows[TRACE_TYPES] = {
	[TRACE_DOORBELL] = {"doorbell", {{NULL, NOTHING}}},
	[TRACE_FETCH] = {"fetch",
		{{"request", REQUEST}, {"wr_id", ID_HEX}, {"bytes", VALUE}, {"psn", PSN},
			{"last_psn", OTHER_PSN}, {"refused", REFUSED}}},
	[TRACE_TAKE] = {"take", {{"wr_id", ID_HEX}, {"bytes", VALUE}}},
	[TRACE_SEND] = {"send",
		{{"opcode", OPCODE}, {"psn", PSN}, {"bytes", VALUE}, {"ackreq", ACKREQ},
			{"again", AGAIN}, {"syndrome", SYNDROME}, {"msn", MSN}}},
	[TRACE_RECEIVE] = {"receive",
		{{"opcode", OPCODE}, {"psn", PSN}, {"bytes", VALUE}, {"ackreq", ACKREQ},
			{"again", AGAIN}, {"syndrome", SYNDROME}, {"msn", MSN},
			{"dropped", DROPPED}}},
	[TRACE_GO_BACK] = {"go_back", {{"psn", PSN}, {"from", OTHER_PSN}}},
	[TRACE_RETRIES] = {"retries", {{"left", VALUE}}},
	[TRACE_RNR] = {"rnr_retries", {{"left", VALUE}}},
	[TRACE_WINDOW] = {"window", {{"packets", VALUE}, {"before", OTHER}}},
	[TRACE_ARMED] = {"timer_armed", {{"timer", TIMER}, {"after", ID}}},
	[TRACE_FIRED] = {"timer_fired", {{"timer", TIMER}}},
	[TRACE_STOPPED] = {"timer_stopped", {{"timer", TIMER}}},
	[TRACE_STATE] = {"state", {{"state", STATE}, {"before", OTHER_STATE}}},
	[TRACE_COMPLETE] = {"complete",
		{{"of", COMPLETED}, {"wr_id", ID_HEX}, {"status", STATUS}, {"bytes", VALUE}}},
	[TRACE_ASYNC] = {"async_event", {{"type", ASYNC}}},
	[TRACE_MOVE] = {"move", {{"to_worker", VALUE}}},
	[TRACE_INJECT] = {"inject",
		{{"fault", FAULT}, {"direction", DIRECTION}, {"psn", PSN}, {"id", VALUE}}},
	[TRACE_RATE] = {"rate", {{"kbps", RATE}, {"target_kbps", TARGET}, {"alpha_permille", ALPHA},
					{"window", ALLOWED}, {"bytes", VALUE}, {"cnps", OTHER}}},
	[TRACE_RELEASED] = {"released", {{"fault", FAULT}, {"psn", PSN}}},
	[TRACE_LOST] = {"lost", {{"events", ID}}},
	[TRACE_END] = {"destroyed", {{NULL, NOTHING}}},
};

/* --- values ----------------------------------------------------------------------------- */

/* Whether @p e has the field. */
static bool is_there(enum what what, const struct trace_event *e)
{
	switch (what) {
	case ACKREQ:
		return e->flags & TRACE_ACKREQ;
	case AGAIN:
		return e->flags & TRACE_AGAIN;
	case REFUSED:
		return e->flags & TRACE_REFUSED;
	case SYNDROME:
	case MSN:
		return e->flags & TRACE_AETH;
	case DROPPED:
		return e->id >> TRACE_VERDICT_SHIFT;
	case ALLOWED:
		return (e->psn & 0xFFFF) != 0xFFFF;
	default:
		return what != NOTHING;
	}
}

static bool is_flag(enum what what)
{
	return what == ACKREQ || what == AGAIN || what == REFUSED;
}

static const char *name_of(enum what what, const struct trace_event *e)
{
	switch (what) {
	case OPCODE:
		return opcode_row(e->code)->name;
	case REQUEST:
		return NAME_OF(requests, e->code);
	case COMPLETED:
		return NAME_OF(completions, e->other);
	case STATUS:
		return NAME_OF(statuses, e->code);
	case STATE:
		return qp_state_name(e->code);
	case OTHER_STATE:
		return qp_state_name(e->other);
	case ASYNC:
		return NAME_OF(asyncs, e->code);
	case TIMER:
		return e->flags & TRACE_RNR_TIMER ? "RNR" : "ACK";
	case FAULT:
		return NAME_OF(inject_names, e->code);
	case DIRECTION:
		return e->flags & TRACE_IN ? "rx" : "tx";
	case SYNDROME:
		return syndrome_name((uint8_t)e->id);
	case DROPPED:
		return drop_name((enum drop)(e->id >> TRACE_VERDICT_SHIFT));
	default:
		return NULL;
	}
}

/* Of a TRACE_RATE, in millionths. */
static uint64_t alpha_of(const struct trace_event *e)
{
	return (uint64_t)(e->psn >> 16) * 1000000 / 65535;
}

static uint64_t number_of(enum what what, const struct trace_event *e)
{
	switch (what) {
	case OPCODE:
		return e->code;
	case ID:
	case ID_HEX:
		return e->id;
	case PSN:
		return e->psn;
	case RATE:
		return e->id >> 32;
	case TARGET:
		return e->id & UINT32_MAX;
	case ALPHA:
		return alpha_of(e) / 1000;
	case ALLOWED:
		return e->psn & 0xFFFF;
	case VALUE:
		return e->value;
	default:
		return e->other;
	}
}

/* An opcode without a name is a number. */
static bool is_hex(enum what what)
{
	return what == ID_HEX || what == OPCODE;
}

/* --- text ------------------------------------------------------------------------------- */

struct line {
	char *text;
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(l->text + l->len, TRACE_LINE - l->len, format, ap);
	va_end(ap);
	l->len += (size_t)n;
	if (l->len > TRACE_LINE - 1)
		l->len = TRACE_LINE - 1;
}

static void add_field(
	struct line *l, const char *field, enum what what, const struct trace_event *e)
{
	const char *name = name_of(what, e);

	add(l, " %s", field);
	if (is_flag(what))
		return;
	if (name)
		add(l, " %s", name);
	else
		add(l, is_hex(what) ? " 0x%" PRIx64 : " %" PRIu64, number_of(what, e));
}

size_t trace_text(char text[TRACE_LINE], const struct trace_event *e, uint64_t base)
{
	struct line l = {.text = text};

	add(&l, "%12" PRIu64 " worker %u %s", e->time - base, e->worker, rows[e->type].name);
	for (unsigned i = 0; i < FIELDS; i++)
		if (is_there(rows[e->type].field[i].what, e))
			add_field(&l, rows[e->type].field[i].name, rows[e->type].field[i].what, e);
	return l.len;
}

/* --- JSON ------------------------------------------------------------------------------- */

static json_t *json_of(enum what what, const struct trace_event *e)
{
	const char *name = name_of(what, e);

	if (is_flag(what))
		return json_true();
	if (name)
		return json_string(name);
	if (is_hex(what))
		return json_sprintf("0x%" PRIx64, number_of(what, e));
	return json_integer((json_int_t)number_of(what, e));
}

size_t trace_json(char text[TRACE_LINE], const struct trace_event *e, uint64_t base)
{
	json_t *o = json_object();
	size_t len;

	json_object_set_new(o, "ns", json_integer((json_int_t)(e->time - base)));
	json_object_set_new(o, "worker", json_integer(e->worker));
	json_object_set_new(o, "event", json_string(rows[e->type].name));
	for (unsigned i = 0; i < FIELDS; i++)
		if (is_there(rows[e->type].field[i].what, e))
			json_object_set_new(o, rows[e->type].field[i].name,
				json_of(rows[e->type].field[i].what, e));
	len = json_dumpb(o, text, TRACE_LINE, JSON_COMPACT);
	json_decref(o);
	return len < TRACE_LINE ? len : TRACE_LINE;
}

/* --- CSV -------------------------------------------------------------------------------- */

static uint64_t goodput(struct trace_goodput *g, const struct trace_event *e)
{
	uint64_t time = e->time - g->since;

	g->bytes += e->value;
	if (time >= TRACE_GOODPUT_NS) {
		g->rate = (uint64_t)((double)g->bytes * 8e9 / (double)time);
		g->since = e->time;
		g->bytes = 0;
	}
	return g->rate;
}

size_t trace_csv(char text[TRACE_LINE], const struct trace_event *e, uint32_t qpn, uint64_t base,
	struct trace_goodput *g)
{
	struct line l = {.text = text};
	uint64_t ns = e->time - base, alpha = alpha_of(e);

	add(&l, "%" PRIu64 ".%09" PRIu64 ",%" PRIu32, ns / 1000000000, ns % 1000000000, qpn);
	add(&l, ",%" PRIu64 ",%" PRIu64, number_of(RATE, e) * 1000, number_of(TARGET, e) * 1000);
	add(&l, ",%" PRIu64 ".%06" PRIu64 ",", alpha / 1000000, alpha % 1000000);
	if (is_there(ALLOWED, e))
		add(&l, "%" PRIu64, number_of(ALLOWED, e));
	add(&l, ",,%" PRIu64 ",%" PRIu32, goodput(g, e), e->other); /* no RTT */
	return l.len;
}
