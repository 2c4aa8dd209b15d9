/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include "arguments.h"
#include "bits.h"
#include "check.h"
#include "eal_options.h"
#include "icrc.h"
#include "net/congestion.h"
#include "net/priority.h"
#include "option_links.h"
#include "path.h"
#include "text/sentence.h"
#include "uaccess.h"

void check_note(struct check *c, const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "rocid: note: ");
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	c->notes++;
}

/* --- the ports that there would be ------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static uint32_t add_port(
	struct check *c, const char *format, ...)
{
	va_list ap;

	if (c->nports < ARRAY_SIZE(c->port)) {
		va_start(ap, format);
		vsnprintf(c->port[c->nports].name, sizeof(c->port[0].name), format, ap);
		va_end(ap);
	}
	return c->nports++;
}

static void list_devices(struct check *c, const char *option)
{
	for (int i = 1; i < c->eal.argc; i++) {
		const char *device = eal_option_value(c->eal.argc, c->eal.argv, i, option);

		size_t len = device ? strcspn(device, ",") : 0;
		bool pci = device && strchr(device, ':') &&
			   strchr(device, ':') == strrchr(device, ':');

		if (device) /* with the name that EAL gives the ethdev */
			add_port(c, "%s%.*s", pci ? "0000:" : "", (int)len, device);
	}
}

static void list_ports(struct check *c)
{
	struct options *o = c->o;
	bool pci = !c->no_pci;

	list_devices(c, "a");
	list_devices(c, "allow");
	if (c->nports)
		pci = false; /* these and no others */
	c->open = pci;
	list_devices(c, "vdev");
	for (uint32_t i = 0; i < o->nshares; i++) {
		uint32_t port;

		if (o->share[i].port != PORT_NEW)
			continue;
		port = add_port(c, "net_%s_%s", o->gso != GSO_NO ? "ring_gso" : "af_packet",
			o->share[i].netdev);
		if (port >= ARRAY_SIZE(c->port))
			break;
		c->port[port].packet = true;
		c->port[port].netdev = o->share[i].netdev;
		if (!c->open)
			o->share[i].port = port;
	}
	for (uint32_t i = 0; i < 2 * o->npairs; i++)
		add_port(c, "net_ring_pair%u%c", i / 2, i % 2 ? 'b' : 'a');
	if (c->nports > PORT_MAX)
		report_add(&c->problems, "these are %u ports, and rocid serves at most %u",
			c->nports, PORT_MAX);
	else if (!c->nports && !c->open)
		report_add(&c->problems,
			"there is no port: share a netdev ([port eth0] share = yes), "
			"or name a device in [eal] (vdev, allow)");
	if (c->nports > PORT_MAX)
		c->nports = PORT_MAX;
}

static int find_port(void *arg, const char *name)
{
	const struct check *c = arg;

	for (uint32_t i = 0; i < c->nports; i++)
		if (!strcmp(c->port[i].name, name) ||
			(c->port[i].packet && !strcmp(c->port[i].netdev, name)))
			return (int)i;
	return -1;
}

/* --- contradictions ---------------------------------------------------------------- */

static void check_shares(struct check *c)
{
	const struct options *o = c->o;

	for (uint32_t i = 0; i < o->nshares; i++) {
		uint32_t port = o->share[i].port;

		for (uint32_t k = 0; k < i; k++)
			if (!strcmp(o->share[k].netdev, o->share[i].netdev))
				report_add(&c->problems, "netdev %s is shared twice",
					o->share[i].netdev);
		if (port >= c->nports || c->port[port].packet)
			continue;
		if (c->port[port].netdev)
			report_add(&c->problems, "port %u shares two netdevs, %s and %s", port,
				c->port[port].netdev, o->share[i].netdev);
		c->port[port].netdev = o->share[i].netdev;
	}
	for (uint32_t i = 0; i < o->ntaps; i++) {
		uint32_t port = o->tap[i].port;

		if (port >= c->nports)
			continue;
		c->port[port].tap = true;
		if (c->port[port].netdev)
			report_add(&c->problems,
				"port %u has a tap and shares netdev %s: the netdev already "
				"connects the port to the kernel; remove the tap",
				port, c->port[port].netdev);
	}
}

