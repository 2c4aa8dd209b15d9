/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bits.h"
#include "config/capacity.h"
#include "config/ctl_parts.h"
#include "loop/reaper.h"
#include "refuse.h"
#include "session/account.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "worker.h"

#define MB_SHIFT 20
#define NO_LIMIT UINT32_MAX

/* A kind that is counted. A session limit of 0 means no limit. */
struct row {
	const char *things;
	const char *remedy;
	const char *option; /* rocid's option for an application's limit; NULL: rocictl sets it */
	const char *user_option; /* likewise */
	uint32_t session;	 /* the maximum per application; for bytes, the default in MB */
	uint32_t user_eighths;	 /* of the capacity: the default per user */
	bool bytes;
};

static const struct row rows[CTL_KINDS] = {
	[CTL_SESSIONS] = {"applications", "end one", NULL, "--max-sessions", 0, 4, false},
	/* Three quarters, so that one user can have 10,000 QPs and their mappings. */
	[CTL_QPS] = {"QPs", "destroy some", "--max-qps", "--max-user-qps", SESSION_QP_MAX, 6,
		false},
	[CTL_CQS] = {"CQs", "let QPs share one", "--max-cqs", "--max-user-cqs", SESSION_CQ_MAX, 4,
		false},
	[CTL_KEYS] = {"memory regions and windows", "register larger ones", "--max-mrs",
		"--max-user-mrs", SESSION_MR_MAX, 4, false},
	[CTL_PDS] = {"protection domains", "share one", NULL, NULL, SESSION_PD_MAX, 4, false},
	[CTL_SRQS] = {"SRQs", "let QPs share one", NULL, NULL, SESSION_SRQ_MAX, 4, false},
	[CTL_XRCDS] = {"XRC domains", "close some", NULL, NULL, SESSION_XRCD_MAX, 4, false},
	[CTL_AHS] = {"address handles", "destroy some", NULL, NULL, SESSION_AH_MAX, 4, false},
	[CTL_GROUPS] = {"multicast groups", "detach from some", NULL, NULL, 0, 4, false},
	[CTL_ATTACHMENTS] = {"attachments to multicast groups", "detach some", NULL, NULL,
		SESSION_MCAST_MAX, 4, false},
	[CTL_CHANNELS] = {"channels", "let CQs share one", NULL, NULL, SESSION_CHANNEL_MAX, 8,
		false},
	[CTL_DESCRIPTORS] = {"descriptors open in rocid", "destroy channels or XRC domains", NULL,
		NULL, 0, 4, false},
	[CTL_MAPPINGS] = {"mappings in rocid", "register larger regions", NULL, NULL, 0, 6, false},
	[CTL_MEMORY] = {"MB of registered memory", "deregister some", "--max-memory",
		"--max-user-memory", 0, 4, true},
	[CTL_LOOKUPS] = {"pending destination lookups", "wait for some", NULL, NULL,
		SESSION_RESOLVE_MAX, 4, false},
	[CTL_CM_IDS] = {"CM ids", "destroy some", NULL, NULL, SESSION_CM_ID_MAX, 4, false},
	[CTL_CM_PORTS] = {"bound ports of CM ids", "destroy some ids", NULL, NULL,
		SESSION_CM_PORT_MAX, 4, false},
	[CTL_LISTENERS] = {"CM listeners", "destroy some", NULL, NULL, SESSION_LISTENER_MAX, 4,
		false},
	[CTL_CONNECTIONS] = {"connections", "end some", "--max-connections",
		"--max-user-connections", SESSION_CONNECTION_MAX, 4, false},
	[CTL_CM_REQUESTS] = {"unanswered CM requests", "accept or reject some", NULL, NULL,
		SESSION_CM_REQUEST_MAX, 4, false},
	[CTL_CM_EVENTS] = {"unread CM events", "read some", NULL, NULL, SESSION_CM_EVENT_MAX, 4,
		false},
	[CTL_QUEUES] = {"MB of queues", "ask for shorter ones", "--max-queues", "--max-user-queues",
		SESSION_QUEUE_MB, 4, true},
};

