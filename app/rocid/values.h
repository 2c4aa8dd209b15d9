/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file values.h
 * Text of an option -> struct options, one function per option. Each returns 0, or -EINVAL with
 * what is wrong in @p why.
 */
#ifndef VALUES_H
#define VALUES_H

#include "options.h"

int set_socket(struct options *o, const char *value, char why[VALUE_MAX]);
int set_socket_mode(struct options *o, const char *value, char why[VALUE_MAX]);
int set_socket_group(struct options *o, const char *value, char why[VALUE_MAX]);
int set_admin_mode(struct options *o, const char *value, char why[VALUE_MAX]);
int set_admin_group(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_sessions(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_qps(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_cqs(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_mrs(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_queues(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_memory(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_user_qps(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_user_cqs(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_user_mrs(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_user_queues(struct options *o, const char *value, char why[VALUE_MAX]);
int set_max_user_memory(struct options *o, const char *value, char why[VALUE_MAX]);
int set_application_faults(struct options *o, const char *value, char why[VALUE_MAX]);
int set_application_macs(struct options *o, const char *value, char why[VALUE_MAX]);
int set_device(struct options *o, const char *value, char why[VALUE_MAX]);
int set_userfaultfd(struct options *o, const char *value, char why[VALUE_MAX]);
int set_share(struct options *o, const char *value, char why[VALUE_MAX]);
int set_tap(struct options *o, const char *value, char why[VALUE_MAX]);
int set_gid(struct options *o, const char *value, char why[VALUE_MAX]);
int set_neigh(struct options *o, const char *value, char why[VALUE_MAX]);
int set_mtu(struct options *o, const char *value, char why[VALUE_MAX]);
int set_pkey(struct options *o, const char *value, char why[VALUE_MAX]);
int set_priority(struct options *o, const char *value, char why[VALUE_MAX]);
int set_cc(struct options *o, const char *value, char why[VALUE_MAX]);
int set_flow_label(struct options *o, const char *value, char why[VALUE_MAX]);
int set_gso(struct options *o, const char *value, char why[VALUE_MAX]);
int set_rocev1(struct options *o, const char *value, char why[VALUE_MAX]);
int set_ring_pair(struct options *o, const char *value, char why[VALUE_MAX]);
int set_impair(struct options *o, const char *value, char why[VALUE_MAX]);
int set_window(struct options *o, const char *value, char why[VALUE_MAX]);
int set_workers(struct options *o, const char *value, char why[VALUE_MAX]);
int set_migrate(struct options *o, const char *value, char why[VALUE_MAX]);
int set_idle(struct options *o, const char *value, char why[VALUE_MAX]);
int set_icrc(struct options *o, const char *value, char why[VALUE_MAX]);
int set_ready_fd(struct options *o, const char *value, char why[VALUE_MAX]);
int set_interactive(struct options *o, const char *value, char why[VALUE_MAX]);
int set_cmdline_file(struct options *o, const char *value, char why[VALUE_MAX]);
int set_stats(struct options *o, const char *value, char why[VALUE_MAX]);

#endif
