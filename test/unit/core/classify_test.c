/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose is a packet, and may it touch state: VAL-*, ICRC-11, ICRC-12. */
#include <stdlib.h>
#include "core_command.h"
#include "fixture.h"
#include "frame.h"
#include "headers.h"
#include "icrc.h"
#include "packet.h"
#include "qp_impl.h"
#include "qp_table.h"
#include "txd.h"

static struct sim_host peer;

static int setup(void **state)
{
	lone_setup(state);
	host_init(&peer, 2, icrc_best(), 0);
	return 0;
}

static struct shot good(void)
{
	return (struct shot){.opcode = 0x04, .psn = RQ_PSN, .ackreq = true, .len = 4};
}

/* A packet as it may come from anywhere: addresses and protocol by hand too. */
struct stray {
	unsigned net; /* enum host_gid */
	uint8_t sgid[16], dgid[16];
	const uint8_t *dmac;
	uint8_t opcode;
	uint16_t pkey;
	uint32_t dest_qp;
	uint16_t vid;
	bool bad_icrc;
	bool looped; /* by this daemon, from QP `source_qp` */
	uint32_t source_qp;
};

static const uint8_t *own_mac(void)
{
	static uint8_t mac[12]; /* and whose it is from */

	port_get_mac(&l.host->ports.port[0], mac);
	return mac;
}

static struct stray stray_of(unsigned net)
{
	struct stray s = {.net = net,
		.dmac = own_mac(),
		.opcode = 0x04,
		.pkey = 0xFFFF,
		.dest_qp = l.qp->qp->qpn};

	memcpy(s.sgid, peer.gids[0].entry[net].gid, 16);
	memcpy(s.dgid, l.host->gids[0].entry[net].gid, 16);
	return s;
}

/* Delivers it. Extended headers are zeroes; what may have a payload has four bytes of it. */
static uint16_t stray_rx(const struct stray *s)
{
	static uint8_t f[FRAME_MAX];
	const struct opcode *op = opcode_row(s->opcode);
	uint16_t body = (uint16_t)(op->hdr_len - BTH_HLEN + (op->payload ? 4 : 0));
	struct gid_entry from = peer.gids[0].entry[s->net];
	struct path_spec spec = {.sgid = &from, .hop_limit = 64, .src_qpn = 1, .dst_qpn = 2};
	struct path path;
	struct pkt pkt;
	uint16_t verdict;
	uint8_t *bth, *end;
	uint32_t crc;

	memcpy(from.gid, s->sgid, 16);
	from.vid = s->vid;
	memcpy(spec.dgid, s->dgid, 16);
	memcpy(spec.dmac, s->dmac, 6);
	path_init(&path, &spec);
	memset(f, 0, sizeof(f));
	bth = path_write(&path, f, (uint16_t)(BTH_HLEN + body + ICRC_LEN), 1);
	bth[BTH_OPCODE] = s->opcode;
	put_be16(bth + BTH_PKEY, s->pkey);
	put_be32(bth + BTH_RESV8A, s->dest_qp);
	put_be32(bth + BTH_ACKREQ, 0x80000000u | RQ_PSN);
	end = bth + BTH_HLEN + body;
	crc = icrc_header(icrc_by_name("table"), f + path.l3_off, (enum net_type)path.net,
		(size_t)(end - f) - path.l3_off);
	icrc_store(end, crc);
	end[0] ^= s->bad_icrc;
	pkt.port = 0;
	pkt.queue = s->looped ? PKT_LOCAL : PKT_NO_QUEUE;
	pkt.source_qp = s->source_qp;
	assert_int_equal(
		host_parse(&l.host->core, &pkt, f, (size_t)(end - f) + ICRC_LEN), DROP_NONE);
	core_rx(&l.host->core, &pkt, 1, l.now, &verdict);
	return verdict;
}

static struct qp before;
static uint64_t dropped;

static void watch(enum drop why)
{
	before = *l.qp->qp;
	dropped = l.host->core.count.drop[why];
}

