/* SPDX-License-Identifier: BSD-3-Clause */
/* Events as lines of text and as JSON; one table describes both. */
#include <string.h>
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

/* --- writing ---------------------------------------------------------------------------- */

struct pen {
	char *line;
	size_t len;
	bool json;
};

static void put_chars(struct pen *p, const char *s, size_t n)
{
	if (n > TRACE_LINE - p->len)
		n = TRACE_LINE - p->len;
	memcpy(p->line + p->len, s, n);
	p->len += n;
}

static void put(struct pen *p, const char *s)
{
	while (*s)
		put_chars(p, s++, 1);
}

/* Right-aligned, at least @p width wide. */
static void put_number(struct pen *p, uint64_t v, unsigned base, unsigned width)
{
	char digits[24];
	unsigned at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	while (sizeof(digits) - at < width)
		digits[--at] = ' ';
	put_chars(p, digits + at, sizeof(digits) - at);
}

static void put_hex(struct pen *p, uint64_t v)
{
	put(p, p->json ? "\"0x" : "0x");
	put_number(p, v, 16, 1);
	if (p->json)
		put(p, "\"");
}

static void put_name(struct pen *p, const char *name)
{
	if (p->json)
		put(p, "\"");
	put(p, name);
	if (p->json)
		put(p, "\"");
}

static void put_opcode(struct pen *p, uint8_t code)
{
	const char *name = opcode_row(code)->name;

	if (name)
		put_name(p, name);
	else
		put_hex(p, code);
}

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

static void put_value(struct pen *p, enum what what, const struct trace_event *e)
{
	const char *name = name_of(what, e);

	if (name)
		put_name(p, name);
	else if (what == OPCODE)
		put_opcode(p, e->code);
	else if (what == ID_HEX)
		put_hex(p, e->id);
	else
		put_number(p,
			what == ID					    ? e->id
			: what == PSN					    ? e->psn
			: what == RATE					    ? e->id >> 32
			: what == TARGET				    ? e->id & UINT32_MAX
			: what == ALPHA					    ? alpha_of(e) / 1000
			: what == ALLOWED				    ? e->psn & 0xFFFF
			: what == VALUE					    ? e->value
			: what == MSN || what == OTHER || what == OTHER_PSN ? e->other
									    : 1,
			10, 1);
}

static void put_fields(struct pen *p, const struct trace_event *e)
{
	for (unsigned i = 0; i < FIELDS; i++) {
		enum what what = rows[e->type].field[i].what;

		if (!is_there(what, e))
			continue;
		put(p, p->json ? ",\"" : " ");
		put(p, rows[e->type].field[i].name);
		if (p->json)
			put(p, is_flag(what) ? "\":true" : "\":");
		else if (!is_flag(what))
			put(p, " ");
		if (!is_flag(what))
			put_value(p, what, e);
	}
}

size_t trace_text(char line[TRACE_LINE], const struct trace_event *e, uint64_t base)
{
	struct pen p = {.line = line};

	put_number(&p, e->time - base, 10, 12);
	put(&p, " worker ");
	put_number(&p, e->worker, 10, 1);
	put(&p, " ");
	put(&p, rows[e->type].name);
	put_fields(&p, e);
	return p.len;
}

size_t trace_json(char line[TRACE_LINE], const struct trace_event *e, uint64_t base)
{
	struct pen p = {.line = line, .json = true};

	put(&p, "{\"ns\":");
	put_number(&p, e->time - base, 10, 1);
	put(&p, ",\"worker\":");
	put_number(&p, e->worker, 10, 1);
	put(&p, ",\"event\":\"");
	put(&p, rows[e->type].name);
	put(&p, "\"");
	put_fields(&p, e);
	put(&p, "}");
	return p.len;
}

/* @p v millionths, or with @p unit 1000000000 billionths. */
static void put_fraction(struct pen *p, uint64_t v, uint64_t unit)
{
	put_number(p, v / unit, 10, 1);
	put(p, ".");
	for (unit /= 10; unit; unit /= 10)
		put_number(p, v / unit % 10, 10, 1);
}

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

size_t trace_csv(char line[TRACE_LINE], const struct trace_event *e, uint32_t qpn, uint64_t base,
	struct trace_goodput *g)
{
	struct pen p = {.line = line};

	put_fraction(&p, e->time - base, 1000000000);
	put(&p, ",");
	put_number(&p, qpn, 10, 1);
	put(&p, ",");
	put_number(&p, (e->id >> 32) * 1000, 10, 1);
	put(&p, ",");
	put_number(&p, (e->id & UINT32_MAX) * 1000, 10, 1);
	put(&p, ",");
	put_fraction(&p, alpha_of(e), 1000000);
	put(&p, ",");
	if ((e->psn & 0xFFFF) != 0xFFFF)
		put_number(&p, e->psn & 0xFFFF, 10, 1);
	put(&p, ",,"); /* no RTT */
	put_number(&p, goodput(g, e), 10, 1);
	put(&p, ",");
	put_number(&p, e->other, 10, 1);
	return p.len;
}
