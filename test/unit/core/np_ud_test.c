/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion notification of datagrams: the CNP goes back to where the datagram came from. */
#include "abi_ctl.h"
#include "datagram.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "opcode.h"
#include "path_write.h"
#include "qp.h"
#include "rp.h"
#include "txd.h"

static uint8_t cnp_frame[FRAME_MAX];

static int setup(void **state)
{
	datagram_setup(state);
	atomic_store(&b.host->ports.port[0].rcm, rcm_word(48 << 2, 6, true));
	return 0;
}

static void mark(void)
{
	uint8_t *ip = frame + sent.l3_off;
	uint32_t sum = 0;

	if (sent.net != NET_IPV4) {
		ip[1] |= 3 << 4;
	} else {
		ip[IP4_TOS] |= 3;
		put_be16(ip + IP4_CSUM, 0);
		for (unsigned i = 0; i < IP4_HLEN; i += 2)
			sum += get_be16(ip + i);
		put_be16(ip + IP4_CSUM, (uint16_t)~path_csum_fold(sum));
	}
	reseal();
}

/* b's turn. @return whether it sent a packet, which is a CNP. */
static bool take_cnp(struct pkt *p)
{
	struct txd t = {.frame = cnp_frame};
	unsigned n = core_tx(&b.host->core, &t, 1, now);

	if (n) {
		size_t len = core_seal(&b.host->core, &t);

		assert_int_equal(frame_parse(p, cnp_frame, len), DROP_NONE);
		assert_true(icrc_check(icrc_by_name("table"), p));
		assert_int_equal(p->op->kind, KIND_CNP);
	}
	return n;
}

/* proves CNP-07: to DETH's source QP, MAC and address */
static void np_ud__goes_back_to_the_source(void **state)
{
	static const enum host_gid gids[] = {HOST_GID_IPV4, HOST_GID_IPV6};

	for (unsigned i = 0; i < ARRAY_SIZE(gids); i++) {
		uint8_t sgid[16], dgid[16], from[16], to[16];
		struct pkt p, q;

		lead(gids[i]);
		receive_at(&b, b.qp, 1, 0, BUFFER);
		make_frame(100);
		mark();
		assert_int_equal(deliver(), DROP_NONE);
		assert_true(take_cnp(&p));
		assert_int_equal(p.dest_qp, a.qp->qp->qpn);
		assert_int_equal(p.tclass, 48 << 2);
		assert_int_equal(p.psn, 0);
		assert_false(p.migreq);
		assert_memory_equal(cnp_frame, frame + ETH_SRC, 6);
		assert_memory_equal(cnp_frame + ETH_SRC, frame, 6);
		frame_parse(&q, frame, frame_len);
		frame_gids(&q, sgid, dgid);
		frame_gids(&p, from, to);
		assert_memory_equal(from, dgid, 16);
		assert_memory_equal(to, sgid, 16);
		assert_false(take_cnp(&p));
		take_cqe(&b);
	}
}

/* A tag comes back with the CNP's priority. */
static void np_ud__stays_in_the_vlan(void **state)
{
	struct pkt p;

	b.host->gids[0].entry[HOST_GID_IPV4].vid = 7;
	receive_at(&b, b.qp, 1, 0, BUFFER);
	make_frame(100);
	mark();
	assert_int_equal(deliver_tagged(7), DROP_NONE);
	assert_true(take_cnp(&p));
	assert_int_equal(p.vid, 7);
	assert_int_equal(p.pcp, 6);
	take_cqe(&b);
}

/* As all packets of the port. */
static void np_ud__has_a_priority_tag(void **state)
{
	struct pkt p;

	atomic_store(&b.host->ports.port[0].priority_tag, true);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	make_frame(100);
	mark();
	assert_int_equal(deliver(), DROP_NONE);
	assert_true(take_cnp(&p));
	assert_int_equal(p.vid, 0);
	assert_int_equal(p.pcp, 6);
	take_cqe(&b);
}

