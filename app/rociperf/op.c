/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "op.h"

const struct op op_table[] = {
	{
		.name = "write",
		.title = "WRITE",
		.opcode = ROCI_WR_RDMA_WRITE,
		.wants = OP_WANTS_CONNECTION,
		.inlines = true,
	},
	{
		.name = "write_imm",
		.title = "WRITE with immediate",
		.opcode = ROCI_WR_RDMA_WRITE_WITH_IMM,
		.wants = OP_WANTS_CONNECTION,
		.receives = true,
		.inlines = true,
	},
	{
		.name = "send",
		.title = "SEND",
		.opcode = ROCI_WR_SEND,
		.receives = true,
		.scatters = true,
		.inlines = true,
	},
	{
		.name = "read",
		.title = "READ",
		.opcode = ROCI_WR_RDMA_READ,
		.wants = OP_WANTS_ANSWERS,
		.fetches = true,
	},
	{
		.name = "fetch_add",
		.title = "FetchAdd",
		.opcode = ROCI_WR_ATOMIC_FETCH_AND_ADD,
		.wants = OP_WANTS_ANSWERS,
		.fetches = true,
		.atomic = true,
		.length = 8,
	},
	{
		.name = "cmp_swap",
		.title = "CmpSwap",
		.opcode = ROCI_WR_ATOMIC_CMP_AND_SWP,
		.wants = OP_WANTS_ANSWERS,
		.fetches = true,
		.atomic = true,
		.length = 8,
	},
	{
		.name = "atomic_write",
		.title = "ATOMIC WRITE",
		.opcode = ROCI_WR_ATOMIC_WRITE,
		.wants = OP_WANTS_ANSWERS,
		.inlines = true,
		.length = 8,
	},
	{
		.name = "write_flush",
		.title = "WRITE and FLUSH",
		.opcode = ROCI_WR_RDMA_WRITE,
		.wants = OP_WANTS_ANSWERS,
		.flushes = true,
		.inlines = true,
	},
};
const unsigned op_count = sizeof(op_table) / sizeof(op_table[0]);

const struct op *op_find(const char *name)
{
	for (unsigned i = 0; i < op_count; i++)
		if (!strcmp(op_table[i].name, name))
			return &op_table[i];
	return NULL;
}