/* --- limits --------------------------------------------------------------------------- */

const char *const quota_limit_names[] = {"sessions", "qps", "cqs", "mrs", "queues_mb", "memory_mb",
	"pds", "srqs", "xrcds", "ahs", "attachments", "channels", "user_qps", "user_memory_mb",
	"user_cqs", "user_mrs", "user_queues_mb", "user_pds", "user_srqs", "user_xrcds", "user_ahs",
	"user_groups", "user_attachments", "user_descriptors", "user_mappings", "lookups",
	"user_lookups", "connections", "cm_ids", "cm_ports", "listeners", "cm_events",
	"user_connections", "user_cm_ids", "user_cm_ports", "user_listeners", "user_cm_events",
	"cm_requests", "user_cm_requests", NULL};

/* In the order of the names. */
static const struct {
	enum ctl_kind kind;
	bool user;
} places[] = {
	{CTL_SESSIONS, true},
	{CTL_QPS, false},
	{CTL_CQS, false},
	{CTL_KEYS, false},
	{CTL_QUEUES, false},
	{CTL_MEMORY, false},
	{CTL_PDS, false},
	{CTL_SRQS, false},
	{CTL_XRCDS, false},
	{CTL_AHS, false},
	{CTL_ATTACHMENTS, false},
	{CTL_CHANNELS, false},
	{CTL_QPS, true},
	{CTL_MEMORY, true},
	{CTL_CQS, true},
	{CTL_KEYS, true},
	{CTL_QUEUES, true},
	{CTL_PDS, true},
	{CTL_SRQS, true},
	{CTL_XRCDS, true},
	{CTL_AHS, true},
	{CTL_GROUPS, true},
	{CTL_ATTACHMENTS, true},
	{CTL_DESCRIPTORS, true},
	{CTL_MAPPINGS, true},
	{CTL_LOOKUPS, false},
	{CTL_LOOKUPS, true},
	{CTL_CONNECTIONS, false},
	{CTL_CM_IDS, false},
	{CTL_CM_PORTS, false},
	{CTL_LISTENERS, false},
	{CTL_CM_EVENTS, false},
	{CTL_CONNECTIONS, true},
	{CTL_CM_IDS, true},
	{CTL_CM_PORTS, true},
	{CTL_LISTENERS, true},
	{CTL_CM_EVENTS, true},
	{CTL_CM_REQUESTS, false},
	{CTL_CM_REQUESTS, true},
};

_Static_assert(ARRAY_SIZE(places) + 1 == ARRAY_SIZE(quota_limit_names), "each limit has a name");

uint32_t *quota_limit(struct ctl_limits *l, unsigned i)
{
	enum ctl_kind kind = places[i].kind;

	return places[i].user ? &l->user[kind] : &l->session[kind];
}

static const char *limit_name(enum ctl_kind kind, bool user)
{
	for (unsigned i = 0; i < ARRAY_SIZE(places); i++)
		if (places[i].kind == kind && places[i].user == user)
			return quota_limit_names[i];
	return "";
}

static uint32_t limit(uint32_t wanted, uint64_t normal, uint64_t most)
{
	uint64_t l = wanted ? wanted : normal;

	if (most > NO_LIMIT)
		most = NO_LIMIT;
	return (uint32_t)(l < most ? l : most);
}

/* @return @p n in the unit of the limits of @p kind. */
static uint64_t in_units(enum ctl_kind kind, uint64_t n)
{
	return rows[kind].bytes ? n >> MB_SHIFT : n;
}

static uint32_t session_limit(const struct quota *q, enum ctl_kind kind, uint32_t wanted)
{
	const struct row *r = &rows[kind];

	if (r->bytes)
		return limit(wanted, r->session ? r->session : in_units(kind, q->capacity[kind]),
			NO_LIMIT);
	return r->session ? limit(wanted, r->session, r->session) : NO_LIMIT;
}

