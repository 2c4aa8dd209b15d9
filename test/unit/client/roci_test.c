/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * roci.h against <infiniband/verbs.h>: the values are the same, and what a drop-in libibverbs
 * hands through on the data path is laid out alike. All of it is checked by the compiler.
 */
#include <infiniband/verbs.h>
#include <stddef.h>
#include "roci.h"

#define SAME(name) _Static_assert((int)ROCI_##name == (int)IBV_##name, #name)
#define SAME_AT(s, i, f) \
	_Static_assert(offsetof(struct roci_##s, f) == offsetof(struct ibv_##s, i), #s "." #f)
#define SAME_SIZE(s) _Static_assert(sizeof(struct roci_##s) == sizeof(struct ibv_##s), #s)

SAME(MTU_256);
SAME(MTU_4096);
SAME(PORT_DOWN);
SAME(PORT_ACTIVE);
SAME(ATOMIC_NONE);
SAME(ATOMIC_GLOB);
SAME(GID_TYPE_IB);
SAME(GID_TYPE_ROCE_V1);
SAME(GID_TYPE_ROCE_V2);
SAME(ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_ZERO_BASED);
SAME(QPT_RC);
SAME(QPT_UC);
SAME(QPS_RESET);
SAME(QPS_INIT);
SAME(QPS_RTR);
SAME(QPS_RTS);
SAME(QPS_SQD);
SAME(QPS_SQE);
SAME(QPS_ERR);
SAME(QP_STATE);
SAME(QP_CUR_STATE);
SAME(QP_EN_SQD_ASYNC_NOTIFY);
SAME(QP_ACCESS_FLAGS);
SAME(QP_PKEY_INDEX);
SAME(QP_PORT);
SAME(QP_QKEY);
SAME(QP_AV);
SAME(QP_PATH_MTU);
SAME(QP_TIMEOUT);
SAME(QP_RETRY_CNT);
SAME(QP_RNR_RETRY);
SAME(QP_RQ_PSN);
SAME(QP_MAX_QP_RD_ATOMIC);
SAME(QP_MIN_RNR_TIMER);
SAME(QP_SQ_PSN);
SAME(QP_MAX_DEST_RD_ATOMIC);
SAME(QP_CAP);
SAME(QP_DEST_QPN);
SAME(WR_RDMA_WRITE);
SAME(WR_RDMA_WRITE_WITH_IMM);
SAME(WR_SEND);
SAME(WR_SEND_WITH_IMM);
SAME(WR_RDMA_READ);
SAME(WR_ATOMIC_CMP_AND_SWP);
SAME(WR_ATOMIC_FETCH_AND_ADD);
SAME(SEND_FENCE);
SAME(SEND_SIGNALED);
SAME(SEND_SOLICITED);
SAME(SEND_INLINE);
SAME(WC_SUCCESS);
SAME(WC_LOC_LEN_ERR);
SAME(WC_LOC_PROT_ERR);
SAME(WC_WR_FLUSH_ERR);
SAME(WC_REM_INV_REQ_ERR);
SAME(WC_REM_ACCESS_ERR);
SAME(WC_REM_OP_ERR);
SAME(WC_RETRY_EXC_ERR);
SAME(WC_RNR_RETRY_EXC_ERR);
SAME(WC_FATAL_ERR);
SAME(WC_RESP_TIMEOUT_ERR);
SAME(WC_GENERAL_ERR);
SAME(WC_SEND);
SAME(WC_RDMA_WRITE);
SAME(WC_RDMA_READ);
SAME(WC_COMP_SWAP);
SAME(WC_FETCH_ADD);
SAME(WC_RECV);
SAME(WC_RECV_RDMA_WITH_IMM);
SAME(WC_GRH);
SAME(WC_WITH_IMM);
SAME(WC_WITH_INV);
SAME(EVENT_CQ_ERR);
SAME(EVENT_QP_FATAL);
SAME(EVENT_QP_REQ_ERR);
SAME(EVENT_QP_ACCESS_ERR);
SAME(EVENT_COMM_EST);
SAME(EVENT_SQ_DRAINED);
SAME(EVENT_DEVICE_FATAL);
SAME(EVENT_PORT_ACTIVE);
SAME(EVENT_PORT_ERR);
SAME(EVENT_QP_LAST_WQE_REACHED);
SAME(EVENT_PKEY_CHANGE);
SAME(EVENT_GID_CHANGE);

SAME_SIZE(sge);
SAME_AT(sge, length, length);
SAME_AT(sge, lkey, lkey);
SAME_SIZE(recv_wr);
SAME_AT(recv_wr, next, next);
SAME_AT(recv_wr, sg_list, sg_list);
SAME_AT(recv_wr, num_sge, num_sge);
SAME_AT(send_wr, next, next);
SAME_AT(send_wr, sg_list, sg_list);
SAME_AT(send_wr, num_sge, num_sge);
SAME_AT(send_wr, opcode, opcode);
SAME_AT(send_wr, send_flags, send_flags);
SAME_AT(send_wr, imm_data, imm_data);
SAME_AT(send_wr, wr.rdma.remote_addr, wr.rdma.remote_addr);
SAME_AT(send_wr, wr.rdma.rkey, wr.rdma.rkey);
SAME_SIZE(wc);
SAME_AT(wc, status, status);
SAME_AT(wc, opcode, opcode);
SAME_AT(wc, vendor_err, vendor_err);
SAME_AT(wc, byte_len, byte_len);
SAME_AT(wc, imm_data, imm_data);
SAME_AT(wc, qp_num, qp_num);
SAME_AT(wc, src_qp, src_qp);
SAME_AT(wc, wc_flags, wc_flags);
SAME_AT(wc, pkey_index, pkey_index);
SAME_AT(wc, slid, slid);
SAME_AT(wc, sl, sl);

int main(void)
{
	return 0;
}
