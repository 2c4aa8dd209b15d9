/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "abi_ctl.h"
#include "check.h"
#include "eal_options.h"
#include "loop/listen.h"
#include "number.h"
#include "path.h"
#include "worker.h"

/* --- cores ------------------------------------------------------------------------------ */

/* Adds the CPUs of a list like 1-3,5 to @p set. @return false if it is another kind of list. */
static bool parse_cpus(const char *list, cpu_set_t *set)
{
	CPU_ZERO(set);
	while (*list) {
		uint64_t from, to;

		if (!take_number(&list, 10, CPU_SETSIZE - 1, &from))
			return false;
		to = from;
		if (*list == '-') {
			list++;
			if (!take_number(&list, 10, CPU_SETSIZE - 1, &to))
				return false;
		}
		if ((*list && *list != ',') || from > to)
			return false;
		for (uint64_t cpu = from; cpu <= to; cpu++)
			CPU_SET(cpu, set);
		list += *list == ',';
	}
	return true;
}

static void check_list(struct check *c, const char *list)
{
	cpu_set_t mine, wanted;

	if (strpbrk(list, "()@")) /* only EAL can interpret that */
		return;
	if (!parse_cpus(list, &wanted)) {
		report_add(&c->problems,
			"'%.60s' is not a list of CPUs such as 1-3,5, or names a CPU that does not "
			"exist",
			list);
		return;
	}
	if (sched_getaffinity(0, sizeof(mine), &mine))
		return;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &wanted) && !CPU_ISSET(cpu, &mine))
			report_add(&c->problems,
				"CPU %u does not exist or is not available to this process: see "
				"`nproc` and `taskset -p $$`",
				cpu);
	if ((uint32_t)CPU_COUNT(&wanted) < c->o->workers)
		report_add(&c->problems,
			"%u workers need as many CPUs, but %.60s has %d: change workers or EAL's "
			"lcores (-l)",
			c->o->workers, list, CPU_COUNT(&wanted));
}

static void check_cores(struct check *c)
{
	cpu_set_t mine;

	for (int i = 1; i < c->eal.argc; i++) {
		const char *list = eal_option_value(c->eal.argc, c->eal.argv, i, "l");

		if (!list)
			list = eal_option_value(c->eal.argc, c->eal.argv, i, "lcores");
		if (list && !c->eal.own_cores)
			check_list(c, list);
	}
	if (!c->eal.own_cores || sched_getaffinity(0, sizeof(mine), &mine))
		return;
	if ((uint32_t)CPU_COUNT(&mine) < c->o->workers)
		report_add(&c->problems,
			"%u workers need as many CPUs, but this process may use %d: use fewer "
			"workers, or let several share a CPU with EAL's lcores = (0-%u)@0 with "
			"idle = yield",
			c->o->workers, CPU_COUNT(&mine), c->o->workers - 1);
}

/* --- memory ----------------------------------------------------------------------------- */

static unsigned long read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long n = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static unsigned long free_hugepages(void)
{
	static const char folder[] = "/sys/kernel/mm/hugepages";
	DIR *dir = opendir(folder);
	unsigned long n = 0;
	struct dirent *e;
	char path[PATH_MAX];

	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s/free_hugepages", folder, e->d_name);
		if (e->d_name[0] != '.')
			n += read_number(path);
	}
	if (dir)
		closedir(dir);
	return n;
}

static void check_memory(struct check *c)
{
	char why[REPORT_MAX];
	bool huge = true;

	if (eal_check_memory(c->eal.argc, c->eal.argv, why))
		report_add(&c->problems, "%s", why);
	for (int i = 1; i < c->eal.argc; i++)
		huge &= strcmp(c->eal.argv[i], "--no-huge") != 0;
	if (huge && !free_hugepages())
		report_add(&c->problems,
			"no hugepage is free: reserve some (echo 128 > /proc/sys/vm/nr_hugepages), "
			"or run without them (no-huge = yes and m = 128 in [eal])");
}

/* --- devices ---------------------------------------------------------------------------- */

