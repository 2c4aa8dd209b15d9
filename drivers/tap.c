/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include "headers.h"
#include "limits.h"
#include "path.h"
#include "refuse.h"
#include "tap.h"
#include "uaccess.h"

/* The thread polls often while frames arrive and rarely otherwise. The netdev wakes it; workers do
 * not, because they would need a system call. */
#define PAUSE_MIN_NS 20000l
#define PAUSE_MAX_NS 1000000l
#define HOT_ROUNDS   200 /* of PAUSE_MIN before it slows down */
#define LINK_NS	     100000000ull
#define BUFFERS	     (EXCEPTION_RING + PORT_DESC + 2 * BURST)

struct tap {
	struct tap_config cfg;
	struct rte_mempool *pool; /* of frames that the kernel sends; only the thread allocates from
				   * it */
	struct rte_mbuf *spare;	  /* the buffer for the next frame */
	pthread_t thread;
	bool started;
	_Atomic bool stop;
	_Atomic uint64_t mac; /* mac_word(); tap_remember_mac() */
	/* the thread */
	int fd; /* -1: the netdev was deleted and could not be created again yet */
	bool carrier;
	uint64_t link_at; /* when the port's link was last checked */
};

/* --- the netdev ------------------------------------------------------------------------- */

static int open_netdev(const struct tap_config *c, char *why, unsigned size)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int err;

	if (fd < 0)
		return refuse_in(why, size, -errno,
			"cannot open /dev/net/tun for --tap (%s): load the module tun, and give a "
			"container access to that device",
			strerror(errno));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", c->name);
	if (!ioctl(fd, TUNSETIFF, &ifr))
		return fd;
	err = -errno;
	close(fd);
	return refuse_in(why, size, err,
		err == -EBUSY || err == -EINVAL
			? "netdev %s exists and is not a free tap: choose another name, --tap "
			  "PORT=NAME"
			: "cannot create the tap netdev %s: run as root or with CAP_NET_ADMIN",
		c->name);
}

/* MAC and MTU of the port, and up. */
static int set_up(int fd, const struct tap_config *c, uint64_t word, char *why, unsigned size)
{
	struct ifreq mac = {.ifr_hwaddr.sa_family = 1 /* ARPHRD_ETHER */};
	struct ifreq ifr = {0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = 0;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", c->name);
	memcpy(mac.ifr_hwaddr.sa_data, &word, 6);
	if (s < 0 || ioctl(fd, SIOCSIFHWADDR, &mac))
		err = -errno;
	ifr.ifr_mtu = c->mtu;
	if (!err && ioctl(s, SIOCSIFMTU, &ifr))
		err = -errno;
	if (!err && ioctl(s, SIOCGIFFLAGS, &ifr))
		err = -errno;
	ifr.ifr_flags |= IFF_UP;
	if (!err && ioctl(s, SIOCSIFFLAGS, &ifr))
		err = -errno;
	if (s >= 0)
		close(s);
	if (!err)
		return 0;
	return refuse_in(why, size, err,
		"cannot give tap netdev %s the MAC and MTU of its port (%s): run with "
		"CAP_NET_ADMIN",
		c->name, strerror(-err));
}

static int make_netdev(struct tap *t, char *why, unsigned size)
{
	int fd = open_netdev(&t->cfg, why, size);
	int err = fd < 0 ? fd : set_up(fd, &t->cfg, atomic_load(&t->mac), why, size);

	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}
	t->fd = fd;
	t->carrier = true;
	return 0;
}

/* --- the thread ------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void lose_netdev(struct tap *t)
{
	close(t->fd);
	t->fd = -1;
}

/* From the port to the kernel. A netdev that is down, or has no room, loses the frame. */
static unsigned pass_up(struct tap *t)
{
	struct exception *x = t->cfg.exception;
	unsigned room = rte_ring_free_count(x->spent);
	struct rte_mbuf *m[BURST];
	unsigned n = rte_ring_dequeue_burst(x->up, (void **)m, RTE_MIN(room, BURST), NULL);

	for (unsigned i = 0; i < n && t->fd >= 0; i++)
		if (write(t->fd, rte_pktmbuf_mtod(m[i], void *), rte_pktmbuf_data_len(m[i])) < 0 &&
			errno == EBADFD)
			lose_netdev(t);
	rte_ring_enqueue_bulk(x->spent, (void **)m, n, NULL); /* that can wait */
	return n;
}

