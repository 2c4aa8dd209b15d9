/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>
#include "fixture.h"
#include "random.h"

static struct roci_sge sge_of(const struct rig *r, uint32_t length)
{
	return (struct roci_sge){(uintptr_t)r->mr->addr, length, r->mr->lkey};
}

static int post(struct rig *r, uint64_t wr_id, unsigned flags)
{
	struct roci_sge sge = sge_of(r, 8);
	struct roci_send_wr wr = {.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = ROCI_WR_SEND,
		.send_flags = flags};

	return roci_post_send(r->qp, &wr, NULL);
}

/* The harness does the oldest request: takes it, completes it if it asks for it. */
static void work(struct rig *r)
{
	union {
		struct abi_wqe wqe;
		uint8_t bytes[256];
	} w;

	assert_true(harness_take_send(r->h, 0, &w));
	if (w.wqe.ctl & ABI_WQE_SIGNALED)
		assert_true(
			harness_complete(r->h, 0, 1, 0, w.wqe.wr_id, ABI_WC_SEND, ABI_WC_SUCCESS));
	atomic_store(&harness_sq(r->h, 0)->consumer, r->h->qp[0].sq_next);
}

static uint64_t poll_one(struct rig *r)
{
	struct roci_wc wc;

	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	return wc.wr_id;
}

/* --- entries ----------------------------------------------------------------------------- */

/* Of one SGE: entries that libroci makes without a second look at the opcode. */
static void post_send__plain(void **state)
{
	static const enum roci_wr_opcode ops[] = {
		ROCI_WR_RDMA_WRITE, ROCI_WR_SEND, ROCI_WR_RDMA_READ};
	struct rig *r = *state;
	struct roci_sge sge = sge_of(r, 100);
	union {
		struct abi_wqe w;
		uint8_t bytes[256];
	} u;

	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct roci_send_wr wr = {
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = ops[i],
			.send_flags = ROCI_SEND_SOLICITED,
			.wr.rdma = {.remote_addr = 0x1122334455667788 + i, .rkey = 0x99aabbcc + i},
		};

		assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0);
		assert_true(harness_take_send(r->h, 0, &u));
		assert_int_equal(u.w.ctl,
			ABI_WQE_CTL((unsigned)ops[i], 1, ABI_WQE_PHASE | ABI_WQE_SOLICITED));
		assert_int_equal(u.w.wr_id, i);
		assert_memory_equal(&u.w.sge[0], &sge, sizeof(sge));
		if (ops[i] == ROCI_WR_SEND)
			continue;
		assert_true(u.w.remote_addr == wr.wr.rdma.remote_addr);
		assert_int_equal(u.w.rkey, wr.wr.rdma.rkey);
	}
}

static void post_send__write_with_imm(void **state)
{
	struct rig *r = *state;
	struct roci_sge sges[2] = {sge_of(r, 100), {0x5000, 7, 0x77}};
	struct roci_send_wr wr = {
		.wr_id = 0xabcdef0123456789,
		.sg_list = sges,
		.num_sge = 2,
		.opcode = ROCI_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = ROCI_SEND_SIGNALED | ROCI_SEND_SOLICITED | ROCI_SEND_FENCE,
		.imm_data = 0x04030201,
		.wr.rdma = {.remote_addr = 0x1122334455667788, .rkey = 0x99aabbcc},
	};
	union {
		struct abi_wqe w;
		uint8_t bytes[256];
	} u;

	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0);
	assert_true(harness_take_send(r->h, 0, &u));
	assert_int_equal(u.w.ctl,
		ABI_WQE_CTL(ABI_WR_RDMA_WRITE_WITH_IMM, 2,
			ABI_WQE_PHASE | ABI_WQE_SIGNALED | ABI_WQE_SOLICITED | ABI_WQE_FENCE));
	assert_true(u.w.wr_id == wr.wr_id);
	assert_int_equal(u.w.imm, 0x04030201);
	assert_true(u.w.remote_addr == 0x1122334455667788);
	assert_true(u.w.rkey == 0x99aabbcc);
	assert_memory_equal(u.bytes + ABI_WQE_HDR, sges, sizeof(sges));
	assert_false(harness_take_send(r->h, 0, &u));
	assert_int_equal(harness_sq(r->h, 0)->producer, 1);
}

