/* SPDX-License-Identifier: BSD-3-Clause */
/** @file abi_names.h  Names of values that both rocid and libroci print. */
#ifndef ABI_NAMES_H
#define ABI_NAMES_H

#include "abi_ctl.h"

/** @return the name of an enum abi_qp_state, as the specification has it; never NULL. */
static inline const char *qp_state_name(unsigned state)
{
	static const char *const names[] = {
		[ABI_QPS_RESET] = "RESET",
		[ABI_QPS_INIT] = "INIT",
		[ABI_QPS_RTR] = "RTR",
		[ABI_QPS_RTS] = "RTS",
		[ABI_QPS_SQD] = "SQD",
		[ABI_QPS_SQE] = "SQE",
		[ABI_QPS_ERR] = "ERR",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

#endif
