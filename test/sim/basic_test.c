/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport end to end: each operation without and with loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "pair.h"
#include "random.h"

#define MEM (4u << 20)

static void fill(struct pair *p)
{
	struct random r = {.state = 99};

	random_fill(&r, p->end[A].mr->mem, MEM);
	random_fill(&r, p->end[B].mr->mem, MEM);
}

static void move(const struct pair_spec *spec, uint8_t opcode, uint32_t len, unsigned times)
{
	static struct pair p;
	unsigned recvs = 0;

	pair_init(&p, spec);
	pair_memory(&p, MEM);
	fill(&p);
	for (unsigned i = 0; i < times; i++) {
		bool read = opcode == ABI_WR_RDMA_READ;
		struct app_send s = {.opcode = opcode,
			.flags = ABI_WQE_SIGNALED,
			.wr_id = 1000 + i,
			.imm = 0x11223344,
			.remote_addr = app_va(p.end[B].mr, 2u << 20),
			.rkey = p.end[B].mr->mr.key,
			.num_sge = 1,
			.sge = {app_sge(p.end[A].mr, 16 * i, len)}};
		struct abi_sge dst = app_sge(p.end[B].mr, 2u << 20, 1u << 20);
		struct abi_cqe *cqe;

		if (opcode != ABI_WR_RDMA_READ && opcode != ABI_WR_RDMA_WRITE) {
			app_post_recv(p.end[B].qp, 500 + i, &dst, 1);
			recvs++;
		}
		app_post_send(p.end[A].qp, &s);
		pair_until_cqes(&p, A, i + 1, 60 * SEC);
		cqe = &p.end[A].cqe[i];
		assert_int_equal(cqe->status, ABI_WC_SUCCESS);
		assert_int_equal(cqe->wr_id, 1000 + i);
		assert_int_equal(p.end[B].cqes, recvs);
		assert_memory_equal(
			read ? p.end[A].mr->mem + 16 * i : p.end[B].mr->mem + (2u << 20),
			read ? p.end[B].mr->mem + (2u << 20) : p.end[A].mr->mem + 16 * i, len);
		if (recvs) {
			cqe = &p.end[B].cqe[i];
			assert_int_equal(cqe->status, ABI_WC_SUCCESS);
			assert_int_equal(cqe->byte_len, len);
		}
	}
	pair_fini(&p);
}

static const uint8_t ops[] = {ABI_WR_SEND, ABI_WR_SEND_WITH_IMM, ABI_WR_RDMA_WRITE,
	ABI_WR_RDMA_WRITE_WITH_IMM, ABI_WR_RDMA_READ};

static void pair__moves_each_operation(void **state)
{
	static const uint32_t sizes[] = {0, 1, 1023, 1024, 1025, 65536, 1u << 20};
	struct pair_spec s = pair_defaults();

	for (unsigned o = 0; o < ARRAY_SIZE(ops); o++)
		for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++)
			move(&s, ops[o], sizes[i], 2);
}

static void pair__moves_each_operation_with_loss(void **state)
{
	struct pair_spec s = pair_defaults();

	for (int e = A; e < ENDS; e++)
		s.link[e].impair.loss = 20000;
	for (unsigned o = 0; o < ARRAY_SIZE(ops); o++)
		move(&s, ops[o], 300000, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pair__moves_each_operation),
		cmocka_unit_test(pair__moves_each_operation_with_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
