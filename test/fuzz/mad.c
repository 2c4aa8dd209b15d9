/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Management datagrams (IBA 13.4; CM-01, VAL-09, VAL-16, UD-05..10) from a hostile network to the
 * program that has QP1, on the real way: frame, core_rx(), receive buffer, completion; and back by
 * the same QP. An input is a series of them: a record that says what is odd about the packet, then
 * the bytes of the MAD, so that a parser's input is there as it is on the wire. A parser of MADs
 * gets them in exchange(), from the receive buffer, as the communication manager does: with two
 * listeners and a connection of its own, whatever arrives, its state is bounded. FUZZ_PRINT=1
 * fuzz_mad FILE tells what happens.
 *
 *   act      protocol, low bits; 4: in a VLAN
 *   b[0]     MAD_*
 *   b[1]     other than 0: the Q_Key is another one
 *   b[2]     P_Key: one of the table or of its limited members, or none
 *   b[3..4]  length, 0: that of a MAD
 *   b[5..7]  source QPN, added to 1
 *   b[8..10] PSN
 *   b[11]    which byte of BTH to ICRC is damaged, b[12]: how; 0: none
 *   b[13]    room of the receive: that of one MAD, and this many times sixteen bytes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "abi_ctl.h"
#include "ah.h"
#include "app.h"
#include "cm.h"
#include "frame.h"
#include "headers.h"
#include "hosts.h"
#include "icrc.h"
#include "opcode.h"
#include "oracle.h"
#include "qp.h"
#include "qp_table.h"
#include "records.h"
#include "target.h"
#include "txd.h"
#include "ud.h"
#include "write.h"

#define AREA_LEN     40u
#define BUFFER	     8192u
#define FILLER	     0xA5
#define MADS_MAX     16u
#define CM_CONNS     8u
#define CM_HALVES    4u
#define SERVICE	     0x01061d2full /* TCP port 7471 */
#define SIDR	     0x01111d2full
#define START	     1000000ull
#define AH_ID	     3u
#define MAD_SEALED   0x01u /* damage is in front of the ICRC, which is right again */
#define MAD_ACKREQ   0x02u
#define MAD_IMM	     0x04u
#define MAD_NO_RECV  0x08u
#define MAD_STRANGER 0x10u /* from another host than the answer goes to */

static struct world {
	struct sim_host *host, *peer, *other;
	struct app app;
	struct app_cq *cq;
	struct app_qp *qp;
	struct app_mr *mr;
	struct ah ah;
	uint32_t room; /* of the receive that is posted, 0: none */
	uint64_t receives;
	uint64_t sends;
	struct cm *cm;
	void *cm_room;
	uint64_t now;
} w;

/* The port's table: a full member, a limited one, none, another full one. */
static const uint16_t pkeys[] = {0xFFFF, 0x1234, 0, 0x8765};

/* --- set-up --------------------------------------------------------------------------- */

static void open_qp1(void)
{
	struct app_qp_spec spec = {.type = ABI_QPT_GSI,
		.sq_depth = 16,
		.rq_depth = 16,
		.max_sge = 2,
		.max_inline = 0,
		.send_cq = w.cq,
		.recv_cq = w.cq};
	struct abi_qp_attr attr = app_attr(0, 0xFFFFFE, 0);

	w.qp = app_qp(&w.app, &spec);
	atomic_store(&w.host->qps.slot[QPN_SLOT(w.qp->qp->qpn)], NULL);
	atomic_store(&w.host->qps.gsi[0], w.qp->qp);
	w.qp->qp->gsi_port = 1;
	w.qp->qp->attr.port = 1;
	MUST(app_to_init(w.qp, &attr, START) == 0);
	MUST(app_to_rtr(w.qp, &attr, NULL, START) == 0);
	MUST(app_to_rts(w.qp, &attr, START) == 0);
}

/* --- the communication manager ---------------------------------------------------------- */

/* CM-08, and all that leaves is a MAD. */
static void cm_sends(void *arg, const struct cm_path *to, const uint8_t mad[MAD_LEN])
{
	(void)arg;
	(void)to;
	MUST(mad_check(mad, MAD_LEN) == MAD_CM);
	if (mad_attr(mad) == CM_REJ)
		MUST(cm_get(mad, CM_F_REJ_REASON) != 13 && cm_get(mad, CM_F_REJ_REASON) != 19);
}

