/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of flows: how they are addressed, and the 40 bytes that tell the receiver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "chaos.h"
#include "chaos_flow.h"
#include "core_command.h"
#include "headers.h"
#include "qp.h"
#include "ud.h"

#define IP4_AT	 20u /* of the 40 bytes */
#define OF_OTHER 1u  /* slot of a handle of another domain */

/* --- groups ----------------------------------------------------------------------------- */

static unsigned host_of(const struct chaos_world *w, const struct app *app)
{
	return app == &w->app[B];
}

static void foreign_handle(struct chaos_world *w, unsigned h)
{
	struct path_spec spec = host_path(w->host[h], w->host[!h], 0, w->gid);
	struct ah *ah = calloc(1, sizeof(*ah));

	assert_non_null(ah);
	*ah = (struct ah){.id = AH_MAX + OF_OTHER, .pd = APP_PD + 1};
	path_init(&ah->path, &spec);
	atomic_store(&w->host[h]->ahs.slot[OF_OTHER], ah);
	w->flows.foreign[h] = ah;
}

void ud_init(struct chaos_world *w, struct flows *f)
{
	static const uint8_t ip4[16] = {[10] = 0xFF, 0xFF, 239, 129, 3, 7};
	static const uint8_t ip6[16] = {0xFF, 0x15, [11] = 0xA1, 0xB2, 0xC3, 0xD4, 0xE5};

	memcpy(f->mgid, w->gid % HOST_GIDS == HOST_GID_IPV4 ? ip4 : ip6, sizeof(f->mgid));
	for (unsigned h = 0; h < CHAOS_HOSTS; h++)
		foreign_handle(w, h);
}

void ud_fini(struct flows *f)
{
	for (unsigned h = 0; h < CHAOS_HOSTS; h++) {
		free(f->foreign[h]);
		free(f->group[h]);
	}
	for (unsigned i = 0; i < f->n; i++) {
		free(f->flow[i].ah);
		free(f->flow[i].group_ah);
	}
}

/* MC-04: all that have attached on the host of @p fl, in a new group in the old one's place. */
void ud_attach(struct chaos_world *w, struct flows *f, struct flow *fl, bool attach)
{
	unsigned h = host_of(w, fl->app[B]);
	struct mcast_group *old = f->group[h],
			   *new = calloc(1, sizeof(*new) + FLOWS * sizeof(new->member[0]));

	assert_non_null(new);
	fl->member = attach;
	memcpy(new->mgid, f->mgid, sizeof(new->mgid));
	for (unsigned i = 0; i < f->n; i++)
		if (f->flow[i].member && f->flow[i].app[B] == fl->app[B])
			new->member[new->n++] =
				(struct mcast_member){.qp = f->flow[i].qp[B]->qp, .serial = i};
	if (!new->n) {
		free(new);
		new = NULL;
	}
	if (old || new)
		mcast_replace(&w->host[h]->mcasts, old, new);
	free(old);
	f->group[h] = new;
}

/* --- handles ---------------------------------------------------------------------------- */

static void mark_any(struct flows *f, struct ud_mark *m)
{
	*m = (struct ud_mark){
		.label = flows_below(f, 2) ? flows_below(f, 1u << 20) : 0,
		.hop = (uint8_t)(1 + flows_below(f, 255)),
		.tclass = (uint8_t)flows_below(f, 256),
		.pcp = (uint8_t)flows_below(f, 8),
		.tag = !flows_below(f, 3),
	};
}

static void destroy_handle(struct sim_host *h, struct ah *ah)
{
	if (!ah)
		return;
	atomic_store(&h->ahs.slot[AH_SLOT(ah->id)], NULL);
	memset(ah, 0xEE, sizeof(*ah)); /* who still looks goes astray */
	free(ah);
}

static struct ah *make_handle(
	struct chaos_world *w, const struct flows *f, const struct flow *fl, bool group)
{
	const struct ud_mark *m = &fl->mark[fl->ahs - 1];
	struct sim_host *from = fl->app[A]->host;
	struct path_spec spec = host_path(from, fl->app[B]->host, 0, w->gid);
	struct ah *ah = calloc(1, sizeof(*ah));

