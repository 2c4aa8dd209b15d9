/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/congestion.h"
#include "net/netport.h"
#include "net/pkeys.h"
#include "net/switches.h"
#include "refuse.h"

/* The table for workers that outlive the control thread. */
static const struct gid_table no_gids;

/* A new netdev has an arbitrary MAC until it is set up. Adopting that one would turn away peers
 * that still send to the old MAC. */
static void take_link(struct netport *p, const struct rtnl_link *link)
{
	static const uint8_t none[6];

	if (link->enabled || !memcmp(p->mac, none, 6))
		memcpy(p->mac, link->mac, 6);
	gids_set_netdev(&p->gids, link->ifindex, p->mac);
	p->ifindex = link->ifindex;
	p->link = link->up;
	p->eth_mtu = link->mtu;
	if (p->eth_mtu_limit && p->eth_mtu > p->eth_mtu_limit)
		p->eth_mtu = p->eth_mtu_limit;
}

/* Collects the addresses of the port's netdev and of the netdevs on top of it. */
struct found {
	struct gid_address address[GID_MAX];
	unsigned count;
};

static void add_found(struct found *f, const uint8_t gid[16], const struct rtnl_vlan *netdev)
{
	struct gid_address *a = &f->address[f->count++];

	memcpy(a->gid, gid, 16);
	a->vid = netdev->vid;
	a->ifindex = netdev->ifindex;
	memcpy(a->mac, netdev->mac, 6);
}

/* @return 0 or a negative errno. */
static int find_addresses(struct found *f, struct rtnl *nl, const struct rtnl_vlan *netdev)
{
	uint8_t gid[GID_MAX][16];
	int n = rtnl_addresses(nl, netdev->ifindex, gid, GID_MAX - f->count);

	for (int i = 0; i < n; i++)
		add_found(f, gid[i], netdev);
	return n < 0 ? n : 0;
}

static bool take_vlans(struct netport *p, const struct rtnl_vlan *vlan, unsigned n)
{
	bool same = p->nvlans == n;

	for (unsigned i = 0; i < n && same; i++)
		same = p->vlan[i].ifindex == vlan[i].ifindex;
	if (n)
		memcpy(p->vlan, vlan, n * sizeof(*vlan));
	p->nvlans = n;
	return !same;
}

/* Reads the addresses of the netdev and of the VLAN netdevs on top of it. The link-local GID of its
 * MAC comes first, as on every RoCE device, whether or not the netdev has that address.
 * @return NETPORT_VLANS or 0. */
static unsigned take_addresses(struct netport *p, struct rtnl *nl)
{
	struct rtnl_vlan own = {.ifindex = p->ifindex}, vlan[PORT_VLAN_MAX];
	int n = rtnl_vlans(nl, p->ifindex, vlan, PORT_VLAN_MAX);
	struct found f = {.count = 0};
	uint8_t of_mac[16];
	int err = n;

	memcpy(own.mac, p->mac, 6);
	gid_of_mac(of_mac, p->mac);
	add_found(&f, of_mac, &own);
	if (n >= 0)
		err = find_addresses(&f, nl, &own);
	for (int i = 0; i < n && !err; i++) {
		err = find_addresses(&f, nl, &vlan[i]);
		if (err == -ENODEV) /* removed meanwhile: news will follow */
			err = 0;
	}
	if (err) { /* the kernel was too busy to answer: keep the old addresses */
		p->stale = true;
		return 0;
	}
	gids_sync(&p->gids, f.address, f.count);
	return take_vlans(p, vlan, (unsigned)n) ? NETPORT_VLANS : 0;
}

uint32_t netport_mtu(const struct netport *p)
{
	uint32_t extra = congestion_header(p->congestion);

	return p->eth_mtu > extra ? mtu_of_ethernet(p->eth_mtu - extra) : 0;
}

