/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the kernel that a netdev of IP over InfiniBand refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/virtio_net.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "bits.h"
#include "inet.h"
#include "rib_impl.h"

#define LEN 3000u

static struct rib r;
static int kernel;

static int begin(void **state)
{
	static const struct ipoib_config cfg = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 2044};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair))
		return -1;
	memset(&r, 0, sizeof(r));
	r.tap = pair[0];
	kernel = pair[1];
	r.mtu = cfg.mtu;
	r.ipoib = ipoib_init(malloc(ipoib_size()), &cfg);
	r.frames = rib_frames_create();
	rib_frames_begin(r.frames);
	r.q.slots = malloc((size_t)(RIB_RECVS + RIB_SENDS) * RIB_SLOT);
	return 0;
}

static int finish(void **state)
{
	close(r.tap);
	close(kernel);
	free(r.ipoib);
	free(r.frames);
	free(r.q.slots);
	return 0;
}

/* Segments of TCP over IPv4, which the kernel leaves to the netdev, with a tag of @p tag octets.
 */
static void segments(uint16_t type, uint16_t tag)
{
	struct virtio_net_hdr h = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.gso_size = 1000,
		.csum_start = (uint16_t)(ETHER_HLEN + tag + IP4_HLEN),
		.csum_offset = TCP_SUM};
	uint8_t frame[LEN] = {0}, *ip = frame + ETHER_HLEN + tag;
	struct iovec iov[] = {{&h, sizeof(h)}, {frame, sizeof(frame)}};

	put_be16(frame + ETHER_TYPE, type);
	ip[0] = 0x45;
	ip[IP4_PROTOCOL] = PROTOCOL_TCP;
	assert_int_equal(writev(kernel, iov, ARRAY_SIZE(iov)), sizeof(h) + LEN);
	assert_int_equal(rib_from_kernel(&r, 1), 1);
}

/* Only what IP over InfiniBand carries can contradict its header. */
static void rib_from_kernel__segments_refused(void **state)
{
	segments(0x8100, 4); /* of a VLAN */
	assert_int_equal(ipoib_counts(r.ipoib)[IPOIB_TYPE], 1);
	assert_int_equal(ipoib_counts(r.ipoib)[IPOIB_BAD_OFFLOAD], 0);
	segments(IPOIB_IP4, 4); /* no IP header where it belongs */
	assert_int_equal(ipoib_counts(r.ipoib)[IPOIB_TYPE], 1);
	assert_int_equal(ipoib_counts(r.ipoib)[IPOIB_BAD_OFFLOAD], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rib_from_kernel__segments_refused, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
