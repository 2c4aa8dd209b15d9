/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file golden.h
 * The golden runner: runs a file of vectors against the real core. The members frame_format and
 * sequence_format of vectors.json explain all others. A member unknown to the runner is a failure,
 * so that nothing in a file goes unchecked; a feature that the product does not have yet is
 * skipped, if skip.list names it.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <jansson.h>
#include "abi_ctl.h"
#include "app.h"
#include "flow.h"
#include "qp.h"
#include "switch_list.h"

struct golden {
	const json_t *context;
	const struct icrc_ops *icrc; /* of the hosts */
	json_t *skips;		     /* object: "opcode 0x12" -> times used */
	unsigned passed;
	unsigned failed;
	unsigned skipped;
	bool verbose;	  /* prints one line per item, with the drop's counter */
	const char *name; /* of the item under test */
	bool bad;	  /* it has failed */
	bool skip;	  /* it is to be skipped */
	bool muted;	  /* an attempt: failures are recorded, not printed */
	char first[256];  /* the first failure */
	const char *drop; /* the counter that moved */
};

/* --- report.c: what happened ---------------------------------------------------------- */

bool skips_load(struct golden *g, const char *path);
/** @return true when the list names it. */
bool skips(struct golden *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Prints on standard error, in one line, the entries of the list that the file did not need. */
void skips_unused(const struct golden *g);

void item_begin(struct golden *g, const char *name);
/** Prints one line per failure. */
void item_fail(struct golden *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void item_end(struct golden *g);

/* --- member.c: members of JSON objects, with their types and names checked -------------- */

/** @return the string, "" when there is none. */
const char *text(const json_t *object, const char *key);
bool text_is(const json_t *object, const char *key, const char *value);
/** Reads a number, which may be written as a string; fails the item if @p v is neither. */
uint64_t number(struct golden *g, const char *what, const json_t *v);
uint64_t number_of(struct golden *g, const json_t *object, const char *key);
/** The same, but no more than @p max. */
uint64_t number_upto(struct golden *g, const char *what, const json_t *v, uint64_t max);
/** Reads a number of microseconds, which may have a fraction. @return nanoseconds. */
uint64_t nanoseconds(struct golden *g, const char *what, const json_t *v);
void same_number(struct golden *g, const char *what, uint64_t got, const json_t *want);
/** @return the bytes of hex string @p v, to be freed; NULL, with a failure, if it is not one. */
uint8_t *hex_bytes(struct golden *g, const char *what, const json_t *v, size_t *len);
bool mac_of(const char *s, uint8_t mac[6]);
/** Fails the item when @p v is no object, or has a member that is not in @p names. */
bool known_members(
	struct golden *g, const char *what, const json_t *v, const char *const *names, unsigned n);
#define KNOWN(g, what, v, names) known_members(g, what, v, names, ARRAY_SIZE(names))

/* --- spec.c: what a side of the context is --------------------------------------------- */

#define GOLDEN_PKEYS 8u

/** A side of the context, with a file's changes to it and the values that the runner chooses. */
struct node_spec {
	bool is_a;
	uint8_t type;	      /* enum abi_qp_type */
	uint8_t net;	      /* enum net_type of the QP's GID entry */
	uint8_t gid[16];      /* of that entry */
	uint8_t peer_gid[16]; /* of the QP's peer */
	uint16_t vid;	      /* of that entry */
	uint32_t qpn;
	uint32_t peer_qpn;
	uint32_t srqn; /* XRC target: of its SRQ, which no context names */
	uint32_t mtu;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t msn;
	unsigned recv_wqes;
	uint32_t recv_len;
	uint32_t qkey; /* UD */
	bool shared;   /* its receives are an SRQ's */
	bool member;   /* UD: it has attached to ... */
	uint8_t mgid[16];
	uint32_t access; /* of the QP */
	uint32_t mr_access;
	uint16_t pkey[GOLDEN_PKEYS]; /* the port's table; the QP's is the first */
	unsigned pkeys;
	uint8_t min_rnr_timer;
	uint8_t timeout, retry_cnt, rnr_retry, max_rd_atomic, max_dest_rd_atomic;
	uint8_t state; /* enum abi_qp_state */
	size_t send_room;
};

/** Checks the context's members. @return false when the context is unusable. */
bool context_check(struct golden *g);
/** @return the side as the context describes it, for RC over IPv4. */
struct node_spec node_spec_of(struct golden *g, bool is_a);
/** Gives @p s the addresses of protocol @p net; @p mapped: RoCEv1 with IPv4 addresses. */
void node_spec_net(struct golden *g, struct node_spec *s, unsigned net, bool mapped);
/** The same for the protocol of @p p, including its VLAN. */
void node_spec_as(struct golden *g, struct node_spec *s, const struct pkt *p);
/** Applies a member of expect.context or setup. @return false when @p key is unknown. */
bool node_spec_set(struct golden *g, struct node_spec *s, const char *key, const json_t *v);
/** The kind ("UC") of QP that has number @p qpn on a side; NULL: none. */
const char *qp_kind(struct golden *g, bool is_a, uint64_t qpn);
static inline bool is_datagram(uint8_t type)
{
	return type == ABI_QPT_UD || type == ABI_QPT_GSI;
}
/** @return whether this build has QPs of @p kind. @param type  receives their type */
bool kind_type(const char *kind, uint8_t *type);
/** Turns @p s, which describes an RC QP, into a QP of @p kind, for which kind_type() holds. */
void node_spec_kind(struct golden *g, struct node_spec *s, const char *kind);
const char *state_name(unsigned state);
uint8_t state_of(struct golden *g, const json_t *v);

/* --- node.c: A or B of the context ---------------------------------------------------- */

#define NODE_SENT_MAX 1024u
/** Its address handle that leads to the other side. */
#define NODE_AH 5u

struct node {
	struct golden *g;
	struct sim_host *host;
	struct mcast_group *group; /* of the QP; NULL: none */
	struct app app;
	struct app_cq *send_cq, *recv_cq;
	struct app_qp *qp;
	struct app_srq *srq; /* NULL: it has a receive queue of its own, or none */
	struct ah ah;	     /* UD: to the other side */
	struct app_mr *mr;   /* B: the region of the context; A: source and destination buffers */
	struct app_mr *recv;
	struct app_mw *mw;	     /* NULL: no window was bound */
	struct switch_list switches; /* it accepts their Fast CNPs, */
	struct qp_flow flow;	     /* if they name this flow of its QP */
	struct node_spec spec;
	struct abi_qp_attr attr;
	uint32_t received; /* receives posted */
	uint64_t now;
	uint8_t (*sent)[FRAME_MAX]; /* room for NODE_SENT_MAX; not compared yet */
	uint16_t sent_len[NODE_SENT_MAX];
	unsigned sents;
};

/** @return false, with everything undone, if no node can be made from @p s. */
bool node_init(struct node *n, struct golden *g, const struct node_spec *s);
void node_fini(struct node *n);
void node_post_recv(struct node *n, unsigned count);
/** A type 2 window of all of the node's region, bound by its QP with @p key. */
void node_bind_window(struct node *n, uint32_t key);
/** Fast CNPs of the addresses in @p acl are accepted, with options of these types. */
void node_fast_cnp(struct node *n, const json_t *acl, const uint8_t types[FAST_CNP_OPTIONS]);
/** The buffer of the i-th receive. */
const uint8_t *node_recv_buffer(const struct node *n, unsigned i);
/** @return a verdict of core_rx(), or of frame_parse(). */
uint16_t node_rx(struct node *n, const uint8_t *frame, size_t len);
/** Has the core send; appends the frames to `sent`. */
void node_tx(struct node *n);
bool node_poll(struct node *n, struct abi_cqe *cqe);

/** All that a frame may change in a node. */
struct memento {
	struct qp *qp;
	struct resp_res res[RD_ATOMIC_MAX];
	struct core_counters count;
	uint8_t *memory;
	uint8_t *recv;
};

void memento_take(struct memento *m, const struct node *n);
void memento_drop(struct memento *m);
/** Fails the item for each member that has changed. */
void memento_same_qp(struct golden *g, const struct memento *m, const struct node *n);
/** @p skip_at, @p skip_len: bytes of the region that may differ. */
void memento_same_memory(struct golden *g, const struct memento *m, const struct node *n,
	size_t skip_at, size_t skip_len);

/* --- packet.c: packets against their description ---------------------------------------- */

/** Compares a parsed packet with bth_fields. */
void check_fields(struct golden *g, const struct pkt *p, const json_t *fields);
/** Whether a packet of ours is right, from Ethernet to the ICRC. @return false with @p why. */
bool wire_ok(const struct node *n, const uint8_t *frame, size_t len, char *why, size_t room);
/** One of the packets that a step lists. @return false with @p why. */
bool packet_matches(struct golden *g, const uint8_t *frame, size_t len, const json_t *want,
	char *why, size_t room);

/* --- ipoib.c ---------------------------------------------------------------------------- */

/** @return whether a datagram is one of IP over InfiniBand. */
bool is_ipoib(const struct pkt *p);
/** @return whether lib/ipoib passes it to the kernel. @param area where it was received */
bool ipoib_takes(struct golden *g, const struct pkt *p, const uint8_t *area);

/* --- completion.c ----------------------------------------------------------------------- */

const char *wc_opcode_name(unsigned op);
const char *wc_status_name(unsigned status);
void check_cqe(struct golden *g, const struct abi_cqe *c, const json_t *want);

/* --- verdict.c: what a frame must do ------------------------------------------------------ */

/** A frame and its description. */
struct trial {
	const json_t *vector;
	const json_t *expect;
	const char *result;
	const uint8_t *frame;
	size_t len;
	struct pkt p;
	uint16_t parse; /* enum drop of frame_parse(), or fast_cnp_parse() */
	bool fast;	/* the context has Fast CNP, and the frame looks like one */
	uint8_t types[FAST_CNP_OPTIONS];
	bool to_a; /* it is for A */
	uint32_t qpn;
	const char *kind;    /* of the QP that it is for; NULL: no QP has this number */
	const char *feature; /* skip.list's line for a missing feature that it needs; NULL: none */
	char feature_text[64];
	bool ipoib; /* it reaches the QP, and is dropped by RFC 4391 */
};

/** Delivers the frame to a fresh QP and checks the effects. */
void check_verdict(struct golden *g, struct trial *t);

/* --- accept.c ----------------------------------------------------------------------------- */

/** Checks a request that B executes: reply, completion, memory. */
void check_accepted(
	struct golden *g, struct node *n, const struct trial *t, const struct memento *before);

/* --- mad.c ------------------------------------------------------------------------------- */

/** Checks a datagram to QP1: the communication manager reads, rejects or drops it. */
void check_mad(struct golden *g, const struct trial *t);

/* --- the groups --------------------------------------------------------------------------- */

void run_frames(struct golden *g, const json_t *frames);
void run_sequences(struct golden *g, const json_t *sequences);
void run_tables(struct golden *g, const json_t *tables);
void run_entropy(struct golden *g, const json_t *entropy);

#endif
