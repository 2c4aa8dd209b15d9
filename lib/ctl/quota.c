/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "bits.h"
#include "quota.h"

#define MB_SHIFT 20
#define NO_LIMIT UINT32_MAX

static uint32_t limit(uint32_t wanted, uint32_t normal, uint32_t most)
{
	if (!wanted)
		return normal;
	return wanted < most ? wanted : most;
}

struct ctl_limits quota_limits(const struct ctl_limits *l)
{
	return (struct ctl_limits){
		.sessions = limit(l->sessions, SESSION_USER_MAX, SESSION_MAX),
		.qps = limit(l->qps, SESSION_QP_MAX, SESSION_QP_MAX),
		.cqs = limit(l->cqs, SESSION_CQ_MAX, SESSION_CQ_MAX),
		.mrs = limit(l->mrs, SESSION_MR_MAX, SESSION_MR_MAX),
		.queue_mb = limit(l->queue_mb, SESSION_QUEUE_MB, NO_LIMIT),
		.memory_mb = limit(l->memory_mb, NO_LIMIT, NO_LIMIT),
		.user_qps = limit(l->user_qps, QP_MAX, QP_MAX),
		.user_memory_mb = limit(l->user_memory_mb, NO_LIMIT, NO_LIMIT),
	};
}

/* What all sessions of a user have, those that have not quite ended included. */
struct usage {
	uint32_t sessions;
	uint32_t qps;
	uint64_t mr_bytes;
};

static void add(struct usage *u, const struct session *s, uid_t uid)
{
	if (s->peer.uid != uid)
		return;
	u->sessions++;
	u->qps += s->qps.used;
	u->mr_bytes += s->mr_bytes;
}

static struct usage count_user(const struct ctl *ctl, uid_t uid)
{
	struct usage u = {0};

	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (ctl->session[i])
			add(&u, ctl->session[i], uid);
	for (struct list *l = ctl->endings.next; l != &ctl->endings; l = l->next)
		add(&u, container_of(l, struct session, node), uid);
	return u;
}

/* Whether @p size bytes on top of @p used are beyond @p mb. */
static bool beyond(uint64_t used, uint64_t size, uint32_t mb)
{
	uint64_t most = (uint64_t)mb << MB_SHIFT;

	return mb != NO_LIMIT && (used > most || size > most - used);
}

int quota_session(const struct ctl *ctl, const struct ucred *peer, char why[ABI_SENTENCE_MAX])
{
	uint32_t used;

	if (!peer->uid)
		return 0;
	used = count_user(ctl, peer->uid).sessions +
	       disposer_load(ctl->closer, owner_connections(peer->uid));
	if (used < ctl->limits.sessions)
		return 0;
	return refuse(why, -EUSERS,
		"rocid serves %u applications of user %u already: end one, or raise rocid's "
		"--max-sessions",
		ctl->limits.sessions, peer->uid);
}

int quota_qp(const struct session *s, char why[ABI_SENTENCE_MAX])
{
	const struct ctl_limits *l = &s->ctl->limits;

	if (s->qps.used >= l->qps)
		return refuse(why, -EDQUOT,
			"the application has %u QPs, the most it may have: destroy some, or raise "
			"rocid's --max-qps",
			s->qps.used);
	if (s->peer.uid && count_user(s->ctl, s->peer.uid).qps >= l->user_qps)
		return refuse(why, -EDQUOT,
			"the applications of user %u have %u QPs, the most they may have: destroy "
			"some, or raise rocid's --max-user-qps",
			s->peer.uid, l->user_qps);
	return 0;
}

int quota_cq(const struct session *s, char why[ABI_SENTENCE_MAX])
{
	if (s->cqs.used < s->ctl->limits.cqs)
		return 0;
	return refuse(why, -EDQUOT,
		"the application has %u CQs, the most it may have: let QPs share one, or raise "
		"rocid's --max-cqs",
		s->cqs.used);
}

int quota_key(const struct session *s, char why[ABI_SENTENCE_MAX])
{
	uint32_t used = s->mrs.used + s->mws.used;

	if (used < s->ctl->limits.mrs)
		return 0;
	return refuse(why, -EDQUOT,
		"the application has %u memory regions%s, the most it may have: register larger "
		"ones, or raise rocid's --max-mrs",
		used, s->mws.used ? " and windows" : "");
}

int quota_mr(const struct session *s, uint64_t length, char why[ABI_SENTENCE_MAX])
{
	const struct ctl_limits *l = &s->ctl->limits;

	int err = quota_key(s, why);

	if (err)
		return err;
	if (beyond(s->mr_bytes, length, l->memory_mb))
		return refuse(why, -EDQUOT,
			"the application would have more than %u MB of registered memory: "
			"deregister some, or raise rocid's --max-memory",
			l->memory_mb);
	if (s->peer.uid &&
		beyond(count_user(s->ctl, s->peer.uid).mr_bytes, length, l->user_memory_mb))
		return refuse(why, -EDQUOT,
			"the applications of user %u would have more than %u MB of registered "
			"memory: deregister some, or raise rocid's --max-user-memory",
			s->peer.uid, l->user_memory_mb);
	return 0;
}

int quota_queues(const struct session *s, size_t size, char why[ABI_SENTENCE_MAX])
{
	if (!beyond(s->bytes, size, s->ctl->limits.queue_mb))
		return 0;
	return refuse(why, -EDQUOT,
		"the application's queues would take more than %u MB: ask for shorter ones, or "
		"raise rocid's --max-queues",
		s->ctl->limits.queue_mb);
}
