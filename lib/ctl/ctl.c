/* SPDX-License-Identifier: BSD-3-Clause */
/* The control thread: set-up, event loop, end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include "admin/captures.h"
#include "admin/server.h"
#include "admin/telemetry.h"
#include "admin/traces.h"
#include "diagnose/diagnose.h"
#include "net/announce.h"
#include "port.h"
#include "session/job.h"
#include "session/quota.h"
#include "session/server.h"
#include "session/session.h"
#include "verbs/close.h"
#include "verbs/find.h"
#include "verbs/object.h"

/* Until a port that could not be read is read again: at first, and in the end. */
#define LOOK_AGAIN_MS	  100u
#define LOOK_AGAIN_MAX_MS 5000u

/* --- the network's news ---------------------------------------------------------------- */

static void tell_sessions(struct ctl *ctl, uint32_t i, unsigned what)
{
	if (what & NETPORT_GIDS_CHANGED) /* EVT-05 */
		session_port_event(ctl, i, ABI_EVENT_GID_CHANGE);
	if (what & NETPORT_WENT_DOWN)
		session_port_event(ctl, i, ABI_EVENT_PORT_ERR);
	/* Verbs have no event for another MTU; an adapter's port restarts and is active again
	 * (doc/decisions/0030-events-of-ports.md). */
	if ((what & NETPORT_WENT_UP) || ((what & NETPORT_MTU_CHANGED) && ctl->port[i].up))
		session_port_event(ctl, i, ABI_EVENT_PORT_ACTIVE);
}

void ctl_tell_owner(struct ctl *ctl, uint32_t i, unsigned news)
{
	const struct netport *p = &ctl->port[i];
	struct ctl_netdev now = {.nvlans = p->nvlans};

	if (!news || !ctl->netdev_changed)
		return;
	memcpy(now.mac, p->mac, 6);
	for (uint32_t k = 0; k < p->nvlans; k++)
		now.vlan[k] = p->vlan[k].ifindex;
	ctl->netdev_changed(ctl->netdev_arg, i, news, &now);
}

/* @return CTL_NETDEV_* of NETPORT_*. */
static unsigned netdev_news(unsigned what)
{
	unsigned news = 0;

	if (what & NETPORT_MAC_CHANGED)
		news |= CTL_NETDEV_MAC;
	if (what & NETPORT_REPLACED)
		news |= CTL_NETDEV_REPLACED;
	if (what & NETPORT_GONE)
		news |= CTL_NETDEV_GONE;
	if (what & NETPORT_VLANS)
		news |= CTL_NETDEV_VLANS;
	return news;
}

/* News come once: what could not be read then is read again in a moment. */
static void look_again(struct ctl *ctl, uint32_t i)
{
	if (ctl->port[i].stale && !ctl->look_again_ms)
		ctl->look_again_ms = loop_now_ms() + ctl->look_again_wait;
}

static unsigned take_use(struct ctl *ctl, uint32_t i)
{
	return netport_set_down(&ctl->port[i], ctl->disabled[i] || ctl->closed[i]);
}

/* A port is down without its device, whatever its netdev says.  @return NETPORT_WENT_* or 0. */
static unsigned take_device(struct ctl *ctl, uint32_t i)
{
	const struct ctl_devices *d = ctl->devices;

	ctl->closed[i] = d && !d->open(d->arg, i);
	return take_use(ctl, i);
}

/* @p what happened to the netdev, and then its device was looked at. */
static unsigned with_device(struct ctl *ctl, uint32_t i, unsigned what)
{
	const unsigned went = NETPORT_WENT_UP | NETPORT_WENT_DOWN;
	unsigned device = take_device(ctl, i);

	/* Up and down again is nothing. */
	return device && (what & went) ? what & ~went : what | device;
}

static void refresh_port(struct ctl *ctl, uint32_t i)
{
	const struct gid_table *old;
	unsigned what = netport_refresh(&ctl->port[i], &ctl->rtnl, &old);

	look_again(ctl, i);
	if (!what)
		return;
	ctl_tell_owner(ctl, i, netdev_news(what));
	what = with_device(ctl, i, what);
	if (old) {
		announce_changes(ctl->announce_fd, &ctl->port[i].gids, old);
		worker_grace(ctl->dp);
		free((void *)old);
	}
	dests_touch_port(ctl, i);
	groups_join_again(ctl, i);
	tell_sessions(ctl, i, what);
}

