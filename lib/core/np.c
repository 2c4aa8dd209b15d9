/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The notification point. A packet with ECN "congestion experienced" is answered with a CNP to its
 * source, at once; further marks for that QP within the interval are not (CNP-06). Nothing is sent
 * at the end of the interval: only a new mark causes a CNP.
 *
 * A pending CNP does not depend on its QP. It is sent before everything else, even if the QP has
 * gone to ERR since.
 */
#include "np.h"
#include "frame.h"
#include "packet.h"
#include "qp_impl.h"
#include "txd.h"

static bool is_mac_of_station(const uint8_t mac[6])
{
	return !(mac[0] & 1) && mac_word(mac);
}

static bool is_host(const uint8_t gid[16])
{
	return !gid_is_local_only(gid) && !(gid_is_ip4(gid) && gid[12] >= 224);
}

/* The way back to the source of a datagram, which may be anybody.  @return false: there is none. */
static bool way_back(
	const struct qp *qp, const struct pkt *pkt, const struct port *port, struct path *p)
{
	struct gid_entry sgid = {.net = pkt->net, .vid = pkt->vid};
	struct path_spec s = {.sgid = &sgid,
		.hop_limit = 64,
		.port = pkt->port,
		.priority_tag = atomic_load_explicit(&port->priority_tag, memory_order_relaxed),
		.src_qpn = qp->qpn,
		.dst_qpn = pkt->src_qp};

	frame_gids(pkt, s.dgid, sgid.gid);
	memcpy(s.dmac, pkt->dmac + ETH_SRC, sizeof(s.dmac));
	memcpy(sgid.mac, pkt->dmac + ETH_DST, sizeof(sgid.mac));
	if (!is_mac_of_station(s.dmac) || !is_host(s.dgid))
		return false;
	path_init(p, &s);
	return true;
}

/* CNP-02, CNP-07, CNP-10: flow label and UDP source port are the QP's.
 *  @return false: no path leads back, and @p cnp is unchanged */
static bool fill(struct np_cnp *cnp, struct qp *qp, const struct pkt *pkt, const struct port *port,
	uint32_t rcm)
{
	if (qp->opc != OPC_UD)
		cnp->path = qp->path;
	else if (!way_back(qp, pkt, port, &cnp->path))
		return false;
	cnp->qp = qp;
	cnp->pkey = pkt->pkey;
	cnp->becn = rcm & RCM_BECN;
	cnp->dest_qpn = qp->opc == OPC_UD ? pkt->src_qp : qp->attr.dest_qpn;
	path_set_class(&cnp->path, (uint8_t)rcm, RCM_PCP(rcm));
	return true;
}

/* Once all places are taken, the oldest CNP of a port that cannot send is replaced, so that such a
 * port does not keep the places of others.
 *  @return the place of the next CNP, or CNP_OWED: none */
static uint32_t place(const struct core *c)
{
	const struct core_np *np = &c->np;

	if (np->owed < CNP_OWED)
		return np->owed;
	for (uint32_t i = 0; i < CNP_OWED; i++)
		if (!egress_is_open(c, EGRESS_PORT(np->cnp[i].path.port)))
			return i;
	return CNP_OWED;
}

void np_marked(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	const struct port *port = &c->cfg.ports->port[pkt->port];
	uint32_t rcm = atomic_load_explicit(&port->rcm, memory_order_relaxed);
	struct core_np *np = &c->np;
	uint32_t at;

	if (!rcm)
		return; /* CNP-14 */
	/* CNP-08: RoCEv1 has no ECN, and nothing between QPs of this daemon is congested. */
	if (pkt->net == NET_ROCEV1 || pkt->queue == PKT_LOCAL || qp->type == ABI_QPT_GSI)
		return;
	c->count.np_ecn_marked_roce_packets++;
	if (now < qp->cnp_next)
		return; /* CNP-06 */
	at = place(c);
	if (at == CNP_OWED || !fill(&np->cnp[at], qp, pkt, port, rcm))
		return;
	np->owed += at == np->owed;
	qp->cnp_next = now + atomic_load_explicit(&port->cnp_interval, memory_order_relaxed);
}

/* CNP-02, CNP-03, CNP-04, CNP-05 */
static void build(struct core *c, const struct np_cnp *cnp, struct txd *t)
{
	const struct bth b = {.code = OPCODE_CNP, .pkey = cnp->pkey, .dest_qpn = cnp->dest_qpn};
	uint8_t *reserved = packet_begin_to(&c->ip_id, cnp->qp, &cnp->path, t, &b, CNP_RESERVED);
	uint8_t *bth = reserved - BTH_HLEN;

	bth[BTH_FLAGS] = 0; /* MigReq too */
	if (cnp->becn)
		bth[BTH_RESV8A] |= BTH_BECN;
	memset(reserved, 0, CNP_RESERVED);
	t->hdr_len += CNP_RESERVED; /* no payload: nothing is gathered */
	t->payload_len = 0;
	c->count.np_cnp_sent++;
}

unsigned np_tx(struct core *c, struct txd out[], unsigned n)
{
	struct core_np *np = &c->np;
	unsigned most = n < 4 ? n : n / 4;
	uint32_t kept = 0;
	unsigned got = 0;

	for (uint32_t i = 0; i < np->owed; i++) {
		const struct np_cnp *cnp = &np->cnp[i];

		if (got < most && egress_is_open(c, EGRESS_PORT(cnp->path.port)))
			build(c, cnp, &out[got++]);
		else if (kept++ != i)
			np->cnp[kept - 1] = *cnp;
	}
	np->owed = kept;
	return got;
}

void np_forget(struct core *c, struct qp *qp)
{
	struct core_np *np = &c->np;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < np->owed; i++)
		if (np->cnp[i].qp != qp && kept++ != i)
			np->cnp[kept - 1] = np->cnp[i];
	if (kept != np->owed) /* it was not sent: the next mark is answered (CNP-06) */
		qp->cnp_next = 0;
	np->owed = kept;
}

void np_restart(struct core *c, struct qp *qp)
{
	np_forget(c, qp);
	qp->cnp_next = 0;
}
