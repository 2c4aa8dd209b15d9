/* SPDX-License-Identifier: BSD-3-Clause */
/* libroci's shared receive queues: what it asks, checks, maps and writes. The hook plays rocid. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "harness.h"

#define SRQN   0xABC
#define HANDLE 55u
#define XRCD   66u

static struct rig r;
static struct {
	struct abi_create_srq asked;
	struct abi_modify_srq changed;
	struct abi_create_srq_reply reply; /* of the next request that makes a ring */
	uint8_t *base[2];		   /* the regions given, newest last */
	struct abi_srq_attr attr;
	int status; /* of the next request */
} rocid;

static void give_ring(struct harness *h, const struct abi_msg *msg)
{
	int fd = memfd_create("srq", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 16), 0);
	rocid.base[0] = rocid.base[1];
	rocid.base[1] = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	harness_reply(h, msg, 0, &rocid.reply, sizeof(rocid.reply), &fd, 1);
	close(fd);
}

static bool play(struct harness *h, const struct abi_msg *msg, const void *body, size_t len)
{
	const struct abi_handle_reply xrcd = {XRCD};

	switch (msg->type) {
	case ABI_CREATE_SRQ:
		memcpy(&rocid.asked, body, sizeof(rocid.asked));
		break;
	case ABI_MODIFY_SRQ:
		memcpy(&rocid.changed, body, sizeof(rocid.changed));
		break;
	case ABI_OPEN_XRCD:
		harness_reply(h, msg, 0, &xrcd, sizeof(xrcd), NULL, 0);
		return true;
	case ABI_QUERY_SRQ:
		harness_reply(h, msg, 0, &rocid.attr, sizeof(rocid.attr), NULL, 0);
		return true;
	case ABI_DESTROY_SRQ:
		break;
	default:
		return false;
	}
	if (rocid.status)
		harness_reply(h, msg, rocid.status, "no: because", 12, NULL, 0);
	else if (msg->type == ABI_CREATE_SRQ ||
		 (rocid.changed.mask & ABI_SRQ_MAX_WR && msg->type == ABI_MODIFY_SRQ))
		give_ring(h, msg);
	else
		harness_reply(h, msg, 0, NULL, 0, NULL, 0);
	return true;
}

static struct abi_create_srq_reply ring_of(uint32_t depth)
{
	return (struct abi_create_srq_reply){
		HANDLE, SRQN, depth, 2 * ABI_ENTRY, sizeof(struct abi_queue), 1 << 16};
}

static int setup(void **state)
{
	rig_make(&r, 4);
	memset(&rocid, 0, sizeof(rocid));
	rocid.reply = ring_of(4);
	atomic_store(&r.h->hook, play);
	return 0;
}

static int teardown(void **state)
{
	atomic_store(&r.h->hook, NULL);
	rig_drop(&r);
	for (unsigned i = 0; i < 2; i++)
		if (rocid.base[i])
			munmap(rocid.base[i], 1 << 16);
	return 0;
}

static struct roci_srq *make(void)
{
	struct roci_srq_init_attr attr = {.size = sizeof(attr), .max_wr = 3, .max_sge = 4};
	struct roci_srq *srq = roci_create_srq(r.pd, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.max_wr, 4);
	assert_int_equal(attr.max_sge, 4);
	return srq;
}

static int post(struct roci_srq *srq, uint64_t wr_id)
{
	struct roci_sge sge[2] = {{0x1000, 8, 1}, {0x2000, 16, 2}};
	struct roci_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = 2};

	return roci_post_srq_recv(srq, &wr, NULL);
}

static struct abi_queue *queue(unsigned base)
{
	return (struct abi_queue *)rocid.base[base];
}

static const struct abi_recv_wqe *entry(unsigned base, uint32_t i)
{
	return (const struct abi_recv_wqe *)(rocid.base[base] + rocid.reply.ring_off +
					     (i & (rocid.reply.max_wr - 1)) * rocid.reply.stride);
}

static void create_srq__asks_and_tells(void **state)
{
	struct roci_srq *srq = make();

	assert_int_equal(rocid.asked.pd, 70);
	assert_int_equal(rocid.asked.max_wr, 3);
	assert_int_equal(rocid.asked.max_sge, 4);
	assert_true(rocid.asked.xrcd == ABI_NO_HANDLE && rocid.asked.cq == ABI_NO_HANDLE);
	assert_int_equal(srq->srq_num, SRQN);
	assert_ptr_equal(srq->pd, r.pd);
	assert_int_equal(roci_destroy_srq(srq), 0);
}