/* VAL-19: silence, one counter, no change. */
static void assert_silence(enum drop why)
{
	assert_int_equal(l.host->core.count.drop[why], dropped + 1);
	assert_memory_equal(&before, l.qp->qp, sizeof(before));
	assert_string_equal(lone_tx(&l), "");
	assert_string_equal(lone_cqes(&l), "");
	assert_int_equal(l.app.events, 0);
}

static void expect_drop(const struct shot *s, enum drop why)
{
	watch(why);
	assert_int_equal(lone_rx(&l, s), why);
	assert_silence(why);
}

static void expect_stray(const struct stray *s, enum drop why)
{
	watch(why);
	assert_int_equal(stray_rx(s), why);
	assert_silence(why);
}

/* proves VAL-19: whatever is wrong, the QP does not notice. */
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

/* proves ETH-10: a VLAN netdev may have a MAC of its own, which counts in its VLAN only. */
static void core_rx__mac_of_a_vlan(void **state)
{
	static const uint8_t vlan_mac[6] = {2, 0, 0, 0, 0, 7};
	struct gid_table *gids = &l.host->gids[0];
	struct stray s;

	lone_start(&l);
	gids->entry[gids->count] = gids->entry[HOST_GID_IPV4];
	gids->entry[gids->count].vid = 5;
	memcpy(gids->entry[gids->count].mac, vlan_mac, 6);
	gids->count++;
	s = stray_of(HOST_GID_IPV4);
	s.dest_qp = 0x777;
	s.dmac = vlan_mac;
	expect_stray(&s, DROP_DMAC);
	s.vid = 6;
	expect_stray(&s, DROP_DMAC);
	s.vid = 5;
	expect_stray(&s, DROP_QPN_UNKNOWN);
	s.dmac = own_mac();
	expect_stray(&s, DROP_QPN_UNKNOWN);
}

/* proves VAL-01, VAL-19, ICRC-11, ICRC-12: everything is wrong with a packet; mended one by one,
 * what is next in the order shows. A corrupt packet moves no violation counter. */
static void core_rx__order_of_checks(void **state)
{
	const uint64_t *bad_pkey = &l.host->core.count.bad_pkey[0];
	struct stray s;

	lone_start(&l);
	lone_recv(&l, 1, 0, 64);
	s = stray_of(HOST_GID_IPV4);
	s.opcode = 0x64;
	s.pkey = 0x1234;
	s.dest_qp = 0x777;
	s.bad_icrc = true;
	s.sgid[15] = 99;
	s.dgid[15] = 98;
	s.dmac = (const uint8_t *)"\x02\0\0\0\0\x07";
	expect_stray(&s, DROP_DMAC);
	s.dmac = own_mac();
	expect_stray(&s, DROP_DGID);
	s.dgid[15] = 1;
	expect_stray(&s, DROP_QPN_UNKNOWN);
	s.dest_qp = l.qp->qp->qpn;
	expect_stray(&s, DROP_ICRC);
	s.bad_icrc = false;
	l.qp->qp->state = ABI_QPS_INIT;
	expect_stray(&s, DROP_QP_TYPE);
	s.opcode = 0x04;
	expect_stray(&s, DROP_QP_STATE);
	l.qp->qp->state = ABI_QPS_RTS;
	expect_stray(&s, DROP_QP_ADDRESS);
	s.sgid[15] = 2;
	s.bad_icrc = true;
	expect_stray(&s, DROP_ICRC);
	assert_int_equal(*bad_pkey, 0);
	s.bad_icrc = false;
	expect_stray(&s, DROP_PKEY);
	assert_int_equal(*bad_pkey, 1);
	s.pkey = 0xFFFF;
	assert_int_equal(stray_rx(&s), DROP_NONE);
}

/* proves VAL-02, VAL-03: QP0, no such QP, a former one in the same slot, one of another worker
 * (which need not exist), a destroyed one. */
