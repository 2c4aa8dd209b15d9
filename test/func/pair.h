/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file pair.h
 * For functional tests: two connected RC queue pairs in one program, on ports 1 and 2 of one
 * rocid whose ports are a ring pair. Every failure ends the program with a sentence.
 */
#ifndef PAIR_H
#define PAIR_H

#include <roci.h>
#include <stddef.h>
#include <stdint.h>

struct end {
	int shares; /* all but qp and cq belong to another end */
	struct roci_context *ctx;
	struct roci_pd *pd;
	struct roci_channel *channel; /* of cq */
	struct roci_cq *cq;
	struct roci_qp *qp;
	struct roci_mr *mr;
};

/** The facts that one end sends to the other over a pipe: its address and rights. */
struct end_address {
	union roci_gid gid;
	uint32_t qpn;
	uint32_t rkey;
	uint64_t addr;
};

struct end_tuning {
	enum roci_mtu mtu;
	uint8_t timeout; /* as in struct roci_qp_attr */
	uint8_t retry_cnt;
	uint32_t gid; /* index of our own; 0: the first that is not link-local */
};

/* --- one end of a pair that is in two programs ---------------------------------------- */

/** Opens a session on the rocid at @p socket and creates the objects of struct end. */
void end_open(struct end *e, const char *socket, size_t size);
/** The same with queues of @p depth work requests. */
void end_open_deep(struct end *e, const char *socket, size_t size, unsigned depth);
void end_to_init(struct end *e, uint8_t port);
struct end_address end_address(const struct end *e, uint8_t port);
/** INIT to RTR and RTS. */
void end_to_rts(struct end *e, uint8_t port, const struct end_address *peer,
	const struct end_tuning *tuning);
void end_close(struct end *e);

/* --- both ends ------------------------------------------------------------------------- */

/** Opens a session for each end of @p e on the rocid at @p socket and connects them; each has
 *  @p size bytes of memory that the other may read and write. */
void pair_open(struct end e[2], const char *socket, size_t size, enum roci_mtu mtu);

/** RESET to RTS, as pair_open() does last. */
void pair_connect(struct end e[2], enum roci_mtu mtu);

/** Where an end is: a daemon's socket and one of its ports, from 1. */
struct place {
	const char *socket;
	uint8_t port;
	uint32_t gid; /* its index; 0: the first that is not link-local */
};

/** The same for ends in any two places. @p timeout is verbs' code for the ACK timeout; 0: none, so
 *  lost packets are never retransmitted. */
void pair_open_at(struct end e[2], const struct place place[2], size_t size, enum roci_mtu mtu,
	uint8_t timeout);

/** RESET to RTS, as pair_open_at() does last. */
void pair_connect_at(
	struct end e[2], const struct place place[2], enum roci_mtu mtu, uint8_t timeout);

/** Opens one more pair of QPs in the sessions of @p base, each with its own CQ of @p depth entries;
 *  everything else, including the channel, is that of @p base. Close it before @p base. */
void pair_share(struct end e[2], const struct end base[2], int depth, enum roci_mtu mtu);

/** The same, but the second end receives from @p srq. */
void pair_share_srq(struct end e[2], const struct end base[2], struct roci_srq *srq, int depth,
	enum roci_mtu mtu);

void pair_close(struct end e[2]);

/** Posts a signaled request of @p from to the other end's memory; @p offset applies at both ends.
 */
void pair_post(struct end *from, const struct end *to, enum roci_wr_opcode opcode, size_t offset,
	uint32_t length);

struct pair_atomic {
	size_t answer; /* offset in our memory where the word's former value goes */
	size_t word;   /* offset of the word in the other end's memory */
	uint64_t compare_add;
	uint64_t swap;
};

/** Posts a signaled atomic of @p from on the other end's memory. */
void pair_post_atomic(struct end *from, const struct end *to, enum roci_wr_opcode opcode,
	const struct pair_atomic *a);

/** Waits for one completion of @p e, which must be a success. */
void pair_wait(struct end *e);

#endif
