/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "bits.h"
#include "gso/ask.h"
#include "gso/sock.h"
#include "path.h"

void gso_ask_init(struct gso_ask *a, uint64_t ticks_per_ms)
{
	gso_peers_init(&a->peers, ticks_per_ms);
	a->fd = -EBADF;
}

static void count(_Atomic uint64_t *to)
{
	atomic_store_explicit(
		to, atomic_load_explicit(to, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* A frame that cannot be sent at once is lost: its sender asks again. */
static bool send_frame(
	int fd, const struct virtio_net_hdr *vnet, const uint8_t *frame, uint32_t len)
{
	struct iovec io[2] = {
		{(void *)(uintptr_t)vnet, sizeof(*vnet)}, {(void *)(uintptr_t)frame, len}};
	struct msghdr h = {.msg_iov = io, .msg_iovlen = 2};

	return sendmsg(fd, &h, MSG_DONTWAIT) >= 0;
}

/* Nobody who did not receive the trial can guess it. */
static uint64_t make_cookie(void)
{
	uint64_t cookie = 0;

	return getrandom(&cookie, sizeof(cookie), GRND_NONBLOCK) == sizeof(cookie) ? cookie : 0;
}

static void ask(struct gso_ask *a, struct gso_peer *peer, const uint8_t *like, uint64_t now)
{
	uint8_t trial[GSO_TRIAL_MAX];
	struct virtio_net_hdr vnet;
	uint64_t cookie = make_cookie();
	uint16_t head;
	uint32_t len;

	if (!cookie)
		return;
	len = gso_trial_write(trial, like, cookie, &head);
	gso_peer_ask(&a->peers, peer, cookie, now);
	vnet = gsosock_run(head, GSO_TRIAL_PART);
	if (send_frame(a->fd, &vnet, trial, len))
		count(&a->trials);
	else if (errno == EINVAL)
		a->refused = true; /* before Linux 6.2 */
}

static bool is_answered(const struct gso_ask *a, uint64_t cookie)
{
	for (unsigned i = 0; i < a->queues; i++)
		if (gso_answers_has(&a->all[i]->answers, cookie))
			return true;
	return false;
}

bool gso_ask_takes(struct gso_ask *a, const uint8_t *frame, uint64_t now)
{
	struct gso_peer *peer;

	if (a->refused)
		return false;
	peer = gso_peers_find(&a->peers, frame, now);
	if (!peer)
		return false;
	if (gso_peer_waits(&a->peers, peer, now) && is_answered(a, peer->cookie))
		gso_peer_answered(&a->peers, peer);
	if (gso_peer_due(&a->peers, peer, now))
		ask(a, peer, frame, now);
	return gso_peer_known(peer, now);
}

/* @return whether to answer @p frame: not if it is a copy of a frame to another host, or for
 * another owner of this MAC. */
static bool is_ours(const struct gso_ask *a, const uint8_t *frame)
{
	const struct gid_table *gids =
		a->port ? atomic_load_explicit(&a->port->gids, memory_order_acquire) : NULL;
	const uint8_t *ip = frame + ETH_HLEN;
	uint8_t gid[16] = {[10] = 0xFF, [11] = 0xFF};
	bool ip4 = get_be16(frame + ETH_TYPE) == ETHERTYPE_IPV4;

	if (ip4)
		memcpy(gid + 12, ip + IP4_DST, 4);
	else
		memcpy(gid, ip + IP6_DST, 16);
	/* Nor is there an answer to a group. */
	return gids && !(frame[ETH_SRC] & 1) &&
	       gid_find(gids, gid, ip4 ? NET_IPV4 : NET_IPV6, 0) >= 0;
}

bool gso_ask_heard(struct gso_ask *a, const uint8_t *frame, uint32_t len, bool to_us)
{
	uint64_t cookie;
	enum gso_trial_kind kind = gso_trial_read(frame, len, &cookie);

	if (kind == GSO_TRIAL && to_us && is_ours(a, frame))
		a->owed_len = gso_trial_answer(a->owed, frame);
	else if (kind == GSO_TRIAL_ANSWER)
		gso_answers_put(&a->answers, cookie);
	return kind != GSO_TRIAL_NOT;
}

void gso_ask_reply(struct gso_ask *a)
{
	const struct virtio_net_hdr single = {0};

	if (!a->owed_len)
		return;
	if (send_frame(a->fd, &single, a->owed, a->owed_len))
		count(&a->answered);
	a->owed_len = 0;
}