/* Some requests are refused by those who listen. */
static enum cm_rej cm_tells(void *arg, const struct cm_event *e)
{
	(void)arg;
	MUST(e->type < CM_EVENTS && e->private_len <= MAD_LEN && e->path);
	if (e->type == CM_EV_REQ && cm_get(e->mad, CM_F_REQ_SRQ))
		return CM_REJ_INVALID_GID;
	return e->type == CM_EV_SIDR_REQ && mad_tid(e->mad) & 1 ? CM_REJ_CONSUMER : 0;
}

static void open_cm(void)
{
	const struct cm_ops ops = {.send = cm_sends, .event = cm_tells};
	struct cm_conf conf = cm_defaults();
	struct cm_path path = {.remote = {[15] = 2}, .local = {[15] = 1}, .net = NET_IPV6};
	struct cm_param param = {.qpn = 0x11, .mtu = 3};
	uint32_t id;

	conf.half_open = CM_HALVES;
	for (unsigned i = 0; i <= HASH_WORDS; i++)
		conf.seed.factor[i] = 0x9E3779B97F4A7C15ull * (i + 1);
	w.cm_room = calloc(1, cm_size(CM_CONNS, 2));
	MUST(w.cm_room);
	w.cm = cm_init(w.cm_room, CM_CONNS, 2, &conf, &ops, NULL, START);
	w.now = START;
	MUST(!cm_listen(w.cm, SERVICE, NULL, 4, 1, &id));
	MUST(!cm_listen(w.cm, SIDR, NULL, 4, 2, &id));
	MUST(!cm_connect(w.cm, &path, 0x1234, &param, 3, &id, START));
}

static void world_init(void)
{
	struct port *port;

	w = (struct world){.host = fuzz_host(1, START),
		.peer = fuzz_host(2, START),
		.other = fuzz_host(3, START)};
	port = &w.host->ports.port[0];
	port->pkeys = ARRAY_SIZE(pkeys);
	for (unsigned i = 0; i < ARRAY_SIZE(pkeys); i++)
		port->pkey[i] = pkeys[i];
	app_init(&w.app, w.host);
	w.cq = app_cq(&w.app, 64);
	w.mr = app_mr(&w.app, BUFFER, ABI_ACCESS_LOCAL_WRITE);
	open_qp1();
	open_cm();
}

static void world_fini(void)
{
	MUST(app_guards_ok(&w.app));
	free(w.cm_room);
	atomic_store(&w.host->qps.gsi[0], NULL);
	atomic_store(&w.host->ahs.slot[AH_SLOT(AH_ID)], NULL);
	app_fini(&w.app);
}

/* --- the packet ----------------------------------------------------------------------- */

/* Arriving packets, and the rules that apply to them. */
struct mad {
	struct path_spec from;
	struct pkt p;
	uint8_t frame[FRAME_MAX];
	size_t len;
	uint16_t length; /* of what the datagram carries */
	int pkey_index;	 /* -1: no P_Key of the table matches */
	bool damaged;
	const uint8_t *bytes;
};

static uint16_t pkey_of(const struct record *r)
{
	static const uint16_t more[] = {0x7FFF, 0x9234, 0x0765, 0x0000, 0x8000, 0x4321};
	unsigned which = r->b[2] % (ARRAY_SIZE(pkeys) + ARRAY_SIZE(more));

	return which < ARRAY_SIZE(pkeys) ? pkeys[which] : more[which - ARRAY_SIZE(pkeys)];
}

/* VAL-08, VAL-09: the first of the table that matches, not both of them limited members. */
static int index_of(uint16_t pkey)
{
	for (unsigned i = 0; i < ARRAY_SIZE(pkeys); i++)
		if (pkeys[i] & 0x7FFF && (pkeys[i] & 0x7FFF) == (pkey & 0x7FFF) &&
			(pkeys[i] | pkey) & 0x8000)
			return (int)i;
	return -1;
}

static void damage(struct mad *m, const struct record *r, const struct path *path)
{
	size_t at = path->hdr_len + r->b[11] % (m->len - path->hdr_len);

	m->damaged = r->b[12];
	if (!m->damaged)
		return;
	m->frame[at] ^= r->b[12];
	if (r->b[0] & MAD_SEALED)
		packet_seal(m->frame + path->l3_off, path->net, m->len - path->l3_off);
}

