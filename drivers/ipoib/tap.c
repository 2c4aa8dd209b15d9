/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's side: an Ethernet netdev with the MAC of the port, so that the kernel derives from
 * it the interface identifier of the port's EUI-64, with the u bit toggled once (IPB-14). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
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

/* The name belongs to a netdev of another kind (EINVAL), or to a tap that another program has open
 * (EBUSY).
 */
static int fail_to_make(struct rib *r)
{
	int err = -errno;

	if (err != -EINVAL && err != -EBUSY)
		return fail(r, "make the netdev");
	rib_say(r,
		"cannot create the netdev, because there is another %s (%s): choose another name "
		"with name=",
		r->cfg.name, strerror(-err));
	return err;
}

/* Writes a setting that only /proc offers; a container may not allow it. */
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

/* Whether the netdev is persistent and up: then an administrator or an earlier rocid gave it its
 * MAC. The kernel says which MACs were given only in a /sys of that namespace. */
static bool was_up(const struct rib *r, int settings)
{
	struct ifreq ifr = {0};

	return !ioctl(r->tap, TUNGETIFF, &ifr) && ifr.ifr_flags & IFF_PERSIST &&
	       !ioctl(settings, SIOCGIFFLAGS, &ifr) && ifr.ifr_flags & IFF_UP;
}

/* The port's MAC, unless an administrator has given the netdev another since then. */
static int set_mac(struct rib *r, int settings, bool fresh)
{
	struct ifreq ifr = {.ifr_hwaddr.sa_family = 1 /* ARPHRD_ETHER */};
	bool stays = fresh ? was_up(r, settings) : !memcmp(r->given_mac, r->q.mac, 6);

	memcpy(r->given_mac, r->q.mac, 6);
	if (stays)
		return 0;
	memcpy(ifr.ifr_hwaddr.sa_data, r->q.mac, 6);
	return ioctl(r->tap, SIOCSIFHWADDR, &ifr);
}

/* @return a socket for its settings, in its namespace; or a negative errno, with the reason on
 * stderr. */
static int come_after(struct rib *r)
{
	struct ifreq ifr = {0};
	int s;

	if (ioctl(r->tap, TUNGETIFF, &ifr)) {
		r->gone = errno == EBADFD;
		return r->gone ? -EBADFD : fail(r, "find the netdev");
	}
	s = rib_visit(r);
	if (s == -EXDEV) {
		rib_say(r, "it was moved to another network namespace, which rocid may not enter: "
			   "give "
			   "rocid CAP_SYS_ADMIN, or move it back");
	} else if (s < 0) {
		errno = -s;
		return fail(r, "follow the netdev");
	}
	return s;
}

/* A name, a MAC and an MTU set by an administrator stay. */
static int set_up(struct rib *r, int s, bool fresh)
{
	struct ifreq ifr = {0};

	if (set_mac(r, s, fresh))
		return -1;
	if (ioctl(r->tap, TUNGETIFF, &ifr) || ioctl(s, SIOCGIFINDEX, &ifr))
		return -1;
	r->ifindex = (uint32_t)ifr.ifr_ifindex;
	r->netns = rib_netns();
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

/* Creates the next netdev in rocid's own namespace, wherever the previous one was moved. */
static int attach(struct rib *r)
{
	const unsigned offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	const int header = sizeof(struct virtio_net_hdr); /* a netdev that stays may have another */
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};

	memcpy(ifr.ifr_name, r->cfg.name, sizeof(ifr.ifr_name));
	if (!rib_go_home(r))
		return -1;
	r->tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (r->tap < 0 || ioctl(r->tap, TUNSETIFF, &ifr) || ioctl(r->tap, TUNSETVNETHDRSZ, &header))
		return -1;
	r->ifindex = if_nametoindex(ifr.ifr_name);
	return ioctl(r->tap, TUNSETOFFLOAD, offload); /* lib/ipoib/cut.h */
}

/* The kernel accepts any MTU of a tap up to 65,521 and has no way to lower that limit (IFLA_MAX_MTU
 * can only be read): an MTU that the port cannot carry is reset (IPB-13). */
static void follow_mtu(struct rib *r, int s, const struct ifreq *at)
{
	struct ifreq ifr = *at;
	int set;

	if (ioctl(s, SIOCGIFMTU, &ifr))
		return;
	set = ifr.ifr_mtu;
	if (set <= r->q.capacity) {
		atomic_store(&r->mtu, set);
		return;
	}
	ifr.ifr_mtu = r->mtu <= r->q.capacity ? r->mtu : r->q.capacity;
	if (ioctl(s, SIOCSIFMTU, &ifr))
		return;
	atomic_store(&r->mtu, ifr.ifr_mtu);
	rib_say(r,
		"MTU %d is more than the %u bytes of IP that port %u carries, so the "
		"netdev has MTU %d again: set %u at most, or give the port a larger "
		"Ethernet MTU",
		set, r->q.capacity, r->cfg.port, ifr.ifr_mtu, r->q.capacity);
}

bool rib_tap_follow(struct rib *r, int settings)
{
	struct ifreq ifr, mac;

	if (ioctl(r->tap, TUNGETIFF, &ifr) || ioctl(r->tap, SIOCGIFHWADDR, &mac) ||
		rib_netns() != r->netns)
		return false; /* it was deleted, or moved: begin again there */
	pthread_mutex_lock(
		&r->lock); /* never held over a system call: the packet thread takes it */
	memcpy(r->name, ifr.ifr_name, sizeof(r->name));
	memcpy(r->mac, mac.ifr_hwaddr.sa_data, sizeof(r->mac));
	pthread_mutex_unlock(&r->lock);
	follow_mtu(r, settings, &ifr);
	return true;
}

void rib_tap_carrier(struct rib *r, bool up)
{
	int on = up;

	if (r->tap >= 0)
		ioctl(r->tap, TUNSETCARRIER, &on);
}

/* A new session has another QPN. The kernel announces all its addresses to peers (IPB-16) when the
 * MAC of the netdev is set, even to the same value; it must have noticed the carrier before, or
 * nothing is sent. */
static void tell_peers(const struct rib *r, int settings)
{
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
	struct ifreq ifr = {0};

	if (ioctl(r->tap, TUNGETIFF, &ifr))
		return;
	ifr.ifr_data = (void *)&link;
	ioctl(settings, SIOCETHTOOL, &ifr);
	if (!ioctl(r->tap, SIOCGIFHWADDR, &ifr))
		ioctl(r->tap, SIOCSIFHWADDR, &ifr);
}

bool rib_tap_is_near(struct rib *r)
{
	int s = r->tap < 0 ? -EBADF : come_after(r);

	if (s >= 0)
		rib_end_visit(r, s);
	return s != -EXDEV;
}

int rib_tap_open(struct rib *r)
{
	bool fresh = r->tap < 0;
	int err = 0, s = -1;

	if (fresh && attach(r))
		err = fail_to_make(r);
	if (!err)
		err = s = come_after(r);
	if (s >= 0) {
		err = set_up(r, s, fresh) ? fail(r, "set up the netdev") : 0;
		if (!err && !rib_tap_follow(r, s))
			err = -EAGAIN;
		if (!err) {
			rib_tap_carrier(r, true);
			tell_peers(r, s);
		}
		rib_end_visit(r, s);
	}
	if (err && fresh) /* an existing netdev stays, with its addresses and routes */
		rib_tap_close(r);
	return err;
}

void rib_tap_close(struct rib *r)
{
	if (r->tap >= 0)
		close(r->tap);
	r->tap = -1;
}
