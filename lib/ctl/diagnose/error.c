/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a QP failed: a function each cause. Those of the requester, of READ responses, of the
 * responder, and the rest. */
#include <inttypes.h>
#include "abi_wqe.h"
#include "diagnose/diagnosis.h"
#include "headers.h"
#include "opcode.h"
#include "qp.h"
#include "verbs/cq_obj.h"
#include "verbs/qp_obj.h"

/* Where the other side's reason is to be seen. */
#define ASK_PEER "The peer knows more: `rocictl show errors` there"

static const char *wr_name(uint8_t opcode)
{
	switch (opcode) {
	case ABI_WR_RDMA_WRITE:
		return "RDMA WRITE";
	case ABI_WR_RDMA_WRITE_WITH_IMM:
		return "RDMA WRITE with immediate";
	case ABI_WR_SEND:
		return "SEND";
	case ABI_WR_SEND_WITH_IMM:
		return "SEND with immediate";
	case ABI_WR_RDMA_READ:
		return "RDMA READ";
	case ABI_WR_ATOMIC_CMP_AND_SWP:
		return "compare and swap";
	case ABI_WR_ATOMIC_FETCH_AND_ADD:
		return "fetch and add";
	case ABI_WR_SEND_WITH_INV:
		return "SEND with invalidate";
	case ABI_WR_FLUSH:
		return "FLUSH";
	case ABI_WR_ATOMIC_WRITE:
		return "ATOMIC WRITE";
	case ABI_WR_BIND_MW:
		return "bind";
	case ABI_WR_LOCAL_INV:
		return "local invalidate";
	default:
		return "work request";
	}
}

static bool wr_is_atomic(uint8_t opcode)
{
	return opcode == ABI_WR_ATOMIC_CMP_AND_SWP || opcode == ABI_WR_ATOMIC_FETCH_AND_ADD;
}

static bool wr_has_key(uint8_t opcode)
{
	return wr_is_atomic(opcode) || opcode == ABI_WR_RDMA_WRITE ||
	       opcode == ABI_WR_RDMA_WRITE_WITH_IMM || opcode == ABI_WR_RDMA_READ ||
	       opcode == ABI_WR_FLUSH || opcode == ABI_WR_ATOMIC_WRITE;
}

/* "RDMA WRITE (wr_id 7, 4096 bytes to 0x7f00 with rkey 0x12)" */
static void say_wr(struct diagnosis *c)
{
	const struct cause_note *n = c->n;

	sentence_add(
		&c->t, "%s (wr_id %" PRIu64 ", %u bytes", wr_name(n->opcode), n->wr_id, n->len);
	if (wr_has_key(n->opcode))
		sentence_add(&c->t, " %s 0x%" PRIx64 " with rkey 0x%x",
			n->opcode == ABI_WR_RDMA_READ ? "from" : "to", n->va, n->key);
	sentence_add(&c->t, ")");
}

/* "the peer's RC_SEND_ONLY (PSN 0x12)" */
static void say_request(struct diagnosis *c)
{
	const char *name = opcode_row(c->n->opcode)->name;

	sentence_add(&c->t, "the peer's %s (PSN 0x%x)", name ? name : "request", c->n->psn);
}

/* --- work requests that cannot be executed ------------------------------------------------- */

static void post_opcode(struct diagnosis *c)
{
	sentence_add(&c->t,
		"a work request was posted with opcode %u, which this rocid does not execute: it "
		"does SEND, RDMA WRITE, RDMA READ, ATOMIC, ATOMIC WRITE, FLUSH, bind and local "
		"invalidate",
		c->n->opcode);
}

static void post_sges(struct diagnosis *c)
{
	sentence_add(&c->t,
		"a %s was posted with %u SGEs, but the QP was created with max_send_sge %u: ask "
		"for "
		"more when creating it",
		wr_name(c->n->opcode), c->n->value, c->qp->sq.max_sge);
}

static void post_inline(struct diagnosis *c)
{
	if (c->n->opcode == ABI_WR_RDMA_READ || wr_is_atomic(c->n->opcode))
		sentence_add(&c->t,
			"an RDMA READ or atomic was posted with ROCI_SEND_INLINE: leave that out, "
			"its data comes from the peer");
	else
		sentence_add(&c->t,
			"a %s was posted with %u bytes inline, but the QP takes %u: ask for a "
			"larger "
			"max_inline_data when creating it, or do not send inline",
			wr_name(c->n->opcode), c->n->value, c->qp->max_inline);
}