static void post_send__atomics(void **state)
{
	struct rig *r = *state;
	struct roci_sge sge = sge_of(r, 8);
	struct roci_send_wr wr = {
		.wr_id = 5,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = ROCI_WR_ATOMIC_CMP_AND_SWP,
		.send_flags = ROCI_SEND_SIGNALED,
		.wr.atomic = {.remote_addr = 0x1122334455667788,
			.compare_add = 0x0102030405060708,
			.swap = 0x1112131415161718,
			.rkey = 0x99aabbcc},
	};
	struct abi_wqe w[4];

	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0);
	assert_true(harness_take_send(r->h, 0, w));
	assert_int_equal(w->ctl,
		ABI_WQE_CTL(ABI_WR_ATOMIC_CMP_AND_SWP, 1, ABI_WQE_PHASE | ABI_WQE_SIGNALED));
	assert_true(w->remote_addr == 0x1122334455667788);
	assert_true(w->rkey == 0x99aabbcc);
	assert_true(w->atomic.compare_add == 0x0102030405060708);
	assert_true(w->atomic.swap == 0x1112131415161718);
	assert_memory_equal(&w->atomic.sge, &sge, sizeof(sge));
	wr.opcode = ROCI_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0);
	assert_true(harness_take_send(r->h, 0, w));
	assert_int_equal(ABI_WQE_OPCODE(w->ctl), ABI_WR_ATOMIC_FETCH_AND_ADD);
}

/* proves REQ-15 */
static void post_send__inline_is_copied(void **state)
{
	struct rig *r = *state;
	char text[64] = "RDMA over converged Ethernet";
	struct roci_sge sges[2] = {{(uintptr_t)text, 5, 0}, {(uintptr_t)text + 10, 59 - 5, 0}};
	struct roci_send_wr wr = {.sg_list = sges,
		.num_sge = 2,
		.opcode = ROCI_WR_SEND,
		.send_flags = ROCI_SEND_INLINE};
	uint8_t bytes[256];
	char expect[59];

	memcpy(expect, text, 5);
	memcpy(expect + 5, text + 10, 54);
	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0);
	memset(text, 0, sizeof(text)); /* REQ-15 */
	assert_true(harness_take_send(r->h, 0, bytes));
	assert_int_equal(
		*(uint32_t *)bytes, ABI_WQE_CTL(ABI_WR_SEND, 59, ABI_WQE_PHASE | ABI_WQE_INLINE));
	assert_memory_equal(bytes + ABI_WQE_HDR, expect, 59);
}

/* proves REQ-14 */
static void post_send__sq_sig_all(void **state)
{
	struct rig *r = *state;
	struct roci_qp *first = r->qp;
	uint8_t bytes[256];

	r->qp = rig_qp(r, 4, 1);
	rig_modify(r->qp, ROCI_QPS_RTS);
	assert_int_equal(post(r, 1, 0), 0);
	assert_true(harness_take_send(r->h, 1, bytes));
	roci_destroy_qp(r->qp);
	r->qp = first;
	assert_true(*(uint32_t *)bytes & ABI_WQE_SIGNALED); /* REQ-14 */
}

static void post_recv__entry(void **state)
{
	struct rig *r = *state;
	struct roci_sge sges[2] = {sge_of(r, 100), {0x5000, 7, 0x77}};
	struct roci_recv_wr second = {.wr_id = 6, .num_sge = 0};
	struct roci_recv_wr wr = {.wr_id = 5, .next = &second, .sg_list = sges, .num_sge = 2};
	union {
		struct abi_recv_wqe w;
		uint8_t bytes[256];
	} u;

	assert_int_equal(roci_post_recv(r->qp, &wr, NULL), 0);
	assert_true(harness_take_recv(r->h, 0, &u));
	assert_true(u.w.wr_id == 5);
	assert_int_equal(ABI_WQE_COUNT(u.w.ctl), 2);
	assert_memory_equal(u.w.sge, sges, sizeof(sges));
	assert_true(harness_take_recv(r->h, 0, &u));
	assert_int_equal(ABI_WQE_COUNT(u.w.ctl), 0);
	assert_false(harness_take_recv(r->h, 0, &u));
}

