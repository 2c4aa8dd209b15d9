/* SPDX-License-Identifier: BSD-3-Clause */
/** @file cm/events.h  Events of lib/cm. Control thread. */
#ifndef CM_EVENTS_H
#define CM_EVENTS_H

#include <stdint.h>

struct cm_event;
struct cm_id;
struct connections;

/** For struct cm_ops; @p arg is the struct connections. */
void connections_event(void *arg, const struct cm_event *e);

/** @return the id with connection @p conn of lib/cm, which no program has accepted; or NULL. */
struct cm_id *connections_id_of(struct connections *all, uint32_t conn);

#endif