static void post_length(struct diagnosis *c)
{
	sentence_add(&c->t, "a message of more than 2^31 bytes was posted: send it in parts");
}

static void post_key(struct diagnosis *c)
{
	sentence_add(&c->t, "SGE %u of the %s (wr_id %" PRIu64 ") cannot be used: ", c->n->value,
		wr_name(c->n->opcode), c->n->wr_id);
	diagnose_region(c, "lkey");
}

static void post_ah(struct diagnosis *c)
{
	say_wr(c);
	sentence_add(&c->t,
		" names an address handle that does not exist, was destroyed before, or is of "
		"another PD: make one with roci_create_ah() and keep it until all that "
		"names it is posted");
}

static void post_ah_port(struct diagnosis *c)
{
	say_wr(c);
	sentence_add(&c->t,
		" names an address handle of port %u, but the QP is on port %u: use a handle whose "
		"port_num is the QP's",
		c->n->value, c->qp->attr.port);
}

static void post_datagram(struct diagnosis *c)
{
	say_wr(c);
	sentence_add(&c->t,
		" is longer than one packet, which a datagram must fit in: port %u carries %u "
		"bytes. Send it in parts, or raise the port's MTU",
		c->qp->attr.port, c->n->value);
}

static void post_pkey(struct diagnosis *c)
{
	say_wr(c);
	sentence_add(&c->t,
		" names P_Key index %u, where the port's table has no P_Key: see roci_query_pkey()",
		c->n->value);
}

static void key_gone(struct diagnosis *c)
{
	sentence_add(&c->t,
		"while the %s (wr_id %" PRIu64 ") was being sent, SGE %u became unusable: ",
		wr_name(c->n->opcode), c->n->wr_id, c->n->value);
	diagnose_region(c, "lkey");
}

static void post_atomic(struct diagnosis *c)
{
	sentence_add(&c->t,
		"a %s was posted whose result has not one SGE of 8 bytes to go to: give it one",
		wr_name(c->n->opcode));
}

static void post_word(struct diagnosis *c)
{
	sentence_add(
		&c->t, "an ATOMIC WRITE was posted whose data are not 8 bytes: it writes one word");
}

static void post_no_reads(struct diagnosis *c)
{
	sentence_add(&c->t, "an RDMA READ, atomic, ATOMIC WRITE or FLUSH was posted, but the QP's "
			    "max_rd_atomic is 0: set it "
			    "in RTS, to "
			    "no more than the peer's max_dest_rd_atomic");
}

static void fault(struct diagnosis *c)
{
	sentence_add(&c->t,
		"the program's memory faulted while rocid used it: its file was cut short, "
		"had a hole punched into it, or the machine ran out of memory");
}

/* --- what the peer refused ----------------------------------------------------------------- */

static void refused_access(struct diagnosis *c)
{
	sentence_add(&c->t, "the peer refused the ");
	say_wr(c);
	sentence_add(&c->t,
		" with a remote access error: there the rkey is of no region, of one that is gone "
		"or "
		"of another protection domain, the region lacks the right to %s, or the address "
		"range "
		"is not all in it. " ASK_PEER,
		wr_is_atomic(c->n->opcode)	   ? "do atomics"
		: c->n->opcode == ABI_WR_FLUSH	   ? "flush"
		: c->n->opcode == ABI_WR_RDMA_READ ? "read"
						   : "write");
}

