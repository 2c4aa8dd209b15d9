/* SPDX-License-Identifier: BSD-3-Clause */
/* The QP state machine: all transitions. qp_states_test.c tests the states. */
#include <errno.h>
#include <stdlib.h>
#include "core_command.h"
#include "fixture.h"
#include "qp.h"
#include "seq24.h"
#include "transition.h"

/* Bits of enum ibv_qp_attr_mask, as numbers: not the code's own names. */
enum {
	STATE = 0x1,
	CUR = 0x2,
	SQD_NOTIFY = 0x4,
	ACCESS = 0x8,
	PKEY = 0x10,
	PORT = 0x20,
	QKEY = 0x40,
	AV = 0x80,
	MTU = 0x100,
	TIMEOUT = 0x200,
	RETRY = 0x400,
	RNR = 0x800,
	RQ_PSN_ = 0x1000,
	RD = 0x2000,
	ALT = 0x4000,
	MIN_RNR = 0x8000,
	SQ_PSN_ = 0x10000,
	DEST_RD = 0x20000,
	MIG = 0x40000,
	DEST = 0x100000,
};

enum {
	RESET,
	INIT,
	RTR,
	RTS,
	SQD,
	SQE,
	ERR,
	STATES
};

struct rule {
	int from, to;
	uint32_t required, optional;
};

/* QPS-01: without attributes, of every type. */
static const struct rule bare[] = {{RESET, RESET, 0, 0}, {INIT, RESET, 0, 0}, {INIT, ERR, 0, 0},
	{RTR, RESET, 0, 0}, {RTR, ERR, 0, 0}, {RTS, RESET, 0, 0}, {RTS, ERR, 0, 0},
	{SQD, RESET, 0, 0}, {SQD, ERR, 0, 0}, {SQE, RESET, 0, 0}, {SQE, ERR, 0, 0},
	{ERR, RESET, 0, 0}, {ERR, ERR, 0, 0}};

