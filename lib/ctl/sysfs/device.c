/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the device itself. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config/ctl_parts.h"
#include "net/net.h"
#include "sysfs/sysfs.h"
#include "sysfs/tree.h"
#include "verbs/device.h"
#include "worker.h"

#define GUID_TEXT 20

/* --- device: the hardware ------------------------------------------------------------------- */

/* Finds the kernel's path of the adapter of port 1: its netdev's, or one that DPDK has taken over.
 * @return false if there is none, as for a veth. */
static bool find_hardware(const struct ctl *ctl, char to[PATH_MAX])
{
	const struct ctl_devices *d = ctl->devices;
	char path[PATH_MAX];
	json_t *port;
	const char *name;
	bool found;

	if (ctl->net->port[0].netdev[0]) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/device", ctl->net->port[0].netdev);
		return realpath(path, to);
	}
	port = d ? d->port(d->arg, 0) : NULL;
	name = json_string_value(json_object_get(port, "name"));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", name ? name : "");
	found = name && *name && !strchr(name, '/') && realpath(path, to);
	json_decref(port);
	return found;
}

/* Creates what programs look for even if the port has no hardware. */
static void make_device(struct sysfs *t)
{
	const struct net *net = t->ctl->net;
	char path[64], target[64];

	tree_make(t, "device");
	tree_make(t, "device/net");
	tree_write(t, "device/numa_node", "-1\n");
	for (uint32_t i = 0; i < net->nports; i++) {
		const char *netdev = net->port[i].netdev;

		if (!*netdev)
			continue;
		snprintf(path, sizeof(path), "device/net/%s", netdev);
		snprintf(target, sizeof(target), "/sys/class/net/%s", netdev);
		tree_link(t, path, target);
	}
}

/* --- counters ------------------------------------------------------------------------------- */

/* These belong to the daemon. A device with a single port also has them there, where most programs
 * look. */
static void make_counters(struct sysfs *t)
{
	tree_make(t, "hw_counters");
	tree_write(t, "hw_counters/lifespan", "%u\n", SYSFS_PERIOD_MS);
	tree_make(t, "ports");
}

static void write_counters(struct sysfs *t)
{
	struct core_counters sum;
	struct named_count n;
	char path[128];

	worker_counters(t->ctl->dp, &sum);
	for (unsigned i = 0; hw_named_count(&sum, i, &n); i++) {
		if (t->made && t->count[i] == n.value)
			continue;
		t->count[i] = n.value;
		snprintf(path, sizeof(path), "hw_counters/%s", n.name);
		tree_write(t, path, "%llu\n", (unsigned long long)n.value);
	}
}

/* --- the device ----------------------------------------------------------------------------- */

void device_make(struct sysfs *t)
{
	char hardware[PATH_MAX];

	tree_make(t, "");
	tree_write(t, "node_type", "1: CA\n");
	tree_write(t, "node_desc", "%s\n", t->ctl->device);
	tree_write(t, "hca_type", "Rocinante\n");
	tree_write(t, "board_id", "rocinante\n");
	tree_write(t, "fw_ver", "%s\n", ROCINANTE_VERSION);
	tree_write(t, "hw_rev", "0x0\n");
	if (find_hardware(t->ctl, hardware))
		tree_link(t, "device", hardware);
	else
		make_device(t);
	make_counters(t);
}

static void write_guid(struct sysfs *t)
{
	uint64_t guid = device_guid(t->ctl);
	const uint8_t *b = (const uint8_t *)&guid;
	char text[GUID_TEXT];

	if (t->made && guid == t->guid)
		return;
	t->guid = guid;
	snprintf(text, sizeof(text), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3],
		b[4], b[5], b[6], b[7]);
	tree_write(t, "node_guid", "%s\n", text);
	tree_write(t, "sys_image_guid", "%s\n", text);
}

void device_write(struct sysfs *t)
{
	write_guid(t);
	write_counters(t);
}
