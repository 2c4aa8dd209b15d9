/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by gsi.c and gsi_send.c. */
#ifndef CM_GSI_IMPL_H
#define CM_GSI_IMPL_H

#include <stdint.h>

struct gsi;

/** Handles the reply to the CREATE_AH for destination @p index. */
void gsi_resolved(struct gsi *g, uint32_t index, int32_t status, uint32_t handle);

#endif
