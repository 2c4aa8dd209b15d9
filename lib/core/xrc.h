/* SPDX-License-Identifier: BSD-3-Clause */
/** @file xrc.h  Extended reliable connected (IBA A14): RC whose target takes each message's receive
 *  from the SRQ that the message names. */
#ifndef XRC_H
#define XRC_H

#include "qp.h"

/** A request packet of an XRC_RECV QP, which responder_rx() takes next: notes the SRQ that it
 * names.
 *  @return false when it was dealt with: the SRQ of the message under way has gone. */
bool xrc_request(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now);

#endif
