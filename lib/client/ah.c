/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects for datagrams only: address handles and multicast groups. */
#include <stdlib.h>
#include <string.h>
#include "client.h"
#include "roci_private.h"
#include "gid.h"

#define IP4_AT	      20 /* offset of the IPv4 header in the 40 bytes (UD-07) */
#define IP4_IHL_5     0x45
#define IP6_VERSION   6
#define IP6_NEXT      6
#define GRH_NEXT_IBA  0x1B
#define HOP_LIMIT_MAX 255
#define ANY_VLAN      UINT32_MAX

static struct roci_ah *create(
	struct roci_pd *pd, const struct roci_ah_attr *attr, enum abi_ah_flags flags)
{
	struct abi_create_ah body = {.pd = ((struct pd *)pd)->handle, .flags = flags};
	struct ah *ah = calloc(1, sizeof(*ah));
	struct abi_handle_reply r;
	int err;

	if (!ah) {
		errno = fail_const(ENOMEM,
			"out of memory for an address handle: free some memory and try again");
		return NULL;
	}
	ah_to_abi(attr, &body.attr);
	err = call_plain(
		context_of(pd->context), ABI_CREATE_AH, &body, sizeof(body), &r, sizeof(r));
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	ah->handle = r.handle;
	ah->pub = (struct roci_ah){.context = pd->context, .pd = pd};
	return &ah->pub;
}

struct roci_ah *roci_create_ah(struct roci_pd *pd, const struct roci_ah_attr *attr)
{
	return create(pd, attr, 0);
}

struct roci_ah *roci_create_ah_at_once(struct roci_pd *pd, const struct roci_ah_attr *attr)
{
	return create(pd, attr, ABI_AH_AT_ONCE);
}

int roci_destroy_ah(struct roci_ah *a)
{
	struct ah *ah = (struct ah *)a;
	int err = call_destroy(context_of(a->context), ABI_DESTROY_AH, ah->handle);

	if (!err)
		free(ah);
	return err;
}

/* --- the reply's path -------------------------------------------------------------------- */

/* Path of a datagram according to its 40 bytes. */
struct way {
	union roci_gid from;
	union roci_gid to;
	enum roci_gid_type type;
	uint32_t vlan; /* 0: untagged; ANY_VLAN: unknown */
	uint32_t flow_label;
	uint8_t traffic_class;
};

/* Random bytes of a GID may look like an IPv4 header, but their checksum would be wrong. */
static bool is_ip4_header(const uint8_t *h)
{
	uint32_t sum = 0;

	if (h[0] != IP4_IHL_5)
		return false;
	for (unsigned i = 0; i < ROCI_GRH_LEN - IP4_AT; i += 2)
		sum += (uint32_t)h[i] << 8 | h[i + 1];
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return sum == 0xFFFF;
}

static void gid_of_ip4(union roci_gid *gid, const uint8_t *address)
{
	*gid = (union roci_gid){.raw = {[10] = 0xFF, [11] = 0xFF}};
	memcpy(gid->raw + 12, address, 4);
}

static void read_ip4(const uint8_t *h, struct way *w)
{
	gid_of_ip4(&w->from, h + 12);
	gid_of_ip4(&w->to, h + 16);
	w->traffic_class = h[1];
}

/* Also reads RoCEv1's GRH. */
static void read_ip6(const uint8_t *h, struct way *w)
{
	memcpy(w->from.raw, h + 8, 16);
	memcpy(w->to.raw, h + 24, 16);
	w->traffic_class = (uint8_t)(h[0] << 4 | h[1] >> 4);
	w->flow_label = (uint32_t)(h[1] & 0xF) << 16 | (uint32_t)h[2] << 8 | h[3];
}

/* UD-11: checks the version nibbles of both headers, then the checksum (CA17 17.4.5.1). */
static bool guess_area(const uint8_t *a, struct way *w)
{
	*w = (struct way){.type = ROCI_GID_TYPE_ROCE_V2, .vlan = ANY_VLAN};
	if (is_ip4_header(a + IP4_AT)) {
		read_ip4(a + IP4_AT, w);
		return true;
	}
	if (a[0] >> 4 != IP6_VERSION)
		return false;
	if (a[IP6_NEXT] == GRH_NEXT_IBA)
		w->type = ROCI_GID_TYPE_ROCE_V1;
	read_ip6(a, w);
	return true;
}

/* Uses the completion's header type if there is one. */
static bool read_area(const uint8_t *a, const struct roci_wc_net *net, struct way *w)
{
	if (!net)
		return guess_area(a, w);
	*w = (struct way){.type = net->type, .vlan = net->vlan_id};
	if (net->is_ipv4)
		read_ip4(a + IP4_AT, w);
	else
		read_ip6(a, w);
	return true;
}

