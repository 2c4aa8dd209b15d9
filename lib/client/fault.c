/* SPDX-License-Identifier: BSD-3-Clause */
/* Injected faults in the packets of the program's own QPs, if rocid allows them. */
#include <errno.h>
#include "abi_ctl.h"
#include "abi_fault.h"
#include "client.h"

_Static_assert((int)ROCI_FAULT_QPN == ABI_FAULT_QPN, "the kinds are the ABI's");
_Static_assert((int)ROCI_FAULT_RX == ABI_FAULT_RX, "the directions are the ABI's");
_Static_assert((int)ROCI_FAULT_QP_TIMER == ABI_FAULT_QP_TIMER, "the flags are the ABI's");
_Static_assert((int)ROCI_FAULT_ON_RNR_NAK == ABI_FAULT_RNR_NAK, "the packets are the ABI's");
_Static_assert((int)ROCI_FAULT_ON_ONLY == ABI_FAULT_ONLY, "the packets are the ABI's");

/* rocid checks all members; only those that are narrower in the ABI need a check here. */
static int to_abi(const struct roci_fault *f, struct abi_fault *out)
{
	if (f->kind <= 0 || f->kind > ROCI_FAULT_QPN || (unsigned)f->direction > ROCI_FAULT_RX ||
		(f->flags & ~(int)ABI_FAULT_FLAGS))
		return fail(EINVAL, "unknown kind %d, direction %d or flags 0x%x of a fault",
			(int)f->kind, (int)f->direction, (unsigned)f->flags);
	if (!(f->probability >= 0 && f->probability <= 1))
		return fail(EINVAL, "the probability of a fault must be from 0 to 1");
	*out = (struct abi_fault){
		.kind = (uint8_t)f->kind,
		.direction = (uint8_t)f->direction,
		.flags = (uint16_t)f->flags,
		.packets = f->packets,
		.psn_first = f->psn_first,
		.psn_last = f->psn_last,
		.nth = f->nth ? f->nth : 1,
		.every = f->every ? f->every : 1,
		.count = f->count,
		.chance = ABI_FAULT_ALWAYS,
		.seed = f->seed,
		.time = f->time_ns,
		.value = f->value,
		.offset = f->offset,
		.mask = f->mask,
	};
	if (f->probability > 0)
		out->chance = (uint32_t)(f->probability * ABI_FAULT_ALWAYS + 0.5);
	return 0;
}

int roci_inject(struct roci_qp *q, const struct roci_fault *fault, uint32_t *id)
{
	struct abi_inject_fault body = {.qp = qp_of(q)->handle};
	struct abi_fault_id r;
	struct roci_fault f;
	int err = opts_read(&f, sizeof(f), fault, "roci_fault");

	if (!err)
		err = to_abi(&f, &body.fault);
	if (!err)
		err = call_plain(context_of(q->context), ABI_INJECT_FAULT, &body, sizeof(body), &r,
			sizeof(r));
	if (!err && id)
		*id = r.id;
	return err;
}

int roci_query_fault(struct roci_qp *q, uint32_t id, struct roci_fault_count *count)
{
	struct abi_fault_id body = {.qp = qp_of(q)->handle, .id = id};
	struct roci_fault_count c;
	struct abi_fault_count r;
	int err = call_plain(
		context_of(q->context), ABI_QUERY_FAULT, &body, sizeof(body), &r, sizeof(r));

	if (err)
		return err;
	c = (struct roci_fault_count){.matched = r.matched, .hits = r.hits, .missed = r.missed};
	return opts_write(count, &c, sizeof(c), "roci_fault_count");
}

int roci_clear_faults(struct roci_qp *q, uint32_t id)
{
	struct abi_fault_id body = {.qp = qp_of(q)->handle, .id = id};

	return call_plain(context_of(q->context), ABI_CLEAR_FAULT, &body, sizeof(body), NULL, 0);
}
