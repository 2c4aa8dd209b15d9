/* SPDX-License-Identifier: BSD-3-Clause */
/** @file txd_bth.h  The headers that core_tx() has written into a packet. */
#ifndef TXD_BTH_H
#define TXD_BTH_H

#include <stdint.h>
#include "bits.h"
#include "headers.h"
#include "txd.h"

/** @return the BTH of @p t. */
static inline const uint8_t *txd_bth(const struct txd *t)
{
	static const uint8_t before[] = {
		[NET_IPV4] = IP4_HLEN + UDP_HLEN,
		[NET_IPV6] = IP6_HLEN + UDP_HLEN,
		[NET_ROCEV1] = GRH_HLEN,
	};

	return t->frame + t->l3_off + before[t->net];
}

/** @return the QPN that @p t is addressed to. */
static inline uint32_t txd_dest_qp(const struct txd *t)
{
	return get_be32(txd_bth(t) + BTH_RESV8A) & 0xFFFFFF;
}

#endif
