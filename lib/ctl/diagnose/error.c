/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains why a QP failed, with one function per cause: the requester's, those of READ responses,
 * the responder's, and the rest. */
#include <inttypes.h>
#include "abi_wqe.h"
#include "diagnose/diagnosis.h"
#include "headers.h"
#include "opcode.h"
#include "qp.h"
#include "session/handles.h"
#include "session/session.h"
#include "verbs/cq_obj.h"
#include "verbs/qp_obj.h"

/* Points to the other side's diagnosis. */
#define ASK_PEER "For the peer's reason, run `rocictl show errors` there"

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
		"a work request was posted with opcode %u, which this rocid does not support: use "
		"SEND, RDMA WRITE, RDMA READ, ATOMIC, ATOMIC WRITE, FLUSH, bind or local "
		"invalidate",
		c->n->opcode);
}

static void post_sges(struct diagnosis *c)
{
	sentence_add(&c->t,
		"a %s was posted with %u SGEs, but the QP was created with max_send_sge %u: create "
		"it with a larger max_send_sge",
		wr_name(c->n->opcode), c->n->value, c->qp->sq.max_sge);
}

static void post_inline(struct diagnosis *c)
{
	if (c->n->opcode == ABI_WR_RDMA_READ || wr_is_atomic(c->n->opcode))
		sentence_add(&c->t, "an RDMA READ or atomic was posted with ROCI_SEND_INLINE: "
				    "remove the flag, because the data comes from the peer");
	else
		sentence_add(&c->t,
			"a %s was posted with %u bytes inline, but the QP's limit is %u: create it "
			"with a larger max_inline_data, or do not send inline",
			wr_name(c->n->opcode), c->n->value, c->qp->max_inline);
}

static void post_length(struct diagnosis *c)
{
	sentence_add(&c->t, "a message of more than 2^31 bytes was posted: split it");
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
	sentence_add(&c->t, " names an address handle that does not exist, was destroyed, or "
			    "belongs to another PD: create one with roci_create_ah() and keep it "
			    "until every request that names it is posted");
}

static void post_ah_port(struct diagnosis *c)
{
	say_wr(c);
	sentence_add(&c->t,
		" names an address handle of port %u, but the QP uses port %u: use a handle with "
		"the QP's port_num",
		c->n->value, c->qp->attr.port);
}

static void post_datagram(struct diagnosis *c)
{
	say_wr(c);
	sentence_add(&c->t,
		" is longer than one packet, but a datagram must fit into one: port %u carries %u "
		"bytes. Split it, or raise the port's MTU",
		c->qp->attr.port, c->n->value);
}

static void post_pkey(struct diagnosis *c)
{
	say_wr(c);
	sentence_add(&c->t,
		" names P_Key index %u, but that entry of the port's table is empty: use an index "
		"for which roci_query_pkey() returns a P_Key",
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
		"a %s was posted without exactly one SGE of 8 bytes for its result: post it with "
		"one",
		wr_name(c->n->opcode));
}

static void post_word(struct diagnosis *c)
{
	sentence_add(&c->t, "an ATOMIC WRITE was posted with a length other than 8 bytes: "
			    "post it with 8 bytes");
}

static void post_no_reads(struct diagnosis *c)
{
	sentence_add(&c->t, "an RDMA READ, atomic, ATOMIC WRITE or FLUSH was posted, but the QP's "
			    "max_rd_atomic is 0: set it in the transition to RTS, to at most the "
			    "peer's max_dest_rd_atomic");
}

static void fault(struct diagnosis *c)
{
	sentence_add(&c->t, "the program's memory faulted while rocid accessed it: do not truncate "
			    "the file that backs it or punch holes into it, and check whether the "
			    "machine ran out of memory");
}

/* --- requests that the peer refused ------------------------------------------------------- */

