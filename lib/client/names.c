/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_names.h"
#include "roci.h"

_Static_assert(
	(int)ROCI_QPS_RESET == ABI_QPS_RESET && (int)ROCI_QPS_ERR == ABI_QPS_ERR, "QP states");

#define NAME(table, i) \
	((unsigned)(i) < sizeof(table) / sizeof((table)[0]) && (table)[i] ? (table)[i] : "unknown")

const char *roci_wc_status_str(enum roci_wc_status status)
{
	static const char *const names[] = {
		[ROCI_WC_SUCCESS] = "success",
		[ROCI_WC_LOC_LEN_ERR] = "local length error",
		[ROCI_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[ROCI_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[ROCI_WC_LOC_PROT_ERR] = "local protection error",
		[ROCI_WC_WR_FLUSH_ERR] = "work request flushed",
		[ROCI_WC_MW_BIND_ERR] = "memory window bind error",
		[ROCI_WC_BAD_RESP_ERR] = "bad response",
		[ROCI_WC_LOC_ACCESS_ERR] = "local access error",
		[ROCI_WC_REM_INV_REQ_ERR] = "remote invalid request",
		[ROCI_WC_REM_ACCESS_ERR] = "remote access error",
		[ROCI_WC_REM_OP_ERR] = "remote operation error",
		[ROCI_WC_RETRY_EXC_ERR] = "transport retries exceeded",
		[ROCI_WC_RNR_RETRY_EXC_ERR] = "receiver-not-ready retries exceeded",
		[ROCI_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
		[ROCI_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
		[ROCI_WC_REM_ABORT_ERR] = "aborted",
		[ROCI_WC_INV_EECN_ERR] = "invalid EE context number",
		[ROCI_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[ROCI_WC_FATAL_ERR] = "fatal error",
		[ROCI_WC_RESP_TIMEOUT_ERR] = "response timed out",
		[ROCI_WC_GENERAL_ERR] = "general error",
	};

	return NAME(names, status);
}

const char *roci_event_type_str(enum roci_event_type type)
{
	static const char *const names[] = {
		[ROCI_EVENT_CQ_ERR] = "CQ overflowed",
		[ROCI_EVENT_QP_FATAL] = "QP failed",
		[ROCI_EVENT_QP_REQ_ERR] = "invalid request on the QP",
		[ROCI_EVENT_QP_ACCESS_ERR] = "request that the QP does not permit",
		[ROCI_EVENT_COMM_EST] = "QP received a first packet from its peer",
		[ROCI_EVENT_SQ_DRAINED] = "send queue drained",
		[ROCI_EVENT_DEVICE_FATAL] = "rocid is gone",
		[ROCI_EVENT_PORT_ACTIVE] = "port is active",
		[ROCI_EVENT_PORT_ERR] = "port is down",
		[ROCI_EVENT_PKEY_CHANGE] = "P_Key table changed",
		[ROCI_EVENT_SRQ_ERR] = "shared receive queue failed",
		[ROCI_EVENT_SRQ_LIMIT_REACHED] = "limit of the shared receive queue reached",
		[ROCI_EVENT_QP_LAST_WQE_REACHED] = "last WQE of the shared receive queue reached",
		[ROCI_EVENT_GID_CHANGE] = "GID table changed",
	};

	return NAME(names, type);
}

const char *roci_qp_state_str(enum roci_qp_state state)
{
	return qp_state_name(state);
}

const char *roci_port_state_str(enum roci_port_state state)
{
	static const char *const names[] = {
		[ROCI_PORT_NOP] = "NOP",
		[ROCI_PORT_DOWN] = "DOWN",
		[ROCI_PORT_INIT] = "INIT",
		[ROCI_PORT_ARMED] = "ARMED",
		[ROCI_PORT_ACTIVE] = "ACTIVE",
		[ROCI_PORT_ACTIVE_DEFER] = "ACTIVE_DEFER",
	};

	return NAME(names, state);
}
