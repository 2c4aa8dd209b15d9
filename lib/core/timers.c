/* SPDX-License-Identifier: BSD-3-Clause */
#include "completer.h"
#include "core.h"
#include "list.h"
#include "qp.h"
#include "qp_impl.h"
#include "timers.h"
#include "trace.h"
#include "wheel.h"

/* REQ-32, IBA Table 46; code 0 is the longest. */
static const uint32_t rnr_usec[32] = {655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640,
	960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920,
	122880, 163840, 245760, 327680, 491520};

uint32_t timers_rnr_usec(unsigned code)
{
	return rnr_usec[code & 31];
}

uint64_t timers_ack_timeout(unsigned code)
{
	return code ? 4096ull << (code & 31) : 0; /* REQ-22 */
}

static ALWAYS_INLINE void timer_set(struct core *c, struct qp *qp, uint64_t due)
{
	qp->comp.due = due;
	if (!wheel_armed(&qp->timer) || qp->timer.due > due >> WHEEL_TICK_SHIFT)
		wheel_arm(&c->wheel, &qp->timer, due);
}

void timers_request_sent(struct core *c, struct qp *qp, uint64_t now)
{
	if (!qp->comp.due && qp->ack_timeout) /* REQ-22: measured from the oldest request */
		timer_set(c, qp, now + qp->ack_timeout);
}

void timers_progress(struct core *c, struct qp *qp, uint64_t now)
{
	qp->comp.rnr_wait = false;
	if (qp->comp.una == qp->req.psn_new || !qp->ack_timeout) /* REQ-23 */
		qp->comp.due = 0;
	else
		timer_set(c, qp, now + qp->ack_timeout);
}

void timers_went_back(struct qp *qp)
{
	qp->comp.due = 0;
}

void timers_rnr_nak(struct core *c, struct qp *qp, unsigned code, uint64_t now)
{
	qp->comp.rnr_wait = true; /* REQ-31: instead of the ACK timer */
	timer_set(c, qp, now + timers_rnr_usec(code) * 1000ull); /* REQ-29 */
}

void timers_gap(struct core *c, struct qp *qp, uint64_t now)
{
	if (!qp->comp.due)
		timer_set(c, qp, now + timers_ack_timeout(GAP_TIMEOUT));
}

void timers_stop(struct core *c, struct qp *qp)
{
	qp->comp.due = 0;
	qp->comp.rnr_wait = false;
	wheel_cancel(&c->wheel, &qp->timer);
}

static void timer_fired(struct core *c, struct qp *qp, uint64_t now)
{
	if (!qp->comp.due)
		return;
	if (now < qp->comp.due) { /* it was restarted since the wheel was set */
		wheel_arm(&c->wheel, &qp->timer, qp->comp.due);
		return;
	}
	qp->comp.due = 0;
	if (qp->comp.rnr_wait) {
		qp->comp.rnr_wait = false;
		qp_make_ready(c, qp);
	} else if (qp->ack_timeout) {
		completer_timeout(c, qp, now);
	} else {
		completer_gap(c, qp, now);
	}
}

bool core_expire(struct core *c, uint64_t now)
{
	unsigned moves = TIMERS_MOVED;

	c->lags = false;
	c->clock = now;
	if (likely(wheel_pass(&c->wheel, now)))
		return false;
	for (unsigned n = 0; n < TIMERS_ROUND; n++) {
		struct wheel_timer *t = wheel_expire(&c->wheel, now, &moves);
		struct trace_step s;
		struct qp *qp;

		if (!t)
			return !moves;
		qp = container_of(t, struct qp, timer);
		if (unlikely(qp->traced))
			trace_timer_begin(&s, c, qp, now);
		timer_fired(c, qp, now);
		if (unlikely(qp->traced))
			trace_end(&s, c, qp, now);
	}
	return true;
}
