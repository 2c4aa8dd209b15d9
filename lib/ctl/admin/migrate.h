/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/migrate.h
 * The administrator moves a QP. Control thread.
 */
#ifndef ADMIN_MIGRATE_H
#define ADMIN_MIGRATE_H

#include "admin/arg.h"

/** `migrate qp QPN to WORKER`, an admin_run. With `--migrate on` the QP may move again later. */
int admin_migrate(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

#endif