	assert_non_null(ah);
	spec.hop_limit = m->hop;
	spec.traffic_class = m->tclass;
	spec.flow_label = m->label;
	spec.pcp = m->pcp;
	spec.priority_tag = m->tag;
	if (group) {
		spec.local = false;
		memcpy(spec.dgid, f->mgid, sizeof(spec.dgid));
		mcast_mac(spec.dmac, f->mgid);
	}
	*ah = (struct ah){.id = fl->ahs * AH_MAX + 2 + 2 * fl->index + group,
		.pd = APP_PD,
		.hashed = !m->label};
	path_init(&ah->path, &spec);
	atomic_store(&from->ahs.slot[AH_SLOT(ah->id)], ah);
	return ah;
}

void ud_handles(struct chaos_world *w, struct flows *f, struct flow *fl)
{
	struct qp *qp = fl->qp[A]->qp;
	struct core_cmd cmd = {.type = CORE_CMD_SNAPSHOT_QPS, .qps = &qp, .n = 1};
	int rc;

	if (fl->ahs == FLOW_AHS)
		return;
	do { /* UD-16 */
		rc = core_cmd(&fl->app[A]->host->core, &cmd, now_of(w));
	} while (rc == -EAGAIN);
	assert_int_equal(rc, 0);
	destroy_handle(fl->app[A]->host, fl->ah);
	destroy_handle(fl->app[A]->host, fl->group_ah);
	mark_any(f, &fl->mark[fl->ahs++]);
	fl->ah = make_handle(w, f, fl, false);
	fl->group_ah = make_handle(w, f, fl, true);
}

/* --- posted ----------------------------------------------------------------------------- */

void ud_describe(const struct flow *fl, const struct flow_message *m, struct app_send *s)
{
	uint32_t ah = m->group ? fl->group_ah->id : fl->ah->id;
	uint32_t qpn = fl->qp[B] ? fl->qp[B]->qp->qpn : 2;

	if (m->mistake == FLOW_AH) /* of another domain, or of none */
		ah = m->add & 4 ? AH_MAX + OF_OTHER : ah + AH_MAX;
	if (m->mistake == FLOW_QPN)
		qpn ^= 1u << 23;
	s->remote_addr = (uint64_t)qpn << 32 | ah;
	s->rkey = m->add & 8 ? QKEY_OWN | (uint32_t)m->add : fl->attr[B].qkey; /* UD-03 */
	if (m->mistake == FLOW_QKEY)
		s->rkey = fl->attr[B].qkey ^ 1;
	s->srqn = 0;
}

uint32_t ud_missing(const struct flows *f, const struct flow *fl)
{
	uint32_t missing = 0;

	for (uint32_t n = 0; n < fl->posted && fl->service == FLOW_UD; n++)
		for (unsigned i = 0; i < f->n; i++) {
			const struct flow *to = &f->flow[i];

			if (fl->msg[n].mistake || fl->msg[n].failed)
				continue;
			if (fl->msg[n].group ? to->service == FLOW_UD && to->member : to == fl)
				missing += !fl->got[i][n];
		}
	return missing;
}

/* --- received --------------------------------------------------------------------------- */

static unsigned net_of(const struct chaos_world *w)
{
	return w->gid % HOST_GIDS;
}

struct flow *ud_sender(
	struct chaos_world *w, struct flows *f, const struct abi_cqe *cqe, const uint8_t *area)
{
	bool ip4 = net_of(w) == HOST_GID_IPV4;
	uint8_t id = area[ip4 ? IP4_AT + IP4_SRC + 3 : IP6_SRC + 15];

	for (unsigned h = 0; h < CHAOS_HOSTS; h++) {
		struct flow *fl = flow_of(f, &w->app[h], A, cqe->src_qp);

		if (w->host[h]->id == id && fl && fl->service == FLOW_UD)
			return fl;
	}
	fail_msg("a datagram of QPN 0x%x of host %u", cqe->src_qp, id);
	return NULL;
}

