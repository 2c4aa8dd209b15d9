/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules are looked at as data: a small NIC of the test's own applies their items to real
 * frames. No virtual device of this machine takes a rule, and that is no error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include "bits.h"
#include "core.h"
#include "eal_test.h"
#include "frames.h"
#include "headers.h"
#include "qp_table.h"
#include "ringpair.h"
#include "steer.h"

/* --- a NIC ------------------------------------------------------------------------------ */

static bool masked_equal(const uint8_t *p, const uint8_t *spec, const uint8_t *mask, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((p[i] ^ spec[i]) & mask[i])
			return false;
	return true;
}

/* Whether one item matches at @p at; moves past its header. */
static bool item_matches(const struct rte_flow_item *it, const struct frame *f, size_t *at)
{
	const uint8_t *p = f->b + *at;

	switch (it->type) {
	case RTE_FLOW_ITEM_TYPE_ETH: {
		const struct rte_flow_item_eth *spec = it->spec, *mask = it->mask;

		*at += ETH_HLEN;
		return !spec || masked_equal(p + ETH_TYPE, (const uint8_t *)&spec->type,
					(const uint8_t *)&mask->type, 2);
	}
	case RTE_FLOW_ITEM_TYPE_IPV4:
		*at += IP4_HLEN;
		return !it->spec && get_be16(f->b + ETH_TYPE) == ETHERTYPE_IPV4;
	case RTE_FLOW_ITEM_TYPE_IPV6:
		*at += IP6_HLEN;
		return !it->spec && get_be16(f->b + ETH_TYPE) == ETHERTYPE_IPV6;
	case RTE_FLOW_ITEM_TYPE_UDP: {
		const struct rte_flow_item_udp *spec = it->spec, *mask = it->mask;

		*at += UDP_HLEN;
		return masked_equal(p, (const uint8_t *)spec, (const uint8_t *)mask, UDP_HLEN);
	}
	case RTE_FLOW_ITEM_TYPE_RAW: {
		const struct rte_flow_item_raw *spec = it->spec, *mask = it->mask;

		assert_true(spec->relative && !spec->search && !spec->limit);
		assert_true(mask->relative && mask->search);
		assert_int_equal(mask->offset, -1);
		assert_int_equal(mask->length, UINT16_MAX);
		p += spec->offset;
		assert_true(p + spec->length <= f->b + f->len);
		return masked_equal(p, spec->pattern, mask->pattern, spec->length);
	}
#ifdef HAVE_FLOW_ITEM_IB_BTH
	case RTE_FLOW_ITEM_TYPE_IB_BTH: {
		const struct rte_flow_item_ib_bth *spec = it->spec, *mask = it->mask;

		return masked_equal(p, (const uint8_t *)spec, (const uint8_t *)mask, BTH_HLEN);
	}
#endif
	default:
		fail_msg("an item of type %d", it->type);
		return false;
	}
}

static bool matches(const struct steer_rule *r, const struct frame *f)
{
	size_t at = 0;

	for (const struct rte_flow_item *it = r->pattern; it->type != RTE_FLOW_ITEM_TYPE_END; it++)
		if (!item_matches(it, f, &at))
			return false;
	return true;
}

/* The frame's way with all rules of a rung installed.  @return the action; NULL: no rule. */
static const struct rte_flow_action *steered(
	enum steer_rung rung, enum steer_net net, uint16_t queues, const struct frame *f)
{
	static struct steer_rule r;
	uint16_t n = steer_rules(rung, net, queues);
	const struct rte_flow_action *found = NULL;
	static struct steer_rule hit;

	for (uint16_t i = 0; i < n; i++) {
		steer_rule(&r, rung, net, i, queues);
		assert_int_equal(r.action[1].type, RTE_FLOW_ACTION_TYPE_END);
		if (!matches(&r, f))
			continue;
		assert_null(found); /* never two */
		steer_rule(&hit, rung, net, i, queues);
		found = &hit.action[0];
	}
	return found;
}

static const unsigned net_of[STEER_NETS] = {NET_IPV4, NET_IPV6, NET_ROCEV1};

static struct frame frame_to(enum steer_net net, uint32_t qpn)
{
	struct frame f = frame_of(net_of[net], 0x04, 16);

