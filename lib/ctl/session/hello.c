/* SPDX-License-Identifier: BSD-3-Clause */
/* HELLO gives a session doorbells in shared memory, and a channel for events. */
#include <errno.h>
#include <string.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "config/ctl_parts.h"
#include "memory/alloc.h"
#include "net/net.h"
#include "refuse.h"
#include "session/bells.h"
#include "session/message.h"
#include "session/notifier.h"
#include "session/rings.h"
#include "session/session.h"
#include "session/sessions.h"
#include "worker.h"

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

/* Opens the channel for events of ports and of objects. */
static int open_async(struct session *s, struct reply *r)
{
	struct notifier *n = &s->ctl->sessions->notifier;
	int fd, err;

	notifier_lock(n);
	err = channel_open(&s->async, &s->events, &fd);
	for (uint32_t i = 0; i < s->ctl->net->nports; i++)
		event_source_init(&s->port_events[i], err ? NULL : &s->async, i + 1);
	notifier_unlock(n);
	if (err)
		return refuse(r->why, err,
			"rocid cannot create a channel (%s): raise its limit of open files (ulimit "
			"-n)",
			strerror(-err));
	reply_fd(r, fd);
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
	err = rings_create(s, &s->region, "roci-session", size, &fd, r->why);
	if (err)
		return err;
	reply_fd(r, fd);
	atomic_store(&((struct abi_session *)s->region.base)->epoch, ctl->sessions->epoch);
	err = add_doorbells(s, r);
	if (!err)
		err = open_async(s, r);
	if (err)
		return err;
	s->greeted = true;
	memcpy(out.device, ctl->device, sizeof(out.device));
	out.region_size = (uint32_t)s->region.size;
	reply_body(r, &out, sizeof(out));
	return 0;
}