static void post_send__laps(void **state)
{
	struct rig *r = *state;

	/* A depth of 4: the mark turns every lap, and no entry is seen twice or missed. */
	for (uint64_t i = 0; i < 50; i++) {
		assert_int_equal(post(r, i, ROCI_SEND_SIGNALED), 0);
		work(r);
		assert_true(poll_one(r) == i);
		assert_false(harness_take_send(r->h, 0, &(uint8_t[256]){0}));
	}
}

/* --- bells -------------------------------------------------------------------------------- */

static void post_send__rings_only_when_asked(void **state)
{
	struct rig *r = *state;

	assert_int_equal(post(r, 1, 0), 0);
	assert_false(harness_bell(r->h, 0));
	atomic_store(&harness_sq(r->h, 0)->need_doorbell, 1);
	assert_int_equal(post(r, 2, 0), 0);
	assert_true(harness_bell(r->h, 0));
	assert_int_equal(harness_sq(r->h, 0)->need_doorbell, 1); /* rocid's word */
}

/* A QP that has moved: its new worker's bell, for both queues; what makes no sense is the first's.
 */
static void post_send__rings_where_the_qp_has_moved(void **state)
{
	struct rig *r = *state;
	struct roci_recv_wr wr = {.num_sge = 0};
	uint32_t first = r->h->qp[0].told.worker;

	atomic_store(&harness_sq(r->h, 0)->need_doorbell, 1);
	atomic_store(&harness_rq(r->h, 0)->need_doorbell, 1);
	for (uint32_t worker = 0; worker < HARNESS_WORKERS; worker++) {
		atomic_store(&harness_sq(r->h, 0)->bell, 1 + worker);
		r->h->qp[0].told.worker = worker;
		assert_int_equal(post(r, worker, 0), 0);
		assert_true(harness_bell(r->h, 0));
		assert_int_equal(roci_post_recv(r->qp, &wr, NULL), 0);
		assert_true(harness_bell(r->h, 0));
	}
	r->h->qp[0].told.worker = first;
	atomic_store(&harness_sq(r->h, 0)->bell, 1 + HARNESS_WORKERS);
	assert_int_equal(post(r, 9, 0), 0);
	assert_true(harness_bell(r->h, 0));
}

static void post_send__no_bell_for_nothing(void **state)
{
	struct rig *r = *state;
	struct roci_send_wr wr = {.opcode = (enum roci_wr_opcode)77};

	atomic_store(&harness_sq(r->h, 0)->need_doorbell, 1);
	assert_int_equal(roci_post_send(r->qp, &wr, NULL), EINVAL);
	assert_false(harness_bell(r->h, 0));
}

static void post_recv__rings_for_its_own_queue(void **state)
{
	struct rig *r = *state;
	struct roci_recv_wr wr = {.num_sge = 0};

	atomic_store(&harness_sq(r->h, 0)->need_doorbell, 1);
	assert_int_equal(roci_post_recv(r->qp, &wr, NULL), 0);
	assert_false(harness_bell(r->h, 0));
	atomic_store(&harness_rq(r->h, 0)->need_doorbell, 1);
	assert_int_equal(roci_post_recv(r->qp, &wr, NULL), 0);
	assert_true(harness_bell(r->h, 0));
}

/* A bell for a worker that sleeps is written to its eventfd too; for one that does not it is not:
 * that is a system call. */
