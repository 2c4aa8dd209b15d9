/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bridge between two network devices that loses, corrupts, duplicates, reorders, delays and marks
 * RoCE frames, each direction by its own plan. All other frames pass as they are, checksum and
 * segmentation offloads included. Counts go to standard output on SIGTERM.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "frame_impair.h"

#define BURST	      64
#define HELD_MAX      64
#define OVERTAKERS    4		 /* frames that pass one that is held to be reordered, at most */
#define RCVBUF	      (64 << 20) /* an emulated guest's bursts, while this process does not run */
#define VNET_LEN      sizeof(struct virtio_net_hdr)
#define VLAN_LEN      4u
#define FRAME_MAX     (VNET_LEN + ETH_HLEN + VLAN_LEN + 65536)
#define NS_PER_MS     1000000ull
#define REORDER_MS    20     /* when nothing comes to overtake */
#define SEND_TRIES    240000 /* two minutes: a guest may stand still */
#define SEND_PAUSE_US 500

struct frame {
	uint8_t *bytes; /* the offload header, then the Ethernet frame */
	size_t len;
};

struct held {
	struct frame frame;
	uint64_t due;	    /* at the latest */
	uint64_t due_count; /* or when so many RoCE frames have come */
};

struct direction {
	const char *from, *to;
	int in, out;
	struct impair plan;
	uint64_t frames, roce, unsent, count[IMPAIR_KINDS];
	struct held held[HELD_MAX];
	unsigned num_held;
};

struct buffers {
	struct mmsghdr msg[BURST];
	struct iovec iov[BURST];
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} aux[BURST];
	uint8_t *mem;
};

static uint64_t delay_ms = 100;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static void die(const char *what, const char *dev)
{
	fprintf(stderr, "lossy_bridge: %s %s: %s\n", what, dev, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* --- sockets -------------------------------------------------------------------------- */

static void set_option(int fd, int level, int option, int value, const char *dev)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		die("cannot set up a packet socket on", dev);
}

/* With the offload header, segments of the kernel's TCP pass uncut; with the auxiliary data a
 * VLAN tag is not lost, which the kernel takes off the frame. */
static int packet_socket(const char *dev)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);

	if (fd < 0)
		die("cannot open a packet socket on", dev);
	set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1, dev);
	set_option(fd, SOL_PACKET, PACKET_AUXDATA, 1, dev);
	set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, dev);
	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, RCVBUF, dev);
	ll.sll_ifindex = (int)if_nametoindex(dev);
	if (!ll.sll_ifindex || bind(fd, (const struct sockaddr *)&ll, sizeof(ll)))
		die("cannot use", dev);
	return fd;
}

static unsigned missed(int fd)
{
	struct tpacket_stats st = {0};
	socklen_t len = sizeof(st);

	getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &st, &len);
	return st.tp_drops;
}

static void send_frame(struct direction *d, const struct frame *f)
{
	for (int tries = 0; tries < SEND_TRIES && !stopped; tries++) {
		if (send(d->out, f->bytes, f->len, 0) == (ssize_t)f->len)
			return;
		if (errno != ENOBUFS && errno != EAGAIN)
			break;
		usleep(SEND_PAUSE_US); /* the device's queue is full */
	}
	d->unsent++;
}

/* --- what is held back ---------------------------------------------------------------- */

static bool hold(struct direction *d, const struct frame *f, uint64_t due, uint64_t due_count)
{
	struct held *h = &d->held[d->num_held];

	if (d->num_held == HELD_MAX)
		return false;
	h->frame.bytes = malloc(f->len);
	if (!h->frame.bytes)
		die("no memory for frames of", d->from);
	memcpy(h->frame.bytes, f->bytes, f->len);
	h->frame.len = f->len;
	h->due = due;
	h->due_count = due_count;
	d->num_held++;
	return true;
}

static void release_due(struct direction *d, uint64_t now)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < d->num_held; i++) {
		struct held *h = &d->held[i];

		if (now < h->due && d->roce < h->due_count) {
			d->held[kept++] = *h;
			continue;
		}
		send_frame(d, &h->frame);
		free(h->frame.bytes);
	}
	d->num_held = kept;
}

static uint64_t next_due(const struct direction *d, uint64_t due)
{
	for (unsigned i = 0; i < d->num_held; i++)
		if (d->held[i].due < due)
			due = d->held[i].due;
	return due;
}