	put_be32(f.b + f.bth + BTH_RESV8A, qpn | 0x5A000000); /* the reserved byte is anything */
	return f;
}

/* --- rungs ------------------------------------------------------------------------------ */

/* Each QPN comes to the queue of its home, whatever its generation and slot. */
static void destqp_rung(enum steer_rung rung, enum steer_net net)
{
	static const uint32_t rest[] = {0, 1, 0x3FFF, 0x2AAA, 0x1555};

	for (uint16_t queues = 2; queues <= WORKER_MAX; queues++) {
		assert_int_equal(steer_rules(rung, net, queues), queues);
		for (unsigned i = 0; i < WORKER_MAX * 4 * 5; i++) {
			uint32_t worker = i % WORKER_MAX;
			uint32_t gen = i / WORKER_MAX % 4 * 21;
			uint32_t qpn = QPN_MAKE(gen, worker, rest[i / WORKER_MAX / 4]);
			struct frame f = frame_to(net, qpn);
			const struct rte_flow_action *a = steered(rung, net, queues, &f);

			assert_int_equal(QPN_WORKER(qpn), worker);
			if (worker >= queues) {
				assert_null(a);
				continue;
			}
			assert_non_null(a);
			assert_int_equal(a->type, RTE_FLOW_ACTION_TYPE_QUEUE);
			assert_int_equal(
				((const struct rte_flow_action_queue *)a->conf)->index, worker);
		}
	}
	assert_int_equal(steer_rules(rung, net, 1), 0);
}

static void steer_rule__raw_destqp(void **state)
{
	for (enum steer_net net = 0; net < STEER_NETS; net++)
		destqp_rung(STEER_RAW, net);
}

static void steer_rule__bth_item(void **state)
{
#ifdef HAVE_FLOW_ITEM_IB_BTH
	destqp_rung(STEER_BTH, STEER_IPV4);
	destqp_rung(STEER_BTH, STEER_IPV6);
#else
	assert_int_equal(steer_rules(STEER_BTH, STEER_IPV4, 4), 0);
#endif
	assert_int_equal(steer_rules(STEER_BTH, STEER_ROCEV1, 4), 0); /* it follows UDP */
}

/* Bit by bit, from the header's figure: DestQP is bytes 5 to 7 of the BTH, and the worker's number
 * is bits 14 to 17 of it. */
static void steer_rule__raw_bytes(void **state)
{
	static const uint8_t mask[4] = {0x00, 0x03, 0xC0, 0x00};
	static const uint8_t six[4] = {0x00, 0x01, 0x80, 0x00};
	struct steer_rule r;

	steer_rule(&r, STEER_RAW, STEER_IPV4, 6, 8);
	assert_int_equal(r.raw.offset, 4);
	assert_int_equal(r.raw.length, 4);
	assert_memory_equal(r.raw.pattern, six, 4);
	assert_memory_equal(r.raw_mask.pattern, mask, 4);
	steer_rule(&r, STEER_RAW, STEER_ROCEV1, 6, 8);
	assert_int_equal(r.raw.offset, 44); /* after the GRH */
	assert_int_equal(r.pattern[0].type, RTE_FLOW_ITEM_TYPE_ETH);
	assert_int_equal(r.pattern[1].type, RTE_FLOW_ITEM_TYPE_RAW);
}

static void steer_rule__rss(void **state)
{
	for (enum steer_net net = STEER_IPV4; net <= STEER_IPV6; net++) {
		struct frame f = frame_to(net, 0x123456);
		const struct rte_flow_action *a = steered(STEER_RSS, net, 5, &f);
		const struct rte_flow_action_rss *rss;

		assert_non_null(a);
		assert_int_equal(a->type, RTE_FLOW_ACTION_TYPE_RSS);
		rss = a->conf;
		assert_int_equal(rss->queue_num, 5);
		assert_true(rss->types & RTE_ETH_RSS_UDP);
		for (uint16_t q = 0; q < 5; q++)
			assert_int_equal(rss->queue[q], q);
		assert_int_equal(steer_rules(STEER_RSS, net, 1), 0);
	}
	assert_int_equal(steer_rules(STEER_RSS, STEER_ROCEV1, 5), 0);
}