/* The others, from the conformance list; XRC as ib_modify_qp_is_ok() of Linux has it. */
static const struct rule rc[] = {
	{RESET, INIT, PKEY | PORT | ACCESS, 0},
	{INIT, INIT, 0, PKEY | PORT | ACCESS},
	{INIT, RTR, AV | MTU | DEST | RQ_PSN_ | DEST_RD | MIN_RNR, ALT | ACCESS | PKEY},
	{RTR, RTS, TIMEOUT | RETRY | RNR | SQ_PSN_ | RD, CUR | ALT | ACCESS | MIN_RNR | MIG},
	{RTS, RTS, 0, CUR | ACCESS | ALT | MIG | MIN_RNR},
	{RTS, SQD, 0, SQD_NOTIFY},
	{SQD, RTS, 0, CUR | ALT | ACCESS | MIN_RNR | MIG},
	{SQD, SQD, 0,
		PORT | AV | TIMEOUT | RETRY | RNR | RD | DEST_RD | ALT | ACCESS | PKEY | MIN_RNR |
			MIG},
};
static const struct rule uc[] = {
	{RESET, INIT, PKEY | PORT | ACCESS, 0},
	{INIT, INIT, 0, PKEY | PORT | ACCESS},
	{INIT, RTR, AV | MTU | DEST | RQ_PSN_, ALT | ACCESS | PKEY},
	{RTR, RTS, SQ_PSN_, CUR | ALT | ACCESS | MIG},
	{RTS, RTS, 0, CUR | ACCESS | ALT | MIG},
	{RTS, SQD, 0, SQD_NOTIFY},
	{SQD, RTS, 0, CUR | ALT | ACCESS | MIG},
	{SQD, SQD, 0, AV | ALT | ACCESS | PKEY | MIG},
	{SQE, RTS, 0, CUR | ACCESS},
};
static const struct rule ud[] = {
	{RESET, INIT, PKEY | PORT | QKEY, 0},
	{INIT, INIT, 0, PKEY | PORT | QKEY},
	{INIT, RTR, 0, PKEY | QKEY},
	{RTR, RTS, SQ_PSN_, CUR | QKEY},
	{RTS, RTS, 0, CUR | QKEY},
	{RTS, SQD, 0, SQD_NOTIFY},
	{SQD, RTS, 0, CUR | QKEY},
	{SQD, SQD, 0, PKEY | QKEY},
	{SQE, RTS, 0, CUR | QKEY},
};
static const struct rule gsi[] = {
	{RESET, INIT, PKEY | QKEY, 0},
	{INIT, INIT, 0, PKEY | QKEY},
	{INIT, RTR, 0, PKEY | QKEY},
	{RTR, RTS, SQ_PSN_, CUR | QKEY},
	{RTS, RTS, 0, CUR | QKEY},
	{RTS, SQD, 0, SQD_NOTIFY},
	{SQD, RTS, 0, CUR | QKEY},
	{SQD, SQD, 0, PKEY | QKEY},
	{SQE, RTS, 0, CUR | QKEY},
};
static const struct rule xrc_send[] = {
	{RESET, INIT, PKEY | PORT | ACCESS, 0},
	{INIT, INIT, 0, PKEY | PORT | ACCESS},
	{INIT, RTR, AV | MTU | DEST | RQ_PSN_, ALT | ACCESS | PKEY},
	{RTR, RTS, TIMEOUT | RETRY | RNR | SQ_PSN_ | RD, CUR | ALT | ACCESS | MIG},
	{RTS, RTS, 0, CUR | ACCESS | ALT | MIG},
	{RTS, SQD, 0, SQD_NOTIFY},
	{SQD, RTS, 0, CUR | ALT | ACCESS | MIG},
	{SQD, SQD, 0, PORT | AV | TIMEOUT | RETRY | RNR | RD | ALT | ACCESS | PKEY | MIG},
};
static const struct rule xrc_recv[] = {
	{RESET, INIT, PKEY | PORT | ACCESS, 0},
	{INIT, INIT, 0, PKEY | PORT | ACCESS},
	{INIT, RTR, AV | MTU | DEST | RQ_PSN_ | DEST_RD | MIN_RNR, ALT | ACCESS | PKEY},
	{RTR, RTS, TIMEOUT | SQ_PSN_, CUR | ALT | ACCESS | MIN_RNR | MIG},
	{RTS, RTS, 0, CUR | ACCESS | ALT | MIG | MIN_RNR},
	{RTS, SQD, 0, SQD_NOTIFY},
	{SQD, RTS, 0, CUR | ALT | ACCESS | MIN_RNR | MIG},
	{SQD, SQD, 0, PORT | AV | TIMEOUT | DEST_RD | ALT | ACCESS | PKEY | MIN_RNR | MIG},
};

#define TYPE(number, rows, sqe)                                   \
	{                                                         \
		number, rows, sizeof(rows) / sizeof(rows[0]), sqe \
	}
static const struct {
	uint8_t type; /* as enum ibv_qp_type */
	const struct rule *rule;
	unsigned rules;
	bool has_sqe;
} types[] = {TYPE(2, rc, false), TYPE(3, uc, true), TYPE(4, ud, true), TYPE(1, gsi, true),
	TYPE(9, xrc_send, false), TYPE(10, xrc_recv, false)};
#define TYPES (sizeof(types) / sizeof(types[0]))

/* Where a query tells what a bit sets. */
static const struct {
	uint32_t bit;
	size_t off, size;
} fields[] = {
#define F(field) offsetof(struct abi_qp_attr, field), sizeof(((struct abi_qp_attr *)0)->field)
	{SQD_NOTIFY, F(en_sqd_async_notify)},
	{ACCESS, F(access_flags)},
	{PKEY, F(pkey_index)},
	{PORT, F(port)},
	{QKEY, F(qkey)},
	{AV, F(ah)},
	{MTU, F(path_mtu)},
	{TIMEOUT, F(timeout)},
	{RETRY, F(retry_cnt)},
	{RNR, F(rnr_retry)},
	{RQ_PSN_, F(rq_psn)},
	{RD, F(max_rd_atomic)},
	{MIN_RNR, F(min_rnr_timer)},
	{SQ_PSN_, F(sq_psn)},
	{DEST_RD, F(max_dest_rd_atomic)},
	{DEST, F(dest_qpn)},
};

