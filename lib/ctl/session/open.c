/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens sessions, sets up the state that they share, and raises port events in all of them.
 * session/close.c closes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "bits.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "memory/numa.h"
#include "net/net.h"
#include "refuse.h"
#include "session/account.h"
#include "session/bells.h"
#include "session/mapping.h"
#include "session/message.h"
#include "session/quota.h"
#include "session/reaper.h"
#include "session/session.h"
#include "session/sessions.h"
#include "session/turn.h"
#include "sigbus.h"
#include "worker.h"

void *object_alloc(size_t size)
{
	void *p = aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);

	if (p)
		memset(p, 0, size);
	return p;
}

int session_shm(struct session *s, struct shm *m, const char *name, size_t size, int *fd,
	char why[ABI_SENTENCE_MAX])
{
	const struct charge c[] = {{CTL_QUEUES, shm_rounded(size)}, {CTL_MAPPINGS, 1}};
	int err = quota_take(s, c, ARRAY_SIZE(c), why);

	*fd = -1;
	if (err)
		return err;
	err = shm_create(m, name, size, fd, why);
	if (!err)
		err = shm_guard(m, &(struct sigbus_area){.kind = SIGBUS_RING, .owner = s}, why);
	if (err) {
		shm_unmap(m);
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		quota_give(s, c, ARRAY_SIZE(c));
		return err;
	}
	place_memory(m->base, m->size, s->ctl->dp->node[0]);
	return 0;
}

void session_shm_free(struct session *s, struct shm *m)
{
	if (m->base)
		shm_retire(m, m->size, s->ctl->sessions->unmapper,
			quota_retire(s, CTL_QUEUES, m->size));
}

/* --- all of them ------------------------------------------------------------------------- */

int sessions_init(
	struct sessions *all, struct ctl *ctl, const struct session_ops *ops, notifier_find find)
{
	const struct reaper_config closers = {.threads = CLOSER_THREADS,
		.owner_threads = CLOSER_USER_THREADS,
		.interrupts = true};
	const struct reaper_config unmappers = {.threads = 1, .owner_threads = 1};

	all->ctl = ctl;
	all->ops = ops;
	all->reserve_fd = -1;
	all->listener.fd = -1;
	all->faults = (struct watch){.fd = -1, .ready = session_faults_ready};
	list_init(&all->closing);
	list_init(&all->turns);
	list_init(&all->jobs);
	list_init(&all->held);
	mappings_init(all);
	notifier_init(&all->notifier, ctl->dp, find, ctl);
	all->closer = reaper_create(&closers);
	all->unmapper = reaper_create(&unmappers);
	return all->closer && all->unmapper ? 0 : -ENOMEM;
}

void sessions_close(struct sessions *all)
{
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (all->session[i])
			session_close(all->session[i]);
	while (sessions_close_some(all->ctl))
		;
}

void sessions_destroy(struct sessions *all)
{
	reaper_destroy(all->closer);
	reaper_destroy(all->unmapper);
	quota_destroy(&all->quota);
	notifier_stop(&all->notifier);
	pthread_mutex_destroy(&all->notifier.lock);
}

/* --- life ----------------------------------------------------------------------------- */

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

int session_open(struct ctl *ctl, int fd)
{
	const int unread = SESSION_UNREAD_BYTES;
	struct abi_msg refusal = {.type = ABI_HELLO};
	struct session *s = object_alloc(sizeof(*s));
	socklen_t len = sizeof(struct ucred);
	struct reply r = {0};
	int slot, err;

	if (s)
		s->ctl = ctl;
	if (!s)
		slot = refuse_memory(r.why);
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &s->peer, &len))
		slot = refuse(
			r.why, -errno, "rocid cannot identify the caller: %s", strerror(errno));
	else
		slot = find_slot(ctl, s, fd, r.why);
	if (slot == -EUSERS && evict_silent(ctl, s))
		slot = find_slot(ctl, s, fd, r.why);
	if (slot < 0) {
		refusal.status = slot;
		reply_body(&r, r.why, strlen(r.why) + 1);
		message_send(fd, &refusal, &r);
		shutdown(fd, SHUT_RDWR);
		reap_fd(ctl->sessions->closer, s ? owner_connections(s->peer.uid) : OWNER_ROCID,
			fd);
		free(s);
		return slot;
	}
	s->slot = (uint32_t)slot;
	s->number = ++ctl->sessions->session_count * SESSION_MAX + s->slot;
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
	notifier_lock(&ctl->sessions->notifier);
	ctl->sessions->session[slot] = s;
	ctl->sessions->nsessions++;
	notifier_unlock(&ctl->sessions->notifier);
	err = turn_join(s);
	if (err)
		session_close(s);
	return err;
}

