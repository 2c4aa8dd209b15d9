/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/command.h
 * Requests and replies (abi_ctl.h): the table of commands and what a handler sees.
 */
#ifndef VERBS_COMMAND_H
#define VERBS_COMMAND_H

#include <stddef.h>
#include "state.h"

/** A request, copied out of the socket once; what the application did not send is 0. */
struct request {
	struct abi_msg msg;
	uint8_t body[ABI_MSG_MAX - sizeof(struct abi_msg)] __attribute__((aligned(8)));
	size_t body_len;
	int fd; /* that came along, -1: none; closed after the handler */
};

#define REPLY_FDS 2

struct reply {
	uint8_t body[ABI_MSG_MAX - sizeof(struct abi_msg)] __attribute__((aligned(8)));
	size_t body_len;
	int fd[REPLY_FDS]; /* closed once sent */
	unsigned nfds;
	char why[ABI_SENTENCE_MAX]; /* sentence of a failure */
};

/** A handler's answer when the reply is sent later (session_reply()). */
#define DEFERRED 1

/** @return 0, DEFERRED, or a negative errno with a sentence in @p r->why. */
typedef int (*command_handler)(struct session *s, const struct request *q, struct reply *r);

/** Checks and executes @p q, and fills in @p r.  @return as a handler. */
int command_run(struct session *s, const struct request *q, struct reply *r);

/** @return whether a descriptor belongs to messages of @p type. */
bool command_takes_descriptor(uint32_t type);

/** Puts @p len bytes in the reply's body. */
void reply_body(struct reply *r, const void *body, size_t len);

/** Has @p fd sent with the reply and closed. */
void reply_fd(struct reply *r, int fd);

/* verbs/device.c */
int cmd_hello(struct session *s, const struct request *q, struct reply *r);
int cmd_get_wake(struct session *s, const struct request *q, struct reply *r);
int cmd_query_device(struct session *s, const struct request *q, struct reply *r);
int cmd_query_port(struct session *s, const struct request *q, struct reply *r);
int cmd_query_gid(struct session *s, const struct request *q, struct reply *r);
int cmd_query_pkey(struct session *s, const struct request *q, struct reply *r);
/* verbs/mr.c */
int cmd_alloc_pd(struct session *s, const struct request *q, struct reply *r);
int cmd_dealloc_pd(struct session *s, const struct request *q, struct reply *r);
int cmd_reg_mr(struct session *s, const struct request *q, struct reply *r);
int cmd_dereg_mr(struct session *s, const struct request *q, struct reply *r);
/* verbs/mw.c */
int cmd_alloc_mw(struct session *s, const struct request *q, struct reply *r);
int cmd_dealloc_mw(struct session *s, const struct request *q, struct reply *r);
/* verbs/cq.c */
int cmd_create_channel(struct session *s, const struct request *q, struct reply *r);
int cmd_destroy_channel(struct session *s, const struct request *q, struct reply *r);
int cmd_create_cq(struct session *s, const struct request *q, struct reply *r);
int cmd_resize_cq(struct session *s, const struct request *q, struct reply *r);
int cmd_destroy_cq(struct session *s, const struct request *q, struct reply *r);
/* verbs/srq.c */
int cmd_create_srq(struct session *s, const struct request *q, struct reply *r);
int cmd_modify_srq(struct session *s, const struct request *q, struct reply *r);
int cmd_query_srq(struct session *s, const struct request *q, struct reply *r);
int cmd_destroy_srq(struct session *s, const struct request *q, struct reply *r);
/* verbs/xrcd.c */
int cmd_open_xrcd(struct session *s, const struct request *q, struct reply *r);
int cmd_close_xrcd(struct session *s, const struct request *q, struct reply *r);
/* verbs/qp.c */
int cmd_create_qp(struct session *s, const struct request *q, struct reply *r);
int cmd_query_qp(struct session *s, const struct request *q, struct reply *r);
int cmd_destroy_qp(struct session *s, const struct request *q, struct reply *r);
int cmd_explain_qp(struct session *s, const struct request *q, struct reply *r);
int cmd_inject_fault(struct session *s, const struct request *q, struct reply *r);
int cmd_query_fault(struct session *s, const struct request *q, struct reply *r);
int cmd_clear_fault(struct session *s, const struct request *q, struct reply *r);
/* verbs/ah.c */
int cmd_create_ah(struct session *s, const struct request *q, struct reply *r);
int cmd_destroy_ah(struct session *s, const struct request *q, struct reply *r);
/* verbs/mcast.c */
int cmd_attach_mcast(struct session *s, const struct request *q, struct reply *r);
int cmd_detach_mcast(struct session *s, const struct request *q, struct reply *r);
/* verbs/qp_modify.c */
int cmd_modify_qp(struct session *s, const struct request *q, struct reply *r);

#endif