#define NEW_HOPS 33

/* Another value of each attribute than start_in() sets. */
static struct abi_qp_attr new_values(int from)
{
	return (struct abi_qp_attr){.cur_qp_state = (uint8_t)from,
		.en_sqd_async_notify = 1,
		.access_flags = ABI_ACCESS_REMOTE_READ,
		.path_mtu = 512,
		.qkey = 0x4321,
		.rq_psn = 0x777,
		.sq_psn = 0x888,
		.dest_qpn = 0x99,
		.pkey_index = 1,
		.port = 2,
		.timeout = 9,
		.retry_cnt = 3,
		.rnr_retry = 4,
		.min_rnr_timer = 5,
		.max_rd_atomic = 6,
		.max_dest_rd_atomic = 8,
		.ah = {.dgid = {7}, .sl = 3, .port = 2, .is_global = 1}};
}

static const struct rule *find_rule(const struct rule *rule, unsigned n, int from, int to)
{
	for (unsigned i = 0; i < n; i++)
		if (rule[i].from == from && rule[i].to == to)
			return &rule[i];
	return NULL;
}

static const struct rule *rule_of(unsigned t, int from, int to)
{
	const struct rule *r = find_rule(types[t].rule, types[t].rules, from, to);

	return r ? r : find_rule(bare, ARRAY_SIZE(bare), from, to);
}

/* Of type @p t. */
static void start_as(unsigned t, int state)
{
	l.spec.type = types[t].type;
	lone_start_in(&l, ABI_QPS_RESET);
	l.qp->qp->attr.port = types[t].type == ABI_QPT_GSI; /* it has one from the start */
	lone_climb(&l, state <= RTS ? (unsigned)state : ABI_QPS_RTS);
	if (state == SQD)
		assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	if (state == SQE)
		l.qp->qp->state = ABI_QPS_SQE; /* how it comes to that: uc_test.c */
	if (state == ERR)
		assert_int_equal(app_to_state(l.qp, ABI_QPS_ERR, l.now), 0);
}

static void start_in(int state)
{
	start_as(0, state);
}

static void again(void)
{
	lone_fini(&l);
	lone_init(&l);
}

/* With an address vector of port @p port. */
static int try_from(unsigned port, int to, uint32_t mask, const struct abi_qp_attr *attr)
{
	struct path_spec path = host_path(l.host, l.host, port - 1, HOST_GID_IPV4);
	struct abi_qp_attr a = *attr;

	path.dgid[15] = 2;
	path.local = false;
	path.hop_limit = NEW_HOPS;
	a.qp_state = (uint8_t)to;
	return app_modify(l.qp, mask | STATE, &a, &path, l.now);
}

/* With an address vector of the port that the QP has or is given. */
static int try(int to, uint32_t mask, const struct abi_qp_attr *attr)
{
	unsigned port = mask & PORT ? attr->port : l.qp->qp->attr.port;

	return try_from(port && port <= HOST_PORTS ? port : 1, to, mask, attr);
}

/* Tries and, when it is refused, checks that nothing changed (QPS-12, QPS-14). */
static int try_unchanged(int to, uint32_t mask, const struct abi_qp_attr *attr)
{
	static struct qp before;
	int rc;

	before = *l.qp->qp;
	rc = try(to, mask, attr);
	if (rc)
		assert_memory_equal(&before, l.qp->qp, sizeof(before));
	return rc;
}

static struct abi_qp_attr query(void)
{
	struct core_cmd cmd = {.type = CORE_CMD_QUERY_QP, .qp = l.qp->qp};

	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	return cmd.attr;
}

/* The attributes of @p mask are those of @p a now and all else is as in @p want; what is worked out
 * of them is, too. */