static void refused_request(struct diagnosis *c)
{
	uint32_t mtu = 1u << c->qp->mtu_shift;

	sentence_add(&c->t, "the peer refused the ");
	say_wr(c);
	sentence_add(&c->t, " as an invalid request: ");
	if (c->n->opcode == ABI_WR_FLUSH)
		sentence_add(&c->t,
			"it knows no FLUSH, its QP's access flags lack FLUSH_GLOBAL or "
			"FLUSH_PERSISTENT, or max_rd_atomic here (%u) is above its "
			"max_dest_rd_atomic",
			c->qp->attr.max_rd_atomic);
	else if (c->n->opcode == ABI_WR_ATOMIC_WRITE)
		sentence_add(&c->t,
			"it knows no ATOMIC WRITE, its QP's access flags lack REMOTE_WRITE, the "
			"address is no multiple of 8, or max_rd_atomic here (%u) is above its "
			"max_dest_rd_atomic",
			c->qp->attr.max_rd_atomic);
	else if (wr_is_atomic(c->n->opcode))
		sentence_add(&c->t,
			"its QP's access flags lack REMOTE_ATOMIC, the address is no multiple of "
			"8, or "
			"max_rd_atomic here (%u) is above its max_dest_rd_atomic",
			c->qp->attr.max_rd_atomic);
	else if (c->n->opcode == ABI_WR_RDMA_READ)
		sentence_add(&c->t,
			"its QP's access flags lack REMOTE_READ, or max_rd_atomic here (%u) is "
			"above "
			"its max_dest_rd_atomic",
			c->qp->attr.max_rd_atomic);
	else if (wr_has_key(c->n->opcode))
		sentence_add(&c->t,
			"its QP's access flags lack REMOTE_WRITE, or its path_mtu is not %u as "
			"here",
			mtu);
	else
		sentence_add(&c->t,
			"its receive is smaller than the message, or its path_mtu is not %u as "
			"here",
			mtu);
	sentence_add(&c->t, ". " ASK_PEER);
}

static void refused_operation(struct diagnosis *c)
{
	sentence_add(&c->t, "the peer could not execute the ");
	say_wr(c);
	sentence_add(&c->t,
		": its own receive buffer or memory is wrong (lkey, length, access). " ASK_PEER);
}

static void rnr_retries(struct diagnosis *c)
{
	sentence_add(&c->t, "the peer has no receive posted for the ");
	say_wr(c);
	sentence_add(&c->t,
		", and rnr_retry (%u) is used up: have the peer post receives before this side "
		"sends, and more of them; set rnr_retry to 7 to wait for ever, or a longer "
		"min_rnr_timer at the peer",
		c->qp->attr.rnr_retry);
}

/* --- READ responses -------------------------------------------------------------------------- */

static void read_sequence(struct diagnosis *c)
{
	if (wr_is_atomic(c->n->opcode))
		sentence_add(&c->t,
			"the peer answered a %s (wr_id %" PRIu64 ") with something else than its "
			"result (PSN 0x%x): it breaks the rules",
			wr_name(c->n->opcode), c->n->wr_id, c->n->psn);
	else
		sentence_add(&c->t,
			"the peer answered an RDMA READ (wr_id %" PRIu64
			") with packets that do not follow "
			"one another (PSN 0x%x): its path_mtu is not %u as here, or it breaks the "
			"rules",
			c->n->wr_id, c->n->psn, 1u << c->qp->mtu_shift);
}

static void read_length(struct diagnosis *c)
{
	sentence_add(&c->t,
		"the peer answered an RDMA READ (wr_id %" PRIu64
		") with %u bytes in a packet where "
		"%u were due: path_mtu is %u here, set the same at both ends",
		c->n->wr_id, c->n->value, c->n->limit, 1u << c->qp->mtu_shift);
}

static void read_key(struct diagnosis *c)
{
	sentence_add(&c->t, "the data of an RDMA READ or atomic cannot be placed: ");
	diagnose_region(c, "lkey");
}

/* --- what this side refused --------------------------------------------------------------------
 */

static void op_sequence(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" does not belong there: it begins within another message, or has no beginning. "
		"The "
		"peer's QP was connected anew and this one not, or a second QP sends to this one");
}

static void op_unsupported(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" (opcode 0x%02x) is nothing that this rocid executes: it does SEND, RDMA "
		"WRITE, RDMA READ, CmpSwap, FetchAdd, FLUSH and ATOMIC WRITE",
		c->n->opcode);
}

static void no_remote_write(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: this QP does not let its peer write. Add "
			    "ROCI_ACCESS_REMOTE_WRITE to its qp_access_flags");
}

static void no_remote_read(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: this QP does not let its peer read. Add "
			    "ROCI_ACCESS_REMOTE_READ to its qp_access_flags");
}

static void no_remote_atomic(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: this QP does not let its peer do atomics. Add "
			    "ROCI_ACCESS_REMOTE_ATOMIC to its qp_access_flags");
}

static void atomic_alignment(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " is for address 0x%" PRIx64, c->n->va);
	if (c->n->va % ATOMIC_LEN)
		sentence_add(&c->t, ": those of atomics are multiples of 8");
	else
		sentence_add(&c->t,
			", which is a multiple of 8, but not where it lies in memory: register a "
			"region for atomics with an address and an iova that differ by a multiple "
			"of 8");
}