static void write_mad(struct mad *m, const struct record *r, const uint8_t *bytes)
{
	enum host_gid gid =
		(enum host_gid)(r->act % 4 % HOST_GIDS + (r->act & 4 ? HOST_GID_VLAN : 0));
	uint32_t src = r->b[5] | (uint32_t)r->b[6] << 8 | (uint32_t)r->b[7] << 16;
	struct path path;

	m->length = (uint16_t)(record_u16(r, 3) ? record_u16(r, 3) % (PATH_MTU_MAX + 1) : MAD_LEN);
	m->from = host_path(r->b[0] & MAD_STRANGER ? w.other : w.peer, w.host, 0, gid);
	m->bytes = bytes;
	m->p = (struct pkt){.op = opcode_row(OPC_UD | (r->b[0] & MAD_IMM ? OP_SEND_ONLY_WITH_IMM
									 : OP_SEND_ONLY)),
		.dest_qp = QPN_GSI,
		.qkey = QKEY_GSI ^ r->b[1] * 0x01010101u,
		.src_qp = (1 + src) & 0xFFFFFF,
		.pkey = pkey_of(r),
		.psn = r->b[8] | (uint32_t)r->b[9] << 8 | (uint32_t)r->b[10] << 16,
		.imm = src,
		.ackreq = !!(r->b[0] & MAD_ACKREQ),
		.payload_len = m->length};
	m->pkey_index = index_of(m->p.pkey);
	path_init(&path, &m->from);
	m->len = packet_write(m->frame, &path, &m->p, bytes);
	damage(m, r, &path);
}

/* --- what becomes of it --------------------------------------------------------------- */

/* In two pieces, that do not end where the 40 bytes do; one that is posted already stays. */
static void post_recv(const struct record *r)
{
	struct abi_sge sge[2];
	uint32_t first = AREA_LEN - 8;

	if (w.room || r->b[0] & MAD_NO_RECV)
		return;
	w.room = (uint32_t)((int)(AREA_LEN + MAD_LEN) + 16 * (int8_t)r->b[13]);
	if (w.room > BUFFER || w.room < first)
		w.room = first;
	sge[0] = app_sge(w.mr, 0, first);
	sge[1] = app_sge(w.mr, first, w.room - first);
	app_post_recv(w.qp, w.receives++, sge, 2);
}

static uint16_t receive(const struct mad *m)
{
	uint8_t *copy = malloc(m->len);
	struct pkt p;
	uint16_t verdict;

	MUST(copy);
	memcpy(copy, m->frame, m->len);
	memset(&p, 0xEE, sizeof(p));
	verdict = (uint16_t)frame_parse(&p, copy, m->len);
	if (!verdict) {
		p.port = 0;
		p.queue = PKT_NO_QUEUE;
		core_rx(&w.host->core, &p, 1, START, &verdict);
	}
	free(copy);
	return verdict;
}

/* The rules that apply to an undamaged packet. */
static uint16_t expected(const struct mad *m)
{
	if (m->pkey_index < 0)
		return DROP_PKEY;
	if (m->p.qkey != QKEY_GSI)
		return DROP_QKEY;
	return w.room ? DROP_NONE : DROP_NO_RECV_WQE;
}

/* UD-05..10: the 40 bytes are the packet's, and the completion tells how it came. */
static void check_delivered(const struct mad *m, const struct abi_cqe *c)
{
	unsigned l3 = m->from.sgid->net == NET_IPV4 ? IP4_HLEN : IP6_HLEN;
	const uint8_t *at = m->frame + ETH_HLEN + (m->from.sgid->vid ? VLAN_HLEN : 0);

	MUST(c->status == ABI_WC_SUCCESS && c->byte_len == AREA_LEN + m->length);
	MUST(c->flags & ABI_WC_GRH && c->pkey_index == m->pkey_index && c->src_qp == m->p.src_qp);
	MUST(c->net == m->from.sgid->net && c->vid == m->from.sgid->vid);
	MUST(!memcmp(c->smac, m->from.sgid->mac, sizeof(c->smac)));
	MUST(!(c->flags & ABI_WC_WITH_IMM) == !m->p.op->immdt);
	MUST(!memcmp(w.mr->mem + AREA_LEN - l3, at, l3));
	MUST(!memcmp(w.mr->mem + AREA_LEN, m->bytes, m->length));
}

/* --- the answer ----------------------------------------------------------------------- */

