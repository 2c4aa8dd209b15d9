/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of the device, its ports and their tables. */
#include <string.h>
#include "client.h"
#include "gid.h"

/* 8 ms: a worker that shares its CPU may pause that long. */
#define ACK_DELAY 11

_Static_assert(sizeof(((struct roci_device_attr *)0)->fw_ver) ==
		       sizeof(((struct abi_device_attr *)0)->version),
	"version");

int roci_query_device(struct roci_context *ctx, struct roci_device_attr *attr)
{
	struct abi_device_attr r;
	struct roci_device_attr a;
	int err = call_plain(context_of(ctx), ABI_QUERY_DEVICE, NULL, 0, &r, sizeof(r));

	if (err)
		return err;
	a = (struct roci_device_attr){
		.node_guid = r.node_guid,
		.phys_port_cnt = r.ports,
		.max_qp = r.max_qp,
		.max_qp_wr = r.max_qp_wr,
		.max_sge = r.max_sge,
		.max_inline_data = r.max_inline,
		.max_cq = r.max_cq,
		.max_cqe = r.max_cqe,
		.max_mr = r.max_mr,
		.max_pd = r.max_pd,
		.max_qp_rd_atom = r.max_rd_atomic,
		.max_pkeys = r.max_pkeys,
		.max_srq = r.max_srq,
		.max_srq_wr = r.max_srq_wr,
		.atomic_cap = (enum roci_atomic_cap)r.atomic_cap,
		.max_mw = r.max_mw,
		.max_ah = r.max_ah,
		.max_srq_sge = r.max_srq_sge,
		.max_sge_rd = r.max_sge,
		.max_mcast_grp = r.max_mcast_groups,
		.max_mcast_qp_attach = r.max_mcast_members,
		.max_total_mcast_qp_attach = r.max_mcast_attach,
		.max_res_rd_atom = r.max_res_rd_atomic,
		.timestamp_bits = r.timestamp_bits,
		.hca_core_clock = r.core_clock_khz,
		.local_ca_ack_delay = ACK_DELAY,
	};
	memcpy(a.fw_ver, r.version, sizeof(a.fw_ver) - 1);
	return opts_write(attr, &a, sizeof(a), "roci_device_attr");
}

int roci_query_port(struct roci_context *ctx, uint32_t port, struct roci_port_attr *attr)
{
	struct abi_query_port body = {.port = port};
	struct abi_port_attr r;
	struct roci_port_attr a;
	int err = call_plain(context_of(ctx), ABI_QUERY_PORT, &body, sizeof(body), &r, sizeof(r));

	if (err)
		return err;
	a = (struct roci_port_attr){
		.state = (enum roci_port_state)r.state,
		.max_mtu = (enum roci_mtu)roci_mtu_of_bytes(r.max_mtu),
		.active_mtu = (enum roci_mtu)roci_mtu_of_bytes(r.active_mtu),
		.gid_tbl_len = r.gids,
		.pkey_tbl_len = r.pkeys,
		.speed_mbps = r.speed_mbps,
		.bad_pkey_cntr = r.bad_pkey_cntr,
		.qkey_viol_cntr = (uint16_t)r.qkey_viol_cntr,
		/* GID-08, GID-10 */
		.link_layer = ROCI_LINK_LAYER_ETHERNET,
		.roce_versions =
			ROCI_ROCE_V2 | (((struct context *)ctx)->rocev1 ? ROCI_ROCE_V1 : 0),
	};
	memcpy(a.mac, r.mac, sizeof(a.mac));
	memcpy(a.netdev, r.netdev, sizeof(a.netdev) - 1);
	return opts_write(attr, &a, sizeof(a), "roci_port_attr");
}

static bool is_empty(const union roci_gid *g)
{
	static const uint8_t zero[16];

	return memcmp(g->raw, zero, sizeof(zero)) == 0;
}