static void atomic_write_length(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" has %u bytes and a length of %u: an ATOMIC WRITE has 8. The peer breaks the "
		"rules",
		c->n->value, c->n->len);
}

static void no_flush(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: this QP does not let its peer flush. Add "
			    "ROCI_ACCESS_FLUSH_GLOBAL to its qp_access_flags");
}

static void flush_type(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" asks for a placement or a selectivity that does not exist: it breaks the "
		"rules");
}

static void invalidate(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " cannot invalidate rkey 0x%x: ", c->n->key);
	diagnose_window(c);
}

static void post_window(struct diagnosis *c)
{
	sentence_add(&c->t, "a %s was posted (wr_id %" PRIu64 ") that cannot be executed: ",
		wr_name(c->n->opcode), c->n->wr_id);
	diagnose_window(c);
}

static void reads_exceeded(struct diagnosis *c)
{
	sentence_add(&c->t,
		"the peer asked for %u RDMA READs, atomics and flushes at a time, this QP's "
		"max_dest_rd_atomic is %u: "
		"the "
		"peer's max_rd_atomic must not be more",
		c->n->value, c->n->limit);
}

static void packet_length(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " has %u bytes, which does not fit this QP's path_mtu of %u",
		c->n->value, c->n->limit);
	if (c->n->value >= PATH_MTU_MIN && !(c->n->value & (c->n->value - 1)))
		sentence_add(&c->t,
			": the peer's path_mtu seems to be %u. Both ends must set the same",
			c->n->value);
	else
		sentence_add(&c->t, ": both ends must set the same path_mtu");
}

static void message_length(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " asks for %u bytes: 2^31 are the most of a message", c->n->len);
}

static void write_length(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" carries %u bytes where %u were left of what its first packet said: the path_mtu "
		"of "
		"both ends differs, or the peer breaks the rules",
		c->n->value, c->n->limit);
}

static void rkey(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: ");
	diagnose_region(c, "rkey");
}

static void read_rkey_gone(struct diagnosis *c)
{
	sentence_add(&c->t, "an RDMA READ of the peer was under way when its memory went: ");
	diagnose_region(c, "rkey");
}

static void recv_sges(struct diagnosis *c)
{
	sentence_add(&c->t, "a receive was posted with more than the %s of %u SGEs",
		c->o->srq || c->qp->type == ABI_QPT_XRC_RECV ? "SRQ's max_sge"
							     : "QP's max_recv_sge",
		c->n->limit);
}

static void recv_length(struct diagnosis *c)
{
	sentence_add(&c->t,
		"a message of %u bytes or more came, the receive (wr_id %" PRIu64
		") has room for %u: "
		"post receives as large as the peer's longest message",
		c->n->value, c->n->wr_id, c->n->limit);
}

static void recv_key(struct diagnosis *c)
{
	sentence_add(&c->t, "a message cannot be placed in the receive's buffer: ");
	diagnose_region(c, "lkey");
}

static void xrc_srq(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" names a shared receive queue that is none of this QP's XRC domain, or that was "
		"destroyed: the peer must send to the SRQ number that roci_create_srq() gave");
}

static void srq_broken(struct diagnosis *c)
{
	sentence_add(&c->t,
		"its SRQ failed: what its program wrote into the ring is no queue of receives "
		"(another library than libroci, or memory that was overwritten). Make another SRQ, "
		"and QPs with it");
}

/* Of a QP that lives on: what it noted of the requests that it could not take. */
static void peer_gave_up(struct diagnosis *c)
{
	char at[16];

	say_request(c);
	sentence_add(&c->t,
		" found no receive posted. The peer was told to wait %u times and has not come "
		"again since %s: it has used up its rnr_retry, and its QP has failed. Post "
		"receives before the peer sends, and connect both QPs anew",
		c->n->value, time_text(c->time_ms, at));
}

/* --- either ------------------------------------------------------------------------------------
 */

static void cq_overflow(struct diagnosis *c)
{
	const struct cq_obj *cq = handle_get(&c->o->session->cqs, c->n->value);

	sentence_add(&c->t, "its CQ overflowed");
	if (cq)
		sentence_add(&c->t, ", which has room for %u completions", cq->cq.lane[0].depth);
	sentence_add(&c->t,
		": it must hold those of all work that is outstanding (this QP alone: %u sends, %u "
		"receives). Poll more often, or make it larger (roci_resize_cq)",
		c->qp->sq.depth, c->qp->rq.depth);
}