/* --- forwarding ----------------------------------------------------------------------- */

/* @return the impairments of the next RoCE frame. */
static unsigned choose(struct direction *d)
{
	unsigned fate = impair_choose(&d->plan, d->roce++);

	if (fate & 1u << IMPAIR_LOSE)
		fate = 1u << IMPAIR_LOSE;
	for (unsigned k = 0; k < IMPAIR_KINDS; k++)
		d->count[k] += fate >> k & 1;
	return fate;
}

/* @return whether the frame is lost, or held back for now. */
static bool impair(struct direction *d, struct frame *f, size_t bth, uint64_t now)
{
	uint64_t number = d->roce;
	unsigned fate = choose(d);

	if (fate & 1u << IMPAIR_LOSE)
		return true;
	if (fate & 1u << IMPAIR_CORRUPT)
		frame_corrupt(f->bytes + VNET_LEN, f->len - VNET_LEN, bth,
			impair_random(&d->plan, number, IMPAIR_CORRUPT));
	if (fate & 1u << IMPAIR_MARK)
		frame_mark(f->bytes + VNET_LEN, f->len - VNET_LEN);
	if (fate & 1u << IMPAIR_DUPLICATE)
		send_frame(d, f);
	if (fate & 1u << IMPAIR_DELAY)
		return hold(d, f, now + delay_ms * NS_PER_MS, UINT64_MAX);
	return fate & 1u << IMPAIR_REORDER &&
	       hold(d, f, now + REORDER_MS * NS_PER_MS,
		       d->roce + 1 + impair_random(&d->plan, number, IMPAIR_REORDER) % OVERTAKERS);
}

static void forward(struct direction *d, struct frame *f, uint64_t now)
{
	size_t bth =
		f->len > VNET_LEN ? roce_bth_offset(f->bytes + VNET_LEN, f->len - VNET_LEN) : 0;

	d->frames++;
	if (!bth || !impair(d, f, bth, now))
		send_frame(d, f);
	release_due(d, now);
}

