/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet thread while there is a session. */
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include "bits.h"
#include "pace.h"
#include "rib_impl.h"

#define PUBLISH_NS \
	50000000ull /* between two copies of the counters, and looks for events and the MAC */
#define REST_NS 100000000u

/* The netdev's counters outlast its sessions. */
void rib_publish(struct rib *r, bool up)
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
	rib_publish(r, true);
	take_events(r);
	if (atomic_load(&r->outdated))
		rib_fail(r, "the port has changed, or the netdev was moved or deleted");
}

static void drain(struct rib *r, const struct pollfd *p)
{
	struct roci_cq *cq;

	if (p[0].revents)
		rib_unwake(r->wake);
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
		rib_netdev_gone(r);
}

/* @return packets that were moved. */
static uint32_t look(struct rib *r, uint64_t now)
{
	int n = rib_from_wire(r, now);

	rib_take_answers(r, now);
	rib_send_waiting(r, now);
	n += rib_from_kernel(r, now);
	rib_ask(r, now);
	now_and_then(r, now);
	return (uint32_t)n;
}

static void wait_for_events(struct rib *r, uint64_t now)
{
	roci_req_notify_cq(r->q.cq, 0);
	if (!rib_from_wire(r, now) && !r->failed)
		rest(r, now, REST_NS);
}

void rib_serve(struct rib *r)
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
