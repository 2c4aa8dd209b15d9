/* SPDX-License-Identifier: BSD-3-Clause */
/* Port spaces: one table for all programs that use this rocid. */
#include <errno.h>
#include <string.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "refuse.h"
#include "session/ids.h"
#include "session/message.h"
#include "session/quota.h"
#include "session/session.h"
#include "text/sentence.h"
#include "worker.h"

#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT CM_PORT_MAX
#define PRIVILEGED	1024u

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

int addr_check(const struct abi_cm_addr *a, int mapped_err, char why[ABI_SENTENCE_MAX])
{
	bool is_mapped = !memcmp(a->ip, mapped, 12);

	if (a->family != 4 && a->family != 6)
		return refuse(
			why, -EINVAL, "an address must have family 4 or 6, not %u", a->family);
	if (a->family == 4 && !is_mapped)
		return refuse(
			why, -EINVAL, "an address of family 4 must have the form ::ffff:a.b.c.d");
	if (a->family == 6 && is_mapped)
		return refuse(why, mapped_err,
			"no port has an IPv6 address of the form ::ffff:a.b.c.d: give a.b.c.d as "
			"an IPv4 address");
	return 0;
}

bool addr_is_any(const struct abi_cm_addr *a)
{
	static const uint8_t none[16];

	return !memcmp(a->ip, none, 16) ||
	       (!memcmp(a->ip, mapped, 12) && !memcmp(a->ip + 12, none, 4));
}

bool addr_is_loopback(const struct abi_cm_addr *a)
{
	static const uint8_t one[16] = {[15] = 1};

	return !memcmp(a->ip, one, 16) || (!memcmp(a->ip, mapped, 12) && a->ip[12] == 127);
}

bool addr_has_device(const struct abi_cm_addr *a)
{
	return !addr_is_any(a) && !addr_is_loopback(a);
}

static struct list *bucket_of(struct connections *all, uint16_t port)
{
	return &all->bound[port % BIND_BUCKETS];
}

/* Whether one would receive requests for the other: a loopback address counts as the wildcard of
 * its family, and the wildcard of IPv6 includes IPv4, unless AFONLY. */
static bool overlap(const struct cm_id *a, const struct cm_id *b)
{
	bool any_a = !addr_has_device(&a->local), any_b = !addr_has_device(&b->local);

	if (a->local.family != b->local.family && !(any_a && a->local.family == 6 && !a->afonly) &&
		!(any_b && b->local.family == 6 && !b->afonly))
		return false;
	return any_a || any_b || !memcmp(a->local.ip, b->local.ip, 16);
}

/* @return 0, or Linux's errno: an equal address is in use, a wildcard is not available. */
static int taken(const struct cm_id *id, uint16_t port, bool listening)
{
	struct list *head = bucket_of(id->all, port);
	int err = 0;

	for (struct list *l = head->next; l != head; l = l->next) {
		const struct cm_id *o = container_of(l, struct cm_id, bind_node);

		if (o == id || o->ps != id->ps || o->local.port != port || !overlap(o, id))
			continue;
		if (o->channel->session->closing) /* in steps; a new program may begin at once */
			continue;
		if (o->state != ID_LISTEN && !listening && o->reuse && id->reuse)
			continue;
		if (!addr_has_device(&o->local) || !addr_has_device(&id->local))
			err = -EADDRNOTAVAIL;
		else
			return -EADDRINUSE;
	}
	return err;
}

int id_check_listen(struct cm_id *id, char why[ABI_SENTENCE_MAX])
{
	int err = taken(id, id->local.port, true);

	if (!err)
		return 0;
	return refuse(why, err,
		"a program already listens on port %u: end it, or choose another port",
		id->local.port);
}

static int choose_port(struct cm_id *id, char why[ABI_SENTENCE_MAX])
{
	uint32_t start = 0;
	int err = random_bytes(&start, sizeof(start));

	for (uint32_t i = 0; !err && i < EPHEMERAL_COUNT; i++) {
		uint16_t port = (uint16_t)(EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT);

		if (!taken(id, port, false)) {
			id->local.port = port;
			return 0;
		}
	}
	return refuse(
		why, err ? err : -EADDRNOTAVAIL, "no ephemeral port is free: destroy some ids");
}

static bool may_have(const struct cm_id *id, uint16_t port)
{
	return port >= PRIVILEGED || session_privileged(id->channel->session);
}

/* Takes a port for @p id at its address. */
static int take_port(struct cm_id *id, char why[ABI_SENTENCE_MAX])
{
	uint16_t port = id->local.port;
	char text[GID_TEXT];
	int err;

	if (port && !may_have(id, port))
		return refuse(why, -EACCES,
			"port %u is for privileged programs: use 1024 or higher", port);
	if (addr_has_device(&id->local) && !id_take_device(id))
		return refuse(why, -EADDRNOTAVAIL,
			"no port of rocid has the address %s: see rocictl show gids",
			gid_text(id->local.ip, text));
	if (!port)
		return choose_port(id, why);
	err = taken(id, port, false);
	return err ? refuse(why, err, "port %u is in use: choose another, or set REUSEADDR", port)
		   : 0;
}

int id_bind(struct cm_id *id, const struct abi_cm_addr *a, char why[ABI_SENTENCE_MAX])
{
	struct session *s = id->channel->session;
	int err;

	if (id->bound)
		return refuse(why, -EINVAL, "the id is already bound to port %u", id->local.port);
	err = addr_check(a, -EADDRNOTAVAIL, why);
	if (!err)
		err = quota_take_one(s, CTL_CM_PORTS, why);
	if (err)
		return err;
	id->local = *a;
	err = take_port(id, why);
	if (err) { /* leave no trace of the attempt */
		quota_give_one(s, CTL_CM_PORTS);
		id->local = (struct abi_cm_addr){0};
		id->has_path = false;
		return err;
	}
	id->bound = true;
	list_push(bucket_of(id->all, id->local.port), &id->bind_node);
	return 0;
}

void id_unbind(struct cm_id *id)
{
	if (!id->bound)
		return;
	list_del(&id->bind_node);
	quota_give_one(id->channel->session, CTL_CM_PORTS);
	id->bound = false;
}

int cmd_cm_bind(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_bind in;

	memcpy(&in, q->body, sizeof(in));
	if (id->state != ID_IDLE)
		return refuse(r->why, -EINVAL,
			"the id is already resolving, listening or connecting: create a new id "
			"for another address");
	return id_bind(id, &in.addr, r->why);
}
