/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the device, GID and neighbour that lead to an address. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bits.h"
#include "cm/connections.h"
#include "cm/id.h"
#include "config/ctl_parts.h"
#include "headers.h"
#include "loop/loop.h"
#include "mcast.h"
#include "net/net.h"
#include "refuse.h"
#include "session/message.h"
#include "session/session.h"
#include "text/sentence.h"
#include "worker.h"
#include "verbs/av.h"

#define HOP_LIMIT 64u

/* A GID table entry and its port. */
struct place {
	uint32_t port;
	int index;
	const struct gid_entry *e;
};

/* The active side's operator chooses the protocol of its connections, as with default_roce_mode in
 * Linux. */
static bool fits(const struct ctl *ctl, const struct gid_entry *e, uint8_t family)
{
	if (!e->valid || gid_is_ip4(e->gid) != (family == 4))
		return false;
	return (e->net == NET_ROCEV1) == ctl->cm_rocev1;
}

static unsigned common_bits(const uint8_t a[16], const uint8_t b[16])
{
	unsigned n = 0;

	while (n < 128 && !((a[n / 8] ^ b[n / 8]) & (0x80 >> n % 8)))
		n++;
	return n;
}

/* Finds the entry with address @p gid or, if NULL, the one closest to @p dst among those of netdev
 * @p ifindex (0: any). */
static bool find_entry(const struct ctl *ctl, uint8_t family, const uint8_t *gid,
	const uint8_t *dst, uint32_t ifindex, struct place *out)
{
	int best = -1;

	for (uint32_t i = 0; i < ctl->net->nports; i++) {
		const struct gid_table *t = &ctl->net->port[i].gids.table;

		for (uint32_t k = 0; k < t->count; k++) {
			const struct gid_entry *e = &t->entry[k];
			int near;

			if (!fits(ctl, e, family) || (gid && memcmp(gid, e->gid, 16)) ||
				(ifindex && e->ifindex != ifindex))
				continue;
			near = gid ? 128 : (int)common_bits(dst, e->gid);
			if (near <= best)
				continue;
			best = near;
			*out = (struct place){.port = i, .index = (int)k, .e = e};
		}
	}
	return best >= 0;
}

static void take_place(struct cm_id *id, const struct place *p)
{
	const struct port *shared = &id->all->ctl->dp->ports->port[p->port];

	id->path = (struct cm_path){
		.pkey = atomic_load_explicit(&shared->pkey[0], memory_order_relaxed),
		.vid = p->e->vid,
		.net = p->e->net,
		.port = (uint8_t)p->port,
		.tclass = id->tos,
		.hop_limit = HOP_LIMIT};
	memcpy(id->path.local, p->e->gid, 16);
	id->has_path = true;
}

bool id_take_device(struct cm_id *id)
{
	const struct ctl *ctl = id->all->ctl;
	static const uint8_t zero[16];
	struct place p;

	if (addr_is_loopback(&id->local)) {
		if (!find_entry(ctl, id->local.family, NULL, zero, 0, &p))
			return false;
	} else if (!find_entry(ctl, id->local.family, id->local.ip, NULL, id->local.scope, &p)) {
		return false;
	}
	take_place(id, &p);
	return true;
}

/* Chooses the source of packets to @p dst: for a wildcard, from the kernel's routes or the static
 * tables. */
static int choose_source(struct cm_id *id, const struct abi_cm_addr *dst, struct place *p,
	char why[ABI_SENTENCE_MAX])
{
	struct ctl *ctl = id->all->ctl;
	struct rtnl_route route;
	char text[GID_TEXT];
	uint32_t ifindex = dst->scope;

	if (find_entry(ctl, dst->family, dst->ip, NULL, 0, p)) /* our own address */
		return 0;
	if (!ifindex && !rtnl_route_get(&ctl->net->rtnl, NULL, dst->ip, 0, &route) &&
		route.type == RTNL_ROUTE_UNICAST &&
		find_entry(ctl, dst->family, NULL, dst->ip, route.ifindex, p))
		return 0;
	if (find_entry(ctl, dst->family, NULL, dst->ip, ifindex, p))
		return 0;
	return refuse(why, -ENODEV,
		"no port of rocid has an address from which %s can be reached: see rocictl show "
		"gids",
		gid_text(dst->ip, text));
}