/* From the kernel to the port. Frames without room wait in the netdev's queue. */
static unsigned pass_down(struct tap *t)
{
	struct exception *x = t->cfg.exception;
	unsigned n;

	for (n = 0; n < BURST && t->fd >= 0 && !rte_ring_full(x->down); n++) {
		ssize_t len;

		if (!t->spare)
			t->spare = rte_pktmbuf_alloc(t->pool);
		if (!t->spare)
			break;
		len = read(t->fd, rte_pktmbuf_mtod(t->spare, void *), MBUF_ROOM);
		if (len < 0 && errno == EBADFD)
			lose_netdev(t);
		if (len < ETH_HLEN)
			break;
		t->spare->data_len = (uint16_t)len;
		t->spare->pkt_len = (uint32_t)len;
		rte_ring_enqueue(x->down, t->spare);
		t->spare = NULL;
	}
	if (n && t->cfg.worker)
		worker_wake(t->cfg.worker);
	return n;
}

/* The netdev has a carrier while the port has a link; a deleted one is created again, with the MAC
 * that peers know. */
static void look_after_netdev(struct tap *t)
{
	struct rte_eth_link link = {0};
	uint64_t now = now_ns();
	char why[256];
	int carrier;

	if (now - t->link_at < LINK_NS)
		return;
	t->link_at = now;
	if (t->fd < 0 && make_netdev(t, why, sizeof(why)))
		return;
	if (rte_eth_link_get_nowait(t->cfg.ethdev, &link))
		return;
	carrier = link.link_status == RTE_ETH_LINK_UP;
	if (carrier != t->carrier && !ioctl(t->fd, TUNSETCARRIER, &carrier))
		t->carrier = carrier;
}

static void rest(struct tap *t, unsigned idle, bool blocked)
{
	struct pollfd p = {.fd = blocked ? -1 : t->fd, .events = POLLIN};
	struct timespec ts = {.tv_nsec = PAUSE_MIN_NS};

	if (idle > HOT_ROUNDS)
		ts.tv_nsec = RTE_MIN(PAUSE_MIN_NS * (idle - HOT_ROUNDS), PAUSE_MAX_NS);
	ppoll(&p, 1, &ts, NULL);
	if (p.revents & POLLERR)
		lose_netdev(t);
}

static void *run(void *arg)
{
	struct tap *t = arg;
	unsigned idle = 0;

	prctl(PR_SET_TIMERSLACK, 1000ul);
	while (!atomic_load_explicit(&t->stop, memory_order_acquire)) {
		unsigned up = pass_up(t);
		unsigned down = pass_down(t);

		look_after_netdev(t);
		if (up || down)
			idle = 0;
		else
			idle++;
		if (up < BURST && down < BURST)
			rest(t, idle, rte_ring_full(t->cfg.exception->down));
	}
	return NULL;
}

/* --- life ------------------------------------------------------------------------------- */

int tap_create(struct tap **out, uint32_t index, const struct tap_config *cfg, char *why,
	unsigned why_size)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct tap *t = calloc(1, sizeof(*t));
	int err;

	*out = t;
	if (!t)
		return refuse_in(why, why_size, -ENOMEM,
			"out of memory for the tap netdev: end other programs");
	t->cfg = *cfg;
	t->fd = -1;
	tap_remember_mac(t, cfg->mac);
	t->cfg.mtu = (uint16_t)RTE_MIN(cfg->mtu + 0u, MBUF_ROOM - ETH_HLEN - VLAN_HLEN);
	snprintf(name, sizeof(name), "rocid_tap%u", index);
	/* No cache: lcores only return buffers. */
	t->pool = rte_pktmbuf_pool_create(
		name, BUFFERS, 0, 0, RTE_PKTMBUF_HEADROOM + MBUF_ROOM, cfg->socket);
	if (!t->pool)
		return refuse_in(why, why_size, -ENOMEM,
			"out of memory for the packet buffers of %s: give EAL more with -m MB",
			cfg->name);
	err = make_netdev(t, why, why_size);
	if (err)
		return err;
	snprintf(name, sizeof(name), "rocid-tap%u", index);
	err = rte_ctrl_thread_create(&t->thread, name, NULL, run, t);
	if (err)
		return refuse_in(why, why_size, err,
			"the thread of tap %s cannot start (%s): raise the limit of threads",
			cfg->name, strerror(-err));
	t->started = true;
	return 0;
}

void tap_remember_mac(struct tap *t, const uint8_t mac[6])
{
	atomic_store(&t->mac, mac_word(mac));
}

void tap_stop(struct tap *t)
{
	if (!t)
		return;
	if (t->started) {
		atomic_store_explicit(&t->stop, true, memory_order_release);
		pthread_join(t->thread, NULL);
		t->started = false;
	}
	if (t->fd >= 0)
		lose_netdev(t);
	rte_pktmbuf_free(t->spare);
	t->spare = NULL;
}

void tap_destroy(struct tap *t)
{
	if (!t)
		return;
	rte_mempool_free(t->pool);
	free(t);
}
