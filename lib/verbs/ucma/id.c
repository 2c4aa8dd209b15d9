/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids: lifetime, addresses and options. */
#include <errno.h>
#include <infiniband/sa.h>
#include <stddef.h>
#include <string.h>
#include "ucma.h"
#include "verbs.h"

/* As in the kernel, the port space implies the QP type; only for the IB space does the program name
 * it. */
static uint8_t qp_type_of(const struct rdma_ucm_create_id *in)
{
	switch (in->ps) {
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return ABI_QPT_UD;
	case RDMA_PS_IB:
		return in->qp_type;
	default:
		return ABI_QPT_RC;
	}
}

int ucma_create_id(const struct ucma_command *c)
{
	struct rdma_ucm_create_id in;
	struct rdma_ucm_create_id_resp resp = {0};
	struct abi_cm_create_id body = {.channel = c->file->channel};
	struct abi_handle_reply made;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && c->out_len < sizeof(resp))
		err = ENOSPC;
	if (err)
		return err;
	body.ps = in.ps;
	body.qp_type = qp_type_of(&in);
	err = ucma_call(c, ABI_CM_CREATE_ID, &body, sizeof(body), &made, sizeof(made));
	if (err)
		return err;
	if (!ucma_id_add(c->file, made.handle, in.uid, body.qp_type)) {
		const struct abi_handle gone = {.handle = made.handle};

		ucma_call(c, ABI_CM_DESTROY_ID, &gone, sizeof(gone), NULL, 0);
		return ENOMEM;
	}
	resp.id = made.handle;
	return ucma_respond(c, in.response, &resp, sizeof(resp), sizeof(resp));
}

/* If rocid has gone, destruction still succeeds. */
int ucma_destroy_id(const struct ucma_command *c)
{
	struct rdma_ucm_destroy_id in;
	struct rdma_ucm_destroy_id_resp resp;
	struct abi_handle body;
	struct ucma_id *id;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && c->out_len < sizeof(resp))
		err = ENOSPC;
	if (err)
		return err;
	err = ucma_id_missing(c->file, in.id);
	if (err)
		return err;
	id = ucma_id_find(in.id);
	body = (struct abi_handle){.handle = id->handle};
	err = ucma_call(c, ABI_CM_DESTROY_ID, &body, sizeof(body), NULL, 0);
	if (err && err != EIO)
		return err;
	resp.events_reported = id->reported;
	ucma_id_remove(id);
	return ucma_respond(c, in.response, &resp, sizeof(resp), sizeof(resp));
}

/* Moves an id from the file that `fd` names to the file written to. */
int ucma_migrate_id(const struct ucma_command *c)
{
	struct rdma_ucm_migrate_id in;
	struct rdma_ucm_migrate_resp resp;
	struct abi_cm_migrate body = {.channel = c->file->channel};
	const struct ucma_file *from;
	struct ucma_id *id;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && c->out_len < sizeof(resp))
		err = ENOSPC;
	if (err)
		return err;
	from = ucma_file_of((int)in.fd);
	id = from ? ucma_id_of(from, in.id) : NULL;
	if (!id)
		return ENOENT;
	if (from->session != c->file->session)
		return explain_as("rdma_migrate_id", EINVAL,
			"rocid was restarted between the two channels: create a new id");
	body.id = id->handle;
	err = ucma_call(c, ABI_CM_MIGRATE_ID, &body, sizeof(body), NULL, 0);
	if (err)
		return err;
	resp.events_reported = id->reported;
	ucma_id_migrate(id, c->file);
	return ucma_respond(c, in.response, &resp, sizeof(resp), sizeof(resp));
}

/* --- addresses -------------------------------------------------------------------------------- */

static int bind_to(
	const struct ucma_command *c, uint32_t id, const void *addr, size_t len, bool exact)
{
	struct abi_cm_bind body = {.id = id};
	int err = ucma_address_read(&body.addr, addr, len, exact);

	if (!err)
		err = ucma_id_missing(c->file, id);
	return err ? err : ucma_call(c, ABI_CM_BIND, &body, sizeof(body), NULL, 0);
}

int ucma_bind_ip(const struct ucma_command *c)
{
	struct rdma_ucm_bind_ip in;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	return err ? err : bind_to(c, in.id, &in.addr, sizeof(in.addr), false);
}

int ucma_bind(const struct ucma_command *c)
{
	struct rdma_ucm_bind in;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && (in.reserved || in.addr_size > sizeof(in.addr)))
		err = EINVAL;
	return err ? err : bind_to(c, in.id, &in.addr, in.addr_size, true);
}

struct two_addresses {
	const void *src, *dst;
	size_t src_len, dst_len; /* of `src` 0: not given */
	bool exact;
};

static int resolve(const struct ucma_command *c, uint32_t id, uint32_t timeout_ms,
	const struct two_addresses *a)
{
	struct abi_cm_resolve_addr body = {.id = id, .timeout_ms = timeout_ms};
	int err = ucma_address_read(&body.dst, a->dst, a->dst_len, a->exact);

	if (!err && a->src_len)
		err = ucma_address_read(&body.src, a->src, a->src_len, a->exact);
	if (!err)
		err = ucma_id_missing(c->file, id);
	return err ? err : ucma_call(c, ABI_CM_RESOLVE_ADDR, &body, sizeof(body), NULL, 0);
}