static void post_send__wakes_a_sleeper(void **state)
{
	struct abi_doorbell *bell;
	uint64_t count;
	struct rig r;

	harness_sleeps = true;
	rig_make(&r, 4);
	harness_sleeps = false;
	assert_int_equal(r.h->calls[ABI_GET_WAKE], HARNESS_WORKERS); /* one was refused */
	bell = (struct abi_doorbell *)(r.h->session.base + sizeof(struct abi_session)) + 1;
	atomic_store(&harness_sq(r.h, 0)->need_doorbell, 1);
	assert_int_equal(post(&r, 1, 0), 0);
	assert_int_equal(read(r.h->wake, &count, sizeof(count)), -1);
	atomic_store(&bell->asleep, 1);
	assert_int_equal(post(&r, 2, 0), 0);
	assert_int_equal(read(r.h->wake, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, 1);
	assert_true(harness_bell(r.h, 0));
	atomic_store(&harness_sq(r.h, 0)->need_doorbell, 0);
	assert_int_equal(post(&r, 3, 0), 0);
	assert_int_equal(read(r.h->wake, &count, sizeof(count)), -1);
	close(r.h->wake);
	rig_drop(&r);
}

/* --- errors ------------------------------------------------------------------------------- */

/* Three requests of which the second is @p bad: the first stays posted, bad_wr is the second. */
static void refused(struct rig *r, struct roci_send_wr *bad)
{
	struct roci_sge sge = sge_of(r, 1);
	struct roci_send_wr third = {
		.wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = ROCI_WR_SEND};
	struct roci_send_wr first = third;
	const struct roci_send_wr *where = NULL;
	uint8_t bytes[256];

	first.next = bad;
	bad->next = &third;
	assert_int_equal(roci_post_send(r->qp, &first, &where), EINVAL);
	assert_ptr_equal(where, bad);
	assert_true(strlen(roci_last_error()) > 10);
	assert_true(harness_take_send(r->h, 0, bytes));
	assert_false(harness_take_send(r->h, 0, bytes));
}

/* proves REQ-17 */
static void post_send__bad_opcode(void **state)
{
	refused(*state, &(struct roci_send_wr){.opcode = (enum roci_wr_opcode)10}); /* REQ-17 */
}

/* UC-01, REQ-17: UC has SEND and WRITE, and nothing else. */
static void post_send__opcodes_of_uc(void **state)
{
	static const enum roci_wr_opcode none[] = {
		ROCI_WR_RDMA_READ, ROCI_WR_ATOMIC_CMP_AND_SWP, ROCI_WR_ATOMIC_FETCH_AND_ADD};
	struct rig *r = *state;
	struct roci_sge sge = sge_of(r, 8);
	uint8_t bytes[256];

	roci_destroy_qp(r->qp);
	r->qp = rig_qp_of(r, ROCI_QPT_UC, 4, 0);
	rig_modify(r->qp, ROCI_QPS_RTS);
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		refused(r,
			&(struct roci_send_wr){.opcode = none[i], .sg_list = &sge, .num_sge = 1});
		assert_non_null(strstr(roci_last_error(), "UC"));
	}
	assert_int_equal(
		roci_post_send(
			r->qp, &(struct roci_send_wr){.opcode = ROCI_WR_RDMA_WRITE_WITH_IMM}, NULL),
		0);
	assert_true(harness_take_send(r->h, 0, bytes));
}

static void post_send__bad_opcode_beyond_the_table(void **state)
{
	refused(*state, &(struct roci_send_wr){.opcode = (enum roci_wr_opcode)0x80000000u});
}

/* proves REQ-17 */
static void post_send__too_many_sges(void **state)
{
	struct roci_sge sges[3] = {{0}};

	refused(*state,
		&(struct roci_send_wr){.sg_list = sges, .num_sge = 3, .opcode = ROCI_WR_SEND});
}

/* proves REQ-17 */
static void post_send__negative_sges(void **state)
{
	refused(*state, &(struct roci_send_wr){.num_sge = -1, .opcode = ROCI_WR_SEND});
}

/* proves REQ-16 */
static void post_send__longest_inline(void **state)
{
	struct rig *r = *state;
	static char data[64];
	struct roci_sge sge = {(uintptr_t)data, 64, 0};
	struct roci_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = ROCI_WR_SEND,
		.send_flags = ROCI_SEND_INLINE};
	uint8_t bytes[256];

	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0);
	assert_true(harness_take_send(r->h, 0, bytes));
}

/* proves REQ-16 */
static void post_send__inline_too_long(void **state)
{
	static char data[65];
	struct roci_sge sge = {(uintptr_t)data, 65, 0};

	refused(*state, &(struct roci_send_wr){.sg_list = &sge,
				.num_sge = 1,
				.opcode = ROCI_WR_SEND,
				.send_flags = ROCI_SEND_INLINE}); /* REQ-16 */
}

static void post_send__inline_read(void **state)
{
	refused(*state, &(struct roci_send_wr){
				.opcode = ROCI_WR_RDMA_READ, .send_flags = ROCI_SEND_INLINE});
}