unsigned netport_share(struct netport *p)
{
	uint32_t mtu = netport_mtu(p);
	unsigned what = 0;
	uint8_t old[6];

	port_get_mac(p->shared, old);
	if (memcmp(old, p->mac, 6))
		what |= NETPORT_MAC_CHANGED;
	if (atomic_load(&p->shared->active_mtu) != mtu)
		what |= NETPORT_MTU_CHANGED;
	port_set_mac(p->shared, p->mac);
	atomic_store(&p->shared->active_mtu, mtu);
	return what;
}

static int init_netdev(struct netport *p, struct rtnl *nl, char why[ABI_SENTENCE_MAX])
{
	struct rtnl_link link;
	int err = rtnl_link_get(nl, p->netdev, &link);

	if (err == -ENODEV)
		return refuse(why, err,
			"port %u: there is no network device \"%s\": `ip link` lists the devices",
			p->index + 1, p->netdev);
	if (err)
		return refuse(why, err, "port %u: rocid cannot query network device \"%s\": %s",
			p->index + 1, p->netdev, strerror(-err));
	take_link(p, &link);
	take_addresses(p, nl);
	return 0;
}

static int init_static(struct netport *p, const struct ctl_port *cfg, char why[ABI_SENTENCE_MAX])
{
	for (uint32_t i = 0; i < cfg->ngids; i++) {
		const struct ctl_gid *g = &cfg->gids[i];
		struct gid_address a = {.vid = g->vid, .ifindex = p->ifindex};
		int err;

		memcpy(a.gid, g->gid, 16);
		memcpy(a.mac, p->mac, 6);
		err = gids_add(&p->gids, &a, false);

		if (err == -EADDRNOTAVAIL)
			return refuse(why, err,
				"port %u: static GID %u is unspecified or loopback, which no frame "
				"may carry: use an address of the port's network",
				p->index + 1, i);
		if (err)
			return refuse(why, -ENOSPC, "port %u: more than %u static GIDs: list fewer",
				p->index + 1, GID_MAX / 2);
	}
	p->neighs = calloc(cfg->nneighs ? cfg->nneighs : 1, sizeof(*p->neighs));
	if (!p->neighs)
		return refuse(why, -ENOMEM,
			"out of memory for the neighbour table: free some memory and try again");
	if (cfg->nneighs)
		memcpy(p->neighs, cfg->neighs, cfg->nneighs * sizeof(*p->neighs));
	p->nneighs = cfg->nneighs;
	return 0;
}

void netport_set_priority(struct netport *p, const struct priority_map *map)
{
	p->priority = *map;
	atomic_store(&p->shared->priority_tag, map->tag);
}

int netport_init(struct netport *p, uint32_t index, const struct ctl_port *cfg, bool rocev1,
	struct rtnl *nl, struct port *shared, char why[ABI_SENTENCE_MAX])
{
	const struct cc_config *config;
	int err = 0;

	memset(p, 0, sizeof(*p));
	p->index = index;
	p->shared = shared;
	p->speed_mbps = cfg->speed_mbps;
	memcpy(p->netdev, cfg->netdev, sizeof(p->netdev) - 1);
	gids_init(&p->gids, rocev1);
	priority_init(&p->priority);
	if (cfg->priority)
		netport_set_priority(p, cfg->priority);
	p->congestion = malloc(sizeof(*p->congestion));
	if (!p->congestion)
		return refuse_memory(why);
	if (cfg->congestion)
		*p->congestion = *cfg->congestion;
	else
		congestion_init(p->congestion);
	congestion_port(p->congestion, cfg->speed_mbps);
	if (congestion_config(p->congestion, &config))
		return refuse_memory(why);
	congestion_publish(p->congestion, config, shared);
	err = switches_publish(&p->congestion->switches, shared, &p->switches);
	if (err)
		return refuse_memory(why);
	if (p->netdev[0]) {
		p->eth_mtu_limit = cfg->eth_mtu;
		err = init_netdev(p, nl, why);
	} else {
		p->eth_mtu = cfg->eth_mtu;
		p->link = true;
		memcpy(p->mac, cfg->mac, 6);
	}
	if (!err)
		err = init_static(p, cfg, why);
	if (err)
		return err;
	if (!netport_mtu(p))
		return refuse(why, -EINVAL,
			"port %u: an Ethernet MTU of %u bytes is too small for RoCE: make it 1500 "
			"or more",
			index + 1, p->eth_mtu);
	netport_share(p);
	p->up = p->link;
	pkeys_init(shared, cfg->pkeys, cfg->npkeys);
	gids_publish(&p->gids, shared);
	if (!atomic_load_explicit(&shared->gids, memory_order_relaxed))
		return refuse(why, -ENOMEM,
			"out of memory for the GID table: free some memory and try again");
	return 0;
}