static void to_entry(
	const struct abi_gid *r, uint32_t port, uint32_t index, struct roci_gid_entry *e)
{
	*e = (struct roci_gid_entry){
		.gid_index = index,
		.port_num = port,
		.gid_type =
			r->type == ABI_GID_ROCEV1 ? ROCI_GID_TYPE_ROCE_V1 : ROCI_GID_TYPE_ROCE_V2,
		.ndev_ifindex = r->ifindex,
		.vid = r->vid,
	};
	memcpy(e->gid.raw, r->gid, sizeof(e->gid.raw));
	memcpy(e->mac, r->mac, sizeof(e->mac));
}

static int query_gid(
	struct roci_context *ctx, uint32_t port, uint32_t index, struct roci_gid_entry *e)
{
	struct abi_query_gid body = {.port = port, .index = index};
	struct abi_gid r;
	int err = call_plain(context_of(ctx), ABI_QUERY_GID, &body, sizeof(body), &r, sizeof(r));

	if (err)
		return err;
	to_entry(&r, port, index, e);
	return 0;
}

int roci_query_gids(
	struct roci_context *ctx, uint32_t port, struct roci_gid_entry *entry, unsigned int n)
{
	struct abi_query_gids body = {.port = port};
	struct roci_gid_entry e;
	unsigned int got = 0;
	struct abi_gids r;

	do {
		int err = call_plain(
			context_of(ctx), ABI_QUERY_GIDS, &body, sizeof(body), &r, sizeof(r));

		if (err)
			return -err;
		for (uint32_t i = 0; i < r.count && i < ABI_GIDS_MAX && got < n; i++) {
			to_entry(&r.at[i].gid, port, r.at[i].index, &e);
			err = opts_write(&entry[got++], &e, sizeof(e), "roci_gid_entry");
			if (err)
				return -err;
		}
		/* Must ascend, so that the loop ends. */
		body.first = r.next > body.first ? r.next : 0;
	} while (body.first && got < n);
	return (int)got;
}

int roci_query_gid(
	struct roci_context *ctx, uint32_t port, uint32_t index, struct roci_gid_entry *entry)
{
	struct roci_gid_entry e;
	int err = query_gid(ctx, port, index, &e);

	if (!err && is_empty(&e.gid))
		err = fail(ENODATA, "GID %u of port %u is empty: use another index", index, port);
	return err ? err : opts_write(entry, &e, sizeof(e), "roci_gid_entry");
}

static bool suits(const union roci_gid *own, const union roci_gid *peer)
{
	if (!peer)
		return !gid_is_link_local(own);
	return gid_is_ipv4(own) == gid_is_ipv4(peer) &&
	       gid_is_link_local(own) == gid_is_link_local(peer);
}

int roci_find_gid(struct roci_context *ctx, uint32_t port, const union roci_gid *peer,
	struct roci_gid_entry *entry)
{
	struct roci_port_attr attr = {.size = sizeof(attr)};
	struct roci_gid_entry e;
	int err = roci_query_port(ctx, port, &attr);

	for (uint32_t i = 0; !err && i < attr.gid_tbl_len; i++) {
		err = query_gid(ctx, port, i, &e);
		/* Valid entries may follow an empty one (GID-03). */
		if (!err && !is_empty(&e.gid) && e.gid_type == ROCI_GID_TYPE_ROCE_V2 &&
			suits(&e.gid, peer))
			return opts_write(entry, &e, sizeof(e), "roci_gid_entry");
	}
	if (err)
		return err;
	return fail(EADDRNOTAVAIL,
		"port %u has no RoCEv2 GID %s: give its netdev an address of that kind", port,
		!peer			  ? "except link-local ones"
		: gid_is_ipv4(peer)	  ? "over IPv4 like the peer's"
		: gid_is_link_local(peer) ? "that is link-local like the peer's"
					  : "over routable IPv6 like the peer's");
}

int roci_query_pkey(struct roci_context *ctx, uint32_t port, uint32_t index, uint16_t *pkey)
{
	struct abi_query_pkey body = {.port = port, .index = index};
	struct abi_pkey r;
	int err = call_plain(context_of(ctx), ABI_QUERY_PKEY, &body, sizeof(body), &r, sizeof(r));

	if (!err)
		*pkey = (uint16_t)r.pkey;
	return err;
}