/* The ring that rocid names must lie in its region and have the size that was asked for. */
static void create_srq__a_ring_that_makes_no_sense(void **state)
{
	const struct abi_create_srq_reply good = ring_of(4);
	struct abi_create_srq_reply bad[6] = {good, good, good, good, good, good};
	struct roci_srq_init_attr attr = {.size = sizeof(attr), .max_wr = 3, .max_sge = 4};

	bad[0].max_wr = 0;
	bad[1].max_wr = 3;
	bad[2].max_wr = 1u << 31;
	bad[3].stride = ABI_ENTRY; /* too small for four SGEs */
	bad[4].ring_off = (1 << 16) - ABI_ENTRY;
	bad[5].ring_off = UINT32_MAX - ABI_ENTRY + 1;
	for (unsigned i = 0; i < 6; i++) {
		rocid.reply = bad[i];
		assert_null(roci_create_srq(r.pd, &attr));
		assert_int_equal(errno, EPROTO);
		munmap(rocid.base[1], 1 << 16);
		rocid.base[1] = NULL;
	}
	assert_int_equal(r.h->calls[ABI_DESTROY_SRQ], 6);
	rocid.status = -ENOSPC;
	assert_null(roci_create_srq(r.pd, &attr));
	assert_int_equal(errno, ENOSPC);
	assert_string_equal(roci_last_error(), "no: because");
	attr.size = 0;
	assert_null(roci_create_srq(r.pd, &attr));
	assert_int_equal(errno, EINVAL);
	rocid.status = 0;
}

