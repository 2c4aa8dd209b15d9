/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "bench.h"
#include "burst.h"
#include "headers.h"
#include "raw.h"

/* IEEE 802: local experimental EtherType 1. */
static const uint8_t type[] = {0x88, 0xB5};

void raw_send(struct worker *w, size_t size, uint32_t number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);
	uint8_t *frame = m ? (uint8_t *)rte_pktmbuf_append(m, (uint16_t)size) : NULL;

	if (!frame)
		bench_die("no buffer for a frame of %zu bytes", size);
	memset(frame, 0xFF, 2 * sizeof(struct rte_ether_addr));
	memcpy(frame + ETH_TYPE, type, sizeof(type));
	memcpy(frame + ETH_HLEN, &number, sizeof(number));
	while (!burst_tx(&w->port[0], &m, 1))
		;
}

static bool is_raw(const struct rte_mbuf *m, uint32_t number)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	return memcmp(frame + ETH_TYPE, type, sizeof(type)) == 0 &&
	       memcmp(frame + ETH_HLEN, &number, sizeof(number)) == 0;
}

bool raw_arrived(struct worker *w, uint32_t number)
{
	struct rte_mbuf *m[BURST];
	unsigned n = burst_rx(&w->port[0], m);
	bool found = false;

	for (unsigned i = 0; i < n; i++) {
		found |= is_raw(m[i], number);
		rte_pktmbuf_free(m[i]);
	}
	return found;
}