/* REQ-17: there is one place for the answer, of 8 bytes. */
static void post_send__bad_atomics(void **state)
{
	struct roci_sge sges[2] = {sge_of(*state, 8), sge_of(*state, 0)};
	struct roci_send_wr wr = {
		.sg_list = sges, .num_sge = 2, .opcode = ROCI_WR_ATOMIC_FETCH_AND_ADD};

	refused(*state, &wr);
	wr.num_sge = 0;
	refused(*state, &wr);
	wr.num_sge = 1;
	sges[0].length = 7;
	refused(*state, &wr);
	sges[0].length = 8;
	wr.send_flags = ROCI_SEND_INLINE;
	refused(*state, &wr);
}

static void post_send__unknown_flag(void **state)
{
	refused(*state, &(struct roci_send_wr){.opcode = ROCI_WR_SEND, .send_flags = 1u << 4});
}

/* proves REQ-07 */
static void post_send__message_longer_than_2_to_31(void **state)
{
	struct roci_sge sges[2] = {{0, 1u << 31, 1}, {0, 1, 1}};
	struct roci_sge one = {0, (1u << 31) + 1, 1};
	struct roci_sge wrap[2] = {{0, UINT32_MAX, 1}, {0, 1, 1}}; /* 0 in 32 bits */

	refused(*state,
		&(struct roci_send_wr){.sg_list = sges, .num_sge = 2, .opcode = ROCI_WR_SEND});
	refused(*state,
		&(struct roci_send_wr){.sg_list = wrap, .num_sge = 2, .opcode = ROCI_WR_RDMA_READ});
	refused(*state,
		&(struct roci_send_wr){.sg_list = &one, .num_sge = 1, .opcode = ROCI_WR_SEND});
}

/* proves REQ-07 */
static void post_send__message_of_2_to_31(void **state)
{
	struct rig *r = *state;
	struct roci_sge sge = {0, 1u << 31, 1};
	struct roci_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = ROCI_WR_RDMA_WRITE};

	assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0); /* REQ-07 */
}

/* proves REQ-20, QPS-17 */
static void post_send__before_rts(void **state)
{
	struct rig *r = *state;
	static const enum roci_qp_state states[] = {ROCI_QPS_RESET, ROCI_QPS_INIT, ROCI_QPS_RTR};
	struct roci_send_wr wr = {.opcode = ROCI_WR_SEND};
	const struct roci_send_wr *where;

	for (unsigned i = 0; i < 3; i++) {
		rig_modify(r->qp, states[i]);
		where = NULL;
		assert_int_equal(roci_post_send(r->qp, &wr, &where), EINVAL); /* REQ-20 */
		assert_ptr_equal(where, &wr);
		assert_non_null(strstr(roci_last_error(), roci_qp_state_str(states[i])));
	}
	for (int s = ROCI_QPS_SQD; s <= ROCI_QPS_ERR; s += 2) {
		rig_modify(r->qp, (enum roci_qp_state)s);
		assert_int_equal(roci_post_send(r->qp, &wr, NULL), 0);
	}
}

/* proves QPS-17 */
static void post_recv__states(void **state)
{
	struct rig *r = *state;
	struct roci_recv_wr wr = {.num_sge = 0};

	rig_modify(r->qp, ROCI_QPS_RESET);
	assert_int_equal(roci_post_recv(r->qp, &wr, NULL), EINVAL);
	rig_modify(r->qp, ROCI_QPS_INIT);
	assert_int_equal(roci_post_recv(r->qp, &wr, NULL), 0);
}

