/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "plan.h"
#include "units.h"

#define BW_SIZE	  65536 /* as perftest's */
#define RATE_SIZE 64
#define LAT_SIZE  2
#define YEAR_US	  (366ull * 86400 * 1000000)

#define INLINE_USUAL 0
/* Maximum bytes of a datagram, and the default without --mtu, which any Ethernet carries. */
#define DATAGRAM_LIMIT 4096u
#define DATAGRAM_USUAL 1024u
/* Messages in flight that fill a send queue of 16384 requests. */
#define FLUSH_DEPTH   8191u
#define TIMEOUT_USUAL 14 /* 67 ms, as perftest's */

static const char *const test_names[TEST_COUNT] = {"bw", "rate", "lat"};

const struct service plan_services[] = {
	{"RC", ROCI_QPT_RC, OP_WANTS_ANSWERS, 0},
	{"UC", ROCI_QPT_UC, OP_WANTS_CONNECTION, 0},
	{"UD", ROCI_QPT_UD, OP_WANTS_DATAGRAMS, ROCI_GRH_LEN},
	{"XRC", ROCI_QPT_XRC_SEND, OP_WANTS_ANSWERS, 0},
};
#define SERVICES (sizeof(plan_services) / sizeof(plan_services[0]))

const struct param_info param_info[PARAM_COUNT] = {
	[PARAM_OP] = {"operation", 0, UNIT_NUMBER, 0, 0, 0, NULL},
	[PARAM_TEST] = {"test", 0, UNIT_NUMBER, 0, TEST_COUNT - 1, TEST_BW, NULL},
	[PARAM_GROUP_HIGH] = {"mcast", 0, UNIT_GROUP, 0, UINT64_MAX, 0, NULL},
	[PARAM_SIZE] = {"size", 's', UNIT_BYTES, 1, 1u << 30, 0,
		"message size, such as 4096 or 64K; bw: 64K, rate: 64, lat: 2"},
	[PARAM_ALL] = {"all", 'a', UNIT_NONE, 0, 1, 0, "all sizes from 2 bytes to 8 MiB"},
	[PARAM_QPS] = {"qp", 'q', UNIT_NUMBER, 1, 16384, 1, "queue pairs"},
	[PARAM_TX_DEPTH] = {"tx-depth", 't', UNIT_NUMBER, 1, 16383, 0,
		"requests in flight per QP; 128, fewer with messages above 256 KiB"},
	[PARAM_RX_DEPTH] = {"rx-depth", 'r', UNIT_NUMBER, 1, 16384, 0,
		"receives posted per QP; 512, fewer with many QPs"},
	[PARAM_ITERATIONS] = {"iters", 'n', UNIT_NUMBER, 1, 1ull << 48, 0,
		"messages per QP to measure, instead of a time"},
	[PARAM_DURATION] = {"duration", 'D', UNIT_SECONDS, 1, YEAR_US, 0,
		"seconds to measure each size; 1"},
	[PARAM_BIDIRECTIONAL] = {"bidirectional", 'b', UNIT_NONE, 0, 1, 0,
		"both ends send; the sum is reported"},
	[PARAM_INLINE] = {"inline_size", 'I', UNIT_BYTES, 0, 4096, INLINE_USUAL,
		"largest message whose data is inline; 0"},
	[PARAM_EVENTS] = {"events", 'e', UNIT_NONE, 0, 1, 0,
		"sleep until a completion arrives instead of polling"},
	[PARAM_MTU] = {"mtu", 'm', UNIT_NUMBER, 256, 4096, 0,
		"path MTU; default: the largest that both ends support"},
	[PARAM_CQ_MOD] = {"cq-mod", 'Q', UNIT_NUMBER, 1, 16383, 0,
		"requests per completion; an eighth of the depth"},
	[PARAM_POST_LIST] = {"post_list", 'l', UNIT_NUMBER, 1, 256, 0,
		"requests per post call; 1, in rate 16"},
	[PARAM_OUTS] = {"outs", 'o', UNIT_NUMBER, 1, 255, 0,
		"outstanding READs, atomics, FLUSHes per QP; 16, fewer if an end supports fewer"},
	[PARAM_TIMEOUT] = {"qp-timeout", 'u', UNIT_NUMBER, 1, 31, TIMEOUT_USUAL,
		"ACK timeout: 4.096 us * 2^N; 14"},
	[PARAM_SL] = {"sl", 'S', UNIT_NUMBER, 0, 7, 0, "service level; 0"},
	[PARAM_TCLASS] = {"tclass", 0, UNIT_NUMBER, 0, 255, 0, "traffic class, DSCP * 4; 0"},
	[PARAM_FLOW_LABEL] = {"flow_label", 0, UNIT_NUMBER, 0, 0xFFFFF, 0,
		"flow label; 0: a hash of the QPNs"},
	[PARAM_MEMORY] = {"memory", 0, UNIT_BYTES, 1, 1ull << 46, 0,
		"bytes that the messages cycle through, such as 256M"},
	[PARAM_VERIFY] = {"verify", 0, UNIT_NONE, 0, 1, 0,
		"compare received data; figures are then not the transport's"},
	[PARAM_SRQ] = {"srq", 0, UNIT_NONE, 0, 1, 0,
		"all QPs take their receives from one shared receive queue"},
	[PARAM_CONNECTION] = {"connection", 'c', UNIT_SERVICE, 0, SERVICES - 1, 0,
		"transport service: RC, XRC, or UC and UD, which do not recover from loss; RC"},
	[PARAM_WINDOW] = {"mw", 0, UNIT_NONE, 0, 1, 0,
		"access the target's memory with the key of a memory window"},
	[PARAM_GROUP] = {"mcast", 'M', UNIT_GROUP, 0, UINT64_MAX, 0,
		"send UD to this multicast group, whose members are the server's QPs"},
};

