/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that moves packets between the netdev and the queue pair. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/virtio_net.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>
#include "bits.h"
#include "pace.h"
#include "rib_impl.h"
#include "roci_private.h"

#define STEADY_NS 5000000000ull /* a session that lasted so long was of use */
#define PUBLISH_NS \
	50000000ull /* between two copies of the counters, and looks for events and the MAC */
#define REST_NS 100000000u

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
	if (!again) /* whoever reads stderr may be slow: without the lock */
		fprintf(stderr, "rocid: %s: %s\n", r->cfg.name, said);
}

uint64_t rib_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* --- packets ---------------------------------------------------------------------------------- */

static void netdev_gone(struct rib *r)
{
	r->gone = true;
	rib_fail(r, "the netdev was deleted");
}

/* A netdev that is down, or has no room, loses the frame. */
static void put_frame(
	struct rib *r, struct virtio_net_hdr *h, const struct merge_piece *p, uint32_t n)
{
	struct iovec iov[1 + MERGE_MAX] = {{h, sizeof(*h)}};

	for (uint32_t i = 0; i < n; i++)
		iov[1 + i] = (struct iovec){p[i].at, p[i].len};
	if (writev(r->tap, iov, (int)(1 + n)) >= 0)
		return;
	if (errno == EBADFD)
		netdev_gone(r);
	r->tap_full++;
}

/* Its receive is posted again, with those of other packets of the burst. */
static void spend(struct rib *r, uint32_t slot)
{
	r->spent[r->nspent++] = slot;
}

static void flush(struct rib *r)
{
	uint32_t n = r->merge.n;
	struct virtio_net_hdr h;

	if (!n)
		return;
	if (n > 1)
		ipoib_count(r->ipoib, IPOIB_MERGED);
	merge_finish(&r->merge, &h);
	put_frame(r, &h, r->merge.piece, n);
	r->merge.n = 0;
	for (uint32_t i = 0; i < n; i++)
		spend(r, r->held[i]);
}

/* @return whether the frame waits in its slot for those that follow. */
static bool hold(struct rib *r, const struct ipoib_frame *f, uint32_t slot)
{
	if (!merge_take(&r->merge, f->at, f->len))
		return false;
	r->held[r->merge.n - 1] = slot;
	return true;
}

static void received(
	struct rib *r, const struct roci_wc *wc, const struct roci_wc_net *net, uint64_t now)
{
	struct virtio_net_hdr plain = {0};
	uint32_t slot = (uint32_t)wc->wr_id;
	struct ipoib_rx rx = {.area = rib_recv_slot(r, slot),
		.len = wc->byte_len,
		.src_qp = wc->src_qp,
		.vid = net->vlan_id,
		.ip4 = net->is_ipv4};
	struct ipoib_frame f;

	if (ipoib_from_wire(r->ipoib, &rx, now, &f)) {
		if (hold(r, &f, slot))
			return;
		flush(r);
		if (hold(r, &f, slot))
			return;
		put_frame(r, &plain, &(struct merge_piece){f.at, f.len}, 1);
	}
	spend(r, slot);
}

/* UD-05: a datagram that is longer than its receive harms nothing else. A host with the MTU for it
 * can send one, to everybody. */
static void too_long(struct rib *r, const struct roci_wc *wc)
{
	ipoib_count(r->ipoib, IPOIB_LONG);
	spend(r, (uint32_t)wc->wr_id);
}

static void completed(
	struct rib *r, const struct roci_wc *wc, const struct roci_wc_net *net, uint64_t now)
{
	bool recv = wc->wr_id & RIB_RECV;

	if (recv && wc->status == ROCI_WC_LOC_LEN_ERR)
		too_long(r, wc);
	else if (wc->status != ROCI_WC_SUCCESS)
		rib_fail(r, roci_wc_status_str(wc->status));
	else if (recv)
		received(r, wc, net, now);
	else
		r->q.done = (uint32_t)wc->wr_id + 1;
}

