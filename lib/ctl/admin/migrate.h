/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/migrate.h
 * The administrator moves a QP. Control thread.
 */
#ifndef ADMIN_MIGRATE_H
#define ADMIN_MIGRATE_H

#include "admin/arg.h"

/** `migrate qp QPN to WORKER`, an admin_run: what `--migrate on` thinks of it later is its own
 *  affair. */
int admin_migrate(struct ctl *ctl, const struct argument arg[], char why[ABI_SENTENCE_MAX]);

#endif
