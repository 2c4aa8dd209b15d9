/* SPDX-License-Identifier: BSD-3-Clause */
/* HELLO, queries, port events, and changes to ports. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "core.h"
#include "limits.h"
#include "net/gids.h"
#include "net/net.h"
#include "net/netport.h"
#include "net/pkeys.h"
#include "path.h"
#include "port.h"
#include "refuse.h"
#include "session/bells.h"
#include "session/failures.h"
#include "session/quota.h"
#include "session/session.h"
#include "session/sessions.h"
#include "verbs/command.h"
#include "verbs/device.h"
#include "verbs/objects.h"
#include "verbs/qp_obj.h"
#include "worker.h"

#define PORT_DOWN   1u /* enum ibv_port_state */
#define PORT_ACTIVE 4u
#define REPORTS_MAX 1000u /* per session; what it refuses after that resembles earlier refusals */
#define NS_KHZ	    1000000u /* rocid's clock counts nanoseconds */
#define ATOMIC_GLOB 2u /* enum ibv_atomic_cap: also with respect to the CPUs' atomics (RSP-35) */

/* The program chooses its name and its reports: only printable ASCII may reach a terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void keep_name(struct session *s, const struct abi_hello *h)
{
	_Static_assert(sizeof(s->program) == sizeof(h->name) + 1, "ends with a 0 byte");
	memcpy(s->program, h->name, sizeof(h->name));
	make_printable(s->program);
}

int cmd_hello(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_hello h;

	memcpy(&h, q->body, sizeof(h));
	if (s->greeted)
		return refuse(r->why, -EPROTO, "the session is open already: send hello only once");
	if (h.magic != ABI_MAGIC)
		return refuse(r->why, -EPROTO,
			"hello has the wrong magic number: connect with libroci, or as doc/abi.md "
			"describes");
	if (h.version_min > ABI_VERSION || h.version_max < ABI_VERSION_MIN ||
		h.version_min > h.version_max)
		return refuse(r->why, -EPROTONOSUPPORT,
			"rocid speaks versions %u to %u, the application %u to %u: install rocid "
			"and libroci of the same release",
			ABI_VERSION_MIN, ABI_VERSION, h.version_min, h.version_max);
	keep_name(s, &h);
	return session_greet(s, r);
}

int cmd_get_wake(struct session *s, const struct request *q, struct reply *r)
{
	const struct dataplane *dp = s->ctl->dp;
	struct abi_get_wake in;
	int fd;

	memcpy(&in, q->body, sizeof(in));
	if (in.worker >= dp->nworkers)
		return refuse(r->why, -EINVAL, "there is no worker %u: this rocid has 0 to %u",
			in.worker, dp->nworkers - 1);
	fd = worker_doorbell_eventfd(dp->worker[in.worker], &s->bells->w[in.worker]);
	if (fd == -EOPNOTSUPP)
		return refuse(
			r->why, fd, "this rocid's workers never sleep: ring the doorbell only");
	if (fd < 0)
		return refuse(r->why, fd,
			"rocid cannot create an eventfd (%s): raise its limit of open files "
			"(ulimit -n)",
			strerror(-fd));
	reply_fd(r, fd);
	return 0;
}

uint64_t device_guid(const struct ctl *ctl)
{
	uint8_t gid[16];
	uint64_t guid;

	gid_of_mac(gid, ctl->net->port[0].mac);
	memcpy(&guid, gid + 8, sizeof(guid));
	return guid;
}

/* For device lists: it needs no HELLO, so it creates nothing. */
int cmd_probe(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_probe a = {.node_guid = device_guid(s->ctl), .ports = s->ctl->net->nports};

	(void)q;
	memcpy(a.device, s->ctl->device, sizeof(a.device));
	reply_body(r, &a, sizeof(a));
	return 0;
}

