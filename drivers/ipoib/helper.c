/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that waits for rocid and for the kernel: groups, the netdev's settings, and address
 * handles (handles.c). */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include "bits.h"
#include "rib_impl.h"

/* Memberships are polled if the kernel does not announce them. So are the hosts of a bridge: each
 * packet may be from another host, and none may make the port join and leave groups faster than
 * this.
 */
#define READ_MS 1000
/* Changes that follow each other within this time are read together: whoever changes netdevs
 * without a pause, in a container for example, does not keep the thread busy. */
#define GATHER_MS 10

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

bool rib_jobs_any(struct rib *r, const struct rib_jobs *in)
{
	bool any;

	pthread_mutex_lock(&r->lock);
	any = in->n > 0;
	pthread_mutex_unlock(&r->lock);
	return any;
}

static void destroy_handles(struct rib *r)
{
	struct rib_job job;

	while (rib_jobs_take(r, &r->unused, &job))
		roci_destroy_ah(job.ah);
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
static void join_and_leave(struct rib *r, struct rib_groups *now, struct rib_groups *joined)
{
	uint32_t failed = 0;

	for (uint32_t i = 0; i < joined->n; i++)
		if (!has(now, joined->mgid[i]))
			leave(r, joined->mgid[i]);
	for (uint32_t i = 0; i < now->n;) {
		if (has(joined, now->mgid[i]) || join(r, now->mgid[i])) {
			i++;
			continue;
		}
		memcpy(now->mgid[i], now->mgid[--now->n], 16);
		failed++;
	}
	report(r, now->over, failed);
	*joined = *now;
	atomic_store(&r->ngroups, now->n);
}

/* If the kernel cannot be queried now, the current state stays. */
static void follow(struct rib *r, struct rib_groups *joined)
{
	static _Thread_local struct rib_groups now;
	int settings = rib_visit(r);
	bool stays = settings != -EXDEV && settings != -EBADFD, known = false;

	if (settings >= 0) {
		stays = rib_tap_follow(r, settings);
		known = stays && rib_memberships_read(r, &now);
		rib_end_visit(r, settings);
	}
	if (known)
		join_and_leave(r, &now, joined);
	if (!stays || (atomic_exchange(&r->asked_port, false) && rib_port_changed(r))) {
		atomic_store(&r->outdated, true);
		rib_wake(r->wake);
	}
}

static void drain(int fd)
{
	char buffer[8192];

	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
}

/* @return whether the kernel announced a change. */
static bool rest(struct rib *r, const struct mnl_socket *nl, int ms)
{
	struct pollfd p[] = {{.fd = r->wake_helper, .events = POLLIN},
		{.fd = nl ? mnl_socket_get_fd(nl) : -1, .events = POLLIN}};

	poll(p, ARRAY_SIZE(p), ms);
	drain(r->wake_helper);
	if (!p[1].revents)
		return false;
	poll(p, 1, GATHER_MS);
	drain(p[1].fd);
	return true;
}

void *rib_help(void *arg)
{
	static _Thread_local struct rib_groups joined;
	static _Thread_local struct rib_asking asking;
	struct rib *r = arg;
	struct mnl_socket *nl = rib_memberships_open();
	uint64_t due = 0;

	joined.n = 0;
	asking.n = 0;
	asking.begin_next = 0;
	while (atomic_load(&r->helping)) {
		if (rib_now_ms() >= due || atomic_load(&r->asked_port)) {
			due = rib_now_ms() + READ_MS;
			follow(r, &joined);
		}
		destroy_handles(r);
		if (rest(r, nl, rib_make_handles(r, &asking, READ_MS)))
			due = 0;
	}
	if (nl)
		mnl_socket_close(nl);
	return NULL;
}
