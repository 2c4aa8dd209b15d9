/* SPDX-License-Identifier: BSD-3-Clause */
/** @file ud_impl.h  Shared by the files of datagrams. */
#ifndef UD_IMPL_H
#define UD_IMPL_H

#include <stddef.h>
#include <stdint.h>
#include "qp.h"
#include "ud.h"

/** @return the Q_Key that packets for @p qp must have, and that it sends as its own. */
static inline uint32_t ud_qkey(const struct qp *qp)
{
	return qp->type == ABI_QPT_GSI ? QKEY_GSI : qp->attr.qkey;
}

/** Bytes after a private WQE for the path of its datagram. */
#define UD_WQE_PATH ((sizeof(struct path) + 15) & ~(size_t)15)

#endif
