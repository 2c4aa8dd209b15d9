/* SPDX-License-Identifier: BSD-3-Clause */
#include "transition.h"
#include "abi_ctl.h"
#include "core_command.h"

#define STATES (ABI_QPS_ERR + 1)
#define TYPES  (ABI_QPT_XRC_RECV + 1)

/* Attributes that connected types take during set-up, and while they run. */
#define CONNECTED (ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS)
#define PEER	  (ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN)
#define RESPONDER (ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER)
#define REQUESTER (ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_MAX_QP_RD_ATOMIC)
#define AT_RTR	  (ABI_QP_ALT_PATH | ABI_QP_ACCESS_FLAGS | ABI_QP_PKEY_INDEX)
#define RUNNING	  (ABI_QP_CUR_STATE | ABI_QP_ALT_PATH | ABI_QP_ACCESS_FLAGS | ABI_QP_PATH_MIG_STATE)
#define DRAINED                                                                  \
	(ABI_QP_AV | ABI_QP_ALT_PATH | ABI_QP_ACCESS_FLAGS | ABI_QP_PKEY_INDEX | \
		ABI_QP_PATH_MIG_STATE)
/* The same for datagram types. */
#define DATAGRAM   (ABI_QP_PKEY_INDEX | ABI_QP_QKEY)
#define UD_RUNNING (ABI_QP_CUR_STATE | ABI_QP_QKEY)
#define RUNNING_ALL                                                                               \
	{                                                                                         \
		[ABI_QPT_RC] = RUNNING | ABI_QP_MIN_RNR_TIMER, [ABI_QPT_UC] = RUNNING,            \
		[ABI_QPT_UD] = UD_RUNNING, [ABI_QPT_GSI] = UD_RUNNING,                            \
		[ABI_QPT_XRC_SEND] = RUNNING, [ABI_QPT_XRC_RECV] = RUNNING | ABI_QP_MIN_RNR_TIMER \
	}

/* Indexed by QP type. STATE itself is always allowed. */
struct transition {
	bool valid;
	uint32_t required[TYPES];
	uint32_t optional[TYPES];
};

