/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "frame.h"
#include "headers.h"
#include "host.h"
#include "ioam.h"
#include "link.h"
#include "qp.h"
#include "telemetry.h"
#include "txd.h"

static void gid_set(struct gid_entry *e, unsigned index, unsigned port, uint16_t id)
{
	unsigned net = index % HOST_GIDS;
	static const uint8_t prefix[HOST_GIDS][16] = {
		[HOST_GID_IPV4] = {[10] = 0xFF, [11] = 0xFF, [12] = 10},
		[HOST_GID_IPV6] = {0xFD},
		[HOST_GID_ROCEV1] = {0xFE, 0x80},
	};

	*e = (struct gid_entry){.net = (uint8_t)net, .valid = true, .ifindex = port + 1};
	e->vid = index < HOST_GID_VLAN ? 0 : HOST_VID;
	memcpy(e->gid, prefix[net], sizeof(e->gid));
	e->gid[13] = (uint8_t)(id >> 8);
	e->gid[14] = (uint8_t)port;
	e->gid[15] = (uint8_t)id;
	memcpy(e->mac, (uint8_t[]){2, 0, 0, (uint8_t)(id >> 8), (uint8_t)port, (uint8_t)id}, 6);
}

static void port_init(struct sim_host *h, unsigned port)
{
	struct gid_table *gids = &h->gids[port];

	_Static_assert((int)HOST_GID_IPV4 == NET_IPV4 && (int)HOST_GID_IPV6 == NET_IPV6 &&
			       (int)HOST_GID_ROCEV1 == NET_ROCEV1,
		"one entry per protocol");
	gids->count = HOST_GIDS_ALL;
	for (unsigned g = 0; g < HOST_GIDS_ALL; g++)
		gid_set(&gids->entry[g], g, port, h->id);
	h->ports.port[port].pkeys = 1;
	h->ports.port[port].pkey[0] = 0xFFFF;
	h->ports.port[port].active_mtu = PATH_MTU_MAX;
	port_set_mac(&h->ports.port[port], gids->entry[0].mac);
	atomic_store(&h->ports.port[port].gids, gids);
}

void host_init(struct sim_host *h, uint16_t id, const struct icrc_ops *icrc, uint64_t now)
{
	struct core_config cfg = {
		.icrc = icrc,
		.faults = &h->faults,
		.qps = &h->qps,
		.srqs = &h->srqs,
		.mrs = &h->mrs,
		.ahs = &h->ahs,
		.mcasts = &h->mcasts,
		.flows = &h->flows,
		.ports = &h->ports,
		.drops = &h->drops,
	};

	memset(h, 0, sizeof(*h));
	h->id = id;
	h->burst = BURST;
	h->ports.count = HOST_PORTS;
	for (unsigned p = 0; p < HOST_PORTS; p++)
		port_init(h, p);
	core_init(&h->core, &cfg, now);
}

struct path_spec host_path(
	const struct sim_host *from, const struct sim_host *to, unsigned port, enum host_gid gid)
{
	struct path_spec s = {
		.sgid = &from->gids[port].entry[gid],
		.hop_limit = 64,
		.port = (uint8_t)port,
		.local = from == to,
		.ect = atomic_load(&from->ports.port[port].rcm) != 0,
	};

	memcpy(s.dgid, to->gids[port].entry[gid].gid, sizeof(s.dgid));
	memcpy(s.dmac, to->gids[port].entry[gid].mac, sizeof(s.dmac));
	return s;
}

/* --- receiving ------------------------------------------------------------------------ */

/* A simulated host does nothing else until the whole batch is processed, so frames need not be
 * kept. */
static void receive(struct sim_host *h, const struct pkt pkts[], unsigned n, uint64_t now)
{
	uint16_t verdict[BURST];
	uint8_t done[GROUP_COPIES];

	core_rx(&h->core, pkts, n, now, verdict);
	do
		core_groups(&h->core, done, now);
	while (core_groups_wait(&h->core));
}

/* Handles a frame that frame_parse() rejected for @p why. */
static void refused(struct sim_host *h, const uint8_t *frame, size_t len, unsigned port,
	enum drop why, uint64_t now)
{
	struct pkt pkt = {.port = (uint8_t)port, .queue = PKT_NO_QUEUE};
	uint32_t others;

	if (why != DROP_IP_NEXT_HEADER ||
		core_fast_cnp(&h->core, &pkt, frame, len, now, &others) == DROP_IP_NEXT_HEADER)
		core_count_drop(&h->core, why);
}