/* Puts the tag back where it was, for which there is room before the frame. */
static void restore_vlan(struct msghdr *msg, struct frame *f)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct tpacket_auxdata aux;
	struct virtio_net_hdr vnet;
	uint8_t *eth;

	if (!c || c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
		return;
	memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
		return;
	memcpy(&vnet, f->bytes, sizeof(vnet));
	if (vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		vnet.csum_start += VLAN_LEN;
	if (vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE)
		vnet.hdr_len += VLAN_LEN;
	memmove(f->bytes + VNET_LEN - VLAN_LEN, f->bytes + VNET_LEN, 2 * ETH_ALEN);
	f->bytes -= VLAN_LEN;
	f->len += VLAN_LEN;
	memcpy(f->bytes, &vnet, sizeof(vnet));
	eth = f->bytes + VNET_LEN + 2 * ETH_ALEN;
	if (!(aux.tp_status & TP_STATUS_VLAN_TPID_VALID))
		aux.tp_vlan_tpid = ETH_P_8021Q;
	eth[0] = (uint8_t)(aux.tp_vlan_tpid >> 8);
	eth[1] = (uint8_t)aux.tp_vlan_tpid;
	eth[2] = (uint8_t)(aux.tp_vlan_tci >> 8);
	eth[3] = (uint8_t)aux.tp_vlan_tci;
}

static struct buffers *buffers_make(void)
{
	struct buffers *b = calloc(1, sizeof(*b));

	if (b)
		b->mem = malloc(BURST * FRAME_MAX);
	if (!b || !b->mem)
		die("no memory for", "frames");
	return b;
}

static void receive(struct direction *d, struct buffers *b)
{
	uint64_t now;
	int n;

	for (unsigned i = 0; i < BURST; i++) {
		b->iov[i].iov_base = b->mem + i * FRAME_MAX + VLAN_LEN;
		b->iov[i].iov_len = FRAME_MAX - VLAN_LEN;
		b->msg[i].msg_hdr = (struct msghdr){.msg_iov = &b->iov[i],
			.msg_iovlen = 1,
			.msg_control = &b->aux[i],
			.msg_controllen = sizeof(b->aux[i])};
	}
	n = recvmmsg(d->in, b->msg, BURST, MSG_DONTWAIT, NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die("cannot receive from", d->from);
	now = now_ns();
	for (int i = 0; i < n; i++) {
		struct frame f = {b->iov[i].iov_base, b->msg[i].msg_len};

		restore_vlan(&b->msg[i].msg_hdr, &f);
		forward(d, &f, now);
	}
}

static void run(struct direction dir[2])
{
	struct buffers *b = buffers_make();
	struct pollfd fds[2] = {
		{.fd = dir[0].in, .events = POLLIN}, {.fd = dir[1].in, .events = POLLIN}};

	while (!stopped) {
		uint64_t now = now_ns();
		/* A second: a signal that came just before poll() is seen then. */
		uint64_t due = next_due(&dir[1], next_due(&dir[0], now + 1000 * NS_PER_MS));

		if (poll(fds, 2, due > now ? (int)((due - now) / NS_PER_MS) + 1 : 0) < 0 &&
			errno != EINTR)
			die("cannot wait for frames of", dir[0].from);
		for (unsigned i = 0; i < 2; i++) {
			if (fds[i].revents)
				receive(&dir[i], b);
			release_due(&dir[i], now_ns());
		}
	}
	free(b->mem);
	free(b);
}

static uint64_t foretold; /* --foretell; 0: forward frames */

/* --- the command line ----------------------------------------------------------------- */

static const char usage[] =
	"usage: lossy_bridge [OPTION...] A B\n"
	"Forward frames between the devices A and B, and impair RoCE frames.\n"
	"  --seed N         of the choices (1)\n"
	"  --ab LIST        impairments from A to B, as "
	"drop=1000,corrupt=0,duplicate=0,reorder=0,delay=0:\n"
	"                   parts per million\n"
	"  --ba LIST        impairments from B to A\n"
	"  --delay-ms N     how long a delayed frame waits (100)\n"
	"  --foretell N     only say how often each impairment meets the first N "
	"RoCE frames\n";

static void refuse(void)
{
	fputs(usage, stderr);
	exit(2);
}

static void options(struct direction dir[2], int argc, char **argv)
{
	static const struct option longopts[] = {{"seed", required_argument, NULL, 's'},
		{"ab", required_argument, NULL, 'a'}, {"ba", required_argument, NULL, 'b'},
		{"delay-ms", required_argument, NULL, 'd'},
		{"foretell", required_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
	uint64_t seed = 1;
	int id;

	while ((id = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (id == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (id == 'd')
			delay_ms = strtoull(optarg, NULL, 0);
		else if (id == 'f')
			foretold = strtoull(optarg, NULL, 0);
		else if (id == '?' || !impair_list(optarg, &dir[id == 'b'].plan))
			refuse();
	}
	if (argc - optind != 2)
		refuse();
	dir[0].from = dir[1].to = argv[optind];
	dir[0].to = dir[1].from = argv[optind + 1];
	dir[0].plan.seed = 2 * seed;
	dir[1].plan.seed = 2 * seed + 1;
}

static void report_counts(const struct direction *d)
{
	printf("%s>%s: %" PRIu64 " frames, %" PRIu64 " RoCE", d->from, d->to, d->frames, d->roce);
	for (unsigned k = 0; k < IMPAIR_KINDS; k++)
		if (impair_word(k))
			printf(", %" PRIu64 " %s", d->count[k], impair_word(k));
}

static void foretell(struct direction *d)
{
	while (d->roce < foretold)
		choose(d);
	report_counts(d);
	puts("");
}

static void report(struct direction *d)
{
	report_counts(d);
	printf(", %u missed, %" PRIu64 " unsent\n", missed(d->in), d->unsent);
}

int main(int argc, char **argv)
{
	static struct direction dir[2];
	struct sigaction sa = {.sa_handler = on_signal};

	setvbuf(stdout, NULL, _IOLBF, 0);
	options(dir, argc, argv);
	if (foretold) {
		foretell(&dir[0]);
		foretell(&dir[1]);
		return 0;
	}
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	dir[0].in = dir[1].out = packet_socket(dir[0].from);
	dir[1].in = dir[0].out = packet_socket(dir[1].from);
	puts("lossy_bridge: ready");
	run(dir);
	for (unsigned i = 0; i < 2; i++) {
		report(&dir[i]);
		close(dir[i].in);
	}
	return 0;
}