static void steer_rule__one_queue(void **state)
{
	for (enum steer_net net = 0; net < STEER_NETS; net++) {
		struct frame f = frame_to(net, 0x123456);
		const struct rte_flow_action *a = steered(STEER_QUEUE0, net, 1, &f);

		assert_non_null(a);
		assert_int_equal(a->type, RTE_FLOW_ACTION_TYPE_QUEUE);
		assert_int_equal(((const struct rte_flow_action_queue *)a->conf)->index, 0);
	}
	assert_int_equal(steer_rules(STEER_QUEUE0, STEER_IPV4, 2), 0); /* RSS is better */
	assert_int_equal(steer_rules(STEER_QUEUE0, STEER_ROCEV1, 2), 1);
}

/* Packets that are not RoCE, or of another protocol, are nobody's. */
static void steer_rule__others_pass(void **state)
{
	for (enum steer_rung rung = STEER_QUEUE0; rung < STEER_RUNGS; rung++) {
		for (enum steer_net net = 0; net < STEER_NETS; net++) {
			uint16_t queues = rung == STEER_QUEUE0 ? 1 : 4;
			struct frame f = frame_to(net, 0);

			for (enum steer_net other = 0; other < STEER_NETS; other++)
				if (other != net)
					assert_null(steered(rung, other, queues, &f));
			if (net == STEER_ROCEV1)
				continue;
			put_be16(f.b + f.udp + UDP_DPORT, 4790);
			assert_null(steered(rung, net, queues, &f));
		}
	}
}

/* --- a device that takes rules ---------------------------------------------------------- */

/* There is none on this machine: the test stands in for rte_flow while `nic.there`. */
static struct {
	bool there;
	bool counts;	   /* it can */
	unsigned room;	   /* rules that it takes */
	unsigned rules;	   /* it has */
	unsigned counting; /* of them */
} nic;

int __real_rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error);
int __wrap_rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error);
struct rte_flow *__real_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error);
struct rte_flow *__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error);
int __wrap_rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *error);
int __wrap_rte_flow_query(uint16_t port, struct rte_flow *flow,
	const struct rte_flow_action *action, void *data, struct rte_flow_error *error);

int __wrap_rte_flow_validate(uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	if (!nic.there)
		return __real_rte_flow_validate(port, attr, pattern, actions, error);
	return actions[0].type == RTE_FLOW_ACTION_TYPE_COUNT && !nic.counts ? -1 : 0;
}

struct rte_flow *__wrap_rte_flow_create(uint16_t port, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	if (!nic.there)
		return __real_rte_flow_create(port, attr, pattern, actions, error);
	if (nic.rules == nic.room)
		return NULL;
	nic.counting += actions[0].type == RTE_FLOW_ACTION_TYPE_COUNT;
	return (struct rte_flow *)(uintptr_t)++nic.rules;
}

/* None is destroyed but those of a rung that was given up. */
int __wrap_rte_flow_destroy(uint16_t port, struct rte_flow *flow, struct rte_flow_error *error)
{
	assert_true(nic.there && nic.rules);
	assert_int_equal((uintptr_t)flow, nic.rules);
	nic.rules--;
	nic.counting -= nic.counts && nic.counting;
	return 0;
}

int __wrap_rte_flow_query(uint16_t port, struct rte_flow *flow,
	const struct rte_flow_action *action, void *data, struct rte_flow_error *error)
{
	struct rte_flow_query_count *count = data;

	assert_true(nic.there && nic.counts);
	assert_int_equal(action[0].type, RTE_FLOW_ACTION_TYPE_COUNT);
	*count = (struct rte_flow_query_count){
		.hits_set = 1, .bytes_set = 1, .hits = (uintptr_t)flow, .bytes = 100};
	return 0;
}

static void steer_install__rules_that_count(void **state)
{
	struct steer s = {0};
	uint64_t packets, bytes;

	nic = (typeof(nic)){.there = true, .counts = true, .room = 100};
	steer_install(&s, 0, 4);
	assert_int_equal(s.rung[STEER_IPV4], s.rung[STEER_IPV6]);
	assert_int_equal(s.rung[STEER_ROCEV1], STEER_RAW);
	assert_int_equal(nic.rules, 12);
	assert_int_equal(nic.counting, 12);
	assert_true(steer_count(&s, 0, STEER_IPV6, 2, &packets, &bytes));
	assert_int_equal(packets, 7); /* its number among all */
	assert_int_equal(bytes, 100);
	nic.there = false;
}

