/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs/command.h
 * The commands of programs, which session_ops.run executes. Control thread.
 */
#ifndef VERBS_COMMAND_H
#define VERBS_COMMAND_H

#include <stdbool.h>
#include "session/message.h"

struct handles;
struct reply;
struct request;
struct session;
struct session_ops;

/** The operations of verbs; connection_ops (cm/command.c) forwards to them. */
extern const struct session_ops command_ops;

/** verbs/close.c: session_ops.release_some. */
bool session_release_some(struct session *s);

/** @param kind  of the object, for the sentence in @p r
 *  @return the object of a session with that handle; NULL: refused, with -EINVAL. */
void *object_named(const struct handles *h, uint32_t handle, const char *kind, struct reply *r);

/** @return the object that the body of @p q, a struct abi_handle, refers to; as object_named(). */
void *object_of(
	const struct request *q, const struct handles *h, const char *kind, struct reply *r);

/* Handlers with the signature of session_ops.run. */
/* verbs/device.c */
int cmd_hello(struct session *s, const struct request *q, struct reply *r);
int cmd_get_wake(struct session *s, const struct request *q, struct reply *r);
int cmd_query_device(struct session *s, const struct request *q, struct reply *r);
int cmd_query_port(struct session *s, const struct request *q, struct reply *r);
int cmd_query_gid(struct session *s, const struct request *q, struct reply *r);
int cmd_query_gids(struct session *s, const struct request *q, struct reply *r);
int cmd_probe(struct session *s, const struct request *q, struct reply *r);
int cmd_query_pkey(struct session *s, const struct request *q, struct reply *r);
int cmd_report(struct session *s, const struct request *q, struct reply *r);
/* verbs/mr.c */
int cmd_alloc_pd(struct session *s, const struct request *q, struct reply *r);
int cmd_dealloc_pd(struct session *s, const struct request *q, struct reply *r);
int cmd_reg_mr(struct session *s, const struct request *q, struct reply *r);
int cmd_rereg_mr(struct session *s, const struct request *q, struct reply *r);
int cmd_dereg_mr(struct session *s, const struct request *q, struct reply *r);
int cmd_get_arena(struct session *s, const struct request *q, struct reply *r);
int cmd_get_userfaultfd(struct session *s, const struct request *q, struct reply *r);
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
/* verbs/group.c */
int cmd_attach_mcast(struct session *s, const struct request *q, struct reply *r);
int cmd_detach_mcast(struct session *s, const struct request *q, struct reply *r);
/* verbs/qp_modify.c */
int cmd_modify_qp(struct session *s, const struct request *q, struct reply *r);
int cmd_limit_qp(struct session *s, const struct request *q, struct reply *r);

#endif