void ctl_set_port_down(struct ctl *ctl, uint32_t i, bool down)
{
	ctl->disabled[i] = down;
	port_set_down(ctl->dp, i, down);
	tell_sessions(ctl, i, take_use(ctl, i));
}

static void neighbour_changed(void *arg, uint32_t ifindex, const uint8_t gid[16])
{
	dests_touch_neigh(arg, ifindex, gid);
}

static void news_ready(struct watch *w)
{
	struct ctl *ctl = container_of(w, struct ctl, news);
	unsigned what = rtnl_take_news(&ctl->rtnl, neighbour_changed, ctl);

	if (what & (RTNL_NEWS_ROUTES | RTNL_NEWS_LOST))
		dests_touch_all(ctl);
	if (!(what & (RTNL_NEWS_LINKS | RTNL_NEWS_LOST)))
		return;
	for (uint32_t i = 0; i < ctl->nports; i++)
		refresh_port(ctl, i);
}

/* @return milliseconds until ports are read again, -1: none is to be. */
static int refresh_stale(struct ctl *ctl, uint64_t now)
{
	if (!ctl->look_again_ms)
		return -1;
	if (now < ctl->look_again_ms)
		return (int)(ctl->look_again_ms - now);
	ctl->look_again_ms = 0;
	ctl->look_again_wait = RTE_MIN(2 * ctl->look_again_wait, LOOK_AGAIN_MAX_MS);
	for (uint32_t i = 0; i < ctl->nports; i++)
		if (ctl->port[i].stale)
			refresh_port(ctl, i);
	if (ctl->look_again_ms)
		return (int)ctl->look_again_wait;
	ctl->look_again_wait = LOOK_AGAIN_MS;
	return -1;
}

/* --- set-up ----------------------------------------------------------------------------- */

/* Each session, channel and pending ring is a descriptor; ask for as many as we may have. */
static void raise_descriptor_limit(struct ctl *ctl)
{
	struct rlimit rl;

	ctl->fd_max = INT_MAX;
	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	if (rl.rlim_cur != rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	if (rl.rlim_cur < INT_MAX) /* the lowest that is free is taken: those below are in use */
		ctl->fd_max = (int)(rl.rlim_cur - rl.rlim_cur / DESCRIPTOR_RESERVE);
}

static int open_ports(struct ctl *ctl, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	struct port_table *table = ctl->dp->ports;
	int err = rtnl_open(&ctl->rtnl);

	if (err)
		return refuse(why, err, "rocid cannot talk to the kernel's rtnetlink: %s",
			strerror(-err));
	neigh_queue_init(&ctl->neighs, &ctl->rtnl);
	dests_init(&ctl->dests);
	groups_init(&ctl->groups);
	if (!cfg->nports || cfg->nports > PORT_MAX)
		return refuse(
			why, -EINVAL, "rocid serves 1 to %u ports, not %u", PORT_MAX, cfg->nports);
	for (uint32_t i = 0; i < cfg->nports; i++) {
		ctl->nports = i + 1;
		err = netport_init(&ctl->port[i], i, &cfg->port[i], cfg->rocev1, &ctl->rtnl,
			&table->port[i], why);
		if (err)
			return err;
		look_again(ctl, i);
		if (ctl->port[i].nvlans)
			ctl_tell_owner(ctl, i, CTL_NETDEV_VLANS);
	}
	table->count = cfg->nports;
	return 0;
}

/* The first QPs of a destination that were not answered: their neighbour may have moved. */
static void late_ready(struct watch *w)
{
	struct ctl *ctl = container_of(w, struct ctl, late);
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

static int watch_late(struct ctl *ctl)
{
	ctl->late.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctl->late.fd < 0)
		return -errno;
	ctl->notifier.late_fd = ctl->late.fd;
	return loop_watch(&ctl->loop, &ctl->late);
}

/* What the SIGBUS handler has found goes through the event loop. */
static int watch_faults(struct ctl *ctl)
{
	ctl->faults.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctl->faults.fd < 0)
		return -errno;
	sigbus_notify(ctl->faults.fd);
	return loop_watch(&ctl->loop, &ctl->faults);
}

static int watch_huge(struct ctl *ctl)
{
	ctl->populated.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctl->populated.fd < 0)
		return -errno;
	ctl->huge = huge_create(ctl->populated.fd);
	return ctl->huge ? loop_watch(&ctl->loop, &ctl->populated) : -ENOMEM;
}