static void check_gso(struct check *c)
{
	bool packet = false;

	for (uint32_t i = 0; i < c->nports; i++)
		packet |= c->port[i].packet;
	if (c->o->gso == GSO_YES && !packet)
		check_note(c, "gso has no effect: rocid shares no netdev by a packet socket (share "
			      "= yes in [port NETDEV])");
}

static void check_port(struct check *c, uint32_t i)
{
	const struct options *o = c->o;
	bool known = c->port[i].netdev || c->port[i].tap;
	bool ring = !strncmp(c->port[i].name, "net_ring_", strlen("net_ring_"));
	bool gids = false;
	bool neighs = false;

	if (o->mtu[i] && c->port[i].netdev)
		report_add(&c->problems,
			"port %u has the MTU of netdev %s: use `ip link set %s mtu %u` instead of "
			"mtu",
			i, c->port[i].netdev, c->port[i].netdev, o->mtu[i]);
	for (uint32_t k = 0; k < o->ngids; k++)
		gids |= o->gid[k].port == i;
	for (uint32_t k = 0; k < o->nneighs; k++)
		neighs |= o->neigh[k].port == i;
	if (!known && !gids)
		check_note(c, "port %u (%s) has no address: give it a gid or a tap", i,
			c->port[i].name);
	else if (!known && !neighs && !ring)
		check_note(c,
			"port %u (%s) cannot find peers: without a netdev each peer needs a neigh "
			"entry",
			i, c->port[i].name);
}

static void check_gids(struct check *c)
{
	const struct options *o = c->o;
	char text[GID_TEXT];

	for (uint32_t i = 0; i < o->ngids; i++)
		for (uint32_t k = 0; k < i; k++)
			if (o->gid[i].port == o->gid[k].port &&
				o->gid[i].gid.vid == o->gid[k].gid.vid &&
				!memcmp(o->gid[i].gid.gid, o->gid[k].gid.gid, 16))
				check_note(c, "gid %s is given twice",
					gid_text(o->gid[i].gid.gid, text));
	for (uint32_t i = 0; i < o->nneighs; i++)
		for (uint32_t k = 0; k < i; k++)
			if (o->neigh[i].port == o->neigh[k].port &&
				!memcmp(o->neigh[i].neigh.gid, o->neigh[k].neigh.gid, 16) &&
				memcmp(o->neigh[i].neigh.mac, o->neigh[k].neigh.mac, 6))
				report_add(&c->problems, "neigh %s has two MACs",
					gid_text(o->neigh[i].neigh.gid, text));
}

/* An application cannot have more than all applications of its user together. */
static void check_limits(struct check *c)
{
	static const struct {
		enum ctl_kind kind;
		const char *option;
	} both[] = {{CTL_QPS, "qps"}, {CTL_CQS, "cqs"}, {CTL_KEYS, "mrs"},
		{CTL_CONNECTIONS, "connections"}, {CTL_QUEUES, "queues"}, {CTL_MEMORY, "memory"}};
	const struct ctl_limits *l = &c->o->limits;

	for (unsigned i = 0; i < ARRAY_SIZE(both); i++) {
		uint32_t user = l->user[both[i].kind];

		if (user && l->session[both[i].kind] > user)
			check_note(c,
				"max-%s is above max-user-%s: only root's applications can have "
				"that many",
				both[i].option, both[i].option);
	}
}

static void check_sense(struct check *c)
{
	const struct options *o = c->o;
	uint32_t admin = o->admin_mode ? o->admin_mode : 0600;

	if (o->admin_group[0] && !(admin & 060))
		check_note(c, "admin-group has no effect while admin-mode is 0%o: set it to 0660",
			admin);
	if (o->socket_group[0] && o->socket_mode && !(o->socket_mode & 060))
		check_note(c, "socket-group has no effect while socket-mode is 0%o: set it to 0660",
			o->socket_mode);
	check_limits(c);
	if (o->shake_ms && o->workers == 1)
		check_note(c, "migrate = %u has no effect with one worker", o->shake_ms);
	if (o->highest_port >= (int)c->nports && !c->open && c->nports)
		report_add(&c->problems,
			"%s names port %d, but the last of the %u ports is port %u", o->highest_by,
			o->highest_port, c->nports, c->nports - 1);
}