void plan_usual(struct plan *p)
{
	memset(p, 0, sizeof(*p));
	for (unsigned i = 0; i < PARAM_COUNT; i++)
		p->value[i] = param_info[i].usual;
}

const char *plan_test_name(enum test test)
{
	return test_names[test];
}

bool plan_test_find(const char *name, uint64_t *test)
{
	for (unsigned i = 0; i < TEST_COUNT; i++) {
		if (!strcmp(test_names[i], name)) {
			*test = i;
			return true;
		}
	}
	return false;
}

/* --- one end ---------------------------------------------------------------------------- */

static bool find_service(const char *name, uint64_t *value)
{
	for (unsigned i = 0; i < SERVICES; i++) {
		if (strcasecmp(plan_services[i].name, name) != 0)
			continue;
		*value = i;
		return true;
	}
	return false;
}

static bool parse(enum unit unit, const char *text, uint64_t *value)
{
	switch (unit) {
	case UNIT_NONE:
		*value = 1;
		return true;
	case UNIT_NUMBER:
		return units_number(text, value);
	case UNIT_BYTES:
		return units_bytes(text, value);
	case UNIT_SECONDS:
		return units_seconds(text, value);
	case UNIT_SERVICE:
		return find_service(text, value);
	case UNIT_GROUP: /* two values: set_group() */
		break;
	}
	return false;
}

static void write_group(const uint64_t values[PARAM_COUNT], char *to, size_t room)
{
	const union roci_gid group = group_gid(values[PARAM_GROUP_HIGH], values[PARAM_GROUP]);
	char text[GROUP_TEXT];

	if (values[PARAM_GROUP_HIGH] || values[PARAM_GROUP])
		snprintf(to, room, "with --mcast %s", group_text(&group, text));
	else
		snprintf(to, room, "without --mcast");
}

/* "--size 4096", "--duration 0.5", "--all" */
static void write_option(enum param i, const uint64_t values[PARAM_COUNT], char *to, size_t room)
{
	const struct param_info *info = &param_info[i];
	uint64_t value = values[i];

	if (i == PARAM_OP)
		snprintf(to, room, "%s", op_table[value].name);
	else if (i == PARAM_TEST)
		snprintf(to, room, "%s", test_names[value]);
	else if (info->unit == UNIT_NONE)
		snprintf(to, room, "%s --%s", value ? "with" : "without", info->name);
	else if (info->unit == UNIT_GROUP)
		write_group(values, to, room);
	else if (info->unit == UNIT_SERVICE)
		snprintf(to, room, "with --%s %s", info->name, plan_services[value].name);
	else if (value == 0)
		snprintf(to, room, "without --%s", info->name);
	else if (info->unit == UNIT_SECONDS)
		snprintf(to, room, "with --%s %g", info->name, (double)value / 1e6);
	else
		snprintf(to, room, "with --%s %llu", info->name, (unsigned long long)value);
}