static void assert_set(struct abi_qp_attr want, int to, uint32_t mask, const struct abi_qp_attr *a)
{
	const struct qp *qp = l.qp->qp;
	struct abi_qp_attr now = query();

	for (unsigned i = 0; i < ARRAY_SIZE(fields); i++)
		if (mask & fields[i].bit)
			memcpy((uint8_t *)&want + fields[i].off, (const uint8_t *)a + fields[i].off,
				fields[i].size);
	if (to == RESET)
		memset(&want, 0, sizeof(want));
	want.qp_state = want.cur_qp_state = (uint8_t)to;
	assert_memory_equal(&now, &want, sizeof(now));
	if (mask & (PORT | PKEY))
		assert_int_equal(qp->pkey, 0x8000 | want.port << 4 | want.pkey_index);
	if (mask & AV)
		assert_int_equal(qp->path.hdr[qp->path.l3_off + 8], NEW_HOPS);
	if (mask & TIMEOUT)
		assert_int_equal(qp->ack_timeout, 4096ull << want.timeout);
	if (mask & MTU)
		assert_int_equal(1u << qp->mtu_shift, want.path_mtu);
}

/* proves QPS-01 */
static void core_cmd__every_transition(void **state)
{
	for (unsigned i = 0; i < TYPES * STATES * (STATES + 1); i++) {
		unsigned t = i / (STATES * (STATES + 1));
		int from = i / (STATES + 1) % STATES, to = i % (STATES + 1);
		const struct rule *r = rule_of(t, from, to);
		struct abi_qp_attr attr = l.attr;

		if (from == SQE && !types[t].has_sqe)
			continue;
		start_as(t, from);
		if (r) {
			assert_int_equal(try(to, r->required, &attr), 0);
			assert_int_equal(l.qp->qp->state, to);
		} else {
			assert_int_equal(try_unchanged(to, 0, &attr), -EINVAL);
			assert_int_equal(try_unchanged(to, ~0u >> 11, &attr), -EINVAL);
		}
		again();
	}
}

static void every_port_has_two_pkeys(void)
{
	for (unsigned p = 0; p < HOST_PORTS; p++) {
		l.host->ports.port[p].pkeys = 2;
		for (unsigned k = 0; k < 2; k++)
			l.host->ports.port[p].pkey[k] = 0x8000 | (p + 1) << 4 | k;
	}
}

/* Each required one missing, each other bit added, and all together; what is taken counts. */
static void every_attribute(unsigned t, const struct rule *r)
{
	for (unsigned bit = 0; bit < 32; bit++) {
		uint32_t b = bit ? 1u << bit : r->optional & ~(uint32_t)(ALT | MIG);
		struct abi_qp_attr attr = new_values(r->from), old;
		uint32_t mask = r->required ^ b;
		int want = 0;

		if ((mask & b) != b || (b & ~(r->required | r->optional)))
			want = -EINVAL;
		if (b & (ALT | MIG)) /* no path migration: EVT-08 */
			want = -EINVAL;
		if (r->from == SQD && b == PORT) /* away from the port of its address vector */
			want = -EINVAL;
		every_port_has_two_pkeys();
		start_as(t, r->from);
		old = query();
		assert_int_equal(try_unchanged(r->to, mask, &attr), want);
		if (!want)
			assert_set(old, r->to, mask, &attr);
		again();
	}
}

/* proves QPS-02, QPS-03, QPS-04, QPS-05, QPS-06, QPS-07, QPS-08, QPS-09, QPS-10, QPS-11, QPS-12,
 * QPS-14, EVT-08. */
static void core_cmd__every_attribute(void **state)
{
	for (unsigned t = 0; t < TYPES; t++) {
		for (unsigned i = 0; i < types[t].rules; i++)
			every_attribute(t, &types[t].rule[i]);
		for (unsigned i = 0; i < ARRAY_SIZE(bare); i++)
			if (bare[i].from != SQE || types[t].has_sqe)
				every_attribute(t, &bare[i]);
	}
}