/* proves CNP-08: no CNP to a group's MAC or from RoCEv1; QP1 is not subject to any of it. */
static void np_ud__does_not_answer(void **state)
{
	struct pkt p;

	for (unsigned i = 0; i < 2; i++) {
		lead(i ? HOST_GID_IPV4 : HOST_GID_ROCEV1);
		receive_at(&b, b.qp, 1, 0, BUFFER);
		make_frame(100);
		mark();
		if (i)
			frame[ETH_SRC] |= 1;
		assert_int_equal(deliver(), DROP_NONE);
		assert_false(take_cnp(&p));
		take_cqe(&b);
	}
	assert_int_equal(b.host->core.count.np_cnp_sent, 0);
}

/* a's datagrams are ECN-capable. */
static void lead_ect(enum host_gid gid)
{
	struct path_spec spec = host_path(a.host, b.host, 0, gid);

	lead(gid);
	atomic_store(&a.host->ports.port[0].rcm, rcm_word(0, 0, false));
	spec.ect = true;
	path_init(&ah.path, &spec);
}

/* proves IP4-05, IP6-02, CNP-14: datagrams are ECN-capable while the port manages congestion,
 * whenever their handle was made */
static void np_ud__makes_datagrams_ecn_capable(void **state)
{
	static const enum host_gid gids[] = {HOST_GID_IPV4, HOST_GID_IPV6, HOST_GID_ROCEV1};

	for (unsigned i = 0; i < ARRAY_SIZE(gids); i++) {
		struct pkt p;

		lead(gids[i]); /* not ECN-capable */
		atomic_store(&a.host->ports.port[0].rcm, rcm_word(0, 0, false));
		make_frame(100);
		assert_int_equal(frame_parse(&p, frame, frame_len), DROP_NONE);
		assert_int_equal(p.tclass & 3, gids[i] == HOST_GID_ROCEV1 ? 0 : 2);
		lead_ect(gids[i]);
		atomic_store(&a.host->ports.port[0].rcm, 0);
		make_frame(100);
		assert_int_equal(frame_parse(&p, frame, frame_len), DROP_NONE);
		assert_int_equal(p.tclass & 3, 0);
	}
}

/* QP1 is exempt: its datagrams are not ECN-capable along a handle that is, marked ones are not
 * answered, and it takes no CNPs. */
static void np_ud__leaves_qp1_alone(void **state)
{
	struct path_spec spec = host_path(a.host, b.host, 0, HOST_GID_IPV4);
	uint8_t type = a.qp->qp->type;
	struct pkt p;

	atomic_store(&a.host->ports.port[0].rcm, rcm_word(0, 0, false));
	spec.ect = true;
	path_init(&ah.path, &spec);
	a.qp->qp->type = ABI_QPT_GSI;
	make_frame(100);
	a.qp->qp->type = type;
	assert_int_equal(frame_parse(&p, frame, frame_len), DROP_NONE);
	assert_int_equal(p.tclass & 3, 0);

	lead(HOST_GID_IPV4);
	make_frame(100);
	mark();
	receive_at(&b, b.qp, 1, 0, BUFFER);
	b.qp->qp->type = ABI_QPT_GSI;
	deliver();
	assert_false(take_cnp(&p));
	b.qp->qp->type = type;
	receive_at(&b, b.qp, 1, 0, BUFFER);
	assert_int_equal(deliver(), DROP_NONE);
	assert_true(take_cnp(&p));
	p.port = 0;
	p.queue = PKT_NO_QUEUE;
	atomic_store(&a.host->ports.port[0].rcm, rcm_word(0, 0, false));
	a.qp->qp->type = ABI_QPT_GSI;
	core_rx(&a.host->core, &p, 1, now, &(uint16_t){0});
	a.qp->qp->type = type;
	assert_int_equal(a.host->core.count.rp_cnp_ignored, 1);
	assert_int_equal(a.host->core.count.drop[DROP_CNP_UNMANAGED], 1);
}

/* RoCEv1 has no ECN: nobody has a reason to send a CNP by it. */
static void rp_ud__takes_no_cnp_by_rocev1(void **state)
{
	struct pkt p;

	lead(HOST_GID_IPV4);
	make_frame(100);
	mark();
	receive_at(&b, b.qp, 1, 0, BUFFER);
	assert_int_equal(deliver(), DROP_NONE);
	assert_true(take_cnp(&p));
	p.port = 0;
	atomic_store(&a.host->ports.port[0].rcm, rcm_word(0, 0, false));
	p.net = NET_ROCEV1;
	assert_int_equal(rp_cnp(&a.host->core, a.qp->qp, &p, DROP_NONE, now), DROP_CNP_UNMANAGED);
	assert_int_equal(a.host->core.count.rp_cnp_ignored, 1);
}