static uint32_t user_limit(const struct quota *q, enum ctl_kind kind, uint32_t wanted)
{
	const struct row *r = &rows[kind];
	uint64_t capacity = in_units(kind, q->capacity[kind]);
	uint64_t normal = capacity / 8 * r->user_eighths;

	return limit(wanted, normal ? normal : 1, r->bytes ? NO_LIMIT : capacity);
}

struct ctl_limits quota_limits(const struct quota *q, const struct ctl_limits *wanted)
{
	struct ctl_limits l;

	for (unsigned k = 0; k < CTL_KINDS; k++) {
		l.session[k] = session_limit(q, k, wanted->session[k]);
		l.user[k] = user_limit(q, k, wanted->user[k]);
	}
	return l;
}

void quota_init(struct quota *q, const struct ctl_limits *wanted)
{
	memset(q, 0, sizeof(*q));
	list_init(&q->accounts);
	capacity_of_machine(q->capacity);
	q->limits = quota_limits(q, wanted);
}

uint32_t quota_most(const struct session *s, enum ctl_kind kind)
{
	const struct ctl_limits *l = &s->ctl->sessions->quota.limits;
	uint32_t most = l->session[kind];

	return s->peer.uid && l->user[kind] < most ? l->user[kind] : most;
}

/* --- accounts ------------------------------------------------------------------------- */

/* Deducts from @p a the memory that has been unmapped. */
static void collect_kind(
	struct quota *q, struct account *a, struct reaped *done, enum ctl_kind kind)
{
	uint64_t bytes = atomic_exchange_explicit(&done->bytes, 0, memory_order_acquire);
	uint64_t mappings = atomic_exchange_explicit(&done->mappings, 0, memory_order_acquire);

	a->retired[kind] -= bytes;
	q->retired[kind] -= bytes;
	a->retired[CTL_MAPPINGS] -= mappings;
	q->retired[CTL_MAPPINGS] -= mappings;
}

static void collect(struct quota *q, struct account *a)
{
	collect_kind(q, a, &a->memory, CTL_MEMORY);
	collect_kind(q, a, &a->queues, CTL_QUEUES);
}

static void collect_all(struct quota *q)
{
	for (struct list *l = q->accounts.next; l != &q->accounts; l = l->next)
		collect(q, container_of(l, struct account, node));
}

/* Neither a session nor the unmapper refers to it: the unmapper counts bytes last. */
static bool is_empty(const struct account *a)
{
	return !a->used[CTL_SESSIONS] && !a->retired[CTL_MEMORY] && !a->retired[CTL_QUEUES];
}

static void free_empty(struct quota *q)
{
	struct list *next;

	for (struct list *l = q->accounts.next; l != &q->accounts; l = next) {
		struct account *a = container_of(l, struct account, node);

		next = l->next;
		collect(q, a);
		if (!is_empty(a))
			continue;
		list_del(l);
		free(a);
	}
}

void quota_destroy(struct quota *q)
{
	free_empty(q);
}

static struct account *account_of(struct quota *q, uid_t uid)
{
	struct account *a;