/* proves QPS-12, QPS-13: the words of a refusal. */
static void core_cmd__says_what_is_wrong(void **state)
{
	static const struct {
		int from, to;
		uint32_t mask;
		int refusal;
		uint32_t attrs;
		uint8_t port;
	} row[] = {
		{RESET, RTS, 0, MODIFY_NO_TRANSITION, 0, 1},
		{INIT, RTR, AV | MTU, MODIFY_MISSING, DEST | RQ_PSN_ | DEST_RD | MIN_RNR, 1},
		{RESET, INIT, PKEY | PORT | ACCESS | AV | QKEY, MODIFY_FORBIDDEN, AV | QKEY, 1},
		{SQD, RTS, CUR, MODIFY_CUR_STATE, 0, 1},
		{RTS, RTS, MIN_RNR, MODIFY_VALUE, MIN_RNR, 1},
		{RTS, RTS, ALT, MODIFY_VALUE, ALT, 1},
		{RESET, INIT, PKEY | PORT | ACCESS, MODIFY_VALUE, PORT, HOST_PORTS + 1},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
			.mask = row[i].mask | STATE,
			.attr = {.qp_state = (uint8_t)row[i].to,
				.cur_qp_state = INIT,
				.port = row[i].port,
				.min_rnr_timer = 32}};

		start_in(row[i].from);
		cmd.qp = l.qp->qp;
		assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), -EINVAL);
		assert_int_equal(cmd.result.refusal, row[i].refusal);
		assert_int_equal(cmd.result.state, row[i].from);
		assert_int_equal(cmd.result.attrs, row[i].attrs);
		again();
	}
}

/* proves QPS-13 */
static void core_cmd__cur_state_must_match(void **state)
{
	for (int from = RTR; from <= SQD; from++) {
		struct abi_qp_attr attr = l.attr;
		uint32_t mask = CUR | rule_of(0, from, RTS)->required;

		start_in(from);
		for (int s = STATES; s >= RESET; s--) { /* the right one changes the state */
			if (s == from)
				continue;
			attr.cur_qp_state = (uint8_t)s;
			assert_int_equal(try_unchanged(RTS, mask, &attr), -EINVAL);
		}
		attr.cur_qp_state = (uint8_t)from;
		assert_int_equal(try(RTS, mask, &attr), 0);
		assert_int_equal(l.qp->qp->state, RTS);
		lone_fini(&l);
		lone_init(&l);
	}
}

/* proves QPS-14, QPS-15 (ETH-06) */
static void core_cmd__values(void **state)
{
	static const struct {
		int from, to;
		uint32_t bit;
		size_t off;
		uint32_t size;
		uint32_t bad;
		int want;
	} row[] = {
#define F(field) offsetof(struct abi_qp_attr, field), sizeof(((struct abi_qp_attr *)0)->field)
		{RESET, INIT, PORT, F(port), 0, -EINVAL},
		{RESET, INIT, PORT, F(port), HOST_PORTS, 0},
		{RESET, INIT, PORT, F(port), HOST_PORTS + 1, -EINVAL},
		{RESET, INIT, PKEY, F(pkey_index), 1, -EINVAL},
		{RESET, INIT, ACCESS, F(access_flags), 0, 0},
		{RESET, INIT, ACCESS, F(access_flags), 1u << 31, -EINVAL},
		{INIT, RTR, MTU, F(path_mtu), 0, -EINVAL},
		{INIT, RTR, MTU, F(path_mtu), 128, -EINVAL},
		{INIT, RTR, MTU, F(path_mtu), 1000, -EINVAL},
		{INIT, RTR, MTU, F(path_mtu), 256, 0},
		{INIT, RTR, MTU, F(path_mtu), 2048, 0},
		{INIT, RTR, MTU, F(path_mtu), 4096, -EINVAL}, /* more than active_mtu */
		{INIT, RTR, MTU, F(path_mtu), 8192, -EINVAL},
		{INIT, RTR, MIN_RNR, F(min_rnr_timer), 31, 0},
		{INIT, RTR, MIN_RNR, F(min_rnr_timer), 32, -EINVAL},
		{INIT, RTR, DEST_RD, F(max_dest_rd_atomic), RD_ATOMIC_MAX, 0},
		{INIT, RTR, DEST_RD, F(max_dest_rd_atomic), RD_ATOMIC_MAX + 1, -EINVAL},
		{RTR, RTS, TIMEOUT, F(timeout), 31, 0},
		{RTR, RTS, TIMEOUT, F(timeout), 32, -EINVAL},
		{RTR, RTS, RETRY, F(retry_cnt), 7, 0},
		{RTR, RTS, RETRY, F(retry_cnt), 8, -EINVAL},
		{RTR, RTS, RNR, F(rnr_retry), 7, 0},
		{RTR, RTS, RNR, F(rnr_retry), 8, -EINVAL},
		{RTR, RTS, RD, F(max_rd_atomic), RD_ATOMIC_MAX, 0},
		{RTR, RTS, RD, F(max_rd_atomic), RD_ATOMIC_MAX + 1, -EINVAL},
#undef F
	};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct abi_qp_attr attr = l.attr;

		memset((uint8_t *)&attr + row[i].off, 0, row[i].size);
		memcpy((uint8_t *)&attr + row[i].off, &row[i].bad, row[i].size);
		start_in(row[i].from);
		l.host->ports.port[0].active_mtu = 2048;
		l.host->ports.port[HOST_PORTS].pkeys = 1; /* only `count` says that it is none */
		assert_int_equal(try_unchanged(row[i].to,
					 rule_of(0, row[i].from, row[i].to)->required, &attr),
			row[i].want);
		lone_fini(&l);
		lone_init(&l);
	}
}