/* proves SRQ-01, XRC-02: its receives come from elsewhere; nothing is posted. */
static void post_recv__without_a_receive_queue(void **state)
{
	static const enum roci_qp_type type[] = {
		ROCI_QPT_RC, ROCI_QPT_UC, ROCI_QPT_XRC_SEND, ROCI_QPT_XRC_RECV};
	struct rig *r = *state;
	struct roci_sge sge = sge_of(r, 1);
	struct roci_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
	enum roci_qp_type was = r->qp->qp_type;
	struct roci_srq srq;

	for (unsigned i = 0; i < sizeof(type) / sizeof(type[0]); i++) {
		const struct roci_recv_wr *bad = NULL;

		r->qp->qp_type = type[i];
		r->qp->srq = i < 2 ? &srq : NULL;
		assert_int_equal(roci_post_recv(r->qp, &wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr);
		assert_non_null(strstr(roci_last_error(), "SRQ"));
	}
	r->qp->qp_type = was;
	r->qp->srq = NULL;
	assert_int_equal(roci_post_recv(r->qp, &wr, NULL), 0);
}

static void post_recv__too_many_sges(void **state)
{
	struct rig *r = *state;
	struct roci_recv_wr bad = {.num_sge = 3}, wr = {.next = &bad};
	const struct roci_recv_wr *where = NULL;
	uint8_t bytes[256];

	assert_int_equal(roci_post_recv(r->qp, &wr, &where), EINVAL);
	assert_ptr_equal(where, &bad);
	assert_true(harness_take_recv(r->h, 0, bytes));
	assert_false(harness_take_recv(r->h, 0, bytes));
}

/* --- room --------------------------------------------------------------------------------- */

/* proves REQ-19 */
static void post_send__full(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 4; i++)
		assert_int_equal(post(r, i, ROCI_SEND_SIGNALED), 0);
	assert_int_equal(post(r, 4, 0), ENOMEM); /* REQ-19 */
	work(r);
	/* Complete, but outstanding for the program until it polls. */
	assert_int_equal(post(r, 4, 0), ENOMEM);
	assert_true(poll_one(r) == 0);
	assert_int_equal(post(r, 4, 0), 0);
	assert_int_equal(post(r, 5, 0), ENOMEM);
}

static void post_send__room_before_the_consumer_index(void **state)
{
	struct rig *r = *state;
	uint8_t bytes[256];

	/* rocid publishes the index after the completion, perhaps much later. */
	for (int i = 0; i < 40; i++) {
		while (post(r, i, ROCI_SEND_SIGNALED) == 0)
			;
		assert_true(harness_take_send(r->h, 0, bytes));
		assert_true(harness_complete(r->h, 0, 0, 0, i, ABI_WC_SEND, ABI_WC_SUCCESS));
		poll_one(r);
	}
	assert_int_equal(harness_sq(r->h, 0)->consumer, 0);
}

/* proves REQ-19: those, and none that rocid has not done. */
static void post_send__one_completion_frees_those_before_it(void **state)
{
	struct rig *r = *state;
	uint8_t bytes[256];

	for (int lap = 0; lap < 10; lap++) {
		for (int i = 0; i < 3; i++)
			assert_int_equal(post(r, i, 0), 0);
		assert_int_equal(post(r, 3, ROCI_SEND_SIGNALED), 0);
		assert_int_equal(post(r, 4, 0), ENOMEM);
		for (int i = 0; i < 4; i++)
			assert_true(harness_take_send(r->h, 0, bytes));
		harness_complete(r->h, 0, 1, 0, 3, ABI_WC_SEND, ABI_WC_SUCCESS);
		assert_true(poll_one(r) == 3);
	}
}

static void post_send__unsignaled_for_ever(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 4; i++)
		assert_int_equal(post(r, i, 0), 0);
	for (int i = 4; i < 100; i++) {
		assert_int_equal(post(r, i, 0), ENOMEM);
		work(r);
		assert_int_equal(post(r, i, 0), 0);
	}
}

static void post_recv__full_until_polled(void **state)
{
	struct rig *r = *state;
	struct roci_recv_wr wr = {.num_sge = 0};
	uint8_t bytes[256];

	for (int i = 0; i < 4; i++)
		assert_int_equal(roci_post_recv(r->qp, &wr, NULL), 0);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(roci_post_recv(r->qp, &wr, NULL), ENOMEM);
		assert_true(harness_take_recv(r->h, 0, bytes));
		assert_int_equal(roci_post_recv(r->qp, &wr, NULL), ENOMEM);
		harness_complete(r->h, 0, 0, 0, i, ABI_WC_RECV, ABI_WC_SUCCESS);
		poll_one(r);
		assert_int_equal(roci_post_recv(r->qp, &wr, NULL), 0);
	}
}