enum drop host_parse(const struct core *c, struct pkt *p, const uint8_t *frame, size_t len)
{
	const struct expect *e = core_expects(c) ? core_expect(c, frame, len, NULL) : NULL;

	return e && core_expected(c, p, frame, len, e) ? DROP_NONE : frame_parse(p, frame, len);
}

static void arrived(struct pkt *pkt, unsigned port)
{
	pkt->port = (uint8_t)port;
	pkt->source_qp = 0;
	pkt->queue = PKT_NO_QUEUE;
}

/* Handles a frame with telemetry. @return false: it has none. */
static bool telemetry(struct sim_host *h, uint8_t *frame, size_t len, unsigned port, uint64_t now)
{
	struct ioam trace;
	struct pkt pkt;
	uint16_t verdict;
	uint8_t *at;

	if (!core_telemetry_port(&h->core, port))
		return false;
	at = ioam_pop(h->core.cfg.icrc, frame, len, &trace);
	if (!at || frame_parse(&pkt, at, len - IOAM_LEN))
		return false;
	arrived(&pkt, port);
	core_telemetry_rx(&h->core, &pkt, &trace, now, &verdict);
	return true;
}

void host_frame(struct sim_host *h, uint8_t *frame, size_t len, unsigned port, uint64_t now)
{
	struct pkt pkt;
	enum drop why;

	arrived(&pkt, port);
	why = host_parse(&h->core, &pkt, frame, len);
	if (likely(!why)) {
		receive(h, &pkt, 1, now);
	} else if (why != DROP_IP_NEXT_HEADER || !telemetry(h, frame, len, port, now)) {
		refused(h, frame, len, port, why, now);
	}
}

void host_receive(struct sim_host *h, struct sim_link *l, unsigned port, uint64_t now)
{
	struct pkt pkts[BURST];
	const struct sim_frame *f;
	unsigned n = 0;

	while ((f = link_receive(l, now))) {
		enum drop why;

		pkts[n].port = (uint8_t)port;
		pkts[n].source_qp = f->source_qp;
		pkts[n].queue = l == h->loop ? PKT_LOCAL : PKT_NO_QUEUE;
		why = host_parse(&h->core, &pkts[n], f->bytes, f->len);
		if (why) {
			refused(h, f->bytes, f->len, port, why, now);
			continue;
		}
		if (f->named)
			core_named(&h->core, &pkts[n], false);
		n++;
		if (n == BURST) {
			receive(h, pkts, n, now);
			n = 0;
		}
	}
	if (n)
		receive(h, pkts, n, now);
}

/* --- sending -------------------------------------------------------------------------- */

/* @return the number of packets that every link can take: the egress is known only after a packet
 * is built. */
static unsigned room(const struct sim_host *h)
{
	unsigned n = h->burst;

	for (unsigned p = 0; p < HOST_PORTS; p++)
		if (h->out[p] && link_room(h->out[p]) < n)
			n = link_room(h->out[p]);
	if (h->loop && link_room(h->loop) < n)
		n = link_room(h->loop);
	return n;
}

static void transmit(struct sim_host *h, struct txd *t, uint64_t now)
{
	struct sim_link *l = t->local ? h->loop : h->out[t->port];
	uint16_t len = core_seal(&h->core, t);

	if (l) {
		l->source_qp = t->qp->qpn;
		l->named = t->named;
	}
	h->sent++;
	if (!len)
		h->unsealed += t->sealed != TXD_LOST;
	else if (l)
		link_send(l, t->frame, len, now);
	if (len && t->group && h->loop && core_group_here(&h->core, t)) /* MC-08 */
		link_send(h->loop, t->frame, len, now);
}

void host_turn(struct sim_host *h, uint64_t now)
{
	struct txd txd[BURST];
	unsigned n;

	while ((n = room(h))) {
		unsigned got;

		for (unsigned i = 0; i < n; i++)
			txd[i].frame = h->tx[i];
		got = core_tx(&h->core, txd, n, now);
		for (unsigned i = 0; i < got; i++)
			transmit(h, &txd[i], now);
		/* a host has one core, which is between two calls now. */
		if (core_grace_wanted(&h->core)) {
			core_grace_end(&h->core, core_grace_wanted(&h->core));
			continue;
		}
		if (got < n)
			break;
	}
	core_expire(&h->core, now);
}

void host_pause(struct sim_host *h, uint64_t until)
{
	h->paused_until = until;
}

uint64_t host_deadline(const struct sim_host *h, uint64_t now)
{
	uint64_t due = core_deadline(&h->core);

	if (due)
		return due > now ? due : now;
	return room(h) ? now : wheel_deadline(&h->core.wheel);
}