/* proves QPS-15: a port's P_Key table is looked at for the index that stays, too. */
static void core_cmd__pkey_index_of_another_port(void **state)
{
	struct abi_qp_attr attr = l.attr;

	attr.pkey_index = 1;
	attr.port = 1;
	start_in(INIT);
	l.host->ports.port[0].pkeys = 2;
	l.host->ports.port[0].pkey[1] = 0x8001;
	assert_int_equal(try(INIT, PKEY, &attr), 0);
	assert_int_equal(l.qp->qp->pkey, 0x8001);
	attr.port = 2;
	assert_int_equal(try_unchanged(INIT, PORT, &attr), -EINVAL);
	assert_int_equal(try_unchanged(INIT, PORT | PKEY, &attr), -EINVAL);
	attr.pkey_index = 0;
	assert_int_equal(try(INIT, PORT | PKEY, &attr), 0);
}

static struct modify_result refused_from(
	unsigned port, int to, uint32_t mask, const struct abi_qp_attr *attr)
{
	struct path_spec path = host_path(l.host, l.host, port - 1, HOST_GID_IPV4);
	struct core_cmd cmd = {.type = CORE_CMD_MODIFY_QP,
		.qp = l.qp->qp,
		.mask = mask | STATE,
		.attr = *attr,
		.path = path,
		.sgid = *path.sgid};
	static struct qp before;

	before = *l.qp->qp;
	cmd.attr.qp_state = (uint8_t)to;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), -EINVAL);
	assert_memory_equal(&before, l.qp->qp, sizeof(before));
	assert_int_equal(cmd.result.refusal, MODIFY_VALUE);
	return cmd.result;
}

/* proves QPS-15, BTH-11, VAL-09: the address vector leads through the QP's own port. */
static void core_cmd__address_vector_of_another_port(void **state)
{
	struct modify_result v;

	start_in(INIT);
	v = refused_from(2, RTR, rule_of(0, INIT, RTR)->required, &l.attr);
	assert_int_equal(v.attrs, AV);
	assert_int_equal(v.port, 1);
	assert_int_equal(try_from(1, RTR, rule_of(0, INIT, RTR)->required, &l.attr), 0);
}

/* proves QPS-10, BTH-11, VAL-09: in SQD the port and the address vector change together. */
static void core_cmd__sqd_to_another_port(void **state)
{
	struct abi_qp_attr attr = new_values(SQD);

	every_port_has_two_pkeys();
	start_in(SQD);
	assert_int_equal(refused_from(1, SQD, PORT, &attr).attrs, PORT);
	assert_int_equal(refused_from(1, SQD, PORT | AV, &attr).attrs, AV);
	assert_int_equal(try_from(2, SQD, AV, &attr), 0); /* it brings its port along */
	assert_int_equal(query().port, 2);
	assert_int_equal(l.qp->qp->path.port, 1);
	assert_int_equal(l.qp->qp->pkey, 0x8020);
	l.host->ports.port[0].pkeys = 0;
	assert_int_equal(refused_from(1, SQD, AV, &attr).attrs, PKEY);
	assert_int_equal(try_from(2, SQD, AV | PORT, &attr), 0);
	attr.port = 1;
	attr.pkey_index = 0;
	l.host->ports.port[0].pkeys = 1;
	assert_int_equal(try_from(1, SQD, AV | PORT | PKEY, &attr), 0);
	assert_int_equal(l.qp->qp->pkey, 0x8010);
}

