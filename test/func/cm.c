/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm.h"
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "roci_private.h"

#define PATIENCE_MS 120000

void cm_must(int ok, const char *what)
{
	if (!ok)
		errx(1, "%s: %s", what, roci_last_error());
}

void cm_user_open(struct cm_user *u, struct roci_context *ctx)
{
	struct abi_handle_reply r;

	u->ctx = ctx;
	cm_must(!roci_cm_call(ctx, ABI_CM_OPEN, NULL, 0, &r, sizeof(r), &u->fd), "CM_OPEN");
	u->channel = r.handle;
}

void cm_ask(struct cm_user *u, uint32_t type, const void *body, size_t len, void *reply,
	size_t reply_len)
{
	if (roci_cm_call(u->ctx, type, body, len, reply, reply_len, NULL))
		errx(1, "CM message %u: %s", type - ABI_CM_OPEN, roci_last_error());
}

uint32_t cm_id(struct cm_user *u, uint16_t ps, uint8_t qp_type, uint64_t uid)
{
	const struct abi_cm_create_id body = {
		.channel = u->channel, .ps = ps, .qp_type = qp_type, .uid = uid};
	struct abi_handle_reply r;

	cm_ask(u, ABI_CM_CREATE_ID, &body, sizeof(body), &r, sizeof(r));
	return r.handle;
}

struct abi_cm_addr cm_addr(const char *ip, uint16_t port)
{
	struct abi_cm_addr a = {.family = 6, .port = port};

	if (inet_pton(AF_INET6, ip, a.ip) == 1)
		return a;
	a.family = 4;
	memset(a.ip + 10, 0xFF, 2);
	cm_must(inet_pton(AF_INET, ip, a.ip + 12) == 1, ip);
	return a;
}

int cm_next(struct cm_user *u, int ms, struct abi_cm_event *e)
{
	const struct abi_handle body = {.handle = u->channel};
	struct pollfd p = {.fd = u->fd, .events = POLLIN};

	if (poll(&p, 1, ms) != 1)
		return 0;
	cm_must(p.revents & POLLIN, "the channel");
	cm_ask(u, ABI_CM_GET_EVENT, &body, sizeof(body), e, sizeof(*e));
	return 1;
}

struct abi_cm_event cm_expect(struct cm_user *u, uint32_t type)
{
	struct abi_cm_event e;

	if (!cm_next(u, PATIENCE_MS, &e))
		errx(1, "no event, where %u is due", type);
	if (e.event != type)
		errx(1, "event %u (status %d, %s) where %u is due", e.event, e.status, e.why, type);
	return e;
}

uint32_t cm_serve(struct cm_user *u, uint16_t ps, const char *ip, uint16_t port)
{
	uint32_t id = cm_id(u, ps, ps == ABI_CM_PS_UDP ? ABI_QPT_UD : ABI_QPT_RC, 1);
	const struct abi_cm_bind bind = {.id = id, .addr = cm_addr(ip, port)};
	const struct abi_cm_listen listen = {.id = id, .backlog = 8};

	cm_ask(u, ABI_CM_BIND, &bind, sizeof(bind), NULL, 0);
	cm_ask(u, ABI_CM_LISTEN, &listen, sizeof(listen), NULL, 0);
	return id;
}

uint32_t cm_resolve(struct cm_user *u, uint16_t ps, const char *from, const char *to, uint16_t port)
{
	uint32_t id = cm_id(u, ps, ps == ABI_CM_PS_UDP ? ABI_QPT_UD : ABI_QPT_RC, 2);
	const struct abi_cm_resolve_addr addr = {
		.id = id, .timeout_ms = 2000, .src = cm_addr(from, 0), .dst = cm_addr(to, port)};
	const struct abi_cm_resolve_route route = {.id = id, .timeout_ms = 2000};

	cm_ask(u, ABI_CM_RESOLVE_ADDR, &addr, sizeof(addr), NULL, 0);
	cm_expect(u, ABI_CM_ADDR_RESOLVED);
	cm_ask(u, ABI_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0);
	cm_expect(u, ABI_CM_ROUTE_RESOLVED);
	return id;
}

static enum roci_mtu mtu_of(uint32_t bytes)
{
	enum roci_mtu mtu = ROCI_MTU_256;

	while (256u << (mtu - ROCI_MTU_256) < bytes)
		mtu++;
	return mtu;
}

void cm_move(struct cm_user *u, uint32_t id, struct roci_qp *qp, uint32_t state)
{
	const struct abi_cm_init_qp_attr body = {.id = id, .state = state};
	struct abi_cm_qp_attr a;
	struct roci_qp_attr to = {.size = sizeof(to)};

	cm_ask(u, ABI_CM_INIT_QP_ATTR, &body, sizeof(body), &a, sizeof(a));
	to.qp_state = (enum roci_qp_state)a.attr.qp_state;
	to.qp_access_flags = a.attr.access_flags;
	to.port_num = a.attr.port;
	to.qkey = a.attr.qkey;
	to.path_mtu = mtu_of(a.attr.path_mtu);
	to.dest_qp_num = a.attr.dest_qpn;
	to.rq_psn = a.attr.rq_psn;
	to.sq_psn = a.attr.sq_psn;
	to.timeout = a.attr.timeout;
	to.retry_cnt = a.attr.retry_cnt;
	to.rnr_retry = a.attr.rnr_retry;
	to.max_rd_atomic = a.attr.max_rd_atomic;
	to.max_dest_rd_atomic = a.attr.max_dest_rd_atomic;
	memcpy(to.ah_attr.grh.dgid.raw, a.attr.ah.dgid, 16);
	to.ah_attr.grh.sgid_index = a.attr.ah.sgid_index;
	to.ah_attr.grh.hop_limit = a.attr.ah.hop_limit;
	to.ah_attr.grh.traffic_class = a.attr.ah.traffic_class;
	to.ah_attr.is_global = 1;
	to.ah_attr.port_num = a.attr.ah.port;
	cm_must(!roci_modify_qp(qp, &to, (int)a.mask), "modify the QP");
}
