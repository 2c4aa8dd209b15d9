/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a netdev, and of its packet thread: sessions with rocid, one after another. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include "rib_impl.h"
#include "roci_private.h"

#define STEADY_NS 5000000000ull /* a session that lasted so long was of use */

/* The reader of stderr may be slow, so the packet thread prints only while it has no packets to
 * move: before a session and after it. */
void rib_say(struct rib *r, const char *text, ...)
{
	char said[sizeof(r->said)];
	va_list ap;
	bool again;

	va_start(ap, text);
	vsnprintf(said, sizeof(said), text, ap);
	va_end(ap);
	pthread_mutex_lock(&r->lock);
	again = !strcmp(said, r->said);
	memcpy(r->said, said, sizeof(said));
	pthread_mutex_unlock(&r->lock);
	if (!again) /* without the lock, which is the packet thread's, too */
		fprintf(stderr, "rocid: %s: %s\n", r->cfg.name, said);
}

uint64_t rib_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void begin(struct rib *r)
{
	struct ipoib_config cfg = {.own = r->q.own,
		.pkey = r->cfg.pkey,
		.scope = IPOIB_SCOPE,
		.mtu = r->q.capacity,
		.vid = r->q.vid};

	memcpy(cfg.mac, r->q.mac, 6);
	(void)!getrandom(&cfg.seed, sizeof(cfg.seed), 0);
	ipoib_init(r->ipoib, &cfg);
	r->open_peers = r->open_groups = 0;
	rib_frames_begin(r->frames);
	r->published = 0;
	r->failed = r->gone = false;
	r->hosts.others = r->hosts.n = 0;
	atomic_store(&r->ngroups, 0);
	atomic_store(&r->missing, 0);
	atomic_store(&r->asked_port, true); /* what has changed meanwhile came without an event */
	atomic_store(&r->outdated, false);
}

static void forget(struct rib_jobs *in)
{
	struct rib_job job;

	while (rib_jobs_take(in, &job))
		if (job.ah)
			roci_destroy_ah(job.ah);
}

static void run_once(struct rib *r)
{
	begin(r);
	if (rib_tap_open(r))
		return;
	pthread_mutex_lock(&r->lock);
	r->said[0] = '\0';
	pthread_mutex_unlock(&r->lock);
	r->sessions++;
	rib_publish(r, true);
	fcntl(r->q.ctx->async_fd, F_SETFL, O_NONBLOCK);
	atomic_store(&r->helping, true);
	if (pthread_create(&r->helper, NULL, rib_help, r)) {
		rib_say(r, "cannot start a thread: raise the limit of threads");
		return;
	}
	rib_serve(r);
	atomic_store(&r->helping, false);
	roci_abandon(r->q.ctx); /* or the helper might wait until rocid has found a peer */
	rib_wake(r->wake_helper);
	pthread_join(r->helper, NULL);
	for (unsigned i = 0; i < RIB_RINGS; i++)
		forget(&r->ring[i]);
	if (!atomic_load(&r->stop))
		rib_say(r, "a new session begins: %s", r->why);
}

/* While there is no session the netdev has no carrier; it keeps its addresses.
 * @return whether a session allocated memory and served only briefly */
static bool attempt(struct rib *r)
{
	uint64_t began = rib_now_ns();
	bool near = rib_tap_is_near(r);

	r->costly = false;
	if (r->gone)
		rib_tap_close(r);
	if (!near || rib_open(r))
		return r->costly;
	run_once(r);
	rib_publish(r, false);
	memcpy(r->before, r->counts, sizeof(r->before));
	rib_close(r);
	rib_tap_carrier(r, false);
	return r->costly && rib_now_ns() - began < STEADY_NS;
}

static void *run(void *arg)
{
	struct rib *r = arg;
	int pause = RIB_PAUSE_MIN_MS;

	prctl(PR_SET_TIMERSLACK, 1000); /* ns: a sleep ends when it should */
	while (!atomic_load(&r->stop)) {
		struct pollfd p = {.fd = r->wake, .events = POLLIN};

		pause = rib_next_pause(pause, attempt(r));
		/* Drains wake-ups left by the ended session, or every poll would return at once. */
		if (!atomic_load(&r->stop) && poll(&p, 1, pause) > 0)
			rib_unwake(r->wake);
	}
	rib_tap_close(r);
	return NULL;
}

int rib_start(struct rib **out, const struct rib_config *cfg, char *why, unsigned why_size)
{
	struct rib *r = calloc(1, sizeof(*r));
	int err;

	*out = r;
	if (!r) {
		snprintf(why, why_size, "no memory for %s: free some", cfg->name);
		return -ENOMEM;
	}
	r->cfg = *cfg;
	memcpy(r->view.name, cfg->name, sizeof(cfg->name));
	memcpy(r->name, cfg->name, sizeof(cfg->name));
	r->tap = -1;
	r->home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	pthread_mutex_init(&r->lock, NULL);
	for (unsigned i = 0; i < RIB_RINGS; i++)
		rib_jobs_init(&r->ring[i]);
	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->wake_helper = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->ipoib = malloc(ipoib_size());
	r->frames = rib_frames_create();
	err = r->home < 0 || r->wake < 0 || r->wake_helper < 0 || !r->ipoib || !r->frames
		      ? ENOMEM
		      : pthread_create(&r->packets, NULL, run, r);
	if (!err) {
		pthread_setname_np(r->packets, cfg->name);
		return 0;
	}
	snprintf(why, why_size, "cannot start %s (%s): raise the limits of threads and open files",
		cfg->name, strerror(err));
	r->packets = 0;
	return -err;
}

void rib_ask_to_stop(struct rib *r)
{
	if (!r)
		return;
	atomic_store_explicit(&r->stop, true, memory_order_release);
	rib_wake(r->wake);
}

void rib_destroy(struct rib *r)
{
	if (!r)
		return;
	rib_ask_to_stop(r);
	if (r->packets)
		pthread_join(r->packets, NULL);
	close(r->home);
	close(r->wake);
	close(r->wake_helper);
	pthread_mutex_destroy(&r->lock);
	for (unsigned i = 0; i < RIB_RINGS; i++)
		rib_jobs_destroy(&r->ring[i]);
	free(r->ipoib);
	free(r->frames);
	free(r);
}

const struct rib_config *rib_config_of(const struct rib *r)
{
	return &r->cfg;
}

void rib_look(struct rib *r, struct rib_view *view, uint64_t *counts)
{
	pthread_mutex_lock(&r->lock);
	*view = r->view;
	memcpy(view->said, r->said, sizeof(view->said));
	memcpy(counts, r->counts, sizeof(r->counts));
	pthread_mutex_unlock(&r->lock);
	view->groups = view->up ? atomic_load(&r->ngroups) : 0;
	view->missing = view->up ? atomic_load(&r->missing) : 0;
}
