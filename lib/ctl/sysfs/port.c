/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a port, ports/N. */
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include "config/ctl_parts.h"
#include "headers.h"
#include "link_rate.h"
#include "net/net.h"
#include "port.h"
#include "sysfs/tree.h"

#define PORT_PATH 128
/** Communication management and IP-based GIDs, as ibv_query_port() reports. */
#define PORT_CAPS 0x04010000u

static const char *at(char buf[PORT_PATH], uint32_t i, const char *file)
{
	snprintf(buf, PORT_PATH, "ports/%u/%s", i + 1, file);
	return buf;
}

static const char *at_index(char buf[PORT_PATH], uint32_t i, const char *folder, uint32_t index)
{
	snprintf(buf, PORT_PATH, "ports/%u/%s/%u", i + 1, folder, index);
	return buf;
}

/* --- once ----------------------------------------------------------------------------------- */

void port_make(struct sysfs *t, uint32_t i)
{
	static const char *const folders[] = {
		"gids", "gid_attrs", "gid_attrs/ndevs", "gid_attrs/types", "pkeys", "counters"};
	static const char *const files[][2] = {{"link_layer", "Ethernet"}, {"lid", "0x0"},
		{"lid_mask_count", "0"}, {"sm_lid", "0x0"}, {"sm_sl", "0"}};
	char path[PORT_PATH];

	snprintf(path, sizeof(path), "ports/%u", i + 1);
	tree_make(t, path);
	for (unsigned k = 0; k < sizeof(folders) / sizeof(folders[0]); k++)
		tree_make(t, at(path, i, folders[k]));
	for (unsigned k = 0; k < sizeof(files) / sizeof(files[0]); k++)
		tree_write(t, at(path, i, files[k][0]), "%s\n", files[k][1]);
	tree_write(t, at(path, i, "cap_mask"), "0x%08x\n", PORT_CAPS);
	if (t->ctl->net->nports == 1) /* the device's counters are those of this port */
		tree_link(t, at(path, i, "hw_counters"), "../../hw_counters");
}

/* --- tables --------------------------------------------------------------------------------- */

static void write_netdev(struct sysfs *t, uint32_t i, uint32_t index, uint32_t ifindex)
{
	char path[PORT_PATH], name[IF_NAMESIZE];

	at_index(path, i, "gid_attrs/ndevs", index);
	if (ifindex && if_indextoname(ifindex, name))
		tree_write(t, path, "%s\n", name);
	else
		tree_remove(t, path);
}

/* An empty entry has zeros and no attributes; the kernel returns EINVAL for those. */
static void write_gid(struct sysfs *t, uint32_t i, uint32_t index, const struct gid_entry *e)
{
	static const struct gid_entry empty;
	const uint8_t *g = e->valid ? e->gid : empty.gid;
	char path[PORT_PATH];

	tree_write(t, at_index(path, i, "gids", index),
		"%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x\n", g[0],
		g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13],
		g[14], g[15]);
	write_netdev(t, i, index, e->valid ? e->ifindex : 0);
	at_index(path, i, "gid_attrs/types", index);
	if (e->valid)
		tree_write(t, path, "%s\n", e->net == NET_ROCEV1 ? "IB/RoCE v1" : "RoCE v2");
	else
		tree_remove(t, path);
}

static void write_gids(struct sysfs *t, uint32_t i)
{
	const struct gid_table *now = &t->ctl->net->port[i].gids.table;
	struct gid_table *shown = &t->port[i].gids;

	for (uint32_t k = 0; k < GID_MAX; k++) {
		if (t->made && !memcmp(&shown->entry[k], &now->entry[k], sizeof(now->entry[k])))
			continue;
		shown->entry[k] = now->entry[k];
		write_gid(t, i, k, &now->entry[k]);
	}
}

static void write_pkeys(struct sysfs *t, uint32_t i)
{
	const struct port *now = t->ctl->net->port[i].shared;
	char path[PORT_PATH];

	for (uint32_t k = 0; k < now->pkeys; k++) {
		uint16_t pkey = now->pkey[k];

		if (t->made && t->port[i].pkey[k] == pkey)
			continue;
		t->port[i].pkey[k] = pkey;
		tree_write(t, at_index(path, i, "pkeys", k), "0x%04x\n", pkey);
	}
}

void port_write_tables(struct sysfs *t, uint32_t i)
{
	write_gids(t, i);
	write_pkeys(t, i);
}

/* --- state ---------------------------------------------------------------------------------- */

static void write_link(struct sysfs *t, uint32_t i)
{
	const struct netport *now = &t->ctl->net->port[i];
	struct port_files *shown = &t->port[i];
	char path[PORT_PATH];

	if (!t->made || shown->up != now->up) {
		shown->up = now->up;
		tree_write(t, at(path, i, "state"), now->up ? "4: ACTIVE\n" : "1: DOWN\n");
		tree_write(t, at(path, i, "phys_state"), now->up ? "5: LinkUp\n" : "3: Disabled\n");
	}
	if (!t->made || shown->speed_mbps != now->speed_mbps) {
		shown->speed_mbps = now->speed_mbps;
		tree_write(t, at(path, i, "rate"), "%s\n", link_rate_of(now->speed_mbps)->text);
	}
}

static void write_counters(struct sysfs *t, uint32_t i)
{
	struct named_count now[PORT_COUNTERS], *shown = t->port[i].count;
	char path[PORT_PATH], file[64];

	port_named_counts(t->ctl, i, now);
	for (unsigned k = 0; k < PORT_COUNTERS; k++) {
		if (t->made && shown[k].value == now[k].value)
			continue;
		shown[k] = now[k];
		snprintf(file, sizeof(file), "counters/%s", now[k].name);
		tree_write(t, at(path, i, file), "%llu\n", (unsigned long long)now[k].value);
	}
}

void port_write_state(struct sysfs *t, uint32_t i)
{
	write_link(t, i);
	write_counters(t, i);
}
