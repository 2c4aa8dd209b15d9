/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens sessions; hello.c completes them, close.c closes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "abi_ctl.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "loop/reaper.h"
#include "memory/alloc.h"
#include "refuse.h"
#include "session/account.h"
#include "session/message.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "session/turn.h"

/* Charges @p s for a place.  @return its slot, or a negative errno with a sentence. */
static int find_slot(struct ctl *ctl, struct session *s, int fd, char why[ABI_SENTENCE_MAX])
{
	int err;

	if (fd > ctl->sessions->fd_max)
		return refuse(why, -EMFILE,
			"rocid is almost out of descriptors: raise its limit of open files (ulimit "
			"-n)");
	err = quota_open(s, why);
	if (err)
		return err;
	for (int i = 0; i < (int)SESSION_MAX &&
			ctl->sessions->nsessions + ctl->sessions->nclosing < SESSION_MAX;
		i++)
		if (!ctl->sessions->session[i])
			return i;
	quota_close(s);
	return refuse(why, -EUSERS, "rocid already serves %u applications: end one", SESSION_MAX);
}

/* Ends the oldest connection that has sent no HELLO for a while, so that idle connections keep
 * nobody out: one of the same user, or of any user if all places are taken and this user's limits
 * allow another session. Returns false if there is none. */
static bool evict_silent(struct ctl *ctl, const struct session *s)
{
	bool all_taken = ctl->sessions->nsessions + ctl->sessions->nclosing == SESSION_MAX;
	const struct account *own = all_taken && quota_may_open(s) ? NULL : s->account;
	struct session *oldest = NULL;

	for (uint32_t i = 0; i < SESSION_MAX; i++) {
		struct session *o = ctl->sessions->session[i];

		if (o && !o->greeted && (!own || o->account == own) &&
			(!oldest || o->since_ms < oldest->since_ms))
			oldest = o;
	}
	if (!oldest || loop_now_ms() - oldest->since_ms < HELLO_PATIENCE_MS)
		return false;
	session_close(oldest);
	return true;
}

/* Identifies the caller and finds a place for it.  @return its slot, or a negative errno with a
 * sentence. */
static int admit(struct ctl *ctl, struct session *s, int fd, char why[ABI_SENTENCE_MAX])
{
	socklen_t len = sizeof(s->peer);
	int slot;

	if (!s)
		return refuse_memory(why);
	s->ctl = ctl;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &s->peer, &len))
		return refuse(why, -errno, "rocid cannot identify the caller: %s", strerror(errno));
	slot = find_slot(ctl, s, fd, why);
	if (slot == -EUSERS && evict_silent(ctl, s))
		slot = find_slot(ctl, s, fd, why);
	return slot;
}

/* Answers @p fd with the sentence in @p r, and closes it. */
static void turn_away(struct ctl *ctl, uint64_t owner, int fd, int err, struct reply *r)
{
	const struct abi_msg refusal = {.type = ABI_HELLO, .status = err};

	reply_body(r, r->why, strlen(r->why) + 1);
	message_send(fd, &refusal, r);
	shutdown(fd, SHUT_RDWR);
	reap_fd(ctl->sessions->closer, owner, fd);
}

static void init(struct session *s, int fd, uint32_t slot)
{
	const int unread = SESSION_UNREAD_BYTES;

	s->slot = slot;
	s->number = ++s->ctl->sessions->session_count * SESSION_MAX + slot;
	s->since_ms = loop_now_ms();
	s->watch = (struct watch){.fd = fd, .ready = session_ready};
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &unread, sizeof(unread));
	s->async.fd = -1;
	list_init(&s->async.pending);
	list_init(&s->async.busy);
	list_init(&s->held);
	event_turn_init(&s->events);
	list_init(&s->ahs);
	list_init(&s->ahs_gone);
	list_init(&s->cm_channels);
	handles_init(&s->pds, SESSION_PD_MAX);
	handles_init(&s->mrs, SESSION_MR_MAX);
	handles_init(&s->mws, SESSION_MR_MAX);
	handles_init(&s->channels, SESSION_CHANNEL_MAX);
	handles_init(&s->cqs, SESSION_CQ_MAX);
	handles_init(&s->xrcds, SESSION_XRCD_MAX);
	handles_init(&s->srqs, SESSION_SRQ_MAX);
	handles_init(&s->qps, SESSION_QP_MAX);
}

int session_open(struct ctl *ctl, int fd)
{
	struct sessions *all = ctl->sessions;
	struct session *s = object_alloc(sizeof(*s));
	struct reply r = {0};
	int slot = admit(ctl, s, fd, r.why), err;

	if (slot < 0) {
		turn_away(ctl, s ? owner_connections(s->peer.uid) : OWNER_ROCID, fd, slot, &r);
		free(s);
		return slot;
	}
	init(s, fd, (uint32_t)slot);
	notifier_lock(&all->notifier);
	all->session[slot] = s;
	all->nsessions++;
	notifier_unlock(&all->notifier);
	err = turn_join(s);
	if (err)
		session_close(s);
	return err;
}