/* The program's: the same bytes back to QP1 of the peer, with the P_Key that it came with. */
static void post_answer(const struct mad *m)
{
	enum host_gid gid =
		(enum host_gid)(m->from.sgid->net + (m->from.sgid->vid ? HOST_GID_VLAN : 0));
	struct path_spec back = host_path(w.host, w.peer, 0, gid);
	struct app_send s = {.opcode = ABI_WR_SEND,
		.flags = ABI_WQE_SIGNALED,
		.wr_id = w.sends++,
		.remote_addr = (uint64_t)QPN_GSI << 32 | AH_ID,
		.rkey = QKEY_GSI,
		.srqn = (uint32_t)m->pkey_index, /* its place in the WQE */
		.num_sge = 1,
		.sge = {app_sge(w.mr, AREA_LEN, m->length)}};

	w.ah = (struct ah){.id = AH_ID, .pd = w.qp->qp->pd, .hashed = true};
	path_init(&w.ah.path, &back);
	atomic_store(&w.host->ahs.slot[AH_SLOT(AH_ID)], &w.ah);
	app_post_send(w.qp, &s);
}

/* CM-01, BTH-11, UD-03 */
static void answer(const struct mad *m)
{
	struct txd t = {.frame = w.host->tx[0]};
	struct abi_cqe c;
	struct pkt p;
	uint16_t len;

	post_answer(m);
	app_ring(&w.app, START);
	MUST(core_tx(&w.host->core, &t, 1, START) == 1);
	len = core_seal(&w.host->core, &t);
	MUST(frame_parse(&p, t.frame, len) == DROP_NONE && icrc_check(icrc_by_name("table"), &p));
	MUST(p.op->code == (OPC_UD | OP_SEND_ONLY) && p.dest_qp == QPN_GSI && p.src_qp == QPN_GSI);
	MUST(p.qkey == QKEY_GSI && p.pkey == pkeys[m->pkey_index]);
	MUST(p.payload_len == m->length && !memcmp(p.payload, m->bytes, m->length));
	MUST(core_tx(&w.host->core, &t, 1, START) == 0); /* UC-03: it completes once it is sealed */
	MUST(app_poll(&w.app, w.cq, &c) && c.status == ABI_WC_SUCCESS && c.opcode == ABI_WC_SEND);
}

/* The way back is that of the packet; an id may be guessed, so that it fits. */
static void cm_hears(const struct mad *m)
{
	struct cm_path from = {
		.net = m->from.sgid->net, .vid = m->from.sgid->vid, .pkey = m->p.pkey};

	memcpy(from.remote, m->from.sgid->gid, 16);
	memcpy(from.local, m->from.dgid, 16);
	w.now += 1 + m->p.psn * 1000ull;
	cm_mad(w.cm, &from, w.mr->mem + AREA_LEN, m->length, w.now);
	MUST(cm_used(w.cm) <= CM_CONNS && cm_half_open(w.cm) <= CM_HALVES);
	while (cm_deadline(w.cm) <= w.now && !cm_expire(w.cm, w.now, CM_CONNS))
		;
}

/* --- all of it ------------------------------------------------------------------------ */

static void exchange(const struct record *r, const uint8_t *bytes)
{
	static struct mad m;
	struct abi_cqe c;
	uint16_t verdict;
	bool done;

	write_mad(&m, r, bytes);
	post_recv(r);
	memset(w.mr->mem, FILLER, BUFFER);
	verdict = receive(&m);
	MUST(verdict < DROP_MAX);
	trace("%s +%u pkey %x qkey %x%s: %s\n", m.p.op->name, m.length, m.p.pkey, m.p.qkey,
		m.damaged ? " damaged" : "", drop_name(verdict));
	done = app_poll(&w.app, w.cq, &c);
	MUST(done == (verdict == DROP_NONE));
	MUST(m.damaged || verdict == expected(&m));
	if (!done || c.status == ABI_WC_LOC_LEN_ERR) { /* UD-12 */
		MUST(!done || m.damaged || AREA_LEN + m.length > w.room);
		for (unsigned i = 0; i < BUFFER; i++)
			MUST(w.mr->mem[i] == FILLER);
	} else if (!m.damaged) {
		check_delivered(&m, &c);
		cm_hears(&m);
		answer(&m);
	}
	w.room = done ? 0 : w.room;
	MUST(w.qp->qp->state == ABI_QPS_RTS && !app_poll(&w.app, w.cq, &c));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[PATH_MTU_MAX];
	struct records in = {data, size, 0};
	struct record r;

	world_init();
	for (unsigned i = 0; i < MADS_MAX && records_take(&in, &r); i++) {
		size_t len = in.left < MAD_LEN ? in.left : MAD_LEN;

		memset(bytes, 0, sizeof(bytes));
		if (len)
			memcpy(bytes, in.at, len);
		in.at += len;
		in.left -= len;
		exchange(&r, bytes);
	}
	world_fini();
	return 0;
}