void id_check_address(struct cm_id *id)
{
	bool gone = gsi_sgid_index(id->all->ctl, &id->path) < 0;
	char why[ABI_WHY_MAX / 2], text[GID_TEXT];

	if (gone && !id->address_gone && id->unread < CM_UNREAD_MAX) {
		snprintf(why, sizeof(why),
			"port %u lost the address %s: add it again, or connect from another "
			"address",
			id->path.port + 1u, gid_text(id->path.local, text));
		id_raise(id, ABI_CM_ADDR_CHANGE, 0, why);
	}
	id->address_gone = gone;
}

/* --- the command ------------------------------------------------------------------------------ */

void id_stop_resolving(struct cm_id *id)
{
	if (id->state != ID_RESOLVING)
		return;
	lookup_cancel(id);
	id->state = ID_IDLE;
}

/* As in Linux: unless the program chose the source, the next RESOLVE_ADDR of the id may need
 * another one. */
static void unchoose(struct cm_id *id)
{
	if (!id->chosen)
		return;
	id->chosen = id->has_path = false;
	memset(id->local.ip, 0, sizeof(id->local.ip));
	if (id->local.family == 4)
		memset(id->local.ip + 10, 0xFF, 2);
}

/* As in Linux, the failure is reported as a timeout, whatever ARP says. */
void id_resolved(struct cm_id *id, int err, const char *why)
{
	struct cm_note *n = id->answer;

	if (err == -EHOSTUNREACH)
		err = -ETIMEDOUT;
	if (err)
		unchoose(id);
	id->state = err ? ID_IDLE : ID_ADDR;
	id->answer = NULL;
	n->event.event = err ? ABI_CM_ADDR_ERROR : ABI_CM_ADDR_RESOLVED;
	n->event.status = err;
	if (err)
		snprintf(n->event.why, sizeof(n->event.why), "%s", why);
	note_raise(n);
}

/* Stores the address on the wire; for a loopback address or, as in Linux, a wildcard, that is the
 * device's. */
static void set_remote(struct cm_id *id, const struct abi_cm_addr *dst)
{
	id->remote = *dst;
	memcpy(id->path.remote, addr_has_device(dst) ? dst->ip : id->path.local, 16);
}

static int look_up(struct cm_id *id, uint32_t timeout_ms, char why[ABI_SENTENCE_MAX])
{
	struct ctl *ctl = id->all->ctl;
	struct dest_key key = {
		.port = id->path.port, .sgid = (uint32_t)gsi_sgid_index(ctl, &id->path)};
	int err;

	memcpy(key.dgid, id->path.remote, 16);
	err = lookup_begin(id, &key, timeout_ms, why);
	if (err == -EINPROGRESS) {
		id->state = ID_RESOLVING;
		return 0;
	}
	if (err == -ENETUNREACH || err == -EBUSY) {
		unchoose(id);
		return err;
	}
	id_resolved(id, err, why);
	return 0;
}

/* The address that the id is bound to may have left the port since. */
static int still_there(const struct cm_id *id, char why[ABI_SENTENCE_MAX])
{
	char text[GID_TEXT];

	if (gsi_sgid_index(id->all->ctl, &id->path) >= 0)
		return 0;
	return refuse(why, -ENODEV,
		"port %u no longer has the address %s: add it again, or bind another id",
		id->path.port + 1u, gid_text(id->path.local, text));
}

static int check_destination(const struct abi_cm_addr *dst, char why[ABI_SENTENCE_MAX])
{
	char text[GID_TEXT];

	if (!addr_has_device(dst) || av_is_unicast(dst->ip) || gid_is_multicast(dst->ip))
		return 0;
	return refuse(why, -ENETUNREACH, "no host and no group can have the address %s",
		gid_text(dst->ip, text));
}

