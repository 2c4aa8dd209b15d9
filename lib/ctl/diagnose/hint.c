/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes the difficulties of a QP that has not failed, such as a missing response. */
#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"
#include "drop_log.h"
#include "qp.h"
#include "timers.h"
#include "verbs/qp_obj.h"

#define LOOK(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* A live requester retries after the delay in the RNR NAK (REQ-29). After this long without a
 * retry, it has given up. */
#define QUIET_NS     2000000000ull
#define QUIET_DELAYS 4u

bool qp_peer_gave_up(const struct ctl *ctl, const struct qp_obj *o, struct cause_note *n)
{
	const struct qp *qp = o->qp;
	const struct qp_why *y = &qp->why;
	uint64_t time = LOOK(y->rnr_time);
	uint64_t delay = timers_rnr_usec(qp->attr.min_rnr_timer) * 1000ull;
	uint8_t state = LOOK(qp->state);
	/* The worker's clock may be a moment ahead of this thread's. */
	int64_t quiet = (int64_t)(worker_now_ns(ctl) - time);

	if (!time || !LOOK(qp->resp.rnr_sent) || state < ABI_QPS_RTR || state > ABI_QPS_SQD ||
		quiet < (int64_t)(QUIET_NS + QUIET_DELAYS * delay))
		return false;
	*n = (struct cause_note){
		.cause = CAUSE_PEER_GAVE_UP,
		.opcode = LOOK(y->rnr_opcode),
		.psn = LOOK(y->rnr_psn),
		.value = LOOK(y->rnr_times),
		.time = time,
	};
	return true;
}

static bool not_ready(const struct qp *qp, struct sentence *t)
{
	if (!LOOK(qp->resp.rnr_sent))
		return false;
	sentence_add(t, "the peer sends, but no receive is posted: post receives before the peer's "
			"rnr_retry is used up");
	return true;
}

static bool waits(const struct qp *qp, struct sentence *t)
{
	if (!LOOK(qp->comp.rnr_wait))
		return false;
	sentence_add(t,
		"the peer has no receive posted; %u more RNR NAKs are tolerated (7: without limit)",
		LOOK(qp->comp.rnr_left));
	return true;
}

static bool retries(const struct qp *qp, struct sentence *t)
{
	uint32_t left = LOOK(qp->comp.retry_left);

	if (LOOK(qp->state) != ABI_QPS_RTS || !LOOK(qp->comp.retrying) ||
		left >= qp->attr.retry_cnt)
		return false;
	sentence_add(t,
		"a response is missing: PSN 0x%x is being retransmitted; %u of %u retries are left",
		LOOK(qp->comp.una), left, qp->attr.retry_cnt);
	return true;
}

void diagnose_hint(struct ctl *ctl, const struct qp_obj *o, char text[ABI_WHY_MAX])
{
	struct sentence t = {.text = text};
	struct drop_note n;
	enum drop why;

	text[0] = '\0';
	if (diagnose_stalled(ctl, o, &t))
		return;
	if (drop_of_qp(ctl, o, false, NULL, NULL, &why, &n)) {
		diagnose_drop(&t, ctl, o, why, &n);
		return;
	}
	if (diagnose_old_acks(&t, o->qp) || not_ready(o->qp, &t) || waits(o->qp, &t))
		return;
	retries(o->qp, &t);
}
