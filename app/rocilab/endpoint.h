/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file endpoint.h
 * The two QPs of a flow: created, connected, and given receive WQEs if its messages need any.
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

struct abi_wqe;
struct lab_flow;

/** Messages of a flow that are posted at a time: a power of two. */
#define AHEAD 4u
/** Receive WQEs of a flow that needs any: a power of two. */
#define RECEIVES 16u
/** In the wr_id of a receive WQE; the rest is the flow's number, as in a send WQE. */
#define ENDPOINT_RECEIVED (1ull << 63)

/** @return whether memory was enough. */
bool endpoint_make(struct lab_flow *f);

/** Addresses @p w to the sink of @p f, a flow of datagrams. */
void endpoint_address(const struct lab_flow *f, struct abi_wqe *w);

/** A receive WQE of @p f is complete: posts another one. */
void endpoint_received(struct lab_flow *f, uint8_t status);

#endif
