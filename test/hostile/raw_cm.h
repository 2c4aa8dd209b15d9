/* SPDX-License-Identifier: BSD-3-Clause */
/** @file raw_cm.h  RDMA CM for clients that speak the ABI themselves: abi_cm.h. */
#ifndef RAW_CM_H
#define RAW_CM_H

#include "abi_cm.h"
#include "raw.h"

/** A channel of @p s, and the QPNs that its connections name. */
struct raw_cm {
	struct raw *s;
	uint32_t channel;
	int fd;
	uint32_t qpn, passive_qpn;
	uint8_t gid[16]; /* of port 2 */
};

/** Functions that return an int return the status of the reply. Addresses are those of IPv4. */
int raw_cm_open(struct raw_cm *c, struct raw *s, uint32_t qpn);
void raw_cm_close(struct raw_cm *c);

int raw_cm_id(struct raw_cm *c, uint16_t ps, uint8_t qp_type, uint32_t *id);
/** For requests whose body is a handle. */
int raw_cm_simple(struct raw_cm *c, uint32_t type, uint32_t handle);
/** At all addresses; port 0: an ephemeral one. */
int raw_cm_bind(struct raw_cm *c, uint32_t id, uint16_t port);
/** Binds and listens. */
int raw_cm_listen(struct raw_cm *c, uint32_t id, uint16_t port);
/** Begins to resolve 192.0.2.@p host. */
int raw_cm_resolve(struct raw_cm *c, uint32_t id, uint8_t host, uint16_t port);
/** The same for port 2, at once, and the route. */
int raw_cm_resolve_own(struct raw_cm *c, uint32_t id, uint16_t port);
int raw_cm_connect(struct raw_cm *c, uint32_t id);
int raw_cm_accept(struct raw_cm *c, uint32_t id);
/** Joins a group. */
int raw_cm_join(struct raw_cm *c, uint32_t id);

/** @return whether an event was there. */
bool raw_cm_event(struct raw_cm *c, struct abi_cm_event *e);
/** Waits for one; ends the program when none comes. */
struct abi_cm_event raw_cm_wait(struct raw_cm *c);

#endif