/* Unsignaled requests that fail complete all the same; their wr_ids need not differ. */
static void post_send__failures_never_free_what_was_not_taken(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc;
	uint8_t bytes[256];

	for (int i = 0; i < 4; i++)
		assert_int_equal(post(r, 7, 0), 0);
	work(r);
	work(r);
	assert_int_equal(post(r, 7, 0), 0); /* the tail moved by the index alone */
	assert_int_equal(post(r, 7, 0), 0);
	/* All that was taken is flushed, late completions of what was skipped included. */
	for (uint32_t i = 0; i < 4; i++) {
		if (i >= 2)
			assert_true(harness_take_send(r->h, 0, bytes));
		harness_fail(r->h, 0, 1, 0, i, 7, ABI_WC_WR_FLUSH_ERR);
	}
	while (roci_poll_cq(r->cq, 1, &wc) == 1)
		;
	/* Two are left, although the index does not say so yet. */
	assert_int_equal(post(r, 7, 0), 0);
	assert_int_equal(post(r, 7, 0), 0);
	assert_int_equal(post(r, 7, 0), ENOMEM);
	for (int i = 0; i < 4; i++)
		assert_true(harness_take_send(r->h, 0, bytes));
	atomic_store(&harness_sq(r->h, 0)->consumer, r->h->qp[0].sq_next);
	assert_int_equal(post(r, 7, 0), 0);
}

/* proves REQ-19: completions that are polled when what they are of was passed already, by
 * the consumer index, are not those of newer requests that have the same wr_id. */
static void post_send__late_failures_are_not_of_newer_requests(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc;

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(post(r, 0, 0), 0);
	for (uint32_t i = 0; i < 4; i++) {
		work(r);
		harness_fail(r->h, 0, 1, 0, i, 0, i ? ABI_WC_WR_FLUSH_ERR : ABI_WC_LOC_LEN_ERR);
	}
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	/* SQE -> RTS; the second of these finds the ring full */
	assert_int_equal(post(r, 0, ROCI_SEND_SIGNALED), 0);
	assert_int_equal(post(r, 0, 0), 0);
	assert_int_equal(post(r, 0, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
		assert_int_equal(wc.status, ROCI_WC_WR_FLUSH_ERR);
		work(r);
	}
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	assert_int_equal(wc.status, ROCI_WC_SUCCESS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(r, 0, 0), 0);
	assert_int_equal(post(r, 0, 0), ENOMEM);
	for (int i = 0; i < 4; i++)
		work(r);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(r, 0, 0), 0);
}

/* An index that names nothing that is outstanding frees nothing. */
static void post_send__a_failure_of_nothing(void **state)
{
	static const uint32_t index[] = {4, 5, 1000, UINT32_MAX, UINT32_MAX / 2, 1u << 31};
	struct rig *r = *state;
	struct roci_wc wc;

	for (int i = 0; i < 4; i++)
		assert_int_equal(post(r, 0, ROCI_SEND_SIGNALED), 0);
	for (unsigned i = 0; i < sizeof(index) / sizeof(index[0]); i++) {
		harness_fail(r->h, 0, 0, 0, index[i], 0, ABI_WC_LOC_PROT_ERR);
		assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
		assert_int_equal(post(r, 0, 0), ENOMEM);
	}
	harness_fail(r->h, 0, 0, 0, 3, 0, ABI_WC_LOC_PROT_ERR);
	assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(r, 0, 0), 0);
	assert_int_equal(post(r, 0, 0), ENOMEM);
}

/* Things done and indices published by rocid, in several orders. */
struct mix {
	struct rig *rig;
	struct random random;
	uint32_t posted;
	uint32_t unpolled; /* completions */
	bool failing;	   /* SQE: all is flushed */
};

/* The worker does the oldest request, which may fail, and tells of it at once or later. */
static void mix_work(struct mix *m)
{
	struct harness_qp *q = &m->rig->h->qp[0];
	struct abi_wqe w[4];

	if (m->unpolled == 16 || !harness_take_send(m->rig->h, 0, w))
		return;
	if (m->failing || !random_below(&m->random, 12)) {
		harness_fail(m->rig->h, 0, 0, 0, q->sq_next - 1, 0,
			m->failing ? ABI_WC_WR_FLUSH_ERR : ABI_WC_LOC_PROT_ERR);
		m->failing = true;
		m->unpolled++;
	} else if (w->ctl & ABI_WQE_SIGNALED) {
		harness_complete(m->rig->h, 0, 0, 0, 0, ABI_WC_SEND, ABI_WC_SUCCESS);
		m->unpolled++;
	}
	if (random_below(&m->random, 2))
		atomic_store(&harness_sq(m->rig->h, 0)->consumer, q->sq_next);
}

