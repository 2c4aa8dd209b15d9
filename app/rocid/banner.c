/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include "address.h"
#include "daemon.h"
#include "icrc.h"
#include "rxwake.h"
#include "text/sentence.h"

static unsigned print_gids(const struct port *port)
{
	const struct gid_table *t = atomic_load_explicit(&port->gids, memory_order_acquire);
	unsigned n = 0;

	for (uint32_t i = 0; t && i < t->count; i++) {
		const struct gid_entry *e = &t->entry[i];
		char text[INET6_ADDRSTRLEN];

		if (!e->valid)
			continue;
		inet_ntop(AF_INET6, e->gid, text, sizeof(text));
		printf("    GID %u: %s %s", i, text, gid_type_name(e->net));
		if (e->vid)
			printf(" VLAN %u", e->vid);
		printf("\n");
		n++;
	}
	return n;
}

/* Each packet then crosses between the nodes. */
static void warn_of_nodes(const struct daemon *d, uint32_t i)
{
	int port = d->port[i].info.socket;

	for (uint32_t w = 0; w < d->dp->nworkers && port >= 0; w++)
		if (d->dp->node[w] >= 0 && d->dp->node[w] != port)
			printf("    worker %u runs on NUMA node %d, the port is on node %d: choose "
			       "CPUs of node %d with -l, `lscpu` lists them\n",
				w, d->dp->node[w], port, port);
}

/* An Ethernet MTU that allows path MTU 4096 (mtu_of_ethernet()), with room for a VLAN tag. */
#define MTU_WANTED 4200

/* A larger path MTU means fewer packets, and each costs the same. */
static void advise_mtu(const struct daemon *d, uint32_t i)
{
	const struct daemon_port *p = &d->port[i];
	uint32_t path_mtu = d->dp->ports->port[i].active_mtu;
	bool xdp = !strcmp(p->info.driver, "net_af_xdp");

	if (path_mtu >= 4096 || (xdp && path_mtu >= 2048))
		return;
	printf("    path MTU %" PRIu32 ": for %u ", path_mtu, xdp ? 2048 : 4096);
	if (p->shared)
		printf("`ip link set %s mtu %u`, on both sides and the switch\n", p->info.netdev,
			xdp ? 2200 : MTU_WANTED);
	else
		printf("start with --mtu %u,%u on both sides%s\n", i, MTU_WANTED,
			strcmp(p->info.driver, "net_memif") ? "" : ", and bsize=4608 in --vdev");
}

static void print_speed(uint32_t mbps)
{
	if (mbps >= 1000)
		printf(", %g Gb/s", mbps / 1000.0);
	else if (mbps)
		printf(", %u Mb/s", mbps);
}

static void advise_address(const struct daemon *d, uint32_t i)
{
	const struct daemon_port *p = &d->port[i];

	if (p->shared || p->tap)
		printf("    no GIDs yet: give %s an address, `ip addr add 192.0.2.1/24 dev %s`\n",
			p->info.netdev, p->info.netdev);
	else
		printf("    no GID: give it an address with --gid %u,192.0.2.1, or a kernel netdev "
		       "with --tap %u\n",
			i, i);
}

static void print_port(const struct daemon *d, uint32_t i)
{
	const struct daemon_port *p = &d->port[i];
	const struct port *port = &d->dp->ports->port[i];
	char text[128], mac_as_text[MAC_TEXT];
	uint8_t mac[6];

	port_get_mac(port, mac);
	printf("port %u: %s (%s", i, p->info.name, p->info.driver);
	if (p->shared)
		printf(", shares netdev %s", p->info.netdev);
	if (p->tap)
		printf(", tap netdev %s", p->info.netdev);
	printf("), MAC %s", mac_text(mac, mac_as_text));
	print_speed(p->info.speed_mbps);
	printf(", MTU %u (path MTU %" PRIu32 "), %u queue%s, steering: %s%s\n", p->info.mtu,
		port->active_mtu, p->info.rx_queues, p->info.rx_queues == 1 ? "" : "s",
		steer_text(&p->steer, p->info.rss, text, sizeof(text)),
		d->opt->impaired[i] ? ", emulated link" : "");
	if (d->dp->idle == IDLE_ADAPTIVE)
		printf("    wakes its workers %s\n", rxwake_name(p->wake));
	warn_of_nodes(d, i);
	if (!print_gids(port))
		advise_address(d, i);
	advise_mtu(d, i);
}

