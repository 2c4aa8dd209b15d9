/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains what is wrong with a key: which region it names, its owner, and the requested access. */
#include <inttypes.h>
#include "bits.h"
#include "config/ctl_parts.h"
#include "diagnose/diagnosis.h"
#include "mr.h"
#include "qp.h"
#include "session/session.h"
#include "verbs/qp_obj.h"

static const char *access_name(uint32_t access)
{
	switch (access) {
	case ABI_ACCESS_LOCAL_WRITE:
		return "ROCI_ACCESS_LOCAL_WRITE";
	case ABI_ACCESS_REMOTE_WRITE:
		return "ROCI_ACCESS_REMOTE_WRITE";
	case ABI_ACCESS_REMOTE_READ:
		return "ROCI_ACCESS_REMOTE_READ";
	case ABI_ACCESS_REMOTE_ATOMIC:
		return "ROCI_ACCESS_REMOTE_ATOMIC";
	case ABI_ACCESS_FLUSH_GLOBAL:
		return "ROCI_ACCESS_FLUSH_GLOBAL";
	case ABI_ACCESS_FLUSH_PERSIST:
		return "ROCI_ACCESS_FLUSH_PERSISTENT, which rocid cannot grant";
	default:
		return "that right";
	}
}

/* Only regions of the QP's own program, because numbers of protection domains are reused. */
static const struct gone_mr *gone_mr(const struct diagnosis *c)
{
	const struct failures *w = c->ctl->failures;

	for (uint32_t i = 1; i <= FAILURES_GONE_MAX && i <= w->mrs; i++) {
		const struct gone_mr *gone = &w->mr[(w->mrs - i) % FAILURES_GONE_MAX];

		if (gone->key == c->n->key && gone->pd == c->n->pd &&
			gone->session == c->o->session->number)
			return gone;
	}
	return NULL;
}

/* --- no such key ---------------------------------------------------------------------------- */

static void tell_gone(struct diagnosis *c, const char *what, const struct gone_mr *gone)
{
	char at[16];

	sentence_add(&c->t,
		"the region of %s 0x%x (0x%" PRIx64 ", %" PRIu64
		" bytes) was deregistered at %s: keep it until the peer and this program are done "
		"with it, or send the peer the new key",
		what, c->n->key, gone->iova, gone->length, time_text(gone->time_ms, at));
}

static void tell_unknown(struct diagnosis *c, const char *what)
{
	const struct cause_found *f = &c->n->found;
	const struct gone_mr *gone = gone_mr(c);
	const char *user = c->n->pd == c->qp->pd ? "QP" : "SRQ";

	if (*what == 'r' && (gone || f->named == NAMED_BY_FORMER))
		c->rule = "RSP-14";
	if (f->named == NAMED_REGION)
		sentence_add(&c->t,
			"the region of %s 0x%x belongs to another protection domain than the %s "
			"(%u): register it in the %s's domain, or create the %s in the region's",
			what, c->n->key, user, c->n->pd, user, user);
	else if (gone)
		tell_gone(c, what, gone);
	else if (f->named == NAMED_BY_SWAP)
		sentence_add(&c->t,
			"no region has %s 0x%x, but one has 0x%x: its bytes were swapped between "
			"the programs; apply htonl() at one end and ntohl() at the other",
			what, c->n->key, f->key);
	else if (f->named == NAMED_BY_FORMER)
		sentence_add(&c->t,
			"%s 0x%x is stale: the key of the region there is 0x%x now. Send the peer "
			"the key from the latest registration",
			what, c->n->key, f->key);
	else if (*what == 'l' && (f->named == NAMED_WINDOW || f->named == NAMED_UNBOUND))
		sentence_add(&c->t,
			"0x%x is the rkey of a memory window: an SGE needs the lkey of a region",
			c->n->key);
	else
		sentence_add(&c->t,
			"this program has no region of %s 0x%x (`rocictl show mrs` lists all): use "
			"the key that registering the memory returned%s",
			what, c->n->key,
			*what == 'r' ? " on this side, not the peer's own key" : "");
}

/* --- the wrong bytes of it ------------------------------------------------------------------ */

static void tell_range(struct diagnosis *c, const char *what)
{
	const struct cause_found *mr = &c->n->found;
	const struct cause_note *n = c->n;
	uint64_t swapped = __builtin_bswap64(n->va);

	sentence_add(&c->t,
		"bytes 0x%" PRIx64 " to 0x%" PRIx64
		" are not all in the region of %s 0x%x, which spans 0x%" PRIx64 " to 0x%" PRIx64
		" (%" PRIu64 " bytes): ",
		n->va, n->va + n->len - 1, what, n->key, mr->iova, mr->iova + mr->length - 1,
		mr->length);
	if (n->len > mr->length)
		sentence_add(&c->t, "%u bytes are more than its length", n->len);
	else if (n->va < mr->length && mr->iova > mr->length)
		sentence_add(
			&c->t, "the address looks like an offset: add the region's address to it");
	else if (range_inside(swapped - mr->iova, n->len, mr->length))
		sentence_add(&c->t, "the bytes of the address were swapped between the programs; "
				    "apply htobe64() at one end and be64toh() at the other");
	else if (n->va >= mr->iova && n->va - mr->iova < mr->length)
		sentence_add(&c->t, "%" PRIu64 " bytes are past its end",
			n->va + n->len - mr->iova - mr->length);
	else
		sentence_add(&c->t,
			"the address belongs to another region, or to another run of the program");
}

static void tell_access(struct diagnosis *c, const char *what)
{
	sentence_add(&c->t, "the region of %s 0x%x was registered without %s: add it", what,
		c->n->key, access_name(c->n->access));
}

void diagnose_region(struct diagnosis *c, const char *what)
{
	const struct cause_found *f = &c->n->found;
	bool region = f->named == NAMED_REGION;

	if (*what == 'r' && diagnose_rkey_of_window(c))
		return;
	if (region && f->status == MR_NO_ACCESS)
		tell_access(c, what);
	else if (region && f->status == MR_RANGE)
		tell_range(c, what);
	else if (region && f->status == MR_OK)
		sentence_add(
			&c->t, "the region of %s 0x%x was deregistered meanwhile", what, c->n->key);
	else
		tell_unknown(c, what);
}
