/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "golden.h"

struct name {
	unsigned value;
	const char *name;
};

static const char *name_of(const struct name *names, unsigned n, unsigned value)
{
	for (unsigned i = 0; i < n; i++)
		if (names[i].value == value)
			return names[i].name;
	return "?";
}

const char *wc_opcode_name(unsigned op)
{
	static const struct name names[] = {{ABI_WC_SEND, "SEND"},
		{ABI_WC_RDMA_WRITE, "RDMA_WRITE"}, {ABI_WC_RDMA_READ, "RDMA_READ"},
		{ABI_WC_COMP_SWAP, "COMP_SWAP"}, {ABI_WC_FETCH_ADD, "FETCH_ADD"},
		{ABI_WC_BIND_MW, "BIND_MW"}, {ABI_WC_LOCAL_INV, "LOCAL_INV"},
		{ABI_WC_FLUSH, "FLUSH"}, {ABI_WC_ATOMIC_WRITE, "ATOMIC_WRITE"},
		{ABI_WC_RECV, "RECV"}, {ABI_WC_RECV_RDMA_WITH_IMM, "RECV_RDMA_WITH_IMM"}};

	return name_of(names, ARRAY_SIZE(names), op);
}

const char *wc_status_name(unsigned status)
{
	static const struct name names[] = {{ABI_WC_SUCCESS, "SUCCESS"},
		{ABI_WC_LOC_LEN_ERR, "LOC_LEN_ERR"}, {ABI_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR"},
		{ABI_WC_LOC_PROT_ERR, "LOC_PROT_ERR"}, {ABI_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR"},
		{ABI_WC_MW_BIND_ERR, "MW_BIND_ERR"}, {ABI_WC_BAD_RESP_ERR, "BAD_RESP_ERR"},
		{ABI_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR"},
		{ABI_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR"},
		{ABI_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR"}, {ABI_WC_REM_OP_ERR, "REM_OP_ERR"},
		{ABI_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR"},
		{ABI_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR"},
		{ABI_WC_REM_ABORT_ERR, "REM_ABORT_ERR"}, {ABI_WC_FATAL_ERR, "FATAL_ERR"},
		{ABI_WC_GENERAL_ERR, "GENERAL_ERR"}};

	return name_of(names, ARRAY_SIZE(names), status);
}

/* verbs' names may come with their prefix. */
static bool same_name(const json_t *want, const char *prefix, const char *got)
{
	const char *s = json_string_value(want);

	if (s && !strncmp(s, prefix, strlen(prefix)))
		s += strlen(prefix);
	return s && !strcmp(s, got);
}

void check_cqe(struct golden *g, const struct abi_cqe *c, const json_t *want)
{
	const char *key;
	json_t *v;

	if (!json_is_object(want))
		item_fail(g, "a member of cqes is no object");
	json_object_foreach((json_t *)want, key, v)
	{
		bool ok;

		if (!strcmp(key, "opcode"))
			ok = same_name(v, "IBV_WC_", wc_opcode_name(c->opcode));
		else if (!strcmp(key, "status"))
			ok = same_name(v, "IBV_WC_", wc_status_name(c->status));
		else if (!strcmp(key, "byte_len"))
			ok = number(g, key, v) == c->byte_len;
		else if (!strcmp(key, "wr_id") || !strcmp(key, "recv_index"))
			ok = number(g, key, v) == c->wr_id;
		else if (!strcmp(key, "imm"))
			ok = (c->flags & ABI_WC_WITH_IMM) &&
			     number(g, key, v) == __builtin_bswap32(c->imm);
		else if (!strcmp(key, "invalidated_rkey"))
			ok = (c->flags & ABI_WC_WITH_INV) && number(g, key, v) == c->imm;
		else if (!strcmp(key, "solicited"))
			ok = number(g, key, v) == !!(c->flags & ABI_WC_SOLICITED);
		else if (!strcmp(key, "qp_num"))
			ok = number(g, key, v) == c->qpn;
		else if (!strcmp(key, "src_qp"))
			ok = number(g, key, v) == c->src_qp;
		else if (!strcmp(key, "srqn"))
			ok = number(g, key, v) == c->srqn;
		else {
			item_fail(g, "field cqe.%.40s is not handled", key);
			continue;
		}
		if (!ok)
			item_fail(g, "completion of wr_id %llu (%s %s %u): %s differs",
				(unsigned long long)c->wr_id, wc_opcode_name(c->opcode),
				wc_status_name(c->status), c->byte_len, key);
	}
}
