/* SPDX-License-Identifier: BSD-3-Clause */
/* From the file's context, and what a vector changes of it, to what a node is made of. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "frame.h"
#include "golden.h"

#define PSN_MAX 0xFFFFFFu
#define REGION_MAX                                                                     \
	(64u << 20) /* no vector needs more, and a wrong one shall not eat the machine \
		     */

/* --- names ---------------------------------------------------------------------------- */

static const char *const state_names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

const char *state_name(unsigned state)
{
	return state < ARRAY_SIZE(state_names) ? state_names[state] : "?";
}

uint8_t state_of(struct golden *g, const json_t *v)
{
	for (uint8_t s = 0; s < ARRAY_SIZE(state_names); s++)
		if (json_is_string(v) && !strcmp(json_string_value(v), state_names[s]))
			return s;
	item_fail(g, "unknown QP state");
	return ABI_QPS_RTS;
}

static uint32_t access_flags(struct golden *g, const json_t *v)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} bits[] = {{"LOCAL_WRITE", ABI_ACCESS_LOCAL_WRITE},
		{"REMOTE_READ", ABI_ACCESS_REMOTE_READ}, {"REMOTE_WRITE", ABI_ACCESS_REMOTE_WRITE},
		{"REMOTE_ATOMIC", ABI_ACCESS_REMOTE_ATOMIC},
		{"FLUSH_GLOBAL", ABI_ACCESS_FLUSH_GLOBAL},
		{"FLUSH_PERSISTENT", ABI_ACCESS_FLUSH_PERSIST}};
	char names[256], *save;
	uint32_t flags = 0;

	snprintf(names, sizeof(names), "%s", json_is_string(v) ? json_string_value(v) : "?");
	if (!strcmp(names, "0") || !strcmp(names, "none"))
		return 0;
	for (char *t = strtok_r(names, "|", &save); t; t = strtok_r(NULL, "|", &save)) {
		unsigned i = 0;

		while (i < ARRAY_SIZE(bits) && strcmp(t, bits[i].name))
			i++;
		if (i == ARRAY_SIZE(bits))
			item_fail(g, "unknown access flag %s", t);
		else
			flags |= bits[i].bit;
	}
	return flags;
}

const char *qp_kind(struct golden *g, bool is_a, uint64_t qpn)
{
	const json_t *qpns = json_object_get(json_object_get(g->context, is_a ? "A" : "B"), "qpn");
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)qpns, key, v)
	{
		if (number(g, key, v) == qpn)
			return key;
	}
	return qpn == 1 ? "GSI" : qpn == QPN_MULTICAST ? "MULTICAST" : NULL;
}

bool kind_type(const char *kind, uint8_t *type)
{
	static const struct {
		const char *kind;
		uint8_t type;
	} built[] = {{"RC", ABI_QPT_RC}, {"UC", ABI_QPT_UC}, {"UD", ABI_QPT_UD},
		{"MULTICAST", ABI_QPT_UD}, {"GSI", ABI_QPT_GSI}, {"XRCI", ABI_QPT_XRC_SEND},
		{"XRCT", ABI_QPT_XRC_RECV}};

	for (unsigned i = 0; i < ARRAY_SIZE(built); i++) {
		if (strcmp(built[i].kind, kind))
			continue;
		*type = built[i].type;
		return true;
	}
	return false;
}

/* --- the context ---------------------------------------------------------------------- */

static void side_check(struct golden *g, const json_t *side, const char *name)
{
	static const char *const known[] = {"mac", "ipv4", "ipv6", "linklocal", "qpn"};
	uint8_t mac[6];

	if (!KNOWN(g, name, side, known))
		return;
	if (!mac_of(text(side, "mac"), mac))
		item_fail(g, "%s.mac is no MAC address", name);
	if (!json_is_object(json_object_get(side, "qpn")))
		item_fail(g, "%s.qpn is no object", name);
	else
		number_upto(
			g, "qpn.RC", json_object_get(json_object_get(side, "qpn"), "RC"), PSN_MAX);
}

static void region_check(struct golden *g, const json_t *mr)
{
	static const char *const known[] = {"rkey", "va", "length", "access"};

	if (!KNOWN(g, "B_mr", mr, known))
		return;
	/* A key is index << 8 | key part, and the daemon has MR_MAX indices (MR-01), of which the
	 * runner needs two. */
	number_upto(g, "B_mr.rkey", json_object_get(mr, "rkey"), (MR_MAX - 2) * 256 - 1);
	number_upto(g, "B_mr.length", json_object_get(mr, "length"), REGION_MAX);
	number_of(g, mr, "va");
	access_flags(g, json_object_get(mr, "access"));
}