static int take_source(
	struct cm_id *id, const struct abi_cm_resolve_addr *in, char why[ABI_SENTENCE_MAX])
{
	static const uint8_t loopback4[16] = {[10] = 0xFF, 0xFF, 127, [15] = 1};
	static const uint8_t loopback6[16] = {[15] = 1};
	struct abi_cm_addr any = {.family = in->dst.family};
	struct place p;
	int err = 0;

	if (in->dst.family == 4)
		memset(any.ip + 10, 0xFF, 2);
	if (!id->bound)
		err = id_bind(id, in->src.family ? &in->src : &any, why);
	if (!err && id->local.family != in->dst.family)
		err = refuse(why, -EINVAL, "the id is bound to an address of another family");
	if (!err && id->has_path)
		err = still_there(id, why);
	if (err || id->has_path)
		return err;
	id->chosen = addr_is_any(&id->local);
	if (!addr_has_device(&in->dst)) {
		memcpy(id->local.ip, in->dst.family == 4 ? loopback4 : loopback6, 16);
		id->local.family = in->dst.family;
		return id_take_device(id) ? 0
					  : refuse(why, -ENODEV, "no port of rocid has an address");
	}
	err = choose_source(id, &in->dst, &p, why);
	if (err)
		return err;
	take_place(id, &p);
	memcpy(id->local.ip, p.e->gid, 16);
	id->local.family = in->dst.family;
	return 0;
}

/* id->answer waits to be raised. */
static int resolve(struct cm_id *id, const struct abi_cm_resolve_addr *in, struct reply *r)
{
	int err = take_source(id, in, r->why);

	if (err == -ENODEV) { /* an event, as in Linux */
		id_resolved(id, err, r->why);
		return 0;
	}
	if (err)
		return err;
	set_remote(id, &in->dst);
	if (gid_is_multicast(id->path.remote)) { /* for a group, there is no neighbour to query */
		id_resolved(id, 0, NULL);
		return 0;
	}
	return look_up(id, in->timeout_ms, r->why);
}

int cmd_cm_resolve_addr(struct cm_id *id, const struct request *q, struct reply *r)
{
	struct abi_cm_resolve_addr in;
	int err;

	memcpy(&in, q->body, sizeof(in));
	if (id->state != ID_IDLE)
		return refuse(r->why, -EINVAL,
			"the id has resolved its address already: create a new id");
	err = addr_check(&in.dst, -ENETUNREACH, r->why);
	if (!err)
		err = check_destination(&in.dst, r->why);
	if (!err)
		err = note_asked(id, ABI_CM_ADDR_RESOLVED, &id->answer, r->why);
	if (err)
		return err;
	err = resolve(id, &in, r);
	if (err) {
		note_free(id->answer);
		id->answer = NULL;
	}
	return err;
}

/* ENT-07..09, as Linux: the source address's label, or one of both ports. */
static uint32_t flow_label(const struct cm_id *id)
{
	uint32_t own = id->local.family == 6 ? id->local.flow_label & FLOW_LABEL_MASK : 0;

	if (id->path.net == NET_ROCEV1) /* V1-01 */
		return 0;
	if (own)
		return own;
	return cm_flow_label(id->remote.port, id->local.port, id->all->ctl->plain_label);
}

int cmd_cm_resolve_route(struct cm_id *id, const struct request *q, struct reply *r)
{
	if (id->state != ID_ADDR)
		return refuse(r->why, -EINVAL, "resolve the address first");
	if (gsi_sgid_index(id->all->ctl, &id->path) < 0)
		return refuse(r->why, -ENODEV,
			"the address of the id no longer exists: bind another id, and resolve "
			"again");
	id->path.flow_label = flow_label(id);
	id->state = ID_ROUTE;
	id_raise(id, ABI_CM_ROUTE_RESOLVED, 0, NULL);
	return 0;
}
