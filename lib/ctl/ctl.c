/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread: set-up, event loop, shutdown. */
#include "ctl.h"
#include "memory/alloc.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include "admin/admin.h"
#include "admin/captures.h"
#include "admin/server.h"
#include "admin/telemetry.h"
#include "admin/traces.h"
#include "cm/manager.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "diagnose/diagnose.h"
#include "list.h"
#include "migrate/migrate.h"
#include "net/neigh.h"
#include "net/net.h"
#include "news.h"
#include "refuse.h"
#include "session/failures.h"
#include "session/ids.h"
#include "session/job.h"
#include "session/notifier.h"
#include "session/quota.h"
#include "session/server.h"
#include "session/session.h"
#include "session/sessions.h"
#include "sigbus.h"
#include "sysfs/sysfs.h"
#include "verbs/dest.h"
#include "verbs/group.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/** All state of the control thread. */
struct ctl_state {
	struct ctl ctl;
	struct loop loop;
	struct net net;
	struct sessions sessions;
	struct objects objects;
	struct dests dests;
	struct hash_seed dest_seed;
	struct groups groups;
	struct migration migration;
	struct admin admin;
	struct core_counters counted;
	struct news news;
	struct watch stopper; /* eventfd: ctl_stop() */
	struct watch late;    /* eventfd: QPs had a timeout */
	bool stopping;
};

static struct ctl_state *state_of(struct ctl *ctl)
{
	return container_of(ctl, struct ctl_state, ctl);
}

/* --- set-up ----------------------------------------------------------------------------- */

