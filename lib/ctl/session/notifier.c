/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <rte_ring_elem.h>
#include "abi_ctl.h"
#include "core.h"
#include "limits.h"
#include "session/notifier.h"
#include "worker.h"

/* The thread polls while events arrive. If workers sleep or yield, it then sleeps, and the next
 * event wakes it at once, which costs its worker a system call per WARM_ROUNDS at most: polling
 * would cost the CPU that they share far more, up to a sixth of it with one event per 20 ms. If
 * workers poll, it polls seldom: the first event after a pause is late by at most SLEEP_MAX. */
#define SLEEP_MIN_NS 50000L
#define SLEEP_MAX_NS 1000000L
#define WARM_ROUNDS  8	 /* of SLEEP_MIN before it sleeps: 0.4 ms */
#define HOT_ROUNDS   400 /* likewise before it polls more seldom: 20 ms */
#define BLOCKED_MS   2	 /* between attempts at full sockets, with nothing else to do */
#define TAKEN	     64	 /* events taken off the ring at once */
#define TAKES	     64	 /* times TAKEN per round: slow sockets must not fill the ring */
#define ROUND	     32	 /* objects whose events are sent with the lock held: half a millisecond */
#define FULL_TRIES   32	 /* full channels tried again at once, one per session */

_Static_assert(SESSION_MAX / FULL_TRIES * BLOCKED_MS * 1000000ull <= BOUND_EVENT_NS,
	"a channel whose program reads again gets its turn within the bound");
_Static_assert(EVENT_TYPES > ABI_EVENT_GID_CHANGE, "the last type is one of them");

void notifier_init(struct notifier *n, struct dataplane *dp, notifier_find find, void *find_arg)
{
	memset(n, 0, sizeof(*n));
	pthread_mutex_init(&n->lock, NULL);
	n->dp = dp;
	n->find = find;
	n->find_arg = find_arg;
	n->late_fd = -1;
	list_init(&n->busy);
	list_init(&n->full);
}

void event_turn_init(struct event_turn *t)
{
	list_init(&t->node);
	list_init(&t->channels);
	list_init(&t->full_node);
	list_init(&t->full);
}

int channel_open(struct channel *ch, struct event_turn *turn, int *app_fd)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	shutdown(pair[0], SHUT_RD); /* rocid would have to close descriptors sent there */
	ch->fd = pair[0];
	ch->users = 0;
	ch->turn = turn;
	list_init(&ch->pending);
	list_init(&ch->busy);
	*app_fd = pair[1];
	return 0;
}

void channel_close(struct channel *ch)
{
	list_del(&ch->busy);
	if (ch->fd < 0)
		return;
	if (list_empty(&ch->turn->channels))
		list_del(&ch->turn->node);
	if (list_empty(&ch->turn->full))
		list_del(&ch->turn->full_node);
	close(ch->fd);
	ch->fd = -1;
}

void event_source_init(struct event_source *src, struct channel *ch, uint32_t handle)
{
	list_init(&src->node);
	src->channel = ch;
	src->handle = handle;
	src->npending = 0;
}

void event_source_withdraw(struct event_source *src)
{
	list_del(&src->node);
	src->npending = 0;
	src->channel = NULL;
}

/* Removes pending event @p i. */
static void drop_pending(struct event_source *src, unsigned i)
{
	src->npending--;
	memmove(&src->pending[i], &src->pending[i + 1], src->npending - i);
}

static void append_pending(struct event_source *src, uint32_t type)
{
	const uint8_t *same = memchr(src->pending, (int)type, src->npending);

	if (same)
		drop_pending(src, (unsigned)(same - src->pending));
	src->pending[src->npending++] = (uint8_t)type;
}

static void make_busy(struct notifier *n, struct channel *ch)
{
	list_push(&ch->turn->channels, &ch->busy);
	if (list_empty(&ch->turn->node))
		list_push(&n->busy, &ch->turn->node);
}

static void make_full(struct notifier *n, struct channel *ch)
{
	list_push(&ch->turn->full, &ch->busy);
	if (list_empty(&ch->turn->full_node))
		list_push(&n->full, &ch->turn->full_node);
}

void notifier_raise(struct notifier *n, struct event_source *src, uint32_t type)
{
	struct channel *ch = src->channel;

	if (!ch || type >= EVENT_TYPES)
		return;
	append_pending(src, type);
	if (list_empty(&src->node))
		list_push(&ch->pending, &src->node);
	if (list_empty(&ch->busy))
		make_busy(n, ch);
	waker_wake(&n->dp->notifier);
}

/* Sends the events of @p src.  @return false if the socket is full. */
static bool send_source(struct channel *ch, struct event_source *src, unsigned *sent)
{
	while (src->npending) {
		struct abi_event ev = {.type = src->pending[0], .handle = src->handle};
		ssize_t n = send(ch->fd, &ev, sizeof(ev), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS))
			return false;
		/* Any other failure: the application closed its end and expects no events. */
		drop_pending(src, 0);
		++*sent;
	}
	return true;
}

/* Sends the events of one object of the next channel of @p t. Moves a full channel to t->full. */
static unsigned send_turn(struct notifier *n, struct event_turn *t)
{
	struct list *first = list_pop(&t->channels); /* container_of() may evaluate it twice */
	struct channel *ch = container_of(first, struct channel, busy);
	struct event_source *src = container_of(ch->pending.next, struct event_source, node);
	unsigned sent = 0;

	if (list_empty(&ch->pending))
		return 0; /* withdrawn meanwhile */
	if (!send_source(ch, src, &sent)) {
		make_full(n, ch);
		return sent;
	}
	list_del(&src->node);
	if (!list_empty(&ch->pending))
		list_push(&t->channels, &ch->busy);
	return sent;
}

