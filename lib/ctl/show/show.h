/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file show/show.h
 * The sections of the documents that administrators see (text/document.h). The members of an
 * element are the columns that rocictl prints, in this order. Control thread.
 *
 * Fields that a worker writes are read without asking the worker: each value is correct, but
 * several may belong to different moments.
 */
#ifndef SHOW_SHOW_H
#define SHOW_SHOW_H

#include "text/document.h"

struct ctl;
struct mr_obj;
struct qp_obj;

extern const struct document_section show_version;
extern const struct document_section show_totals;
extern const struct document_section show_limits;
extern const struct document_section show_sessions;
extern const struct document_section show_pds;
extern const struct document_section show_mrs;
extern const struct document_section show_mws;
extern const struct document_section show_cqs;
extern const struct document_section show_srqs;
extern const struct document_section show_qps;
extern const struct document_section show_ports;
extern const struct document_section show_gids;
extern const struct document_section show_pkeys;
extern const struct document_section show_priorities;
extern const struct document_section show_congestion;
extern const struct document_section show_workers;
extern const struct document_section show_counters;
extern const struct document_section show_drops;
extern const struct document_section show_errors;
extern const struct document_section show_hw_counters;
extern const struct document_section show_port_counters;
extern const struct document_section show_metrics;
extern const struct document_section show_flows;
extern const struct document_section show_ipoib;
extern const struct document_section show_cm;
extern const struct document_section show_cm_messages;
extern const struct document_section show_cm_listeners;
extern const struct document_section show_cm_connections;

/* Of the session that is the first argument. */
extern const struct document_section show_session;
extern const struct document_section show_session_pds;
extern const struct document_section show_session_mrs;
extern const struct document_section show_session_cqs;
extern const struct document_section show_session_srqs;
extern const struct document_section show_session_qps;

/* Of the port that is the first argument. */
extern const struct document_section show_port;
extern const struct document_section show_port_gids;
extern const struct document_section show_port_pkeys;
extern const struct document_section show_port_priorities;
extern const struct document_section show_port_flows;
extern const struct document_section show_device;
extern const struct document_section show_link;

/* Of the QP that is the first argument. */
extern const struct document_section show_qp;
extern const struct document_section show_qp_why;
extern const struct document_section show_qp_path;
extern const struct document_section show_limited;
extern const struct document_section show_traffic;
extern const struct document_section show_qp_rate;
extern const struct document_section show_qp_requester;
extern const struct document_section show_qp_responder;

/* Of the memory region that is the first argument. */
extern const struct document_section show_mr;

/* Of the CQ that is the second argument, of the session that is the first. */
extern const struct document_section show_cq;
extern const struct document_section show_cq_lanes;

struct core_counters;

/** Sums the workers' counts since the administrator's last reset. */
void show_count(struct ctl *ctl, struct core_counters *sum);

/** The present value of a word that a worker or an application writes. */
#define LOOK(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/** The next memory region, or QP, of any session, in the order in which show_mrs and show_qps
 * list them.  @return NULL after the last. */
struct mr_obj *show_next_mr(struct ctl *ctl, struct document_cursor *at);
struct qp_obj *show_next_qp(struct ctl *ctl, struct document_cursor *at);

#endif