static int open_loop(struct ctl *ctl, char why[ABI_SENTENCE_MAX])
{
	loop_open(&ctl->loop);
	ctl->stopper.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ctl->loop.epoll < 0 || ctl->stopper.fd < 0 || loop_watch(&ctl->loop, &ctl->stopper) ||
		watch_faults(ctl) || watch_huge(ctl) || watch_late(ctl))
		return refuse(why, -errno, "rocid cannot make its event loop: %s", strerror(errno));
	return 0;
}

static void stopper_ready(struct watch *w)
{
	container_of(w, struct ctl, stopper)->stopping = true;
}

static void init(struct ctl *ctl, const struct ctl_config *cfg)
{
	ctl->dp = cfg->dp;
	ctl->window = cfg->window;
	ctl->plain_label = cfg->plain_label;
	ctl->application_faults = cfg->application_faults;
	ctl->application_macs = cfg->application_macs;
	quota_init(&ctl->quota, &cfg->limits);
	ctl->since_ms = loop_now_ms();
	ctl->look_again_wait = LOOK_AGAIN_MS;
	migrate_init(&ctl->migration, cfg->migrate, cfg->shake_ms, (uint64_t)getpid());
	ctl->netdev_changed = cfg->netdev_changed;
	ctl->netdev_arg = cfg->netdev_arg;
	ctl->devices = cfg->devices;
	ctl->loop.epoll = -1;
	ctl->reserve_fd = -1;
	ctl->announce_fd = announce_open();
	ctl->listener.fd = -1;
	ctl->news.fd = -1;
	ctl->stopper = (struct watch){.fd = -1, .ready = stopper_ready};
	ctl->faults = (struct watch){.fd = -1, .ready = session_faults_ready};
	ctl->populated = (struct watch){.fd = -1, .ready = mrs_populated};
	ctl->late = (struct watch){.fd = -1, .ready = late_ready};
	ctl->passed_fd = -1;
	list_init(&ctl->captures);
	list_init(&ctl->traces);
	list_init(&ctl->endings);
	list_init(&ctl->turns);
	list_init(&ctl->jobs);
	list_init(&ctl->held);
	handles_init(&ctl->pds, PD_MAX);
	handles_init(&ctl->xrcds, XRCD_MAX);
	handles_init(&ctl->ahs, AH_MAX);
	notifier_init(&ctl->notifier, ctl->dp, session_event_source, ctl);
}

static int open_numbers(struct ctl *ctl, char why[ABI_SENTENCE_MAX])
{
	int err = qpn_pool_init(&ctl->qpns);

	if (!err)
		err = srqn_pool_init(&ctl->srqns);
	if (!err)
		err = random_bytes(ctl->keys.part, sizeof(ctl->keys.part));
	if (!err)
		err = random_bytes(&ctl->dests.seed, sizeof(ctl->dests.seed));
	if (!err)
		err = random_bytes(&ctl->dp->mcasts->seed, sizeof(ctl->dp->mcasts->seed));
	do { /* 0 means "shut down" */
		if (!err)
			err = random_bytes(&ctl->epoch, sizeof(ctl->epoch));
	} while (!err && !ctl->epoch);
	if (err)
		return refuse(why, err, "the kernel gives no random numbers: %s", strerror(-err));
	return 0;
}

int ctl_start(struct ctl **out, const struct ctl_config *cfg, char why[ABI_SENTENCE_MAX])
{
	const struct disposer_config closers = {.threads = CLOSER_THREADS,
		.owner_threads = CLOSER_USER_THREADS,
		.interrupts = true};
	const struct disposer_config unmappers = {.threads = 1, .owner_threads = 1};
	struct ctl *ctl = object_alloc(sizeof(*ctl));
	int err;

	*out = NULL;
	if (!ctl)
		return refuse(why, -ENOMEM, "rocid is out of memory");
	raise_descriptor_limit(ctl); /* quota_init() counts what there is */
	init(ctl, cfg);
	ctl->closer = disposer_create(&closers);
	ctl->unmapper = disposer_create(&unmappers);
	ctl->why = why_create();
	if (!ctl->closer || !ctl->unmapper || !ctl->why)
		err = refuse(why, -ENOMEM, "rocid is out of memory");
	else
		err = open_loop(ctl, why);
	if (!err)
		err = open_numbers(ctl, why);
	if (!err)
		err = open_ports(ctl, cfg, why);
	if (!err)
		err = server_open(ctl, cfg, why);
	if (!err)
		err = admin_open(ctl, cfg, why);
	if (!err)
		err = telemetry_open(ctl, why);
	if (!err) {
		ctl->news = (struct watch){.fd = rtnl_fd(&ctl->rtnl), .ready = news_ready};
		err = loop_watch(&ctl->loop, &ctl->news);
		if (!err)
			err = notifier_start(&ctl->notifier);
		if (err)
			refuse(why, err, "rocid cannot start its control thread: %s",
				strerror(-err));
	}
	if (err) {
		ctl_destroy(ctl);
		return err;
	}
	*out = ctl;
	return 0;
}