static int add_doorbells(struct session *s, struct reply *r)
{
	struct dataplane *dp = s->ctl->dp;
	uint8_t *first = s->region.base + sizeof(struct abi_session);

	struct bells *b = s->bells = object_alloc(sizeof(*b));
	int err = b ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < dp->nworkers; i++) {
		b->hint[i] = i * (ABI_DB_MAX / dp->nworkers);
		b->w[i] = (struct worker_doorbell){
			.shared = (struct abi_doorbell *)(first + i * sizeof(struct abi_doorbell)),
			.qp = b->qp,
		};
		err = worker_add_doorbell(dp->worker[i], &b->w[i]);
	}
	if (err)
		return refuse(r->why, err, "rocid has no room for another application: end one");
	return 0;
}

int session_greet(struct session *s, struct reply *r)
{
	struct ctl *ctl = s->ctl;
	struct abi_hello_reply out = {
		.magic = ABI_MAGIC,
		.version = ABI_VERSION,
		.workers = (uint16_t)ctl->dp->nworkers,
		.epoch = ctl->sessions->epoch,
		.doorbell_off = sizeof(struct abi_session),
		.doorbell_stride = sizeof(struct abi_doorbell),
		.session = s->number,
		.sleeps = ctl->dp->idle == IDLE_ADAPTIVE,
		.rocev1 = ctl->net->port[0].gids.rocev1, /* GID-10: on all ports, or on none */
	};
	size_t size = sizeof(struct abi_session) + ctl->dp->nworkers * sizeof(struct abi_doorbell);
	int fd, err;

	if (s->region.base) /* an earlier hello failed half-way */
		return refuse(r->why, -EPROTO, "an earlier hello failed: connect again");
	err = session_shm(s, &s->region, "roci-session", size, &fd, r->why);
	if (err)
		return err;
	reply_fd(r, fd);
	atomic_store(&((struct abi_session *)s->region.base)->epoch, ctl->sessions->epoch);
	err = add_doorbells(s, r);
	if (!err) {
		notifier_lock(&ctl->sessions->notifier);
		err = channel_open(&s->async, &s->events, &fd);
		for (uint32_t i = 0; i < ctl->net->nports; i++)
			event_source_init(&s->port_events[i], err ? NULL : &s->async, i + 1);
		notifier_unlock(&ctl->sessions->notifier);
		if (err)
			return refuse(r->why, err,
				"rocid cannot create a channel (%s): raise its limit "
				"of open files (ulimit -n)",
				strerror(-err));
		reply_fd(r, fd);
	}
	if (err)
		return err;
	s->greeted = true;
	memcpy(out.device, ctl->device, sizeof(out.device));
	out.region_size = (uint32_t)s->region.size;
	reply_body(r, &out, sizeof(out));
	return 0;
}

/* --- faults --------------------------------------------------------------------------- */

/* Faults handled per event. Each may start to end a session. */
#define FAULTS_STEP 8u

void session_faults_ready(struct watch *w)
{
	struct sessions *all = container_of(w, struct sessions, faults);
	enum sigbus_kind kind;
	uint64_t count;
	void *owner;

	if (read(w->fd, &count, sizeof(count)) < 0) /* before the table, which is set first */
		return;
	for (unsigned n = 0; n < FAULTS_STEP && (owner = sigbus_take(&kind)); n++) {
		struct session *s = kind == SIGBUS_RING ? owner : all->ops->mr_faulted(owner);

		if (s && !s->closing)
			session_begin_close(s);
	}
	if (owner) { /* handle the rest after other events */
		count = 1;
		(void)!write(w->fd, &count, sizeof(count));
	}
}

/* --- events --------------------------------------------------------------------------- */

void session_port_event(struct ctl *ctl, uint32_t index, uint32_t type)
{
	struct sessions *all = ctl->sessions;

	ctl->net->port[index].news = true;
	notifier_lock(&all->notifier);
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (all->session[i] && all->session[i]->greeted)
			notifier_raise(&all->notifier, &all->session[i]->port_events[index], type);
	notifier_unlock(&all->notifier);
}