int cmd_query_device(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_device_attr a = {
		.ports = s->ctl->net->nports,
		.max_qp = quota_most(s, CTL_QPS),
		.max_qp_wr = WR_MAX,
		.max_sge = SGE_MAX,
		.max_inline = INLINE_MAX,
		.max_cq = quota_most(s, CTL_CQS),
		.max_cqe = CQE_MAX,
		.max_mr = quota_most(s, CTL_KEYS),
		.max_pd = quota_most(s, CTL_PDS),
		.max_ah = quota_most(s, CTL_AHS),
		.max_srq = quota_most(s, CTL_SRQS),
		.max_srq_wr = SRQ_WR_MAX,
		.atomic_cap = ATOMIC_GLOB,
		.max_rd_atomic = RD_ATOMIC_MAX,
		.max_mw = quota_most(s, CTL_KEYS),
		.max_pkeys = PKEY_MAX,
		.version = ROCINANTE_VERSION,
		.max_srq_sge = SGE_MAX,
		.max_mcast_groups = MCAST_GROUP_MAX,
		.max_mcast_members = MCAST_MEMBERS_MAX,
		.max_mcast_attach = quota_most(s, CTL_ATTACHMENTS),
		.max_res_rd_atomic = quota_most(s, CTL_QPS) * RD_ATOMIC_MAX,
		.timestamp_bits = 64,
		.core_clock_khz = NS_KHZ,
	};

	a.node_guid = device_guid(s->ctl);
	reply_body(r, &a, sizeof(a));
	return 0;
}

static struct netport *find_port(struct session *s, uint32_t number, struct reply *r)
{
	if (number >= 1 && number <= s->ctl->net->nports)
		return &s->ctl->net->port[number - 1];
	refuse(r->why, 0, "there is no port %u: this rocid has 1 to %u", number,
		s->ctl->net->nports);
	return NULL;
}

/* VAL-10, VAL-16: workers' counters saturate, and so must their sum. */
static uint16_t violations(uint64_t sum)
{
	return (uint16_t)(sum < BAD_PKEY_MAX ? sum : BAD_PKEY_MAX);
}

int cmd_query_port(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_port_attr a = {.max_mtu = PATH_MTU_MAX, .gids = GID_MAX};
	struct core_counters sum;
	struct abi_query_port in;
	struct netport *p;

	memcpy(&in, q->body, sizeof(in));
	p = find_port(s, in.port, r);
	if (!p)
		return -EINVAL;
	a.state = p->up ? PORT_ACTIVE : PORT_DOWN; /* GID-08 */
	a.active_mtu = netport_mtu(p);		   /* GID-09 */
	a.pkeys = p->shared->pkeys;
	a.speed_mbps = p->speed_mbps;
	worker_counters(s->ctl->dp, &sum);
	a.bad_pkey_cntr = violations(sum.bad_pkey[in.port - 1]);
	a.qkey_viol_cntr = violations(sum.bad_qkey[in.port - 1]);
	memcpy(a.mac, p->mac, sizeof(a.mac));
	memcpy(a.netdev, p->netdev, sizeof(a.netdev));
	reply_body(r, &a, sizeof(a));
	return 0;
}

static void put_gid(struct abi_gid *a, const struct gid_entry *e)
{
	memcpy(a->gid, e->gid, sizeof(a->gid));
	a->type = gid_abi_type(e->net); /* CA17-26 */
	a->ifindex = e->ifindex;
	a->vid = e->vid;
	memcpy(a->mac, e->mac, sizeof(a->mac));
}

int cmd_query_gid(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_query_gid in;
	struct abi_gid a = {0};
	struct netport *p;

	memcpy(&in, q->body, sizeof(in));
	p = find_port(s, in.port, r);
	if (!p)
		return -EINVAL;
	if (in.index >= GID_MAX)
		return refuse(r->why, -EINVAL, "there is no GID %u: the table has 0 to %u",
			in.index, GID_MAX - 1);
	if (p->gids.table.entry[in.index].valid) /* otherwise zeroes, as on any RDMA device */
		put_gid(&a, &p->gids.table.entry[in.index]);
	reply_body(r, &a, sizeof(a));
	return 0;
}