static bool is_group(const union roci_gid *g)
{
	return gid_is_ipv4(g) ? g->raw[12] >> 4 == 0xE : g->raw[0] == 0xFF;
}

/* @return whether a reply from @p own reaches the sender: the families match (GID-06), and @p own
 * is link-local if the sender is, because RoCEv1 has no routers. */
static bool reaches(const union roci_gid *own, const struct way *w)
{
	return gid_is_ipv4(own) == gid_is_ipv4(&w->from) &&
	       (w->type == ROCI_GID_TYPE_ROCE_V1 ||
		       gid_is_link_local(own) == gid_is_link_local(&w->from));
}

/* @return whether the reply may come from @p e: it is the datagram's destination or, for a group,
 * an address that reaches the sender; and it is on the sender's VLAN (ETH-07). An address may be on
 * several VLANs. */
static bool may_answer(const struct roci_gid_entry *e, const struct way *w)
{
	if (e->gid_type != w->type || (w->vlan != ANY_VLAN && e->vid != w->vlan))
		return false;
	return is_group(&w->to) ? reaches(&e->gid, w) : !memcmp(&e->gid, &w->to, sizeof(w->to));
}

/* Finds the index of the reply's source GID. */
static int find_own(
	struct roci_context *ctx, uint32_t port, const struct way *w, uint8_t *sgid_index)
{
	struct roci_gid_entry e = {.size = sizeof(e)};
	struct roci_port_attr attr = {.size = sizeof(attr)};
	int err = roci_query_port(ctx, port, &attr);

	for (uint32_t i = 0; !err && i < attr.gid_tbl_len; i++) {
		err = roci_query_gid(ctx, port, i, &e);
		if (err == ENODATA)
			err = 0;
		else if (!err && may_answer(&e, w)) {
			*sgid_index = (uint8_t)i;
			return 0;
		}
	}
	return err ? err
		   : fail(EADDRNOTAVAIL,
			     "port %u no longer has a GID that can answer the datagram "
			     "on its VLAN: give its netdev an address, or choose another "
			     "sgid_index",
			     port);
}

int roci_init_ah_from_wc(struct roci_context *ctx, uint32_t port, const struct roci_wc *wc,
	const struct roci_grh_area *area, struct roci_ah_attr *attr)
{
	return roci_init_ah_from_wc_net(ctx, port, wc, NULL, area, attr);
}

int roci_init_ah_from_wc_net(struct roci_context *ctx, uint32_t port, const struct roci_wc *wc,
	const struct roci_wc_net *net, const struct roci_grh_area *area, struct roci_ah_attr *attr)
{
	struct way w;

	if (!(wc->wc_flags & ROCI_WC_GRH) || !read_area(area->raw, net, &w))
		return fail_const(EINVAL,
			"this is not a datagram: its completion has no ROCI_WC_GRH, "
			"or its first 40 bytes are not an IP header");
	*attr = (struct roci_ah_attr){
		.grh =
			{
				.dgid = w.from,
				.flow_label = w.flow_label,
				.hop_limit = HOP_LIMIT_MAX,
				.traffic_class = w.traffic_class,
			},
		.sl = wc->sl,
		.is_global = 1,
		.port_num = (uint8_t)port,
	};
	return find_own(ctx, port, &w, &attr->grh.sgid_index);
}

struct roci_ah *roci_create_ah_from_wc(struct roci_pd *pd, uint32_t port, const struct roci_wc *wc,
	const struct roci_grh_area *area)
{
	struct roci_ah_attr attr;
	int err = roci_init_ah_from_wc(pd->context, port, wc, area, &attr);

	if (err) {
		errno = err;
		return NULL;
	}
	return roci_create_ah(pd, &attr);
}

/* --- groups ----------------------------------------------------------------------------- */

static int mcast(struct roci_qp *qp, const union roci_gid *group, uint32_t type)
{
	struct abi_mcast body = {.qp = ((struct qp *)qp)->handle};

	memcpy(body.mgid, group->raw, sizeof(body.mgid));
	return call_plain(context_of(qp->context), type, &body, sizeof(body), NULL, 0);
}

int roci_attach_mcast(struct roci_qp *qp, const union roci_gid *group)
{
	return mcast(qp, group, ABI_ATTACH_MCAST);
}

int roci_detach_mcast(struct roci_qp *qp, const union roci_gid *group)
{
	return mcast(qp, group, ABI_DETACH_MCAST);
}

uint32_t roci_ah_handle(const struct roci_ah *ah)
{
	return ((const struct ah *)ah)->handle;
}
