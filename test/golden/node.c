/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "golden.h"

#define RECV_ROOM 64u

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

uint32_t access_flags(struct golden *g, const json_t *v)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} bits[] = {{"LOCAL_WRITE", ABI_ACCESS_LOCAL_WRITE},
		{"REMOTE_READ", ABI_ACCESS_REMOTE_READ}, {"REMOTE_WRITE", ABI_ACCESS_REMOTE_WRITE},
		{"REMOTE_ATOMIC", ABI_ACCESS_REMOTE_ATOMIC}};
	char text[256];
	uint32_t flags = 0;

	snprintf(text, sizeof(text), "%s", json_is_string(v) ? json_string_value(v) : "?");
	for (char *save, *t = strtok_r(text, "|", &save); t; t = strtok_r(NULL, "|", &save)) {
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

struct node_spec node_spec_of(struct golden *g, bool is_a)
{
	const json_t *c = g->context;

	return (struct node_spec){
		.is_a = is_a,
		.mtu = (uint32_t)json_u64_of(g, c, "path_mtu"),
		.rq_psn = (uint32_t)json_u64_of(g, c, "B_expected_psn"),
		.sq_psn = (uint32_t)json_u64_of(g, c, "B_expected_psn"),
		.msn = (uint32_t)json_u64_of(g, c, "B_msn"),
		.recv_wqes = 1,
		.recv_len = 4096,
		.access = access_flags(g, json_object_get(c, "B_rc_access")),
		.mr_access = access_flags(g, json_object_get(json_object_get(c, "B_mr"), "access")),
		.pkey = (uint16_t)json_u64(g, json_array_get(json_object_get(c, "pkey_table"), 0)),
		.min_rnr_timer = (uint8_t)json_u64_of(g, c, "B_min_rnr_timer"),
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.state = ABI_QPS_RTS,
	};
}

/* --- addresses ------------------------------------------------------------------------ */

static const char *text_of(const json_t *who, const char *key)
{
	const char *s = json_string_value(json_object_get(who, key));

	return s ? s : "";
}

static void mac_of(const json_t *who, uint8_t mac[6])
{
	unsigned m[6] = {0};

	sscanf(text_of(who, "mac"), "%x:%x:%x:%x:%x:%x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]);
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)m[i];
}

static void gid_of(struct golden *g, const json_t *who, unsigned net, uint8_t gid[16])
{
	int ok;

	memset(gid, 0, 16);
	if (net == NET_IPV4) {
		gid[10] = gid[11] = 0xFF;
		ok = inet_pton(AF_INET, text_of(who, "ipv4"), gid + 12);
	} else {
		ok = inet_pton(AF_INET6, text_of(who, net == NET_IPV6 ? "ipv6" : "linklocal"), gid);
	}
	if (ok != 1)
		item_fail(g, "the context has no address of this kind");
}

/* The four entries of B_gid_table; the QP's own, of type `net`, is in the VLAN. */
static void gids_init(struct node *n, const json_t *me, const struct node_spec *s)
{
	struct gid_table *t = &n->host->gids[0];

	t->count = 4;
	mac_of(me, n->host->ports.port[0].mac);
	for (unsigned i = 0; i < 4; i++) {
		unsigned net = i < 3 ? i : NET_ROCEV1;

		t->entry[i] = (struct gid_entry){.net = (uint8_t)net, .valid = true};
		gid_of(n->g, me, i < 3 ? i : NET_IPV4, t->entry[i].gid);
		mac_of(me, t->entry[i].mac);
		if (net == s->net && i < 3)
			t->entry[i].vid = s->vid;
	}
}

static struct path_spec path_of(struct node *n, const json_t *peer, const struct node_spec *s)
{
	struct path_spec p = {.sgid = &n->host->gids[0].entry[s->net], .hop_limit = 64};

	gid_of(n->g, peer, s->net, p.dgid);
	mac_of(peer, p.dmac);
	return p;
}

/* --- life ----------------------------------------------------------------------------- */

static void regions_init(struct node *n, const struct node_spec *s)
{
	const json_t *mr = json_object_get(n->g->context, "B_mr");
	size_t len = (size_t)json_u64_of(n->g, mr, "length");

	if (s->is_a)
		n->mr = app_mr(&n->app, 1u << 20, ABI_ACCESS_LOCAL_WRITE);
	else
		n->mr = app_mr_as(&n->app, len, s->mr_access,
			(uint32_t)json_u64_of(n->g, mr, "rkey"), json_u64_of(n->g, mr, "va"));
	memset(n->mr->mem, 0, n->mr->len);
	n->recv = app_mr_as(
		&n->app, (size_t)RECV_ROOM * 4096, ABI_ACCESS_LOCAL_WRITE, 0xF00042, 0x100000);
}

static void qp_init_of(struct node *n, const struct node_spec *s, uint32_t qpn, uint32_t peer_qpn)
{
	struct app_qp_spec spec = {.qpn = qpn,
		.sq_depth = 64,
		.rq_depth = 64,
		.max_sge = 4,
		.max_inline = 64,
		.send_cq = n->send_cq,
		.recv_cq = n->recv_cq};

	n->qp = app_qp(&n->app, &spec);
	n->attr = app_attr(peer_qpn, s->sq_psn, s->rq_psn);
	n->attr.path_mtu = s->mtu;
	n->attr.access_flags = s->access;
	n->attr.min_rnr_timer = s->min_rnr_timer;
	n->attr.timeout = s->timeout;
	n->attr.retry_cnt = s->retry_cnt;
	n->attr.rnr_retry = s->rnr_retry;
	n->attr.max_rd_atomic = s->max_rd_atomic;
	n->attr.max_dest_rd_atomic = s->max_dest_rd_atomic;
}

static void qp_bring_up(struct node *n, const json_t *peer, const struct node_spec *s)
{
	struct path_spec path = path_of(n, peer, s);
	int rc = 0;

	if (s->state >= ABI_QPS_INIT)
		rc |= app_to_init(n->qp, &n->attr, n->now);
	if (s->state >= ABI_QPS_RTR)
		rc |= app_to_rtr(n->qp, &n->attr, &path, n->now);
	if (s->state >= ABI_QPS_RTS)
		rc |= app_to_rts(n->qp, &n->attr, n->now);
	if (rc)
		item_fail(n->g, "the QP's attributes are refused");
	n->qp->qp->resp.msn = s->msn;
	node_post_recv(n, s->recv_wqes);
	if (s->state == ABI_QPS_SQD || s->state == ABI_QPS_ERR)
		app_to_state(n->qp, s->state, n->now);
}

void node_init(struct node *n, struct golden *g, const struct node_spec *s)
{
	const json_t *me = json_object_get(g->context, s->is_a ? "A" : "B");
	const json_t *peer = json_object_get(g->context, s->is_a ? "B" : "A");

	memset(n, 0, sizeof(*n));
	n->g = g;
	n->now = 1000000;
	n->recv_len = s->recv_len;
	n->host = aligned_alloc(CACHE_LINE, sizeof(*n->host));
	if (!n->host)
		abort();
	host_init(n->host, 1, icrc_best(), n->now);
	gids_init(n, me, s);
	n->host->ports.port[0].pkey[0] = s->pkey;
	app_init(&n->app, n->host);
	n->send_cq = app_cq(&n->app, 256);
	n->recv_cq = app_cq(&n->app, 256);
	regions_init(n, s);
	qp_init_of(n, s, (uint32_t)json_u64_of(g, json_object_get(me, "qpn"), "RC"),
		(uint32_t)json_u64_of(g, json_object_get(peer, "qpn"), "RC"));
	qp_bring_up(n, peer, s);
	node_tx(n);
}

void node_fini(struct node *n)
{
	if (!app_guards_ok(&n->app))
		item_fail(n->g, "something was written outside a region");
	app_fini(&n->app);
	free(n->host);
}

/* --- what it does --------------------------------------------------------------------- */

void node_post_recv(struct node *n, unsigned count)
{
	while (count--) {
		struct abi_sge sge =
			app_sge(n->recv, (uint64_t)(n->received % RECV_ROOM) * 4096, n->recv_len);

		app_post_recv(n->qp, n->received++, &sge, 1);
	}
}

uint16_t node_rx(struct node *n, const uint8_t *frame, size_t len)
{
	struct pkt p;
	uint16_t verdict = frame_parse(&p, frame, len);

	if (verdict) {
		core_count_drop(&n->host->core, verdict);
		return verdict;
	}
	p.port = 0;
	core_rx(&n->host->core, &p, 1, n->now, &verdict);
	return verdict;
}

void node_tx(struct node *n)
{
	struct txd t;

	app_ring(&n->app, n->now);
	for (;;) {
		uint16_t len;

		if (n->sents == ARRAY_SIZE(n->sent)) {
			item_fail(n->g, "the core sends without end");
			return;
		}
		t.frame = n->sent[n->sents];
		if (!core_tx(&n->host->core, &t, 1, n->now))
			return;
		len = core_seal(&n->host->core, &t);
		if (len)
			n->sent_len[n->sents++] = len;
	}
}