static unsigned sport(void)
{
	return path_sport(&l.qp->qp->path);
}

/* proves UDP-11: an address vector that is given in SQD has the source port of its own flow label,
 * or of the QPNs, and not that of the one before. */
static void core_cmd__sqd_source_port_of_the_new_address_vector(void **state)
{
	static const uint32_t label[] = {0x12345, 0, 0xFFFFF, 0x00001, 0};
	struct path_spec path = host_path(l.host, l.host, 0, HOST_GID_IPV4);

	start_in(SQD);
	for (unsigned i = 0; i < ARRAY_SIZE(label); i++) {
		uint32_t of = label[i] ? label[i] : flow_label_of_qpns(l.qp->qp->qpn, PEER_QPN);

		path.flow_label = label[i];
		assert_int_equal(app_modify(l.qp, AV, &l.attr, &path, l.now), 0);
		assert_int_equal(sport(), flow_label_to_sport(of));
		assert_int_equal(app_to_state(l.qp, ABI_QPS_RTS, l.now), 0);
		assert_int_equal(sport(), flow_label_to_sport(of));
		assert_int_equal(app_to_state(l.qp, ABI_QPS_SQD, l.now), 0);
	}
}

/* proves QPS-10: a UC QP keeps its port in SQD. */
static void core_cmd__sqd_of_uc_keeps_its_port(void **state)
{
	struct abi_qp_attr attr = new_values(SQD);

	start_as(1, SQD);
	assert_int_equal(refused_from(2, SQD, AV, &attr).attrs, AV);
	assert_int_equal(try_from(1, SQD, AV, &attr), 0);
}

/* proves QPS-15: what goes to another port fits there; at its own port a QP keeps its path MTU. */
static void core_cmd__sqd_to_a_port_of_smaller_mtu(void **state)
{
	struct abi_qp_attr attr = new_values(SQD);

	start_in(SQD);
	for (unsigned p = 0; p < HOST_PORTS; p++)
		l.host->ports.port[p].active_mtu = 512;
	assert_int_equal(query().path_mtu, 1024);
	assert_int_equal(refused_from(2, SQD, AV, &attr).attrs, MTU);
	assert_int_equal(try_from(1, SQD, AV, &attr), 0);
	l.host->ports.port[1].active_mtu = 1024;
	assert_int_equal(try_from(2, SQD, AV, &attr), 0);
}

/* proves QPS-15, GID-07: an entry without a P_Key is none. */
static void core_cmd__empty_pkey(void **state)
{
	struct abi_qp_attr attr = l.attr;

	start_in(RESET);
	l.host->ports.port[0].pkeys = 3;
	l.host->ports.port[0].pkey[2] = 0x8000;
	for (attr.pkey_index = 1; attr.pkey_index < 3; attr.pkey_index++)
		assert_int_equal(refused_from(1, INIT, PKEY | PORT | ACCESS, &attr).attrs, PKEY);
}

/* proves ETH-06: service levels 8 to 15 do not exist on a RoCE port. */
static void core_cmd__service_level(void **state)
{
	struct path_spec path;
	struct abi_qp_attr attr = l.attr;

	start_in(INIT);
	path = host_path(l.host, l.host, 0, HOST_GID_IPV4);
	attr.qp_state = ABI_QPS_RTR;
	attr.ah.sl = 8;
	assert_int_equal(app_to_rtr(l.qp, &attr, &path, l.now), -EINVAL);
	attr.ah.sl = 7;
	assert_int_equal(app_to_rtr(l.qp, &attr, &path, l.now), 0);
}

/* proves REQ-03, QPS-15: PSNs are masked to 24 bits; RSP-01, REQ-03. */
static void core_cmd__psns_are_24_bits(void **state)
{
	l.attr.rq_psn = 0xAB000100;
	l.attr.sq_psn = 0xCD000200;
	l.attr.dest_qpn = 0xEF000000 | PEER_QPN; /* lone.c sees what is sent there */
	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 1, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+1!");
	assert_int_equal(l.qp->qp->resp.epsn, 0x100);
}