const struct gid_table *netport_withdraw(struct netport *p)
{
	const struct gid_table *old;

	if (!p->shared)
		return NULL;
	switches_publish(NULL, p->shared, &p->switches);
	p->withdrawn = atomic_exchange(&p->shared->cc, NULL);
	old = atomic_exchange(&p->shared->gids, &no_gids);
	return old == &no_gids ? NULL : old;
}

void netport_destroy(struct netport *p)
{
	free(p->neighs);
	p->neighs = NULL;
	free(p->switches);
	p->switches = NULL;
	free(p->congestion);
	p->congestion = NULL;
	free((void *)p->withdrawn);
	p->withdrawn = NULL;
}

/* Reads the netdev, which may have been removed or replaced.  @return NETPORT_* bits, or -1 when
 * the kernel does not answer. */
static int read_netdev(struct netport *p, struct rtnl *nl)
{
	uint32_t was = p->ifindex;
	struct rtnl_link link;
	int err = rtnl_link_get(nl, p->netdev, &link);

	if (!err) {
		unsigned what = link.ifindex != was ? NETPORT_REPLACED : 0;

		take_link(p, &link);
		return (int)(what | take_addresses(p, nl));
	}
	if (err != -ENODEV)
		return -1;
	p->link = false; /* it may return under the same name */
	p->ifindex = 0;
	gids_sync(&p->gids, NULL, 0);
	return (was ? NETPORT_GONE : 0) | (take_vlans(p, NULL, 0) ? NETPORT_VLANS : 0);
}

/* @return NETPORT_WENT_UP, NETPORT_WENT_DOWN, or 0 when nothing has changed. */
static unsigned take_state(struct netport *p)
{
	bool up = p->link && !p->set_down;

	if (p->up == up)
		return 0;
	p->up = up;
	p->link_downed += !up;
	return up ? NETPORT_WENT_UP : NETPORT_WENT_DOWN;
}

unsigned netport_set_down(struct netport *p, bool down)
{
	p->set_down = down;
	return take_state(p);
}

unsigned netport_refresh(struct netport *p, struct rtnl *nl, const struct gid_table **old)
{
	unsigned what;
	int found;

	*old = NULL;
	if (!p->netdev[0])
		return 0;
	p->stale = false;
	found = read_netdev(p, nl);
	if (found < 0) {
		p->stale = true;
		return 0;
	}
	what = (unsigned)found | netport_share(p);
	if (p->gids.changed) {
		*old = gids_publish(&p->gids, p->shared);
		if (p->gids.changed) /* memory is short: programs hear of it once workers know it */
			p->stale = true;
		else
			what |= NETPORT_GIDS_CHANGED;
	}
	return what | take_state(p);
}

int netport_static_neigh(const struct netport *p, const uint8_t gid[16], uint8_t mac[6])
{
	for (uint32_t i = 0; i < p->nneighs; i++) {
		if (memcmp(p->neighs[i].gid, gid, 16))
			continue;
		memcpy(mac, p->neighs[i].mac, 6);
		return 0;
	}
	return -ENOENT;
}
