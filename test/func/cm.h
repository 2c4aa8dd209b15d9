/* SPDX-License-Identifier: BSD-3-Clause */
/** @file cm.h  For functional tests: connections through rocid's communication manager. */
#ifndef TEST_CM_H
#define TEST_CM_H

#include <roci.h>
#include <stdint.h>
#include "abi_cm.h"

/** A channel of a session. */
struct cm_user {
	struct roci_context *ctx;
	uint32_t channel;
	int fd;
};

void cm_must(int ok, const char *what);
void cm_user_open(struct cm_user *u, struct roci_context *ctx);

/** Sends a request that must succeed. */
void cm_ask(struct cm_user *u, uint32_t type, const void *body, size_t len, void *reply,
	size_t reply_len);

uint32_t cm_id(struct cm_user *u, uint16_t ps, uint8_t qp_type, uint64_t uid);
struct abi_cm_addr cm_addr(const char *ip, uint16_t port);

/** Waits for the next event, which must be of @p type. */
struct abi_cm_event cm_expect(struct cm_user *u, uint32_t type);

/** The next event, within @p ms.  @return false: there is none. */
int cm_next(struct cm_user *u, int ms, struct abi_cm_event *e);

/** BIND and LISTEN. */
uint32_t cm_serve(struct cm_user *u, uint16_t ps, const char *ip, uint16_t port);

/** RESOLVE_ADDR and RESOLVE_ROUTE. */
uint32_t cm_resolve(
	struct cm_user *u, uint16_t ps, const char *from, const char *to, uint16_t port);

/** Moves @p qp to @p state by the attributes of CM. */
void cm_move(struct cm_user *u, uint32_t id, struct roci_qp *qp, uint32_t state);

#endif
