/* SPDX-License-Identifier: BSD-3-Clause */
/* The groups of other hosts while the netdev is a port of a bridge, where no kernel joins them on
 * it: the solicited-node groups of the addresses that lib/ipoib has seen, and those that the
 * bridge knows by snooping. */
#include <string.h>
#include <linux/if_bridge.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include "nd.h"
#include "rib_impl.h"
#include "stations.h"

_Static_assert(RIB_HOSTS == STATION_MAX, "all of a table");

static void add_last(struct rib_hosts *to, const struct station *s)
{
	memcpy(to->ip6[to->n++], s->at.ip, 16);
}

static const struct station *station_of(const struct list *age)
{
	return container_of(age, struct station, age);
}

/* Newest first, from both lists of the table, because entries of hosts that are gone remain in it.
 */
static void list_hosts(struct rib_hosts *to, const struct station_table *t, bool own)
{
	const struct list *seen = t->seen.prev, *claimed = t->claimed.prev;

	while (seen != &t->seen || claimed != &t->claimed) {
		bool is_seen = claimed == &t->claimed ||
			       (seen != &t->seen &&
				       station_of(seen)->touched > station_of(claimed)->touched);
		const struct list **from = is_seen ? &seen : &claimed;
		const struct station *s = station_of(*from);

		*from = (*from)->prev;
		if (s->at.len == 16 && !memcmp(s->mac, t->own, 6) == own)
			add_last(to, s);
	}
}

void rib_hosts_publish(struct rib *r)
{
	const struct station_table *t = ipoib_stations(r->ipoib);

	r->hosts.n = 0;
	list_hosts(&r->hosts, t, false);
	r->hosts.others = r->hosts.n;
	list_hosts(&r->hosts, t, true);
}

static int take_master(const struct nlmsghdr *h, void *arg)
{
	uint32_t *master = arg;
	const struct nlattr *a;

	mnl_attr_for_each(a, h, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(a) == IFLA_MASTER &&
			mnl_attr_get_payload_len(a) == sizeof(*master))
			*master = mnl_attr_get_u32(a);
	}
	return MNL_CB_OK;
}

uint32_t rib_master(const struct rib *r)
{
	const struct ifinfomsg m = {.ifi_index = (int)r->ifindex};
	uint32_t master = 0;

	return rib_ask_kernel(RTM_GETLINK, NLM_F_ACK, &m, sizeof(m), take_master, &master) ? master
											   : 0;
}

/** Where the groups of a bridge go. */
struct snooped {
	const struct rib *rib;
	struct rib_members *to;
};

/* Members reached through the netdev itself are peers. */
static void take_entry(const struct snooped *s, const struct nlattr *info)
{
	const struct br_mdb_entry *e = mnl_attr_get_payload(info);

	if (mnl_attr_get_payload_len(info) < sizeof(*e) || e->ifindex == s->rib->ifindex)
		return;
	if (e->addr.proto == htons(ETH_P_IP))
		rib_groups_add(s->to, &s->to->hosts, (const uint8_t *)&e->addr.u.ip4, 4, RIB_REST);
	else if (e->addr.proto == htons(ETH_P_IPV6))
		rib_groups_add(s->to, &s->to->hosts, (const uint8_t *)&e->addr.u.ip6, 16, RIB_REST);
}

static int take_snooped(const struct nlmsghdr *h, void *arg)
{
	const struct br_port_msg *m = mnl_nlmsg_get_payload(h);
	const struct nlattr *mdb, *entry, *info;
	const struct snooped *s = arg;

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*m) || m->ifindex != s->to->master)
		return MNL_CB_OK;
	mnl_attr_for_each(mdb, h, sizeof(*m))
	{
		if (mnl_attr_get_type(mdb) != MDBA_MDB)
			continue;
		mnl_attr_for_each_nested(entry, mdb)
		{
			mnl_attr_for_each_nested(info, entry)
			{
				take_entry(s, info);
			}
		}
	}
	return MNL_CB_OK;
}

static void read_hosts(struct rib *r, struct rib_members *m)
{
	struct snooped s = {.rib = r, .to = m};
	const struct br_port_msg all = {.family = PF_BRIDGE};
	static _Thread_local struct rib_hosts hosts;
	uint32_t solicited = 0, n;
	uint8_t group[16];

	pthread_mutex_lock(&r->lock);
	hosts = r->hosts;
	pthread_mutex_unlock(&r->lock);
	m->hosts.n = m->hosts.over = 0;
	n = m->master ? hosts.n : hosts.others;
	for (uint32_t i = 0; i < n && solicited < RIB_HOST_GROUPS; i++) {
		nd_group_of(group, hosts.ip6[i]);
		solicited += rib_groups_add(m, &m->hosts, group, sizeof(group), RIB_HOST);
	}
	if (m->master) /* harmless if it is no bridge, or does not snoop */
		rib_ask_kernel(RTM_GETMDB, NLM_F_DUMP, &all, sizeof(all), take_snooped, &s);
}

void rib_hosts_groups(struct rib *r, struct rib_members *m, uint64_t now)
{
	if (now >= m->hosts_due || m->hosts_master != m->master) {
		m->hosts_due = now + RIB_READ_MS;
		m->hosts_master = m->master;
		read_hosts(r, m);
	}
	for (uint32_t i = 0; i < m->hosts.n; i++)
		rib_groups_put(m, &m->now, m->hosts.mgid[i], m->hosts.rank[i]);
	m->now.over += m->hosts.over;
}
