/* SPDX-License-Identifier: BSD-3-Clause */
/* Timeouts. */
#include "cm_impl.h"

/* Timers moved in the wheel for each that may run: moving one costs a small part of running it. */
#define MOVES 16u

/* The retries are exhausted: sends a REJ if the peer may still wait for us (CM-15, CM-17). */
static void give_up(struct cm *cm, struct cm_conn *c, uint64_t now)
{
	enum cm_attr what = mad_attr(c->last);

	switch (c->state) {
	case CM_REQ_SENT:
	case CM_REP_SENT:
		cm_send_rej(cm, c, CM_REJ_TIMEOUT,
			c->state == CM_REQ_SENT ? CM_NAMED_REQ : CM_NAMED_REP, NULL, 0);
		break;
	case CM_DREQ_SENT:
		cm_timewait(cm, c, now);
		cm_event(cm, c, CM_EV_DISCONNECTED, CM_DREQ, NULL);
		return;
	default:
		break;
	}
	cm_event(cm, c, CM_EV_UNREACHABLE, what, NULL);
	cm_ended(cm, c);
}

static void repeat(struct cm *cm, struct cm_conn *c, uint64_t now)
{
	if (!c->retries) {
		give_up(cm, c, now);
		return;
	}
	cm->count.repeated[mad_attr(c->last) - CM_REQ]++;
	cm_send_timed(cm, c, (uint8_t)(c->retries - 1), now);
}

static void expired(struct cm *cm, struct cm_conn *c, uint64_t now)
{
	switch (c->state) {
	case CM_MRA_REQ_RCVD:
		c->state = CM_REQ_SENT;
		repeat(cm, c, now);
		break;
	case CM_MRA_REP_RCVD:
		c->state = CM_REP_SENT;
		repeat(cm, c, now);
		break;
	case CM_TIMEWAIT:
		cm_event(cm, c, CM_EV_TIMEWAIT_EXIT, 0, NULL);
		cm_ended(cm, c);
		break;
	case CM_REJECTED:
	case CM_SIDR_DONE:
		cm_ended(cm, c);
		break;
	default:
		repeat(cm, c, now);
	}
}

bool cm_expire(struct cm *cm, uint64_t now, unsigned most)
{
	unsigned moves = most * MOVES;

	for (unsigned n = 0; n < most; n++) {
		struct wheel_timer *t = wheel_expire(&cm->wheel, now, &moves);

		if (!t)
			return moves;
		expired(cm, container_of(t, struct cm_conn, timer), now);
	}
	return false;
}

uint64_t cm_deadline(const struct cm *cm)
{
	return wheel_deadline(&cm->wheel);
}