int cmd_query_gids(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_gids out = {0};
	struct abi_query_gids in;
	struct netport *p;

	_Static_assert(sizeof(out) <= sizeof(r->body), "ABI_GIDS_MAX");
	memcpy(&in, q->body, sizeof(in));
	p = find_port(s, in.port, r);
	if (!p)
		return -EINVAL;
	for (uint32_t i = in.first; i < GID_MAX; i++) {
		const struct gid_entry *e = &p->gids.table.entry[i];

		if (!e->valid)
			continue;
		if (out.count == ABI_GIDS_MAX) {
			out.next = i;
			break;
		}
		out.at[out.count].index = i;
		put_gid(&out.at[out.count++].gid, e);
	}
	reply_body(r, &out, sizeof(out));
	return 0;
}

int cmd_query_pkey(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_query_pkey in;
	struct abi_pkey a = {0};
	struct netport *p;

	memcpy(&in, q->body, sizeof(in));
	p = find_port(s, in.port, r);
	if (!p)
		return -EINVAL;
	if (in.index >= p->shared->pkeys)
		return refuse(r->why, -EINVAL, "there is no P_Key %u: the table has 0 to %u",
			in.index, p->shared->pkeys - 1u);
	a.pkey = p->shared->pkey[in.index];
	reply_body(r, &a, sizeof(a));
	return 0;
}

/* --- refusals ---------------------------------------------------------------------------- */

int cmd_report(struct session *s, const struct request *q, struct reply *r)
{
	struct abi_report in;
	const struct qp_obj *o;

	memcpy(&in, q->body, sizeof(in));
	if (!in.sentence[0] || !memchr(in.sentence, 0, sizeof(in.sentence)))
		return refuse(r->why, -EINVAL, "a report needs a sentence that ends with a 0 byte");
	o = in.qpn ? find_qp(s->ctl, in.qpn) : NULL;
	if (in.qpn && (!o || o->session != s))
		return refuse(r->why, -EINVAL, "there is no QP %u in this session", in.qpn);
	if (s->reports == REPORTS_MAX)
		return 0;
	s->reports++;
	make_printable(in.sentence);
	failure_request(s->ctl, &(struct failed_request){.session = s,
					.qpn = in.qpn,
					.cause = "refused",
					.rule = "",
					.text = in.sentence});
	return 0;
}

/* --- ports ------------------------------------------------------------------------------- */

void port_tell(struct ctl *ctl, uint32_t i, unsigned what)
{
	if (what & NETPORT_GIDS_CHANGED) /* EVT-05 */
		sessions_port_event(ctl, i, ABI_EVENT_GID_CHANGE);
	if (what & NETPORT_WENT_DOWN)
		sessions_port_event(ctl, i, ABI_EVENT_PORT_ERR);
	/* Verbs have no event for an MTU change; an adapter's port restarts and becomes active
	 * again (doc/decisions/0030-events-of-ports.md). */
	if ((what & NETPORT_WENT_UP) || ((what & NETPORT_MTU_CHANGED) && ctl->net->port[i].up))
		sessions_port_event(ctl, i, ABI_EVENT_PORT_ACTIVE);
}

void port_disable(struct ctl *ctl, uint32_t i, bool down)
{
	ctl->net->disabled[i] = down;
	port_set_down(ctl->dp, i, down);
	port_tell(ctl, i, net_take_use(ctl->net, i));
}

void port_set_pkey(struct ctl *ctl, uint32_t i, uint32_t index, uint16_t pkey)
{
	if (!pkeys_set(ctl->net->port[i].shared, index, pkey))
		return;
	qps_reload_pkeys(ctl);
	sessions_port_event(ctl, i, ABI_EVENT_PKEY_CHANGE);
}
