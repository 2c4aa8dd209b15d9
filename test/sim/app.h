/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file app.h
 * An application on a simulated host, which acts as the client library does: rings in plain memory
 * laid out as abi_ring.h says, WQEs with phase marks, doorbells only when the worker requests them,
 * CQEs taken by their marks. It checks that each work request completes once and in post order, and
 * that nothing is written outside its memory regions.
 */
#ifndef APP_H
#define APP_H

#include "cq.h"
#include "host.h"
#include "mw.h"
#include "srq.h"

#define APP_PD	    7u
#define APP_SESSION 1u
#define APP_EVENTS  256u
#define APP_GUARD   64u
#define APP_MRS	    96u
#define APP_OBJS    1024u
/** Handles of CQs begin here; those of QPs are below. */
#define APP_CQ_HANDLE (1u << 20)
/** And those of SRQs. */
#define APP_SRQ_HANDLE (1u << 21)

struct app_mr {
	struct mr mr;
	uint8_t *mem; /* first byte; APP_GUARD bytes before and after are guarded */
	size_t len;
	unsigned slot;
};

struct app_mw {
	struct mw mw;
	unsigned slot;
};

struct app_cq {
	struct cq cq;
	struct abi_cq *shared;
	struct abi_cq_lane *lane;
	uint32_t depth;
	uint32_t taken;
};

/** The result of a posted work request; the application's own bookkeeping. */
struct app_wr {
	uint64_t wr_id;
	bool signaled;
};

/** A shared receive queue. Its receives complete at most once; those of one QP in post order. */
struct app_srq {
	struct srq srq;
	struct srq_ring at;
	struct abi_queue *shared;
	uint32_t posted;
	struct app_wr *wr; /* ring of `wrs`; signaled: not complete */
	uint32_t wrs;	   /* power of two */
};

struct app_qp_spec {
	uint32_t qpn; /* 0: any */
	uint8_t type; /* enum abi_qp_type; 0: RC */
	uint32_t sq_depth;
	uint32_t rq_depth;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t window;  /* 0: default */
	uint32_t session; /* 0: APP_SESSION */
	bool sig_all;
	struct app_cq *send_cq;
	struct app_cq *recv_cq;
	struct app_srq *srq; /* instead of a receive queue; NULL: none */
	uint32_t xrcd;	     /* XRC_RECV */
};

struct app_qp {
	struct qp *qp;
	struct app *app;
	struct abi_queue *sq_shared;
	struct abi_queue *rq_shared;
	uint8_t *sq_ring;
	uint8_t *rq_ring;
	struct app_qp_spec spec;
	uint32_t sq_stride;
	uint32_t rq_stride;
	uint32_t sq_posted;
	uint32_t rq_posted;
	uint32_t sq_done;     /* work requests with a known outcome */
	uint32_t rq_done;     /* SRQ: the one after the last that completed */
	bool rung;	      /* the doorbell */
	bool free_ids;	      /* the test chooses wr_ids: do not check their order */
	struct app_wr *sq_wr; /* ring of sq_wrs */
	struct app_wr *rq_wr;
	uint32_t sq_wrs; /* powers of two */
	uint32_t rq_wrs;
};

struct app {
	struct sim_host *host;
	struct core_counters counted; /* of the host after the step before; invariants.c */
	uint32_t next_slot;	      /* of the QP table */
	uint32_t next_key;
	uint32_t made_cqs;
	struct app_mr *mr[APP_MRS];
	struct app_mw *mw[APP_MRS];
	struct app_cq *cq[APP_OBJS];
	struct app_qp *qp[APP_OBJS];
	struct app_srq *srq[APP_OBJS];
	unsigned mrs, mws, cqs, qps, srqs;
	struct core_event event[APP_EVENTS]; /* the latest */
	unsigned events;
};

void app_init(struct app *a, struct sim_host *host);
void app_fini(struct app *a);

/* --- objects -------------------------------------------------------------------------- */

/** Memory filled with a pattern, registered at an address that is not the pointer. */
struct app_mr *app_mr(struct app *a, size_t len, uint32_t access);
/** The same with a chosen key and wire address. */
struct app_mr *app_mr_as(struct app *a, size_t len, uint32_t access, uint32_t key, uint64_t iova);
/** Random bytes in all of it, the same for a seed. A word at a time: tests compare megabytes. */
void app_mr_fill(struct app_mr *mr, uint64_t seed);
/** Withdraws the region, as dereg_mr does; its memory stays. */
void app_mr_dereg(struct app *a, struct app_mr *mr);
/** Registers the memory of a withdrawn region again: in its slot, with the next key (MR-01). */
void app_mr_again(struct app *a, struct app_mr *mr);
/** A memory window. */
struct app_mw *app_mw(struct app *a, enum mw_type type);
/** The same with a chosen first key. */
struct app_mw *app_mw_as(struct app *a, enum mw_type type, uint32_t key);
/** @return its R_Key, or the last one. */
uint32_t app_mw_key(const struct app_mw *w);
/** The wire address of byte @p off. */
uint64_t app_va(const struct app_mr *mr, uint64_t off);
struct abi_sge app_sge(const struct app_mr *mr, uint64_t off, uint32_t len);
/** @return true when the bytes around all regions are as they were. */
bool app_guards_ok(const struct app *a);

