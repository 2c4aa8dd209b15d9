/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects lib/cm to QP1 and to programs: set-up, time, shutdown. */
#include "cm/manager.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/events.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "loop/loop.h"
#include "net/net.h"
#include "refuse.h"
#include "session/ids.h"
#include "session/session.h"
#include "worker.h"

#define NS_PER_MS	   1000000ull
#define RESOLVE_TICK_SHIFT 20u /* 1 ms, the unit of the timeouts */

struct connections *connections_create(struct ctl *ctl)
{
	struct connections *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->ctl = ctl;
	handles_init(&all->ids, HANDLES_MAX);
	handles_init(&all->channels, HANDLES_MAX);
	for (unsigned i = 0; i < BIND_BUCKETS; i++)
		list_init(&all->bound[i]);
	for (unsigned i = 0; i < SESSION_MAX; i++)
		list_init(&all->lookups[i]);
	list_init(&all->answered);
	wheel_init(&all->resolving, RESOLVE_TICK_SHIFT, loop_now_ns());
	return all;
}

static void mad_arrived(void *arg, const struct cm_path *from, const uint8_t *mad, size_t len)
{
	struct connections *all = arg;

	all->fresh = all->withdrawn = NULL;
	cm_mad(all->cm, from, mad, len, loop_now_ns());
	if (all->withdrawn)
		id_destroy(all->withdrawn);
	if (all->fresh)
		cm_adopt(all->cm, all->fresh->conn, all->fresh->handle, id_sender(all->fresh));
}

static void send_mad(void *arg, const struct cm_path *to, const uint8_t mad[MAD_LEN])
{
	gsi_send(&((struct connections *)arg)->gsi, to, mad);
}

static int make_conf(const struct connections *all, struct cm_conf *conf)
{
	uint8_t gid[16];
	int err = random_bytes(&conf->seed, sizeof(conf->seed));

	conf->half_open = CM_REQUEST_MAX;
	conf->linux_labels = all->ctl->plain_label;
	gid_of_mac(gid, all->ctl->net->port[0].mac);
	for (unsigned i = 8; i < 16; i++)
		conf->guid = conf->guid << 8 | gid[i];
	if (all->ctl->cm_timeout)
		conf->response_timeout = all->ctl->cm_timeout;
	if (all->ctl->cm_retries)
		conf->max_retries = all->ctl->cm_retries;
	return err ? err : random_bytes(&conf->id_key, sizeof(conf->id_key));
}

int connections_open(struct connections *all, char why[ABI_SENTENCE_MAX])
{
	const struct cm_ops ops = {.send = send_mad, .event = connections_event};
	struct cm_conf conf = cm_defaults();
	int err = make_conf(all, &conf);

	if (err)
		return refuse(
			why, err, "the kernel returned no random numbers: %s", strerror(-err));
	all->room = calloc(1, cm_size(CONNECTIONS_MAX, CM_LISTENERS_MAX));
	if (!all->room)
		return refuse_memory(why);
	all->gsi.mad = mad_arrived;
	all->gsi.arg = all;
	all->cm = cm_init(
		all->room, CONNECTIONS_MAX, CM_LISTENERS_MAX, &conf, &ops, all, loop_now_ns());
	err = gsi_open(&all->gsi, all->ctl, why);
	if (err)
		connections_close(all);
	return err;
}

void connections_close(struct connections *all)
{
	uint32_t cursor = 0;
	struct cm_channel *ch;

	if (!all)
		return;
	while ((ch = handle_next(&all->channels, &cursor)))
		channel_destroy(ch);
	gsi_close(&all->gsi);
	memset(&all->gsi, 0, sizeof(all->gsi));
	all->cm = NULL;
	free(all->room);
	all->room = NULL;
}

void connections_destroy(struct connections *all)
{
	if (!all)
		return;
	handles_free(&all->ids);
	handles_free(&all->channels);
	free(all);
}

/* Milliseconds until @p at, at least one, so that the loop never spins on a deadline. */
static int wait_until(uint64_t at, uint64_t now)
{
	if (at == WHEEL_NEVER)
		return -1;
	return at <= now ? 1 : (int)RTE_MIN((at - now + NS_PER_MS - 1) / NS_PER_MS, 60000ull);
}

void connections_addresses_changed(struct ctl *ctl, uint32_t port)
{
	ctl->connections->changed |= 1u << port;
}

/* A change during a round starts another round afterwards, so that even endless changes leave no id
 * unchecked. @return whether there are more. */
static bool check_addresses(struct connections *all)
{
	struct cm_id *id;

	if (!all->checking) {
		all->checking = all->changed;
		all->changed = all->checked = 0;
	}
	for (unsigned n = 0; all->checking && n < CM_STEP; n++) {
		id = handle_next(&all->ids, &all->checked);
		if (!id)
			all->checking = 0;
		else if (id->has_path && all->checking & 1u << id->path.port &&
			 !id->channel->session->closing)
			id_check_address(id);
	}
	return all->checking || all->changed;
}

/* Each part in steps, because programs determine how much is due at once.  @return whether there is
 * more. */
static bool poll_some(struct connections *all, uint64_t now)
{
	bool more = check_addresses(all);

	if (all->gsi.more)
		more |= gsi_poll(&all->gsi);
	if (cm_deadline(all->cm) <= now)
		more |= !cm_expire(all->cm, now, CM_STEP);
	return lookups_expire(all, now) || more;
}

int connections_poll(struct ctl *ctl)
{
	struct connections *all = ctl->connections;
	uint64_t now = loop_now_ns();
	int wait;

	if (!all->cm)
		return -1;
	wait = poll_some(all, now) ? 0 : wait_until(cm_deadline(all->cm), now);
	if (gsi_flush(&all->gsi))
		wait = loop_sooner(wait, 1);
	wait = loop_sooner(wait, gsi_reopen(&all->gsi));
	return loop_sooner(wait, wait_until(wheel_deadline(&all->resolving), now));
}
