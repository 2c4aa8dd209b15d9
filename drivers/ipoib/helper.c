/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that waits for rocid: address handles, whose GIDs the kernel resolves, and groups. */
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include "bits.h"
#include "rib_impl.h"

/* Where the kernel does not tell of memberships they are read again and again. */
#define READ_MS 1000

void rib_wake(int eventfd)
{
	static const uint64_t one = 1;

	(void)!write(eventfd, &one, sizeof(one));
}

void rib_jobs_put(struct rib *r, struct rib_jobs *to, const struct rib_job *job)
{
	pthread_mutex_lock(&r->lock);
	to->job[(to->first + to->n++) % RIB_JOBS] = *job;
	pthread_mutex_unlock(&r->lock);
}

bool rib_jobs_take(struct rib *r, struct rib_jobs *from, struct rib_job *job)
{
	bool any;

	pthread_mutex_lock(&r->lock);
	any = from->n > 0;
	if (any) {
		*job = from->job[from->first];
		from->first = (from->first + 1) % RIB_JOBS;
		from->n--;
	}
	pthread_mutex_unlock(&r->lock);
	return any;
}

bool rib_jobs_take_youngest(struct rib *r, struct rib_jobs *from, struct rib_job *job)
{
	bool any;

	pthread_mutex_lock(&r->lock);
	any = from->n > 0;
	if (any)
		*job = from->job[(from->first + --from->n) % RIB_JOBS];
	pthread_mutex_unlock(&r->lock);
	return any;
}

/* The youngest first: hundreds who claim to be where nobody answers, 3 s each, delay nobody who
 * comes after them. */
static void make_handles(struct rib *r)
{
	struct rib_job job;

	while (atomic_load(&r->helping) && rib_jobs_take_youngest(r, &r->asked, &job)) {
		job.ah = rib_handle(r, job.ask.gid);
		rib_jobs_put(r, &r->answered, &job);
		rib_wake(r->wake);
	}
}

static bool has(const struct rib_groups *g, const uint8_t mgid[16])
{
	for (uint32_t i = 0; i < g->n; i++)
		if (!memcmp(g->mgid[i], mgid, 16))
			return true;
	return false;
}

static bool join(struct rib *r, const uint8_t mgid[16])
{
	union roci_gid gid;

	memcpy(gid.raw, mgid, 16);
	return !roci_attach_mcast(r->q.qp, &gid);
}

static void leave(struct rib *r, const uint8_t mgid[16])
{
	union roci_gid gid;

	memcpy(gid.raw, mgid, 16);
	roci_detach_mcast(r->q.qp, &gid);
}

/* RFC 4391 12: failures are logged. */
static void report(struct rib *r, uint32_t over, uint32_t failed)
{
	uint32_t before = atomic_exchange(&r->missing, over + failed);

	if (over + failed <= before || !atomic_load(&r->helping))
		return;
	if (failed)
		rib_say(r, "cannot join %u groups of the netdev: %s", failed, roci_last_error());
	if (over)
		rib_say(r,
			"the netdev receives %u groups at most, and its kernel joined %u more: let "
			"programs leave some",
			RIB_GROUPS, over);
}

/* The QP follows the kernel: IGMP and MLD on the port tell the switches (IPB-17). A group that
 * could not be joined is tried again. */
static void follow(struct rib *r, struct rib_groups *joined)
{
	static _Thread_local struct rib_groups now;
	uint32_t failed = 0;

	rib_memberships_read(r, &now);
	for (uint32_t i = 0; i < joined->n; i++)
		if (!has(&now, joined->mgid[i]))
			leave(r, joined->mgid[i]);
	for (uint32_t i = 0; i < now.n;) {
		if (has(joined, now.mgid[i]) || join(r, now.mgid[i])) {
			i++;
			continue;
		}
		memcpy(now.mgid[i], now.mgid[--now.n], 16);
		failed++;
	}
	report(r, now.over, failed);
	*joined = now;
	atomic_store(&r->ngroups, now.n);
}

static void drain(int fd)
{
	char buffer[8192];

	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
}

static void rest(struct rib *r, const struct mnl_socket *nl)
{
	struct pollfd p[] = {{.fd = r->wake_helper, .events = POLLIN},
		{.fd = nl ? mnl_socket_get_fd(nl) : -1, .events = POLLIN}};

	poll(p, ARRAY_SIZE(p), READ_MS);
	drain(r->wake_helper);
	if (nl)
		drain(mnl_socket_get_fd(nl));
}

void *rib_help(void *arg)
{
	static _Thread_local struct rib_groups joined;
	struct rib *r = arg;
	struct mnl_socket *nl = rib_memberships_open();

	joined.n = 0;
	while (atomic_load(&r->helping)) {
		make_handles(r);
		follow(r, &joined);
		rest(r, nl);
	}
	if (nl)
		mnl_socket_close(nl);
	return NULL;
}