struct app_cq *app_cq(struct app *a, uint32_t depth);
/** @p depth a power of two; WQEs of up to @p max_sge SGEs. */
struct app_srq *app_srq(struct app *a, uint32_t depth, uint32_t max_sge);
/** The same for XRC: of domain @p xrcd, completing to @p cq. */
struct app_srq *app_xrc_srq(
	struct app *a, uint32_t depth, uint32_t max_sge, uint32_t xrcd, struct app_cq *cq);
/** Resizes as modify_srq does, between two steps of the core; waiting receives must fit. */
void app_srq_resize(struct app_srq *srq, uint32_t depth);
/** Removes the SRQ from the table, as DESTROY_SRQ does. */
void app_srq_withdraw(struct app *a, struct app_srq *srq);
struct app_qp *app_qp(struct app *a, const struct app_qp_spec *spec);
/* As destroy_cq and destroy_qp: the core has forgotten them when these return. A QP's CQEs
 * must have been polled before. */
void app_cq_destroy(struct app *a, struct app_cq *q);
void app_qp_destroy(struct app_qp *q, uint64_t now);

/** @return usable attributes: MTU 1024, timeout 14, seven retries, sixteen READs. */
struct abi_qp_attr app_attr(uint32_t dest_qpn, uint32_t sq_psn, uint32_t rq_psn);

/* Each is one core_cmd(); they return its result. */
int app_modify(struct app_qp *q, uint32_t mask, const struct abi_qp_attr *attr,
	const struct path_spec *path, uint64_t now);
int app_to_init(struct app_qp *q, const struct abi_qp_attr *attr, uint64_t now);
int app_to_rtr(struct app_qp *q, const struct abi_qp_attr *attr, const struct path_spec *path,
	uint64_t now);
int app_to_rts(struct app_qp *q, const struct abi_qp_attr *attr, uint64_t now);
/** To RESET or ERR, repeating as long as the core says -EAGAIN. */
int app_to_state(struct app_qp *q, unsigned state, uint64_t now);

/* --- work ----------------------------------------------------------------------------- */

/** @return free places of the send or receive queue. */
uint32_t app_sq_room(const struct app_qp *q);
uint32_t app_rq_room(const struct app_qp *q);

struct app_send {
	uint8_t opcode; /* enum abi_wr_opcode */
	uint32_t flags; /* ABI_WQE_* */
	uint32_t imm;
	uint64_t wr_id;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t srqn;	      /* XRC */
	uint64_t compare_add; /* atomics, whose SGE is sge[0] */
	uint64_t swap;
	uint32_t flush_len; /* FLUSH; imm is its FETH */
	/* BIND_MW: the range begins at remote_addr, rkey is the new one */
	uint32_t mw;
	uint32_t lkey;
	uint32_t access;
	uint64_t bind_len;
	unsigned num_sge;
	struct abi_sge sge[SGE_MAX];
	const void *inline_data; /* with ABI_WQE_INLINE */
	uint32_t inline_len;
};

/** Posts without checking for room. */
void app_post_send(struct app_qp *q, const struct app_send *s);
void app_post_recv(struct app_qp *q, uint64_t wr_id, const struct abi_sge *sge, unsigned n);
/** Writes @p len bytes as the next send WQE, with the correct mark. */
void app_post_raw(struct app_qp *q, const void *wqe, size_t len);
void app_post_recv_raw(struct app_qp *q, const void *wqe, size_t len);

uint32_t app_srq_room(const struct app_srq *srq);
void app_post_srq(struct app_srq *srq, uint64_t wr_id, const struct abi_sge *sge, unsigned n);

/** Delivers the doorbells that were rung. */
void app_ring(struct app *a, uint64_t now);

/** Takes the next CQE. Fails the test if the CQE is out of order or was not requested.
 *  @return false: there is none. */
bool app_poll(struct app *a, struct app_cq *cq, struct abi_cqe *cqe);

/** Arms the CQ as the client library does. */
void app_arm(struct app_cq *cq, bool solicited);

/** Takes the core's events. */
void app_events(struct app *a);
/** @return how many events of @p type there were. */
unsigned app_event_count(const struct app *a, uint32_t type);

#endif