static void core_rx__unknown_qp(void **state)
{
	struct stray s;
	struct core_cmd detach = {.type = CORE_CMD_DETACH_QP};

	lone_start(&l);
	s = stray_of(HOST_GID_IPV4);
	s.dest_qp = 0;
	expect_stray(&s, DROP_QP0);
	s.dest_qp = l.qp->qp->qpn + 1;
	expect_stray(&s, DROP_QPN_UNKNOWN);
	s.dest_qp = l.qp->qp->qpn + (1u << (QPN_SLOT_BITS + QPN_WORKER_BITS));
	expect_stray(&s, DROP_QPN_UNKNOWN);
	s.dest_qp = l.qp->qp->qpn + (1u << QPN_SLOT_BITS);
	expect_stray(&s, DROP_QPN_UNKNOWN);
	s.dest_qp = l.qp->qp->qpn;
	detach.qp = l.qp->qp;
	assert_int_equal(core_cmd(&l.host->core, &detach, l.now), 0);
	expect_stray(&s, DROP_QP_STATE);
	atomic_store(&l.host->qps.slot[QPN_SLOT(s.dest_qp)], NULL);
	expect_stray(&s, DROP_QPN_UNKNOWN);
}

/* proves VAL-04: every opcode of UC, UD and XRC. */
static void core_rx__other_transport_services(void **state)
{
	static const uint8_t classes[] = {OPC_UC, OPC_UD, OPC_XRC};

	lone_start(&l);
	lone_recv(&l, 1, 0, 64);
	for (unsigned i = 0; i < ARRAY_SIZE(classes); i++) {
		for (uint8_t op = 0; op < 32; op++) {
			struct stray s = stray_of(HOST_GID_IPV4);

			s.opcode = classes[i] | op;
			expect_stray(&s, DROP_QP_TYPE);
		}
	}
}

/* An administrator changes the table of the QP's port. */
static void set_pkey(unsigned index, uint16_t pkey)
{
	struct core_cmd cmd = {.type = CORE_CMD_RELOAD_PKEYS, .n = 1, .qps = &l.qp->qp};

	l.host->ports.port[0].pkey[index] = pkey;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
}

/* proves VAL-08, VAL-09: the QP's entry of the P_Key table counts, not any. VAL-08: a limited
 * member. */
