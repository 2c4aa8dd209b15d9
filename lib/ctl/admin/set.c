/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include "abi_names.h"
#include "admin/set.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "qp.h"
#include "refuse.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "text/document.h"
#include "verbs/device.h"
#include "migrate/migrate.h"
#include "verbs/objects.h"
#include "verbs/qp_cc.h"
#include "verbs/qp_obj.h"
#include "worker.h"

/* --- set -------------------------------------------------------------------------------- */

int admin_set_window(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	ctl->window = (uint32_t)arg[0].number;
	return 0;
}

int admin_set_qp_window(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	struct core_cmd cmd = {
		.type = CORE_CMD_SET_WINDOW, .qp = o->qp, .n = (uint32_t)arg[1].number};

	if (worker_call(ctl->dp->worker[o->worker], &cmd))
		return refuse(why, -EIO, "worker %u does not answer", o->worker);
	return 0;
}

int admin_set_qp_rate(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	struct core_cmd cmd = {.type = CORE_CMD_SET_RATE, .qp = o->qp, .rate = arg[1].number};

	if (worker_call(ctl->dp->worker[o->worker], &cmd))
		return refuse(why, -EIO, "worker %u does not answer", o->worker);
	return 0;
}

int admin_set_qp_cc(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	return qp_cc_set(find_qp(ctl, arg[0].number), arg[1].word, why);
}

int admin_set_migrate(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	if (ctl->dp->nworkers < 2)
		return refuse(why, -EINVAL,
			"rocid has only one worker, so QPs cannot move: start it with a larger "
			"--workers");
	ctl->objects->migration->follow = arg[0].number;
	ctl->objects->migration->shake_ms = 0;
	return 0;
}

/* A worker that may sleep opens descriptors for waking it when it starts, and its producers use
 * them. */
int admin_set_idle(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	enum idle idle = (enum idle)arg[0].number;

	if (ctl->dp->idle == idle)
		return 0;
	if (ctl->dp->idle == IDLE_ADAPTIVE)
		return refuse(why, -EINVAL,
			"rocid started with --idle adaptive, which cannot change at run time: "
			"restart it with --idle %s",
			arg[0].word);
	if (idle == IDLE_ADAPTIVE)
		return refuse(why, -EINVAL,
			"workers prepare to sleep when they start: restart rocid with --idle "
			"adaptive");
	__atomic_store_n(&ctl->dp->idle, idle, __ATOMIC_RELAXED);
	return 0;
}

int admin_set_limit(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct ctl_limits wanted = ctl->sessions->quota.limits;
	unsigned which = (unsigned)arg[0].number;
	uint32_t limit = (uint32_t)arg[1].number;
	struct ctl_limits got;

	if (!limit)
		return refuse(why, -EINVAL, "a limit must be at least 1");
	*quota_limit(&wanted, which) = limit;
	got = quota_limits(&ctl->sessions->quota, &wanted);
	if (*quota_limit(&got, which) != limit)
		return refuse(why, -EINVAL, "%s: this rocid can have at most %u", arg[0].word,
			*quota_limit(&got, which));
	ctl->sessions->quota.limits = got;
	return 0;
}

int admin_set_port(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	port_disable(ctl, (uint32_t)arg[0].number - 1, !arg[1].number);
	return 0;
}

int admin_set_impair(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	const struct ctl_devices *d = ctl->devices;

	if (!d)
		return refuse(why, -EOPNOTSUPP, "this rocid emulates no links");
	return d->impair(d->arg, (uint32_t)arg[0].number - 1, arg[1].word, why);
}

/* --- reset ------------------------------------------------------------------------------ */

int admin_reset_counters(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct core_counters now = {0};

	worker_counters(ctl->dp, &now);
	memcpy(now.drop, ctl->counted->drop, sizeof(now.drop));
	*ctl->counted = now;
	return 0;
}

int admin_reset_drops(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct core_counters now = {0};

	worker_counters(ctl->dp, &now);
	memcpy(ctl->counted->drop, now.drop, sizeof(now.drop));
	return 0;
}

/* --- kill ------------------------------------------------------------------------------- */

int admin_kill_qp(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	struct qp_obj *o = find_qp(ctl, arg[0].number);
	struct core_cmd cmd = {
		.type = CORE_CMD_MODIFY_QP,
		.qp = o->qp,
		.mask = ABI_QP_STATE,
		.attr = {.qp_state = ABI_QPS_ERR},
	};

	if (worker_call(ctl->dp->worker[o->worker], &cmd))
		return refuse(why, -EINVAL, "QP %u is in state %s, which cannot change to ERR",
			o->qpn, qp_state_name(__atomic_load_n(&o->qp->state, __ATOMIC_RELAXED)));
	return 0;
}

int admin_kill_session(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX])
{
	session_begin_close(find_session(ctl, arg[0].number));
	return 0;
}