bool context_check(struct golden *g)
{
	static const char *const known[] = {"A", "B", "path_mtu", "pkey_table", "qkey_ud",
		"B_expected_psn", "B_msn", "B_mr", "B_rc_access", "B_gid_table", "default",
		"B_min_rnr_timer"};
	bool ok;

	item_begin(g, "context");
	if (KNOWN(g, "context", g->context, known)) {
		struct node_spec s;

		side_check(g, json_object_get(g->context, "A"), "A");
		side_check(g, json_object_get(g->context, "B"), "B");
		region_check(g, json_object_get(g->context, "B_mr"));
		if (!json_is_array(json_object_get(g->context, "B_gid_table")))
			item_fail(g, "B_gid_table is no array");
		if (!g->bad)
			s = node_spec_of(g, false);
		if (!g->bad &&
			(s.mtu < PATH_MTU_MIN || s.mtu > PATH_MTU_MAX || s.mtu & (s.mtu - 1)))
			item_fail(g, "path_mtu is no MTU");
	}
	ok = !g->bad;
	if (!ok)
		item_end(g);
	return ok;
}

/* --- a side ------------------------------------------------------------------------------- */

static void gid_of_side(
	struct golden *g, const json_t *side, unsigned net, bool mapped, uint8_t gid[16])
{
	const char *key = net == NET_IPV4 || mapped ? "ipv4"
			  : net == NET_IPV6	    ? "ipv6"
						    : "linklocal";
	int ok;

	memset(gid, 0, 16);
	if (net == NET_IPV4 || mapped) {
		gid[10] = gid[11] = 0xFF;
		ok = inet_pton(AF_INET, text(side, key), gid + 12);
	} else {
		ok = inet_pton(AF_INET6, text(side, key), gid);
	}
	if (ok != 1)
		item_fail(g, "the context's %s is no address", key);
}

void node_spec_net(struct golden *g, struct node_spec *s, unsigned net, bool mapped)
{
	s->net = (uint8_t)net;
	gid_of_side(g, json_object_get(g->context, s->is_a ? "A" : "B"), net, mapped, s->gid);
	gid_of_side(g, json_object_get(g->context, s->is_a ? "B" : "A"), net, mapped, s->peer_gid);
}

void node_spec_as(struct golden *g, struct node_spec *s, const struct pkt *p)
{
	static const uint8_t ip4[12] = {[10] = 0xFF, [11] = 0xFF};
	uint8_t sgid[16], dgid[16];

	frame_gids(p, sgid, dgid);
	node_spec_net(g, s, p->net, p->net == NET_ROCEV1 && !memcmp(dgid, ip4, sizeof(ip4)));
	/* Not p->vid: a parser that reads it wrong must not find a GID that is as wrong. */
	s->vid =
		get_be16(p->dmac + ETH_TYPE) == ETHERTYPE_VLAN ? get_be16(p->dmac + 14) & 0xFFF : 0;
}

static uint32_t psn_member(struct golden *g, const json_t *o, const char *key)
{
	return (uint32_t)number_upto(g, key, json_object_get(o, key), PSN_MAX);
}

static void pkey_table(struct golden *g, struct node_spec *s, const json_t *v)
{
	s->pkeys = (unsigned)json_array_size(v);
	if (!s->pkeys || s->pkeys > GOLDEN_PKEYS) {
		item_fail(g, "pkey_table is no array of up to %u P_Keys", GOLDEN_PKEYS);
		s->pkeys = 1;
	}
	for (unsigned i = 0; i < s->pkeys; i++)
		s->pkey[i] = (uint16_t)number_upto(g, "pkey_table", json_array_get(v, i), 0xFFFF);
}

struct node_spec node_spec_of(struct golden *g, bool is_a)
{
	const json_t *c = g->context;
	const json_t *qpn_a = json_object_get(json_object_get(c, "A"), "qpn");
	const json_t *qpn_b = json_object_get(json_object_get(c, "B"), "qpn");
	struct node_spec s = {
		.is_a = is_a,
		.type = ABI_QPT_RC,
		.qpn = psn_member(g, is_a ? qpn_a : qpn_b, "RC"),
		.peer_qpn = psn_member(g, is_a ? qpn_b : qpn_a, "RC"),
		.mtu = (uint32_t)number_upto(
			g, "path_mtu", json_object_get(c, "path_mtu"), UINT32_MAX),
		.rq_psn = psn_member(g, c, "B_expected_psn"),
		.sq_psn = psn_member(g, c, "B_expected_psn"),
		.msn = psn_member(g, c, "B_msn"),
		.recv_wqes = 1,
		.recv_len = 4096,
		.access = access_flags(g, json_object_get(c, "B_rc_access")),
		.mr_access = access_flags(g, json_object_get(json_object_get(c, "B_mr"), "access")),
		.min_rnr_timer = (uint8_t)number_upto(
			g, "B_min_rnr_timer", json_object_get(c, "B_min_rnr_timer"), 31),
		.qkey = (uint32_t)number_upto(
			g, "qkey_ud", json_object_get(c, "qkey_ud"), UINT32_MAX),
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.state = ABI_QPS_RTS,
		.send_room = 1u << 16,
	};

