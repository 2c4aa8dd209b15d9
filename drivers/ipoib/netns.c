/* SPDX-License-Identifier: BSD-3-Clause */
/* The network namespace of the netdev, where an administrator may have moved it. No thread and no
 * descriptor of rocid stays there: it would keep the namespace, and the netdev in it, after the
 * last of its programs has ended. */
#include <errno.h>
#include <sched.h>
#include <unistd.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "rib_impl.h"

#define HERE "/proc/thread-self/ns/net"

/* Queried each time: a thread that failed to return to its own namespace must not assume that it is
 * there. */
bool rib_go_home(const struct rib *r)
{
	struct stat here, home;

	if (!stat(HERE, &here) && !fstat(r->home, &home) && here.st_ino == home.st_ino)
		return true;
	return !setns(r->home, CLONE_NEWNET);
}

ino_t rib_netns(void)
{
	struct stat here;

	return stat(HERE, &here) ? 0 : here.st_ino;
}

/* Since it was moved, another netdev here may have its name: an `eth0`, perhaps the port. */
static bool is_here(const struct rib *r, int settings)
{
	struct ifreq ifr = {0};

	return !ioctl(r->tap, TUNGETIFF, &ifr) && !ioctl(settings, SIOCGIFINDEX, &ifr) &&
	       (uint32_t)ifr.ifr_ifindex == r->ifindex;
}

static int open_settings(void)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return s < 0 ? -errno : s;
}

static int enter(const struct rib *r)
{
	int ns = ioctl(r->tap, TUNGETDEVNETNS), err = 0;

	if (ns < 0 || setns(ns, CLONE_NEWNET))
		err = errno == EPERM ? -EXDEV : -errno;
	if (ns >= 0)
		close(ns);
	return err;
}

int rib_visit(const struct rib *r)
{
	int s, err;

	if (!rib_go_home(r))
		return -errno;
	s = open_settings();
	if (s < 0 || is_here(r, s))
		return s;
	close(s);
	err = enter(r);
	if (err)
		return err;
	s = open_settings();
	if (s < 0)
		rib_go_home(r);
	return s;
}

void rib_end_visit(const struct rib *r, int settings)
{
	close(settings);
	rib_go_home(r);
}