	for (struct list *l = q->accounts.next; l != &q->accounts; l = l->next) {
		a = container_of(l, struct account, node);
		if (a->uid == uid)
			return a;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->uid = uid;
	list_push(&q->accounts, &a->node);
	return a;
}

/* --- charges -------------------------------------------------------------------------- */

static uint64_t in_bytes(enum ctl_kind kind, uint32_t limit)
{
	if (limit == NO_LIMIT)
		return UINT64_MAX;
	return rows[kind].bytes ? (uint64_t)limit << MB_SHIFT : limit;
}

static bool beyond(uint64_t used, uint64_t n, uint64_t most)
{
	return used > most || n > most - used;
}

static int error_of(enum ctl_kind kind)
{
	switch (kind) {
	case CTL_SESSIONS:
		return -EUSERS;
	case CTL_LOOKUPS: /* temporary */
		return -EBUSY;
	case CTL_CM_EVENTS: /* as of one id */
		return -ENOBUFS;
	default:
		return -EDQUOT;
	}
}

static int check_session(const struct session *s, const struct charge *c, char *why)
{
	uint32_t most = s->ctl->sessions->quota.limits.session[c->kind];
	const struct row *r = &rows[c->kind];

	if (!beyond(s->used[c->kind], c->n, in_bytes(c->kind, most)))
		return 0;
	return refuse(why, error_of(c->kind),
		"the application would exceed its limit of %u %s: %s, or %s %s", most, r->things,
		r->remedy, r->option ? "raise rocid's" : "raise the limit with rocictl set limit",
		r->option ? r->option : limit_name(c->kind, false));
}

static int check_user(const struct session *s, const struct charge *c, char *why)
{
	uint32_t most = s->ctl->sessions->quota.limits.user[c->kind];
	const struct row *r = &rows[c->kind];

	if (!beyond(s->account->used[c->kind], c->n, in_bytes(c->kind, most)))
		return 0;
	return refuse(why, error_of(c->kind),
		"all applications of user %u would exceed their limit of %u %s: %s, or %s %s",
		s->peer.uid, most, r->things, r->remedy,
		r->user_option ? "raise rocid's" : "raise the limit with rocictl set limit",
		r->user_option ? r->user_option : limit_name(c->kind, true));
}

/* A user whose limit was raised above the machine's default must be able to reach it. */
static uint64_t capacity_of(const struct quota *q, enum ctl_kind kind)
{
	uint64_t most = in_bytes(kind, q->limits.user[kind]);
	uint64_t whole;

	if (!rows[kind].bytes || most == UINT64_MAX)
		return rows[kind].bytes ? UINT64_MAX : q->capacity[kind];
	whole = most / (USER_RESERVE - 1) * USER_RESERVE;
	return whole > q->capacity[kind] ? whole : q->capacity[kind];
}

/* @return whether @p a, including @p c, has so little that it may use the last quarter. */
static bool is_small(const struct quota *q, const struct account *a, const struct charge *c)
{
	uint64_t own = a->used[c->kind] + a->retired[c->kind];

	return !beyond(own, c->n, capacity_of(q, c->kind) / USER_SMALL);
}

bool quota_has_little(const struct session *s, enum ctl_kind kind)
{
	return is_small(&s->ctl->sessions->quota, s->account, &(struct charge){kind, 1});
}

enum room {
	ROOM,
	ROOM_RESERVED, /* only for users who have less */
	ROOM_NONE
};

static enum room room_for(const struct quota *q, const struct account *a, const struct charge *c)
{
	uint64_t capacity = capacity_of(q, c->kind);
	uint64_t all = q->used[c->kind] + q->retired[c->kind];

