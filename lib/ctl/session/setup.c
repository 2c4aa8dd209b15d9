/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets up what all sessions share, and tears it down. */
#include <errno.h>
#include "config/ctl_parts.h"
#include "loop/reaper.h"
#include "session/mapping.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"

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
	all->faults = (struct watch){.fd = -1, .ready = sessions_faults_ready};
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
