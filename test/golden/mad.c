/* SPDX-License-Identifier: BSD-3-Clause */
/* The communication manager and a datagram to QP1. */
#include "golden.h"
#include <stdlib.h>
#include <string.h>
#include "cm.h"

#define NOW 1000000000ull

struct heard {
	unsigned sent, events;
	uint8_t mad[MAD_LEN];
};

static void on_send(void *arg, const struct cm_path *to, const uint8_t mad[MAD_LEN])
{
	struct heard *h = arg;

	(void)to;
	h->sent++;
	memcpy(h->mad, mad, MAD_LEN);
}

static enum cm_rej on_event(void *arg, const struct cm_event *e)
{
	(void)e;
	((struct heard *)arg)->events++;
	return 0;
}

static void gid_of_packet(const struct pkt *p, struct cm_path *path)
{
	*path = (struct cm_path){.net = p->net, .pkey = p->pkey};
	if (p->net == NET_IPV4) {
		memset(path->remote + 10, 0xFF, 2);
		memset(path->local + 10, 0xFF, 2);
		memcpy(path->remote + 12, p->l3 + 12, 4);
		memcpy(path->local + 12, p->l3 + 16, 4);
	} else {
		memcpy(path->remote, p->l3 + 8, 16);
		memcpy(path->local, p->l3 + 24, 16);
	}
}

/* Nobody listens and nothing is connected: a stranger's MAD. */
static void hear(const struct trial *t, struct heard *h)
{
	const struct cm_ops ops = {.send = on_send, .event = on_event};
	const struct cm_conf conf = cm_defaults();
	void *room = calloc(1, cm_size(4, 4));
	struct cm_path from;
	struct cm *cm;

	if (!room)
		abort();
	cm = cm_init(room, 4, 4, &conf, &ops, h, NOW);
	gid_of_packet(&t->p, &from);
	cm_mad(cm, &from, t->p.payload, t->p.payload_len, NOW);
	free(room);
}

static uint64_t field_of(struct golden *g, const uint8_t *mad, const char *name)
{
	enum cm_field f = cm_field_find(mad_attr(mad), name);

	if (!strcmp(name, "tid"))
		return mad_tid(mad);
	if (f != CM_FIELD_END && cm_width(f) <= 64)
		return cm_get(mad, f);
	item_fail(g, "%s has no field %s", cm_attr_name(mad_attr(mad)), name);
	return 0;
}

/* A vector also names the service of the connection that a message without one belongs to. */
static bool is_of_connection(const uint8_t *mad, const char *name)
{
	return !strcmp(name, "service_id") && cm_field_find(mad_attr(mad), name) == CM_FIELD_END;
}

/* A vector names the ids as A does: in a message to A, A's is the remote one. */
static const char *as_sent(const struct trial *t, const char *name)
{
	if (t->to_a && !strcmp(name, "local_comm_id"))
		return "remote_comm_id";
	if (t->to_a && !strcmp(name, "remote_comm_id"))
		return "local_comm_id";
	return name;
}

static void check_message(struct golden *g, const struct trial *t)
{
	const json_t *cm = json_object_get(t->expect, "cm");
	const char *name;
	json_t *v;

	if (mad_check(t->p.payload, t->p.payload_len) != MAD_CM) {
		item_fail(g, "it is no message of the communication manager");
		return;
	}
	json_object_foreach((json_t *)cm, name, v)
	{
		if (!is_of_connection(t->p.payload, name))
			same_number(g, name, field_of(g, t->p.payload, as_sent(t, name)), v);
	}
}

static void check_rejected(struct golden *g, const struct trial *t)
{
	const json_t *reason = json_object_get(t->expect, "reason_code");
	struct heard h = {0};

	hear(t, &h);
	if (h.sent != 1 || mad_attr(h.mad) != CM_REJ)
		item_fail(g, "it is not rejected");
	else if (reason)
		same_number(g, "reason_code", cm_get(h.mad, CM_F_REJ_REASON), reason);
}

void check_mad(struct golden *g, const struct trial *t)
{
	struct heard h = {0};

	if (!strcmp(t->result, "cm_rej")) {
		check_rejected(g, t);
	} else if (!strcmp(t->result, "drop_silent")) {
		hear(t, &h);
		if (h.sent || h.events || mad_check(t->p.payload, t->p.payload_len) == MAD_CM)
			item_fail(g, "the communication manager does not drop it");
	} else {
		check_message(g, t);
	}
}