	if (beyond(all, c->n, capacity))
		return ROOM_NONE;
	return beyond(all, c->n, capacity - capacity / USER_RESERVE) && !is_small(q, a, c)
		       ? ROOM_RESERVED
		       : ROOM;
}

static int check_room(const struct session *s, const struct charge *c, char *why)
{
	struct quota *q = &s->ctl->sessions->quota;
	unsigned long long capacity = in_units(c->kind, capacity_of(q, c->kind));
	const struct row *r = &rows[c->kind];
	enum room room = room_for(q, s->account, c);

	if (room != ROOM) {
		collect_all(q); /* and check again */
		room = room_for(q, s->account, c);
	}
	if (room == ROOM)
		return 0;
	if (room == ROOM_NONE)
		return refuse(why, error_of(c->kind),
			"rocid has %llu %s, and all are in use: %s, or end other applications",
			capacity, r->things, r->remedy);
	return refuse(why, error_of(c->kind),
		"rocid has %llu %s and reserves the last quarter for users who have at most %llu: "
		"%s, or end other applications",
		capacity, r->things, capacity / USER_SMALL, r->remedy);
}

static int check(const struct session *s, const struct charge *c, char *why)
{
	int err = check_session(s, c, why);

	if (err || !s->peer.uid)
		return err;
	err = check_user(s, c, why);
	return err ? err : check_room(s, c, why);
}

static void add(struct session *s, const struct charge *c)
{
	s->used[c->kind] += c->n;
	s->account->used[c->kind] += c->n;
	s->ctl->sessions->quota.used[c->kind] += c->n;
}

static void take_off(struct session *s, const struct charge *c)
{
	s->used[c->kind] -= c->n;
	s->account->used[c->kind] -= c->n;
	s->ctl->sessions->quota.used[c->kind] -= c->n;
}

int quota_take(struct session *s, const struct charge c[], unsigned n, char why[ABI_SENTENCE_MAX])
{
	for (unsigned i = 0; i < n; i++) {
		int err = check(s, &c[i], why);

		if (err) {
			quota_give(s, c, i);
			return err;
		}
		add(s, &c[i]);
	}
	return 0;
}

void quota_give(struct session *s, const struct charge c[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		take_off(s, &c[i]);
}

int quota_take_one(struct session *s, enum ctl_kind kind, char why[ABI_SENTENCE_MAX])
{
	return quota_take(s, &(struct charge){kind, 1}, 1, why);
}

void quota_give_one(struct session *s, enum ctl_kind kind)
{
	take_off(s, &(struct charge){kind, 1});
}

struct reaped *quota_retire(struct session *s, enum ctl_kind kind, uint64_t bytes)
{
	const struct charge c[] = {{CTL_MAPPINGS, 1}, {kind, bytes}};
	struct account *a = s->account;
	struct quota *q = &s->ctl->sessions->quota;

	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		take_off(s, &c[i]);
		a->retired[c[i].kind] += c[i].n;
		q->retired[c[i].kind] += c[i].n;
	}
	return kind == CTL_MEMORY ? &a->memory : &a->queues;
}

void quota_pass(struct session *from, struct session *to, const struct charge c[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		take_off(from, &c[i]);
		add(to, &c[i]);
	}
}

/* Its socket, its channel, and one eventfd per worker. */
static struct charge descriptors_of(const struct session *s)
{
	return (struct charge){CTL_DESCRIPTORS, 2 + s->ctl->dp->nworkers};
}

/* Connections that hang in close() count as sessions, too. */
static int check_places(const struct session *s, char *why)
{
	uint64_t hang = reaper_load(s->ctl->sessions->closer, owner_connections(s->peer.uid));
	const struct charge places = {CTL_SESSIONS, 1 + hang};

	return s->peer.uid ? check_user(s, &places, why) : 0;
}

bool quota_may_open(const struct session *s)
{
	const struct charge fds = descriptors_of(s), place = {CTL_SESSIONS, 1};
	char why[ABI_SENTENCE_MAX];

	return !check_places(s, why) && !check(s, &fds, why) &&
	       (!s->peer.uid || is_small(&s->ctl->sessions->quota, s->account, &place));
}

int quota_open(struct session *s, char why[ABI_SENTENCE_MAX])
{
	const struct charge c[] = {{CTL_SESSIONS, 1}, descriptors_of(s)};
	struct quota *q = &s->ctl->sessions->quota;
	int err;

	free_empty(q);
	s->account = account_of(q, s->peer.uid);
	if (!s->account)
		return refuse_memory(why);
	err = check_places(s, why);
	if (!err)
		err = quota_take(s, c, ARRAY_SIZE(c), why);
	return err == -EDQUOT ? -EUSERS : err;
}

void quota_close(struct session *s)
{
	const struct charge c[] = {{CTL_SESSIONS, 1}, descriptors_of(s)};

	quota_give(s, c, ARRAY_SIZE(c));
}