static void command(struct diagnosis *c)
{
	sentence_add(
		&c->t, "its program (modify_qp) or an administrator (kill qp) moved it to ERR");
}

static void unknown(struct diagnosis *c)
{
	sentence_add(&c->t,
		"rocid did not note why, which it should: please report what the QP was doing");
}

void diagnose_error(struct diagnosis *c)
{
	/* If you add a cause to cause.h, it needs a row here, and one in doc/troubleshooting.md. */
	static void (*const tell[CAUSE_MAX])(struct diagnosis * c) = {
		[CAUSE_POST_OPCODE] = post_opcode,
		[CAUSE_POST_SGES] = post_sges,
		[CAUSE_POST_INLINE] = post_inline,
		[CAUSE_POST_LENGTH] = post_length,
		[CAUSE_POST_KEY] = post_key,
		[CAUSE_NONE] = unknown,
		[CAUSE_POST_ATOMIC] = post_atomic,
		[CAUSE_NO_REMOTE_ATOMIC] = no_remote_atomic,
		[CAUSE_ATOMIC_ALIGNMENT] = atomic_alignment,
		[CAUSE_POST_WORD] = post_word,
		[CAUSE_POST_BIND] = post_window,
		[CAUSE_POST_INVALIDATE] = post_window,
		[CAUSE_NO_FLUSH] = no_flush,
		[CAUSE_FLUSH_TYPE] = flush_type,
		[CAUSE_ATOMIC_WRITE_LENGTH] = atomic_write_length,
		[CAUSE_INVALIDATE] = invalidate,
		[CAUSE_POST_NO_READS] = post_no_reads,
		[CAUSE_POST_AH] = post_ah,
		[CAUSE_POST_AH_PORT] = post_ah_port,
		[CAUSE_POST_DATAGRAM] = post_datagram,
		[CAUSE_POST_PKEY] = post_pkey,
		[CAUSE_KEY_GONE] = key_gone,
		[CAUSE_SOURCE_FAULT] = fault,
		[CAUSE_REFUSED_REQUEST] = refused_request,
		[CAUSE_REFUSED_ACCESS] = refused_access,
		[CAUSE_REFUSED_OPERATION] = refused_operation,
		[CAUSE_RETRIES] = diagnose_silence,
		[CAUSE_RNR_RETRIES] = rnr_retries,
		[CAUSE_READ_SEQUENCE] = read_sequence,
		[CAUSE_READ_LENGTH] = read_length,
		[CAUSE_READ_KEY] = read_key,
		[CAUSE_READ_FAULT] = fault,
		[CAUSE_OP_SEQUENCE] = op_sequence,
		[CAUSE_OP_UNSUPPORTED] = op_unsupported,
		[CAUSE_NO_REMOTE_WRITE] = no_remote_write,
		[CAUSE_NO_REMOTE_READ] = no_remote_read,
		[CAUSE_READS_EXCEEDED] = reads_exceeded,
		[CAUSE_PACKET_LENGTH] = packet_length,
		[CAUSE_MESSAGE_LENGTH] = message_length,
		[CAUSE_WRITE_LENGTH] = write_length,
		[CAUSE_RKEY] = rkey,
		[CAUSE_RKEY_GONE] = rkey,
		[CAUSE_READ_RKEY_GONE] = read_rkey_gone,
		[CAUSE_WRITE_FAULT] = fault,
		[CAUSE_RECV_SGES] = recv_sges,
		[CAUSE_RECV_LENGTH] = recv_length,
		[CAUSE_RECV_KEY] = recv_key,
		[CAUSE_RECV_FAULT] = fault,
		[CAUSE_XRC_SRQ] = xrc_srq,
		[CAUSE_SRQ_BROKEN] = srq_broken,
		[CAUSE_PEER_GAVE_UP] = peer_gave_up,
		[CAUSE_CQ_OVERFLOW] = cq_overflow,
		[CAUSE_COMMAND] = command,
	};

	c->t.len = 0;
	c->t.text[0] = '\0';
	if (tell[c->n->cause])
		tell[c->n->cause](c);
}
