/* SPDX-License-Identifier: BSD-3-Clause */
#include "bits.h"
#include "ipoib_impl.h"

size_t ipoib_size(void)
{
	return sizeof(struct ipoib);
}

struct ipoib *ipoib_init(void *room, const struct ipoib_config *cfg)
{
	struct ipoib *s = room;

	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	list_init(&s->asks);
	list_init(&s->ready);
	list_init(&s->probing);
	list_init(&s->waiting);
	list_init(&s->spare);
	for (unsigned i = 0; i < IPOIB_WAIT_ALL; i++) {
		list_init(&s->packet[i].age);
		list_push(&s->spare, &s->packet[i].node);
	}
	neigh_init(&s->table, &cfg->seed);
	neigh_mac(s->wire_mac, &cfg->own);
	neigh_made_up(s->made_up, &cfg->own);
	station_init(&s->stations, &cfg->seed, cfg->mac);
	return s;
}

void ipoib_set_mac(struct ipoib *s, const uint8_t mac[6])
{
	memcpy(s->cfg.mac, mac, 6);
	station_set_own(&s->stations, mac);
}

void ipoib_count(struct ipoib *s, enum ipoib_count c)
{
	s->count[c]++;
}

const uint64_t *ipoib_counts(const struct ipoib *s)
{
	return s->count;
}

const char *ipoib_count_name(enum ipoib_count c)
{
	static const char *const name[] = {
		[IPOIB_TX] = "tx",
		[IPOIB_TX_GROUP] = "tx_group",
		[IPOIB_RX] = "rx",
		[IPOIB_SHORT] = "short",
		[IPOIB_TYPE] = "type",
		[IPOIB_LONG] = "too_long",
		[IPOIB_BAD_IP] = "bad_ip",
		[IPOIB_BAD_ARP] = "bad_arp",
		[IPOIB_BAD_ND] = "bad_nd",
		[IPOIB_FORGED] = "forged",
		[IPOIB_OFF_LINK] = "off_link",
		[IPOIB_OWN] = "own",
		[IPOIB_NO_NEIGH] = "no_neighbour",
		[IPOIB_UNRESOLVED] = "unresolved",
		[IPOIB_QUEUE_FULL] = "queue_full",
		[IPOIB_PROBES_SENT] = "probes",
		[IPOIB_RESTARTED] = "restarted",
		[IPOIB_DUPLICATE] = "duplicate",
		[IPOIB_EVICTED] = "evicted",
		[IPOIB_DISPLACED] = "displaced",
		[IPOIB_LOOPED] = "looped",
		[IPOIB_CUT] = "cut",
		[IPOIB_MERGED] = "merged",
		[IPOIB_BAD_OFFLOAD] = "bad_offload",
	};

	return name[c];
}

uint32_t ipoib_neighs(const struct ipoib *s)
{
	return s->table.n;
}

uint32_t ipoib_bridged(const struct ipoib *s)
{
	return s->stations.others;
}

const struct station_table *ipoib_stations(const struct ipoib *s)
{
	return &s->stations;
}
