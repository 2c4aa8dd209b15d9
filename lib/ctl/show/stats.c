/* SPDX-License-Identifier: BSD-3-Clause */
#include "core_counters.h"
#include "drop.h"
#include "row.h"
#include "show/stats.h"
#include "worker.h"

json_t *show_stats(const struct dataplane *dp)
{
	struct core_counters sum;
	/* core_counter_name() goes by declaration order, and the drops come last. */
	const uint64_t *count = (const uint64_t *)&sum;
	struct row row, drops;
	const char *name;

	worker_counters(dp, &sum);
	row_begin(&row);
	for (unsigned i = 0; (name = core_counter_name(i)); i++)
		put_int(&row, name, (int64_t)count[i]);
	row_begin(&drops);
	for (unsigned i = DROP_NONE + 1; i < DROP_MAX; i++)
		put_int(&drops, drop_name((enum drop)i), (int64_t)sum.drop[i]);
	put_json(&row, "drops", row_end(&drops));
	return row_end(&row);
}
