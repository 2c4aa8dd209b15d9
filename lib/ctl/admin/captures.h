/* SPDX-License-Identifier: BSD-3-Clause */
/** @file admin/captures.h  Captures of frames for administrators (capture.h). Control thread. */
#ifndef ADMIN_CAPTURES_H
#define ADMIN_CAPTURES_H

#include "abi_ctl.h"
#include "admin/arg.h"
#include "text/document.h"

/** capture LINE: sends frames to the socket that was passed with the command. */
int admin_capture(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

/** show captures */
extern const struct document_section show_captures;

/** Stops all captures. */
void admin_captures_close(struct ctl *ctl);

#endif
