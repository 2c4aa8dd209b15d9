/* SPDX-License-Identifier: BSD-3-Clause */
/** @file admin/traces.h  Traces of queue pairs for administrators (trace.h). Control thread. */
#ifndef ADMIN_TRACES_H
#define ADMIN_TRACES_H

#include "abi_ctl.h"
#include "admin/arg.h"
#include "text/document.h"

/** trace qp QPN LINE: sends one line per event to the socket that was passed with the command. */
int admin_trace(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** trace qp QPN off */
int admin_trace_off(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** show traces */
extern const struct document_section show_traces;

/** Sends new events.  @return milliseconds until the next call is due, -1: never. */
int admin_traces_poll(struct ctl *ctl);

/** Ends all traces; sessions, and so QPs, are gone. */
void admin_traces_close(struct ctl *ctl);

#endif
