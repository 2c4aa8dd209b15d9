/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file verbs.h
 * The objects of libibverbs as programs see them, built on those of libroci. Each begins with its
 * public part, so a pointer to one is a pointer to the other.
 *
 * Locks: context.lock guards the list of the context's objects and user counts; it is never taken
 * while another lock is held. libroci synchronizes everything else.
 */
#ifndef VERBS_H
#define VERBS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "list.h"
#include "roci.h"
#include "roci_private.h"

/* Macros in the public header; these are the functions that the library exports. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list

/** Marks exported functions; the version map is generated from the stock library's. */
#define VERBS_API __attribute__((visibility("default")))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/** Size of a socket's path, with its NUL. */
#define SOCKET_MAX 108

/** A rocid that answered when the list was built. */
struct device {
	struct ibv_device pub;
	/** Provider libraries (libmlx5, libefa) look for their own operations here to recognize
	 *  their devices: zero. */
	void *others[16];
	char socket[SOCKET_MAX];
	uint64_t node_guid; /* big-endian */
	int index;
	atomic_uint users; /* device lists and contexts */
};

/** Kinds of objects that end with a context, in an order in which they can be destroyed. */
enum object_kind {
	OBJECT_QP,
	OBJECT_SRQ,
	OBJECT_AH,
	OBJECT_MW,
	OBJECT_MR,
	OBJECT_CQ,
	OBJECT_CHANNEL,
	OBJECT_XRCD,
	OBJECT_PARENT_DOMAIN,
	OBJECT_PD,
	OBJECT_TD,
	OBJECT_KINDS,
};

/** A node of its context's list; guarded by context.lock. */
struct object {
	struct list node;
};

struct context {
	struct verbs_context v;
	struct roci_context *roci;
	bool yields; /* poll_cq yields the CPU after a run of empty polls */
	pthread_mutex_t lock;
	struct list objects[OBJECT_KINDS];
};

struct td {
	struct ibv_td pub;
	struct object object;
	uint32_t users; /* parent domains; context.lock */
};

/** A PD, or a parent domain, which is an alias of its PD. */
struct pd {
	struct ibv_pd pub;
	struct object object;
	struct roci_pd *roci;
	struct pd *parent; /* of a parent domain: its PD; NULL: this is a PD */
	struct td *td;
	uint32_t users; /* its parent domains, or objects of this parent domain; context.lock */
};

struct mr {
	struct ibv_mr pub;
	struct object object;
	struct roci_mr *roci;
	int access;
};

struct mw {
	struct ibv_mw pub;
	struct object object;
	struct roci_mw *roci;
};

struct channel {
	struct ibv_comp_channel pub;
	struct object object;
	struct roci_channel *roci;
};

struct cq {
	union {
		struct ibv_cq pub;
		struct ibv_cq_ex ex;
	};
	struct object object;
	struct roci_cq *roci;
	struct context *context;
	atomic_bool datagrams;	   /* used by a UD QP: wc.sl is filled in as ConnectX does */
	uint32_t empty;		   /* consecutive empty polls; a hint, any thread */
	struct roci_reader reader; /* between start_poll and end_poll */
};

struct xrcd {
	struct ibv_xrcd pub;
	struct object object;
	struct roci_xrcd *roci;
};

struct srq {
	struct ibv_srq pub;
	struct object object;
	struct roci_srq *roci;
};

struct ah {
	struct ibv_ah pub; /* handle: the one in work requests */
	struct object object;
	struct roci_ah *roci;
};

struct qp {
	union {
		struct ibv_qp pub;
		struct ibv_qp_ex ex;
	};
	struct object object;
	struct roci_qp *roci;
	bool extended; /* created with send_ops_flags */
	bool sq_sig_all;
	uint32_t ctl; /* flags of every send: ABI_WQE_SIGNALED if sq_sig_all */
	struct ibv_qp_cap cap;
	/* Under the lock of libroci's queue: */
	struct roci_builder builder;
	struct abi_wqe *plain; /* entry of the last wr_* call; NULL: its SGE is special */
};

static inline struct context *context_of(struct ibv_context *c)
{
	return (struct context *)((char *)c - offsetof(struct context, v.context));
}

static inline struct pd *pd_of(struct ibv_pd *pd)
{
	return (struct pd *)pd;
}

static inline struct cq *cq_of(struct ibv_cq *cq)
{
	return (struct cq *)cq;
}

static inline struct qp *qp_of(struct ibv_qp *qp)
{
	return (struct qp *)qp;
}