static void refused_access(struct diagnosis *c)
{
	sentence_add(&c->t, "the peer refused the ");
	say_wr(c);
	sentence_add(&c->t,
		" with a remote access error: the rkey does not name a region there, names one "
		"that was deregistered or belongs to another protection domain, the region lacks "
		"the right to %s, or the address range is not all in it. " ASK_PEER,
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
			"it does not support FLUSH, its QP's access flags lack FLUSH_GLOBAL or "
			"FLUSH_PERSISTENT, or max_rd_atomic here (%u) is above its "
			"max_dest_rd_atomic",
			c->qp->attr.max_rd_atomic);
	else if (c->n->opcode == ABI_WR_ATOMIC_WRITE)
		sentence_add(&c->t,
			"it does not support ATOMIC WRITE, its QP's access flags lack "
			"REMOTE_WRITE, the address is not a multiple of 8, or max_rd_atomic here "
			"(%u) is above its max_dest_rd_atomic",
			c->qp->attr.max_rd_atomic);
	else if (wr_is_atomic(c->n->opcode))
		sentence_add(&c->t,
			"its QP's access flags lack REMOTE_ATOMIC, the address is not a multiple "
			"of 8, or max_rd_atomic here (%u) is above its max_dest_rd_atomic",
			c->qp->attr.max_rd_atomic);
	else if (c->n->opcode == ABI_WR_RDMA_READ)
		sentence_add(&c->t,
			"its QP's access flags lack REMOTE_READ, or max_rd_atomic here (%u) is "
			"above its max_dest_rd_atomic",
			c->qp->attr.max_rd_atomic);
	else if (wr_has_key(c->n->opcode))
		sentence_add(&c->t,
			"its QP's access flags lack REMOTE_WRITE, or its path_mtu differs from %u, "
			"the one here",
			mtu);
	else
		sentence_add(&c->t,
			"its receive is smaller than the message, or its path_mtu differs from %u, "
			"the one here",
			mtu);
	sentence_add(&c->t, ". " ASK_PEER);
}

static void refused_operation(struct diagnosis *c)
{
	sentence_add(&c->t, "the peer could not execute the ");
	say_wr(c);
	sentence_add(&c->t,
		": its own receive buffer or memory is invalid (lkey, length, access). " ASK_PEER);
}

static void rnr_retries(struct diagnosis *c)
{
	sentence_add(&c->t, "the peer has no receive posted for the ");
	say_wr(c);
	sentence_add(&c->t,
		", and rnr_retry (%u) is used up: post more receives at the peer, before this side "
		"sends; or set rnr_retry to 7 to retry without limit, or a longer min_rnr_timer at "
		"the peer",
		c->qp->attr.rnr_retry);
}

/* --- READ responses -------------------------------------------------------------------------- */

static void read_sequence(struct diagnosis *c)
{
	if (wr_is_atomic(c->n->opcode))
		sentence_add(&c->t,
			"the peer answered a %s (wr_id %" PRIu64
			") with something other than its result (PSN 0x%x): it violates the "
			"protocol",
			wr_name(c->n->opcode), c->n->wr_id, c->n->psn);
	else
		sentence_add(&c->t,
			"the peer answered an RDMA READ (wr_id %" PRIu64
			") with packets out of sequence (PSN 0x%x): its path_mtu differs from %u, "
			"the one here, or it violates the protocol",
			c->n->wr_id, c->n->psn, 1u << c->qp->mtu_shift);
}

static void read_length(struct diagnosis *c)
{
	sentence_add(&c->t,
		"the peer answered an RDMA READ (wr_id %" PRIu64
		") with a packet of %u bytes instead of %u: path_mtu is %u here; set the same at "
		"both ends",
		c->n->wr_id, c->n->value, c->n->limit, 1u << c->qp->mtu_shift);
}

static void read_key(struct diagnosis *c)
{
	sentence_add(&c->t, "the data of an RDMA READ or atomic cannot be placed: ");
	diagnose_region(c, "lkey");
}

/* --- requests that this side refused ------------------------------------------------------ */

static void op_sequence(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " is out of sequence: it starts within another message, or continues "
			    "none. Either only the peer's QP was reconnected, or a second QP sends "
			    "to this one: reconnect both QPs");
}

static void op_unsupported(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" (opcode 0x%02x) is not supported by this rocid: use SEND, RDMA WRITE, RDMA READ, "
		"CmpSwap, FetchAdd, FLUSH or ATOMIC WRITE",
		c->n->opcode);
}

static void no_remote_write(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: this QP does not allow its peer to write. Add "
			    "ROCI_ACCESS_REMOTE_WRITE to its qp_access_flags");
}

static void no_remote_read(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: this QP does not allow its peer to read. Add "
			    "ROCI_ACCESS_REMOTE_READ to its qp_access_flags");
}

static void no_remote_atomic(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: this QP does not allow its peer to do atomics. Add "
			    "ROCI_ACCESS_REMOTE_ATOMIC to its qp_access_flags");
}

static void atomic_alignment(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " is for address 0x%" PRIx64, c->n->va);
	if (c->n->va % ATOMIC_LEN)
		sentence_add(&c->t, ": the address of an atomic must be a multiple of 8");
	else
		sentence_add(&c->t, ", which is a multiple of 8, but its address in memory is not: "
				    "register a region for atomics with an address and an iova "
				    "that differ by a multiple of 8");
}

