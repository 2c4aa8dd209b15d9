/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "config/capacity.h"

#define MAP_COUNT_DEFAULT 65530u /* vm.max_map_count if /proc/sys is unreadable */
#define DESCRIPTORS_MAX	  (1u << 20)

static uint64_t max_map_count(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long long n;

	if (!f)
		return MAP_COUNT_DEFAULT;
	if (fscanf(f, "%llu", &n) != 1)
		n = MAP_COUNT_DEFAULT;
	fclose(f);
	return n;
}

static uint64_t own_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t n = 0;
	int c;

	if (!f)
		return 0;
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static uint64_t own_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static uint64_t max_descriptors(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur > DESCRIPTORS_MAX)
		return DESCRIPTORS_MAX;
	return rl.rlim_cur;
}

/* @return how many of @p all remain for sessions, if rocid uses @p now and reserves @p own. */
static uint64_t left(uint64_t all, uint64_t now, uint64_t own)
{
	uint64_t keep = now + (own < all / 4 ? own : all / 4);

	return keep < all ? all - keep : 0;
}

static uint64_t memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void capacity_of_machine(uint64_t capacity[CTL_KINDS])
{
	const uint64_t all[CTL_KINDS] = {
		[CTL_SESSIONS] = SESSION_MAX,
		[CTL_QPS] = QP_MAX,
		[CTL_CQS] = CQ_MAX,
		[CTL_KEYS] = MR_MAX - 1, /* key 0 is invalid */
		[CTL_PDS] = PD_MAX,
		[CTL_SRQS] = SRQ_MAX,
		[CTL_XRCDS] = XRCD_MAX,
		[CTL_AHS] = AH_MAX,
		[CTL_GROUPS] = MCAST_GROUP_MAX,
		[CTL_ATTACHMENTS] = MCAST_ATTACH_MAX,
		[CTL_CHANNELS] = UINT64_MAX, /* limited by the number of descriptors */
		[CTL_DESCRIPTORS] = left(max_descriptors(), own_descriptors(), DESCRIPTORS_OWN),
		[CTL_MAPPINGS] = left(max_map_count(), own_mappings(), MAPPINGS_OWN),
		[CTL_MEMORY] = memory(),
		[CTL_LOOKUPS] = RESOLVE_MAX,
		[CTL_CM_IDS] = CM_ID_MAX,
		[CTL_CM_PORTS] = CM_PORT_MAX,
		[CTL_LISTENERS] = CM_LISTENERS_MAX,
		[CTL_CONNECTIONS] = CONNECTIONS_MAX,
		[CTL_CM_REQUESTS] = CM_REQUEST_MAX,
		[CTL_CM_EVENTS] = CM_EVENT_MAX,
		[CTL_QUEUES] = memory() / QUEUES_OF_MEMORY,
	};

	memcpy(capacity, all, sizeof(all));
}