/* A CNP for a datagram QP may come from anybody whom it has sent to lately, with its P_Key. */
static void rp_ud__accepts_cnps(void **state)
{
	struct pkt p;

	lead_ect(HOST_GID_IPV4);
	receive_at(&b, b.qp, 1, 0, BUFFER);
	make_frame(100);
	mark();
	deliver();
	assert_true(take_cnp(&p));
	take_cqe(&b);
	for (unsigned i = 0; i < 3; i++) {
		struct core_counters *count = &a.host->core.count;
		uint16_t verdict;

		atomic_store(&a.host->ports.port[0].rcm, i ? rcm_word(0, 0, false) : 0);
		if (i == 2)
			a.qp->qp->pkey = 0x8001;
		p.port = 0;
		p.queue = PKT_NO_QUEUE;
		core_rx(&a.host->core, &p, 1, now, &verdict);
		assert_int_equal(verdict, i == 0   ? DROP_CNP_IGNORED
					  : i == 1 ? DROP_NONE
						   : DROP_PKEY);
		assert_int_equal(count->rp_cnp_handled, i >= 1);
		assert_int_equal(count->rp_cnp_ignored, i == 0 ? 1 : i);
	}
}

#define LATELY 10000000u

static uint8_t *last_byte_of_source(const struct pkt *p)
{
	return cnp_frame + (p->l3 - cnp_frame) + (p->net == NET_IPV4 ? IP4_SRC + 3 : IP6_SRC + 15);
}

/* The CNP @p p, from the address whose last byte is @p last.  @return what a makes of it */
static uint16_t told(struct pkt p, uint8_t last)
{
	uint16_t verdict;

	*last_byte_of_source(&p) = last;
	icrc_store(cnp_frame + (p.l3 - cnp_frame) + p.icrc_off,
		icrc_header(icrc_by_name("table"), p.l3, p.net, p.icrc_off));
	p.port = 0;
	p.queue = PKT_NO_QUEUE;
	core_rx(&a.host->core, &p, 1, now, &verdict);
	return verdict;
}

/* proves CNP-16: an address that the QP has not sent to lately has nothing to say. */
static void rp_ud__ignores_strangers(void **state)
{
	static const enum host_gid gids[] = {HOST_GID_IPV4, HOST_GID_IPV6};
	const struct core_counters *count = &a.host->core.count;

	atomic_store(&a.host->ports.port[0].rcm, rcm_word(0, 0, false));
	for (unsigned i = 0; i < ARRAY_SIZE(gids); i++) {
		unsigned strangers = 0;
		struct pkt p;
		uint8_t peer;

		lead_ect(gids[i]);
		receive_at(&b, b.qp, 1, 0, BUFFER);
		make_frame(100);
		mark();
		deliver();
		assert_true(take_cnp(&p));
		take_cqe(&b);
		peer = *last_byte_of_source(&p);
		assert_int_equal(told(p, peer), DROP_NONE);
		for (unsigned j = 1; j <= 64; j++)
			strangers += told(p, (uint8_t)(peer + j)) == DROP_CNP_STRANGER;
		assert_in_range(strangers, 58, 64); /* a hash of 6 bits may collide */
		now += LATELY;
		assert_int_equal(told(p, peer), DROP_NONE);
		now += 2 * LATELY;
		assert_int_equal(told(p, peer), DROP_CNP_STRANGER);
	}
	assert_int_equal(count->rp_cnp_ignored, count->drop[DROP_CNP_STRANGER]);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, datagram_teardown)
	const struct CMUnitTest tests[] = {
		T(np_ud__goes_back_to_the_source),
		T(np_ud__stays_in_the_vlan),
		T(np_ud__has_a_priority_tag),
		T(np_ud__does_not_answer),
		T(np_ud__makes_datagrams_ecn_capable),
		T(np_ud__leaves_qp1_alone),
		T(rp_ud__takes_no_cnp_by_rocev1),
		T(rp_ud__accepts_cnps),
		T(rp_ud__ignores_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