/* For a host on a bridge that packets come for, and that has not been heard. */
static void search(struct rib *r, uint64_t now)
{
	struct virtio_net_hdr plain = {0};
	uint8_t room[IPOIB_SEARCH_MAX];
	struct ipoib_frame f;

	if (ipoib_search(r->ipoib, room, now, &f))
		put_frame(r, &plain, &(struct merge_piece){f.at, f.len}, 1);
}

/* @return how many completions there were. */
static int from_wire(struct rib *r, uint64_t now)
{
	struct roci_wc wc[RIB_BURST];
	struct roci_wc_net net[RIB_BURST];
	int n = roci_poll_cq_net(r->q.cq, RIB_BURST, wc, net);

	if (n < 0)
		rib_fail(r, "its completion queue failed");
	for (int i = 0; i < n; i++)
		completed(r, &wc[i], &net[i], now);
	flush(r);
	search(r, now);
	rib_post_recvs(r, r->spent, r->nspent);
	r->nspent = 0;
	return n > 0 ? n : 0;
}

/* @return whether there is another frame of the kernel. */
static bool read_frame(struct rib *r)
{
	struct virtio_net_hdr h;
	struct iovec iov[] = {{&h, sizeof(h)}, {r->frame, sizeof(r->frame)}};
	ssize_t len = readv(r->tap, iov, ARRAY_SIZE(iov));

	if (len < 0 && errno == EBADFD)
		netdev_gone(r);
	if (len < (ssize_t)sizeof(h))
		return false;
	if (!cut_begin(&r->cut, &h, r->frame, (uint32_t)len - (uint32_t)sizeof(h), r->q.capacity)) {
		ipoib_count(r->ipoib, IPOIB_BAD_OFFLOAD);
		r->cut.done = true;
	} else if (h.gso_type) {
		ipoib_count(r->ipoib, IPOIB_CUT);
	}
	return true;
}

static uint32_t next_frame(struct rib *r, uint8_t *slot)
{
	uint32_t len = cut_next(&r->cut, slot, RIB_SLOT - IPOIB_TAIL);

	if (!len && !r->cut.done) {
		ipoib_count(r->ipoib, IPOIB_LONG);
		r->cut.done = true;
	}
	return len;
}

/* Requests wait in the netdev's queue while the send queue is full. */
static int from_kernel(struct rib *r, uint64_t now)
{
	struct ipoib_tx tx;
	uint8_t *slot;
	int n;

	for (n = 0; n < (int)RIB_BURST && (slot = rib_send_slot(r)); n++) {
		uint32_t len;

		if (r->cut.done && !read_frame(r))
			break;
		len = next_frame(r, slot);
		if (len && ipoib_from_kernel(r->ipoib, slot, len, now, &tx))
			rib_post_send(r, &tx);
	}
	rib_flush_sends(r);
	return n;
}

static void waiting(struct rib *r, uint64_t now)
{
	struct ipoib_tx tx;
	uint8_t *slot;

	while ((slot = rib_send_slot(r)) && ipoib_next(r->ipoib, slot, now, &tx))
		rib_post_send(r, &tx);
	rib_flush_sends(r);
}

/* --- address handles ----------------------------------------------------------------------------
 */

/* Of too many questions the oldest is given up, or this one, should all the others be answered. */
static void put_question(struct rib *r, const struct rib_job *job, uint64_t now)
{
	struct rib_job old = *job;
	bool full = r->questions == RIB_JOBS;

	if (!full || rib_jobs_take(r, &r->asked, &old))
		rib_jobs_put(r, job->ask.group ? &r->asked_groups : &r->asked, job);
	if (full)
		ipoib_resolved(r->ipoib, old.ask.dest, old.ask.serial, false, now);
	else
		r->questions++;
}

static void ask(struct rib *r, uint64_t now)
{
	struct rib_job job = {.ah = NULL};
	bool any = false;

	while (ipoib_ask(r->ipoib, &job.ask)) {
		put_question(r, &job, now);
		any = true;
	}
	if (any)
		rib_wake(r->wake_helper);
}

/* The helper has rocid destroy it: rocid may be busy with a question for seconds. There is room,
 * because the helper destroys all before it asks again. */