/* Makes some full channels busy again, one per session in turn, so that a program that resumes
 * reading does not wait for other programs' channels. */
static void try_full(struct notifier *n)
{
	struct list *node, *channel;

	for (unsigned i = 0; i < FULL_TRIES && (node = list_pop(&n->full)); i++) {
		struct event_turn *t = container_of(node, struct event_turn, full_node);

		channel = list_pop(&t->full);
		make_busy(n, container_of(channel, struct channel, busy));
		if (!list_empty(&t->full))
			list_push(&n->full, &t->full_node);
	}
}

static unsigned send_events(struct notifier *n)
{
	unsigned sent = 0;
	struct list *node;

	try_full(n);
	for (unsigned i = 0; i < ROUND && (node = list_pop(&n->busy)); i++) {
		struct event_turn *t = container_of(node, struct event_turn, node);

		sent += send_turn(n, t);
		if (!list_empty(&t->channels))
			list_push(&n->busy, &t->node);
	}
	return sent;
}

/* Takes up to TAKEN events off the ring.  @return how many. */
static unsigned take_some(struct notifier *n)
{
	struct core_event ev[TAKEN];
	unsigned count;

	if (!n->dp->events)
		return 0;
	count = rte_ring_dequeue_burst_elem(n->dp->events, ev, sizeof(ev[0]), TAKEN, NULL);
	for (unsigned i = 0; i < count; i++) {
		struct event_source *src = n->find(n->find_arg, &ev[i]);

		if (src)
			notifier_raise(n, src, ev[i].type);
	}
	return count;
}

static unsigned take_events(struct notifier *n)
{
	unsigned taken = 0, some = TAKEN;

	for (unsigned i = 0; i < TAKES && some == TAKEN; i++)
		taken += some = take_some(n);
	return taken;
}

/* Forwards the workers' flag, so that they need no system call. */
static void pass_late(struct notifier *n)
{
	uint64_t one = 1;
	ssize_t sent;

	if (!atomic_load_explicit(&n->dp->late, memory_order_relaxed) ||
		!atomic_exchange_explicit(&n->dp->late, false, memory_order_acq_rel))
		return;
	sent = write(n->late_fd, &one, sizeof(one));
	(void)sent; /* a full counter is readable already */
}

unsigned notifier_round(struct notifier *n)
{
	unsigned done;

	pass_late(n);
	notifier_lock(n);
	done = take_events(n);
	/* The control thread may be waiting for the lock: applications that never read must not
	 * hold it up, however many channels they have. */
	done += send_events(n);
	notifier_unlock(n);
	return done;
}

static void sleep_ns(long ns)
{
	const struct timespec ts = {.tv_nsec = ns};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Sleeps until there is something to do. */
static void sleep_long(struct notifier *n)
{
	struct waker *k = &n->dp->notifier;
	struct pollfd p = {.events = POLLIN};
	bool busy, blocked;
	uint64_t wakes;
	ssize_t got;

	atomic_store_explicit(&k->asleep, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	/* Once more: either this round sees the event, or its writer sees `asleep`. */
	if (notifier_round(n) || atomic_load_explicit(&n->stop, memory_order_acquire)) {
		atomic_store_explicit(&k->asleep, false, memory_order_relaxed);
		return;
	}
	notifier_lock(n);
	busy = !list_empty(&n->busy); /* more than one round could send */
	blocked = !list_empty(&n->full);
	notifier_unlock(n);
	p.fd = k->fd;
	if (poll(&p, 1, busy ? 0 : blocked ? BLOCKED_MS : -1) == 1) {
		got = read(k->fd, &wakes, sizeof(wakes));
		(void)got;
	}
	atomic_store_explicit(&k->asleep, false, memory_order_relaxed);
}

static bool is_woken(const struct notifier *n)
{
	return __atomic_load_n(&n->dp->idle, __ATOMIC_RELAXED) != IDLE_POLL;
}

static long pause_after(unsigned idle, long before)
{
	if (idle <= HOT_ROUNDS)
		return SLEEP_MIN_NS;
	return 2 * before < SLEEP_MAX_NS ? 2 * before : SLEEP_MAX_NS;
}

static void *notifier_main(void *arg)
{
	struct notifier *n = arg;
	unsigned idle = 0; /* rounds without an event */
	long pause = SLEEP_MIN_NS;

	prctl(PR_SET_TIMERSLACK, 1000ul); /* the default rounds 50 us up to 100 */
	while (!atomic_load_explicit(&n->stop, memory_order_acquire)) {
		idle = notifier_round(n) ? 0 : idle + 1;
		pause = pause_after(idle, pause);
		if (idle > WARM_ROUNDS && is_woken(n))
			sleep_long(n);
		else
			sleep_ns(pause);
	}
	return NULL;
}

int notifier_start(struct notifier *n)
{
	sigset_t all, old;
	int err;

	n->dp->notifier.fd = eventfd(0, EFD_CLOEXEC);
	if (n->dp->notifier.fd < 0)
		return -errno;
	/* Another thread waits for signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	err = -pthread_create(&n->thread, NULL, notifier_main, n);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	n->started = !err;
	if (!err)
		pthread_setname_np(n->thread, "roci-notify");
	return err;
}

void notifier_stop(struct notifier *n)
{
	if (!n->started)
		return;
	atomic_store_explicit(&n->stop, true, memory_order_release);
	waker_wake(&n->dp->notifier);
	pthread_join(n->thread, NULL);
	n->started = false;
	close(n->dp->notifier.fd);
	n->dp->notifier.fd = -1;
}
