/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/param.h>
#include "shape.h"

#define LINE 64u
/* Small messages cycle through a page, as perftest's do. */
#define PAGE 4096u

#define DEPTH_USUAL 128u
/* Bytes in flight per QP, so that large messages do not take seconds to end. */
#define FLIGHT_BYTES (32u << 20)
#define DEPTH_MIN    4u
/* Requests of a latency test complete later; nothing waits for that. */
#define DEPTH_LAT 16u
#define LIST_RATE 16u

#define RX_DEPTH_USUAL 512u
/* Limit of the receives of all QPs together, because completion queues are limited. */
#define RX_TOTAL 262144u

/* With --verify each message in flight has its own slot, */
#define VERIFY_BYTES (64u << 20)
#define VERIFY_SLOTS 4u

static uint32_t stride_of(uint32_t size)
{
	return roundup(size, LINE);
}

/* Of what arrives. */
static uint32_t rx_stride_of(const struct plan *p, uint32_t size)
{
	return stride_of(size + plan_service(p)->header);
}

uint64_t shape_memory(const struct plan *p)
{
	uint64_t qps = p->value[PARAM_QPS], stride = rx_stride_of(p, plan_largest(p)), part;

	if (p->value[PARAM_MEMORY])
		part = p->value[PARAM_MEMORY] / qps / LINE * LINE;
	else if (p->value[PARAM_VERIFY])
		part = MIN((RX_DEPTH_USUAL + 1) * stride, VERIFY_BYTES / qps / LINE * LINE);
	else
		part = PAGE;
	return MAX(part, p->value[PARAM_VERIFY] ? VERIFY_SLOTS * stride : stride) * qps;
}

static uint32_t depth_of(const struct plan *p, uint32_t size)
{
	uint64_t depth = p->value[PARAM_TX_DEPTH];
	uint64_t least = p->value[PARAM_POST_LIST] + p->value[PARAM_CQ_MOD];

	if (plan_test(p) == TEST_LAT)
		return DEPTH_LAT;
	if (depth)
		return (uint32_t)depth;
	depth = MIN(DEPTH_USUAL, MAX(DEPTH_MIN, FLIGHT_BYTES / size));
	return (uint32_t)MAX(depth, least);
}

static uint32_t list_of(const struct plan *p, uint32_t depth)
{
	uint32_t list = (uint32_t)p->value[PARAM_POST_LIST], mod = (uint32_t)p->value[PARAM_CQ_MOD];

	if (list)
		return list;
	if (plan_test(p) != TEST_RATE)
		return 1;
	return MIN(LIST_RATE, MAX(1, MIN(depth / 2, depth + 1 - MAX(mod, 1))));
}

static uint32_t cq_mod_of(const struct plan *p, uint32_t depth, uint32_t list)
{
	if (plan_test(p) == TEST_LAT)
		return 1;
	if (p->value[PARAM_CQ_MOD])
		return (uint32_t)p->value[PARAM_CQ_MOD];
	return MAX(1, MIN(depth / 8, depth + 1 - list));
}

static uint32_t rx_depth_of(const struct plan *p)
{
	if (p->value[PARAM_RX_DEPTH])
		return (uint32_t)p->value[PARAM_RX_DEPTH];
	return (uint32_t)MAX(1, MIN(RX_DEPTH_USUAL, RX_TOTAL / p->value[PARAM_QPS]));
}

struct shape shape_of(const struct plan *p, uint32_t size)
{
	const struct op *op = plan_op(p);
	struct shape s = {.size = size, .tx_stride = stride_of(size), .rx_stride = stride_of(size)};
	uint64_t part = shape_memory(p) / p->value[PARAM_QPS];

	/* Receives are posted before their messages' size is known. */
	if (op->scatters)
		s.rx_stride = rx_stride_of(p, plan_largest(p));
	else if (op->receives && p->value[PARAM_VERIFY])
		s.tx_stride = s.rx_stride = stride_of(plan_largest(p));
	s.tx_slots = (uint32_t)MIN(part / s.tx_stride, UINT32_MAX);
	s.rx_slots = (uint32_t)MIN(part / s.rx_stride, UINT32_MAX);
	s.rx_header = plan_service(p)->header;
	s.depth = depth_of(p, size);
	s.rx_depth = rx_depth_of(p);
	if (p->value[PARAM_VERIFY]) {
		/* A slot is reused after its message was checked. At a target the receives ensure
		 * that; one more slot, because a WRITE arrives before its receive counts. */
		s.depth = MIN(s.depth, s.tx_slots - 1);
		s.rx_depth = MIN(s.rx_depth, s.rx_slots - 1);
		if (op->receives)
			s.depth = MIN(s.depth, s.rx_depth);
	}
	s.list = MIN(list_of(p, s.depth), s.depth);
	s.cq_mod = MIN(cq_mod_of(p, s.depth, s.list), s.depth + 1 - s.list);
	s.repost = MAX(1, MIN(s.rx_depth / 8, 32));
	if (size <= p->value[PARAM_INLINE])
		s.send_flags = ROCI_SEND_INLINE;
	return s;
}