static inline struct srq *srq_of(struct ibv_srq *srq)
{
	return (struct srq *)srq;
}

/* --- object.c --------------------------------------------------------------------------- */

/** Adds an object to its context's list; object_leave() removes it. */
void object_enter(struct ibv_context *c, enum object_kind kind, struct object *o);
void object_leave(struct ibv_context *c, struct object *o);

/** Destroys all remaining objects of a context whose session has ended. */
void objects_destroy(struct context *ctx);

/* --- error.c ---------------------------------------------------------------------------- */

/** If ROCI_VERBOSE=1, prints libroci's last error on stderr, each sentence once.
 *  @return @p err, which is also stored in errno unless 0. */
int explain(const char *call, int err);

/** The same with a sentence of this library. */
int explain_as(const char *call, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** Explains @p err and sets errno to it, for a function that returns NULL.  @return NULL. */
void *explain_null(const char *call, int err);

/** The same for failures that an administrator looks for: they are also reported to rocid, whose
 *  `rocictl show errors` lists them. */
int refused(struct ibv_context *c, const char *call, int err);
int refused_as(struct ibv_context *c, const char *call, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int refused_qp(const struct ibv_qp *qp, const char *call, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void *refused_null(struct ibv_context *c, const char *call, int err);

/* --- sysfs.c ----------------------------------------------------------------------------- */

/** Reads the file without its final newline.  @return its length, or -1. For providers, so not in
 *  the public headers. */
VERBS_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* --- device.c --------------------------------------------------------------------------- */

struct device *device_hold(struct device *d);
void device_release(struct device *d);

/* --- operations of a context ----------------------------------------------------------- */

void context_set_ops(struct verbs_context *v);

int verbs_query_port(
	struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t attr_size);
int verbs_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
int verbs_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t attr_size);
int verbs_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);

int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
int verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

struct ibv_qp *verbs_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *verbs_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr);

struct ibv_srq *verbs_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr);
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);

struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *c, struct ibv_xrcd_init_attr *attr);
int verbs_close_xrcd(struct ibv_xrcd *xrcd);

struct ibv_td *verbs_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int verbs_dealloc_td(struct ibv_td *td);
struct ibv_pd *verbs_alloc_parent_domain(
	struct ibv_context *c, struct ibv_parent_domain_init_attr *attr);

struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd);
int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	struct ibv_sge *sg_list, uint32_t num_sge);

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_dealloc_mw(struct ibv_mw *mw);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* --- helpers shared between the files ------------------------------------------------- */

/** Fills in the functions of @p ex that @p ops allows. */
void qp_ex_set_ops(struct ibv_qp_ex *ex, uint64_t ops);

/** Fills in the read functions that @p wc_flags requests. */
void cq_ex_set_ops(struct ibv_cq_ex *ex, uint64_t wc_flags);

/** Called by poll_cq when it finds nothing. */
void cq_idle(struct cq *cq);

/** Packet types, as wc.sl shows them. */
enum {
	SL_ROCEV1 = 0,
	SL_ROCEV2_IPV6 = 1,
	SL_ROCEV2_IPV4 = 2
};

/** @return wc.sl of a completion; for a datagram its packet type (enum abi_net), as ConnectX
 *  reports it: decision 0107. */
static inline uint8_t cq_sl(unsigned flags, uint8_t sl, unsigned net)
{
	if (!(flags & IBV_WC_GRH))
		return sl;
	return net == ABI_NET_IPV4   ? SL_ROCEV2_IPV4
	       : net == ABI_NET_IPV6 ? SL_ROCEV2_IPV6
				     : SL_ROCEV1;
}

/** The fields of a completion that an extended CQ can read. */
#define CQ_EX_FLAGS \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)

/** The range of a window. LOCAL_WRITE and optional rights have no meaning for a window; as with
 *  other devices, they may be set. */
static inline struct roci_mw_bind_info bind_info_to_roci(const struct ibv_mw_bind_info *info)
{
	return (struct roci_mw_bind_info){
		.mr = info->mr ? ((struct mr *)info->mr)->roci : NULL,
		.addr = info->addr,
		.length = info->length,
		.mw_access_flags = info->mw_access_flags &
				   ~(unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_OPTIONAL_RANGE),
	};
}

void ah_attr_to_roci(const struct ibv_ah_attr *a, struct roci_ah_attr *r);
void ah_attr_from_roci(const struct roci_ah_attr *r, struct ibv_ah_attr *a);

#endif