/* The driver of PCI device @p address, "" for none.  @return false: no such device. */
static bool pci_driver(const char *address, char driver[64])
{
	char path[128], target[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.40s", address);
	if (access(path, F_OK))
		return false;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.40s/driver", address);
	n = readlink(path, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	name = strrchr(target, '/');
	snprintf(driver, 64, "%.63s", name ? name + 1 : "");
	return true;
}

static void check_pci(struct check *c, const char *device)
{
	/* mlx5 and similar devices work together with the kernel's driver. */
	static const char *const fine[] = {
		"vfio-pci", "igb_uio", "uio_pci_generic", "mlx4_core", "mlx5_core", "mana", NULL};
	char address[48], driver[64];
	const char *comma = strchr(device, ',');
	int len = comma ? (int)(comma - device) : (int)strlen(device);
	const char *domain = strchr(device, ':') != strrchr(device, ':') ? "" : "0000:";

	if (!eal_option_is_pci(device))
		return;
	snprintf(address, sizeof(address), "%s%.*s", domain, len, device);
	if (c->no_pci) {
		report_add(&c->problems,
			"PCI device %s is allowed but no-pci is given: remove one of them",
			address);
		return;
	}
	if (!pci_driver(address, driver)) {
		report_add(&c->problems, "there is no PCI device %s: see `dpdk-devbind.py -s`",
			address);
		return;
	}
	for (unsigned i = 0; fine[i]; i++)
		if (!strcmp(driver, fine[i]))
			return;
	report_add(&c->problems,
		"PCI device %s is %s%s: `dpdk-devbind.py -b vfio-pci %s` gives it "
		"to DPDK",
		address, *driver ? "used by the kernel's driver " : "not bound to a driver", driver,
		address);
}

static void check_netdev(struct check *c, const char *netdev, const char *by)
{
	char path[64 + IFNAMSIZ];
	unsigned long mtu;

	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", netdev);
	if (!if_nametoindex(netdev)) {
		report_add(&c->problems, "%s: there is no netdev %s: `ip link` lists them", by,
			netdev);
		return;
	}
	mtu = read_number(path);
	if (mtu && !mtu_of_ethernet((uint32_t)mtu))
		report_add(&c->problems,
			"%s: the MTU of %s is %lu, too small for any path MTU: "
			"`ip link set %s mtu 1500`",
			by, netdev, mtu, netdev);
}

static void check_vdev(struct check *c, const char *vdev)
{
	const char *iface = strstr(vdev, ",iface=");
	char netdev[IFNAMSIZ];

	if (!iface || (strncmp(vdev, "net_af_", 7) && strncmp(vdev, "net_pcap", 8)))
		return; /* vhost's iface is a socket */
	iface += strlen(",iface=");
	snprintf(netdev, sizeof(netdev), "%.*s", (int)strcspn(iface, ","), iface);
	check_netdev(c, netdev, "vdev");
}

static void check_devices(struct check *c)
{
	for (int i = 1; i < c->eal.argc; i++)
		c->no_pci |= !strcmp(c->eal.argv[i], "--no-pci");
	for (int i = 1; i < c->eal.argc; i++) {
		const char *pci = eal_option_value(c->eal.argc, c->eal.argv, i, "a");
		const char *vdev = eal_option_value(c->eal.argc, c->eal.argv, i, "vdev");

		if (!pci)
			pci = eal_option_value(c->eal.argc, c->eal.argv, i, "allow");
		if (pci)
			check_pci(c, pci);
		if (vdev)
			check_vdev(c, vdev);
	}
	for (uint32_t i = 0; i < c->o->nshares; i++)
		check_netdev(c, c->o->share[i].netdev, "share");
}

/* --- sockets ---------------------------------------------------------------------------- */

static void check_group(struct check *c, const char *by, const char *group)
{
	gid_t gid;

	if (*group && listen_group(group, &gid))
		report_add(&c->problems,
			"%s: there is no group \"%.60s\": create it (groupadd %.60s), or choose "
			"another",
			by, group, group);
}

static void check_folder(struct check *c)
{
	char folder[VALUE_MAX];
	struct stat st;
	char *slash;

	snprintf(folder, sizeof(folder), "%s", c->o->socket);
	slash = strrchr(folder, '/');
	if (!slash)
		return;
	slash[slash == folder] = '\0';
	if (!strcmp(c->o->socket, ABI_SOCKET_DEFAULT) && stat(folder, &st))
		return; /* rocid makes it */
	if (stat(folder, &st) || !S_ISDIR(st.st_mode))
		report_add(&c->problems, "socket: there is no directory %.100s: create it", folder);
	else if (access(folder, W_OK))
		report_add(&c->problems,
			"socket: rocid, run as your user, cannot create files in %.100s: give the "
			"user write permission there",
			folder);
}

void check_machine(struct check *c)
{
	check_cores(c);
	check_memory(c);
	check_devices(c);
	check_group(c, "socket-group", c->o->socket_group);
	check_group(c, "admin-group", c->o->admin_group);
	check_folder(c);
	if (c->o->idle == IDLE_ADAPTIVE && worker_can_sleep())
		report_add(&c->problems, "workers cannot sleep on this kernel (epoll_pwait2() "
					 "needs Linux 5.11): use idle = yield");
}
