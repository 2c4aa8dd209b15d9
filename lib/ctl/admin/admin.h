/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file admin/admin.h
 * The state of administrators' connections, captures and traces. Control thread.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <stdint.h>
#include "limits.h"
#include "list.h"
#include "loop/loop.h"

struct admin_client;
struct ctl;

struct admin {
	struct watch listener;
	struct ctl *ctl;
	char *path;
	struct admin_client *client[ADMIN_CLIENT_MAX];
	int recv_fd;	      /* received with the current command; -1: none */
	struct list captures; /* admin/captures.c */
	uint32_t ncaptures;
	struct list traces; /* admin/traces.c */
	uint32_t ntraces;
};

#endif
