/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "hosts.h"
#include "icrc.h"
#include "oracle.h"

struct sim_host *fuzz_host(unsigned id, uint64_t now)
{
	static struct sim_host *hosts[FUZZ_HOSTS];
	struct core_config cfg;

	MUST(id < FUZZ_HOSTS);
	if (!hosts[id]) {
		hosts[id] = aligned_alloc(CACHE_LINE, sizeof(*hosts[id]));
		MUST(hosts[id]);
		host_init(hosts[id], (uint8_t)id, icrc_best(), now);
	}
	cfg = hosts[id]->core.cfg;
	core_init(&hosts[id]->core, &cfg, now);
	return hosts[id];
}
