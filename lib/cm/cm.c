/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection table: ids, lookup by the peer's identifiers, and helpers that all states share.
 */
#include "cm.h"
#include <errno.h>
#include <string.h>
#include "cm_impl.h"

#define ID_ROUNDS 8u /* 4 are the minimum; short halves need more */

static const char state_names[CM_STATES][16] = {"idle", "req-sent", "mra-req-rcvd", "req-rcvd",
	"mra-req-sent", "rep-sent", "mra-rep-rcvd", "rep-rcvd", "mra-rep-sent", "established",
	"dreq-sent", "dreq-rcvd", "timewait", "rejected", "sidr-req-sent", "sidr-req-rcvd",
	"sidr-done"};

/* --- memory layout ------------------------------------------------------------------------- */

static uint32_t buckets_for(uint32_t n)
{
	return round_pow2(n ? n : 1);
}

static size_t aligned(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

size_t cm_size(uint32_t conns, uint32_t listeners)
{
	return aligned(sizeof(struct cm)) + aligned(sizeof(struct cm_conn) * conns) +
	       aligned(sizeof(struct cm_listener) * listeners) +
	       sizeof(uint32_t) *
		       ((size_t)buckets_for(conns) * (CM_INDEXES + 1) + buckets_for(listeners));
}

struct cm_conf cm_defaults(void)
{
	return (struct cm_conf){.response_timeout = 20,
		.max_retries = 15,
		.packet_life = 16,
		.ack_delay = 15,
		.half_open = 16384,
		.strangers = 1000};
}

static uint32_t *buckets_at(uint8_t **at, uint32_t mask)
{
	uint32_t *bucket = (uint32_t *)*at;
	size_t size = sizeof(*bucket) * ((size_t)mask + 1);

	memset(bucket, 0xFF, size);
	*at += size;
	return bucket;
}

static void lay_out(struct cm *cm)
{
	uint8_t *at = (uint8_t *)cm + aligned(sizeof(*cm));

	cm->conn = (struct cm_conn *)at;
	at += aligned(sizeof(struct cm_conn) * cm->conns);
	cm->listener = (struct cm_listener *)at;
	at += aligned(sizeof(struct cm_listener) * cm->listeners);
	cm->mask = buckets_for(cm->conns) - 1;
	cm->listen_mask = buckets_for(cm->listeners) - 1;
	for (unsigned i = 0; i < CM_INDEXES; i++)
		cm->bucket[i] = buckets_at(&at, cm->mask);
	cm->id_bucket = buckets_at(&at, cm->mask);
	cm->listen_bucket = buckets_at(&at, cm->listen_mask);
}

struct cm *cm_init(void *room, uint32_t conns, uint32_t listeners, const struct cm_conf *conf,
	const struct cm_ops *ops, void *arg, uint64_t now)
{
	struct cm *cm = room;

	cm->conf = *conf;
	cm->ops = *ops;
	cm->arg = arg;
	cm->conns = conns;
	cm->listeners = listeners;
	cm->strangers = (struct cm_tokens){.left = conf->strangers, .time = now};
	for (unsigned i = 0; i < CM_PEERS; i++)
		cm->stranger[i] = (struct cm_tokens){
			.left = conf->strangers / CM_STRANGER_SHARE, .time = now};
	cm->next_tid = 1;
	lay_out(cm);
	for (uint32_t i = 0; i < listeners; i++)
		cm->listener[i].next = i + 1 < listeners ? i + 1 : CM_NONE;
	cm->free = CM_NONE;
	cm->free_listener = listeners ? 0 : CM_NONE;
	cm_kept_init(cm);
	wheel_init(&cm->wheel, CM_TICK_SHIFT, now);
	return cm;
}

/* --- ids ------------------------------------------------------------------------------------ */

/* A Feistel permutation of 32 bits with a pseudorandom function: the ids of successive connections
 * are unrelated, and none comes again before all others have come. Otherwise a stranger who knows
 * some ids could guess the others within a second. */
static uint32_t half(const struct cm *cm, uint32_t of, uint32_t round)
{
	const uint32_t in[2] = {of, round};

	return siphash(&cm->conf.id_key, in, sizeof(in)) & 0xFFFF;
}

static uint32_t id_of(const struct cm *cm, uint32_t number)
{
	uint32_t l = number >> 16, r = number & 0xFFFF;

	for (uint32_t round = 0; round < ID_ROUNDS; round++) {
		uint32_t next = l ^ half(cm, r, round);

		l = r;
		r = next;
	}
	return l << 16 | r;
}

struct cm_conn *cm_find(struct cm *cm, uint32_t id)
{
	uint32_t slot = cm->id_bucket[id & cm->mask];

	while (slot != CM_NONE && cm->conn[slot].id != id)
		slot = cm->conn[slot].next_by_id;
	return slot == CM_NONE ? NULL : &cm->conn[slot];
}

/* CM-11: unique, nonzero, and unpredictable from any other id. */
static void take_id(struct cm *cm, struct cm_conn *c)
{
	uint32_t id, *head;

	do
		id = id_of(cm, ++cm->begun);
	while (!id || cm_find(cm, id));
	head = &cm->id_bucket[id & cm->mask];
	c->id = id;
	c->next_by_id = *head;
	*head = (uint32_t)(c - cm->conn);
}

static void drop_id(struct cm *cm, struct cm_conn *c)
{
	uint32_t *at = &cm->id_bucket[c->id & cm->mask], slot = (uint32_t)(c - cm->conn);

	while (*at != slot)
		at = &cm->conn[*at].next_by_id;
	*at = c->next_by_id;
	c->id = 0;
}

static struct cm_conn *owned(const struct cm *cm, uint32_t id)
{
	struct cm_conn *c = cm_find((struct cm *)cm, id);

	return c && c->owned ? c : NULL;
}

/* Reuses slots before it touches new ones: memory grows only with the peak number in use. */
static struct cm_conn *free_slot(struct cm *cm)
{
	struct cm_conn *c, *least;

	if (cm->free == CM_NONE && cm->touched < cm->conns)
		return &cm->conn[cm->touched++];
	least = cm->free == CM_NONE ? cm_least_kept(cm) : NULL;
	if (least)
		cm_free(cm, least);
	if (cm->free == CM_NONE)
		return NULL;
	c = &cm->conn[cm->free];
	cm->free = c->next[0];
	return c;
}

struct cm_conn *cm_alloc(struct cm *cm, const struct cm_path *path, uint64_t cookie)
{
	struct cm_conn *c = free_slot(cm);

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	wheel_timer_init(&c->timer);
	list_init(&c->node);
	take_id(cm, c);
	c->path = *path;
	c->cookie = cookie;
	c->listener = CM_NONE;
	c->owned = true;
	cm->used++;
	return c;
}

/* --- lookup by the peer's identifiers --------------------------------------------------------- */

/* Number and GUID are only what the peer claims: without the address, hosts that claim the same
 * would share a bucket. */
static uint32_t bucket_of(const struct cm *cm, enum cm_index by, uint64_t guid, uint32_t number,
	const uint8_t remote[16])
{
	uint32_t key[HASH_WORDS] = {by, number, (uint32_t)guid, (uint32_t)(guid >> 32)};

	memcpy(&key[4], remote, 16);
	return hash_words(&cm->conf.seed, key, HASH_WORDS) & cm->mask;
}

static uint32_t number_of(const struct cm_conn *c, enum cm_index by)
{
	return by == CM_BY_REMOTE_QPN ? c->remote_qpn : c->remote_id;
}

static uint32_t *bucket_of_conn(struct cm *cm, const struct cm_conn *c, enum cm_index by)
{
	return &cm->bucket[by][bucket_of(cm, by, c->guid, number_of(c, by), c->path.remote)];
}

void cm_index_add(struct cm *cm, struct cm_conn *c, enum cm_index by)
{
	uint32_t *head = bucket_of_conn(cm, c, by);

	c->next[by] = *head;
	c->indexed[by] = true;
	*head = (uint32_t)(c - cm->conn);
}

void cm_index_del(struct cm *cm, struct cm_conn *c, enum cm_index by)
{
	uint32_t *at = bucket_of_conn(cm, c, by);
	uint32_t slot = (uint32_t)(c - cm->conn);

	if (!c->indexed[by])
		return;
	while (*at != slot)
		at = &cm->conn[*at].next[by];
	*at = c->next[by];
	c->indexed[by] = false;
}

/* A GUID is only what the peer claims, so the address must match, too. */
bool cm_same_peer(const struct cm_conn *c, const struct cm_path *from)
{
	return c->path.net == from->net && c->path.vid == from->vid && c->path.port == from->port &&
	       !memcmp(c->path.remote, from->remote, sizeof(from->remote)) &&
	       !memcmp(c->path.local, from->local, sizeof(from->local));
}

struct cm_conn *cm_index_find(
	struct cm *cm, enum cm_index by, uint64_t guid, uint32_t number, const struct cm_path *from)
{
	uint32_t slot = cm->bucket[by][bucket_of(cm, by, guid, number, from->remote)];

	for (; slot != CM_NONE; slot = cm->conn[slot].next[by]) {
		struct cm_conn *c = &cm->conn[slot];

		if (c->guid == guid && number_of(c, by) == number && cm_same_peer(c, from))
			return c;
	}
	return NULL;
}

/* --- half-open connections ------------------------------------------------------------ */

/* Peers with the same hash count as one. */
unsigned cm_peer(const struct cm *cm, const struct cm_path *path)
{
	return hash_words(&cm->conf.seed, path->remote, 4) % CM_PEERS;
}

static uint32_t *half_of(struct cm *cm, const struct cm_path *path)
{
	return &cm->half_peer[cm_peer(cm, path)];
}

/* A peer may hold as many half-open connections as remain free: half of all if it is the only one,
 * a hundredth if a hundred peers take all that they may, and as many remain for the next peer. All
 * programs of one machine are a single peer to each other, so a peer may hold twice as many more
 * for users who have few. */
#define SHARES 3u

bool cm_half_room(struct cm *cm, const struct cm_listener *l, const struct cm_path *from)
{
	return l->waiting < l->backlog && cm->halves < cm->conf.half_open &&
	       *half_of(cm, from) < SHARES * (cm->conf.half_open - cm->halves);
}

/* The request of @p c included. */
static bool over_share(struct cm *cm, const struct cm_conn *c)
{
	return *half_of(cm, &c->path) > cm->conf.half_open - cm->halves + 1;
}

void cm_half_add(struct cm *cm, struct cm_conn *c, uint32_t listener)
{
	struct cm_listener *l = &cm->listener[listener];

	c->half = c->unheard = true;
	c->listener = listener;
	cm->halves++;
	++*half_of(cm, &c->path);
	l->waiting++;
	list_push(&l->requests, &c->node);
}

void cm_half_heard(struct cm *cm, struct cm_conn *c)
{
	if (!c->unheard)
		return;
	cm->listener[c->listener].waiting--;
	list_del(&c->node);
	c->unheard = false;
	c->listener = CM_NONE;
}

void cm_half_del(struct cm *cm, struct cm_conn *c)
{
	if (!c->half)
		return;
	cm_half_heard(cm, c);
	c->half = false;
	cm->halves--;
	--*half_of(cm, &c->path);
}

/* --- what all states share ------------------------------------------------------------ */

void cm_free(struct cm *cm, struct cm_conn *c)
{
	wheel_cancel(&cm->wheel, &c->timer);
	cm_half_del(cm, c);
	cm_keep_no_more(cm, c);
	for (unsigned by = 0; by < CM_INDEXES; by++)
		cm_index_del(cm, c, by);
	drop_id(cm, c);
	c->next[0] = cm->free;
	cm->free = (uint32_t)(c - cm->conn);
	cm->used--;
}

/* Frees @p c, a refused request to @p listener. Nobody has seen its id, which is that of the next
 * connection: refused requests do not use up ids. */
void cm_undo(struct cm *cm, struct cm_conn *c, uint32_t listener)
{
	cm->listener[listener].refused++;
	cm->begun--;
	cm_free(cm, c);
}

enum cm_rej cm_event(struct cm *cm, struct cm_conn *c, enum cm_event_type type, unsigned reason,
	const uint8_t *mad)
{
	struct cm_event e = {.type = type,
		.id = c->id,
		.cookie = c->cookie,
		.listener = c->listener,
		.reason = reason,
		.path = &c->path,
		.mad = mad};

	if (!c->owned)
		return 0;
	if (type == CM_EV_REQ || type == CM_EV_SIDR_REQ)
		e.over_share = over_share(cm, c);
	if (mad)
		e.private_data = cm_bytes(mad, cm_private_field(mad_attr(mad)), &e.private_len);
	return cm->ops.event(cm->arg, &e);
}

/* Keeps only the handle that the user owns; without a user, frees the slot. */
void cm_ended(struct cm *cm, struct cm_conn *c)
{
	if (!c->owned) {
		cm_free(cm, c);
		return;
	}
	wheel_cancel(&cm->wheel, &c->timer);
	cm_half_del(cm, c);
	for (unsigned by = 0; by < CM_INDEXES; by++)
		cm_index_del(cm, c, by);
	c->state = CM_IDLE;
}

/* 4.096 us * 2^n, rounded as Linux does: 2^(n - 8) ms. Peers' values are capped, because they could
 * hold a connection for hours. */
uint64_t cm_time(unsigned n)
{
	n = n < CM_TIME_MAX ? n : CM_TIME_MAX;
	return (n > 8 ? 1ull << (n - 8) : 1) * 1000000;
}

/* CM-25: twice the packet lifetime, or the peer's ACK delay if longer; Linux cm_ack_timeout(). */
uint8_t cm_ack_timeout(unsigned delay, unsigned life)
{
	unsigned t = life + 1;

	if (t >= delay)
		t += delay + 1 >= t;
	else
		t = delay + (t + 1 >= delay);
	return t < 31 ? (uint8_t)t : 31;
}

/* CM-21, QPS-23: packets of the old connection must die out before the QPN is reused. The ACK
 * timeout covers twice the packet lifetime. */
void cm_timewait(struct cm *cm, struct cm_conn *c, uint64_t now)
{
	cm_index_del(cm, c, CM_BY_REMOTE_QPN); /* the peer may reuse its QPN at once */
	c->state = CM_TIMEWAIT;
	if (!c->owned)
		cm_keep(cm, c);
	wheel_arm(&cm->wheel, &c->timer, now + cm_time(c->ack_timeout));
}

/* CM-13: keeps the answer to a request until the peer has repeated the request twice, unless its
 * timeout is very long. */
void cm_keep_answer(struct cm *cm, struct cm_conn *c, uint64_t now)
{
	unsigned timeout = cm->conf.response_timeout, longest = CM_ANSWER_TIMEOUT;

	if (timeout < c->own_timeout)
		timeout = c->own_timeout < longest ? c->own_timeout : longest;
	wheel_arm(&cm->wheel, &c->timer,
		now + 3 * (2 * cm_time(cm->conf.packet_life) + cm_time(timeout)));
}

/* --- queries -------------------------------------------------------------------------- */

int cm_state_of(const struct cm *cm, uint32_t id)
{
	const struct cm_conn *c = owned(cm, id);

	return c ? c->state : -ENOENT;
}

const char *cm_state_name(enum cm_state s)
{
	return state_names[s];
}

int cm_qp_attr(const struct cm *cm, uint32_t id, struct cm_qp_attr *a)
{
	const struct cm_conn *c = owned(cm, id);

	if (!c)
		return -ENOENT;
	if (!c->remote_qpn)
		return -EINVAL;
	*a = (struct cm_qp_attr){.dest_qpn = c->remote_qpn,
		/* CM-23: each side announces where the other's send queue starts (IBA 12.7.31) */
		.rq_psn = c->local_psn,
		.sq_psn = c->remote_psn,
		.path_mtu = c->mtu,
		.max_rd_atomic = c->init_depth,
		.max_dest_rd_atomic = c->resp_res,
		.timeout = c->ack_timeout,
		.retry_cnt = c->retry_count,
		.rnr_retry = c->rnr_retry,
		.remote_srq = c->remote_srq};
	return 0;
}

const struct cm_count *cm_counters(const struct cm *cm)
{
	return &cm->count;
}

uint32_t cm_used(const struct cm *cm)
{
	return cm->used;
}

uint32_t cm_half_open(const struct cm *cm)
{
	return cm->halves;
}
