/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "gso/peers.h"
#include "headers.h"

void gso_peers_init(struct gso_peers *p, uint64_t ticks_per_ms)
{
	memset(p, 0, sizeof(*p));
	p->ms = ticks_per_ms;
}

/* Of a frame's destination; only what identifies a peer is set. */
static struct gso_peer address_of(const uint8_t *frame)
{
	struct gso_peer a = {.ip4 = get_be16(frame + ETH_TYPE) == ETHERTYPE_IPV4};

	memcpy(a.mac, frame + ETH_DST, sizeof(a.mac));
	if (a.ip4)
		memcpy(a.ip, frame + ETH_HLEN + IP4_DST, 4);
	else
		memcpy(a.ip, frame + ETH_HLEN + IP6_DST, 16);
	return a;
}

static bool same_address(const struct gso_peer *a, const struct gso_peer *b)
{
	return a->ip4 == b->ip4 && !memcmp(a->mac, b->mac, sizeof(a->mac)) &&
	       !memcmp(a->ip, b->ip, sizeof(a->ip));
}

static unsigned set_of(const struct gso_peer *a)
{
	uint64_t mac = 0, ip[2];

	memcpy(&mac, a->mac, sizeof(a->mac));
	memcpy(ip, a->ip, sizeof(ip));
	mac ^= ip[0] ^ ip[1] << 7;
	return (unsigned)(mac * 0x9E3779B97F4A7C15u >> 32) % GSO_PEER_SETS;
}

struct gso_peer *gso_peers_find(struct gso_peers *p, const uint8_t *frame, uint64_t now)
{
	struct gso_peer address = address_of(frame);
	struct gso_peer *set = p->peer[set_of(&address)];
	struct gso_peer *oldest = set;

	if (address.mac[0] & 1)
		return NULL;
	for (struct gso_peer *at = set; at < set + GSO_PEER_WAYS; at++) {
		if (at->used && same_address(at, &address)) {
			at->seen = now;
			return at;
		}
		if (at->seen < oldest->seen)
			oldest = at;
	}
	*oldest = address;
	oldest->used = true;
	oldest->seen = now;
	oldest->wait = GSO_WAIT_MIN_MS * p->ms;
	return oldest;
}

bool gso_peer_waits(const struct gso_peers *p, const struct gso_peer *peer, uint64_t now)
{
	return peer->cookie && now - peer->asked < GSO_KNOWN_MS * p->ms;
}

void gso_peer_answered(const struct gso_peers *p, struct gso_peer *peer)
{
	peer->cookie = 0;
	peer->known = peer->asked + GSO_KNOWN_MS * p->ms;
	peer->due = peer->asked + GSO_AGAIN_MS * p->ms;
	peer->wait = GSO_WAIT_MIN_MS * p->ms;
}

bool gso_peer_due(const struct gso_peers *p, const struct gso_peer *peer, uint64_t now)
{
	return now >= peer->due && now >= p->paced;
}

void gso_peer_ask(struct gso_peers *p, struct gso_peer *peer, uint64_t cookie, uint64_t now)
{
	peer->cookie = cookie;
	peer->asked = now;
	peer->due = now + peer->wait;
	peer->wait =
		peer->wait * 2 < GSO_WAIT_MAX_MS * p->ms ? peer->wait * 2 : GSO_WAIT_MAX_MS * p->ms;
	p->paced = now + GSO_PACE_MS * p->ms;
}
