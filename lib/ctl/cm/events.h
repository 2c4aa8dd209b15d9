/* SPDX-License-Identifier: BSD-3-Clause */
/** @file cm/events.h  Events of lib/cm. Control thread. */
#ifndef CM_EVENTS_H
#define CM_EVENTS_H

#include "cm.h"

/** For struct cm_ops; @p arg is the struct connections. */
enum cm_rej connections_event(void *arg, const struct cm_event *e);

#endif