static void mix_post(struct mix *m)
{
	if (post(m->rig, 0, random_below(&m->random, 3) ? 0 : ROCI_SEND_SIGNALED) == 0)
		m->posted++;
	/* REQ-19: it took no place of one that the worker has yet to take. */
	assert_true(m->posted - m->rig->h->qp[0].sq_next <= 4);
}

static void mix_poll(struct mix *m)
{
	struct roci_wc wc;

	m->unpolled -= (uint32_t)roci_poll_cq(m->rig->cq, 1, &wc);
}

/* All is done and polled: there is room for four. */
static void mix_settle(struct mix *m)
{
	do {
		while (m->unpolled)
			mix_poll(m);
		mix_work(m);
	} while (m->unpolled || m->rig->h->qp[0].sq_next != m->posted);
	atomic_store(&harness_sq(m->rig->h, 0)->consumer, m->posted);
	for (int i = 0; i < 4; i++)
		assert_int_equal(post(m->rig, 0, 0), 0);
	m->posted += 4;
	assert_int_equal(post(m->rig, 0, 0), ENOMEM);
}

/* proves REQ-19: signaled, unsignaled and failed requests of one wr_id, in any order. */
static void post_send__room_whatever_happens(void **state)
{
	struct mix m = {.rig = *state, .random = {.state = 0x9E3779B97F4A7C15}};

	for (unsigned i = 0; i < 20000; i++) {
		unsigned what = (unsigned)random_below(&m.random, 8);

		if (what < 3)
			mix_post(&m);
		else if (what < 5)
			mix_work(&m);
		else if (what < 7)
			mix_poll(&m);
		else
			m.failing &= random_below(&m.random, 4) != 0; /* SQE -> RTS */
		if (i % 100 == 99)
			mix_settle(&m);
	}
}

/* proves QPS-16 */
static void post_send__after_reset(void **state)
{
	struct rig *r = *state;
	struct roci_wc wc;

	for (int lap = 0; lap < 5; lap++) {
		for (int i = 0; i < 4; i++)
			assert_int_equal(post(r, i, ROCI_SEND_SIGNALED), 0);
		work(r);
		work(r);
		assert_int_equal(rig_modify(r->qp, ROCI_QPS_RESET), 0);
		rig_modify(r->qp, ROCI_QPS_RTS);
		assert_int_equal(roci_poll_cq(r->cq, 1, &wc), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(post(r, i, ROCI_SEND_SIGNALED), 0);
		assert_int_equal(post(r, 5, 0), ENOMEM);
		for (int i = 0; i < 4; i++)
			work(r);
		for (int i = 0; i < 4; i++)
			assert_true(poll_one(r) == (uint64_t)i);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(post_send__plain),
		T(post_send__write_with_imm),
		T(post_send__atomics),
		T(post_send__inline_is_copied),
		T(post_send__sq_sig_all),
		T(post_recv__entry),
		T(post_send__laps),
		T(post_send__rings_only_when_asked),
		T(post_send__rings_where_the_qp_has_moved),
		T(post_send__no_bell_for_nothing),
		T(post_recv__rings_for_its_own_queue),
		cmocka_unit_test(post_send__wakes_a_sleeper),
		T(post_send__bad_opcode),
		T(post_send__opcodes_of_uc),
		T(post_send__bad_opcode_beyond_the_table),
		T(post_send__too_many_sges),
		T(post_send__negative_sges),
		T(post_send__longest_inline),
		T(post_send__inline_too_long),
		T(post_send__inline_read),
		T(post_send__bad_atomics),
		T(post_send__unknown_flag),
		T(post_send__message_longer_than_2_to_31),
		T(post_send__message_of_2_to_31),
		T(post_send__before_rts),
		T(post_recv__states),
		T(post_recv__without_a_receive_queue),
		T(post_recv__too_many_sges),
		T(post_send__full),
		T(post_send__room_before_the_consumer_index),
		T(post_send__one_completion_frees_those_before_it),
		T(post_send__unsignaled_for_ever),
		T(post_recv__full_until_polled),
		T(post_send__failures_never_free_what_was_not_taken),
		T(post_send__late_failures_are_not_of_newer_requests),
		T(post_send__a_failure_of_nothing),
		T(post_send__room_whatever_happens),
		T(post_send__after_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