static void steer_install__counts_are_no_reason(void **state)
{
	struct steer s = {0};
	uint64_t packets, bytes;

	nic = (typeof(nic)){.there = true, .room = 100};
	steer_install(&s, 0, 4);
	assert_int_equal(s.rung[STEER_ROCEV1], STEER_RAW);
	assert_int_equal(nic.rules, 12);
	assert_int_equal(nic.counting, 0);
	assert_false(steer_count(&s, 0, STEER_IPV4, 0, &packets, &bytes));
	nic.there = false;
}

/* Room for the first protocol's rules and one of the second's. */
static void steer_install__half_a_rung_is_given_back(void **state)
{
	struct steer s = {0};
	uint64_t packets, bytes;

	nic = (typeof(nic)){.there = true, .counts = true, .room = 5};
	steer_install(&s, 0, 4);
	assert_true(s.rung[STEER_IPV4] >= STEER_RAW);
	assert_int_equal(s.rung[STEER_IPV6], STEER_RSS); /* one rule */
	assert_int_equal(s.rung[STEER_ROCEV1], STEER_SOFTWARE);
	assert_int_equal(nic.rules, 5);
	assert_false(steer_count(&s, 0, STEER_ROCEV1, 0, &packets, &bytes));
	nic.there = false;
}

/* --- ports ------------------------------------------------------------------------------ */

static void no_rule(uint16_t ethdev)
{
	for (uint16_t queues = 1; queues <= 4; queues++) {
		struct steer s = {.rung = {STEER_BTH, STEER_BTH, STEER_BTH}};

		steer_install(&s, ethdev, queues);
		for (enum steer_net net = 0; net < STEER_NETS; net++)
			assert_int_equal(s.rung[net], STEER_SOFTWARE);
	}
}

static void steer_install__ports_without_rte_flow(void **state)
{
	static const char *const vdev[] = {"net_null_steer", "net_tap_steer"};
	uint16_t ethdev[2];

	assert_int_equal(ringpair_create(3, 1, -1, ethdev), 0);
	no_rule(ethdev[0]);
	ringpair_destroy(3, 1);
	for (unsigned i = 0; i < 2; i++) {
		if (rte_eal_hotplug_add("vdev", vdev[i], "")) {
			print_message("SKIP: no %s here\n", vdev[i]); /* a tap wants root */
			continue;
		}
		assert_int_equal(rte_eth_dev_get_port_by_name(vdev[i], ethdev), 0);
		no_rule(ethdev[0]);
		rte_eal_hotplug_remove("vdev", vdev[i]);
	}
}

static void steer_text__says_who_steers(void **state)
{
	struct steer s = {.rung = {STEER_SOFTWARE, STEER_SOFTWARE, STEER_SOFTWARE}};
	char text[128];

	assert_string_equal(steer_text(&s, false, text, sizeof(text)), "software");
	assert_string_equal(
		steer_text(&s, true, text, sizeof(text)), "IPv4: RSS, IPv6: RSS, RoCEv1: software");
	s = (struct steer){.rung = {STEER_RAW, STEER_RAW, STEER_RAW}};
	assert_string_equal(steer_text(&s, false, text, sizeof(text)), "rte_flow by DestQP (raw)");
	s = (struct steer){.rung = {STEER_BTH, STEER_RSS, STEER_QUEUE0}};
	assert_string_equal(steer_text(&s, true, text, sizeof(text)),
		"IPv4: rte_flow by DestQP, IPv6: rte_flow to RSS, RoCEv1: rte_flow");
	assert_string_equal(steer_text(&s, true, text, 10), "IPv4: rte");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steer_rule__raw_destqp),
		cmocka_unit_test(steer_rule__bth_item),
		cmocka_unit_test(steer_rule__raw_bytes),
		cmocka_unit_test(steer_rule__rss),
		cmocka_unit_test(steer_rule__one_queue),
		cmocka_unit_test(steer_rule__others_pass),
		cmocka_unit_test(steer_install__rules_that_count),
		cmocka_unit_test(steer_install__counts_are_no_reason),
		cmocka_unit_test(steer_install__half_a_rung_is_given_back),
		cmocka_unit_test(steer_install__ports_without_rte_flow),
		cmocka_unit_test(steer_text__says_who_steers),
	};

	eal_test_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
