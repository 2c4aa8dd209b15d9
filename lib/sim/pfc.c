/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bits.h"
#include "buffer.h"
#include "headers.h"
#include "pfc.h"

#define ETHERTYPE_MAC_CONTROL 0x8808u
#define OPCODE_PFC	      0x0101u
#define PFC_OPCODE	      ETH_HLEN
#define PFC_ENABLED	      (PFC_OPCODE + 2)
#define PFC_TIME	      (PFC_ENABLED + 2 + 2 * PFC_PRIORITY)
#define PFC_LEN		      60u
#define FOR_LONG	      0xFFFFu /* quanta */

struct sim_buffer *pfc_frame(struct buffer_pool *pool, enum pfc_word word)
{
	static const uint8_t to[6] = {0x01, 0x80, 0xC2, 0, 0, 0x01};
	struct sim_buffer *b = pool_get(pool, PFC_LEN);

	if (!b)
		return NULL;
	memset(b->bytes, 0, PFC_LEN);
	memcpy(b->bytes + ETH_DST, to, sizeof(to));
	put_be16(b->bytes + ETH_TYPE, ETHERTYPE_MAC_CONTROL);
	put_be16(b->bytes + PFC_OPCODE, OPCODE_PFC);
	put_be16(b->bytes + PFC_ENABLED, 1u << PFC_PRIORITY);
	put_be16(b->bytes + PFC_TIME, word == PFC_XOFF ? FOR_LONG : 0);
	return b;
}

enum pfc_word pfc_read(const struct sim_buffer *b)
{
	if (get_be16(b->bytes + ETH_TYPE) != ETHERTYPE_MAC_CONTROL ||
		get_be16(b->bytes + PFC_OPCODE) != OPCODE_PFC)
		return PFC_NONE;
	return get_be16(b->bytes + PFC_TIME) ? PFC_XOFF : PFC_XON;
}

bool pfc_fits(const struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len)
{
	return !cfg->xoff || !cfg->headroom || in->bytes + len <= cfg->xoff + cfg->headroom;
}

enum pfc_word pfc_enter(
	struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len, uint64_t now)
{
	in->bytes += len;
	if (!cfg->xoff || in->paused || in->bytes <= cfg->xoff)
		return PFC_NONE;
	in->paused = true;
	in->pauses++;
	in->since = now;
	return PFC_XOFF;
}

enum pfc_word pfc_leave(
	struct pfc_ingress *in, const struct pfc_config *cfg, uint32_t len, uint64_t now)
{
	in->bytes -= len;
	if (!in->paused || in->bytes > cfg->xon)
		return PFC_NONE;
	in->paused = false;
	in->paused_ns += now - in->since;
	return PFC_XON;
}
