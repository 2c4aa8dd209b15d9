/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's side: an Ethernet netdev with the MAC of the port, so that the interface identifier
 * which the kernel makes of it is that of the port's EUI-64, the u bit toggled once (IPB-14). */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "rib_impl.h"

static int fail(struct rib *r, const char *what)
{
	int err = -errno;

	rib_say(r,
		"cannot %s (%s): run rocid as root or with CAP_NET_ADMIN, and load the module tun",
		what, strerror(-err));
	return err;
}

/* A setting of the netdev that has no other way; a container may not allow it. */
static void set_sysctl(const char *format, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), format, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "1", 1);
	close(fd);
}

/* New addresses are announced, so that peers that knew this host learn its QPN at once (IPB-16). */
static void announce(const char *name)
{
	set_sysctl("/proc/sys/net/ipv4/conf/%s/arp_notify", name);
	set_sysctl("/proc/sys/net/ipv6/conf/%s/ndisc_notify", name);
}

/* The port's, unless an administrator gave the netdev another since then. */
static int set_mac(struct rib *r, bool fresh)
{
	struct ifreq ifr = {.ifr_hwaddr.sa_family = 1 /* ARPHRD_ETHER */};

	if (!fresh && !memcmp(r->given_mac, r->q.mac, 6))
		return 0;
	memcpy(ifr.ifr_hwaddr.sa_data, r->q.mac, 6);
	memcpy(r->given_mac, r->q.mac, 6);
	return ioctl(r->tap, SIOCSIFHWADDR, &ifr);
}

static int enter(int ns)
{
	int err = ns < 0 || setns(ns, CLONE_NEWNET);

	if (ns >= 0)
		close(ns);
	return err ? -1 : 0;
}

static int open_settings(struct rib *r)
{
	if (r->settings >= 0)
		close(r->settings);
	r->settings = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return r->settings < 0 ? -1 : 0;
}

/* This thread goes where an administrator moved the netdev, and so does the helper, which it
 * starts: the netdev's settings and memberships are there. */
static int come_after(struct rib *r)
{
	struct ifreq ifr = {0};

	if (ioctl(r->tap, TUNGETIFF, &ifr))
		return -1;
	if (!ioctl(r->settings, SIOCGIFINDEX, &ifr))
		return 0;
	return enter(ioctl(r->tap, TUNGETDEVNETNS)) || open_settings(r) ? -1 : 0;
}

/* A name, a MAC and an MTU that an administrator gave it stay. */
static int set_up(struct rib *r, bool fresh)
{
	struct ifreq ifr = {0};
	int s;

	if (come_after(r) || set_mac(r, fresh))
		return -1;
	s = r->settings;
	if (ioctl(r->tap, TUNGETIFF, &ifr) || ioctl(s, SIOCGIFINDEX, &ifr))
		return -1;
	r->ifindex = (uint32_t)ifr.ifr_ifindex;
	ifr.ifr_mtu = r->cfg.mtu;
	if (fresh && ioctl(s, SIOCSIFMTU, &ifr))
		return -1;
	if (fresh)
		r->mtu = r->cfg.mtu;
	announce(ifr.ifr_name);
	if (ioctl(s, SIOCGIFFLAGS, &ifr))
		return -1;
	ifr.ifr_flags |= IFF_UP;
	return ioctl(s, SIOCSIFFLAGS, &ifr);
}

static int attach(struct rib *r)
{
	const unsigned offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};

	memcpy(ifr.ifr_name, r->cfg.name, sizeof(ifr.ifr_name));
	if (open_settings(r))
		return -1;
	r->tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (r->tap < 0 || ioctl(r->tap, TUNSETIFF, &ifr))
		return -1;
	return ioctl(r->tap, TUNSETOFFLOAD, offload); /* lib/ipoib/cut.h */
}

/* The kernel accepts any MTU of a tap up to 65,521 and has no way to lower that limit (IFLA_MAX_MTU
 * can only be read): one that the port cannot carry is put back (IPB-13). */
static void follow_mtu(struct rib *r)
{
	struct ifreq ifr = {0};
	int set;

	if (ioctl(r->tap, TUNGETIFF, &ifr))
		return;
	if (ioctl(r->settings, SIOCGIFMTU, &ifr)) { /* it was moved: begin again there */
		r->failed = true;
		return;
	}
	set = ifr.ifr_mtu;
	if (set <= r->q.capacity) {
		r->mtu = set;
		return;
	}
	ifr.ifr_mtu = r->mtu <= r->q.capacity ? r->mtu : r->q.capacity;
	if (!ioctl(r->settings, SIOCSIFMTU, &ifr))
		rib_say(r,
			"MTU %d is more than the %u bytes of IP that port %u carries, so the "
			"netdev has MTU %d again: set %u at most, or give the port a larger "
			"Ethernet MTU",
			set, r->q.capacity, r->cfg.port, ifr.ifr_mtu, r->q.capacity);
}

void rib_tap_follow(struct rib *r)
{
	struct ifreq ifr;

	if (!ioctl(r->tap, SIOCGIFHWADDR, &ifr))
		ipoib_set_mac(r->ipoib, (const uint8_t *)ifr.ifr_hwaddr.sa_data);
	follow_mtu(r);
}

void rib_tap_carrier(struct rib *r, bool up)
{
	int on = up;

	if (r->tap >= 0)
		ioctl(r->tap, TUNSETCARRIER, &on);
}

int rib_tap_open(struct rib *r)
{
	bool fresh = r->tap < 0;
	int err = (fresh && attach(r)) || set_up(r, fresh) ? fail(r, "make the netdev") : 0;

	if (err)
		rib_tap_close(r);
	rib_tap_carrier(r, true);
	return err;
}

void rib_tap_close(struct rib *r)
{
	if (r->tap >= 0)
		close(r->tap);
	if (r->settings >= 0)
		close(r->settings);
	r->tap = r->settings = -1;
	enter(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)); /* the next one is made at home */
}