static bool set_group(struct plan *p, const char *text, char *why, size_t room)
{
	if (!group_parse(text, &p->value[PARAM_GROUP_HIGH], &p->value[PARAM_GROUP])) {
		snprintf(why, room,
			"--mcast %s: this is not the address of a group, such as 239.1.2.3 or "
			"ff1e::1",
			text);
		return false;
	}
	p->given[PARAM_GROUP_HIGH] = p->given[PARAM_GROUP] = true;
	return true;
}

bool plan_set(struct plan *p, enum param i, const char *text, char *why, size_t room)
{
	const struct param_info *info = &param_info[i];
	uint64_t value;

	if (info->unit == UNIT_GROUP)
		return set_group(p, text, why, room);
	if (!parse(info->unit, text, &value)) {
		snprintf(why, room, "--%s %s: it is not a %s", info->name, text,
			info->unit == UNIT_SERVICE
				? "service that rociperf supports: RC, UC, UD or XRC"
			: info->unit == UNIT_SECONDS ? "time in seconds"
			: info->unit == UNIT_BYTES   ? "number of bytes, such as 4096, 64K or 256M"
						     : "number");
		return false;
	}
	if (value < info->min || value > info->max) {
		snprintf(why, room, "--%s %s: it must be %.15g to %.15g", info->name, text,
			info->unit == UNIT_SECONDS ? (double)info->min / 1e6 : (double)info->min,
			info->unit == UNIT_SECONDS ? (double)info->max / 1e6 : (double)info->max);
		return false;
	}
	p->value[i] = value;
	p->given[i] = true;
	return true;
}

/* --- what does not go together ------------------------------------------------------------ */

static const char *check_lat(const struct plan *p)
{
	if (p->value[PARAM_QPS] > 1)
		return "latency is measured on one QP: remove --qp";
	if (p->value[PARAM_BIDIRECTIONAL])
		return "latency is always measured in both directions: remove --bidirectional";
	if (p->value[PARAM_POST_LIST] > 1 || p->value[PARAM_CQ_MOD] > 1)
		return "latency has one request in flight: remove --post_list and --cq-mod";
	if (p->value[PARAM_EVENTS] && !plan_op(p)->receives && !op_told(plan_op(p)))
		return "the target of a WRITE gets no event to sleep for: use write_imm or send "
		       "with --events";
	return NULL;
}

static const char *check_queue(const struct plan *p)
{
	uint64_t depth = p->value[PARAM_TX_DEPTH], list = p->value[PARAM_POST_LIST],
		 mod = p->value[PARAM_CQ_MOD];

	/* While a list does not fit, at least one request in flight must be signaled, or no
	 * completion would ever free room. */
	if (depth && (list ? list : 1) + (mod ? mod : 1) > depth + 1)
		return "--post_list and --cq-mod together must be at most --tx-depth plus one, or "
		       "the send queue would stop";
	if (!depth && (list > 64 || mod > 64))
		return "with --post_list or --cq-mod above 64, --tx-depth is needed too: at least "
		       "their sum";
	return NULL;
}

static const char *check_service(const struct plan *p)
{
	const struct op *op = plan_op(p);

	if (op->wants > plan_service(p)->gives)
		return plan_datagrams(p) ? "UD has SEND only: use send, or --connection RC"
					 : "UC has SEND and WRITE only: use --connection RC for "
					   "this operation";
	if (plan_datagrams(p) &&
		p->value[PARAM_SIZE] > (p->value[PARAM_MTU] ? p->value[PARAM_MTU] : DATAGRAM_LIMIT))
		return "a datagram is one packet: --size must be at most the path MTU, 4096 or "
		       "--mtu";
	if (p->value[PARAM_VERIFY] && !plan_reliable(p) && !op->scatters)
		return "lost WRITEs of UC cannot be identified: with --verify use send, or "
		       "--connection RC";
	return NULL;
}

static const char *check_mcast(const struct plan *p)
{
	const union roci_gid group = plan_group(p);

	if (!plan_mcast(p) && !p->given[PARAM_GROUP])
		return NULL;
	if (!plan_datagrams(p))
		return "--mcast: groups need UD: add --connection UD";
	if (!group_is_multicast(&group))
		return "--mcast needs the address of a group: 224.0.0.0 to 239.255.255.255, or an "
		       "IPv6 address that begins with ff";
	if (p->value[PARAM_BIDIRECTIONAL])
		return "only the client sends to the group, because members receive their own "
		       "messages: remove --bidirectional with --mcast";
	return NULL;
}