static void give_up(struct rib *r, struct roci_ah *ah)
{
	rib_jobs_put(r, &r->unused, &(struct rib_job){.ah = ah});
	rib_wake(r->wake_helper);
}

/* The handle that the place had before is of an entry that is gone. */
static void take_answers(struct rib *r, uint64_t now)
{
	struct rib_job job;

	while (rib_jobs_take(r, &r->answered, &job)) {
		struct roci_ah **at = &r->q.ah[job.ask.dest];
		struct roci_ah *unused = job.ah;

		r->questions--;
		if (ipoib_resolved(r->ipoib, job.ask.dest, job.ask.serial, job.ah, now) && job.ah) {
			unused = *at;
			*at = job.ah;
		}
		if (unused)
			give_up(r, unused);
	}
}

/* --- the loop -----------------------------------------------------------------------------------
 */

/* The netdev's counters outlast its sessions. */
static void publish(struct rib *r, bool up)
{
	const uint64_t *session = ipoib_counts(r->ipoib);

	pthread_mutex_lock(&r->lock);
	ipoib_set_mac(r->ipoib, r->mac);
	for (unsigned i = 0; i < IPOIB_COUNTS; i++)
		r->counts[i] = r->before[i] + session[i];
	r->view = (struct rib_view){.up = up,
		.mtu = (uint32_t)r->mtu,
		.sessions = r->sessions,
		.tap_full = r->tap_full};
	if (up) {
		r->view.qpn = r->q.own.qpn;
		r->view.neighs = ipoib_neighs(r->ipoib);
		r->view.bridged = ipoib_bridged(r->ipoib);
		memcpy(r->view.gid, r->q.own.gid, 16);
	}
	memcpy(r->view.name, r->name, sizeof(r->name));
	rib_hosts_publish(r);
	pthread_mutex_unlock(&r->lock);
}

/* The helper asks rocid for the changes, which may be busy with a question for some seconds. */
static void take_events(struct rib *r)
{
	struct roci_async_event e = {.size = sizeof(e)};
	bool any = false;

	while (!roci_get_async_event(r->q.ctx, &e)) {
		enum roci_event_type type = e.event_type;

		any = true;
		roci_ack_async_event(&e);
		if (type == ROCI_EVENT_DEVICE_FATAL || type == ROCI_EVENT_QP_FATAL)
			rib_fail(r, type == ROCI_EVENT_QP_FATAL ? "its queue pair failed"
								: "rocid ended its session");
	}
	if (!any)
		return;
	atomic_store(&r->asked_port, true);
	rib_wake(r->wake_helper);
}

/* Traffic without a pause keeps the thread from rest(). */
static void now_and_then(struct rib *r, uint64_t now)
{
	if (now - r->published < PUBLISH_NS)
		return;
	r->published = now;
	publish(r, true);
	take_events(r);
	if (atomic_load(&r->outdated))
		rib_fail(r, "the port, or the netdev's place, has changed");
}

static void drain_wakes(struct rib *r)
{
	uint64_t n;

	(void)!read(r->wake, &n, sizeof(n));
}

static void drain(struct rib *r, const struct pollfd *p)
{
	struct roci_cq *cq;

	if (p[0].revents)
		drain_wakes(r);
	if (p[1].revents && !roci_get_cq_event(r->q.channel, &cq, NULL)) /* armed once */
		roci_ack_cq_events(cq, 1);
}

/* For at most @p ns. */
static void rest(struct rib *r, uint64_t now, uint64_t ns)
{
	uint64_t until = ipoib_deadline(r->ipoib);
	bool room = rib_send_slot(r);
	struct pollfd p[] = {{.fd = r->wake, .events = POLLIN},
		{.fd = r->q.channel->fd, .events = POLLIN},
		{.fd = r->q.ctx->async_fd, .events = POLLIN},
		{.fd = room ? r->tap : -1, .events = POLLIN}};
	struct timespec ts = {0};

	if (until < now + ns)
		ns = until > now ? until - now : 0;
	ts.tv_nsec = (long)ns;
	if (ppoll(p, ARRAY_SIZE(p), &ts, NULL) <= 0)
		return;
	drain(r, p);
	if (p[2].revents)
		take_events(r);
	if (p[3].revents & POLLERR)
		netdev_gone(r);
}

