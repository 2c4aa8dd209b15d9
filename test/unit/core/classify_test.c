/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose is a packet, and may it touch state: VAL-*, ICRC-11, ICRC-12. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lone.h"

static struct lone l;

static int setup(void **state)
{
	lone_init(&l);
	return 0;
}

static int teardown(void **state)
{
	lone_fini(&l);
	return 0;
}

static struct shot good(void)
{
	return (struct shot){.opcode = 0x04, .psn = RQ_PSN, .ackreq = true, .len = 4};
}

/* VAL-19: silence, one counter, no change. */
static void expect_drop(const struct shot *s, enum drop why)
{
	static struct qp before;
	struct core_counters *c = &l.host->core.count;
	uint64_t n = c->drop[why];

	before = *l.qp->qp;
	assert_int_equal(lone_rx(&l, s), why);
	assert_int_equal(c->drop[why], n + 1);
	assert_memory_equal(&before, l.qp->qp, sizeof(before));
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.app.events, 0);
}

static void core_rx__drops_in_silence(void **state)
{
	struct shot s;

	lone_start(&l);
	lone_recv(&l, 1, 0, 64);
	s = good();
	s.bad_icrc = true;
	expect_drop(&s, DROP_ICRC);
	s = good();
	s.src_ip = 9; /* SEC-03 */
	expect_drop(&s, DROP_QP_ADDRESS);
	s = good();
	s.pkey = 0x7FFE;
	expect_drop(&s, DROP_PKEY);
	s = good();
	s.pkey = 0x8000; /* VAL-08: base 0 */
	expect_drop(&s, DROP_PKEY);
	s = good();
	s.opcode = 0x24; /* VAL-04: UC */
	expect_drop(&s, DROP_QP_TYPE);
	s = good();
	s.opcode = 0x81; /* CNP-14 */
	s.len = 16;
	expect_drop(&s, DROP_CNP_IGNORED);
	s = good();
	s.dest_qp = l.qp->qp->qpn + (1u << 18); /* QPS-23: another generation of the slot */
	expect_drop(&s, DROP_QPN_UNKNOWN);
	s = good();
	s.dmac = (const uint8_t *)"\x02\0\0\0\0\x07"; /* ETH-10: another station's */
	expect_drop(&s, DROP_DMAC);
	s = good();
	s.dmac = (const uint8_t *)"\xff\xff\xff\xff\xff\xff";
	expect_drop(&s, DROP_DMAC);
	s = good();
	s.dest_qp = 0xFFFFFF; /* VAL-17 */
	expect_drop(&s, DROP_QPN_MCAST);
	s = good();
	assert_int_equal(lone_rx(&l, &s), 0);
	assert_string_equal(lone_cqes(&l), "R1:OK+4");
}

/* VAL-01: a corrupt packet moves no violation counter. */
static void core_rx__icrc_comes_before_the_qp(void **state)
{
	struct shot s = good();

	lone_start(&l);
	s.bad_icrc = true;
	s.pkey = 0x1234;
	expect_drop(&s, DROP_ICRC);
}

/* VAL-08: limited and full match. */
static void core_rx__limited_member_talks_to_full(void **state)
{
	struct shot s = good();

	lone_start(&l);
	s.pkey = 0x7FFF;
	assert_int_equal(lone_rx(&l, &s), 0);
}

/* VAL-06, VAL-07, QPS-17, QPS-18 */
static void core_rx__states(void **state)
{
	static const struct {
		unsigned state;
		bool request, response;
	} row[] = {{ABI_QPS_RESET, 0, 0}, {ABI_QPS_INIT, 0, 0}, {ABI_QPS_RTR, 1, 0},
		{ABI_QPS_RTS, 1, 1}, {ABI_QPS_SQD, 1, 1}, {ABI_QPS_ERR, 0, 0}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct shot req = good(), ack = {.opcode = 0x11, .psn = SQ_PSN, .syndrome = 0x1F};
		unsigned s = row[i].state;

		if (i)
			lone_init(&l);
		lone_start_in(&l, s > ABI_QPS_RTS ? ABI_QPS_RTS : s);
		if (s > ABI_QPS_RTS)
			assert_int_equal(app_to_state(l.qp, s, l.now), 0);
		lone_tx(&l);
		assert_int_equal(lone_rx(&l, &req), row[i].request ? 0 : DROP_QP_STATE);
		/* In a state that takes responses this one is a ghost: nothing was sent. */
		assert_int_equal(
			lone_rx(&l, &ack), row[i].response ? DROP_GHOST_ACK : DROP_QP_STATE);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* design.md 4: another worker's, untouched and not counted. */
static void core_rx__hands_off(void **state)
{
	struct shot s = good();
	struct qp *other;
	uint32_t qpn = QPN_MAKE(2, 3, 77);

	lone_start(&l);
	other = aligned_alloc(CACHE_LINE, (sizeof(*other) + CACHE_LINE - 1) & ~(size_t)63);
	*other = *l.qp->qp;
	other->qpn = qpn;
	atomic_store(&l.host->qps.slot[77], other);
	s.dest_qp = qpn;
	s.bad_icrc = true; /* the owner will see */
	assert_int_equal(lone_rx(&l, &s), VERDICT_HANDOFF + 3);
	assert_int_equal(l.host->core.count.rx_packets, 0);
	atomic_store(&l.host->qps.slot[77], NULL);
	free(other);
}

/* More than a burst. */
static void core_rx__takes_any_number(void **state)
{
	static struct pkt pkts[3 * BURST + 1];
	uint16_t verdict[3 * BURST + 1];
	uint8_t frame[FRAME_MAX];

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_tx(&l);
	memcpy(frame, l.frame, l.frame_len); /* our own packet, for somebody else's QPN */
	for (unsigned i = 0; i < ARRAY_SIZE(pkts); i++) {
		assert_int_equal(frame_parse(&pkts[i], frame, l.frame_len), DROP_NONE);
		pkts[i].port = 0;
		pkts[i].dmac = l.host->ports.port[0].mac;
	}
	core_rx(&l.host->core, pkts, ARRAY_SIZE(pkts), l.now, verdict);
	for (unsigned i = 0; i < ARRAY_SIZE(pkts); i++)
		assert_int_equal(verdict[i], DROP_DGID);
	assert_int_equal(l.host->core.count.rx_packets, ARRAY_SIZE(pkts));
	assert_int_equal(l.host->core.count.drop[DROP_DGID], ARRAY_SIZE(pkts));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(core_rx__drops_in_silence),
		T(core_rx__icrc_comes_before_the_qp),
		T(core_rx__limited_member_talks_to_full),
		T(core_rx__states),
		T(core_rx__hands_off),
		T(core_rx__takes_any_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
