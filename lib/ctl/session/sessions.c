/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>
#include "config/ctl_parts.h"
#include "net/net.h"
#include "session/session.h"
#include "session/sessions.h"
#include "sigbus.h"

void sessions_port_event(struct ctl *ctl, uint32_t index, uint32_t type)
{
	struct sessions *all = ctl->sessions;

	ctl->net->port[index].news = true;
	notifier_lock(&all->notifier);
	for (uint32_t i = 0; i < SESSION_MAX; i++)
		if (all->session[i] && all->session[i]->greeted)
			notifier_raise(&all->notifier, &all->session[i]->port_events[index], type);
	notifier_unlock(&all->notifier);
}

/* --- faults --------------------------------------------------------------------------- */

/* Faults handled per event. Each may start to end a session. */
#define FAULTS_STEP 8u

void sessions_faults_ready(struct watch *w)
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
