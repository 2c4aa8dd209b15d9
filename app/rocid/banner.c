/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include "daemon.h"
#include "icrc.h"
#include "rxwake.h"

static const char *net_name(unsigned net)
{
	static const char *const name[] = {
		[NET_IPV4] = "RoCEv2",
		[NET_IPV6] = "RoCEv2",
		[NET_ROCEV1] = "RoCEv1",
	};

	return name[net];
}

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
		printf("    GID %u: %s %s", i, text, net_name(e->net));
		if (e->vid)
			printf(" VLAN %u", e->vid);
		printf("\n");
		n++;
	}
	return n;
}

/* Each packet crosses from node to node then. */
static void warn_of_nodes(const struct daemon *d, uint32_t i)
{
	int port = d->port[i].info.socket;

	for (uint32_t w = 0; w < d->dp->nworkers && port >= 0; w++)
		if (d->dp->node[w] >= 0 && d->dp->node[w] != port)
			printf("    worker %u runs on NUMA node %d, the port is on node %d: choose "
			       "CPUs of node %d with -l, `lscpu` lists them\n",
				w, d->dp->node[w], port, port);
}

static void print_port(const struct daemon *d, uint32_t i)
{
	const struct daemon_port *p = &d->port[i];
	const struct port *port = &d->dp->ports->port[i];
	char text[128];
	uint8_t m[6];

	port_get_mac(port, m);
	printf("port %u: %s (%s", i, p->info.name, p->info.driver);
	if (p->shared)
		printf(", shares netdev %s", p->info.netdev);
	if (p->tap)
		printf(", tap netdev %s", p->info.netdev);
	printf("), MAC %02x:%02x:%02x:%02x:%02x:%02x, MTU %u (path MTU %" PRIu32 "), "
	       "%u queue%s, steering: %s%s\n",
		m[0], m[1], m[2], m[3], m[4], m[5], p->info.mtu, port->active_mtu,
		p->info.rx_queues, p->info.rx_queues == 1 ? "" : "s",
		steer_text(&p->steer, p->info.rss, text, sizeof(text)),
		d->opt->impaired[i] ? ", emulated link" : "");
	if (d->dp->idle == IDLE_ADAPTIVE)
		printf("    wakes its workers %s\n", rxwake_name(p->wake));
	warn_of_nodes(d, i);
	if (print_gids(port))
		return;
	if (p->shared || p->tap)
		printf("    no GID yet: give %s an address, `ip addr add 192.0.2.1/24 dev %s`\n",
			p->info.netdev, p->info.netdev);
	else
		printf("    no GID: give it an address with --gid %u,192.0.2.1\n", i);
}

void banner_print(const struct daemon *d)
{
	printf("rocid %s, %u worker%s, ICRC by %s\n", ROCINANTE_VERSION, d->dp->nworkers,
		d->dp->nworkers == 1 ? "" : "s", d->dp->icrc->name);
	for (uint32_t i = 0; i < d->nports; i++)
		print_port(d, i);
	printf("socket: %s; programs find it through " ABI_SOCKET_ENV "\n", d->opt->socket);
}
