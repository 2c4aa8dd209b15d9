/* SPDX-License-Identifier: BSD-3-Clause */
/** @file xrc.h  Extended reliable connected (IBA A14): RC whose target takes the receive WQE of
 *  each message from the SRQ that the message names. */
#ifndef XRC_H
#define XRC_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct pkt;
struct qp;

/** @return the peer's SRQ that the request of @p qp, an XRC_SEND QP, which is being sent is for. */
uint32_t xrc_srqn(const struct qp *qp);

/** Notes the SRQ that @p pkt names, a request packet for an XRC_RECV QP, before responder_rx()
 * handles it.
 * @return false when it was dealt with: the SRQ of the current message was destroyed. */
bool xrc_request(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

#endif
