/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_pause.h>
#include "core.h"
#include "port.h"
#include "wheel.h"
#include "worker_impl.h"

/* The idle time before the worker yields its CPU in each round, and before it sleeps: the first
 * covers a request and its answer on a fast link, the second a short pause of a busy program. */
#define SPIN_NS	 50000u
#define YIELD_NS 100000u

/* On a CPU of its own sched_yield() returns sooner (0.5 us; over 3 if another thread runs and
 * yields, too). That thread may be the program whose work is awaited, so this many further rounds
 * without work yield at once; but not beside one that computes (YIELD_LONG_NS), which would take a
 * time slice in each round. */
#define ALONE_NS      1000u
#define SHARED_ROUNDS 64u

/* With a port or an application that cannot wake the worker, it sleeps for an eighth of its idle
 * time, so work that arrives after a pause is delayed by at most that much. */
#define SLICE_MIN_NS 50000u
#define SLICE_SHIFT  3

#define TIMER_SLACK 1000ul /* ns; with the kernel's default a sleep may end 50 us late */
#define FDS	    8

const char *const idle_names[] = {
	[IDLE_POLL] = "poll", [IDLE_YIELD] = "yield", [IDLE_ADAPTIVE] = "adaptive", NULL};

void waker_wake(struct waker *k)
{
	static const uint64_t one = 1;
	ssize_t n;

	atomic_thread_fence(memory_order_seq_cst);
	if (likely(!atomic_load_explicit(&k->asleep, memory_order_relaxed)))
		return;
	n = write(k->fd, &one, sizeof(one));
	(void)n; /* it counts to 2^64 */
}

void worker_wake(struct worker *w)
{
	waker_wake(&w->sleeper.waker);
}

/* --- set-up ----------------------------------------------------------------------------- */

