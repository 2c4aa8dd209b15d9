/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include "show/stats.h"
#include "worker.h"

void ctl_stats_json(const struct dataplane *dp, FILE *f)
{
	struct core_counters sum;
	/* core_counter_name() goes by declaration order, and the drops come last. */
	const uint64_t *count = (const uint64_t *)&sum;
	const char *name;

	worker_counters(dp, &sum);
	fputc('{', f);
	for (unsigned i = 0; (name = core_counter_name(i)); i++)
		fprintf(f, "\"%s\": %" PRIu64 ", ", name, count[i]);
	fputs("\"drops\": {", f);
	for (unsigned i = DROP_NONE + 1; i < DROP_MAX; i++)
		fprintf(f, "%s\"%s\": %" PRIu64, i > DROP_NONE + 1 ? ", " : "",
			drop_name((enum drop)i), sum.drop[i]);
	fputs("}}\n", f);
}