/* @return packets that were moved. */
static uint32_t look(struct rib *r, uint64_t now)
{
	int n = from_wire(r, now);

	take_answers(r, now);
	waiting(r, now);
	n += from_kernel(r, now);
	ask(r, now);
	now_and_then(r, now);
	return (uint32_t)n;
}

static void wait_for_events(struct rib *r, uint64_t now)
{
	roci_req_notify_cq(r->q.cq, 0);
	if (!from_wire(r, now) && !r->failed)
		rest(r, now, REST_NS);
}

static void serve(struct rib *r)
{
	struct pace pace;

	pace_begin(&pace, rib_now_ns());
	while (!r->failed && !atomic_load_explicit(&r->stop, memory_order_acquire)) {
		struct pace_round round = {.now = rib_now_ns()};

		round.packets = look(r, round.now);
		round.full = !rib_send_slot(r);
		switch (pace_next(&pace, &round)) {
		case PACE_LOOK:
			break;
		case PACE_YIELD:
			sched_yield();
			break;
		case PACE_NAP: /* a clock is cheaper than an event for each look */
			rest(r, round.now, PACE_NAP_NS);
			break;
		case PACE_REST:
			wait_for_events(r, round.now);
			break;
		}
	}
}

/* --- life ---------------------------------------------------------------------------------------
 */

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
	r->asked.n = r->asked_groups.n = r->answered.n = r->unused.n = r->questions = 0;
	r->cut.done = true;
	r->merge.n = r->nspent = 0;
	r->published = 0;
	r->failed = r->gone = false;
	r->hosts.others = r->hosts.n = 0;
	atomic_store(&r->ngroups, 0);
	atomic_store(&r->missing, 0);
	atomic_store(&r->asked_port, true); /* what has changed meanwhile came without an event */
	atomic_store(&r->outdated, false);
}

static void forget_handles(struct rib *r, struct rib_jobs *in)
{
	struct rib_job job;

	while (rib_jobs_take(r, in, &job))
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
	publish(r, true);
	fcntl(r->q.ctx->async_fd, F_SETFL, O_NONBLOCK);
	atomic_store(&r->helping, true);
	if (pthread_create(&r->helper, NULL, rib_help, r)) {
		rib_say(r, "cannot start a thread: raise the limit of threads");
		return;
	}
	serve(r);
	atomic_store(&r->helping, false);
	roci_abandon(r->q.ctx); /* or the helper might wait until rocid has found a peer */
	rib_wake(r->wake_helper);
	pthread_join(r->helper, NULL);
	forget_handles(r, &r->answered);
	forget_handles(r, &r->unused);
	if (!atomic_load(&r->stop))
		rib_say(r, "a new session begins: %s", r->why);
}

/* While there is no session the netdev has no carrier; it keeps its addresses.
 * @return whether a session cost memory, and did not serve long */
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
	publish(r, false);
	memcpy(r->before, r->counts, sizeof(r->before));
	rib_close(r);
	rib_tap_carrier(r, false);
	return r->costly && rib_now_ns() - began < STEADY_NS;
}

static void *run(void *arg)
{
	struct rib *r = arg;
	int pause = RIB_PAUSE_MIN_MS;

	prctl(PR_SET_TIMERSLACK, 1000); /* ns: a nap ends when it should */
	while (!atomic_load(&r->stop)) {
		struct pollfd p = {.fd = r->wake, .events = POLLIN};

		pause = rib_next_pause(pause, attempt(r));
		/* Wakes of a session that has ended are drained, or each poll returns at once. */
		if (!atomic_load(&r->stop) && poll(&p, 1, pause) > 0)
			drain_wakes(r);
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
	r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->wake_helper = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->ipoib = malloc(ipoib_size());
	err = r->home < 0 || r->wake < 0 || r->wake_helper < 0 || !r->ipoib
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
	free(r->ipoib);
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
