/* SPDX-License-Identifier: BSD-3-Clause */
/* What is remarkable about a QP that has not failed: what it waits for. */
#include "bits.h"
#include "why_impl.h"

#define LOOK(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

static bool not_ready(const struct qp *qp, struct why_text *t)
{
	if (!LOOK(qp->resp.rnr_sent))
		return false;
	why_say(t,
		"the peer sends, but no receive is posted: it was told to wait and gives up after "
		"its rnr_retry");
	return true;
}

static bool waits(const struct qp *qp, struct why_text *t)
{
	if (!LOOK(qp->comp.rnr_wait))
		return false;
	why_say(t, "the peer has no receive posted; %u more refusals are taken (7: without end)",
		LOOK(qp->comp.rnr_left));
	return true;
}

static bool retries(const struct qp *qp, struct why_text *t)
{
	uint32_t left = LOOK(qp->comp.retry_left);

	if (LOOK(qp->state) != ABI_QPS_RTS || !LOOK(qp->comp.retrying) ||
		left >= qp->attr.retry_cnt)
		return false;
	why_say(t, "an answer is missing: PSN 0x%x is sent again, %u of %u retries are left",
		LOOK(qp->comp.una), left, qp->attr.retry_cnt);
	return true;
}

void why_hint(struct ctl *ctl, const struct qp_obj *o, char text[ABI_WHY_MAX])
{
	struct why_text t = {.text = text};
	struct drop_note n;
	enum drop why;

	text[0] = '\0';
	if (why_drop_of_qp(ctl, o, false, NULL, NULL, &why, &n)) {
		why_tell_drop(&t, ctl, o, why, &n);
		return;
	}
	if (why_tell_old_acks(&t, o->qp) || not_ready(o->qp, &t) || waits(o->qp, &t))
		return;
	retries(o->qp, &t);
}
