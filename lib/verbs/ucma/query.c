/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses, device and path of an id. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/sa.h>
#include <stddef.h>
#include <string.h>
#include "ucma.h"
#include "verbs.h"

#define SELECTOR 2 /* exactly */

static int ask(const struct ucma_command *c, uint32_t id, struct abi_cm_query *q)
{
	const struct abi_handle body = {.handle = id};

	int err = ucma_id_missing(c->file, id);

	if (err)
		return err;
	return ucma_call(c, ABI_CM_QUERY, &body, sizeof(body), q, sizeof(*q));
}

static uint8_t mtu_code(uint32_t bytes)
{
	return bytes ? (uint8_t)(__builtin_ctz(bytes) - 7) : 0;
}

static void write_route(const struct abi_cm_query *q, struct ib_user_path_rec *p)
{
	memcpy(p->dgid, q->dgid, 16);
	memcpy(p->sgid, q->sgid, 16);
	p->pkey = htons(q->pkey);
	if (!q->resolved)
		return;
	p->flow_label = htonl(q->flow_label);
	p->reversible = 1;
	p->mtu = mtu_code(q->mtu);
	p->hop_limit = q->hop_limit;
	p->traffic_class = q->traffic_class;
	p->numb_path = 1;
	p->sl = q->sl;
	p->mtu_selector = SELECTOR;
	p->rate_selector = SELECTOR;
	p->packet_life_time_selector = SELECTOR;
	p->packet_life_time = q->packet_life;
}

int ucma_query_route(const struct ucma_command *c)
{
	struct rdma_ucm_query_route_resp resp = {0};
	struct rdma_ucm_query in;
	struct abi_cm_query q;
	int err = ucma_arguments(c, &in, sizeof(in), offsetof(struct rdma_ucm_query, option));

	if (!err && c->out_len < offsetof(struct rdma_ucm_query_route_resp, ibdev_index))
		err = ENOSPC;
	if (!err)
		err = ask(c, in.id, &q);
	if (err)
		return err;
	ucma_address_write(&resp.src_addr, &q.local);
	ucma_address_write(&resp.dst_addr, &q.remote);
	resp.ibdev_index = UINT32_MAX; /* unknown: the GUID identifies the device */
	if (q.port) {
		resp.node_guid = q.node_guid;
		resp.port_num = (uint8_t)q.port;
		resp.num_paths = q.resolved != 0;
		write_route(&q, &resp.ib_route[0]);
	}
	return ucma_respond(c, in.response, &resp, sizeof(resp),
		offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
}

static void write_device(const struct abi_cm_query *q, struct rdma_ucm_query_addr_resp *resp)
{
	resp->ibdev_index = UINT32_MAX;
	if (!q->port)
		return;
	resp->node_guid = q->node_guid;
	resp->port_num = (uint8_t)q->port;
	resp->pkey = htons(q->pkey);
}

static int query_addr(
	const struct ucma_command *c, const struct rdma_ucm_query *in, const struct abi_cm_query *q)
{
	struct rdma_ucm_query_addr_resp resp = {0};

	write_device(q, &resp);
	resp.src_size = ucma_address_write((struct sockaddr_in6 *)&resp.src_addr, &q->local);
	resp.dst_size = ucma_address_write((struct sockaddr_in6 *)&resp.dst_addr, &q->remote);
	return ucma_respond(c, in->response, &resp, sizeof(resp),
		offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

static uint16_t write_gid(struct __kernel_sockaddr_storage *to, const struct abi_cm_query *q,
	const uint8_t gid[16], uint16_t port)
{
	struct ucma_address_ib ib = {.family = AF_IB, .pkey = htons(q->pkey)};

	memcpy(ib.gid, gid, 16);
	ib.sid = port;
	memcpy(to, &ib, sizeof(ib));
	return sizeof(ib);
}

static int query_gid(
	const struct ucma_command *c, const struct rdma_ucm_query *in, const struct abi_cm_query *q)
{
	struct rdma_ucm_query_addr_resp resp = {0};

	write_device(q, &resp);
	resp.src_size = write_gid(&resp.src_addr, q, q->sgid, q->local.port);
	resp.dst_size = write_gid(&resp.dst_addr, q, q->dgid, q->remote.port);
	return ucma_respond(c, in->response, &resp, sizeof(resp),
		offsetof(struct rdma_ucm_query_addr_resp, ibdev_index));
}

/** struct rdma_ucm_query_path_resp with one element in its array. */
struct one_path {
	uint32_t num_paths, reserved;
	struct ibv_path_data data;
};

_Static_assert(
	offsetof(struct one_path, data) == offsetof(struct rdma_ucm_query_path_resp, path_data),
	"one_path is not laid out as the kernel's answer");

static int query_path(
	const struct ucma_command *c, const struct rdma_ucm_query *in, const struct abi_cm_query *q)
{
	struct one_path resp = {0};
	struct ibv_path_record *p = &resp.data.path;
	const size_t head = offsetof(struct one_path, data);

	if (!q->resolved)
		return ucma_respond(c, in->response, &resp, head, head);
	resp.num_paths = 1;
	resp.data.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	memcpy(&p->dgid, q->dgid, 16);
	memcpy(&p->sgid, q->sgid, 16);
	p->flowlabel_hoplimit = htonl(q->flow_label << 8 | q->hop_limit);
	p->tclass = q->traffic_class;
	p->reversible_numpath = 1 << 7 | 1;
	p->pkey = htons(q->pkey);
	p->qosclass_sl = htons(q->sl);
	p->mtu = SELECTOR << 6 | mtu_code(q->mtu);
	p->rate = SELECTOR << 6;
	p->packetlifetime = SELECTOR << 6 | q->packet_life;
	return ucma_respond(c, in->response, &resp, sizeof(resp), head);
}

int ucma_query(const struct ucma_command *c)
{
	struct rdma_ucm_query in;
	struct abi_cm_query q;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err)
		err = ask(c, in.id, &q);
	if (err)
		return err;
	switch (in.option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(c, &in, &q);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(c, &in, &q);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(c, &in, &q);
	default:
		return ENOSYS;
	}
}
