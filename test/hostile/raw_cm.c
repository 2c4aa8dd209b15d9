/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_cm.h"
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static int call(
	struct raw_cm *c, uint32_t type, const void *body, size_t len, void *out, size_t out_len)
{
	return raw_call(c->s, type, body, len, -1, out, out_len, NULL, 0);
}

int raw_cm_open(struct raw_cm *c, struct raw *s, uint32_t qpn)
{
	struct abi_query_gid q = {.port = 2};
	struct abi_gid gid;

	*c = (struct raw_cm){.s = s, .qpn = qpn, .passive_qpn = qpn, .fd = -1};
	raw_must(s, ABI_QUERY_GID, &q, sizeof(q), &gid, sizeof(gid));
	memcpy(c->gid, gid.gid, sizeof(c->gid));
	return raw_call(s, ABI_CM_OPEN, NULL, 0, -1, &c->channel, sizeof(c->channel), &c->fd, 1);
}

void raw_cm_close(struct raw_cm *c)
{
	raw_cm_simple(c, ABI_CM_CLOSE, c->channel);
	close(c->fd);
}

int raw_cm_id(struct raw_cm *c, uint16_t ps, uint8_t qp_type, uint32_t *id)
{
	const struct abi_cm_create_id in = {.channel = c->channel, .ps = ps, .qp_type = qp_type};

	return call(c, ABI_CM_CREATE_ID, &in, sizeof(in), id, sizeof(*id));
}

int raw_cm_simple(struct raw_cm *c, uint32_t type, uint32_t handle)
{
	const struct abi_handle in = {.handle = handle};

	return call(c, type, &in, sizeof(in), NULL, 0);
}

static struct abi_cm_addr address(const uint8_t ip[4], uint16_t port)
{
	struct abi_cm_addr a = {.family = 4, .port = port, .ip = {[10] = 0xFF, [11] = 0xFF}};

	memcpy(a.ip + 12, ip, 4);
	return a;
}

int raw_cm_bind(struct raw_cm *c, uint32_t id, uint16_t port)
{
	const struct abi_cm_bind in = {.id = id, .addr = address((uint8_t[4]){0}, port)};

	return call(c, ABI_CM_BIND, &in, sizeof(in), NULL, 0);
}

int raw_cm_listen(struct raw_cm *c, uint32_t id, uint16_t port)
{
	const struct abi_cm_listen in = {.id = id};
	int status = raw_cm_bind(c, id, port);

	return status ? status : call(c, ABI_CM_LISTEN, &in, sizeof(in), NULL, 0);
}

static int resolve(struct raw_cm *c, uint32_t id, const uint8_t ip[4], uint16_t port)
{
	const struct abi_cm_resolve_addr in = {
		.id = id, .timeout_ms = 2000, .dst = address(ip, port)};

	return call(c, ABI_CM_RESOLVE_ADDR, &in, sizeof(in), NULL, 0);
}

int raw_cm_resolve(struct raw_cm *c, uint32_t id, uint8_t host, uint16_t port)
{
	return resolve(c, id, (uint8_t[4]){192, 0, 2, host}, port);
}

int raw_cm_resolve_own(struct raw_cm *c, uint32_t id, uint16_t port)
{
	const struct abi_cm_resolve_route route = {.id = id};
	int status = resolve(c, id, c->gid + 12, port);

	return status ? status : call(c, ABI_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, 0);
}

int raw_cm_connect(struct raw_cm *c, uint32_t id)
{
	const struct abi_cm_connect in = {.id = id, .param = {.qpn = c->qpn}};

	return call(c, ABI_CM_CONNECT, &in, sizeof(in), NULL, 0);
}

int raw_cm_accept(struct raw_cm *c, uint32_t id)
{
	const struct abi_cm_accept in = {.id = id, .param = {.qpn = c->passive_qpn}};

	return call(c, ABI_CM_ACCEPT, &in, sizeof(in), NULL, 0);
}

int raw_cm_join(struct raw_cm *c, uint32_t id)
{
	const struct abi_cm_join in = {.id = id, .addr = address((uint8_t[4]){239, 1, 2, 3}, 0)};

	return call(c, ABI_CM_JOIN, &in, sizeof(in), NULL, 0);
}

bool raw_cm_event(struct raw_cm *c, struct abi_cm_event *e)
{
	const struct abi_handle in = {.handle = c->channel};
	int status = call(c, ABI_CM_GET_EVENT, &in, sizeof(in), e, sizeof(*e));

	if (status && status != -EAGAIN)
		errx(1, "CM_GET_EVENT: %d %s", status, c->s->why);
	return !status;
}

struct abi_cm_event raw_cm_wait(struct raw_cm *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	struct abi_cm_event e;

	if (poll(&p, 1, RAW_PATIENCE_S * 1000) != 1 || !raw_cm_event(c, &e))
		errx(1, "no event of a connection");
	return e;
}