/* Each session, channel and pending ring needs a descriptor: request as many as allowed. */
static void raise_descriptor_limit(int *fd_max)
{
	struct rlimit rl;

	*fd_max = INT_MAX;
	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	if (rl.rlim_cur != rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	/* The kernel assigns the lowest free one: all below are in use. */
	if (rl.rlim_cur < INT_MAX)
		*fd_max = (int)(rl.rlim_cur - rl.rlim_cur / DESCRIPTOR_RESERVE);
}

/* When the kernel enlarges the descriptor table of a process with threads, open() and the like wait
 * for an RCU grace period: 0.2 s and more on a busy machine, which would delay all commands.
 * Enlarge it at the start, before there are any. */
static void make_descriptor_table(void)
{
	int fd = eventfd(0, EFD_CLOEXEC), last = -1;
	struct rlimit rl;

	if (fd >= 0 && !getrlimit(RLIMIT_NOFILE, &rl))
		last = fcntl(fd, F_DUPFD_CLOEXEC,
			(int)RTE_MIN(rl.rlim_cur, (rlim_t)DESCRIPTOR_TABLE) - 1);
	if (last >= 0)
		close(last);
	if (fd >= 0)
		close(fd);
}

/* The first QPs of a destination had a timeout: their neighbour may have moved. */
static void late_ready(struct watch *w)
{
	struct ctl *ctl = &container_of(w, struct ctl_state, late)->ctl;
	uint64_t times;
	ssize_t n = read(w->fd, &times, sizeof(times));

	(void)n;
	for (uint32_t i = 0; i < ctl->dp->nworkers; i++)
		for (uint32_t slot = 0; slot < LATE_SLOTS; slot++) {
			const struct qp_obj *o = find_qp(ctl, worker_take_late(ctl->dp, i, slot));

			if (o && o->dest)
				dest_probe(o->dest);
		}
}

static int watch_eventfd(struct ctl_state *h, struct watch *w)
{
	w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w->fd < 0 ? -errno : loop_watch(&h->loop, w);
}

static int open_loop(struct ctl_state *h, char why[ABI_SENTENCE_MAX])
{
	int err = loop_open(&h->loop);

	if (!err)
		err = watch_eventfd(h, &h->stopper);
	if (!err)
		err = watch_eventfd(h, &h->late);
	if (!err)
		err = watch_eventfd(h, &h->sessions.faults);
	if (err)
		return refuse(why, err, "rocid cannot create its event loop: %s", strerror(-err));
	h->sessions.notifier.late_fd = h->late.fd;
	/* The loop handles the faults that the handler of SIGBUS records. */
	sigbus_notify(h->sessions.faults.fd);
	return 0;
}

static void stopper_ready(struct watch *w)
{
	uint64_t times;
	ssize_t n = read(w->fd, &times, sizeof(times));

	(void)n;
	container_of(w, struct ctl_state, stopper)->stopping = true;
}

static void init(struct ctl_state *h, const struct ctl_config *cfg)
{
	h->ctl = (struct ctl){
		.dp = cfg->dp,
		.devices = cfg->devices,
		.loop = &h->loop,
		.net = &h->net,
		.sessions = &h->sessions,
		.objects = &h->objects,
		.admin = &h->admin,
		.counted = &h->counted,
		.since_ms = loop_now_ms(),
		.window = cfg->window,
		.plain_label = cfg->plain_label,
		.application_faults = cfg->application_faults,
		.application_macs = cfg->application_macs,
		.cm = cfg->cm,
		.cm_rocev1 = cfg->cm_rocev1,
		.cm_timeout = cfg->cm_timeout,
		.cm_retries = cfg->cm_retries,
		.no_userfaultfd = cfg->no_userfaultfd,
	};
	snprintf(
		h->ctl.device, sizeof(h->ctl.device), "%s", cfg->device[0] ? cfg->device : "roci0");
	h->loop.epoll = -1;
	h->net.announce_fd = -1;
	h->objects.ctl = &h->ctl;
	h->objects.populated.fd = -1;
	h->stopper = (struct watch){.fd = -1, .ready = stopper_ready};
	h->late = (struct watch){.fd = -1, .ready = late_ready};
	admin_init(&h->admin, &h->ctl);
	h->objects.dests = &h->dests;
	h->dests.seed = &h->dest_seed;
	h->objects.groups = &h->groups;
	dests_init(&h->dests);
	groups_init(&h->groups);
	h->objects.migration = &h->migration;
	migrate_init(&h->migration, cfg->migrate, cfg->shake_ms, (uint64_t)getpid());
}

static int choose_epoch(struct sessions *all, char why[ABI_SENTENCE_MAX])
{
	int err;

	do /* 0 means "shut down" */
		err = random_bytes(&all->epoch, sizeof(all->epoch));
	while (!err && !all->epoch);
	return err ? refuse(why, err, "the kernel returned no random numbers: %s", strerror(-err))
		   : 0;
}

static int start(struct ctl_state *h, char why[ABI_SENTENCE_MAX])
{
	int err = news_open(&h->news, &h->ctl);

	if (!err)
		err = notifier_start(&h->sessions.notifier);
	if (err)
		return refuse(
			why, err, "rocid cannot start its control thread: %s", strerror(-err));
	return 0;
}

/* Not fatal: rocid works without it. */
static void open_sysfs(struct ctl *ctl)
{
	char why[ABI_SENTENCE_MAX];

	if (sysfs_open(ctl, ctl->sessions->socket_path, why))
		fprintf(stderr,
			"rocid: programs will not find the device in /sys/class/infiniband: %s\n",
			why);
}

static int open_all(struct ctl_state *h, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	struct ctl *ctl = &h->ctl;
	int err = open_loop(h, why);

	if (!err)
		err = choose_epoch(&h->sessions, why);
	if (!err)
		err = objects_init(&h->objects, ctl, &h->dest_seed, why);
	if (!err)
		err = net_open(&h->net, cfg, why);
	if (!err)
		err = server_open(ctl, cfg, why);
	if (!err)
		open_sysfs(ctl);
	if (!err)
		err = admin_open(ctl, cfg, why);
	if (!err)
		err = telemetry_open(ctl, why);
	return err ? err : start(h, why);
}

int ctl_start(struct ctl **out, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	struct ctl_state *h = object_alloc(sizeof(*h));
	int err;

	*out = NULL;
	if (!h)
		return refuse_memory(why);
	raise_descriptor_limit(&h->sessions.fd_max); /* before quota_init() counts descriptors */
	make_descriptor_table();
	init(h, cfg);
	quota_init(&h->sessions.quota, &cfg->limits);
	err = sessions_init(&h->sessions, &h->ctl, &connection_ops, objects_event_source);
	h->ctl.failures = failures_create(&diagnose_ops);
	h->ctl.connections = connections_create(&h->ctl);
	if (err || !h->ctl.failures || !h->ctl.connections)
		err = refuse_memory(why);
	else
		err = open_all(h, cfg, why);
	if (err) {
		ctl_destroy(&h->ctl);
		return err;
	}
	*out = &h->ctl;
	return 0;
}

/* --- running ---------------------------------------------------------------------------- */

/* Does everything that is due.  @return milliseconds until something is due again, -1: never. */
static int run_timers(struct ctl *ctl)
{
	uint64_t now = loop_now_ms();
	int wait = migrate_poll(ctl, now);

	if (sessions_close_some(ctl))
		wait = 0;
	if (jobs_poll(ctl))
		wait = 0;
	if (groups_poll(ctl))
		wait = 0;
	wait = loop_sooner(wait, admin_traces_poll(ctl));
	wait = loop_sooner(wait, server_poll(ctl, now));
	wait = loop_sooner(wait, sessions_poll(ctl, now));
	wait = loop_sooner(wait, news_poll(ctl, now));
	wait = loop_sooner(wait, connections_poll(ctl));
	wait = loop_sooner(wait, sysfs_poll(ctl, now));
	wait = loop_sooner(wait, dests_poll(ctl, now));
	wait = loop_sooner(wait, neigh_poll(&ctl->net->neighs, now)); /* includes those of dests */
	return lookups_poll(ctl) ? 0 : wait;
}

/* Not fatal: rocid works without it.  @return false: QP1 is left to programs. */
static bool open_cm(struct ctl *ctl)
{
	char why[ABI_SENTENCE_MAX];

	if (!connections_open(ctl->connections, why))
		return true;
	fprintf(stderr, "rocid: no communication manager: %s\n", why);
	return false;
}

/* From this number of sessions that are being closed on, new ones are accepted no faster than they
 * are freed. */
#define CLOSING_MANY (SESSION_MAX / 8)

/* Background work runs when no command is pending, and otherwise for at most half of the time, so
 * that a queue of commands waits for one background step, not for one per command. */
int ctl_run(struct ctl *ctl)
{
	struct ctl_state *h = state_of(ctl);
	uint64_t due = 0; /* the next background step, in ns, even if commands are pending */
	bool idle = true;
	int wait = -1;

	h->stopping = false;
	if (ctl->cm && !open_cm(ctl)) /* it needs workers that run */
		ctl->cm = false;
	while (!h->stopping) {
		uint64_t begin = loop_now_ns();
		int n;

		if (idle || begin >= due || ctl->sessions->nclosing > CLOSING_MANY) {
			wait = run_timers(ctl);
			due = loop_now_ns();
			due += due - begin;
		}
		n = loop_wait(ctl->loop, idle ? wait : 0);
		if (n < 0)
			return n;
		idle = n == 0;
	}
	return 0;
}

void ctl_stop(struct ctl *ctl)
{
	uint64_t one = 1;
	int saved = errno; /* we may be in a signal handler */
	ssize_t n = write(state_of(ctl)->stopper.fd, &one, sizeof(one));

	(void)n; /* a full counter is set already */
	errno = saved;
}

void ctl_destroy(struct ctl *ctl)
{
	struct ctl_state *h;

	if (!ctl)
		return;
	h = state_of(ctl);
	sysfs_close(ctl);
	server_close(ctl);
	admin_close(ctl);
	telemetry_close(ctl);
	admin_captures_close(ctl);
	connections_close(ctl->connections);
	sessions_close(&h->sessions);
	admin_traces_close(ctl);
	sigbus_notify(-1);
	sessions_destroy(&h->sessions);
	net_close(&h->net, ctl->dp);
	objects_destroy(&h->objects);
	loop_unwatch(&h->loop, &h->sessions.faults);
	loop_unwatch(&h->loop, &h->stopper);
	loop_unwatch(&h->loop, &h->late);
	loop_close(&h->loop);
	failures_destroy(ctl->failures);
	connections_destroy(ctl->connections);
	free(h);
}
