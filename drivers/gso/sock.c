/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include "bits.h"
#include "gso/sock.h"
#include "headers.h"
#include "limits.h"

/* The kernel allocates blocks of a power of two of pages. One page less, so that slots do not all
 * begin in the same cache set. */
#define PAGE  4096u
#define BLOCK (255 * PAGE)
/* A slot holds any single frame, and there are as many as in the ring of DPDK's AF_PACKET port
 * (share.c): the windows of several QPs while a thread is paused for some milliseconds. A longer
 * frame (a super-frame) is also queued whole at the socket (PACKET_COPY_THRESH); the kernel copies
 * only the part that fits in the slot. */
#define SHORT_SLOT   MBUF_ROOM
#define SHORT_BLOCKS 10u
/* Bytes of super-frames queued at the socket: as many as the long slots below take, but for several
 * times as many frames, because a short one takes no whole slot. The kernel's limit for their
 * memory is twice this. */
#define RECEIVE_ROOM (16 << 20)
/* Where the system limits a socket's memory (net.core.rmem_max) and rocid may not raise it, slots
 * hold super-frames (GSO_FRAME_MAX): 240, 16 MB, all in use because they are filled in turn. With
 * 64 MB each byte of a long message went to memory and back (4 KiB messages: 25 Gb/s at best,
 * against 35). */
#define LONG_SLOT   (17 * PAGE)
#define LONG_BLOCKS 16u
#define BLOCKS_MIN  2u
/* Unsent data of a NIC before the socket reports that it is full, of which the kernel allows twice
 * as much: 26 runs of 33 KB, so a 100 Gb/s NIC has work for 70 us, but fewer frames of 1 KiB than a
 * qdisc takes before it drops some (1,000: pfifo_fast). The system's limit (net.core.wmem_max)
 * applies if this cannot be set. */
#define SEND_ROOM (512 << 10)

/* @return whether the kernel queues long frames at the socket, and enough of them. */
static bool queue_long(int fd)
{
	const int room = RECEIVE_ROOM, any = 1;
	int got = 0;
	socklen_t size = sizeof(got);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return !getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &size) && got >= RECEIVE_ROOM &&
	       !setsockopt(fd, SOL_PACKET, PACKET_COPY_THRESH, &any, sizeof(any));
}

static void slots_of(const struct gsosock *s, struct tpacket_req *r, unsigned blocks)
{
	*r = (struct tpacket_req){.tp_block_size = BLOCK,
		.tp_block_nr = blocks,
		.tp_frame_size = s->slot,
		.tp_frame_nr = blocks * s->block_slots};
}

static int make_ring(struct gsosock *s)
{
	struct tpacket_req r;
	unsigned blocks;
	void *map;

	s->queues = queue_long(s->fd);
	s->slot = s->queues ? SHORT_SLOT : LONG_SLOT;
	s->block_slots = BLOCK / s->slot;
	blocks = s->queues ? SHORT_BLOCKS : LONG_BLOCKS;
	for (slots_of(s, &r, blocks); setsockopt(s->fd, SOL_PACKET, PACKET_RX_RING, &r, sizeof(r));
		slots_of(s, &r, blocks)) {
		if (errno != ENOMEM || blocks <= BLOCKS_MIN)
			return -errno;
		blocks /= 2;
	}
	s->size = (size_t)blocks * BLOCK;
	map = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	s->ring = map;
	s->block = s->next = s->ring;
	s->left = s->block_slots;
	return 0;
}

/* Otherwise all other traffic of the netdev, including frames of 64 KB of TCP, would be copied into
 * slots for nothing. The worker checks a VLAN tag that is still present. */
static int take_roce(int fd, bool options)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_TYPE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_ROCEV1, 16, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_VLAN, 15, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_QINQ, 14, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV4, 0, 11),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + IP4_PROTO),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ROCEV2, 0, 9),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, ETH_HLEN),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, ETH_HLEN + UDP_DPORT),
		BPF_STMT(BPF_JMP | BPF_JA, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ETH_HLEN + IP6_NXT),
		/* FCN-14: what follows may be a Fast CNP; or a packet with telemetry. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP6_NXT_DSTOPTS, options ? 5 : 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IP6_NXT_HOPOPTS, options ? 4 : 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ROCEV2, 0, 2),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ETH_HLEN + IP6_HLEN + UDP_DPORT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UDP_PORT_ROCEV2, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog filter = {.len = ARRAY_SIZE(code), .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

static int prepare(int fd)
{
	const int version = TPACKET_V2, one = 1, room = SEND_ROOM;

	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
		setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
		setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
		take_roce(fd, false))
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	return 0;
}

/* The kernel chooses a unique number. */
static int join(int fd, int *fanout)
{
	const int flow = PACKET_FANOUT_HASH << 16;
	int value = *fanout < 0 ? flow | PACKET_FANOUT_FLAG_UNIQUEID << 16 : flow | *fanout;
	socklen_t size = sizeof(value);

	if (setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &value, sizeof(value)) ||
		getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &value, &size))
		return -errno;
	*fanout = value & 0xFFFF;
	return 0;
}

