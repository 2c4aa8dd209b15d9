/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "core.h"

void core_init(struct core *c, const struct core_config *cfg, uint64_t now)
{
	memset(c, 0, sizeof(*c));
	c->cfg = *cfg;
	c->ua.icrc = cfg->icrc;
	c->ua.faults = cfg->faults;
	wheel_init(&c->wheel, now);
	list_init(&c->ready);
	list_init(&c->touched);
	for (uint32_t i = 0; i < SESSION_MAX; i++) {
		list_init(&c->share[i].node);
		list_init(&c->share[i].qps);
	}
}

void core_count_drop(struct core *c, enum drop why)
{
	c->count.drop[why]++;
}

const char *core_counter_name(unsigned i)
{
	static const char *const names[] = {
#define X(field, name) name,
		CORE_COUNTERS(X)
#undef X
	};

	return i < ARRAY_SIZE(names) ? names[i] : NULL;
}

uint64_t core_deadline(const struct core *c)
{
	return list_empty(&c->ready) ? wheel_deadline(&c->wheel) : 0;
}