/* For now, and for the QP's next life. */
static void core_cmd__set_window(void **state)
{
	struct core_cmd cmd = {.type = CORE_CMD_SET_WINDOW, .n = 8};

	lone_start(&l);
	cmd.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
	assert_int_equal(l.qp->qp->win.size, 8);
	assert_int_equal(l.qp->qp->win.max, 8);
	assert_int_equal(l.qp->qp->window_max, 8);
}

static int readdress(const char *dmac, const char *smac, bool local)
{
	struct core_cmd cmd = {.type = CORE_CMD_READDRESS_QPS, .n = 1, .qps = &l.qp->qp};

	memcpy(cmd.path.dmac, dmac, 6);
	memcpy(cmd.sgid.mac, smac, 6);
	cmd.path.local = local;
	return core_cmd(&l.host->core, &cmd, l.now);
}

/* A17.4.2: what is sent from now on, retransmissions too, goes to the new address, and that is all
 * that changes. */
static void core_cmd__readdress(void **state)
{
	struct core_cmd query = {.type = CORE_CMD_QUERY_QP};
	uint8_t before[FRAME_MAX];
	uint16_t len;

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 100, 0);
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+100!");
	memcpy(before, l.frame, l.frame_len);
	len = l.frame_len;
	assert_int_equal(
		readdress("\x02\x01\x01\x01\x01\x01", "\x02\x02\x02\x02\x02\x02", false), 0);
	memcpy(l.eth, "\x02\x01\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02", 12);
	lone_rx(&l,
		&(struct shot){.opcode = 0x11, .psn = 0x200, .syndrome = 0x60}); /* sequence NAK */
	assert_string_equal(lone_tx(&l), "SEND_ONLY@200+100!");
	assert_int_equal(l.frame_len, len);
	assert_memory_equal(l.frame, "\x02\x01\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02", 12);
	l.frame[14 + 4] = before[14 + 4]; /* the IPv4 identification and its checksum */
	l.frame[14 + 5] = before[14 + 5];
	memcpy(l.frame + 14 + 10, before + 14 + 10, 2);
	assert_memory_equal(l.frame + 12, before + 12, len - 12u - 4);
	assert_false(l.qp->qp->path.local);
	query.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &query, l.now), 0);
	assert_memory_equal(query.attr.ah.dmac, "\x02\x01\x01\x01\x01\x01", 6);
	assert_int_equal(
		readdress("\x02\x02\x02\x02\x02\x02", "\x02\x02\x02\x02\x02\x02", true), 0);
	assert_true(l.qp->qp->path.local);
}

/* A QP that leads nowhere stays as it is. */
static void core_cmd__readdress_without_a_path(void **state)
{
	struct path none;

	start_in(INIT);
	none = l.qp->qp->path;
	assert_int_equal(none.hdr_len, 0);
	assert_int_equal(
		readdress("\x02\x01\x01\x01\x01\x01", "\x02\x02\x02\x02\x02\x02", true), 0);
	assert_memory_equal(&l.qp->qp->path, &none, sizeof(none));
}

#define T(name) cmocka_unit_test_setup_teardown(name, lone_setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(core_cmd__every_transition),
		T(core_cmd__every_attribute),
		T(core_cmd__says_what_is_wrong),
		T(core_cmd__cur_state_must_match),
		T(core_cmd__values),
		T(core_cmd__pkey_index_of_another_port),
		T(core_cmd__address_vector_of_another_port),
		T(core_cmd__sqd_to_another_port),
		T(core_cmd__sqd_source_port_of_the_new_address_vector),
		T(core_cmd__sqd_of_uc_keeps_its_port),
		T(core_cmd__sqd_to_a_port_of_smaller_mtu),
		T(core_cmd__empty_pkey),
		T(core_cmd__service_level),
		T(core_cmd__psns_are_24_bits),
		T(core_cmd__set_window),
		T(core_cmd__readdress),
		T(core_cmd__readdress_without_a_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