static void atomic_write_length(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" has %u bytes and a length of %u: an ATOMIC WRITE has 8. The peer violates the "
		"protocol",
		c->n->value, c->n->len);
}

static void no_flush(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " was refused: this QP does not allow its peer to flush. Add "
			    "ROCI_ACCESS_FLUSH_GLOBAL to its qp_access_flags");
}

static void flush_type(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " requests an undefined placement type or selectivity level: the peer "
			    "violates the protocol");
}

static void invalidate(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " cannot invalidate rkey 0x%x: ", c->n->key);
	diagnose_window(c);
}

static void post_window(struct diagnosis *c)
{
	sentence_add(&c->t, "a %s (wr_id %" PRIu64 ") was posted that cannot be executed: ",
		wr_name(c->n->opcode), c->n->wr_id);
	diagnose_window(c);
}

static void reads_exceeded(struct diagnosis *c)
{
	sentence_add(&c->t,
		"the peer sent %u RDMA READs, atomics and flushes at a time, but this QP's "
		"max_dest_rd_atomic is %u: set the peer's max_rd_atomic to at most that",
		c->n->value, c->n->limit);
}

static void packet_length(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" has a payload of %u bytes, which does not match this QP's path_mtu of %u",
		c->n->value, c->n->limit);
	if (c->n->value >= PATH_MTU_MIN && !(c->n->value & (c->n->value - 1)))
		sentence_add(&c->t,
			": the peer's path_mtu seems to be %u. Set the same at both ends",
			c->n->value);
	else
		sentence_add(&c->t, ": set the same path_mtu at both ends");
}

static void message_length(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t, " requests %u bytes, but a message has at most 2^31", c->n->len);
}

static void write_length(struct diagnosis *c)
{
	say_request(c);
	sentence_add(&c->t,
		" has %u bytes, but %u were left of the length in the message's first packet: set "
		"the same path_mtu at both ends; if it is the same, the peer violates the protocol",
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
	sentence_add(&c->t, "the memory of an RDMA READ by the peer became unusable before the "
			    "READ was complete: ");
	diagnose_region(c, "rkey");
}

static void recv_sges(struct diagnosis *c)
{
	sentence_add(&c->t, "a receive was posted with more SGEs than the %s of %u",
		c->o->srq || c->qp->type == ABI_QPT_XRC_RECV ? "SRQ's max_sge"
							     : "QP's max_recv_sge",
		c->n->limit);
}

static void recv_length(struct diagnosis *c)
{
	sentence_add(&c->t,
		"a message of %u bytes or more arrived, but the receive (wr_id %" PRIu64
		") has room for %u: post receives as large as the peer's longest message",
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
	sentence_add(&c->t, " names a shared receive queue that does not exist in this QP's XRC "
			    "domain: the peer must send to the SRQ number that roci_create_srq() "
			    "returned, while the SRQ exists");
}

static void srq_broken(struct diagnosis *c)
{
	sentence_add(&c->t,
		"its SRQ failed: the contents of its ring are invalid (written by a library other "
		"than libroci, or overwritten). Create a new SRQ, and QPs that use it");
}

/* For a QP that has not failed: the requests that it answered with RNR NAKs. */
static void peer_gave_up(struct diagnosis *c)
{
	char at[16];

	say_request(c);
	sentence_add(&c->t,
		" found no receive posted. The peer received %u RNR NAKs and has not retried since "
		"%s: its rnr_retry is used up and its QP has failed. Post receives before the peer "
		"sends, and reconnect both QPs",
		c->n->value, time_text(c->time_ms, at));
}

/* --- either side ------------------------------------------------------------------------ */

static void cq_overflow(struct diagnosis *c)
{
	const struct cq_obj *cq = handle_get(&c->o->session->cqs, c->n->value);

	sentence_add(&c->t, "its CQ overflowed");
	if (cq)
		sentence_add(&c->t, ", which has room for %u completions", cq->cq.lane[0].depth);
	sentence_add(&c->t,
		": it must hold the completions of all outstanding work (this QP alone: %u sends, "
		"%u receives). Poll more often, or enlarge it (roci_resize_cq)",
		c->qp->sq.depth, c->qp->rq.depth);
}

static void command(struct diagnosis *c)
{
	sentence_add(
		&c->t, "its program (modify_qp) or an administrator (kill qp) moved it to ERR");
}

static void unknown(struct diagnosis *c)
{
	sentence_add(&c->t, "rocid did not record the reason, which is a bug: please report it, "
			    "and what the QP was doing");
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