static int bind_to(int fd, const char *netdev)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(netdev)};

	if (!to.sll_ifindex)
		return -ENODEV;
	return bind(fd, (const struct sockaddr *)&to, sizeof(to)) ? -errno : 0;
}

int gsosock_open(struct gsosock *s, const char *netdev, int *fanout, char *why, unsigned why_size)
{
	int err = s->fd < 0 ? s->fd : prepare(s->fd);

	err = err ? err : make_ring(s);
	err = err ? err : bind_to(s->fd, netdev);
	if (!err && fanout)
		err = join(s->fd, fanout);
	if (err == -ENODEV)
		snprintf(why, why_size, "there is no netdev %s: `ip link` lists them", netdev);
	else if (err == -ENOMEM)
		snprintf(why, why_size,
			"no memory for the packet socket of netdev %s: remove --gso", netdev);
	else if (err == -EMFILE || err == -ENFILE)
		snprintf(why, why_size,
			"no descriptor for the packet socket of netdev %s (%s): raise the limit of "
			"open files (ulimit -n)",
			netdev, strerror(-err));
	else if (err)
		snprintf(why, why_size,
			"cannot open a packet socket on netdev %s (%s): run as root or with "
			"CAP_NET_RAW, and without --gso if the kernel is older than 4.20",
			netdev, strerror(-err));
	return err;
}

int gsosock_options(const struct gsosock *s, bool on)
{
	return take_roce(s->fd, on) ? -errno : 0;
}

void gsosock_close(struct gsosock *s)
{
	if (s->ring)
		munmap(s->ring, s->size);
	if (s->fd >= 0)
		close(s->fd);
	s->ring = NULL;
	s->fd = -EBADF;
}

struct virtio_net_hdr gsosock_run(uint16_t head, uint16_t size)
{
	return (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = head,
		.gso_size = size,
		.csum_start = (uint16_t)(head - UDP_HLEN),
		.csum_offset = UDP_CSUM,
	};
}

bool gsosock_look(const struct gsosock *s, struct gsosock_frame *f)
{
	struct tpacket2_hdr *h = (struct tpacket2_hdr *)s->next;
	uint32_t status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
	const struct sockaddr_ll *from;
	struct virtio_net_hdr vnet;

	if (!(status & TP_STATUS_USER))
		return false;
	f->data = (const uint8_t *)h + h->tp_mac;
	f->len = h->tp_len;
	f->whole = h->tp_snaplen == h->tp_len;
	f->queued = status & TP_STATUS_COPY;
	memcpy(&vnet, f->data - sizeof(vnet), sizeof(vnet));
	f->gso_type = vnet.gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	f->gso_size = vnet.gso_size;
	f->tagged = status & TP_STATUS_VLAN_VALID;
	f->vlan = h->tp_vlan_tci;
	from = (const struct sockaddr_ll *)((const uint8_t *)h + TPACKET_ALIGN(sizeof(*h)));
	f->to_us = from->sll_pkttype == PACKET_HOST;
	return true;
}

bool gsosock_read(const struct gsosock *s, struct iovec *io, unsigned n, uint32_t len)
{
	struct virtio_net_hdr vnet;
	struct msghdr h = {.msg_iov = io, .msg_iovlen = n};
	ssize_t got;

	io[0] = (struct iovec){&vnet, sizeof(vnet)};
	/* A netdev that was down leaves this error in the socket. It is reported once, and the
	 * frame stays in the queue. */
	do
		got = recvmsg(s->fd, &h, MSG_DONTWAIT);
	while (got < 0 && errno == ENETDOWN);
	return got == (ssize_t)(sizeof(vnet) + len) && !(h.msg_flags & MSG_TRUNC);
}

void gsosock_release(struct gsosock *s)
{
	struct tpacket2_hdr *h = (struct tpacket2_hdr *)s->next;

	s->next += s->slot;
	if (!--s->left) {
		s->block += BLOCK;
		if (s->block == s->ring + s->size)
			s->block = s->ring;
		s->next = s->block;
		s->left = s->block_slots;
	}
	__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

bool gsosock_empty(const struct gsosock *s)
{
	for (const uint8_t *block = s->ring; block != s->ring + s->size; block += BLOCK)
		for (uint32_t i = 0; i < s->block_slots; i++) {
			const struct tpacket2_hdr *h =
				(const struct tpacket2_hdr *)(block + (size_t)i * s->slot);

			if (__atomic_load_n(&h->tp_status, __ATOMIC_RELAXED) & TP_STATUS_USER)
				return false;
		}
	return true;
}

uint32_t gsosock_missed(const struct gsosock *s)
{
	struct tpacket_stats stats; /* the kernel resets the count each time */
	socklen_t size = sizeof(stats);

	if (getsockopt(s->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size))
		return 0;
	return stats.tp_drops;
}
