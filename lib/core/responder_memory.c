/* SPDX-License-Identifier: BSD-3-Clause */
/* RC responder: FLUSH and ATOMIC WRITE (IBTA 1.5, Annex A19), and the invalidation by a SEND. */
#include "abi_ctl.h"
#include "abi_wqe.h"
#include "core.h"
#include "core_memory.h"
#include "headers.h"
#include "mw_wqe.h"
#include "pkt.h"
#include "qp.h"
#include "recv.h"
#include "responder.h"
#include "responder_impl.h"
#include "uaccess.h"

/* --- FLUSH ------------------------------------------------------------------------------ */

/* @return the rights that the placement types of @p feth need; 0 when it has types that do not
 * exist (decision 0094). */
static uint32_t flush_access(uint32_t feth)
{
	if (feth & FETH_PLT_MASK & ~(FETH_PLT_GLOBAL | FETH_PLT_PERSIST))
		return 0;
	return (feth & FETH_PLT_GLOBAL ? ABI_ACCESS_FLUSH_GLOBAL : 0) |
	       (feth & FETH_PLT_PERSIST ? ABI_ACCESS_FLUSH_PERSIST : 0);
}

static bool flush_allowed(
	const struct core *c, const struct qp *qp, const struct pkt *pkt, uint32_t access)
{
	uint64_t va = pkt->va, len = pkt->dma_len;

	if ((pkt->feth & FETH_SEL_MASK) == FETH_SEL_MR) { /* FLU-05 */
		if (!mw_range(c->cfg.mrs, pkt->rkey, &va, &len))
			return false;
	} else if (!len) { /* RSP-12, C9-88 */
		return true;
	}
	return rkey_resolve(c->cfg.mrs, pkt->rkey, qp->pd, qp->qpn, access, va, len, NULL) == MR_OK;
}

/* FLU-04. @return what is wrong with the request. */
static enum cause flush_refusal(const struct core *c, const struct qp *qp, const struct pkt *pkt)
{
	uint32_t access = flush_access(pkt->feth);

	if (!access || (pkt->feth & FETH_SEL_MASK) > FETH_SEL_MR)
		return CAUSE_FLUSH_TYPE;
	if ((pkt->feth & FETH_SEL_MASK) == FETH_SEL_RANGE && pkt->dma_len > MSG_LEN_MAX)
		return CAUSE_MESSAGE_LENGTH; /* RSP-10 */
	if (!flush_allowed(c, qp, pkt, access))
		return CAUSE_RKEY;
	return (qp->attr.access_flags & access) == access ? CAUSE_NONE : CAUSE_NO_FLUSH;
}

/* FLU-07. Earlier WRITEs of this QP were stored by this worker, or by one that handed the QP over;
 * the fence makes them visible to all other CPUs before the response leaves. */
enum cause responder_flush(struct core *c, const struct qp *qp, const struct pkt *pkt)
{
	enum cause why = flush_refusal(c, qp, pkt);

	if (why != CAUSE_NONE)
		return why;
	atomic_thread_fence(memory_order_seq_cst);
	c->count.rx_flush_requests++;
	return CAUSE_NONE;
}

enum outcome execute_flush(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	enum cause why = responder_flush(c, qp, pkt);

	if (why == CAUSE_RKEY)
		return access_error(c, qp, pkt, why, now);
	if (why != CAUSE_NONE)
		return invalid_request(c, qp, pkt, why, now);
	res_new(c, qp, pkt, 1, 0); /* FLU-02, FLU-03 */
	return PASS;
}

/* --- ATOMIC WRITE ----------------------------------------------------------------------- */

/* FLU-08, FLU-09: one store of eight bytes. */
enum outcome execute_atomic_write(
	struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	uint8_t *ptr;

	if (pkt->dma_len != ATOMIC_LEN || pkt->payload_len != ATOMIC_LEN)
		return invalid_request(c, qp, pkt, CAUSE_ATOMIC_WRITE_LENGTH, now);
	if (rkey_resolve(c->cfg.mrs, pkt->rkey, qp->pd, qp->qpn, ABI_ACCESS_REMOTE_WRITE, pkt->va,
		    ATOMIC_LEN, &ptr) != MR_OK)
		return access_error(c, qp, pkt, CAUSE_RKEY, now);
	if ((pkt->va | (uintptr_t)ptr) % ATOMIC_LEN)
		return invalid_request(c, qp, pkt, CAUSE_ATOMIC_ALIGNMENT, now);
	if (!uaccess_place(core_memory(c), ptr, pkt->payload, ATOMIC_LEN)) {
		memory_fault(c, qp, pkt, now);
		return DONE;
	}
	res_new(c, qp, pkt, 1, 0);
	c->count.rx_atomic_write_requests++;
	return PASS;
}

/* --- SEND with invalidate --------------------------------------------------------------- */

/* INV-03, class J: the receive completes in error, and a NAK tells the requester. */
enum outcome execute_invalidate(struct core *c, struct qp *qp, const struct pkt *pkt, uint64_t now)
{
	enum mw_result res = mw_qp_invalidate(c, qp, pkt->rkey);

	if (res == MW_DONE)
		return PASS;
	cause_refused_key(c, qp, pkt, res);
	responder_recv_failed(c, qp, ABI_WC_MW_BIND_ERR, NAK_REMOTE_ACCESS, now);
	return DONE;
}