static void core_rx__pkey_of_the_qps_index(void **state)
{
	static const struct {
		uint16_t ours, theirs;
		bool match;
	} row[] = {{0x8123, 0x8123, true}, {0x8123, 0x0123, true}, {0x0123, 0x8123, true},
		{0x0123, 0x0123, false}, {0x8123, 0xFFFF, false}, {0x8123, 0x8122, false},
		{0x8000, 0x8000, false}, {0x8000, 0x0000, false}};

	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		struct stray s;

		if (i)
			lone_init(&l);
		l.host->ports.port[0].pkeys = 2;
		l.host->ports.port[0].pkey[1] = 0x8001;
		l.attr.pkey_index = 1;
		lone_start(&l);
		set_pkey(1, row[i].ours);
		lone_recv(&l, 1, 0, 64);
		s = stray_of(HOST_GID_IPV4);
		s.pkey = row[i].theirs;
		if (row[i].match)
			assert_int_equal(stray_rx(&s), DROP_NONE);
		else
			expect_stray(&s, DROP_PKEY);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* proves VAL-10: silent, and the architected counter stops at 0xFFFF. */
static void core_rx__bad_pkey_counter_saturates(void **state)
{
	struct core_counters *c = &l.host->core.count;
	struct shot s = good();

	lone_start(&l);
	s.pkey = 0x1234;
	expect_drop(&s, DROP_PKEY);
	assert_int_equal(c->bad_pkey[0], 1);
	assert_int_equal(c->bad_pkey[1], 0);
	c->bad_pkey[0] = 0xFFFE;
	for (unsigned i = 0; i < 3; i++) {
		expect_drop(&s, DROP_PKEY);
		assert_int_equal(c->bad_pkey[0], 0xFFFF);
	}
	assert_int_equal(c->drop[DROP_PKEY], 4);
	s = good();
	s.src_ip = 9; /* other violations are not its business */
	expect_drop(&s, DROP_QP_ADDRESS);
	s = good();
	lone_rx(&l, &s);
	assert_int_equal(c->bad_pkey[0], 0xFFFF);
}

/* proves VAL-11: an address that is not in the table, is not any more, or is another protocol's. */
static void core_rx__dgid_is_in_the_table(void **state)
{
	struct gid_table *t = &l.host->gids[0];
	struct stray s;

	lone_start(&l);
	for (unsigned net = HOST_GID_IPV4; net < HOST_GIDS; net++) {
		s = stray_of(net);
		s.dest_qp++; /* nobody's: what counts is why */
		expect_stray(&s, DROP_QPN_UNKNOWN);
		s.dgid[15] ^= 0x40;
		expect_stray(&s, DROP_DGID);
		s.dgid[15] ^= 0x40;
		t->entry[net].valid = false;
		expect_stray(&s, DROP_DGID);
		t->entry[net].valid = true;
		t->entry[net].net = (uint8_t)((net + 1) % HOST_GIDS);
		expect_stray(&s, DROP_DGID);
		t->entry[net].net = (uint8_t)net;
		t->entry[net].vid = 7;
		expect_stray(&s, DROP_DGID);
		t->entry[net].vid = 0;
	}
}

/* proves VAL-12, SEC-03: a connected QP hears its peer at its own address only, be the address the
 * port's.
 */
static void core_rx__only_the_peer(void **state)
{
	struct gid_table *t = &l.host->gids[0];
	struct stray s;

	lone_start(&l);
	lone_recv(&l, 1, 0, 64);
	t->entry[t->count] = t->entry[HOST_GID_IPV4];
	t->entry[t->count++].gid[15] = 77;
	s = stray_of(HOST_GID_IPV4);
	s.dgid[15] = 77;
	expect_stray(&s, DROP_QP_ADDRESS);
	s = stray_of(HOST_GID_IPV4);
	s.sgid[15]++;
	expect_stray(&s, DROP_QP_ADDRESS);
	s.sgid[15]--;
	assert_int_equal(stray_rx(&s), DROP_NONE);
}

/* proves SEC-03, VAL-12: nobody else acknowledges, refuses or answers what the QP has sent. */
static void core_rx__answers_of_the_peer_alone(void **state)
{
	static const struct shot forged[] = {
		{.opcode = 0x11, .psn = SQ_PSN, .syndrome = 0x1F, .msn = 1},
		{.opcode = 0x11, .psn = SQ_PSN, .syndrome = 0x61},
		{.opcode = 0x11, .psn = SQ_PSN, .syndrome = 0x21},
		{.opcode = 0x10, .psn = SQ_PSN + 1, .syndrome = 0x1F, .msn = 2, .len = 4}};

	lone_start(&l);
	lone_post(&l, ABI_WR_SEND, 1, 4, 0);
	lone_post(&l, ABI_WR_RDMA_READ, 2, 4, 0);
	lone_tx(&l);
	for (unsigned i = 0; i < ARRAY_SIZE(forged); i++) {
		struct shot s = forged[i];

		s.src_ip = 99;
		expect_drop(&s, DROP_QP_ADDRESS);
	}
	assert_string_equal(lone_cqes(&l), "");
	assert_string_equal(lone_tx(&l), "");
	lone_rx(&l, &forged[0]);
	lone_rx(&l, &forged[3]);
	assert_string_equal(lone_cqes(&l), "S1:OK S2:OK");
}

/* A QP over @p net, in RTR. */
static void start_over(unsigned net)
{
	struct path_spec path = host_path(l.host, &peer, 0, (enum host_gid)net);

	lone_start_in(&l, ABI_QPS_INIT);
	assert_int_equal(app_to_rtr(l.qp, &l.attr, &path, l.now), 0);
}

/* proves VAL-13: each protocol's packets at a QP of each protocol; the last round has one and the
 * same GID as RoCEv1's and RoCEv2's. */
static void core_rx__gid_type_of_the_qp(void **state)
{
	for (unsigned qp = 0; qp < HOST_GIDS; qp++) {
		for (unsigned net = 0; net < HOST_GIDS; net++) {
			struct stray s;

			if (qp + net)
				lone_init(&l);
			start_over(qp);
			s = stray_of(net);
			if (net == qp)
				assert_int_equal(stray_rx(&s), DROP_NONE);
			else
				expect_stray(&s, DROP_QP_ADDRESS);
			lone_fini(&l);
		}
	}
	for (unsigned net = HOST_GID_IPV4; net <= HOST_GID_IPV6; net++) {
		struct stray s;
		struct gid_entry *v1;

		lone_init(&l);
		v1 = &l.host->gids[0].entry[HOST_GID_ROCEV1];
		memcpy(v1->gid, l.host->gids[0].entry[net].gid, 16);
		start_over(net);
		s = stray_of(net);
		s.net = HOST_GID_ROCEV1;
		expect_stray(&s, DROP_QP_ADDRESS);
		if (net == HOST_GID_IPV4)
			lone_fini(&l);
	}
}

/* proves SEC-03: a frame from outside whose source is one of the port's own addresses, to a QP, to
 * QP1 and to a group; not one of another VLAN's or a removed one. */
static void core_rx__own_address_from_outside(void **state)
{
	struct stray s;

	lone_start(&l);
	for (unsigned net = 0; net < HOST_GIDS; net++) {
		s = stray_of(net);
		memcpy(s.sgid, l.host->gids[0].entry[net].gid, 16);
		expect_stray(&s, DROP_MARTIAN);
		s.dest_qp = 1;
		s.opcode = 0x64;
		expect_stray(&s, DROP_MARTIAN);
		s.dest_qp = QPN_MULTICAST;
		memcpy(s.dgid, (uint8_t[16]){[10] = 0xFF, 0xFF, 239, 1, 2, 3}, 16);
		expect_stray(&s, DROP_MARTIAN);
		s = stray_of(net); /* another port's is legal: the ports may be one network */
		memcpy(s.sgid, l.host->gids[1].entry[net].gid, 16);
		expect_stray(&s, DROP_QP_ADDRESS);
		memcpy(s.sgid, l.host->gids[0].entry[net].gid, 16);
		l.host->gids[0].entry[net].valid = false;
		expect_stray(&s, DROP_DGID);
		l.host->gids[0].entry[net].valid = true;
	}
}

/* The lone QP is a peer of this daemon's now, without another address. */
static void make_local(bool local)
{
	struct core_cmd cmd = {
		.type = CORE_CMD_READDRESS_QPS, .n = 1, .qps = (struct qp *[]){l.qp->qp}};

	memcpy(cmd.path.dmac, peer.gids[0].entry[0].mac, 6);
	memcpy(cmd.sgid.mac, own_mac(), 6);
	cmd.path.local = local;
	assert_int_equal(core_cmd(&l.host->core, &cmd, l.now), 0);
}

/* proves SEC-03: a peer in this daemon does not come by the wire, and no other QP of the daemon is
 * taken for it. */
static void core_rx__local_peer_is_one_qp(void **state)
{
	struct stray s;

	lone_start(&l);
	make_local(true);
	s = stray_of(HOST_GID_IPV4);
	expect_stray(&s, DROP_QP_ADDRESS); /* its address is none of the port's */
	s.looped = true;
	s.source_qp = l.qp->qp->attr.dest_qpn ^ 1;
	expect_stray(&s, DROP_QP_PEER);
	s.source_qp = l.qp->qp->qpn;
	expect_stray(&s, DROP_QP_PEER);
	s.source_qp = l.qp->qp->attr.dest_qpn;
	assert_int_equal(stray_rx(&s), DROP_NONE);
	assert_string_equal(lone_tx(&l), "ACK@10021/0");
	make_local(false); /* as between two looks at the address tables */
	s.source_qp ^= 1;
	expect_stray(&s, DROP_QP_PEER);
}

/* proves VAL-15: a multicast source; a destination that stays within a host, were it in the table.
 */
static void core_rx__impossible_addresses(void **state)
{
	static const struct {
		unsigned net;
		uint8_t gid[16];
	} source[] = {{HOST_GID_IPV4, {[10] = 0xFF, 0xFF, 224, 0, 0, 1}},
		{HOST_GID_IPV4, {[10] = 0xFF, 0xFF, 239, 255, 255, 255}},
		{HOST_GID_IPV6, {0xFF, 0x02, [15] = 1}}, {HOST_GID_IPV6, {0xFF, 0xFF, [15] = 1}},
		{HOST_GID_ROCEV1, {0xFF, 0x0E, [15] = 9}}},
	  dest[] = {{HOST_GID_IPV4, {[10] = 0xFF, 0xFF, 127, 0, 0, 1}},
		  {HOST_GID_IPV4, {[10] = 0xFF, 0xFF, 127, 9, 8, 7}},
		  {HOST_GID_IPV4, {[10] = 0xFF, 0xFF, 0, 0, 0, 0}}, {HOST_GID_IPV6, {[15] = 1}},
		  {HOST_GID_IPV6, {0}}, {HOST_GID_ROCEV1, {[15] = 1}}, {HOST_GID_ROCEV1, {0}}};
	struct stray s;

	lone_start(&l);
	for (unsigned i = 0; i < ARRAY_SIZE(source); i++) {
		s = stray_of(source[i].net);
		memcpy(s.sgid, source[i].gid, 16);
		expect_stray(&s, DROP_SGID);
		s.dest_qp = QPN_MULTICAST;
		s.opcode = 0x64;
		expect_stray(&s, DROP_SGID);
		memcpy(s.dgid, source[i].gid, 16); /* to a group, as it should be */
		expect_stray(&s, DROP_SGID);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(dest); i++) {
		s = stray_of(dest[i].net);
		memcpy(s.dgid, dest[i].gid, 16);
		memcpy(l.host->gids[0].entry[dest[i].net].gid, dest[i].gid, 16);
		expect_stray(&s, DROP_DGID);
	}
}

/* proves VAL-17: QPN 0xFFFFFF, a multicast DGID and a UD opcode come together or not at all. */
static void core_rx__multicast_qpn(void **state)
{
	static const uint8_t group[][16] = {[HOST_GID_IPV4] = {[10] = 0xFF, 0xFF, 239, 0, 0, 1},
		[HOST_GID_IPV6] = {0xFF, 0x02, [15] = 1},
		[HOST_GID_ROCEV1] = {0xFF, 0x0E, [15] = 9}};

	lone_start(&l);
	for (unsigned net = 0; net < HOST_GIDS; net++) {
		struct stray s = stray_of(net);

		s.opcode = 0x64;
		s.dest_qp = QPN_MULTICAST;
		expect_stray(&s, DROP_QPN_MCAST);
		memcpy(s.dgid, group[net], 16);
		expect_stray(&s, DROP_DGID); /* VAL-11: well formed; nobody has joined */
		s.opcode = 0x04;
		expect_stray(&s, DROP_QPN_MCAST);
		s.dest_qp = l.qp->qp->qpn;
		expect_stray(&s, DROP_QPN_MCAST);
		s.opcode = 0x64;
		expect_stray(&s, DROP_QPN_MCAST);
	}
}

/* proves VAL-20: nobody polls, the CQ is full, events wait: all packets are checked and answered
 * all the same. */
static void core_rx__checks_without_a_consumer(void **state)
{
	struct core_counters *c = &l.host->core.count;
	struct txd t = {.frame = l.host->tx[0]};
	struct shot s = good();

	l.cq_depth = 2;
	lone_start(&l);
	for (unsigned i = 0; i < 3; i++)
		lone_recv(&l, i, 0, 64);
	qp_event(&l.host->core, l.qp->qp, ABI_EVENT_COMM_EST);
	for (unsigned i = 0; i < 2; i++) {
		s.psn = RQ_PSN + i;
		assert_int_equal(lone_rx(&l, &s), 0);
	}
	assert_int_equal(core_tx(&l.host->core, &t, 1, l.now), 1);
	s.psn = RQ_PSN + 2;
	s.bad_icrc = true;
	assert_int_equal(lone_rx(&l, &s), DROP_ICRC);
	s.bad_icrc = false;
	s.pkey = 0x1234;
	assert_int_equal(lone_rx(&l, &s), DROP_PKEY);
	assert_int_equal(c->bad_pkey[0], 1);
	s.pkey = 0;
	s.psn = RQ_PSN + 9;
	assert_int_equal(lone_rx(&l, &s), DROP_NONE);
	assert_int_equal(core_tx(&l.host->core, &t, 1, l.now), 1);
	assert_int_equal(core_seal(&l.host->core, &t), 62);
	assert_int_equal(t.frame[54], 0x60);
	assert_int_equal(c->out_of_sequence, 1);
}

/* VAL-08: limited and full match. */
static void core_rx__limited_member_talks_to_full(void **state)
{
	struct shot s = good();

	lone_start(&l);
	s.pkey = 0x7FFF;
	assert_int_equal(lone_rx(&l, &s), 0);
}

/* proves VAL-06, VAL-07, QPS-17, QPS-18. RC has no SQE (RSP-47); what receives there: uc_test.c. */
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
		/* no receive is posted */
		assert_string_equal(lone_tx(&l), row[i].request ? "ACK@10021/0" : "");
		assert_int_equal(l.qp->qp->state, s);
		if (i + 1 < ARRAY_SIZE(row))
			lone_fini(&l);
	}
}

