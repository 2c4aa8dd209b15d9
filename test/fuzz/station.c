/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "admin/admin.h"
#include "cm/connections.h"
#include "cm/manager.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "mr.h"
#include "oracle.h"
#include "session/job.h"
#include "session/session.h"
#include "session/sessions.h"
#include "station.h"
#include "verbs/objects.h"
#include "worker_impl.h"

#define EVENTS_MAX   10000 /* of one turn: more is a loop without an end */
#define CLOSE_TRIES  12000 /* of 10 ms, for the threads that close descriptors */
#define COUNT_FDS_AT 8	   /* inputs between two looks at the descriptors */

static struct test_daemon *d;
static unsigned nfds;
static uint32_t nqps, nkeys; /* of the session that has QP1 */

/* But for pipes, by which a sanitizer talks with its symbolizer. */
static unsigned count_fds(bool tell)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;
	struct dirent *e;

	MUST(dir);
	while ((e = readdir(dir))) {
		char to[64] = "";

		n += readlinkat(dirfd(dir), e->d_name, to, sizeof(to) - 1) > 0 &&
		     strncmp(to, "pipe:", 5) != 0;
		if (tell)
			fprintf(stderr, "descriptor %s: %s\n", e->d_name, to);
	}
	closedir(dir);
	return n;
}

static uint32_t count_qps(void)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < TEST_WORKERS; i++)
		n += d->ctl->objects->worker_qps[i];
	return n;
}

static uint32_t count_keys(void)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < MR_MAX; i++)
		n += atomic_load(&d->dp->mrs->slot[i]) != NULL;
	return n;
}

static void stop(void)
{
	ctl_destroy(d->ctl);
	rmdir(d->dir);
}

void station_start(void)
{
	void *state = NULL;

	MUST(!daemon_group_setup(&state));
	d = state;
	daemon_config(d);
	MUST(!ctl_start(&d->ctl, &d->cfg, d->why));
	MUST(!connections_open(d->ctl->connections, d->why));
	atexit(stop);
	station_turn();
	nfds = count_fds(false);
	nqps = count_qps();
	nkeys = count_keys();
}

struct ctl *station_ctl(void)
{
	return d->ctl;
}

const char *station_path(void)
{
	return d->path;
}

void station_turn(void)
{
	unsigned n = 0;

	while (loop_wait(d->ctl->loop, 0) == 1)
		MUST(n++ < EVENTS_MAX);
	gsi_poll(&d->ctl->connections->gsi); /* whatever the notifier's thread is at */
	connections_poll(d->ctl);
	while (sessions_close_some(d->ctl) || jobs_poll(d->ctl))
		MUST(n++ < EVENTS_MAX);
}

void station_work(unsigned i, unsigned rounds)
{
	struct worker *w = d->dp->worker[i % TEST_WORKERS];

	/* In between it is at rest, and the control thread executes its commands. */
	worker_begin(w);
	while (rounds--)
		worker_round(w);
	worker_end(w);
}

/* But for the session that has QP1. */
void station_must_be_empty(void)
{
	static unsigned inputs;
	const struct ctl *ctl = d->ctl;
	const struct session *own = ctl->connections->gsi.session;
	unsigned tries = 0;

	MUST(own);

	/* An application may have sent its own socket, which the closer's threads end. */
	for (unsigned i = 0; i < CLOSE_TRIES && ctl->sessions->nsessions > 1; i++) {
		usleep(10000);
		station_turn();
	}
	MUST(ctl->sessions->nsessions == 1 && ctl->sessions->nclosing == 0 &&
		ctl->admin->ncaptures == 0);
	MUST(ctl->objects->pds.used == own->pds.used &&
		ctl->objects->qpns.count == QP_MAX - own->qps.used);
	for (unsigned k = 0; k < CTL_KINDS; k++)
		MUST(ctl->sessions->quota.used[k] == own->used[k]);
	MUST(count_qps() == nqps && count_keys() == nkeys);
	MUST(ctl->connections->ids.used == 0 && ctl->connections->channels.used == 0);
	if (inputs++ % COUNT_FDS_AT)
		return;
	while (count_fds(false) > nfds && tries++ < CLOSE_TRIES)
		usleep(10000);
	MUST(count_fds(tries > CLOSE_TRIES) <= nfds);
}
