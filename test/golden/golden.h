/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file golden.h
 * The golden runner: a file of vectors against the real core. vectors.json says in its members
 * frame_format and sequence_format what is meant by each member.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <jansson.h>
#include "app.h"

struct golden {
	const json_t *context;
	json_t *skips; /* object: "opcode 0x12" -> true */
	unsigned passed;
	unsigned failed;
	unsigned skipped;
	const char *name; /* of the item under test */
	bool bad;	  /* it has failed */
	bool skip;	  /* it is to be skipped */
};

/* --- report.c: what happened ---------------------------------------------------------- */

bool skips_load(struct golden *g, const char *path);
/** @return true when the list names it. */
bool skips(const struct golden *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void item_begin(struct golden *g, const char *name);
/** One line a failure. */
void item_fail(struct golden *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void item_end(struct golden *g);

/** A number that is written as one or as a string; fails the item when it is neither. */
uint64_t json_u64(struct golden *g, const json_t *v);
uint64_t json_u64_of(struct golden *g, const json_t *object, const char *key);
/** @return bytes; 0 when it is no hex string or too long. */
size_t json_bytes(const json_t *v, uint8_t *dst, size_t room);

/* --- node.c: A or B of the context ---------------------------------------------------- */

struct node {
	struct golden *g;
	struct sim_host *host;
	struct app app;
	struct app_cq *send_cq, *recv_cq;
	struct app_qp *qp;
	struct app_mr *mr; /* B: the region of the context; A: source and destination buffers */
	struct app_mr *recv;
	struct abi_qp_attr attr;
	uint32_t recv_len;
	uint32_t received; /* receives posted */
	uint64_t now;
	uint8_t sent[64][FRAME_MAX]; /* not compared yet */
	uint16_t sent_len[64];
	unsigned sents;
};

/** What a node is made of; names are those of the context. */
struct node_spec {
	bool is_a;
	unsigned net; /* enum net_type of the QP's GID entry */
	uint16_t vid;
	uint32_t mtu;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t msn;
	unsigned recv_wqes;
	uint32_t recv_len;
	uint32_t access; /* of the QP */
	uint32_t mr_access;
	uint16_t pkey;
	uint8_t min_rnr_timer;
	uint8_t timeout, retry_cnt, rnr_retry, max_rd_atomic, max_dest_rd_atomic;
	uint8_t state; /* enum abi_qp_state */
};

/** As the context says for RC. */
struct node_spec node_spec_of(struct golden *g, bool is_a);
void node_init(struct node *n, struct golden *g, const struct node_spec *s);
void node_fini(struct node *n);
void node_post_recv(struct node *n, unsigned count);
/** @return a verdict of core_rx(), or of frame_parse(). */
uint16_t node_rx(struct node *n, const uint8_t *frame, size_t len);
/** Lets the core send; adds to `sent`. */
void node_tx(struct node *n);
uint32_t access_flags(struct golden *g, const json_t *v);
uint8_t state_of(struct golden *g, const json_t *v);
const char *state_name(unsigned state);

/* --- the groups ----------------------------------------------------------------------- */

void run_frames(struct golden *g, const json_t *frames);
void run_sequences(struct golden *g, const json_t *sequences);
void run_tables(struct golden *g, const json_t *tables);
void run_entropy(struct golden *g, const json_t *entropy);

#endif
