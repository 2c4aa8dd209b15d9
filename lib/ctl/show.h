/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file show.h
 * What administrators can look at: sections of documents (document.h). The members of an
 * element are the columns that rocictl prints, in this order. Control thread.
 *
 * What a worker writes is read as it is at that moment, without asking the worker: each number
 * for itself is right, several together may be of different moments.
 */
#ifndef SHOW_H
#define SHOW_H

#include "document.h"

extern const struct document_section show_version;
extern const struct document_section show_totals;
extern const struct document_section show_limits;
extern const struct document_section show_sessions;
extern const struct document_section show_pds;
extern const struct document_section show_mrs;
extern const struct document_section show_cqs;
extern const struct document_section show_qps;
extern const struct document_section show_ports;
extern const struct document_section show_gids;
extern const struct document_section show_workers;
extern const struct document_section show_counters;
extern const struct document_section show_drops;

#endif