/* Some fields can change on the way and no checksum tells. */
static bool spoilt(const struct chaos_world *w)
{
	uint64_t n = 0;

	for (unsigned f = 0; f < CHAOS_HOSTS; f++)
		for (unsigned t = 0; t < CHAOS_HOSTS; t++)
			n += w->link[f][t].count.corrupted;
	return n;
}

static uint16_t ip4_sum(const uint8_t *h)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IP4_HLEN; i += 2)
		sum += get_be16(h + i);
	return (uint16_t) ~((sum & 0xFFFF) + (sum >> 16));
}

/* UD-07, UD-08: zeroes, and the header as it was on the wire. */
static void check_ip4(const struct flows *f, const struct flow *from, const struct flow *to,
	const struct flow_message *m, const uint8_t *area, uint32_t rest)
{
	static const uint8_t zero[IP4_AT];
	const struct ud_mark *mark = &from->mark[m->ah];
	const uint8_t *h = area + IP4_AT;

	assert_memory_equal(area, zero, IP4_AT);
	assert_int_equal(h[IP4_VIHL], 0x45);
	assert_int_equal(h[IP4_TOS] & 0xFC, mark->tclass & 0xFC); /* IP4-04, IP4-05 */
	assert_int_equal(get_be16(h + IP4_TOTLEN), IP4_HLEN + UDP_HLEN + rest);
	assert_int_equal(get_be16(h + IP4_FRAG), IP4_FLAG_DF);
	assert_int_equal(h[IP4_TTL], mark->hop);
	assert_int_equal(h[IP4_PROTO], 17);
	assert_int_equal(ip4_sum(h), 0);
	assert_int_equal(h[IP4_SRC + 3], from->app[A]->host->id);
	if (m->group)
		assert_memory_equal(h + IP4_DST, f->mgid + 12, 4);
	else
		assert_int_equal(h[IP4_DST + 3], to->app[B]->host->id);
}

/* UD-06 */
static void check_ip6(const struct chaos_world *w, const struct flow *from, const struct flow *to,
	const struct flow_message *m, const uint8_t *h, uint32_t rest)
{
	bool v1 = net_of(w) == HOST_GID_ROCEV1;
	const struct ud_mark *mark = &from->mark[m->ah];
	uint32_t first = get_be32(h);

	assert_int_equal(first >> 28, 6);
	assert_int_equal(get_be16(h + IP6_PLEN), (v1 ? 0 : UDP_HLEN) + rest);
	assert_int_equal(h[IP6_SRC + 15], from->app[A]->host->id);
	if (m->group)
		assert_memory_equal(h + IP6_DST, w->flows.mgid, 16);
	else
		assert_int_equal(h[IP6_DST + 15], to->app[B]->host->id);
	if (spoilt(w))
		return;
	assert_int_equal(h[IP6_NXT], v1 ? 0x1B : 17);
	assert_int_equal(first >> 20 & 0xFC, mark->tclass & 0xFC); /* IP6-02 */
	assert_int_equal(h[IP6_HLIM], mark->hop);
	if (mark->label)
		assert_int_equal(first & 0xFFFFF, mark->label);
}

void ud_check(const struct chaos_world *w, const struct flow *from, const struct flow *to,
	const struct flow_message *m, const struct abi_cqe *cqe, const uint8_t *area)
{
	const struct ud_mark *mark = &from->mark[m->ah];
	bool vlan = w->gid >= HOST_GID_VLAN;
	uint32_t rest = BTH_HLEN + DETH_LEN + (m->op == ABI_WR_SEND ? 0 : IMMDT_LEN) +
			((m->len + 3) & ~3u) + ICRC_LEN;

	if (net_of(w) == HOST_GID_IPV4)
		check_ip4(&w->flows, from, to, m, area, rest);
	else
		check_ip6(w, from, to, m, area, rest);
	assert_int_equal(cqe->net, net_of(w)); /* UD-10 */
	assert_int_equal(cqe->pkey_index, 0);
	if (spoilt(w))
		return;
	assert_int_equal(cqe->vid, vlan ? HOST_VID : 0);
	assert_int_equal(cqe->sl, vlan || mark->tag ? mark->pcp : 0);
	assert_memory_equal(cqe->smac, from->app[A]->host->gids[0].entry[w->gid].mac, 6);
}
