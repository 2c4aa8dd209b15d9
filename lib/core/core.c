/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "core.h"
#include "multicast.h"
#include "inject.h"
#include "rp.h"

void core_init(struct core *c, const struct core_config *cfg, uint64_t now)
{
	memset(c, 0, sizeof(*c));
	c->cfg = *cfg;
	wheel_init(&c->wheel, WHEEL_TICK_SHIFT, now);
	wheel_init(&c->pace, PACE_TICK_SHIFT, now);
	list_init(&c->ready);
	list_init(&c->blocked);
	rp_init(c, now);
	c->open = UINT32_MAX;
	c->fast_paths = true;
	list_init(&c->touched);
	list_init(&c->troubled);
	list_init(&c->held);
	for (uint32_t i = 0; i < SESSION_MAX; i++) {
		list_init(&c->share[i].node);
		for (uint32_t way = 0; way < EGRESS_COUNT; way++)
			list_init(&c->share[i].qps[way]);
		list_init(&c->share[i].group);
		list_init(&c->share[i].jobs);
	}
	for (uint32_t way = 0; way < EGRESS_COUNT; way++)
		list_init(&c->urgent[way]);
	multicast_init(&c->groups);
}

void core_count_drop(struct core *c, enum drop why)
{
	c->count.drop[why]++;
}

const char *core_counter_name(unsigned i)
{
	static const char *const names[] = {
#define X(field, name, help) name,
		CORE_COUNTERS(X)
#undef X
	};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

const char *core_counter_help(unsigned i)
{
	static const char *const helps[] = {
#define X(field, name, help) help,
		CORE_COUNTERS(X)
#undef X
	};

	return i < ARRAY_SIZE(helps) ? helps[i] : NULL;
}

void core_sum_ports(struct core_counters *c)
{
	c->rx_packets = c->rx_bytes = c->tx_packets = c->tx_bytes = 0;
	for (uint32_t i = 0; i < PORT_MAX; i++) {
		c->rx_packets += c->port[i].rx_packets;
		c->rx_bytes += c->port[i].rx_bytes;
		c->tx_packets += c->port[i].tx_packets;
		c->tx_bytes += c->port[i].tx_bytes;
	}
}

uint64_t core_deadline(const struct core *c)
{
	uint64_t due;

	if (!list_empty(&c->ready) || !list_empty(&c->blocked) || c->np.owed || c->urgent_ways)
		return 0;
	due = wheel_deadline(&c->wheel);
	if (c->paced) {
		uint64_t departure = wheel_deadline(&c->pace);

		due = departure < due ? departure : due;
	}
	if (unlikely(c->careful)) {
		uint64_t held = inject_deadline(c);

		return held < due ? held : due;
	}
	return due;
}