/* Handles are those of a session: another's would name something else. */
static void create_srq__parts_of_another_context(void **state)
{
	struct roci_context other = {0};
	struct roci_xrcd strange = {.context = &other};
	struct roci_cq alien = {.context = &other};
	struct roci_xrcd_init_attr domain = {.size = sizeof(domain), .fd = -1};
	struct roci_srq_init_attr attr = {.size = sizeof(attr), .max_wr = 3, .max_sge = 4};
	struct roci_srq *srq;

	attr.xrcd = &strange;
	attr.cq = r.cq;
	assert_null(roci_create_srq(r.pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(roci_last_error(), "XRC domain"));
	assert_non_null(attr.xrcd = roci_open_xrcd(r.ctx, &domain));
	attr.cq = &alien;
	assert_null(roci_create_srq(r.pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(roci_last_error(), "CQ of an XRC SRQ"));
	assert_int_equal(r.h->calls[ABI_CREATE_SRQ], 0);
	attr.cq = r.cq;
	assert_non_null(srq = roci_create_srq(r.pd, &attr));
	assert_int_equal(rocid.asked.xrcd, XRCD);
	assert_int_equal(roci_destroy_cq(r.cq), EBUSY); /* CQ-12 */
	assert_int_equal(roci_destroy_srq(srq), 0);
	assert_int_equal(roci_close_xrcd(attr.xrcd), 0);
	attr.xrcd = NULL; /* whoever's: an SRQ that is none of XRC has no CQ */
	assert_non_null(srq = roci_create_srq(r.pd, &attr));
	assert_true(rocid.asked.cq == ABI_NO_HANDLE);
	assert_int_equal(roci_destroy_srq(srq), 0);
}

/* proves SRQ-02: entries with the mark of their lap, then the index; as many as fit. */
static void post_srq_recv__fills_the_ring(void **state)
{
	struct roci_srq *srq = make();

	for (uint32_t i = 0; i < 10; i++) {
		if (i >= 4) {
			assert_int_equal(post(srq, i), ENOMEM);
			assert_int_equal(queue(1)->producer, i);
			atomic_store(&queue(1)->consumer, i - 3);
		}
		assert_int_equal(post(srq, i), 0);
		assert_int_equal(queue(1)->producer, i + 1);
		assert_int_equal(entry(1, i)->wr_id, i);
		assert_int_equal(ABI_WQE_COUNT(entry(1, i)->ctl), 2);
		assert_int_equal(entry(1, i)->ctl & ABI_WQE_PHASE, abi_phase(i, 4));
		assert_int_equal(entry(1, i)->sge[1].addr, 0x2000);
		assert_int_equal(entry(1, i)->sge[1].length, 16);
	}
	assert_int_equal(roci_destroy_srq(srq), 0);
}

static void post_srq_recv__refusals(void **state)
{
	struct roci_srq *srq = make();
	struct roci_sge sge[5] = {{0}};
	struct roci_recv_wr wr[3] = {{.wr_id = 1, .next = &wr[1]},
		{.wr_id = 2, .next = &wr[2], .sg_list = sge, .num_sge = 5}, {.wr_id = 3}};
	const struct roci_recv_wr *bad = NULL;

	assert_int_equal(roci_post_srq_recv(srq, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(queue(1)->producer, 1); /* what is before it stays posted */
	wr[1].num_sge = -1;
	assert_int_equal(roci_post_srq_recv(srq, &wr[1], &bad), EINVAL);
	assert_int_equal(roci_destroy_srq(srq), 0);
}

/* proves SRQ-05: later receives go to the new ring, at the index that is due. */
static void modify_srq__resize(void **state)
{
	struct roci_srq_attr attr = {.size = sizeof(attr), .max_wr = 7};
	struct roci_srq *srq = make();

	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(post(srq, i), 0);
	rocid.reply = ring_of(8);
	assert_int_equal(roci_modify_srq(srq, &attr, ROCI_SRQ_MAX_WR), 0);
	assert_int_equal(rocid.changed.handle, HANDLE);
	assert_int_equal(rocid.changed.max_wr, 7);
	for (uint64_t i = 3; i < 8; i++)
		assert_int_equal(post(srq, i), 0);
	assert_int_equal(post(srq, 8), ENOMEM);
	assert_int_equal(queue(0)->producer, 8); /* the head stays */
	assert_int_equal(queue(1)->producer, 0);
	assert_int_equal(entry(1, 3)->wr_id, 3);
	assert_int_equal(entry(1, 7)->wr_id, 7);
	assert_int_equal(roci_destroy_srq(srq), 0);
}

static void modify_srq__refused(void **state)
{
	struct roci_srq_attr attr = {.size = sizeof(attr), .max_wr = 7, .srq_limit = 2};
	struct roci_srq *srq = make();

	rocid.status = -EINVAL;
	assert_int_equal(roci_modify_srq(srq, &attr, ROCI_SRQ_MAX_WR), EINVAL);
	rocid.status = 0;
	for (uint64_t i = 0; i < 4; i++) /* it keeps the ring that it has */
		assert_int_equal(post(srq, i), 0);
	assert_int_equal(roci_modify_srq(srq, &attr, ROCI_SRQ_LIMIT), 0);
	assert_int_equal(rocid.changed.mask, ABI_SRQ_LIMIT);
	assert_int_equal(rocid.changed.limit, 2);
	/* A ring that cannot be used: rocid has left the old one. */
	atomic_store(&queue(1)->consumer, 4);
	rocid.reply.stride = 1;
	assert_int_equal(roci_modify_srq(srq, &attr, ROCI_SRQ_MAX_WR), EPROTO);
	assert_int_equal(post(srq, 4), ENOMEM);
	assert_non_null(strstr(roci_last_error(), "cannot map"));
	assert_int_equal(roci_destroy_srq(srq), 0);
}

static void query_srq__tells(void **state)
{
	struct roci_srq_attr attr = {.size = sizeof(attr)};
	struct roci_srq *srq = make();

	rocid.attr = (struct abi_srq_attr){.max_wr = 4, .max_sge = 9, .limit = 3};
	assert_int_equal(roci_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, 4);
	assert_int_equal(attr.max_sge, 4); /* what it was made for */
	assert_int_equal(attr.srq_limit, 3);
	assert_int_equal(roci_destroy_srq(srq), 0);
}

/* proves SRQ-01, SRQ-09 */
static void destroy_srq__busy(void **state)
{
	struct roci_qp_init_attr init = {.size = sizeof(init),
		.qp_type = ROCI_QPT_RC,
		.send_cq = r.cq,
		.recv_cq = r.cq,
		.cap = {4, 0, 1, 0, 0}};
	struct roci_recv_wr wr = {.num_sge = 0};
	struct roci_qp *qp;

	init.srq = make();
	assert_non_null(qp = roci_create_qp(r.pd, &init));
	assert_int_equal(r.h->qp[1].asked.srq, HANDLE);
	assert_int_equal(rig_modify(qp, ROCI_QPS_INIT), 0);
	assert_int_equal(roci_post_recv(qp, &wr, NULL), EINVAL);
	assert_int_equal(roci_destroy_srq(init.srq), EBUSY);
	assert_int_equal(r.h->calls[ABI_DESTROY_SRQ], 0);
	assert_int_equal(roci_destroy_qp(qp), 0);
	rocid.status = -EBUSY; /* as rocid says */
	assert_int_equal(roci_destroy_srq(init.srq), EBUSY);
	rocid.status = 0;
	assert_int_equal(roci_destroy_srq(init.srq), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(create_srq__asks_and_tells),
		T(create_srq__a_ring_that_makes_no_sense),
		T(create_srq__parts_of_another_context),
		T(post_srq_recv__fills_the_ring),
		T(post_srq_recv__refusals),
		T(modify_srq__resize),
		T(modify_srq__refused),
		T(query_srq__tells),
		T(destroy_srq__busy),
	};

	return cmocka_run_group_tests_name("srq", tests, NULL, NULL);
}