int worker_can_sleep(void)
{
	const struct timespec now = {0};
	struct epoll_event ev;
	int fd = epoll_create1(EPOLL_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = epoll_pwait2(fd, &ev, 1, &now, NULL) < 0 ? -errno : 0; /* Linux 5.11 */
	close(fd);
	return err;
}

/* Edge-triggered: the worker searches for work anyway, so it need not read the descriptors, and one
 * that stays readable (an application's, that of a netdev that is down) does not keep it awake. */
static int watch(struct worker *w, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(w->sleeper.epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int sleeper_open(struct worker *w)
{
	struct sleeper *s = &w->sleeper;

	s->epoll = -1;
	s->waker.fd = -1;
	if (w->dp->idle != IDLE_ADAPTIVE)
		return 0;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->waker.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epoll < 0 || s->waker.fd < 0)
		return -errno;
	return watch(w, s->waker.fd);
}

void sleeper_close(struct worker *w)
{
	if (w->sleeper.epoll >= 0)
		close(w->sleeper.epoll);
	if (w->sleeper.waker.fd >= 0)
		close(w->sleeper.waker.fd);
}

void sleeper_enter(struct worker *w)
{
	w->sleeper.busy_at = w->now;
	if (w->dp->idle == IDLE_ADAPTIVE)
		prctl(PR_SET_TIMERSLACK, TIMER_SLACK);
}

int port_wakes(struct dataplane *dp, uint32_t index, uint16_t queue, enum port_wake wake, int fd)
{
	struct worker *w = dp->worker[queue];
	int err = wake >= PORT_WAKE_FD ? watch(w, fd) : 0;

	if (!err)
		w->port[index].wake = (uint8_t)wake;
	return err;
}

int worker_doorbell_eventfd(struct worker *w, struct worker_doorbell *db)
{
	int err;

	if (w->sleeper.epoll < 0)
		return -EOPNOTSUPP;
	if (!atomic_load_explicit(&db->wakes, memory_order_relaxed)) {
		db->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (db->wake < 0)
			return -errno;
		err = watch(w, db->wake);
		if (err) {
			close(db->wake);
			return err;
		}
		atomic_store_explicit(&db->wakes, true, memory_order_release);
	}
	err = fcntl(db->wake, F_DUPFD_CLOEXEC, 0);
	return err < 0 ? -errno : err;
}

void sleeper_forget(struct worker *w, struct worker_doorbell *db)
{
	if (!atomic_load_explicit(&db->wakes, memory_order_relaxed))
		return;
	/* Explicitly: the application has it open too, so close() alone would not remove it. */
	epoll_ctl(w->sleeper.epoll, EPOLL_CTL_DEL, db->wake, NULL);
	close(db->wake);
	atomic_store_explicit(&db->wakes, false, memory_order_relaxed);
}

/* --- falling asleep --------------------------------------------------------------------- */

/* Shows all applications, new ones included, that the worker sleeps. @return true if one of them
 * could not see it before. */
static bool announce_sleep(struct worker *w)
{
	uint32_t n = atomic_load_explicit(&w->doorbells, memory_order_acquire);
	bool news = false;

	for (uint32_t i = 0; i < n; i++) {
		struct doorbell_slot *s = &w->doorbell[i];
		struct worker_doorbell *db = atomic_load_explicit(&s->db, memory_order_acquire);
		uint32_t serial = atomic_load_explicit(&s->serial, memory_order_relaxed);

		if (!db || s->announced == serial)
			continue;
		s->announced = serial;
		atomic_store_explicit(&db->shared->asleep, 1, memory_order_relaxed);
		news = true;
	}
	return news;
}

static void enable_interrupts(struct worker *w)
{
	struct sleeper *s = &w->sleeper;

	for (uint32_t i = 0; i < w->nports; i++) {
		const struct worker_port *p = &w->port[i];

		if (!p->rx || p->wake != PORT_WAKE_INTERRUPT)
			continue;
		rte_eth_dev_rx_intr_enable(p->ethdev, p->queue);
		s->interrupts = true;
	}
}

/* The round that follows looks for what came before this. */
static void sleep_until_woken(struct worker *w)
{
	atomic_store_explicit(&w->sleeper.waker.asleep, true, memory_order_relaxed);
	enable_interrupts(w);
	announce_sleep(w);
	atomic_thread_fence(memory_order_seq_cst);
}

static void get_up(struct worker *w)
{
	struct sleeper *s = &w->sleeper;
	uint32_t n = atomic_load_explicit(&w->doorbells, memory_order_acquire);

	atomic_store_explicit(&s->waker.asleep, false, memory_order_relaxed);
	for (uint32_t i = 0; i < n; i++) {
		struct doorbell_slot *d = &w->doorbell[i];
		struct worker_doorbell *db = atomic_load_explicit(&d->db, memory_order_acquire);

		if (db && d->announced)
			atomic_store_explicit(&db->shared->asleep, 0, memory_order_relaxed);
		d->announced = 0;
	}
	for (uint32_t i = 0; s->interrupts && i < w->nports; i++) {
		const struct worker_port *p = &w->port[i];

		if (p->rx && p->wake == PORT_WAKE_INTERRUPT)
			rte_eth_dev_rx_intr_disable(p->ethdev, p->queue);
	}
	s->interrupts = false;
}

/* --- asleep ----------------------------------------------------------------------------- */

/* There is work left for which no other thread will wake this one. */
static bool work_left(const struct worker *w)
{
	if (w->laid || w->nkept || core_events_wait(&w->core) || core_groups_wait(&w->core) ||
		doorbell_left(w))
		return true;
	for (uint32_t i = 0; i < w->nports; i++)
		if (w->port[i].count)
			return true;
	return false;
}

/* Every source of work wakes this worker. */
static bool all_wake(const struct worker *w)
{
	uint32_t n = atomic_load_explicit(&w->doorbells, memory_order_acquire);

	for (uint32_t i = 0; i < w->nports; i++)
		if (w->port[i].rx && w->port[i].wake == PORT_WAKE_NOT)
			return false;
	for (uint32_t i = 0; i < n; i++) {
		struct worker_doorbell *db =
			atomic_load_explicit(&w->doorbell[i].db, memory_order_acquire);

		if (db && !atomic_load_explicit(&db->wakes, memory_order_acquire))
			return false;
	}
	return true;
}

/* @return how long to sleep, in nanoseconds; UINT64_MAX: until something wakes us. */
static uint64_t sleep_length(const struct worker *w)
{
	uint64_t deadline = core_deadline(&w->core);
	uint64_t slice = (w->now - w->sleeper.busy_at) >> SLICE_SHIFT;
	uint64_t left = UINT64_MAX;

	if (deadline != WHEEL_NEVER)
		left = deadline > w->now ? deadline - w->now : 0;
	if (all_wake(w))
		return left;
	slice = RTE_MIN(RTE_MAX(slice, SLICE_MIN_NS), WORKER_SLICE_MAX_NS);
	return RTE_MIN(left, slice);
}

static void sleep_briefly(struct worker *w)
{
	struct rte_rcu_qsbr *qsbr = w->dp->qsbr;
	struct sleeper *s = &w->sleeper;
	uint64_t ns = sleep_length(w);
	struct timespec ts = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
	struct epoll_event ev[FDS];

	if (!ns || work_left(w))
		return;
	if (announce_sleep(w)) {
		atomic_thread_fence(memory_order_seq_cst);
		return; /* and check whether it rang meanwhile */
	}
	w->stats.sleeps++;
	rte_rcu_qsbr_thread_offline(qsbr, w->index);
	epoll_pwait2(s->epoll, ev, FDS, ns == UINT64_MAX ? NULL : &ts, NULL);
	rte_rcu_qsbr_thread_online(qsbr, w->index);
	w->now = clock_at(&w->clock, rte_rdtsc()); /* or it would look like a pause */
	if (s->interrupts)			   /* they must be enabled before the last check */
		get_up(w);
}

void sleeper_leave(struct worker *w)
{
	if (atomic_load_explicit(&w->sleeper.waker.asleep, memory_order_relaxed))
		get_up(w);
}

static void yield(struct worker *w)
{
	struct sleeper *s = &w->sleeper;
	uint64_t begun = clock_at(&w->clock, rte_rdtsc()), took;

	sched_yield();
	took = clock_at(&w->clock, rte_rdtsc()) - begun;
	if (took > YIELD_LONG_NS)
		s->shared = 0;
	else if (took > ALONE_NS)
		s->shared = SHARED_ROUNDS;
	else if (s->shared)
		s->shared--;
}

void sleeper_rest(struct worker *w, bool busy)
{
	struct sleeper *s = &w->sleeper;
	uint64_t idle = w->now - s->busy_at;
	bool lying = atomic_load_explicit(&s->waker.asleep, memory_order_relaxed);

	if (busy) {
		s->busy_at = w->now;
		if (lying)
			get_up(w);
	} else if (w->dp->idle != IDLE_ADAPTIVE) {
		sched_yield();
	} else if (lying) {
		sleep_briefly(w);
	} else if (idle >= YIELD_NS) {
		sleep_until_woken(w);
	} else if (idle >= SPIN_NS || s->shared) {
		yield(w);
	} else {
		rte_pause();
	}
}
