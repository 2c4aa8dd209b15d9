/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains why a memory window could not be bound, invalidated or accessed by its rkey. */
#include <inttypes.h>
#include "diagnose/diagnosis.h"
#include "mw.h"
#include "qp.h"

void diagnose_window(struct diagnosis *c)
{
	/* If you add an enum mw_result, it needs a row here. */
	static const char *const what[MW_RESULTS] = {
		[MW_NO_WINDOW] =
			"the key does not name a memory window of the QP's protection domain: use "
			"one that roci_alloc_mw() allocated there and that was not freed",
		[MW_BAD_KEY] = "the new rkey does not belong to the window: only the low 8 bits "
			       "may change (roci_inc_rkey())",
		[MW_BAD_ACCESS] = "a window can grant only REMOTE_READ, REMOTE_WRITE, "
				  "REMOTE_ATOMIC and FLUSH_GLOBAL: remove the other flags",
		[MW_ZERO_BASED] = "a type 1 window cannot be zero-based: use type 2",
		[MW_NOT_FREE] = "the type 2 window is already bound: invalidate it first "
				"(ROCI_WR_LOCAL_INV)",
		[MW_EMPTY] = "a type 2 window cannot be bound to 0 bytes: invalidate it instead",
		[MW_NO_REGION] = "the lkey does not name a region of the QP's protection domain: "
				 "use the lkey of one",
		[MW_NO_MW_BIND] = "the region was registered without ROCI_ACCESS_MW_BIND: add it",
		[MW_NO_RIGHT] = "the window would grant access that its region lacks: for writes "
				"and atomics, register the region with ROCI_ACCESS_LOCAL_WRITE, "
				"for flushes with ROCI_ACCESS_FLUSH_GLOBAL",
		[MW_OUTSIDE] = "the range is not all in the region: check its address and length",
		[MW_NOT_BOUND] = "no window is bound with this key: it was invalidated, or bound "
				 "again with another key",
		[MW_TYPE_1_STAYS] = "the key names a type 1 window: bind it to 0 bytes instead",
		[MW_OTHER_QP] = "the window was bound by another QP, and only that QP and its peer "
				"may use and invalidate it",
	};
	uint32_t why = c->n->value;

	sentence_add(
		&c->t, "%s", why < MW_RESULTS && what[why] ? what[why] : "another QP changed it");
}

bool diagnose_rkey_of_window(struct diagnosis *c)
{
	const struct cause_found *w = &c->n->found;

	if ((w->named != NAMED_WINDOW && w->named != NAMED_UNBOUND) || w->pd != c->n->pd)
		return false;
	if (w->named == NAMED_UNBOUND)
		sentence_add(&c->t,
			"rkey 0x%x belongs to a memory window that is not bound with it: it was "
			"invalidated, or bound again. Send the peer the rkey of the latest bind",
			c->n->key);
	else if (w->owned && w->qpn != c->qp->qpn)
		sentence_add(&c->t,
			"rkey 0x%x belongs to a type 2 window that QP 0x%x bound: only that QP's "
			"peer may use it. Bind it on this QP, or use a type 1 window",
			c->n->key, w->qpn);
	else if (w->status == MR_NO_ACCESS)
		sentence_add(&c->t,
			"the memory window of rkey 0x%x was bound without the right that the "
			"request needs: add it to mw_access_flags",
			c->n->key);
	else if (w->status == MR_RANGE)
		sentence_add(&c->t,
			"bytes 0x%" PRIx64 " to 0x%" PRIx64
			" are not all in the memory window of rkey 0x%x, which has %" PRIu64
			" bytes from 0x%" PRIx64,
			c->n->va, c->n->va + c->n->len - 1, c->n->key, w->length, w->iova);
	else
		sentence_add(&c->t,
			"the memory window of rkey 0x%x, or its region, was freed meanwhile",
			c->n->key);
	return true;
}