/* --- what rocid would do ------------------------------------------------------------------ */

static void print_port(const struct check *c, uint32_t i)
{
	const struct options *o = c->o;

	printf("  port %u: %s", i, c->port[i].name);
	if (c->port[i].netdev)
		printf(" on netdev %s", c->port[i].netdev);
	if (c->port[i].tap)
		printf(", with a tap netdev");
	if (o->mtu[i])
		printf(", MTU %u (path MTU %u)", o->mtu[i], mtu_of_ethernet(o->mtu[i]));
	for (uint32_t k = 0; k < o->ngids; k++) {
		char text[GID_TEXT];

		if (o->gid[k].port != i)
			continue;
		printf(", GID %s", gid_text(o->gid[k].gid.gid, text));
	}
	for (uint32_t k = 0; k < o->npkeys; k++)
		if (o->pkey[k].port == i)
			printf(", P_Key 0x%04x at %u", o->pkey[k].pkey.pkey, o->pkey[k].pkey.index);
	if (o->prioritized[i]) {
		char text[PRIORITY_TEXT];

		printf(", priorities %s", priority_text(&o->priority[i], text));
	}
	if (o->congested[i]) {
		char text[CONGESTION_TEXT];

		printf(", congestion control %s", congestion_text(&o->links->congestion[i], text));
	}
	if (o->impaired[i])
		printf(", emulated link");
	putchar('\n');
}

static void print_plan(const struct check *c)
{
	const struct options *o = c->o;

	printf("rocid would start EAL with:");
	for (int i = 1; i < c->eal.argc; i++)
		printf(" %s", c->eal.argv[i]);
	printf("\n  %u worker%s, idle %s, ICRC by %s\n", o->workers, o->workers == 1 ? "" : "s",
		idle_names[o->idle], (o->icrc ? o->icrc : icrc_best())->name);
	if (c->open)
		printf("  the PCI devices that are bound to DPDK drivers as its first ports\n");
	for (uint32_t i = 0; i < c->nports && c->open; i++)
		printf("  then port %s\n", c->port[i].name);
	for (uint32_t i = 0; i < c->nports && !c->open; i++)
		print_port(c, i);
	printf("  applications at %s (mode 0%o%s%s), rocictl at %s" ABI_ADMIN_SUFFIX "\n",
		o->socket, o->socket_mode ? o->socket_mode : 0660,
		o->socket_group[0] ? ", group " : "", o->socket_group, o->socket);
}

/* Only if their numbers are known: EAL finds no PCI devices by itself. */
static void check_ports(struct check *c)
{
	char why[REPORT_MAX];

	if (options_resolve(c->o, find_port, c, why))
		report_add(&c->problems, "%s", why);
	check_shares(c);
	check_gso(c);
	for (uint32_t i = 0; i < c->nports; i++)
		check_port(c, i);
}

unsigned check_config(struct options *o, int argc, char *argv[])
{
	static struct check c;
	unsigned wrong;

	c = (struct check){.o = o, .problems = {.all = stderr}};
	if (eal_arguments(o, argc, argv, &c.eal)) {
		report_add(&c.problems, "there are more than %d EAL arguments", EAL_COMMAND_MAX);
		return 1;
	}
	check_machine(&c);
	list_ports(&c);
	if (!c.open)
		check_ports(&c);
	check_gids(&c);
	check_sense(&c);
	wrong = o->faults + c.problems.count;
	if (wrong)
		fprintf(stderr, "rocid: %u error%s to fix; nothing was started\n", wrong,
			wrong == 1 ? "" : "s");
	else
		print_plan(&c);
	return wrong;
}
