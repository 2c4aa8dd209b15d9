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

/* Changes that follow each other within this time are read together, so that a container that
 * changes netdevs without a pause does not keep the thread busy. */
#define GATHER_MS 10

void rib_wake(int eventfd)
{
	static const uint64_t one = 1;

	(void)!write(eventfd, &one, sizeof(one));
}

void rib_unwake(int eventfd)
{
	uint64_t n;

	(void)!read(eventfd, &n, sizeof(n));
}

/* The loop ends: the packet thread adds a handle only in response to an answer of this thread,
 * which gives none meanwhile, so only those that already wait can add some. */
static void destroy_handles(struct rib *r)
{
	struct rib_job job;

	while (rib_jobs_take(&r->ring[RIB_UNUSED], &job))
		roci_destroy_ah(job.ah);
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
static void join_and_leave(struct rib *r, struct rib_members *m)
{
	struct rib_groups *now = &m->now, *joined = &m->joined;
	uint32_t failed = 0;

	for (uint32_t i = 0; i < joined->n; i++)
		if (!rib_groups_has(now, joined->mgid[i]))
			leave(r, joined->mgid[i]);
	for (uint32_t i = 0; i < now->n;) {
		if (rib_groups_has(joined, now->mgid[i]) || join(r, now->mgid[i])) {
			i++;
			continue;
		}
		rib_groups_remove(now, i);
		failed++;
	}
	report(r, now->over, failed);
	*joined = *now;
	atomic_store(&r->ngroups, now->n);
}

/* If the kernel cannot be queried now, the current state stays. */
static void follow(struct rib *r, struct rib_members *m, uint64_t now)
{
	int settings = rib_visit(r);
	bool stays = settings != -EXDEV && settings != -EBADFD, known = false;

	if (settings >= 0) {
		stays = rib_tap_follow(r, settings);
		known = stays && rib_memberships_read(r, m, now);
		rib_end_visit(r, settings);
	}
	if (known)
		join_and_leave(r, m);
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
	static _Thread_local struct rib_members members;
	static _Thread_local struct rib_asking asking;
	struct rib *r = arg;
	struct mnl_socket *nl = rib_memberships_open();
	uint64_t due = 0;

	members.joined.n = 0;
	members.hosts_due = 0;
	asking.n = 0;
	asking.begin_next = 0;
	while (atomic_load(&r->helping)) {
		uint64_t now = rib_now_ms();

		if (now >= due || atomic_load(&r->asked_port)) {
			due = now + RIB_READ_MS;
			follow(r, &members, now);
		}
		destroy_handles(r);
		if (rest(r, nl, rib_make_handles(r, &asking, RIB_READ_MS)))
			due = 0;
	}
	if (nl)
		mnl_socket_close(nl);
	return NULL;
}