int ucma_resolve_ip(const struct ucma_command *c)
{
	struct rdma_ucm_resolve_ip in;
	struct two_addresses a = {.src = &in.src_addr,
		.dst = &in.dst_addr,
		.src_len = sizeof(in.src_addr),
		.dst_len = sizeof(in.dst_addr)};
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && !in.src_addr.sin6_family)
		a.src_len = 0;
	return err ? err : resolve(c, in.id, in.timeout_ms, &a);
}

int ucma_resolve_addr(const struct ucma_command *c)
{
	struct rdma_ucm_resolve_addr in;
	struct two_addresses a = {.src = &in.src_addr, .dst = &in.dst_addr, .exact = true};
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err && (in.reserved || in.src_size > sizeof(in.src_addr) ||
			    in.dst_size > sizeof(in.dst_addr)))
		err = EINVAL;
	if (err)
		return err;
	a.src_len = in.src_size;
	a.dst_len = in.dst_size;
	return resolve(c, in.id, in.timeout_ms, &a);
}

int ucma_resolve_route(const struct ucma_command *c)
{
	struct rdma_ucm_resolve_route in;
	struct abi_cm_resolve_route body;
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (err)
		return err;
	body = (struct abi_cm_resolve_route){.id = in.id, .timeout_ms = in.timeout_ms};
	return ucma_call(c, ABI_CM_RESOLVE_ROUTE, &body, sizeof(body), NULL, 0);
}

/* --- options ---------------------------------------------------------------------------------- */

static int option_of(const struct rdma_ucm_set_option *in, struct abi_cm_set_option *body)
{
	static const struct {
		uint32_t ours, len;
	} known[] = {
		[RDMA_OPTION_ID_TOS] = {ABI_CM_OPT_TOS, 1},
		[RDMA_OPTION_ID_REUSEADDR] = {ABI_CM_OPT_REUSEADDR, 4},
		[RDMA_OPTION_ID_AFONLY] = {ABI_CM_OPT_AFONLY, 4},
		[RDMA_OPTION_ID_ACK_TIMEOUT] = {ABI_CM_OPT_ACK_TIMEOUT, 1},
	};
	const void *value = (const void *)(uintptr_t)in->optval;
	uint8_t byte;

	if (in->level != RDMA_OPTION_ID || in->optname >= sizeof(known) / sizeof(*known))
		return ENOSYS;
	if (in->optlen != known[in->optname].len)
		return EINVAL;
	body->option = known[in->optname].ours;
	if (in->optlen == 1) {
		memcpy(&byte, value, 1);
		body->value = byte;
	} else {
		memcpy(&body->value, value, 4);
		body->value = body->value != 0;
	}
	return 0;
}

/* Finds the first bidirectional path at @p at, as the kernel requires. */
static int read_path(const uint8_t *at, size_t len, struct ibv_path_data *to)
{
	if (len % sizeof(*to))
		return EINVAL;
	for (; len; len -= sizeof(*to), at += sizeof(*to)) {
		memcpy(to, at, sizeof(*to));
		if (to->flags == (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL))
			return 0;
	}
	return EINVAL;
}

/* The program supplies a path, for example from ibacm, instead of calling RESOLVE_ROUTE. A RoCE
 * port uses only its traffic class. */
static int set_path(const struct ucma_command *c, const struct rdma_ucm_set_option *in)
{
	const struct abi_handle id = {.handle = in->id};
	struct abi_cm_set_option tos = {.id = in->id, .option = ABI_CM_OPT_TOS};
	struct abi_cm_resolve_route route = {.id = in->id};
	struct ibv_path_data path;
	struct abi_cm_query q;
	int err = read_path((const uint8_t *)(uintptr_t)in->optval, in->optlen, &path);

	if (!err)
		err = ucma_call(c, ABI_CM_QUERY, &id, sizeof(id), &q, sizeof(q));
	if (!err && (memcmp(&path.path.dgid, q.dgid, 16) || memcmp(&path.path.sgid, q.sgid, 16)))
		err = explain_as("rdma_set_option", EINVAL,
			"the path does not connect the addresses of the id: resolve a route for "
			"the id");
	if (!err)
		err = ucma_call(c, ABI_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0);
	tos.value = path.path.tclass;
	return err ? err : ucma_call(c, ABI_CM_SET_OPTION, &tos, sizeof(tos), NULL, 0);
}

int ucma_set_option(const struct ucma_command *c)
{
	struct rdma_ucm_set_option in;
	struct abi_cm_set_option body = {0};
	int err = ucma_arguments(c, &in, sizeof(in), sizeof(in));

	if (!err)
		err = ucma_id_missing(c->file, in.id);
	if (!err && in.level == RDMA_OPTION_IB && in.optname == RDMA_OPTION_IB_PATH)
		return set_path(c, &in);
	if (!err)
		err = option_of(&in, &body);
	if (err)
		return err;
	body.id = in.id;
	return ucma_call(c, ABI_CM_SET_OPTION, &body, sizeof(body), NULL, 0);
}
