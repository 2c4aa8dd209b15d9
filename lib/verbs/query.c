/* SPDX-License-Identifier: BSD-3-Clause */
/* Device and port queries. */
#include <string.h>
#include "abi_ctl.h"
#include "link_rate.h"
#include "verbs.h"

/** Size of the older struct ibv_port_attr, which the function ibv_query_port() fills in. */
#define PORT_ATTR_COMPAT offsetof(struct ibv_port_attr, port_cap_flags2)

/* As Linux reports for RoCE: GRH required, IP-based GIDs, connection management. */
#define PORT_FLAGS	IBV_QPF_GRH_REQUIRED
#define PORT_CAP_FLAGS	(IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS)
#define PHYS_STATE_DOWN 3
#define PHYS_STATE_UP	5
#define MESSAGE_MAX	(1u << 31)
#define NO_VENDOR	0xFFFFFF /* no OUI, as soft-RoCE reports */

#define DEVICE_CAPS                                                                             \
	(IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_CHANGE_PHY_PORT |     \
		IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |                   \
		IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | \
		IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_XRC | IBV_DEVICE_MEM_MGT_EXTENSIONS |        \
		IBV_DEVICE_MEM_WINDOW_TYPE_2B)

/* Types that ibv_modify_qp_rate_limit() supports. */
#define PACED_TYPES                                                                        \
	(1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD | 1u << IBV_QPT_XRC_SEND | \
		1u << IBV_QPT_XRC_RECV)

static int query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *out)
{
	struct roci_port_attr p = {.size = sizeof(p)};
	int err = roci_query_port(context_of(c)->roci, port, &p);
	const struct link_rate *rate;

	if (err)
		return explain("ibv_query_port", err);
	rate = link_rate_of(p.speed_mbps);
	*out = (struct ibv_port_attr){
		.state = (enum ibv_port_state)p.state,
		.max_mtu = (enum ibv_mtu)p.max_mtu,
		.active_mtu = (enum ibv_mtu)p.active_mtu,
		.gid_tbl_len = (int)p.gid_tbl_len,
		.port_cap_flags = PORT_CAP_FLAGS,
		.max_msg_sz = MESSAGE_MAX,
		.bad_pkey_cntr = p.bad_pkey_cntr,
		.qkey_viol_cntr = p.qkey_viol_cntr,
		.pkey_tbl_len = (uint16_t)p.pkey_tbl_len,
		.max_vl_num = 1,
		.phys_state = p.state == ROCI_PORT_ACTIVE ? PHYS_STATE_UP : PHYS_STATE_DOWN,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = PORT_FLAGS,
		.active_width = (uint8_t)rate->width,
		.active_speed = (uint8_t)rate->speed,
	};
	return 0;
}

int verbs_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr a;
	int err = query_port(c, port, &a);

	if (err)
		return err;
	if (size > sizeof(a)) {
		memset((char *)attr + sizeof(a), 0, size - sizeof(a));
		size = sizeof(a);
	}
	memcpy(attr, &a, size);
	return 0;
}

VERBS_API int ibv_query_port(
	struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return verbs_query_port(c, port, (struct ibv_port_attr *)attr, PORT_ATTR_COMPAT);
}

static void convert(const struct roci_device_attr *r, struct ibv_device_attr *out)
{
	const struct roci_device_attr a = *r;

	*out = (struct ibv_device_attr){
		.node_guid = a.node_guid,
		.sys_image_guid = a.node_guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xFFFFF000,
		.vendor_id = NO_VENDOR,
		.max_qp = (int)a.max_qp,
		.max_qp_wr = (int)a.max_qp_wr,
		.device_cap_flags = DEVICE_CAPS,
		.max_sge = (int)a.max_sge,
		.max_sge_rd = (int)a.max_sge_rd,
		.max_cq = (int)a.max_cq,
		.max_cqe = (int)a.max_cqe,
		.max_mr = (int)a.max_mr,
		.max_pd = (int)a.max_pd,
		.max_qp_rd_atom = (int)a.max_qp_rd_atom,
		.max_res_rd_atom = (int)a.max_res_rd_atom,
		.max_qp_init_rd_atom = (int)a.max_qp_rd_atom,
		.atomic_cap = (enum ibv_atomic_cap)a.atomic_cap,
		.max_mw = (int)a.max_mw,
		.max_mcast_grp = (int)a.max_mcast_grp,
		.max_mcast_qp_attach = (int)a.max_mcast_qp_attach,
		.max_total_mcast_qp_attach = (int)a.max_total_mcast_qp_attach,
		.max_ah = (int)a.max_ah,
		.max_srq = (int)a.max_srq,
		.max_srq_wr = (int)a.max_srq_wr,
		.max_srq_sge = (int)a.max_srq_sge,
		.max_pkeys = (uint16_t)a.max_pkeys,
		.local_ca_ack_delay = a.local_ca_ack_delay,
		.phys_port_cnt = (uint8_t)a.phys_port_cnt,
	};
	memcpy(out->fw_ver, a.fw_ver, sizeof(a.fw_ver));
}

static int query_device(struct ibv_context *c, struct roci_device_attr *a)
{
	*a = (struct roci_device_attr){.size = sizeof(*a)};
	return explain("ibv_query_device", roci_query_device(context_of(c)->roci, a));
}

VERBS_API int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	struct roci_device_attr a;
	int err = query_device(c, &a);

	if (!err)
		convert(&a, attr);
	return err;
}

int verbs_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex a = {0};
	struct roci_device_attr r;
	int err;

	if (input && input->comp_mask)
		return EINVAL;
	if (size < offsetof(struct ibv_device_attr_ex, comp_mask) + sizeof(attr->comp_mask))
		return EINVAL;
	err = query_device(c, &r);
	if (err)
		return err;
	convert(&r, &a.orig_attr);
	a.completion_timestamp_mask =
		r.timestamp_bits >= 64 ? UINT64_MAX : (1ull << r.timestamp_bits) - 1;
	a.hca_core_clock = r.hca_core_clock;
	a.packet_pacing_caps =
		(struct ibv_packet_pacing_caps){ABI_RATE_MIN, ABI_RATE_MAX, PACED_TYPES};
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	a.phys_port_cnt_ex = a.orig_attr.phys_port_cnt;
	memset(attr, 0, size);
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* A worker's clock is in rocid's address space only: decision 0121. */
int verbs_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
	if (!values->comp_mask)
		return 0;
	return refused_as(c, "ibv_query_rt_values_ex", EOPNOTSUPP,
		"the device's clock cannot be read: compare timestamps of completions with each "
		"other");
}
