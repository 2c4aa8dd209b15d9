/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file raw.h
 * A client that speaks the ABI itself (doc/abi.md), because libroci would refuse what hostile
 * programs do. When rocid refuses a request, a function ends the program unless its comment says
 * otherwise.
 */
#ifndef RAW_H
#define RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "abi_ctl.h"
#include "abi_ring.h"
#include "abi_wqe.h"

/** Seconds that rocid may take for anything: far above any pause of the machine. */
#define RAW_PATIENCE_S 120

#define RAW_GONE (-1000) /* raw_call(): the connection has ended */

struct raw {
	int sock;
	int async;
	uint32_t seq;
	struct abi_hello_reply hello;
	uint8_t *region;
	uint32_t pd;	     /* created by raw_open() */
	uint32_t unanswered; /* requests that were sent without waiting */
	char why[ABI_SENTENCE_MAX];
};

struct raw_cq {
	struct abi_create_cq_reply r;
	uint8_t *region;
	uint32_t head[16]; /* of each lane */
};

struct raw_mr {
	int fd;
	uint8_t *base; /* all of the memfd */
	size_t size;
	uint8_t *mem; /* what is registered; its iova is its address */
	size_t len;
	uint32_t handle, key;
};

struct raw_qp {
	struct raw *s;
	struct raw_cq *cq;
	struct abi_create_qp_reply r;
	uint8_t *region;
	uint8_t type;
	uint8_t port;
	uint32_t posted, received; /* entries */
	bool impatient;		   /* raw_rts(): the shortest time-out and no retry */
};

/** Unprivileged users that programs run as when the test runs as root, because quotas per user do
 *  not apply to root. */
#define USER_VICTIM   64001u
#define USER_ATTACKER 64002u

/** Switches the calling process to @p uid for good, if it runs as root; otherwise does nothing. */
void raw_become(uid_t uid);

/** @return a connected socket whose calls end after RAW_PATIENCE_S, or -1. */
int raw_connect(const char *path);

/** Sends @p len bytes and @p nfds descriptors.  @return as sendmsg(). */
ssize_t raw_send(int sock, const void *bytes, size_t len, const int *fds, unsigned nfds);

/**
 * Receives one message, its body into @p body (@p size bytes at most) and its descriptors into
 * @p fds (-1 where none came; closed when there is no room).
 * @return false at the end of the connection.
 */
bool raw_receive(int sock, struct abi_msg *msg, void *body, size_t size, int *fds, unsigned nfds);

/** A request and its reply.
 *  @return the reply's status, its sentence in s->why; RAW_GONE. */
int raw_call(struct raw *s, uint32_t type, const void *body, size_t len, int fd, void *out,
	size_t out_len, int *fds, unsigned nfds);

/** Connects and says hello.  @return false when rocid refuses. */
bool raw_try_open(struct raw *s, const char *path);
void raw_open(struct raw *s, const char *path);
void raw_close(struct raw *s);

/** A request without descriptors that must succeed. */
void raw_must(
	struct raw *s, uint32_t type, const void *body, size_t len, void *out, size_t out_len);

void raw_cq(struct raw *s, struct raw_cq *cq, uint32_t depth, uint32_t channel);
/** Unmaps its ring: rocid still has it. */
void raw_cq_unmap(struct raw_cq *cq);

/** @return a memfd of @p size bytes that cannot shrink. */
int raw_memfd(size_t size, unsigned seals);

/** Registers @p len bytes at @p off of a new memfd that has @p around bytes more on each side. */
void raw_mr(struct raw *s, struct raw_mr *mr, size_t len, size_t around, uint32_t access);
void raw_mr_free(struct raw_mr *mr);

struct abi_create_qp raw_qp_request(const struct raw *s, const struct raw_cq *cq, uint32_t depth);
void raw_qp(struct raw *s, struct raw_qp *qp, struct raw_cq *cq, const struct abi_create_qp *in);
/** Unmaps its rings: rocid still has it. */
void raw_qp_unmap(struct raw_qp *qp);
/** Destroys it and unmaps its rings. */
void raw_qp_free(struct raw_qp *qp);

/** Brings @p a on port 1 and @p b on port 2 to RTS, connected. */
void raw_connect_qps(struct raw_qp *a, struct raw_qp *b, uint32_t access);

/** Brings @p qp from RESET on @p port to RTS towards @p qpn at port @p peer_port of this rocid.
 *  @return 0 or the status of the MODIFY_QP that was refused. */
int raw_rts(struct raw_qp *qp, uint8_t port, uint32_t qpn, uint8_t peer_port, uint32_t access);

/** The steps of raw_rts(), for callers that change one of them. @p qpn is the peer's. */
int raw_init(struct raw_qp *qp, uint8_t port, uint32_t access);
struct abi_ah_attr raw_av(struct raw *s, uint8_t port, uint8_t peer_port);
int raw_rtr(struct raw_qp *qp, uint32_t qpn, struct abi_ah_attr ah);

/** Sets @p state and the attributes @p mask of @p m.  @return the status. */
int raw_modify(struct raw_qp *qp, struct abi_modify_qp *m, uint8_t state, uint32_t mask);

/** Brings @p qp, which sends datagrams, from RESET on @p port to RTS.  @return the status. */
int raw_datagrams(struct raw_qp *qp, uint8_t port);

/** Sets the state only.  @return the status. */
int raw_state(struct raw_qp *qp, uint8_t state);

/* --- rings ---------------------------------------------------------------------------- */

/** @return the shared head of the send queue, of the receive queue. */
struct abi_queue *raw_sq(const struct raw_qp *qp);
struct abi_queue *raw_rq(const struct raw_qp *qp);

/** @return entry @p i of the send queue, of the receive queue. */
struct abi_wqe *raw_wqe(const struct raw_qp *qp, uint32_t i);
struct abi_recv_wqe *raw_recv_wqe(const struct raw_qp *qp, uint32_t i);

/** @return how many work requests the send queue has room for. */
uint32_t raw_sq_room(const struct raw_qp *qp);

/** Posts @p w, whose control word has no mark yet, and rings. */
void raw_post(struct raw_qp *qp, const struct abi_wqe *w, const struct abi_sge *sge);
void raw_post_recv(struct raw_qp *qp, uint64_t wr_id, struct abi_sge sge);

/** One signaled request over one piece of memory. */
void raw_request(struct raw_qp *qp, unsigned opcode, uint64_t wr_id, struct abi_sge sge,
	uint64_t remote, uint32_t rkey);

void raw_ring(const struct raw_qp *qp);

/** Takes the next completion.  @return false when there is none. */
bool raw_poll(struct raw_cq *cq, struct abi_cqe *cqe);

/** Waits for it.  @return false when none comes within RAW_PATIENCE_S. */
bool raw_wait(struct raw_cq *cq, struct abi_cqe *cqe);

#endif
