/* SPDX-License-Identifier: BSD-3-Clause */
/** @file admin_capture.h  Captures of frames for administrators (capture.h). Control thread. */
#ifndef ADMIN_CAPTURE_H
#define ADMIN_CAPTURE_H

#include "abi_ctl.h"
#include "admin_arg.h"
#include "document.h"

/** capture LINE: sends frames to the socket that came with the command. */
int admin_capture(struct ctl *ctl, const struct admin_arg arg[], char why[ABI_SENTENCE_MAX]);

/** show captures */
extern const struct document_section show_captures;

/** Stops all captures. */
void admin_captures_close(struct ctl *ctl);

#endif