/* decision 0000.4: another worker's, untouched and not counted. */
static void core_rx__hands_off(void **state)
{
	struct shot s = good();
	struct qp *other;
	uint32_t qpn = QPN_MAKE(2, 3, 77);

	lone_start(&l);
	other = aligned_alloc(CACHE_LINE, (sizeof(*other) + CACHE_LINE - 1) & ~(size_t)63);
	*other = *l.qp->qp;
	other->qpn = qpn;
	atomic_store(&other->owner, 3);
	atomic_store(&l.host->qps.slot[77], other);
	s.dest_qp = qpn;
	s.bad_icrc = true; /* the owner will see */
	assert_int_equal(lone_rx(&l, &s), VERDICT_HANDOFF + 3);
	assert_int_equal(l.host->core.count.port[0].rx_packets, 0);
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
		pkts[i].queue = PKT_NO_QUEUE;
		pkts[i].dmac = own_mac();
	}
	/* not to the port it came from */
	l.host->gids[0].entry[HOST_GID_IPV4].valid = false;
	core_rx(&l.host->core, pkts, ARRAY_SIZE(pkts), l.now, verdict);
	for (unsigned i = 0; i < ARRAY_SIZE(pkts); i++)
		assert_int_equal(verdict[i], DROP_DGID);
	assert_int_equal(l.host->core.count.port[0].rx_packets, ARRAY_SIZE(pkts));
	assert_int_equal(l.host->core.count.drop[DROP_DGID], ARRAY_SIZE(pkts));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, lone_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(core_rx__drops_in_silence),
		T(core_rx__mac_of_a_vlan),
		T(core_rx__own_address_from_outside),
		T(core_rx__local_peer_is_one_qp),
		T(core_rx__order_of_checks),
		T(core_rx__unknown_qp),
		T(core_rx__other_transport_services),
		T(core_rx__pkey_of_the_qps_index),
		T(core_rx__bad_pkey_counter_saturates),
		T(core_rx__dgid_is_in_the_table),
		T(core_rx__only_the_peer),
		T(core_rx__answers_of_the_peer_alone),
		T(core_rx__gid_type_of_the_qp),
		T(core_rx__impossible_addresses),
		T(core_rx__multicast_qpn),
		T(core_rx__checks_without_a_consumer),
		T(core_rx__limited_member_talks_to_full),
		T(core_rx__states),
		T(core_rx__hands_off),
		T(core_rx__takes_any_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