/* QPS-01: [from][to]. RC and XRC never enter SQE. */
static const struct transition table[STATES][STATES] = {
	[ABI_QPS_RESET][ABI_QPS_RESET] = {.valid = true},
	[ABI_QPS_RESET][ABI_QPS_INIT] = {.valid = true, /* QPS-02 */
		.required = {[ABI_QPT_RC] = CONNECTED,
			[ABI_QPT_UC] = CONNECTED,
			[ABI_QPT_UD] = DATAGRAM | ABI_QP_PORT,
			[ABI_QPT_GSI] = DATAGRAM,
			[ABI_QPT_XRC_SEND] = CONNECTED,
			[ABI_QPT_XRC_RECV] = CONNECTED}},
	[ABI_QPS_INIT][ABI_QPS_RESET] = {.valid = true},
	[ABI_QPS_INIT][ABI_QPS_ERR] = {.valid = true},
	[ABI_QPS_INIT][ABI_QPS_INIT] = {.valid = true, /* QPS-03 */
		.optional = {[ABI_QPT_RC] = CONNECTED,
			[ABI_QPT_UC] = CONNECTED,
			[ABI_QPT_UD] = DATAGRAM | ABI_QP_PORT,
			[ABI_QPT_GSI] = DATAGRAM,
			[ABI_QPT_XRC_SEND] = CONNECTED,
			[ABI_QPT_XRC_RECV] = CONNECTED}},
	[ABI_QPS_INIT][ABI_QPS_RTR] = {.valid = true, /* QPS-04, QPS-05, XRC-07 */
		.required = {[ABI_QPT_RC] = PEER | RESPONDER,
			[ABI_QPT_UC] = PEER,
			[ABI_QPT_XRC_SEND] = PEER,
			[ABI_QPT_XRC_RECV] = PEER | RESPONDER},
		.optional = {[ABI_QPT_RC] = AT_RTR,
			[ABI_QPT_UC] = AT_RTR,
			[ABI_QPT_UD] = DATAGRAM,
			[ABI_QPT_GSI] = DATAGRAM,
			[ABI_QPT_XRC_SEND] = AT_RTR,
			[ABI_QPT_XRC_RECV] = AT_RTR}},
	[ABI_QPS_RTR][ABI_QPS_RESET] = {.valid = true},
	[ABI_QPS_RTR][ABI_QPS_ERR] = {.valid = true},
	[ABI_QPS_RTR][ABI_QPS_RTS] = {.valid = true, /* QPS-06, QPS-07, XRC-07 */
		.required = {[ABI_QPT_RC] = REQUESTER | ABI_QP_SQ_PSN,
			[ABI_QPT_UC] = ABI_QP_SQ_PSN,
			[ABI_QPT_UD] = ABI_QP_SQ_PSN,
			[ABI_QPT_GSI] = ABI_QP_SQ_PSN,
			[ABI_QPT_XRC_SEND] = REQUESTER | ABI_QP_SQ_PSN,
			[ABI_QPT_XRC_RECV] = ABI_QP_TIMEOUT | ABI_QP_SQ_PSN},
		.optional = RUNNING_ALL},
	[ABI_QPS_RTS][ABI_QPS_RESET] = {.valid = true},
	[ABI_QPS_RTS][ABI_QPS_ERR] = {.valid = true},
	[ABI_QPS_RTS][ABI_QPS_RTS] = {.valid = true, .optional = RUNNING_ALL}, /* QPS-08 */
	[ABI_QPS_RTS][ABI_QPS_SQD] = {.valid = true,			       /* QPS-09 */
		.optional = {[ABI_QPT_RC] = ABI_QP_EN_SQD_ASYNC_NOTIFY,
			[ABI_QPT_UC] = ABI_QP_EN_SQD_ASYNC_NOTIFY,
			[ABI_QPT_UD] = ABI_QP_EN_SQD_ASYNC_NOTIFY,
			[ABI_QPT_GSI] = ABI_QP_EN_SQD_ASYNC_NOTIFY,
			[ABI_QPT_XRC_SEND] = ABI_QP_EN_SQD_ASYNC_NOTIFY,
			[ABI_QPT_XRC_RECV] = ABI_QP_EN_SQD_ASYNC_NOTIFY}},
	[ABI_QPS_SQD][ABI_QPS_RESET] = {.valid = true},
	[ABI_QPS_SQD][ABI_QPS_ERR] = {.valid = true},
	[ABI_QPS_SQD][ABI_QPS_RTS] = {.valid = true, .optional = RUNNING_ALL}, /* QPS-11 */
	[ABI_QPS_SQD][ABI_QPS_SQD] = {.valid = true,			       /* QPS-10 */
		.optional = {[ABI_QPT_RC] = DRAINED | ABI_QP_PORT | REQUESTER | RESPONDER,
			[ABI_QPT_UC] = DRAINED,
			[ABI_QPT_UD] = DATAGRAM,
			[ABI_QPT_GSI] = DATAGRAM,
			[ABI_QPT_XRC_SEND] = DRAINED | ABI_QP_PORT | REQUESTER,
			[ABI_QPT_XRC_RECV] = DRAINED | ABI_QP_PORT | ABI_QP_TIMEOUT | RESPONDER}},
	[ABI_QPS_SQE][ABI_QPS_RESET] = {.valid = true},
	[ABI_QPS_SQE][ABI_QPS_ERR] = {.valid = true},
	[ABI_QPS_SQE][ABI_QPS_RTS] = {.valid = true, /* QPS-11 */
		.optional = {[ABI_QPT_UC] = ABI_QP_CUR_STATE | ABI_QP_ACCESS_FLAGS,
			[ABI_QPT_UD] = UD_RUNNING,
			[ABI_QPT_GSI] = UD_RUNNING}},
	[ABI_QPS_ERR][ABI_QPS_RESET] = {.valid = true},
	[ABI_QPS_ERR][ABI_QPS_ERR] = {.valid = true},
};

struct modify_result transition_check(uint8_t type, uint8_t from, unsigned to, uint32_t mask)
{
	struct modify_result v = {.refusal = MODIFY_NO_TRANSITION, .state = from};
	const struct transition *t;

	if (type >= TYPES || from >= STATES || to >= STATES || !table[from][to].valid)
		return v;
	t = &table[from][to];
	v.refusal = MODIFY_MISSING;
	v.attrs = t->required[type] & ~mask;
	if (v.attrs)
		return v;
	v.refusal = MODIFY_FORBIDDEN;
	v.attrs = mask & ~(t->required[type] | t->optional[type] | ABI_QP_STATE);
	if (v.attrs)
		return v;
	v.refusal = MODIFY_OK;
	return v;
}

bool transition_takes_port(uint8_t type, uint8_t from, unsigned to)
{
	const struct transition *t = &table[from][to];

	return (t->required[type] | t->optional[type]) & ABI_QP_PORT;
}