/* --- running ---------------------------------------------------------------------------- */

/* @return the sooner of two waits in milliseconds, -1: for ever. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* @return milliseconds until it must be called again, -1: never. */
static int look_after_devices(struct ctl *ctl, uint64_t now)
{
	const struct ctl_devices *d = ctl->devices;
	int wait = d->look(d->arg, now);

	for (uint32_t i = 0; i < ctl->nports; i++) {
		if (d->open(d->arg, i) != ctl->closed[i])
			continue;
		tell_sessions(ctl, i, take_device(ctl, i));
		groups_join_again(ctl, i);
	}
	return wait;
}

/* What is due now.  Returns milliseconds until something is due again, -1 for never. */
static int run_timers(struct ctl *ctl)
{
	uint64_t now = loop_now_ms();
	int wait = migrate_poll(ctl, now);

	if (endings_poll(ctl))
		wait = 0;
	if (jobs_poll(ctl))
		wait = 0;
	wait = sooner(wait, admin_traces_poll(ctl));
	wait = sooner(wait, server_poll(ctl, now));
	wait = sooner(wait, sessions_poll(ctl, now));
	wait = sooner(wait, refresh_stale(ctl, now));
	wait = sooner(wait, dests_poll(ctl, now));
	if (ctl->devices)
		wait = sooner(wait, look_after_devices(ctl, now));
	return sooner(wait, neigh_poll(&ctl->neighs, now)); /* those of dests too */
}

/* Sessions that end at the same time from which on none may come faster than they end. */
#define ENDINGS_MANY (SESSION_MAX / 8)

/* What is due in the background has its turn when nobody asks for anything, and else half of the
 * time: a command that waits behind others waits for a step of it once, not once for each. */
int ctl_run(struct ctl *ctl)
{
	uint64_t due = 0; /* its next turn, in ns, however much is asked */
	bool idle = true;
	int wait = -1;

	while (!ctl->stopping) {
		uint64_t begin = loop_now_ns();
		int n;

		if (idle || begin >= due || ctl->nending > ENDINGS_MANY) {
			wait = run_timers(ctl);
			due = loop_now_ns();
			due += due - begin;
		}
		n = loop_wait(&ctl->loop, idle ? wait : 0);
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
	ssize_t n = write(ctl->stopper.fd, &one, sizeof(one));

	(void)n; /* a full counter has been set already */
	errno = saved;
}

static void close_ports(struct ctl *ctl)
{
	const struct gid_table *old[PORT_MAX];

	for (uint32_t i = 0; i < ctl->nports; i++)
		old[i] = netport_withdraw(&ctl->port[i]);
	worker_grace(ctl->dp);
	for (uint32_t i = 0; i < ctl->nports; i++) {
		free((void *)old[i]);
		netport_destroy(&ctl->port[i]);
	}
}

void ctl_destroy(struct ctl *ctl)
{
	if (!ctl)
		return;
	server_close(ctl);
	admin_close(ctl);
	telemetry_close(ctl);
	admin_captures_close(ctl);
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->session[i])
			session_close(ctl->session[i]);
	while (endings_poll(ctl))
		;
	admin_traces_close(ctl);
	disposer_destroy(ctl->closer);
	disposer_destroy(ctl->unmapper);
	quota_destroy(&ctl->quota);
	notifier_stop(&ctl->notifier);
	close_ports(ctl);
	rtnl_close(&ctl->rtnl);
	loop_unwatch(&ctl->loop, &ctl->stopper);
	sigbus_notify(-1);
	loop_unwatch(&ctl->loop, &ctl->faults);
	huge_destroy(ctl->huge);
	loop_unwatch(&ctl->loop, &ctl->populated);
	loop_unwatch(&ctl->loop, &ctl->late);
	loop_close(&ctl->loop);
	if (ctl->announce_fd >= 0)
		close(ctl->announce_fd);
	handles_free(&ctl->pds);
	handles_free(&ctl->xrcds);
	handles_free(&ctl->ahs);
	pthread_mutex_destroy(&ctl->notifier.lock);
	why_destroy(ctl->why);
	free(ctl);
}