bool plan_check(const struct plan *p, char *why, size_t room)
{
	const struct op *op = plan_op(p);
	const char *bad = check_queue(p);

	if (p->value[PARAM_ITERATIONS] && p->value[PARAM_DURATION])
		bad = "use --iters or --duration, not both";
	if (p->value[PARAM_ALL] && p->value[PARAM_SIZE])
		bad = "use --all or --size, not both";
	if (p->value[PARAM_MTU] && !roci_mtu_of_bytes((uint32_t)p->value[PARAM_MTU]))
		bad = "--mtu must be 256, 512, 1024, 2048 or 4096";
	if (p->value[PARAM_OUTS] && op->wants < OP_WANTS_ANSWERS)
		bad = "--outs applies to READ, FLUSH and atomics only: remove it";
	if (p->value[PARAM_INLINE] && !op->inlines)
		bad = "fetched data cannot be inline: remove --inline_size";
	if (p->value[PARAM_SRQ] && !op->receives)
		bad = "--srq applies to receives: use send or write_imm";
	/* With shared receives, a message lands in the slot of the receive that was next, which may
	 * be another QP's: --verify would compare the wrong slot. */
	if (plan_shares_receives(p) && p->value[PARAM_VERIFY] && p->value[PARAM_QPS] > 1)
		bad = "--verify with a shared receive queue (--srq, XRC) needs --qp 1";
	if (p->value[PARAM_WINDOW] && op->scatters)
		bad = "--mw applies to memory that the peer addresses: remove it with send";
	if (op->flushes && p->value[PARAM_TX_DEPTH] > FLUSH_DEPTH)
		bad = "a WRITE and its FLUSH are two requests: --tx-depth must be at most 8191";
	if (op->length && (p->value[PARAM_ALL] || p->value[PARAM_SIZE]))
		bad = "this operation has one size only: remove --size and --all";
	if (!bad && plan_test(p) == TEST_LAT)
		bad = check_lat(p);
	if (!bad)
		bad = check_service(p);
	if (!bad)
		bad = check_mcast(p);
	if (bad)
		snprintf(why, room, "%s", bad);
	return !bad;
}

/* --- both ends ---------------------------------------------------------------------------- */

static bool is_possible(enum param i, uint64_t value)
{
	uint64_t max = i == PARAM_OP ? op_count - 1 : param_info[i].max;

	return value == param_info[i].usual || (value >= param_info[i].min && value <= max);
}

bool plan_adopt(struct plan *p, const uint64_t theirs[PARAM_COUNT], char *why, size_t room)
{
	struct plan new = *p;

	for (unsigned i = 0; i < PARAM_COUNT; i++) {
		char here[64], there[64];

		if (!is_possible((enum param)i, theirs[i])) {
			snprintf(why, room,
				"the client's %s is unknown to this rociperf: use the same version "
				"on both ends",
				param_info[i].name);
			return false;
		}
		new.value[i] = theirs[i];
		if (!p->given[i] || p->value[i] == theirs[i])
			continue;
		write_option((enum param)i, p->value, here, sizeof(here));
		write_option((enum param)i, theirs, there, sizeof(there));
		snprintf(why, room,
			"the server runs %s, the client %s: give both the same, or none to the "
			"server",
			here, there);
		return false;
	}
	*p = new;
	return plan_check(p, why, room);
}

static uint32_t datagram_max(const struct plan *p)
{
	return p->value[PARAM_MTU] ? (uint32_t)p->value[PARAM_MTU] : DATAGRAM_USUAL;
}

static uint32_t usual_size(const struct plan *p)
{
	static const uint32_t usual[TEST_COUNT] = {BW_SIZE, RATE_SIZE, LAT_SIZE};
	uint32_t size = usual[plan_test(p)];

	return plan_datagrams(p) && size > datagram_max(p) ? datagram_max(p) : size;
}

uint32_t plan_first_size(const struct plan *p)
{
	if (plan_op(p)->length)
		return plan_op(p)->length;
	if (p->value[PARAM_ALL])
		return PLAN_SIZE_MIN;
	return p->value[PARAM_SIZE] ? (uint32_t)p->value[PARAM_SIZE] : usual_size(p);
}

uint32_t plan_next_size(const struct plan *p, uint32_t size)
{
	return p->value[PARAM_ALL] && size < plan_largest(p) ? 2 * size : 0;
}

uint32_t plan_largest(const struct plan *p)
{
	if (!p->value[PARAM_ALL])
		return plan_first_size(p);
	return plan_datagrams(p) ? datagram_max(p) : PLAN_SIZE_MAX;
}