	pkey_table(g, &s, json_object_get(c, "pkey_table"));
	node_spec_net(g, &s, NET_IPV4, false);
	return s;
}

static const char *peer_kind(const char *kind)
{
	return !strcmp(kind, "XRCI") ? "XRCT" : !strcmp(kind, "XRCT") ? "XRCI" : kind;
}

void node_spec_kind(struct golden *g, struct node_spec *s, const char *kind)
{
	const json_t *c = g->context;
	const json_t *own = json_object_get(json_object_get(c, s->is_a ? "A" : "B"), "qpn");
	const json_t *peer = json_object_get(json_object_get(c, s->is_a ? "B" : "A"), "qpn");

	if (!kind_type(kind, &s->type))
		item_fail(g, "qp_type %.40s is not handled", kind);
	if (is_datagram(s->type))
		kind = "UD"; /* QP1 is found by the port; its own number is an ordinary one */
	s->qpn = psn_member(g, own, kind);
	s->peer_qpn = psn_member(g, peer, peer_kind(kind));
}

/* --- what a vector changes ---------------------------------------------------------------- */

static void gid_type(struct golden *g, struct node_spec *s, const json_t *v)
{
	const char *name = json_is_string(v) ? json_string_value(v) : "";

	if (!strncmp(name, "IB GID", 6))
		node_spec_net(g, s, NET_ROCEV1, strstr(name, "::ffff:") != NULL);
	else if (!strncmp(name, "IPv6", 4))
		node_spec_net(g, s, NET_IPV6, false);
	else if (!strncmp(name, "IPv4", 4))
		node_spec_net(g, s, NET_IPV4, false);
	else
		item_fail(g, "QP_gid_type '%.40s' is not handled", name);
}

/* Numbers of the other side say nothing about this one. */
static bool of_the_other(const struct node_spec *s, const char *key)
{
	static const char *const known[] = {
		"_sq_psn", "_expected_psn", "_msn", "_rc_access", "_mr_access", "_min_rnr_timer"};

	if (key[0] != (s->is_a ? 'B' : 'A'))
		return false; /* an empty key too */
	for (unsigned i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(key + 1, known[i]))
			return true;
	return false;
}

static bool set_number(struct golden *g, struct node_spec *s, const char *key, const json_t *v)
{
	const struct {
		const char *key;
		void *to;
		size_t size;
		uint64_t max;
	} members[] = {{"_sq_psn", &s->sq_psn, 4, PSN_MAX},
		{"_expected_psn", &s->rq_psn, 4, PSN_MAX}, {"_msn", &s->msn, 4, PSN_MAX},
		{"_min_rnr_timer", &s->min_rnr_timer, 1, 31}, {"recv_wqes", &s->recv_wqes, 4, 64},
		{"qkey_ud", &s->qkey, 4, UINT32_MAX}, {"recv_len", &s->recv_len, 4, 1u << 20},
		{"path_mtu", &s->mtu, 4, PATH_MTU_MAX}, {"retry_cnt", &s->retry_cnt, 1, 7},
		{"rnr_retry", &s->rnr_retry, 1, 7}, {"timeout", &s->timeout, 1, 31},
		{"max_rd_atomic", &s->max_rd_atomic, 1, RD_ATOMIC_MAX},
		{"max_dest_rd_atomic", &s->max_dest_rd_atomic, 1, RD_ATOMIC_MAX}};
	const char *name = key[0] == (s->is_a ? 'A' : 'B') && key[1] == '_' ? key + 1 : key;

	for (unsigned i = 0; i < ARRAY_SIZE(members); i++) {
		uint64_t n;

		if (strcmp(members[i].key, name))
			continue;
		n = number_upto(g, key, v, members[i].max);
		if (members[i].size == 1)
			*(uint8_t *)members[i].to = (uint8_t)n;
		else
			*(uint32_t *)members[i].to = (uint32_t)n;
		return true;
	}
	return false;
}

bool node_spec_set(struct golden *g, struct node_spec *s, const char *key, const json_t *v)
{
	if (of_the_other(s, key) || set_number(g, s, key, v))
		return true;
	if (!strcmp(key, "QP_state"))
		s->state = state_of(g, v);
	else if (!strcmp(key, "QP_gid_type"))
		gid_type(g, s, v);
	else if (!strcmp(key, "pkey_table"))
		pkey_table(g, s, v);
	else if (!strcmp(key, "srq"))
		s->shared = json_is_true(v);
	else if (*key && !strcmp(key + 1, "_rc_access"))
		s->access = access_flags(g, v);
	else if (*key && !strcmp(key + 1, "_mr_access"))
		s->mr_access = access_flags(g, v);
	else
		return false;
	return true;
}