/* --- the machine ------------------------------------------------------------------------ */

/* The first line of a file, "" when there is none. */
static const char *first_line(const char *path, char text[64])
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(text, 64, f))
		text[0] = '\0';
	if (f)
		fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static void print_memory(void)
{
	struct rte_malloc_socket_stats stats;
	size_t total = 0, used = 0;

	for (int i = 0; i < RTE_MAX_NUMA_NODES; i++) {
		if (rte_malloc_get_socket_stats(i, &stats))
			continue;
		total += stats.heap_totalsz_bytes;
		used += stats.heap_allocsz_bytes;
	}
	printf("memory: %zu of %zu MB used, %s\n", used >> 20, total >> 20,
		rte_eal_has_hugepages() ? "hugepages"
					: "no hugepages: a dedicated NIC needs them, and copies to "
					  "large buffers are faster with them");
}

/* Unexpected causes that slow down a worker; at most a few lines, and only if it polls. */
static void advise_cpus(const struct daemon *d)
{
	unsigned lcore = rte_get_main_lcore();
	char path[96], text[64];

	if (d->dp->idle == IDLE_ADAPTIVE)
		return;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor",
		(unsigned)rte_lcore_to_cpu_id((int)lcore));
	if (*first_line(path, text) && strcmp(text, "performance"))
		printf("CPU %d has the governor %s: `cpupower frequency-set -g performance` for "
		       "steady "
		       "latency\n",
			rte_lcore_to_cpu_id((int)lcore), text);
	if (d->dp->idle == IDLE_POLL &&
		rte_lcore_count() >= (unsigned)sysconf(_SC_NPROCESSORS_ONLN))
		printf("the workers use every CPU of this machine: --idle adaptive, or fewer "
		       "--workers, leaves some for programs\n");
}

static void print_workers(const struct daemon *d)
{
	unsigned lcore;
	bool first = true;
	uint32_t left = d->dp->nworkers;

	printf("rocid %s, %u worker%s on CPU", ROCINANTE_VERSION, left, left == 1 ? "" : "s");
	RTE_LCORE_FOREACH(lcore)
	{
		if (!left--)
			break;
		printf("%s%d", first ? " " : ", ", rte_lcore_to_cpu_id((int)lcore));
		first = false;
	}
	printf(", idle %s%s, ICRC by %s\n", idle_names[d->dp->idle],
		d->dp->idle == IDLE_POLL ? " (each uses a whole CPU)" : "", d->dp->icrc->name);
}

static void print_next(const struct daemon *d)
{
	const char *socket = d->opt->socket;
	char prefix[VALUE_MAX + 16] = "";
	char path[256];

	if (strcmp(socket, ABI_SOCKET_DEFAULT))
		snprintf(prefix, sizeof(prefix), ABI_SOCKET_ENV "=%s ", socket);
	printf("socket: %s; programs find it through " ABI_SOCKET_ENV "\n", socket);
	snprintf(path, sizeof(path), "%s/dpdk_telemetry.v2", rte_eal_get_runtime_dir());
	if (!access(path, F_OK))
		printf("telemetry: %s, dpdk-telemetry.py -f %s\n", path,
			strrchr(rte_eal_get_runtime_dir(), '/') + 1);
	printf("next: `%srocictl show ports`, `%srociperf write --both`; more in rocid(8)\n",
		prefix, prefix);
}

void banner_print(const struct daemon *d)
{
	print_workers(d);
	print_memory();
	advise_cpus(d);
	for (uint32_t i = 0; i < d->nports; i++)
		print_port(d, i);
	print_next(d);
}
