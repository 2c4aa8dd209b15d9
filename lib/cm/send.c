/* SPDX-License-Identifier: BSD-3-Clause */
/* Outgoing messages. */
#include <string.h>
#include "cm_impl.h"

#define SECOND 1000000000ull

/* Every message between two connections begins with these fields. */
#define O_LOCAL_ID  (MAD_DATA + 0)
#define O_REMOTE_ID (MAD_DATA + 4)

void cm_transmit(struct cm *cm, const struct cm_path *to, const uint8_t *mad)
{
	cm->count.tx[mad_attr(mad) - CM_REQ]++;
	if (mad_attr(mad) == CM_REJ)
		cm->count.refused[cm_get(mad, CM_F_REJ_REASON) % CM_REASONS]++;
	cm->ops.send(cm->arg, to, mad);
}

/* CM-10: the high half is new per exchange, the low half identifies the connection. */
uint64_t cm_tid_next(struct cm *cm, uint32_t id)
{
	return cm->next_tid++ << 32 | id;
}

/* Begins a message of this connection. */
void cm_format(struct cm_conn *c, uint8_t *mad, enum cm_attr attr)
{
	mad_begin(mad, attr, c->tid);
	put_be32(mad + O_LOCAL_ID, c->id);
	put_be32(mad + O_REMOTE_ID, c->remote_id);
}

void cm_send(struct cm *cm, struct cm_conn *c)
{
	cm_transmit(cm, &c->path, c->last);
}

/* Sends the last message, and again after every c->timeout. */
void cm_send_timed(struct cm *cm, struct cm_conn *c, uint8_t retries, uint64_t now)
{
	c->retries = retries;
	wheel_arm(&cm->wheel, &c->timer, now + c->timeout);
	cm_send(cm, c);
}

bool cm_private_fits(enum cm_attr attr, const void *p, size_t len)
{
	return len <= cm_width(cm_private_field(attr)) / 8 && (p || !len);
}

/* Called in CM_REQ_RCVD or CM_REP_RCVD (CM-18). */
void cm_send_mra(struct cm *cm, struct cm_conn *c)
{
	bool req = c->state == CM_REQ_RCVD;

	cm_format(c, c->last, CM_MRA);
	cm_put(c->last, CM_F_MRA_NAMED, req ? CM_NAMED_REQ : CM_NAMED_REP);
	cm_put(c->last, CM_F_MRA_TIMEOUT, MRA_TIMEOUT);
	c->state = req ? CM_MRA_REQ_SENT : CM_MRA_REP_SENT;
	cm_send(cm, c);
}

/* A REJ because of its GID names one that is acceptable. */
static void name_gid(uint8_t *mad, const struct cm_path *path)
{
	cm_put_bytes(mad, CM_F_REJ_ARI, path->local, sizeof(path->local));
	cm_put(mad, CM_F_REJ_ARI_LEN, sizeof(path->local));
}

/* A REJ after a timeout has no remote id: the peer finds the connection by GUID (IBA 12.6.7.2). */
void cm_send_rej(struct cm *cm, struct cm_conn *c, enum cm_rej reason, enum cm_named named,
	const void *private_data, size_t len)
{
	uint8_t ari[8];

	cm_format(c, c->last, CM_REJ);
	cm_put(c->last, CM_F_REJ_NAMED, named);
	cm_put(c->last, CM_F_REJ_REASON, reason);
	if (reason == CM_REJ_TIMEOUT) {
		put_be64(ari, cm->conf.guid);
		cm_put_bytes(c->last, CM_F_REJ_ARI, ari, sizeof(ari));
		cm_put(c->last, CM_F_REJ_ARI_LEN, sizeof(ari));
	}
	cm_put_bytes(c->last, CM_F_REJ_PRIVATE, private_data, len);
	cm_send(cm, c);
}

static void refill(struct cm_tokens *t, uint64_t rate, uint64_t now)
{
	uint64_t passed = now - t->time, more = passed < SECOND ? passed * rate / SECOND : rate;

	if (!more)
		return;
	t->left = t->left + more < rate ? t->left + more : rate;
	t->time = passed < SECOND ? t->time + more * SECOND / rate : now;
}

/* SEC-03: limits the rate of answers to messages that match no connection. Half of them are for
 * peers that get few: one that sends many cannot silence the answers to others. */
bool cm_stranger(struct cm_rx *rx)
{
	struct cm *cm = rx->cm;
	struct cm_tokens *all = &cm->strangers, *own = &cm->stranger[cm_peer(cm, rx->from)];
	uint64_t rate = cm->conf.strangers;

	refill(all, rate, rx->now);
	refill(own, rate / CM_STRANGER_SHARE, rx->now);
	if (all->left <= (own->left ? 0 : rate / 2)) {
		cm->count.strangers_limited++;
		return false;
	}
	all->left--;
	own->left -= own->left > 0;
	return true;
}

/* Sends a REJ without a connection. */
void cm_refuse(struct cm_rx *rx, enum cm_rej reason, enum cm_named named, uint32_t remote_id,
	uint32_t local_id)
{
	uint8_t mad[MAD_LEN];

	if (!cm_stranger(rx))
		return;
	mad_begin(mad, CM_REJ, mad_tid(rx->mad));
	cm_put(mad, CM_F_REJ_LOCAL_ID, local_id);
	cm_put(mad, CM_F_REJ_REMOTE_ID, remote_id);
	cm_put(mad, CM_F_REJ_NAMED, named);
	cm_put(mad, CM_F_REJ_REASON, reason);
	if (reason == CM_REJ_INVALID_GID)
		name_gid(mad, rx->from);
	cm_transmit(rx->cm, rx->from, mad);
}
